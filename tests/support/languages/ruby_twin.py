"""Ruby's lexemes and brackets read by hand, from left to right, with a stack of what is open.

Here-documents whose words were read wait for the next line. Where the definition takes less than Ruby does, so does
this reader: see :meth:`Reader.close` and :meth:`Reader.line_end`.
"""

from __future__ import annotations

from dataclasses import dataclass

import regex

READY, CALLED, ENDED = "ready", "called", "ended"
CLOSERS = {"(": ")", "[": "]", "{": "}"}
TEXTS = {'"': '"', "/": "/", "(": ")", "[": "]", "{": "}"}
"""Ends of texts with code in them, by their beginnings."""
NAME = r"[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*"
VARIABLE = rf"(?:@@?|\$){NAME}"
CALL = rf"(?:&?\.|::)?{NAME}[?!]?"
LEXEMES = [
    (rf"{CALL}[ \t]+", CALLED, 0),
    (rf"{CALL}|{VARIABLE}|\$[0-9~*$?!@/\\;,.=:<>\"&`'+\-]|[0-9](?:[0-9A-Za-z_]|\.[0-9]|[eE][+\-][0-9])*", ENDED, 0),
    (rf":(?:{NAME}|{VARIABLE})[?!=]?|:[+\-*<>=!~&|^]{{1,3}}|:[/%`]|def[ \t]+[/`]|\.[/%]", ENDED, 0),
    (r"'(?:[^'\\]|\\(?s:.))*'|`(?:[^`\\]|\\(?s:.))*`", ENDED, 0),
    (r"(?:begin|BEGIN|class|def_|do|else|if|in|return|unless|when|while)[ \t]*|class[ \t]*<<", READY, 1),
    (rf"{NAME}[?!]?:|{NAME}::", READY, 1),
    (r"(?:end|nil|self|true)[ \t]*", ENDED, 2),
    (r"[=,:;!&|+\-*~^>.@]|\.\.\.?", READY, 0),
]
"""Patterns, the state behind them, and the rank of one among equally long ones."""
HEAD = regex.compile(
    rf"<<[~\-]?(?:({NAME})|\"([A-Za-z_][A-Za-z0-9_]*)\"|'([A-Za-z_][A-Za-z0-9_]*)'|`([A-Z][A-Z0-9_]*)`)"
)
CLASSES = [r"SQL", r"RUBY", r"HELP", r"EO[A-Z0-9_]*|eo[a-z]+|end_[a-z_]+", r"_*[A-Z][A-Z0-9_]*", NAME]
"""Words that the definition tells apart, the first that fits."""
OF_CODE = {"begin", "else", "end", "ensure", "private", "protected", "rescue", "return", "super", "yield"}
COMPILED = [(regex.compile(f"(?p){pattern}"), state, rank) for pattern, state, rank in LEXEMES]
MARKED = regex.compile(r"(?:[ \t\r\f\v]|#[^\n\v]*|\\\r?(?=\n))*(?:\n|$)")
LITERAL = regex.compile(
    r"%[qQwWiIrxs]?(?:([|!'\"/^])(?:(?!\1)[^\\]|\\(?s:.))*\1|<[^<>]*>)[a-z]*"
    r"|%[qQwWiIrxs]([,%~;:@*+\-.#&`$])(?:(?!\2)[^\\]|\\(?s:.))*\2[a-z]*"
)


class FaultError(Exception):
    """No way to read on."""


@dataclass
class Opened:
    """A bracket or a hole: its end, the text that goes on behind a hole, and the here-documents that waited."""

    end: str
    text: str
    depth: int
    waiting: int
    line: int


def class_of(word: str) -> int:
    return next(at for at, pattern in enumerate(CLASSES) if regex.fullmatch(pattern, word))


