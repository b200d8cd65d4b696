"""Python's lexemes, bracket by bracket, in a text that comes in pieces: what a tracker of names reads.

Nothing is checked: what is no Python is read as something. Bytes are read as the characters of their numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from itertools import product

LEXEME = re.compile(
    r"""
      (?P<blank>   [ \t\f\r]+ | \\\r?\n )
    | (?P<newline> \n )
    | (?P<comment> \# )
    | (?P<word>    [A-Za-z_\x80-\xff][\w\x80-\xff]* )
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
SOFT_WORDS = frozenset({"match", "case", "type"})
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

TAB = 8
NOWHERE = 1 << 60


@dataclass(slots=True)
class Frame:
    """A bracket that is open, a string, a field of one, or the statement itself.

    Attributes:
        kind: The bracket; `text`, `field` or `spec` of a string; empty for a statement.
        role: What the bracket is of: `call`, `group`, `display`, `subscript`, `params`, `types`.
        phase: What a word means: `expression`, `target`, `pattern`, `names`, `params`, `lambda`, `define`, `header`,
            `alias`, `conversion`.
        is_value: Behind a parameter's name, where its default or its type stands.
        comprehension: 0 where it can be none, 1 where it may become one, 2 where it is.
        is_first_source: In what the first `for` goes through, which does not see its targets.
        is_start: At the beginning of an element.
        takes_targets: Names directly in it may be targets of an assignment.
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
    was: tuple[tuple[str, bool], ...] = ()
    bound: frozenset[str] = frozenset()
    quote: str = ""
    formatted: bool = False
    raw: bool = False
    recorded: bool = False

    def copy(self) -> Frame:
        """Another one like it."""
        other = Frame.__new__(Frame)
        for name in FRAME_FIELDS:
            setattr(other, name, getattr(self, name))
        return other


FRAME_FIELDS = tuple(field.name for field in fields(Frame))


class Scanner:
    """A place in a text. Who derives from it is told the lexemes."""

    def __init__(self) -> None:
        self.frames = [Frame(takes_targets=True)]
        self.position = 0
        self.checked_from = NOWHERE
        """Where the middle begins, in bytes: words that end behind it are looked at."""
        self.tail = ""
        """A lexeme that may go on."""
        self.previous = ""
        """What stands before: a sign, a keyword, `operand`, or nothing."""
        self.column = 0
        """Where the first lexeme of the logical line stands."""
        self.recording = False
        self._comment = False
        self._indent = 0
        self._line_start = True
        self._prefix = ""

    def word(self, word: str, is_checked: bool) -> None:
        """A word. ``is_checked``: it is of the middle."""
        raise NotImplementedError

    def operand(self, kind: str) -> None:
        """A number or a string; its text comes after it."""
        raise NotImplementedError

    def sign(self, sign: str) -> None:
        """Any other lexeme."""
        raise NotImplementedError

    def newline(self) -> None:
        """A line break that is in no string."""
        raise NotImplementedError

    def begin_line(self) -> None:
        """A logical line begins, and its column is known."""
        raise NotImplementedError

    def check_tail(self) -> None:
        """The text ends, for now, in a lexeme that may go on."""
        raise NotImplementedError

    def meet(self, kind: str, text: str) -> None:
        """A lexeme of the middle, of a kind of :data:`LEXEME`'s."""
        match kind:
            case "word":
                self.word(text, True)
            case "number" | "quote":
                self.operand(kind)
            case _:
                self.sign(text)

    def pop(self) -> None:
        """Leave the innermost frame. The one around it may be a copy's as well, and is to be changed from now on."""
        self.frames.pop()
        self.frames[-1] = self.frames[-1].copy()

    def feed(self, data: str) -> None:
        """Read on. Raises RefusedError, after which it is of no use."""
        buffer = self.tail + data
        base = self.position - len(self.tail)
        self.tail = ""
        at, end = 0, len(buffer)
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
            found = LEXEME.match(buffer, at)
            assert found is not None, "any character is a sign"
            stop, kind, text = found.end(), found.lastgroup, found[0]
            if kind not in ("blank", "newline", "comment"):
                self._begin_line()
            if self._may_go_on(buffer, at, stop, kind or "", text):
                self.tail = buffer[at:]
                break
            self._read(kind or "", text, buffer[stop : stop + 1], base + stop > self.checked_from)
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

    def _read(self, kind: str, text: str, following: str, is_checked: bool) -> None:
        match kind:
            case "blank":
                if self._line_start:
                    self._indent_by(text)
            case "newline":
                self.newline()
            case "comment":
                self._comment = True
            case "word":
                if following in ("'", '"') and following and text.lower() in STRING_PREFIXES:
                    self._prefix = text.lower()
                else:
                    self.word(text, is_checked)
            case "number":
                self.operand("number")
            case "quote":
                self._begin_string(text)
            case _:
                self.sign(text)

    def _indent_by(self, blanks: str) -> None:
        for blank in blanks:
            if blank == "\t":
                self._indent = (self._indent // TAB + 1) * TAB
            elif blank == "\f":
                self._indent = 0
            elif blank == " ":
                self._indent += 1

    def _begin_line(self) -> None:
        if self._line_start:
            self._line_start = False
            self.column = self._indent
            self.begin_line()

    def end_line(self) -> None:
        """A logical line has ended: another begins with what comes."""
        self._line_start, self._indent = True, 0

    @property
    def is_at_margin(self) -> bool:
        """Whether nothing but blanks stands in the line so far, which is no further line of another."""
        return self._line_start

    def leave_margin(self) -> None:
        """Something stands in the line already."""
        self._line_start = False

    def _read_text(self, buffer: str, at: int) -> int:
        """Read on in a string's text; returns where to go on. What is cut by the end is kept."""
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
                self.frames.append(Frame("field", "field", quote=quote, recorded=self.recording))
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
