"""Places where the latest change may be due again: similar lines, and other occurrences of the changed text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import islice

from fim_server.language.texts import is_word
from fim_server.next_edit.change import Change, common_blanks, indentation
from fim_server.next_edit.edit_memory import line_end, line_start
from fim_server.next_edit.line_tokens import Lines, Token, shape_of, tokens_of

MOST_PLACES = 64
"""Most places of a change that are looked at in a document."""

MOST_LINES = 1000
"""Most lines of a shape that are compared, those nearest to the edit."""

NEAR = 200
"""Characters before and after a place that are looked at."""

PARALLEL_LINES = 20
"""Most lines between an edit and a block beside it."""

WINDOW = 16_000
"""Characters before and after the edit in which occurrences are looked for first, which four times as many follow."""

LOOKED_AT = 4
"""Tokens around a place that are compared with those around the change."""


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a document, and the text that would follow the change there.

    Attributes:
        start: Offset of the replaced text.
        end: Its end.
        text: The new text.
        is_alike: Whether the lines are those of the change but for names and numbers.
        left: Tokens before it, next to it, that are those of the change.
        right: Tokens after it, the same way.
        equal: Share of the names and numbers of the lines that are the same; of lines alike only.
        words: Number of them that are; of lines alike only.
        mapped: Number of names that differ; of lines alike only.
        beside: Number of the lines above and below that are alike too, from 0 to 2; of lines alike only.
        is_parallel: Whether it is in a near block alike, as a branch beside that of the edit.
        is_call: Whether it is a call of a function whose parameters changed.
    """

    start: int
    end: int
    text: str
    is_alike: bool
    left: int
    right: int
    equal: float = 0.0
    words: int = 0
    mapped: int = 0
    beside: int = 0
    is_parallel: bool = False
    is_call: bool = False

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end


def places(change: Change, lines: Lines, done: tuple[int, int]) -> list[Place]:
    """Return the places where a change may be due.

    Args:
        change: The change.
        lines: The document now.
        done: First and last offset of the edit itself, if it is in this document; else an empty range.
    """
    found: dict[tuple[int, int], Place] = {}
    alike = lines_alike(change, lines, lines.line_at(done[0]))
    for place in (*islice(alike, MOST_PLACES), *occurrences(change, lines, done[0], MOST_PLACES)):
        if place.end < done[0] or place.start > done[1] or done[0] == done[1]:
            found.setdefault(place.span, place)
    return list(found.values())


def lines_alike(change: Change, lines: Lines, at: int) -> Iterator[Place]:
    """Yield the places in lines that differ from the old lines by names and numbers alone, the nearest first.

    ``at``: the edit's first line now.
    """
    old = change.edit.old.split("\n")
    below = at + change.edit.new.count("\n") + 1
    shapes = [shape_of(line) for line in old]
    beside_edit = [shape_of(lines.lines[line]) for line in (at - 1, below) if 0 <= line < len(lines.lines)]
    is_table = any(shape in beside_edit for shape in shapes if shape)
    if not all(shape or not line.strip() for shape, line in zip(shapes, old, strict=True)) or not any(shapes):
        return
    shaped = (number for number, shape in enumerate(shapes) if shape)
    rarest = min(shaped, key=lambda number: len(lines.of_shape(shapes[number])))
    numbers = lines.of_shape(shapes[rarest])
    for number in nsmallest(MOST_LINES, numbers, key=lambda number: abs(number - at)):
        first = number - rarest
        if first < 0 or first + len(old) > len(lines.lines):
            continue
        now = lines.lines[first : first + len(old)]
        if all(shape_of(line) == shape for line, shape in zip(now, shapes, strict=True)):
            place = carried(change, "\n".join(now), lines.line_starts[first])
            if place is not None and not is_done(change, place, lines.text):
                beside = are_alike(lines, first - 1, at - 1) + are_alike(lines, first + len(old), below)
                is_parallel = bool(beside) and not is_table and abs(first - at) <= PARALLEL_LINES
                yield replace(place, beside=beside, is_parallel=is_parallel)


def are_alike(lines: Lines, one: int, other: int) -> bool:
    """Return whether two lines with text have one shape."""
    if min(one, other) < 0 or max(one, other) >= len(lines.lines):
        return False
    return bool(lines.lines[one].strip()) and shape_of(lines.lines[one]) == shape_of(lines.lines[other])


