"""Edits of a document that follow from those of others: uses of what another file renamed, calls of what it changed.

A name is another file's if a line imports it from there, or imports that file, whose name and a dot stand before it.
This document binds it nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from fim_server.next_edit.bindings import is_bound
from fim_server.next_edit.calls import ChangedHeader, call_edits, changed_header
from fim_server.next_edit.change import Change, change_of, indentation
from fim_server.next_edit.confidence import span_of
from fim_server.next_edit.edit_memory import Edit
from fim_server.next_edit.line_tokens import LONGEST_LINE, Lines, Token, tokens_of
from fim_server.next_edit.propose import LEAST_OF_USES, LONGEST_DOCUMENT, Proposal
from fim_server.next_edit.rebinding import outer_end, rebinding_of
from fim_server.next_edit.renames import line_of
from fim_server.next_edit.signs import SIGNS

LATEST = 8
"""Latest different changes of other documents that are looked at."""

MOST_EDITS = 32
"""Latest edits among which these are looked for: a walk through the uses of a name is one change."""

MOST_USES = 64
"""Most uses of a name."""

IMPORT_LINES = 200
"""Most lines of an import."""

MOST_BINDINGS = 256
"""Most occurrences of a name among which a binding is looked for. With more, the document may bind it."""


@dataclass(frozen=True, slots=True)
class Source:
    """Function or class at the margin of a document that an edit renamed, or function whose header it changed.

    Attributes:
        stem: Name by which the document's file is imported.
        names: The old and the new name, if it was renamed.
        header: The changed header, if there is one.
    """

    stem: str
    names: tuple[str, str] | None
    header: ChangedHeader | None

    @property
    def key(self) -> tuple[object, ...]:
        """Names and parameters of the change, wherever it stands."""
        header = self.header
        return self.names, header and (header.name, header.number, header.old, header.new)


class Sources:
    """Latest edits of documents of a language, and what may follow from them in others."""

    def __init__(self, edits: Sequence[Edit], texts: Mapping[str, str]) -> None:
        """``edits``: the latest edits, the latest last. ``texts``: those of the documents that may be read, by URI."""
        self._texts = texts
        self._edits = [edit for edit in reversed(edits) if edit.uri in texts]
        self._lines: dict[str, Lines] = {}
        self._known: dict[int, Source | None] = {}

    def following(self, uri: str, text: str, most: int = LATEST) -> tuple[Source, list[Proposal]] | None:
        """Return the edits of a document that follow from the latest edit of another one that has some, in their order.

        Args:
            uri: The document.
            text: Its text.
            most: Number of the latest different changes of other documents that are looked at.
        """
        target = None
        for source in self._before(uri, most) if len(text) <= LONGEST_DOCUMENT else ():
            if source.stem in text:
                target = target or Target(Lines(text))
                found = [*renamed(source, target), *called(source, target)]
                if found:
                    return source, found
        return None

    def _before(self, uri: str, most: int) -> Iterator[Source]:
        """Yield the sources among the latest edits of other documents than one, the latest first."""
        count, later = 0, None
        for number, edit in islice(enumerate(self._edits), MOST_EDITS):
            if edit.uri == uri:
                continue
            change = change_of(edit)
            made = None if change is None else (change.old, change.new)
            count += made is None or made != later
            later = made
            if count > most:
                return
            if number not in self._known:
                self._known[number] = self._source(edit, change)
            if (source := self._known[number]) is not None:
                yield source

    def _source(self, edit: Edit, change: Change | None) -> Source | None:
        """Return the source that an edit is, if it still stands."""
        text = self._texts[edit.uri]
        if len(text) > LONGEST_DOCUMENT:
            return None
        if edit.uri not in self._lines:
            self._lines[edit.uri] = Lines(text)
        lines = self._lines[edit.uri]
        at = line_of(edit, lines)
        if at is None:
            return None
        names = None if change is None or indentation(edit.new) else new_name(change)
        header = changed_header(edit, text, span_of(edit, at, lines))
        if header is not None:
            first = text.rfind("\n", 0, header.end) + 1
            header = None if header.receiver or indentation(text[first : header.end]) else header
        return None if names is None and header is None else Source(stem_of(edit.uri), names, header)


def proposals_from_others(edits: Sequence[Edit], uri: str, text: str, others: Mapping[str, str]) -> list[Proposal]:
    """Return the edits that follow in a document from the latest edits of others, in their order.

    Args:
        edits: The latest edits, the latest last.
        uri: The document.
        text: Its text.
        others: Texts of other open documents of its language, by their URI.
    """
    found = Sources(edits, others).following(uri, text)
    return [] if found is None else found[1]


def new_name(change: Change) -> tuple[str, str] | None:
    """Return the old and the new name of the function or class that a change renamed."""
    before = change.tokens[change.head - 1].text if change.head else ""
    return change.names if before in SIGNS.heads | SIGNS.types else None


def renamed(source: Source, target: Target) -> Iterator[Proposal]:
    """Yield the uses of a renamed function or class."""
    if source.names is None:
        return
    (old, new), stem, lines = source.names, source.stem, target.lines
    imported = target.words_with(stem)
    if old not in lines.text or (old in imported and new in target.words_with(new)):
        return  # none, or two names would become one
    # The import may have followed already.
    is_imported = not imported.isdisjoint((old, new)) and not (target.binds(old) or target.binds(new))
    is_module = target.has_module(stem)
    if not (is_imported or is_module):
        return
    count = 0
    for number, line in enumerate(lines.lines):
        if old not in line:
            continue
        tokens = tokens_of(line)
        for place, token in enumerate(tokens):
            if token.text != old or not is_of(tokens, place, stem, is_imported, is_module):
                continue
            if count < MOST_USES and not is_keyword(tokens, place):
                start = lines.line_starts[number] + token.start
                count += 1
                yield Proposal(start, start + len(old), new, LEAST_OF_USES, is_use=True)


def called(source: Source, target: Target) -> Iterator[Proposal]:
    """Yield the edits of the calls of a function whose header was changed."""
    changed, stem, lines = source.header, source.stem, target.lines
    if changed is None or changed.name not in lines.text:
        return
    is_imported = changed.name in target.words_with(stem) and not target.binds(changed.name)
    is_module = target.has_module(stem)
    if not (is_imported or is_module):
        return
    for one in call_edits(changed, lines, is_own=False):
        line = lines.text.rfind("\n", 0, one.call) + 1
        tokens = tokens_of(lines.text[line : one.call + len(changed.name)])
        if is_of(tokens, -1, stem, is_imported, is_module):
            yield Proposal(one.start, one.end, one.text, LEAST_OF_USES)


class Target:
    """Document in which edits may follow from those of others: its imports, and the names that it binds otherwise."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self._binds: dict[str, bool] = {}

    @cached_property
    def _imports(self) -> list[tuple[range, set[str]]]:
        """Lines of each import at the margin, up to its last bracket, and their words."""
        found: list[tuple[range, set[str]]] = []
        texts, end = self.lines.lines, 0
        for number, line in enumerate(texts):
            first = line.split(maxsplit=1)[:1] if number >= end and line[:1].strip() else []
            if not first or first[0] not in SIGNS.imports:
                continue
            words: set[str] = set()
            end, depth = number, 0
            while end < min(len(texts), number + IMPORT_LINES) and (end == number or depth > 0):
                tokens = [token.text for token in tokens_of(texts[end])]
                depth += sum((one in SIGNS.opens) - (one in SIGNS.closes) for one in tokens)
                words.update(tokens)
                end += 1
            found.append((range(number, end), words))
        return found

    def words_with(self, name: str) -> set[str]:
        """Return the words of the imports that have a name."""
        return {word for _, words in self._imports if name in words for word in words}

    def has_module(self, stem: str) -> bool:
        """Return whether a file's own name stands before its members: an import has it, and nothing else binds it."""
        return stem in self.words_with(stem) and stem + SIGNS.member in self.lines.text and not self.binds(stem)

    def binds(self, name: str) -> bool:
        """Return whether a line besides the imports may bind a name."""
        if name not in self._binds:
            self._binds[name] = self._is_bound(name)
        return self._binds[name]

    def _is_bound(self, name: str) -> bool:
        imports = {number for lines, _ in self._imports for number in lines}
        whole = range(len(self.lines.lines))
        count = 0
        for number, line in enumerate(self.lines.lines):
            if name not in line or number in imports:
                continue
            if len(line) > LONGEST_LINE:
                return True  # it may
            tokens = tokens_of(line)
            for at, token in enumerate(tokens):
                if token.text != name or (at and tokens[at - 1].text == SIGNS.member):
                    continue
                count += 1
                if count > MOST_BINDINGS or rebinding_of(self.lines, number, tokens, at, whole) is not None:
                    return True
                if not is_keyword(tokens, at) and (is_bound(tokens, at) or is_assigned(tokens, at)):
                    return True
        return False