class Reader:
    """Reader of one text."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.state = text, 0, READY
        self.stack: list[Opened] = []
        self.waiting: list[int] = []
        self.line = 0

    def takes(self) -> bool:
        """Return whether the definition should take the text."""
        try:
            if self.text.startswith("=begin"):
                self.block_comment(len("=begin"))
            while self.at < len(self.text):
                self.step()
        except FaultError:
            return False
        return not self.stack and not self.waiting

    def step(self) -> None:
        text, at = self.text, self.at
        one = text[at]
        joined = regex.compile(r"\\\r?\n").match(text, at)
        if one in " \t\r\f\v":
            self.at += 1
        elif one == "#":
            self.at = regex.compile(r"#[^\n\v]*").match(text, at).end()  # type: ignore[union-attr]
        elif joined and not self.waiting:
            self.at, self.state = joined.end(), READY if self.state == READY else ENDED
        elif one == "\n" or joined:
            self.line_end(at if one == "\n" else joined.end() - 1)  # type: ignore[union-attr]
        elif one in CLOSERS:
            self.stack.append(Opened(CLOSERS[one], "", 0, len(self.waiting), self.line))
            self.at, self.state = at + 1, READY
        elif one in ")]}":
            self.close(one)
        elif one == '"':
            self.at += 1
            self.in_text('"', 0)
        elif one in "/%<?":
            self.sign(one)
        else:
            self.lexeme()

    def lexeme(self) -> None:
        found = [
            (match.end(), rank, state)
            for pattern, state, rank in COMPILED
            if (match := pattern.match(self.text, self.at))
        ]
        if not found:
            raise FaultError
        self.at, _, self.state = max(found)

    def sign(self, one: str) -> None:
        """Read a sign that is an operator or begins a literal."""
        text, at = self.text, self.at
        if self.state == ENDED:
            self.at, self.state = at + 1 + text.startswith("<<", at), READY
            return
        spaced = regex.compile(r"[/%](?:[ \t=]|\r?\n)").match(text, at)
        quoted = regex.compile(r"%[qQwWiIrxs]?([(\[{])").match(text, at)
        literal = LITERAL.match(text, at) or regex.compile(r"(?p)\?(?:\\[^\n]|[^\\ \t\r\n\f\v])").match(text, at)
        head = HEAD.match(text, at)
        if head:
            self.head(class_of(next(filter(None, head.groups()))))
            self.at, self.state = head.end(), ENDED
        elif one == "<":
            self.at, self.state = at + 1, READY
        elif literal:
            self.at, self.state = literal.end(), ENDED
        elif quoted:
            self.at = quoted.end()
            self.in_text(quoted[1], 0)
        elif one == "/" and (self.state == READY or not spaced):
            self.at = spaced.end() if spaced else at + 1
            self.in_text("/", 0)
        elif self.state == CALLED and (spaced or one == "?"):
            self.at, self.state = spaced.end() if spaced else at + 1, READY
        else:
            raise FaultError

    def head(self, word: int) -> None:
        if any(one.text and one.waiting for one in self.stack):
            raise FaultError
        self.waiting.append(word)

    def in_text(self, opening: str, depth: int) -> None:
        """Read a text up to its end, or to code in it."""
        end = TEXTS[opening]
        while self.at < len(self.text):
            one = self.text[self.at]
            if self.text.startswith("#{", self.at):
                self.stack.append(Opened("}", opening, depth, len(self.waiting), self.line))
                self.at, self.state = self.at + 2, READY
                return
            self.at += 1 + (one == "\\")
            if one == end:
                while (
                    opening != '"' and self.at < len(self.text) and self.text[self.at] in "abcdefghijklmnopqrstuvwxyz"
                ):
                    self.at += 1
                if depth == 0:
                    self.state = ENDED
                    return
                depth -= 1
            elif one == opening:
                depth += 1
        raise FaultError

    def close(self, one: str) -> None:
        """Close a bracket or a hole, unless here-documents wait that the definition does not expect there."""
        if not self.stack or self.stack[-1].end != one:
            raise FaultError
        opened = self.stack.pop()
        waiting = len(self.waiting)
        is_later = opened.line != self.line
        if opened.text:
            if waiting != opened.waiting:
                raise FaultError
        elif opened.waiting and waiting and (is_later or waiting > opened.waiting + 1):
            raise FaultError
        self.at, self.state = self.at + 1, ENDED
        if opened.text:
            self.in_text(opened.text, opened.depth)
        elif opened.waiting and is_later and self.stack:
            outer = self.stack[-1]
            self.state = READY if outer.waiting and outer.line == opened.line else ENDED

    def line_end(self, end: int) -> None:
        """Read a line break, with the bodies, the comment or the rest of the file that begin behind it."""
        if any(one.text and one.waiting for one in self.stack):
            raise FaultError
        self.at, self.state = end, READY
        if self.waiting:
            count, one = len(self.waiting), min(len(self.waiting), 2)
            if any(opened.waiting not in (0, count) and opened.line == self.line for opened in self.stack):
                raise FaultError
            for word in self.waiting[:one]:
                self.body(word if one == 1 else None)
            self.waiting.clear()
            self.line += 1
            self.state = ENDED
        elif self.text.startswith("\n=begin", end):
            self.block_comment(end + len("\n=begin"))
        elif self.text.startswith("\n__END__", end):
            if self.stack or not MARKED.match(self.text, end + len("\n__END__")):
                raise FaultError
            self.at = len(self.text)
        else:
            self.at = end + 1

    def body(self, word: int | None) -> None:
        """Read lines up to one that is a word of a class; of any for None."""
        while self.at < len(self.text):
            end = self.text.find("\n", self.at + 1)
            end = len(self.text) if end < 0 else end
            line = self.text[self.at + 1 : end].lstrip(" \t").removesuffix("\r")
            self.at = end
            if regex.fullmatch(NAME, line) and line not in OF_CODE and word in (None, class_of(line)):
                return
        raise FaultError

    def block_comment(self, at: int) -> None:
        found = regex.compile(r"[^\n]*\n(?:(?!=end)[^\n]*\n)*=end(?:[ \t][^\n\v]*)?").match(self.text, at)
        if not found:
            raise FaultError
        self.at, self.state = found.end(), READY
