"""Statements of Python code: which words bind a name, and which load one.

The reader knows as much of the grammar as that takes. It accepts any text, and it reads valid code exactly: scopes of
lambdas and comprehensions, targets, patterns, declarations, parameters in brackets, fields of strings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from fim_server.language_support.python.lexemes import (
    AUGMENTED,
    BLOCK_WORDS,
    CONDITION_WORDS,
    EXPRESSION_WORDS,
    IMPORTING_WORDS,
    KEYWORDS,
    NAMING_WORDS,
    SOFT_WORDS,
    STATEMENT_WORDS,
    Frame,
    Scanner,
    normal,
)

BLOCK_END = ")", "]", "}", ";"
LAMBDA_ENDS = frozenset((*BLOCK_END, ",", ":", "=", "!", "->"))
"""Signs that end the body of a lambda."""

MOST_NESTED = 200
"""Brackets around a name that may bind it: CPython's tokenizer takes no more."""

LAMBDA_END_WORDS = frozenset({"for", "async", "as"})


Chain = tuple[str, "Chain"] | None
"""Texts, the last one first: copies of a reader share what they have in common."""


class Last(NamedTuple):
    """Name whose use the next lexeme decides.

    Attributes:
        name: The name.
        start: Its offset.
        phase: The phase of its frame, or `soft` for a soft keyword.
        is_checked: Whether it ends in the middle.
        bare: Whether it may be a target of an assignment.
        keyword: Whether it may be the name of an argument.
        walrus: Whether it may be the target of `:=`.
        before: The lexeme before it.
    """

    name: str
    start: int
    phase: str
    is_checked: bool
    bare: bool = False
    keyword: bool = False
    walrus: bool = False
    before: str = ""


@dataclass(slots=True)
class Header:
    """Header of a definition.

    Attributes:
        kind: `def` or `class`.
        name: The defined name.
        column: The header's column.
        parameters: The names of the parameters, in order.
        types: The names of the parameters in square brackets.
        has_bases: Whether a class has anything in its round brackets.
    """

    kind: str
    name: str
    column: int
    parameters: tuple[str, ...] = ()
    types: frozenset[str] = frozenset()
    has_bases: bool = False


