"""Characters of accepted suggestions that still stand in their document after a while.

An accepted text has a range, which follows the changes of its document. A document stands still between two changes, so
a text is measured before the first change after its time, or when the counts are read. No timer is needed.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from fim_server.text.trimming import trimmed

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKPOINTS = (30, 120)
"""Seconds after an acceptance at which its text is measured."""

MOST_SENT = 64
"""Latest suggestions whose acceptance is followed."""

MOST_FOLLOWED = 64
"""Latest accepted texts that are followed, for all documents."""

MOST_GROUPS = 64
"""Pairs of language and model whose counts are kept; the first ones go first."""

LONGEST_TEXT = 4_000
"""Most characters of a text that is followed."""

LONGEST_RANGE = 4 * LONGEST_TEXT
"""Most characters that are compared with an accepted text."""

MOST_LINES = 5_000
"""Most lines of a change that are compared, to find a text in it. Texts in larger ones are followed no more."""

FEW = 200
"""Characters by which a range may grow with a change around it, without a comparison of lines."""

WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class SentText:
    """Suggestion that was sent.

    Attributes:
        uri: The document.
        offset: Where the text stands once it is accepted.
        text: The text.
        language: The document's language.
        model: The model, or another source of the text.
    """

    uri: str
    offset: int
    text: str
    language: str
    model: str


@dataclass(slots=True, eq=False)
class FollowedText:
    """Accepted text in its document.

    Attributes:
        sent: The suggestion.
        accepted_at: Time of its acceptance, in seconds.
        start, end: Its range. It is empty until the editor has inserted the text, and where all of it was deleted.
        is_found: Whether the text has stood in the document.
        checkpoints: Seconds after the acceptance at which it is still to be measured.
    """

    sent: SentText
    accepted_at: float
    start: int
    end: int
    is_found: bool = False
    checkpoints: deque[int] = field(default_factory=lambda: deque(CHECKPOINTS))


@dataclass(slots=True)
class Retained:
    """Measured texts.

    Attributes:
        texts: Their number.
        characters: Their characters, blanks aside.
        retained: Those of them that still stood.
    """

    texts: int = 0
    characters: int = 0
    retained: int = 0


class Retention:
    """Accepted texts of one client, with the counts of those that were measured."""

    def __init__(self, text_of: Callable[[str], str | None], clock: Callable[[], float] = time.monotonic) -> None:
        """``text_of``: return the text of an open document."""
        self._text_of = text_of
        self._clock = clock
        self._sent: OrderedDict[str, SentText] = OrderedDict()
        self._followed: deque[FollowedText] = deque(maxlen=MOST_FOLLOWED)
        self._counts: OrderedDict[tuple[str, str], dict[int, Retained]] = OrderedDict()

    def note_sent(self, identity: str, sent: SentText) -> None:
        """Remember a suggestion that the user may accept. The rest of one typed in part keeps its identity."""
        self._sent.pop(identity, None)
        if len(sent.text) <= LONGEST_TEXT:
            self._sent[identity] = sent
        while len(self._sent) > MOST_SENT:
            self._sent.popitem(last=False)

    def accept(self, identity: str) -> None:
        """Follow a suggestion from now on, once; its text may be inserted already, or by the next change."""
        sent = self._sent.pop(identity, None)
        text = None if sent is None else self._text_of(sent.uri)
        if sent is not None and text is not None:
            self._followed.append(FollowedText(sent, self._clock(), sent.offset, sent.offset))
            self.changed(sent.uri, text)

    def watches(self, uri: str) -> bool:
        """Return whether changes of a document have to be told."""
        return any(one.sent.uri == uri for one in self._followed)

    def change(self, uri: str, before: str, start: int, end: int, text: str) -> None:
        """Measure what is due in a document, and move ranges, before ``text`` replaces a part of it."""
        self._measure(uri, before)
        start, end, text = trimmed(before, start, end, text)
        lost = [one for one in self._followed if one.sent.uri == uri and not move(one, before, start, end, text)]
        self._drop(lost)

    def changed(self, uri: str, text: str) -> None:
        """Find texts that stand whole at their place again, as after an undo, in a document after a change."""
        for one in self._followed:
            if one.sent.uri == uri and text.startswith(one.sent.text, one.start):
                one.end, one.is_found = one.start + len(one.sent.text), True

    def close(self, uri: str, text: str) -> None:
        """Measure what is due in a document that is closed, and forget the rest: nothing tells what becomes of it."""
        self._measure(uri, text)
        self._drop([one for one in self._followed if one.sent.uri == uri])
        self._sent = OrderedDict((identity, sent) for identity, sent in self._sent.items() if sent.uri != uri)

    def as_json(self) -> list[dict[str, Any]]:
        """Return the counts for `fim-server.statistics`."""
        for uri in {one.sent.uri for one in self._followed}:
            text = self._text_of(uri)
            if text is not None:
                self._measure(uri, text)
        return [
            {
                "language": language,
                "model": model,
                "seconds": seconds,
                "texts": counts.texts,
                "characters": counts.characters,
                "retained": counts.retained,
            }
            for (language, model), by_checkpoint in self._counts.items()
            for seconds, counts in sorted(by_checkpoint.items())
        ]

    def _measure(self, uri: str, text: str) -> None:
        now = self._clock()
        for one in self._followed:
            while one.sent.uri == uri and one.checkpoints and one.checkpoints[0] <= now - one.accepted_at:
                seconds = one.checkpoints.popleft()
                if one.is_found:
                    self._count(one.sent, seconds, text[one.start : min(one.end, one.start + LONGEST_RANGE)])
        self._drop([one for one in self._followed if not one.checkpoints])

    def _count(self, sent: SentText, seconds: int, now: str) -> None:
        counts = self._counts.setdefault((sent.language, sent.model), {}).setdefault(seconds, Retained())
        counts.texts += 1
        counts.characters += sum(map(len, WORD.findall(sent.text)))
        counts.retained += retained(sent.text, now)
        while len(self._counts) > MOST_GROUPS:
            self._counts.popitem(last=False)

    def _drop(self, gone: list[FollowedText]) -> None:
        if gone:
            self._followed = deque((one for one in self._followed if one not in gone), MOST_FOLLOWED)


def retained(accepted: str, now: str) -> int:
    """Return how many characters of a text, blanks aside, are in words and signs that still stand in order.

    >>> retained("total = sum(values)", "total: int = sum(numbers)")
    11
    """
    words, standing = WORD.findall(accepted), WORD.findall(now)
    blocks = SequenceMatcher(None, words, standing).get_matching_blocks()
    return sum(len(word) for block in blocks for word in words[block.a : block.a + block.size])


def move(followed: FollowedText, before: str, start: int, end: int, text: str) -> bool:
    """Move a text's range with a change of its document; return False if the text cannot be followed any more.

    What is inserted at an end of a range is outside of it, unless it is a piece that was deleted, as after an undo. An
    empty range takes in what is inserted there: a text that the editor inserts after its acceptance, or inserts again.
    """
    grown = len(text) - (end - start)
    is_piece = len(text) > 1 and followed.end - followed.start + len(text) <= len(followed.sent.text)
    if is_piece and start == end and start in (followed.start, followed.end) and text in followed.sent.text:
        followed.end += len(text)
        followed.is_found = True
        return True
    if followed.start == followed.end:
        if start <= followed.start <= end and len(text) <= len(followed.sent.text) + FEW:
            followed.start, followed.end = start, start + len(text)
            followed.is_found |= bool(text)
        elif start <= followed.start:
            at = max(start, followed.start + grown)
            followed.start = followed.end = at
        return True
    if end <= followed.start:
        followed.start, followed.end = followed.start + grown, followed.end + grown
    elif start < followed.end:
        if followed.start <= start and end <= followed.end:
            followed.end += grown
        elif end - start <= followed.end - followed.start + FEW:
            followed.start = min(start, followed.start)
            followed.end = max(end, followed.end) + grown
        else:
            return move_by_lines(followed, before[start:end], start, text)
    return True


def move_by_lines(followed: FollowedText, old: str, start: int, new: str) -> bool:
    """Move a range in a large replaced part of a document, by the lines that both parts have.

    Return False for parts of too many lines.
    """
    lines, others = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if max(len(lines), len(others)) > MOST_LINES:
        return False
    begins, ends = [0, *accumulate(map(len, lines))], [0, *accumulate(map(len, others))]
    codes = SequenceMatcher(None, [one.strip() for one in lines], [one.strip() for one in others]).get_opcodes()

    def moved(offset: int, is_end: bool) -> int:
        at = offset - start
        line = min(max(0, bisect_right(begins, at - is_end) - 1), max(0, len(lines) - 1))
        for kind, first, last, low, high in codes:
            if first <= line < last:
                if kind != "equal":
                    return start + ends[high if is_end else low]
                other = low + line - first
                shift = indentation(others[other]) - indentation(lines[line])
                column = min(max(0, at - begins[line] + shift), len(others[other]))
                return start + ends[other] + column
        return start + ends[-1 if is_end else 0]

    if followed.start >= start:
        followed.start = moved(followed.start, False)
    if followed.end <= start + len(old):
        followed.end = max(followed.start, moved(followed.end, True))
    else:
        followed.end = max(followed.start, followed.end + len(new) - len(old))
    return True


def indentation(line: str) -> int:
    """Return the number of blanks that a line begins with."""
    return len(line) - len(line.lstrip())
