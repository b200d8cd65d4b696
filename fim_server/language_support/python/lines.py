"""Logical lines of Python code: each is read once, and the reading is kept by the line's text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fim_server.language_support.python.lexemes import NAMING_WORDS, SOFT_WORDS, Frame, Name
from fim_server.language_support.python.reader import MOST_NESTED, Header, Last, Reader

MOST_KEPT = 30_000
"""Physical lines whose readings are kept: some 20 MB."""

MOST_TEXTS = 4
"""Strings that run to the end of a text and are read as the rest of their line instead."""

NO_CODE = re.compile(r"[ \t\f]*(?:#|\Z)")
"""Physical line without code, at the beginning of a logical line."""

STATEMENT = re.compile(
    r"[ \t]*(?:(?:async[ \t]+)?(?:def|class)|return|import|while|with|try|raise|assert|del|pass|break|continue|global"
    r"|nonlocal|except|finally|elif|lazy[ \t]+(?:import|from))\b"
)
"""Beginning of a physical line that is in no bracket."""

BLANKS = " \t\f"
CLOSERS = ")", "]", "}"


class Import(NamedTuple):
    """Import of one name.

    Attributes:
        origin: The module that the name is imported from, as it is written; None if a module is imported.
        name: The imported name.
        renamed: The name after `as`; empty without one.
    """

    origin: str | None
    name: str
    renamed: str


@dataclass(slots=True)
class Part:
    """Statements of one scope in a logical line.

    Attributes:
        bound: Names that the statements bind.
        loads: Names that they load.
        attributes: Attributes that they load or store.
        annotated: Names that they annotate.
        globals: Names that they declare global.
        nonlocals: Names that they declare nonlocal.
        opens: The definition whose block follows.
    """

    bound: set[str] = field(default_factory=set)
    loads: list[Name] = field(default_factory=list)
    attributes: list[Name] = field(default_factory=list)
    annotated: list[str] = field(default_factory=list)
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    opens: Header | None = None

    def share(self) -> None:
        """Replace empty sets and lists by common ones, which nothing changes any more: they take most of the memory."""
        self.bound = self.bound or NO_NAMES
        self.globals = self.globals or NO_NAMES
        self.nonlocals = self.nonlocals or NO_NAMES
        self.annotated = self.annotated or NO_WORDS
        self.loads = self.loads or NO_LOADS
        self.attributes = self.attributes or NO_LOADS


NO_NAMES: set[str] = set()
NO_WORDS: list[str] = []
NO_LOADS: list[Name] = []


@dataclass(slots=True)
class Line:
    """Logical line.

    Attributes:
        column: The column of its first lexeme; -1 if it has none.
        parts: Its parts, at least one.
        imports: Its imports.
        first: The first lexeme of its first statement.
        statements: How many statements it has, without the headers of blocks.
        takes_all: Whether it imports all names of a module.
        is_broken: Whether its brackets do not match.
        is_ended: Whether its last statement may end where it does.
        physical: How many physical lines it has.
        is_open: Whether it goes on behind the end of the text.
    """

    column: int
    parts: list[Part]
    imports: tuple[Import, ...] = ()
    first: str = ""
    statements: int = 0
    takes_all: bool = False
    is_broken: bool = False
    is_ended: bool = True
    physical: int = 1
    is_open: bool = False

    @property
    def is_import(self) -> bool:
        """True for one whole import statement."""
        return bool(self.imports) and self.statements == 1 and self.is_ended and not self.is_broken


class Recorder(Reader):
    """Reader of one logical line, which keeps what it reads."""

    def __init__(self, soft_words: frozenset[str] = SOFT_WORDS) -> None:
        self.parts = [Part()]
        self.imports: list[Import] = []
        self.statements = 0
        self.first_of_line = ""
        self.is_complete = False
        self.is_ended = True
        self.was_soft = False
        """True if the line begins with a soft keyword that may be a name."""
        self._bare: list[Name] = []
        self._closed_from = 0
        self._receiver = ""
        self._is_blank = True
        self._attribute: Name | None = None
        self.soft_words = soft_words
        super().__init__()

    @property
    def is_in_bracket(self) -> bool:
        """True in a bracket, not in a string."""
        return not self.is_at_top and self.frames[-1].kind not in ("text", "spec")

    def line(self, physical: int, is_open: bool = False) -> Line:
        """Return the logical line, after its last physical line. ``is_open``: whether it goes on behind the text."""
        if not self.is_complete:
            self.is_broken |= not is_open
            self.finish()
        for part in self.parts:
            part.share()
        return Line(
            -1 if self._is_blank else self.column,
            self.parts,
            tuple(self.imports),
            self.first_of_line,
            self.statements,
            self.takes_all,
            self.is_broken,
            self.is_ended,
            physical,
            is_open,
        )

    def read_line(self, text: str) -> None:
        """Read a physical line, with its break."""
        self._is_blank = self.is_margin
        self.feed(text)

    def begin_line(self) -> None:
        self._is_blank = False

    def newline(self) -> None:
        if not self.is_at_top:
            self._fresh_line = True
            return
        if not self.is_margin:
            self.finish()
        self.is_complete = True

    # --- hooks ---------------------------------------------------------------------------------------------------

    def bind(self, name: str) -> None:
        part = self.parts[-1]
        part.bound.add(name)

    def bind_in(self, frame: Frame, name: str) -> None:
        if not isinstance(frame.bound, set):
            frame.bound = set(frame.bound)
        frame.bound.add(name)

    def declare(self, name: str) -> None:
        part = self.parts[-1]
        (part.globals if self.first == "global" else part.nonlocals).add(name)

    def import_name(self, name: str, renamed: str) -> None:
        self.imports.append(Import(self.origin, name, renamed))

    def load(self, last: Last, following: str, bare: bool) -> None:
        alone = last.before in ALONE and following in ALONE_ENDS and len(self.frames) > 1
        name = Name(last.name, last.start, False, None, following == "(", alone)
        if bare:
            self._bare.append(name)
        else:
            self._keep(name)

    def attribute(self, word: str) -> None:
        self._attribute = Name(word, self.start, False, self._receiver)
        self._receiver = ""

    def _settle(self, following: str) -> None:
        attribute = self._attribute
        if attribute is None:
            last = self._last
            self._receiver = last.name if following == "." and last is not None else ""
            if last is not None:
                if following == ":" and last.bare and len(self.frames) == 1:
                    self.parts[-1].annotated.append(last.name)
                super()._settle(following)
            return
        self._attribute, self._receiver = None, ""
        top = self.frames[-1]
        if following == "(":
            self._keep(attribute._replace(is_called=True))
        elif top.phase == "target" and following not in (".", "["):
            self._keep(attribute._replace(is_stored=True))
        elif top.takes_targets and self._targets and following in (",", "=", ")", "]"):
            self._bare.append(attribute)
        elif len(self.frames) == 1 and (following == ":" or (following.endswith("=") and following not in COMPARING)):
            self._keep(attribute._replace(is_stored=self._targets))
        else:
            self._keep(attribute)

    def _keep(self, name: Name) -> None:
        if name.name in self.types and name.receiver is None:
            return
        top = self.frames[-1]
        (top.outer if is_outer(top) else top.loads).append(name)

    def assign(self) -> None:
        for name in self._bare:
            if name.receiver is None:
                self.parts[-1].bound.add(name.name)
            else:
                self.frames[0].loads.append(name._replace(is_stored=True))
        self._bare.clear()

    def lose_targets(self) -> None:
        if self._bare:
            for frame in reversed(self.frames):
                if frame.takes_targets and len(self._bare) > frame.bare_from:
                    (frame.outer if is_outer(frame) else frame.loads).extend(self._bare[frame.bare_from :])
                    del self._bare[frame.bare_from :]

    def reopen(self) -> None:
        self.frames[-1].loads.extend(self._bare[self._closed_from :])
        del self._bare[self._closed_from :]

    def pop(self) -> None:
        frame = self.frames.pop()
        parent = self.frames[-1]
        self._closed_from = frame.bare_from if frame.takes_targets else len(self._bare)
        passed = frame.loads
        if (frame.comprehension == 2 or frame.kind == "lambda") and len(self.frames) < MOST_NESTED:
            bound = frame.bound
            passed = [
                one._replace(is_inner=True) for one in passed if one.receiver is not None or one.name not in bound
            ]
        if frame.outer:
            passed = joined(frame.outer, passed)
        if not passed:
            return
        if is_outer(parent):
            parent.outer = joined(parent.outer, passed)
        else:
            parent.loads = joined(parent.loads, passed)

    def _open(self, sign: str, top: Frame) -> None:
        super()._open(sign, top)
        self.frames[-1].bare_from = len(self._bare)

    def end_statement(self) -> None:
        self.lose_targets()
        while len(self.frames) > 1:
            self.pop()
        part = self.parts[-1]
        for name in self.frames[0].loads:
            (part.loads if name.receiver is None else part.attributes).append(name)
        if self.first and not self.first_of_line:
            self.first_of_line = self.first
        if self.first:
            self.statements += self._header is None
            self.is_ended = self.previous in ("operand", "*") or self.first not in NAMING_WORDS
        if self.first in ("match", "case") and len(self.parts) == 1 and self.statements == 1:
            self.was_soft = self.previous != ":"

    def open_scope(self, header: Header) -> None:
        self.parts[-1].opens = header
        self.parts.append(Part())


ALONE = frozenset({",", "(", ":", "="})
ALONE_ENDS = frozenset({",", ")", "]", "}"})
COMPARING = frozenset({"==", "!=", "<=", ">=", ":="})


def is_outer(frame: Frame) -> bool:
    """Return whether names loaded in a frame do not see the names that it binds."""
    return frame.is_first_source or (frame.kind == "lambda" and frame.phase == "lambda")


def joined(some: list[Name], others: list[Name]) -> list[Name]:
    """Return the names of two lists, of which the longer one is extended."""
    if len(others) > len(some):
        some, others = others, some
    some.extend(others)
    return some


class Kept:
    """Readings of logical lines by their physical lines. Thread-safe: at worst a line is read twice."""

    def __init__(self) -> None:
        self.tree: dict[str, Node] = {}
        self.count = 0

    def add(self, texts: Sequence[str], line: Line) -> None:
        """Keep the reading of a logical line."""
        self.count += len(texts)
        if self.count > MOST_KEPT:
            self.tree, self.count = {}, len(texts)
        tree = self.tree
        for text in texts[:-1]:
            found = tree.get(text)
            if not isinstance(found, dict):
                found = tree[text] = {}
            tree = found
        tree[texts[-1]] = line


Node = Line | dict[str, "Node"]

KEPT = Kept()
EMPTY = Line(-1, [Part()])


def logical_lines(texts: Sequence[str], kept: Kept | None = KEPT, may_be_open: bool = False) -> Iterator[Line]:
    """Read physical lines, without their breaks, as logical lines.

    A line within a bracket that only a statement begins with ends the logical line before. The latter is broken, so it
    is read again: any line that is indented no more than its beginning ends it, too. A logical line that the text's end
    cuts is read so as well, unless it may be open.
    """
    at, strict_until, end, unclosed = 0, 0, len(texts), 0
    while at < end:
        node: Node | None = None if kept is None else kept.tree
        stop = at
        while isinstance(node, dict):
            node = node.get(texts[stop]) if stop < end else None
            stop += 1
        if node is not None:
            yield node
            at = stop
            continue
        if NO_CODE.match(texts[at]) is not None:
            yield EMPTY
            at += 1
            continue
        recorder, count = read(texts, at, end, at < strict_until)
        if may_be_open and not recorder.is_complete and at + count == end:
            yield recorder.line(count, is_open=True)
            return
        if not recorder.is_complete and count > 1 and at >= strict_until:
            strict_until = at + count
            recorder, count = read(texts, at, end, True)
        if recorder.frames[-1].kind in ("text", "spec") and count > 1 and unclosed < MOST_TEXTS:
            unclosed += 1
            recorder, count = read(texts, at, at + 1, True)
        if recorder.was_soft:
            recorder, count = read(texts, at, at + count, at < strict_until, frozenset())
        is_whole = recorder.is_complete
        line = recorder.line(count)
        if is_whole and kept is not None:
            kept.add(texts[at : at + count], line)
        yield line
        at += count


def read(
    texts: Sequence[str], at: int, end: int, is_strict: bool, soft_words: frozenset[str] = SOFT_WORDS
) -> tuple[Recorder, int]:
    """Read the logical line that begins with a physical one, and return its number of physical lines.

    ``is_strict``: whether a line that is indented no more than the first one ends it.
    """
    recorder = Recorder(soft_words)
    for number in range(at, end):
        text = texts[number]
        if number > at and recorder.is_in_bracket and cuts(text, recorder.column, is_strict):
            return recorder, number - at
        recorder.read_line(text + "\n")
        if recorder.is_complete:
            return recorder, number + 1 - at
    return recorder, end - at


def cuts(text: str, column: int, is_strict: bool) -> bool:
    """Return whether a physical line within the brackets of a logical line of some column begins another statement."""
    if STATEMENT.match(text) is not None:
        return True
    code = text.lstrip(BLANKS)
    return is_strict and bool(code) and len(text) - len(code) <= column and not code.startswith((*CLOSERS, "#"))
