"""Near part of a text that is too large: kept lines that are a program by themselves with the text near the cursor.

No language is known here. The right side is read line by line after a text that bridges the cursor, and cut where a
program could end. A cursor in a bracket or block that goes on beyond the part allows no such end. Then indentation
finds the lines that close it: they stand further left than all between. The left side is kept by indentation alone.

As with broken lines, the kept lines are an estimate until a session on them says `exact`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from fim_server.language import Session, State
from fim_server.recovery.bridges import MOST_BRIDGE
from fim_server.recovery.documents import Document, IgnoredLines
from fim_server.recovery.opener import OpenSession
from fim_server.recovery.texts import completion, indentation, insertions, size

TRIAL_LINES, TRIAL_CHARACTERS = 12, 2_000
"""Lines and characters to the right that can be read after a good bridge."""

WORTH = 0.5
"""Least share of the read text that a cut has to keep to be preferred for standing further left than others."""

MOST_CLOSING = 24
"""Most lines that may close the constructs open at the near part's end."""

MOST_TRIALS = 96
"""Most lines to try for that."""

SEPARATORS = 3
"""Characters at which to shorten a line: its most frequent ones."""


@dataclass(frozen=True)
class Side:
    """Kept lines of the left side, as numbers of the document, and their text.

    `stands` is the beginning of that text, in the place of ``dropped`` characters.
    """

    text: str
    numbers: Sequence[int]
    dropped: int
    stands: str


@dataclass(frozen=True)
class Kept:
    """Kept parts of the two contexts.

    Attributes:
        left: Left context.
        right: Right context.
        ignored: Lines left out, in the order of the document.
        below: Numbers of the lines kept below the cursor's.
    """

    left: Side
    right: str
    ignored: tuple[IgnoredLines, ...]
    below: Sequence[int]


def above(document: Document, most: int) -> Side:
    """Return the left side in about `most` characters: lines near the cursor, and the headers above them."""
    lines = document.above
    first, read = len(lines), len(document.tail)
    best, least = first, None
    while first > 0 and read + len(lines[first - 1]) <= most:
        first -= 1
        read += len(lines[first])
        if not lines[first].strip():
            continue
        column = indentation(lines[first])
        if least is None or column <= least:
            best, least = first, column
    if first == 0:
        best = 0
    headers = list[int]()
    if best and least is None:
        least = indentation(document.tail) if document.tail.strip() else None
    for number in range(best - 1, -1, -1):
        if least == 0:
            break
        if lines[number].strip() and (least is None or indentation(lines[number]) < least):
            least = indentation(lines[number])
            headers.append(number)
    headers.reverse()
    numbers = [*headers, *range(best, len(lines))]
    dropped = sum(map(len, lines[:best]))
    stands = "".join(lines[number] for number in headers)
    return Side(stands + "".join(lines[best:]) + document.tail, numbers, dropped, stands)


def kept(open_session: OpenSession, document: Document, left: Side, start: Session, most: int) -> Iterator[Kept]:
    """Yield ways to keep some `most` characters right of the cursor, the best first.

    ``start``: a session on the left side with nothing at its right.
    """
    closing = tuple(closing for _, closing in start.spelling.brackets)
    heads = [document.head] if len(document.head) <= most else shortened(document.head, most)
    for head in heads:
        for bridged, settled in bridges(partial(open_session, left.text), start, head, document.below):
            numbers = right_of(bridged, document.below, most - len(head), closing, settled)
            if numbers is not None:
                yield kept_lines(document, left, head, numbers)


def raw(document: Document, left: Side, most: int) -> Kept:
    """Return the lines near the cursor without any check, cut at a line that stands furthest left."""
    count = lines_within(document.below, most - len(document.head))
    if count < len(document.below):
        ends = (number for number in range(count, 0, -1) if document.below[number].strip())
        count = min(ends, key=lambda number: indentation(document.below[number]), default=count)
    return kept_lines(document, left, document.head, range(count))


def kept_lines(document: Document, left: Side, head: str, numbers: Sequence[int]) -> Kept:
    """Return the kept parts with `head` as the rest of the cursor's line and some of the lines below it."""
    below = [document.cursor_line + 1 + number for number in numbers]
    right = head + "".join(document.below[number] for number in numbers)
    ignored = left_out(document, left.numbers, below)
    if head != document.head:
        short = IgnoredLines(document.cursor_line, 1, head.removesuffix("\n"), beyond=True)
        ignored = sorted([*ignored, short], key=lambda group: group.line)
    return Kept(left, right, tuple(ignored), below)


def left_out(document: Document, above: Sequence[int], below: Sequence[int]) -> list[IgnoredLines]:
    end = document.cursor_line + 1 + len(document.below)
    found = list[IgnoredLines]()
    expected = 0
    for number in (*above, document.cursor_line, *below, end):
        if number > expected:
            found.append(IgnoredLines(expected, number - expected, beyond=True))
        expected = number + 1
    return found


def bridges(
    after_left: Callable[[str], Session], start: Session, head: str, below: Sequence[str]
) -> Iterator[tuple[State, bool]]:
    """Yield states after the left side, a bridge and the rest of the cursor's line, after which lines can be read.

    With each comes whether a program could end within those lines. A bridge that leaves a bracket open comes before one
    that closes it. Lines of entries can also be read as statements, but hardly ever the other way round.
    """
    trial = list(below[: min(TRIAL_LINES, lines_within(below, TRIAL_CHARACTERS))])
    beginning = start.start()
    open_yet = False
    for ending in endings(after_left, start, head):
        state = beginning.fork()
        if not takes(state, ending) or not takes(state, head):
            continue
        found = state.fork()
        settled = state.is_complete() and not trial
        for line in trial:
            if not takes(state, line):
                break
            settled = settled or (bool(line.strip()) and state.is_complete())
        else:
            if settled or not open_yet:
                yield found, settled
            if settled:
                return
            open_yet = True