def is_keyword(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a name is the keyword of an argument."""
    texts = [token.text for token in tokens]
    if texts[at + 1 : at + 2] != [SIGNS.assign] or texts[at + 2 : at + 3] == [SIGNS.assign]:
        return False
    if at == 0:
        return texts[-1] == SIGNS.separator  # of a call on several lines
    return outer_end(texts, at) is not None and texts[at - 1] in SIGNS.separators | {SIGNS.parameters_open}


def is_assigned(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a name is one of several before the sign of assignment."""
    texts = [token.text for token in tokens]
    is_one = at + 1 < len(texts) and texts[at + 1] in (SIGNS.separator, SIGNS.assign)
    if SIGNS.assign not in texts[at:] or not is_one or outer_end(texts, at) is not None:
        return False
    return at == 0 or texts[at - 1] == SIGNS.separator


def is_of(tokens: Sequence[Token], at: int, stem: str, is_imported: bool, is_module: bool) -> bool:
    """Return whether a token with the name is that of another file; ``at``: its number, -1 for the last one."""
    at %= len(tokens)
    before = "".join(token.text for token in tokens[max(0, at - 2) : at])
    sign = next((one for one in SIGNS.members if before.endswith(one)), None)
    if sign is not None:
        return is_module and at > len(sign) and tokens[at - 1 - len(sign)].text == stem
    return is_imported and not (at and tokens[at - 1].text in SIGNS.heads | SIGNS.types)


def stem_of(uri: str) -> str:
    """Return the name by which a document's file is imported: without its suffix, or that of its folder."""
    path = PurePosixPath(unquote(urlsplit(uri).path))
    return path.parent.name if path.stem in SIGNS.packages else path.stem