def carried(change: Change, text: str, offset: int) -> Place | None:
    """Return the place of a change in lines of the same shape, ``text`` at an offset; None if other text is there."""
    there = tokens_of(text)
    first, last = change.head, len(change.tokens) - change.tail
    kept = {token.text for token in tokens_of(change.new_gap)}
    names: dict[str, str] = {}
    words = equal = 0
    for number, (mine, other) in enumerate(zip(change.tokens, there, strict=True)):
        if not mine.is_word:
            continue
        if first <= number < last:
            if mine.text != other.text and mine.text not in kept:
                return None
        else:
            words += 1
            equal += mine.text == other.text
        if names.setdefault(mine.text, other.text) != other.text:
            return None
    start = there[first - 1].end if first else indentation(text)
    end = there[last].start if change.tail else len(text)
    if text[start:end] != renamed(change.old_gap, names):
        return None
    new = renamed(change.new_gap, names)
    if "\n" in new:
        new = new.replace("\n" + margin(change.edit.old), "\n" + margin(text))
    head, tail = common_blanks(text[start:end], new)
    start, end, new = start + head, end - tail, new[head : len(new) - tail]
    left, right = sides(change, there[:first], there[last:])
    differing = sum(mine != other for mine, other in names.items())
    return Place(
        offset + start, offset + end, new, True, left, right, equal / words if words else 1.0, equal, differing
    )


def occurrences(change: Change, lines: Lines, near: int, most: int) -> Iterator[Place]:
    """Yield the places of the changed text, with the tokens around it where it has no word of its own.

    They are the ``most`` nearest to an offset, the nearest first.
    """
    anchor = change.anchor
    if anchor is None:
        return
    text, offset = anchor
    for at in nearest(lines.text, text, near, most):
        start, stop = at + offset, at + offset + len(change.old)
        first = max(line_start(lines.text, start), start - NEAR)
        last = min(line_end(lines.text, stop), stop + NEAR)
        left, right = sides(change, tokens_of(lines.text[first:start]), tokens_of(lines.text[stop:last]))
        yield Place(start, stop, change.new, False, left, right)


def nearest(text: str, part: str, near: int, most: int) -> list[int]:
    """Return the offsets of a part of a text that are nearest to one, the nearest first."""
    width = WINDOW
    while True:
        found = list(found_at(text, part, max(0, near - width), near + width))
        if len(found) >= most or width >= len(text):
            return nsmallest(most, found, key=lambda at: abs(at - near))
        width *= 4


def found_at(text: str, part: str, first: int = 0, last: int | None = None) -> Iterator[int]:
    """Yield the offsets of a part of a text, between two offsets, that cut no word."""
    stop = len(text) if last is None else min(len(text), last + len(part))
    at = text.find(part, first, stop)
    while at >= 0:
        if is_cut_between(text, at) and is_cut_between(text, at + len(part)):
            yield at
        at = text.find(part, at + 1, stop)


def sides(change: Change, before: tuple[Token, ...], after: tuple[Token, ...]) -> tuple[int, int]:
    """Return how many tokens before and after a place are those of the change, up to :data:`LOOKED_AT`."""
    left = right = 0
    mine = change.tokens[: change.head]
    while left < min(LOOKED_AT, len(mine), len(before)) and mine[-1 - left].text == before[-1 - left].text:
        left += 1
    mine = change.tokens[len(change.tokens) - change.tail :]
    while right < min(LOOKED_AT, len(mine), len(after)) and mine[right].text == after[right].text:
        right += 1
    return left, right


def renamed(text: str, names: dict[str, str]) -> str:
    """Return a text with other names."""
    if not names:
        return text
    found, at = [], 0
    for token in tokens_of(text):
        found += [text[at : token.start], names.get(token.text, token.text)]
        at = token.end
    return "".join(found) + text[at:]


def margin(text: str) -> str:
    """Return the blanks at the beginning of a text."""
    return text[: indentation(text)]


def is_done(change: Change, place: Place, text: str) -> bool:
    """Return whether the new text stands at a place already, as lines that were inserted there before."""
    if len(place.text) <= place.end - place.start:
        return False
    added = place.text.strip()
    near = len(added) + NEAR
    after, before = text[place.end : place.end + near].lstrip(), text[max(0, place.start - near) : place.start].rstrip()
    return bool(added) and (after.startswith(added) or before.endswith(added))


def is_cut_between(text: str, at: int) -> bool:
    """Return whether no word goes on across an offset."""
    return not (0 < at < len(text) and is_word(text[at - 1]) and is_word(text[at]))
