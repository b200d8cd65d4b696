"""Prompts for the next edit: a window of lines with the edits before it, in the format of a model's training."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from fim_server.models.prompt import BoundFormat, token_id
from fim_server.tokens.edit_formats import is_token

if TYPE_CHECKING:
    from fim_server.models.project_context import ProjectContext
    from fim_server.tokens.edit_formats import EditFormat

MOST_EDITS, EDIT_CHARACTERS = 6, 4000
"""Most of the latest edits in a prompt, and their characters."""

AROUND_CHARACTERS = 1500
"""Most characters of the lines on each side of the window."""

PLACEHOLDER = re.compile(r"\{(\w+)\}")

EDITS = "{edits}"
NOW = "{now}"


@dataclass(frozen=True, slots=True)
class PastEdit:
    """Edit in a prompt.

    Attributes:
        path: The file.
        line: Number of its first line, from 0.
        old: Lines before it, without the last line break.
        new: Lines after it.
    """

    path: str
    line: int
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Window:
    """Lines that a model writes anew.

    Attributes:
        path: The file.
        text: Its text.
        start: Offset of the first line.
        end: Offset of the last line's end; its line break belongs to the window where the format says so.
        cursor: Offset of the cursor.
        kept: Offset up to which the lines stay as they are.
        before: The window before the latest edit.
    """

    path: str
    text: str
    start: int
    end: int
    cursor: int
    kept: int
    before: str

    @property
    def now(self) -> str:
        return self.text[self.start : self.end]

    @property
    def old(self) -> str:
        """Return the text that the model writes anew."""
        return self.text[self.kept : self.end]


@dataclass(frozen=True, slots=True)
class FixedPrompt(BoundFormat):
    """Format with one prompt for whatever contexts."""

    ids: tuple[int, ...] = ()

    def encode(
        self, left: str, right: str, limit: int, grid: int = 1, context: ProjectContext | None = None, most: int = 0
    ) -> list[int]:
        """Return the prompt. Raises ValueError if it is longer than ``limit``; see :meth:`.BoundFormat.encode`."""
        if len(self.ids) > limit:
            raise ValueError(f"a prompt of {len(self.ids)} tokens is longer than {limit}")
        return list(self.ids)


def window_of(row: EditFormat, path: str, text: str, cursor: int, latest: PastEdit | None) -> Window:
    """Return the window around an offset.

    Args:
        row: Says how many lines it has.
        path: The file.
        text: Its text.
        cursor: The offset.
        latest: The latest edit, if it is in this file.
    """
    line = text.rfind("\n", 0, cursor) + 1
    start, end = line, len(text) if (found := text.find("\n", cursor)) < 0 else found
    for _ in range(row.above):
        start = text.rfind("\n", 0, max(0, start - 1)) + 1
    for _ in range(row.below):
        end = len(text) if (found := text.find("\n", end + 1)) < 0 else found
    if row.whole and end < len(text):
        end += 1
    before = text[start:end] if latest is None else without(latest, text[start:end], text.count("\n", 0, start))
    return Window(path, text, start, end, cursor, line if row.kept else start, before)


def without(edit: PastEdit, window: str, first: int) -> str:
    """Return a window before an edit that is in it. ``first``: number of its first line, from 0."""
    lines, new = window.split("\n"), edit.new.split("\n")
    at = edit.line - first
    if at < 0 or lines[at : at + len(new)] != new:
        return window
    return "\n".join([*lines[:at], *edit.old.split("\n"), *lines[at + len(new) :]])


def prompt_of(bound: BoundFormat, window: Window, edits: Sequence[PastEdit]) -> FixedPrompt:
    """Return a format whose prompt asks a model for a window. ``edits``: the latest ones, the latest last.

    Raises ValueError if the model is not trained to write edits.
    """
    row = bound.edits
    if row is None:
        raise ValueError(f"{bound.family} is no format for edits")
    text = window.text
    above = last_lines(text[: window.start])
    below = first_lines(text[window.end :])
    first = text.count("\n", 0, window.start) + 1
    values = {
        "path": window.path,
        "first": str(first),
        "last": str(first + window.now.removesuffix("\n").count("\n")),
        "before": window.before,
        "above": above,
        "below": below if below.endswith("\n") else f"{below}\n",
        "file": f"{above}{window.now}{below}",
    }
    cursor = window.cursor - window.start
    ids: list[int] = []
    for piece in row.prompt:
        if piece == EDITS:
            ids += edits_ids(bound, row, edits)
        elif NOW in piece:
            # The mark may be a token, which no text around it may take in.
            before, _, after = piece.partition(NOW)
            ids += bound.text_ids(filled(before, values) + window.now[:cursor])
            ids += piece_ids(bound, row.cursor, {}) if row.cursor else []
            ids += bound.text_ids(window.now[cursor:] + filled(after, values))
        else:
            ids += piece_ids(bound, piece, values)
    ids += bound.text_ids(text[window.start : window.kept])
    return FixedPrompt(**{one.name: getattr(bound, one.name) for one in fields(BoundFormat)}, ids=tuple(ids))


def edits_ids(bound: BoundFormat, row: EditFormat, edits: Sequence[PastEdit]) -> list[int]:
    """Return the tokens of the latest edits that fit."""
    room, shown = EDIT_CHARACTERS, list[PastEdit]()
    for edit in reversed(edits[-MOST_EDITS:]):
        room -= len(edit.old) + len(edit.new)
        if room < 0:
            break
        shown.insert(0, edit)
    pieces = [(piece, dict[str, str]()) for piece in row.head if shown]
    pieces += [(piece, values_of(edit)) for edit in shown for piece in row.edit]
    return [token for piece, values in pieces for token in piece_ids(bound, piece, values)]


def values_of(edit: PastEdit) -> dict[str, str]:
    old, new = (text.split("\n") if text else [] for text in (edit.old, edit.new))
    first = edit.line + 1
    head = f"@@ -{first},{len(old)} +{first},{len(new)} @@"
    return {
        "path": edit.path,
        "first": str(first),
        "last": str(edit.line + max(1, len(old))),
        "old": edit.old,
        "new": edit.new,
        "diff": "\n".join([head, *(f"-{line}" for line in old), *(f"+{line}" for line in new)]),
    }


def piece_ids(bound: BoundFormat, piece: str, values: dict[str, str]) -> list[int]:
    """Return the tokens of a piece."""
    if is_token(piece) and (number := token_id(bound.tokenizer, piece)) is not None:
        return [number]
    return bound.text_ids(filled(piece, values))


def filled(piece: str, values: dict[str, str]) -> str:
    return PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), piece)


def last_lines(text: str) -> str:
    """Return the last whole lines of a text, as many as fit."""
    cut = text[-AROUND_CHARACTERS:]
    return cut if len(cut) == len(text) else cut[cut.find("\n") + 1 :]


def first_lines(text: str) -> str:
    """Return the first whole lines of a text, as many as fit."""
    cut = text[:AROUND_CHARACTERS]
    return cut if len(cut) == len(text) else cut[: cut.rfind("\n") + 1]


def copied(old: str) -> Callable[[str], str]:
    """Return drafts of a text that is mostly the old one: the lines after those of the old one that it ends with."""
    lines = old.split("\n")

    def draft(middle: str) -> str:
        *done, begun = middle.split("\n")
        after = following(lines, done)
        if after is None or not after[0].startswith(begun):
            return ""
        return "\n".join(after)[len(begun) :]

    return draft


def following(lines: Sequence[str], done: Sequence[str]) -> Sequence[str] | None:
    """Return the old lines behind the last line that was written, the nearest of equal ones; None if it is new."""
    if not done:
        return lines
    places: Iterable[int] = (at for at, line in enumerate(lines[:-1]) if line == done[-1])
    at = min(places, key=lambda place: abs(place + 1 - len(done)), default=None)
    return None if at is None else lines[at + 1 :]