class Reader(Scanner):
    """Reader of statements. Subclasses receive bindings, loads and scopes."""

    soft_words = SOFT_WORDS
    """Words that may be keywords at the beginning of a statement."""
    of_bytes = False
    """True if each character of the text is a byte."""

    def __init__(self) -> None:
        super().__init__()
        self.takes_all = False
        """True after an import of all names."""
        self.is_broken = False
        """True after a closing bracket that does not match."""
        self.begin_statement()

    # --- for subclasses ------------------------------------------------------------------------------------------

    def bind(self, name: str) -> None:
        """Bind a name in the current scope."""
        raise NotImplementedError

    def bind_in(self, frame: Frame, name: str) -> None:
        """Bind a name in a comprehension or lambda."""
        frame.bound |= {name}

    def declare(self, name: str) -> None:
        """Declare a name with the statement's first word, `global` or `nonlocal`."""

    def import_name(self, name: str, renamed: str) -> None:
        """Import a name. ``renamed``: the name after `as`, or nothing."""

    def load(self, last: Last, following: str, bare: bool) -> None:
        """Load a name. ``bare``: the next `=` may still assign it."""
        raise NotImplementedError

    def attribute(self, word: str) -> None:
        """Read an attribute."""

    def assign(self) -> None:
        """Bind the bare names of the statement so far."""
        raise NotImplementedError

    def lose_targets(self) -> None:
        """Load the bare names of the statement so far."""

    def reopen(self) -> None:
        """Load the bare names of a bracket that was closed and of which a part follows."""

    def end_statement(self) -> None:
        """End a statement."""

    def open_scope(self, header: Header) -> None:
        """Begin the block of a definition."""
        raise NotImplementedError

    # --- lexemes -------------------------------------------------------------------------------------------------

    def begin_statement(self) -> None:
        """Begin a statement in the logical line."""
        self.frames = [Frame(takes_targets=True)]
        self.first = ""
        """The statement's first lexeme."""
        self.previous = ""
        self._fresh_line = False
        self._last: Last | None = None
        self._targets = True
        """True while all of the statement may be targets."""
        self._assigned = self._annotated = self._as = self._was_close = False
        self._soft = ""
        self._header: Header | None = None
        self.types: frozenset[str] = frozenset()
        """Parameters in square brackets of the definition in progress."""
        self.origin: str | None = None
        """Module of an import of names."""
        self._path: Chain = None
        self._renamed = ""
        self._parameters: Chain = None
        self._word = ""
        """The name or attribute before, if nothing else stands behind it."""

    def newline(self) -> None:
        """End the statement, unless it is in brackets."""
        if not self.is_at_top:
            self._fresh_line = True
            return
        if not self.is_margin:
            self._end()
        self.end_line()

    @property
    def is_in_text(self) -> bool:
        """True in a string, outside of its fields, and in a comment."""
        return self._comment or self.frames[-1].kind in ("text", "spec")

    @property
    def called(self) -> str | None:
        """Name that the innermost bracket calls; empty in the brackets of a definition, None in others."""
        at = len(self.frames) - 1
        while self.frames[at].kind == "lambda":
            at -= 1
        frame = self.frames[at]
        if frame.role == "params" or (frame.role == "call" and at == 1 and self._header is not None):
            return ""
        return frame.callee or None

    @property
    def is_at_top(self) -> bool:
        """True in no bracket or string."""
        top = self.frames[-1]
        return not top.kind or top.role == "statement"

    def _end(self) -> None:
        self.finish()
        self.begin_statement()

    def finish(self) -> None:
        """End the statement, behind which nothing is read before another is begun."""
        self._settle("\n")
        self._end_lambdas(";")
        self._end_import()
        self.end_statement()

    def word(self, word: str, is_checked: bool) -> None:
        if self._fresh_line:
            self._fresh_line = False
            if len(self.frames) > 1 and word in STATEMENT_WORDS:
                self.is_broken = True
                self.begin_statement()  # nothing closes the bracket before
        if self.previous == "." and self.frames[-1].phase != "names":
            if self._soft:
                self._soft, self.first = "", "operand"
                self._settle(".")
            self.previous = "operand"
            self.frames[-1].is_start = self._was_close = False
            self._word = word
            self.attribute(word)
            return
        if not word.isascii():
            word = normal(word, self.of_bytes)
        self._settle(word)
        self._was_close = False
        if word in LAMBDA_END_WORDS or (word == "from" and self.previous != "yield"):
            self._end_lambdas(",")
        top = self.frames[-1]
        if self._soft == "lazy" and word in IMPORTING_WORDS:
            self._soft, self.first = "", ""
        if not self.first and len(self.frames) == 1 and self._begin_with(word, top):
            return
        if self._soft:
            self._after_soft(word, top)
        if word in KEYWORDS and top.phase != "conversion":
            self._keyword(word, top)
        else:
            self._name(word, top, is_checked)
        self.frames[-1].is_start = word in CONDITION_WORDS and top.kind == "" and self.first == word

    def _begin_with(self, word: str, top: Frame) -> bool:
        """Begin a statement; return whether nothing else has to be done about its first word."""
        if word == "async":
            return True
        self.first = word
        if word in self.soft_words:
            self._soft = word
            self._last = Last(word, self.start, "soft", False, True)
            self.previous = "soft"
            return True
        if word not in KEYWORDS or word in EXPRESSION_WORDS:
            return False
        self._no_targets()
        if word in ("def", "class"):
            top.phase = "define"
        elif word in NAMING_WORDS:
            top.phase = "names"
        elif word in ("for", "del"):
            top.phase = "target"
        self.previous = word
        top.is_start = word in CONDITION_WORDS
        return True

    def _after_soft(self, word: str, top: Frame) -> None:
        """Decide by the next lexeme whether `match`, `case` or `type` is a keyword; `lazy` is none here."""
        if self._soft == "case":
            top.phase = "pattern"
        elif self._soft == "type" and word.isidentifier() and word not in KEYWORDS:
            top.phase = "alias"
        if self._soft in ("match", "case") or top.phase == "alias":
            self._no_targets()
        self._soft = ""

    def _no_targets(self) -> None:
        if self._targets:
            self._targets = False
            self.lose_targets()

    def _keyword(self, word: str, top: Frame) -> None:
        previous, self.previous = self.previous, word
        if top.takes_targets:
            self._no_targets()
        if top.phase == "names":
            if word == "import":
                self.origin, self._path = joined(self._path), None
            elif word != "as":
                self.previous = previous
            return
        match word:
            case "for" if top.comprehension:
                top.next_is_first = top.comprehension == 1
                top.comprehension, top.phase, top.is_first_source = 2, "target", False
            case "in" if top.phase == "target":
                top.phase, top.is_first_source = "expression", top.next_is_first and top.comprehension == 2
            case "if" if top.comprehension == 2:
                top.is_first_source = False
            case "if" if top.phase == "pattern" and top.kind == "":
                top.phase = "expression"
            case "as" if top.phase == "expression":
                top.phase, self._as = "target", True
            case "lambda":
                top.is_start = False
                self.frames.append(Frame("lambda", "statement" if self.is_at_top else "", "lambda"))
            case "None" | "True" | "False":
                self.previous = "operand"

    def _name(self, word: str, top: Frame, is_checked: bool) -> None:
        previous, self.previous, self._word = self.previous, "operand", word
        match top.phase:
            case "conversion":
                return
            case "define":
                self.bind(word)
                self._header = Header(self.first, word, self.column)
                top.phase = "header"
            case "alias":
                self.bind(word)
            case "names":
                self._name_in_import(word, previous)
            case "params" if not top.is_value:
                self._parameter(word, top)
            case "lambda" if not top.is_value:
                self.bind_in(top, word)
            case "target" | "pattern":
                self._last = Last(word, self.start, top.phase, is_checked, before=previous)
            case _:
                bare = top.takes_targets and self._targets
                self._last = Last(
                    word,
                    self.start,
                    "expression",
                    is_checked,
                    bare,
                    may_be_keyword(top),
                    self.may_be_walrus(top),
                    previous,
                )

    def _name_in_import(self, word: str, previous: str) -> None:
        if self.first not in ("import", "from"):
            self.declare(word)
        elif previous == "as":
            self._renamed = word
        else:
            self._path = word, self._path

    def _parameter(self, word: str, top: Frame) -> None:
        if top.role != "types":
            self._parameters = word, self._parameters
        elif len(self.types) < MOST_NESTED:
            self.types |= {word}

    def operand(self, kind: str) -> None:
        self._fresh_line = self._was_close = False
        self._settle(kind)
        top = self.frames[-1]
        if self._soft:
            self._after_soft(kind, top)
        if not self.first and len(self.frames) == 1:
            self.first = kind
        if top.takes_targets:
            self._no_targets()
        top.is_start = False
        self.previous, self._word = "operand", ""

    def sign(self, sign: str) -> None:
        self._fresh_line = False
        if sign == "." and self.previous == "soft":
            self.previous = sign  # an attribute may follow, or the rest of `...` or of a number such as `.5`
            return
        is_ellipsis = sign == "." and self.previous == "." and bool(self._soft)
        self._settle("..." if is_ellipsis else sign)
        if sign in LAMBDA_ENDS:
            self._end_lambdas(sign)
        top = self.frames[-1]
        if is_ellipsis:
            self._after_soft(sign, top)
        elif self._soft and sign in "([{*-+~":
            self._after_soft(sign, top)
            if self.first != "case":
                self.previous = "soft" if self.first == "match" else "operand"
        elif self._soft:
            self._soft, self.first = "", "operand"
        if not self.first and len(self.frames) == 1:
            self.first = sign
        was_start, top.is_start = top.is_start, False
        was_close, self._was_close = self._was_close, False
        if was_close and sign in ("(", "[", ".") and top.takes_targets:
            self.reopen()
        match sign:
            case "(" | "[" | "{":
                self._open(sign, top)
            case ")" | "]" | "}":
                self._close(sign)
            case ",":
                self._comma(top)
            case ":":
                self._colon(top)
            case "=":
                self._equals(top)
            case ";" if not top.kind:
                self._end()
            case ".":
                dots = self.previous + sign if self.previous in (".", "..") else sign
                self.previous = "operand" if dots == "..." and top.phase != "names" else dots
                if top.phase == "names":
                    self._path = sign, self._path
            case "!" if top.kind == "field":
                top.phase = "conversion"
            case ":=" if top.kind == "field":
                self._colon(top)
            case "*" if was_start or self.previous in ("", "(", ","):
                self.previous = "*"
            case "->":
                top.phase, self.previous = "expression", sign
            case _:
                if top.takes_targets:
                    self._no_targets()
                if top.phase == "names" and sign == "*":
                    self.takes_all = True
                self.previous = sign

    def _end_lambdas(self, sign: str) -> None:
        """Leave lambdas whose body a sign ends; in their parameters only brackets and the statement's end do."""
        while (top := self.frames[-1]).kind == "lambda" and (top.phase != "lambda" or sign in BLOCK_END):
            self.pop()

    def _open(self, sign: str, top: Frame) -> None:
        after_operand = self.previous == "operand"
        frame = Frame(sign, is_start=True)
        if top.phase in ("header", "alias") and sign == "[":
            frame.role, frame.phase = "types", "params"
        elif top.phase == "header":
            is_class = self._header is not None and self._header.kind == "class"
            frame.role, frame.phase = ("call", "expression") if is_class else ("params", "params")
        elif top.phase in ("names", "pattern") or (top.phase == "target" and not after_operand):
            frame.role, frame.phase = "inner", top.phase
        elif after_operand and sign == "[":
            frame.role = "subscript"
        else:
            is_call = sign == "(" and (after_operand or self.previous == "soft")
            frame.role = "call" if is_call else "group" if sign == "(" else "display"
            frame.callee = self._word if is_call else ""
            frame.comprehension = 1
            frame.takes_targets = top.takes_targets and self._targets and not after_operand and sign != "{"
            if top.takes_targets and not after_operand and sign == "{":
                self._no_targets()
        self.frames.append(frame)
        self.previous = "("

    def _close(self, sign: str) -> None:
        frame = self.frames[-1]
        if PAIRS[sign] not in (frame.kind, frame.kind == "field" and "{"):
            self.is_broken = True
        if len(self.frames) > 1:
            if frame.phase == "names":
                self._end_import()
            header = self._header
            if header is not None and frame.role == "call" and len(self.frames) == 2 and self.previous != "(":
                header.has_bases = True
            self.pop()
        self.previous, self._was_close, self._word = "operand", True, ""

    def _comma(self, top: Frame) -> None:
        if top.phase == "names":
            self._end_import()
        if self._as and top.phase == "target" and top.role != "inner":
            top.phase, self._as = "expression", False
        if top.comprehension == 1:
            top.comprehension = 0
        if top.phase in ("params", "lambda"):
            top.is_value = False
        top.is_start = bool(top.kind)
        self.previous = ","

    def _colon(self, top: Frame) -> None:
        self.previous = ":"
        if top.phase == "lambda":
            top.phase, top.is_value = "expression", False
        elif top.kind == "field":
            top.kind = "spec"
        elif top.phase == "params":
            top.is_value = True
        elif not top.kind:
            if self._header is not None or self.first in BLOCK_WORDS:
                self._enter()
            else:
                self.assign()
                self._no_targets()
                self._annotated = True

    def _enter(self) -> None:
        """Begin a block, which may stand in the same line."""
        header = self._header
        if header is not None:
            header = replace(header, parameters=tuple(pieces(self._parameters)), types=self.types)
        self.end_statement()
        self.begin_statement()
        if header is not None:
            self.open_scope(header)

    def _equals(self, top: Frame) -> None:
        self.previous = "="
        if top.phase in ("params", "lambda"):
            top.is_value = True
        elif not top.kind:
            if top.phase in ("alias", "pattern"):
                top.phase = "expression"
            if self._targets or self._annotated:
                self.assign()
                self._assigned = True
        elif top.comprehension == 1:
            top.comprehension = 0

    # --- names ---------------------------------------------------------------------------------------------------

    def may_be_walrus(self, top: Frame) -> bool:
        """Return whether a name may be the target of `:=` here."""
        if not top.is_start:
            return False
        return not top.kind or top.role in ("group", "call") or (top.role == "display" and top.comprehension > 0)

    def _settle(self, following: str) -> None:
        """Decide the use of the name before a lexeme. ``following``: a sign, a word, or the kind of an operand."""
        last, self._last = self._last, None
        if last is None:
            return
        match last.phase:
            case "target":
                if following in (".", "(", "["):
                    self.load(last, following, False)
                else:
                    self._bind_target(last.name)
                return
            case "pattern":
                if following in (".", "("):
                    self.load(last, following, False)
                elif following != "=" and last.name != "_":
                    self.bind(last.name)
                return
            case "soft" if is_keyword(last.name, following):
                return
        if last.bare and following in (",", "=", ")", "]"):
            self.load(last, following, True)
        elif last.bare and len(self.frames) == 1 and (following in AUGMENTED or following == ":"):
            self.bind(last.name)
        elif following == ":=" and (last.walrus or not last.is_checked) and self.frames[-1].kind != "field":
            self.bind_walrus(last.name)
        elif not (following == "=" and last.keyword):
            self.load(last, following, False)

    def bind_walrus(self, name: str) -> None:
        """Bind the target of `:=`: in the innermost lambda, or in the current scope."""
        for at in range(len(self.frames) - 1, max(0, len(self.frames) - MOST_NESTED), -1):
            frame = self.frames[at]
            if frame.kind == "lambda" and frame.phase != "lambda":
                self.bind_comprehended(at, name)
                return
        self.bind(name)

    def _bind_target(self, name: str) -> None:
        at = len(self.frames) - 1
        least = at - MOST_NESTED
        while at > max(0, least) and self.frames[at].role == "inner":
            at -= 1
        if self.frames[at].comprehension == 2:
            self.bind_comprehended(at, name)
        else:
            self.bind(name)

    def bind_comprehended(self, at: int, name: str) -> None:
        """Bind a name in the comprehension or lambda that is a frame, which may be shared with a copy."""
        self.bind_in(self.frames[at], name)

    def _end_import(self) -> None:
        if self._path is None:
            return
        path, renamed = joined(self._path), self._renamed
        self._path, self._renamed = None, ""
        if path and (self.first == "import" or (self.first == "from" and self.origin is not None)):
            self.import_name(path, renamed)
            self.bind(renamed or (path.partition(".")[0] if self.first == "import" else path))


PAIRS = {")": "(", "]": "[", "}": "{"}
SOFT_ENDS = frozenset({".", "=", ":", ",", ")", "]", "\n", *AUGMENTED})
"""Lexemes after which `match`, `case` or `type` is a name."""


def is_keyword(soft_word: str, following: str) -> bool:
    """Return whether a soft keyword that begins a statement may be a keyword before a lexeme."""
    return following in IMPORTING_WORDS if soft_word == "lazy" else following not in SOFT_ENDS


def pieces(chain: Chain) -> list[str]:
    """Return the texts of a chain, the first one first."""
    found = []
    while chain is not None:
        text, chain = chain
        found.append(text)
    return found[::-1]


def joined(chain: Chain) -> str:
    """Return the texts of a chain as one."""
    return "".join(pieces(chain))


def may_be_keyword(top: Frame) -> bool:
    """Return whether a name may be that of an argument here."""
    return top.role == "call" and top.is_start