def endings(after_left: Callable[[str], Session], start: Session, head: str) -> Iterator[str]:
    """Yield texts that may end the left side's constructs, and one that may begin what the rest of the line ends."""
    yield from insertions(start.spelling).endings
    shortest = (completion(start.start()) or "")[:MOST_BRIDGE]
    yield from (shortest[:end] for end in range(1, len(shortest) + 1))
    session = after_left(head)
    if session.guarantee != "none":
        yield completion(session.start()) or ""


def takes(state: State, text: str) -> bool:
    """Return whether a state, which moves, takes all of a text."""
    return state.advance(text) == size(text)


def lines_within(lines: Sequence[str], most: int) -> int:
    count = 0
    for line in lines:
        most -= len(line)
        if most < 0:
            break
        count += 1
    return count


@dataclass(frozen=True)
class _Cut:
    """Place before a line."""

    line: int
    column: int
    read: int
    """Characters before it, in the lines below the cursor's."""


def right_of(
    state: State, lines: Sequence[str], most: int, closing: tuple[str, ...], settled: bool
) -> Sequence[int] | None:
    """Return the numbers, from 0, of the lines below the cursor's to keep; None if no program could end anywhere.

    Args:
        state: State after the cursor's line; it is moved, because a copy takes as long as reading.
        lines: Lines below the cursor's.
        most: Most characters to read.
        closing: The language's closing brackets.
        settled: Whether a program could end soon. If not, a refused line means that the state is wrong.
    """
    cuts = list[_Cut]()
    before_closing = dict[int, _Cut]()
    reached = read = 0
    for number, line in enumerate(lines):
        if line.strip():
            cut = _Cut(number, indentation(line), read)
            while cuts and cuts[-1].column >= cut.column:
                cuts.pop()
            cuts.append(cut)
            if closing and line.lstrip().startswith(closing):
                before_closing[cut.column] = cut
        if read + len(line) > most:
            break
        accepted = state.advance(line)
        if accepted < size(line):
            state.rollback(accepted)
            if not settled:
                return None
            break
        reached, read = number + 1, read + len(line)
    else:
        if state.is_complete():
            return range(len(lines))
        cuts.append(_Cut(len(lines), 0, read))
    ends, at = list[_Cut](), reached
    for cut in reversed(cuts):
        state.rollback(sum(map(size, lines[cut.line : at])))
        at = cut.line
        if state.is_complete():
            ends.append(cut)
    if ends:
        worth = [cut for cut in ends if cut.read >= WORTH * read]
        return range((worth[-1] if worth else ends[0]).line)
    # Before a closing bracket an entry has ended that no separator follows, which may not be last in some languages.
    for cut in sorted(
        {*cuts, *before_closing.values()}, key=lambda cut: (cut.read < WORTH * read, cut.column, cut.line)
    ):
        if cut.line < at:
            state.rollback(sum(map(size, lines[cut.line : at])))
        else:
            state.advance("".join(lines[at : cut.line]))
        at = cut.line
        last = closers(state, lines, cut.line, closing)
        if last is not None:
            return [*range(cut.line), *last]
    return None


def closers(state: State, lines: Sequence[str], first: int, closing: tuple[str, ...]) -> list[int] | None:
    """Return some lines from one on after which a program could end; None if none were found.

    Depth first, so that few candidates are left out; bounded. Without a result the state is as before.
    """
    candidates = list(islice(closing_candidates(lines, first, closing), MOST_CLOSING))
    trials = 0

    def chosen(index: int) -> list[int] | None:
        nonlocal trials
        for at in range(index, len(candidates)):
            trials += 1
            if trials > MOST_TRIALS:
                return None
            line = lines[candidates[at]]
            accepted = state.advance(line)
            if accepted == size(line):
                rest = [] if state.is_complete() else chosen(at + 1)
                if rest is not None:
                    return [candidates[at], *rest]
            state.rollback(accepted)
        return None

    return chosen(0)


def closing_candidates(lines: Sequence[str], first: int, closing: tuple[str, ...]) -> Iterator[int]:
    """Yield numbers of the lines from one on that may close the constructs open there, ascending.

    They are those that stand further left than all before them, and the first that stands as far left and begins with a
    closing bracket. The line with text before each may belong to them: it may close a construct on the last line, or be
    an entry without a separator. From the first line at the very left on, all such lines count.
    """
    least: int | None = None
    at_left = closed = False
    before = last = None
    for number in range(first, len(lines)):
        line = lines[number]
        if least is not None and line[: least + 1].isspace():  # further right, or blank: most are, in a long table
            before = before if line.isspace() else number
            continue
        text = line.strip()
        if not text:
            continue
        column = indentation(line)
        if least is None:
            least = column
            if not (closing and text.startswith(closing)):
                before = number
                continue
        closes = bool(closing) and text.startswith(closing)
        if column < least or at_left or (column == least and closes and not closed):
            if before is not None and before != last:
                yield before
            yield number
            last = number
            closed = column == least
            at_left = column == 0
        least = min(least, column)
        before = number
    if before is not None and before != last:
        yield before


def shortened(head: str, most: int) -> Iterator[str]:
    """Yield a long line without characters of its middle, in several ways."""
    share = most // 2
    begin, end = head[:share], head[-share:]
    marks = Counter(re.findall(r"[^\w\s]", begin))
    for mark, _ in marks.most_common(SEPARATORS):
        if mark in end:
            yield begin[: begin.rindex(mark) + 1] + end[end.index(mark) + 1 :]
