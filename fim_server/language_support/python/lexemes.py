"""Lexemes of Python code that arrives in pieces, with the open brackets and strings around them.

The scanner checks nothing: it reads any text as some lexemes. Trackers feed bytes, each as the character of its number;
all other readers feed text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Set
from dataclasses import dataclass, field, fields
from itertools import product
from typing import NamedTuple

LEXEME = re.compile(
    r"""
      (?P<blank>   [ \t\f\r]+ | \\\r?\n )
    | (?P<newline> \n )
    | (?P<comment> \# )
    | (?P<word>    [A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]* )
    | (?P<number>  [0-9][\w.]* )
    | (?P<quote>   \"\"\" | ''' | " | ' )
    | (?P<sign>    \*\*= | //= | <<= | >>= | := | == | != | <= | >= | -> | \*\* | // | << | >>
                 | [-+*/%@&|^]= | . )
    """,
    re.VERBOSE | re.DOTALL,
)

TEXT_STOPS = re.compile(r"""[\\{}\n'"]""")

SIGNS = (
    "**=", "//=", "<<=", ">>=", ":=", "==", "!=", "<=", ">=", "->", "**", "//", "<<", ">>",
    "-=", "+=", "*=", "/=", "%=", "@=", "&=", "|=", "^=", *"-+*/%@&|^=<>:!",
)  # fmt: skip
LONGER = {sign: tuple(other for other in SIGNS if other.startswith(sign)) for sign in (*SIGNS, "\\")}
EXTENDABLE = frozenset(sign for sign, longer in LONGER.items() if len(longer) > 1) | {"\\"}
AUGMENTED = frozenset(sign for sign in SIGNS if sign[-1] == "=" and sign not in ("==", "!=", "<=", ">=", ":=", "="))

EXPRESSION_WORDS = frozenset({"None", "True", "False", "lambda", "not", "await", "yield"})
JOINING_WORDS = frozenset({"and", "or", "in", "is", "if", "else", "not", "for", "as", "async", "from", "import"})
FURTHER_WORDS = {"yield": "from", "not": "in"}
STATEMENT_WORDS = frozenset({
    "def", "class", "return", "import", "while", "with", "try", "raise", "assert", "del", "pass", "break", "continue",
    "global", "nonlocal", "except", "finally", "elif",
})  # fmt: skip
KEYWORDS = EXPRESSION_WORDS | JOINING_WORDS | STATEMENT_WORDS
SOFT_WORDS = frozenset({"match", "case", "type", "lazy"})
IMPORTING_WORDS = frozenset({"import", "from"})
BLOCK_WORDS = frozenset({
    "if", "elif", "else", "for", "while", "try", "except", "finally", "with", "def", "class", "match", "case",
})  # fmt: skip
NAMING_WORDS = frozenset({"import", "from", "global", "nonlocal"})
CONDITION_WORDS = frozenset({"if", "elif", "while"})
STRING_PREFIXES = frozenset({"r", "b", "f", "u", "t", "br", "rb", "fr", "rf", "tr", "rt"})

ANY_CASE = frozenset(
    "".join(letters)
    for prefix in STRING_PREFIXES
    for letters in product(*((letter, letter.upper()) for letter in prefix))
)

QUOTES = ("'", '"')
TAB = 8
NOWHERE = 1 << 60
"""Offset behind every text."""


class Name(NamedTuple):
    """Occurrence of a name that is loaded, or of an attribute.

    Attributes:
        name: The name.
        start: Its offset from the beginning of the logical line.
        is_inner: Whether a lambda or comprehension of the same line is around it.
        receiver: The name before the dot of an attribute; empty for another expression, None for a plain name.
        is_called: Whether a call follows.
        is_alone: Whether it is a whole argument or element.
        is_stored: Whether it is an attribute that is assigned or deleted.
    """

    name: str
    start: int
    is_inner: bool = False
    receiver: str | None = None
    is_called: bool = False
    is_alone: bool = False
    is_stored: bool = False


@dataclass(slots=True)
class Frame:
    """Open bracket, string, field of a string, lambda, or the statement itself.

    Attributes:
        kind: The bracket; `text`, `field` or `spec` of a string; `lambda`; empty for a statement.
        role: The bracket's use: `call`, `group`, `display`, `subscript`, `params`, `types`, or `inner` in a target.
        phase: The meaning of a word: `expression`, `target`, `pattern`, `names`, `params`, `lambda`, `define`,
            `header`, `alias`, `conversion`.
        is_value: True in the default or annotation of a parameter.
        comprehension: 0 if the bracket cannot be a comprehension, 1 if it may become one, 2 if it is one.
        is_first_source: True in the first iterable of a comprehension, which does not see the targets.
        next_is_first: True between the first `for` and its `in`.
        is_start: True at the beginning of an element.
        takes_targets: Whether names directly in the bracket may be targets of an assignment.
        bound: Names that a comprehension or lambda binds.
        callee: The name before a call's bracket.
        quote: The string's quote.
        formatted: Whether the string has fields.
        raw: Whether the string is raw.
        loads: Names loaded in the frame.
        outer: Names loaded in the frame that do not see its bound names.
        bare_from: Index of its first name among those that the next `=` may assign.
    """

    kind: str = ""
    role: str = ""
    phase: str = "expression"
    is_value: bool = False
    comprehension: int = 0
    is_first_source: bool = False
    next_is_first: bool = False
    is_start: bool = False
    takes_targets: bool = False
    bound: Set[str] = frozenset()
    callee: str = ""
    quote: str = ""
    formatted: bool = False
    raw: bool = False
    loads: list[Name] = field(default_factory=list)
    outer: list[Name] = field(default_factory=list)
    bare_from: int = 0

    def copy(self) -> Frame:
        """Return an equal frame. Its lists are shared: trackers, which copy frames, leave them empty."""
        other = Frame.__new__(Frame)
        for name in FRAME_FIELDS:
            setattr(other, name, getattr(self, name))
        return other


FRAME_FIELDS = tuple(field.name for field in fields(Frame))


class Scanner:
    """Position in a text. Subclasses receive the lexemes."""

    def __init__(self) -> None:
        self.frames = [Frame(takes_targets=True)]
        self.position = 0
        self.start = 0
        """Offset of the current lexeme."""
        self.checked_from = NOWHERE
        """Offset of the middle: a tracker checks words that end behind it."""
        self.tail = ""
        """A lexeme that may go on."""
        self.previous = ""
        """The lexeme before: a sign, a keyword, `operand`, or nothing."""
        self.column = 0
        """Column of the logical line's first lexeme."""
        self.is_margin = True
        """True while the logical line has nothing but blanks."""
        self.comment = -1
        """Offset of the last comment."""
        self._comment = False
        self._indent = 0
        self._prefix = ""

    def word(self, word: str, is_checked: bool) -> None:
        """Read a word. ``is_checked``: whether it ends in the middle."""
        raise NotImplementedError

    def operand(self, kind: str) -> None:
        """Read a number, or the beginning of a string."""
        raise NotImplementedError

    def sign(self, sign: str) -> None:
        """Read any other lexeme."""
        raise NotImplementedError

    def newline(self) -> None:
        """Read a line break outside of strings."""
        raise NotImplementedError

    def begin_line(self) -> None:
        """Begin a logical line, whose column is known."""

    def check_tail(self) -> None:
        """Check a text that ends in a lexeme which may go on."""

    def meet(self, kind: str, text: str) -> None:
        """Read a lexeme of the middle, of a kind of :data:`LEXEME`."""
        match kind:
            case "word":
                self.word(text, True)
            case "number" | "quote":
                self.operand(kind)
            case _:
                self.sign(text)

    def pop(self) -> None:
        """Leave the innermost frame."""
        self.frames.pop()

    def feed(self, data: str) -> None:
        """Read on. Raises UndefinedNameError, after which the scanner is of no use."""
        buffer = self.tail + data
        base = self.position - len(self.tail)
        self.tail = ""
        at, end = 0, len(buffer)
        match = LEXEME.match
        while at < end:
            if self._comment:
                stop = buffer.find("\n", at)
                if stop < 0:
                    break
                self._comment = False
                at = stop
                continue
            if self.frames[-1].kind in ("text", "spec"):
                at = self._read_text(buffer, at)
                continue
            if buffer[at] == " " and not self.is_margin:
                at += 1
                continue
            found = match(buffer, at)
            assert found is not None, "any character is a sign"
            stop, kind, text = found.end(), found.lastgroup, found[0]
            if self.is_margin and kind not in ("blank", "newline", "comment"):
                self.is_margin, self.column = False, self._indent
                self.begin_line()
            if stop > end - 3 and self._may_go_on(buffer, at, stop, kind or "", text):
                self.tail = buffer[at:]
                break
            self.start = base + at
            match kind:
                case "blank":
                    if self.is_margin:
                        self._indent_by(text)
                case "word":
                    if buffer[stop : stop + 1] in QUOTES and text.lower() in STRING_PREFIXES:
                        self._prefix = text.lower()
                    else:
                        self.word(text, base + stop > self.checked_from)
                case "sign":
                    self.sign(text)
                case "newline":
                    self.newline()
                case "number":
                    self.operand("number")
                case "quote":
                    self._begin_string(text)
                case _:
                    self._comment, self.comment = True, self.start
            at = stop
        self.position += len(data)
        if self.tail and self.position > self.checked_from:
            self.check_tail()

    def _may_go_on(self, buffer: str, at: int, stop: int, kind: str, text: str) -> bool:
        if kind == "quote":
            return len(buffer) - at < 3 and buffer[at:] == text[0] * (len(buffer) - at)
        if stop < len(buffer):
            return False
        return kind in ("word", "number") or (kind == "sign" and text in EXTENDABLE)

    def _indent_by(self, blanks: str) -> None:
        if not blanks.strip(" "):
            self._indent += len(blanks)
            return
        for blank in blanks:
            if blank == "\t":
                self._indent = (self._indent // TAB + 1) * TAB
            elif blank == "\f":
                self._indent = 0
            elif blank == " ":
                self._indent += 1

    def end_line(self) -> None:
        """End a logical line: another begins with the next lexeme."""
        self.is_margin, self._indent = True, 0

    def _read_text(self, buffer: str, at: int) -> int:
        """Read on in the text of a string, and return the offset after it. Keep a part that the end cuts."""
        top = self.frames[-1]
        quote, is_spec = top.quote, top.kind == "spec"
        while (found := TEXT_STOPS.search(buffer, at)) is not None:
            at = found.start()
            character, rest = found[0], buffer[at : at + 3]
            if character == "\\" and not is_spec:
                if len(rest) < 2 or (rest == "\\N" and top.formatted):
                    self.tail = buffer[at:]
                    return len(buffer)
                if rest == "\\N{" and top.formatted and not top.raw:
                    at = buffer.find("}", at) + 1
                    if not at:
                        self.tail = buffer[found.start() :]
                        return len(buffer)
                else:
                    at += 1 if top.formatted and rest[1] in "{}" else 2
            elif character == "{" and (top.formatted or is_spec):
                if len(rest) < 2 and not is_spec:
                    self.tail = rest
                    return len(buffer)
                if rest[1:2] == "{" and not is_spec:
                    at += 2
                    continue
                self.frames.append(Frame("field", "field", quote=quote))
                self.previous = "("
                return at + 1
            elif character == "}" and is_spec:
                self.pop()
                return at + 1
            elif character == "\n" and len(quote) == 1:
                self._end_string(is_spec)
                return at
            elif character == quote[0]:
                if len(quote) == 3 and rest != quote:
                    if len(rest) < 3 and rest == quote[: len(rest)]:
                        self.tail = rest
                        return len(buffer)
                    at += 1
                    continue
                self._end_string(is_spec)
                return at + len(quote)
            else:
                at += 1
        return len(buffer)

    def _begin_string(self, quote: str) -> None:
        prefix, self._prefix = self._prefix, ""
        self.operand("string")
        self.frames.append(Frame("text", quote=quote, formatted=bool({*"ft"} & {*prefix}), raw="r" in prefix))

    def _end_string(self, is_spec: bool) -> None:
        if is_spec:
            self.pop()
        if self.frames[-1].kind == "text":
            self.pop()
        self.previous = "operand"


def normal(word: str, of_bytes: bool = False) -> str:
    """Return a word as the compiler spells it. ``of_bytes``: each character is a byte."""
    if word.isascii():
        return word
    return unicodedata.normalize("NFKC", word.encode("latin-1").decode(errors="replace") if of_bytes else word)
