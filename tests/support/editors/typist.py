"""A typist in VS Code: brackets close themselves, Enter indents, Tab accepts, Ctrl+Z undoes."""

from __future__ import annotations

import re

from lsprotocol import types

from support.editors.editor import Editor, written

PAIRS = {"(": ")", "[": "]", "{": "}", '"': '"', "'": "'"}
BEFORE_CLOSING = frozenset(" \t\r\n;:.,=}])>")
"""An opener gets its closer only before one of these (or at the end): VS Code's `autoCloseBefore`."""
WORD = re.compile(r"\s*(?:\w+|[^\w\s]+)|\s+")


class Typist:
    """A cursor in an open document."""

    def __init__(self, editor: Editor, cursor: int = 0) -> None:
        self.editor, self.cursor = editor, cursor
        self.closers: list[int] = []
        """Offsets of the closers that the editor inserted."""
        self.history: list[tuple[int, str, str]] = []

    @property
    def text(self) -> str:
        return self.editor.text

    @property
    def ahead(self) -> str:
        return self.text[self.cursor : self.cursor + 1]

    def replace(self, start: int, end: int, text: str, cursor: int | None = None) -> None:
        """One edit; the cursor goes behind it."""
        self.history.append((start, self.text[start:end], text))
        self.editor.change(start, end, text)
        moved = len(text) - (end - start)
        self.closers = [at if at < start else at + moved for at in self.closers if not start <= at < end]
        self.cursor = start + len(text) if cursor is None else cursor

    def type(self, text: str) -> None:
        for character in text:
            self.press(character)

    def press(self, character: str) -> None:
        """One key."""
        at = self.cursor
        if character == "\n":
            self.enter()
        elif character == self.ahead and at in self.closers:
            self.replace(at, at + 1, character)
        elif character in PAIRS and self.closes_itself(character):
            self.replace(at, at, character + PAIRS[character], at + 1)
            self.closers.append(at + 1)
        else:
            self.replace(at, at, character)

    def closes_itself(self, character: str) -> bool:
        if self.ahead and self.ahead not in BEFORE_CLOSING:
            return False
        before = self.text[self.cursor - 1 : self.cursor]
        line = self.text[: self.cursor].rsplit("\n", 1)[-1]
        in_string = line.count(character) % 2 == 1
        return character not in "\"'" or not (in_string or before.isalnum() or before in ("_", character))

    def enter(self) -> None:
        before = self.text[: self.cursor].rsplit("\n", 1)[-1]
        indentation = before[: len(before) - len(before.lstrip(" \t"))]
        last = before.rstrip()[-1:]
        deeper = indentation + "    " if last in (":", *"([{") and last else indentation
        if last in ("(", "[", "{") and self.ahead == PAIRS[last]:
            self.replace(self.cursor, self.cursor, f"\n{deeper}\n{indentation}", self.cursor + 1 + len(deeper))
        else:
            self.replace(self.cursor, self.cursor, f"\n{deeper}")

    def backspace(self) -> None:
        at = self.cursor
        if not at:
            return
        pair = at in self.closers and PAIRS.get(self.text[at - 1]) == self.ahead
        self.replace(at - 1, at + pair, "")

    def undo(self) -> None:
        if not self.history:
            return
        start, removed, inserted = self.history.pop()
        self.editor.change(start, start + len(inserted), removed)
        self.cursor = start + len(removed)
        self.closers = []

    def accept(self, item: types.InlineCompletionItem) -> None:
        """Tab."""
        start, end = self.editor.span(item)
        self.replace(start, end, written(item))

    def accept_word(self, item: types.InlineCompletionItem) -> None:
        """Ctrl+Right: the first word of the text goes in, and nothing that the item covers goes away yet."""
        found = WORD.match(written(item))
        assert found is not None
        self.replace(self.cursor, self.cursor, found[0])
