"""An editor without a screen: text with a cursor, edited by keys as VS Code does it, and code to type in it.

Pure: what is done with its edits is the caller's. `./dev bench server` plays it against the language server.
"""

from __future__ import annotations

import ast
import random
import re
from dataclasses import dataclass
from typing import Any

from fim_server.language.texts import is_word

HOLE_CHARACTERS = (6, 120)
HOLES_PER_KIND = 12
BLOCK_LINES = 8


# --- holes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hole:
    """A stretch of a text that is to be typed again."""

    kind: str
    start: int
    end: int


def holes(text: str, draw: random.Random) -> list[Hole]:
    """Stretches of a text in random order, as many of each kind as there are, up to a limit.

    Kinds: the `rest` of a line, a whole `line`, a `block` with the line break before it, the `arguments` of a call.

    Raises:
        SyntaxError: The text is no Python.
    """
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    lines = text.split("\n")

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    found: dict[str, list[Hole]] = {"rest": [], "line": [], "block": [], "arguments": []}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and not is_docstring(node):
            start, end = offset(node.lineno, node.col_offset), offset(node.end_lineno or 0, node.end_col_offset or 0)
            alone = not text[starts[node.lineno - 1] : start].strip() and text[end : end + 1] in ("\n", "")
            if node.lineno == node.end_lineno and alone and not hasattr(node, "body"):
                found["line"].append(Hole("line", start, end))
                cuts = [at for at in range(start + 1, end) if not is_word(text[at - 1]) or not is_word(text[at])]
                found["rest"].append(Hole("rest", draw.choice(cuts), end)) if cuts else None
            body = getattr(node, "body", None)
            if (
                body
                and not is_docstring(body[0])
                and text[starts[body[0].lineno - 1] : offset(body[0].lineno, body[0].col_offset)].isspace()
            ):
                last = body[-1]
                end = offset(last.end_lineno, last.end_col_offset)
                if last.end_lineno - body[0].lineno < BLOCK_LINES and text[end : end + 1] in ("\n", ""):
                    found["block"].append(Hole("block", starts[body[0].lineno - 1] - 1, end))
        elif isinstance(node, ast.Call) and not node.keywords and not all(map(is_constant, node.args)):
            first, last = node.args[0], node.args[-1]
            start, end = offset(first.lineno, first.col_offset), offset(last.end_lineno or 0, last.end_col_offset or 0)
            if first.lineno == last.end_lineno and text[start - 1] == "(" and text[end : end + 1] == ")":
                found["arguments"].append(Hole("arguments", start, end))
    chosen = []
    shortest, longest = HOLE_CHARACTERS
    for kind in found.values():
        fitting = [hole for hole in kind if shortest <= hole.end - hole.start <= longest]
        chosen += draw.sample(fitting, min(len(fitting), HOLES_PER_KIND))
    draw.shuffle(chosen)
    return chosen


def is_constant(node: ast.expr) -> bool:
    """Return whether an expression is a string or a number."""
    return isinstance(node, ast.Constant)


def is_docstring(node: ast.stmt) -> bool:
    """Return whether a statement is nothing but a constant."""
    return isinstance(node, ast.Expr) and is_constant(node.value)


# --- the editor ---------------------------------------------------------------------------------------------------

BRACKETS = {"(": ")", "[": "]", "{": "}"}
QUOTES = frozenset("\"'`")
CLOSED_BEFORE = frozenset(";:.,=}])> \t\n")
"""VS Code closes a bracket or a quote only before one of these (`autoCloseBefore`) or at the end."""

STRING_PREFIX = re.compile(r"(?<!\w)[fFrRbBuU]{1,2}$")
WORD = re.compile(r"\s*(?:\w+|[^\w\s]+)")
INDENT = 4

BACKSPACE, DELETE = "backspace", "delete"


@dataclass(frozen=True)
class Keyboard:
    """An editor's settings for a language.

    Attributes:
        quotes: Characters that are closed when they are typed, beside the brackets.
        comments: Beginnings of comments up to the line's end.
        deeper: Ends of a line after which the next one is indented deeper.
        indentation: What a level of indentation is where the line has none.
    """

    quotes: str = "\"'"
    comments: tuple[str, ...] = ("//",)
    deeper: tuple[str, ...] = ("(", "[", "{")
    indentation: str = " " * INDENT

    def closer_of(self, key: str) -> str:
        """Return the text that closes a key, or an empty one."""
        return BRACKETS.get(key) or (key if key in self.quotes else "")

    def is_inside_a_string_or_comment(self, line: str) -> bool:
        """Return whether a line's end is inside a string that begins on it, or in a comment."""
        quote = ""
        at = 0
        while at < len(line):
            if quote and line[at] == "\\":
                at += 1
            elif quote and line[at] == quote:
                quote = ""
            elif not quote and line[at] in self.quotes:
                quote = line[at]
            elif not quote and line.startswith(self.comments, at):
                return True
            at += 1
        return bool(quote)


PYTHON = Keyboard(comments=("#",), deeper=(":", "(", "[", "{"))


@dataclass(frozen=True)
class Edit:
    """A change of the text: what stood from `start` to `end` became `text`."""

    start: int
    end: int
    text: str


