"""Trimming of a text into a suggestion that repeats neither the cursor's surroundings nor itself.

The server and the command line share this. Each cut ends where the engine calls the program complete.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fim_server.decoding.ending.trimming.below import without_line_below, without_repetition
from fim_server.decoding.ending.trimming.defined import defined_again
from fim_server.decoding.ending.trimming.endings import ended
from fim_server.decoding.ending.trimming.indentation import Trimmed, without_indentation, without_trailing_blanks
from fim_server.decoding.ending.trimming.loops import first_complete, last_complete, start_of_loop
from fim_server.language.texts import is_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fim_server.decoding.results import Written
    from fim_server.language import Session
    from fim_server.text.document import Split

MOST_TRIED = 24
"""Ends to try before a loop."""

MOST_OF_REST = 200
"""Characters right of the cursor to search a text for."""

SPECIFIC = re.compile(r"\w{2,}")
"""A word that hardly stands there by chance."""

MANY_BLANKS = 2
"""Blanks that no text within a line begins with."""

MOST_ABOVE = 64
"""Lines above the cursor to search for an indentation."""

THERE_ALREADY = "the text stands near the cursor already"
"""Reason for a text of which nothing is left."""


@dataclass(frozen=True, slots=True)
class Found:
    """Trimmed text.

    Attributes:
        text: None where nothing is left of it.
        written: Its tokens.
        reason: Reason for an empty result.
        loop: Offset at which the text begins to repeat itself, if it can end nowhere before; else 0.
    """

    text: str | None
    written: tuple[Written, ...] = ()
    reason: str | None = None
    loop: int = 0


class _Trimming:
    """A text being trimmed, with its tokens."""

    def __init__(self, text: str, written: tuple[Written, ...], session: Session, split: Split) -> None:
        self.text = text
        self.written = written
        self._session = session
        self._split = split

    def cut_surroundings(self) -> bool:
        """Cut the rest of the line, blanks and lines that stand around the cursor; return False if no text is left."""
        session, split, whole = self._session, self._split, self.text.strip()
        self.text = without_rest(self.text, split, self._is_complete)
        if before_code(session, split):
            self._take_first(with_one_blank(self.text))
        self._take_first([without_trailing_blanks(self.text)])
        self._take_first(without_indentation(self.text, split, session.spelling, session.inside is not None))
        if split.right[:1] in ("", "\n") and self._is_complete(self.text.rstrip()):
            self.text = self.text.rstrip()
        self.text = without_repetition(self.text, split.right, self._is_complete, split.left)
        return not whole or bool(self.text.strip())

    def cut_definitions(self) -> bool:
        """Cut from the first definition that its block has already; return False if no text is left."""
        session = self._session
        number = None if session.inside else defined_again(self.text, self._split, session.spelling.defining)
        if number is None:
            return True
        kept = "\n".join(self.text.split("\n")[:number]).rstrip()
        self.text = kept if self._is_complete(kept) else ended(kept, session) or ""
        return bool(self.text.strip())

    def cut_lines_below(self) -> bool:
        """Cut the lines below the cursor, also at the text's beginning; return False if no text is left."""
        first = self.text.split("\n", 1)[0]
        shorter = without_line_below(
            self.text, self._split, self._is_complete, self._may_mark, lambda part: ended(part, self._session)
        )
        if shorter is None:
            return False
        shift = -1 if shorter.startswith(first) else self.text.find(shorter, len(first))
        if shift > 0:  # it began with the line below
            self.written = tuple(replace(one, end=one.end - shift) for one in self.written if one.end > shift)
        self.text = without_foreign_indentation(shorter, self._split.left, self._is_complete)
        return True

    def _is_complete(self, shorter: str) -> bool:
        return self._session.check(shorter).complete

    def _may_mark(self, line: str) -> bool:
        """Return whether a text's first line is no comment, and does not begin with a closing bracket or a quote."""
        state = self._session.start()
        state.advance(line)
        return state.inside != "comment" and not line.strip().startswith(tuple(self._session.spelling.closers))

    def _take_first(self, candidates: Iterable[Trimmed]) -> None:
        found = next((one for one in candidates if one.removed and self._is_complete(one.text)), None)
        if found is not None:
            self.text = found.text
            self.written = tuple(replace(one, end=found.place_of(one.end)) for one in self.written)