class Editor:
    """Text with a cursor, edited by keys like VS Code with its settings for a language.

    Brackets and quotes are closed when they are opened. A typed closer goes over one that the editor inserted. A new
    line is indented like the one before, deeper after an opening bracket and, in Python, a colon. Blanks that only
    indented an empty line vanish when the next line begins. Backspace takes a level of indentation. One thing is
    simpler: a new line between an opening bracket and its closer leaves the closer behind the cursor instead of putting
    it on a line of its own.
    """

    def __init__(self, text: str, cursor: int, keyboard: Keyboard = PYTHON) -> None:
        self.text = text
        self.cursor = cursor
        self.keyboard = keyboard
        self.before = text
        """The text that the last edit was made in."""
        self.closers = ""
        """Closers that the editor inserted right of the cursor."""

    @property
    def line(self) -> str:
        """The line left of the cursor."""
        return self.text[self.text.rfind("\n", 0, self.cursor) + 1 : self.cursor]

    def press(self, key: str) -> Edit:
        """Press a key: a character, Enter being the line break, or :data:`BACKSPACE` or :data:`DELETE`."""
        match key:
            case "\n":
                return self._enter()
            case "backspace":
                return self._backspace()
            case "delete":
                self.closers = self.closers[1:]
                return self._apply(Edit(self.cursor, self.cursor + 1, ""))
            case _:
                return self._type(key)

    def accept(self, text: str, covered: int) -> Edit:
        """Take an offer over, or a part of it, which takes the place of so many characters right of the cursor."""
        self.closers = self.closers[covered:]
        return self._apply(Edit(self.cursor, self.cursor + covered, text))

    def replace(self, start: int, end: int, text: str) -> Edit:
        """Replace a stretch, and leave the cursor behind it; what was closed by itself there is now just text."""
        self.closers = ""
        return self._apply(Edit(start, end, text))

    def move(self, cursor: int) -> None:
        """Move the cursor; what was closed by itself is now just text."""
        self.cursor, self.closers = cursor, ""

    def restore(self, text: str, cursor: int) -> Edit:
        """Go back to a text, by the smallest edit that does."""
        start = common(self.text, text)
        kept = min(common(self.text[::-1], text[::-1]), len(self.text) - start, len(text) - start)
        edit = self.replace(start, len(self.text) - kept, text[start : len(text) - kept])
        self.cursor = cursor
        return edit

    def _type(self, key: str) -> Edit:
        escaped = key in self.keyboard.quotes and self.text[self.cursor - 1 : self.cursor] == "\\"
        if self.closers.startswith(key) and not escaped:
            self.closers = self.closers[1:]
            return self._apply(Edit(self.cursor, self.cursor + 1, key))
        closer = self.keyboard.closer_of(key) if self._closes(key) else ""
        edit = self._apply(Edit(self.cursor, self.cursor, key + closer))
        self.cursor -= len(closer)
        self.closers = closer + self.closers
        return edit

    def _closes(self, key: str) -> bool:
        following = self.text[self.cursor : self.cursor + 1]
        if following and following not in CLOSED_BEFORE and not self.closers:
            return False
        if key not in self.keyboard.quotes:
            return True
        before = self.line
        after_name = is_word(before[-1:]) and not STRING_PREFIX.search(before)
        return not after_name and before[-1:] != key and not self.keyboard.is_inside_a_string_or_comment(before)

    def _enter(self) -> Edit:
        line = self.line
        indentation = line[: len(line) - len(line.lstrip())]
        start = self.cursor
        if line and not line.strip():
            start -= len(line)
        elif line.rstrip().endswith(self.keyboard.deeper):
            indentation += "\t" if "\t" in indentation else self.keyboard.indentation
        return self._apply(Edit(start, self.cursor, "\n" + indentation))

    def _backspace(self) -> Edit:
        line = self.line
        if line and not line.strip(" "):
            return self._apply(Edit(self.cursor - 1 - (len(line) - 1) % INDENT, self.cursor, ""))
        pair = bool(self.closers) and self.keyboard.closer_of(self.text[self.cursor - 1]) == self.closers[0]
        self.closers = self.closers[pair:]
        return self._apply(Edit(self.cursor - 1, self.cursor + pair, ""))

    def _apply(self, edit: Edit) -> Edit:
        self.before = self.text
        self.text = self.text[: edit.start] + edit.text + self.text[edit.end :]
        self.cursor = edit.start + len(edit.text)
        return edit


def common(some: str, other: str) -> int:
    """Return the length of the common beginning of two texts."""
    return next(
        (at for at, (one, two) in enumerate(zip(some, other, strict=False)) if one != two), min(len(some), len(other))
    )


def next_key(editor: Editor, start: int, wanted: str) -> str | None:
    """Return the next key that brings the text from `start` to the cursor nearer to the wanted one, or None.

    Closers that were never typed over are taken out at the end.
    """
    done = editor.text[start : editor.cursor]
    if done == wanted:
        return DELETE if editor.closers else None
    if wanted.startswith(done):
        return wanted[len(done)]
    if not editor.line.strip() and wanted.startswith(done.rstrip(" \t") + "\n"):
        return "\n"  # which takes the indentation with it
    return BACKSPACE


def first_word(text: str, covered: int) -> str:
    """The part of an offer that "accept next word" takes; nothing where it would reach into what is covered."""
    found = WORD.match(text)
    word = found[0] if found else ""
    return "" if covered and not is_word(word[-1:]) else word


def position(text: str, offset: int) -> dict[str, int]:
    """An offset as the protocol counts it, in UTF-16."""
    start = text.rfind("\n", 0, offset) + 1
    return {"line": text.count("\n", 0, offset), "character": len(text[start:offset].encode("utf-16-le")) // 2}


def span(text: str, start: int, end: int) -> dict[str, Any]:
    """A stretch as the protocol writes it."""
    return {"start": position(text, start), "end": position(text, end)}