def trimmed(text: str, written: tuple[Written, ...], session: Session, split: Split) -> Found:
    """Return a text without repetitions of the document and of itself.

    Args:
        text: Complete in the session.
        written: Its tokens.
        session: At the cursor.
        split: The document at the cursor.
    """
    trimming = _Trimming(text, written, session, split)
    if trimming.cut_surroundings() and trimming.cut_definitions() and trimming.cut_lines_below():
        return without_loop(trimming.text, trimming.written, session, split)
    return Found(None, reason=THERE_ALREADY)


def without_loop(text: str, written: tuple[Written, ...], session: Session, split: Split) -> Found:
    """Return a text up to its first repetition.

    Where the program is complete nowhere near before it, the text ends with added signs, or soon after the repetition
    has begun.
    """
    before = split.left[split.left.rfind("\n") + 1 :]
    start = start_of_loop(text, before, session.spelling)
    if start is None:
        return Found(text, written)

    def is_complete(shorter: str) -> bool:
        return session.check(shorter).complete

    found = last_complete(text, start, is_complete, MOST_TRIED)
    if found is None or len(found) < start / 2:
        found = ended(text[:start], session) or found
    if (found is None or not found.strip()) and is_complete(text[:start]):
        found = text[:start]  # part of a name
    if found is None or not found.strip():
        found = first_complete(text, start, is_complete, MOST_TRIED)
        if found is None or start_of_loop(found, before, session.spelling) is not None:
            return Found(text, written, loop=start)
    return Found(found, written)


def without_rest(text: str, split: Split, is_complete: Callable[[str], bool]) -> str:
    """Return a text without an end that stands right of the cursor, in whole words; empty if no other text is left."""
    right = split.right[:MOST_OF_REST]
    for length in range(min(len(text), len(right)), 0, -1):
        if text.endswith(right[:length]) and is_specific(right[:length], right[length : length + 1]):
            shorter = text[: len(text) - length]
            if is_word(shorter[-1:]) and is_word(right[0]):
                continue
            if not shorter.strip() or is_complete(shorter):
                return shorter
    return text


def is_specific(text: str, following: str) -> bool:
    """Return whether a text has a word and ends with a whole word or a sign, given the character that follows."""
    return SPECIFIC.search(text) is not None and not (is_word(text[-1]) and is_word(following))


def before_code(session: Session, split: Split) -> bool:
    """Return whether code stands left of the cursor on its line, where blanks mean nothing."""
    return session.inside is None and bool(split.left[split.left.rfind("\n") + 1 :].strip())


def with_one_blank(text: str) -> Iterator[Trimmed]:
    """Yield candidates for a text that begins with several blanks: with one blank, and with none."""
    blanks = len(text) - len(text.lstrip(" \t"))
    if blanks >= MANY_BLANKS and text[blanks : blanks + 1] not in ("", "\n"):
        yield Trimmed.of(text, [range(text.startswith(" "), blanks)])
        yield Trimmed.of(text, [range(blanks)])


def roughly_trimmed(text: str, split: Split, session: Session) -> str:
    """Return a text without repetitions at a cursor without a guarantee; empty if no text is left."""

    def is_complete(shorter: str) -> bool:
        return bool(shorter.strip())

    start = start_of_loop(text, split.left[split.left.rfind("\n") + 1 :], session.spelling)
    text = text if start is None else text[:start].rstrip()
    first = next(without_indentation(text, split, session.spelling), None)
    text = text if first is None else first.text
    return without_line_below(without_rest(text, split, is_complete), split, is_complete) or ""


def without_foreign_indentation(text: str, left: str, is_complete: Callable[[str], bool]) -> str:
    """Return a text up to a line whose indentation has other blanks than the cursor's line, if it may end there.

    Some languages allow comments anywhere, so that no grammar checks their indentation, but mixing tabs and spaces is
    always wrong. If the cursor's line is not indented, the nearest indented line above decides.
    """
    near = (line for line in reversed(left.split("\n")[-MOST_ABOVE:]) if line[:1].isspace() and line.strip())
    line = left[left.rfind("\n") + 1 :]
    own = (line if line[:1].isspace() else next(near, ""))[:1]
    lines = text.split("\n")
    for at in range(1, len(lines)):
        if own and lines[at][:1].isspace() and not lines[at].isspace() and lines[at][0] != own:
            shorter = "\n".join(lines[:at])
            return shorter if is_complete(shorter) else ""
    return text
