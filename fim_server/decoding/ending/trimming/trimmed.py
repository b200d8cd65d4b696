"""Trimming of a text into a suggestion that repeats neither the cursor's surroundings nor itself.

The server and the command line share this. Each cut ends where the engine says that the program is complete.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fim_server.decoding.ending.trimming.below import without_line_below, without_repetition
from fim_server.decoding.ending.trimming.defined import defined_again
from fim_server.decoding.ending.trimming.indentation import Trimmed, without_indentation, without_trailing_blanks
from fim_server.decoding.ending.trimming.loops import first_complete, last_complete, start_of_loop
from fim_server.decoding.results import Won
from fim_server.errors import SearchLimitError, StoppedError
from fim_server.language import Stop
from fim_server.language.texts import is_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fim_server.decoding.results import Completion, Written
    from fim_server.language import Session
    from fim_server.text.document import Split

MOST_TRIED = 24
"""Ends to try before a loop."""

ENDING_SECONDS = 0.05
"""Longest time to search for an ending."""

MOST_ENDED = 3
"""Beginnings to try an ending for."""

MOST_OF_REST = 200
"""Characters right of the cursor that a text is searched for."""

SPECIFIC = re.compile(r"\w{2,}")
"""Word that does not stand there by chance."""

MANY_BLANKS = 2
"""Blanks that a text within a line does not begin with."""

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


def trimmed(text: str, written: tuple[Written, ...], session: Session, split: Split) -> Found:
    """Return a text without repetitions of what is there already.

    Args:
        text: Complete in the session.
        written: Its tokens.
        session: At the cursor.
        split: The document at the cursor.
    """

    def is_complete(shorter: str) -> bool:
        return session.check(shorter).complete

    def may_mark(line: str) -> bool:
        """Return whether a text's first line is no comment, and does not begin with a closing bracket or a quote."""
        state = session.start()
        state.advance(line)
        return state.inside != "comment" and not line.strip().startswith(tuple(session.spelling.closers))

    def first_of(candidates: Iterable[Trimmed]) -> None:
        """Take the first candidate that is complete."""
        nonlocal text, written
        found = next((one for one in candidates if one.removed and is_complete(one.text)), None)
        if found is not None:
            text, written = found.text, tuple(replace(one, end=found.place_of(one.end)) for one in written)

    whole = text.strip()
    text = without_rest(text, split, is_complete)
    if before_code(session, split):
        first_of(with_one_blank(text))
    first_of([without_trailing_blanks(text)])
    first_of(without_indentation(text, split, session.spelling, session.inside is not None))
    if split.right[:1] in ("", "\n") and is_complete(text.rstrip()):
        text = text.rstrip()
    text = without_repetition(text, split.right, is_complete, split.left)
    if whole and not text.strip():
        return Found(None, reason=THERE_ALREADY)
    number = None if session.inside else defined_again(text, split, session.spelling.defining)
    if number is not None:
        kept = "\n".join(text.split("\n")[:number]).rstrip()
        text = kept if is_complete(kept) else ended(kept, session) or ""
        if not text.strip():
            return Found(None, reason=THERE_ALREADY)
    first = text.split("\n", 1)[0]
    shorter = without_line_below(text, split, is_complete, may_mark, lambda part: ended(part, session))
    if shorter is None:
        return Found(None, reason=THERE_ALREADY)
    shift = -1 if shorter.startswith(first) else text.find(shorter, len(first))
    if shift > 0:  # it began with the line below
        written = tuple(replace(one, end=one.end - shift) for one in written if one.end > shift)
    shorter = without_foreign_indentation(shorter, split.left, is_complete)
    return without_loop(shorter, written, session, split)


def without_loop(text: str, written: tuple[Written, ...], session: Session, split: Split) -> Found:
    """Return a text up to its first repetition.

    Where the program is complete nowhere near before, the text is ended with the signs that are lacking, or soon after
    the repetition has begun.
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
    """Return a text without its end where that is what stands right of the cursor, whole words at least.

    Empty where nothing else is left.
    """
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
    """Return whether a text, and not the character that follows, ends with a whole word or a sign, and has a word."""
    return SPECIFIC.search(text) is not None and not (is_word(text[-1]) and is_word(following))


def before_code(session: Session, split: Split) -> bool:
    """Return whether code stands left of the cursor on its line, in which blanks mean nothing."""
    return session.inside is None and bool(split.left[split.left.rfind("\n") + 1 :].strip())


def with_one_blank(text: str) -> Iterator[Trimmed]:
    """Return the candidates for a text that begins with one blank, or none, where it begins with several."""
    blanks = len(text) - len(text.lstrip(" \t"))
    if blanks >= MANY_BLANKS and text[blanks : blanks + 1] not in ("", "\n"):
        yield Trimmed.of(text, [range(text.startswith(" "), blanks)])
        yield Trimmed.of(text, [range(blanks)])


def roughly_trimmed(text: str, split: Split, session: Session) -> str:
    """Return a text without repetitions at a place of which the engine knows nothing; empty where nothing is left."""

    def is_complete(shorter: str) -> bool:
        return bool(shorter.strip())

    start = start_of_loop(text, split.left[split.left.rfind("\n") + 1 :], session.spelling)
    text = text if start is None else text[:start].rstrip()
    first = next(without_indentation(text, split, session.spelling), None)
    text = text if first is None else first.text
    return without_line_below(without_rest(text, split, is_complete), split, is_complete) or ""


def ended(beginning: str, session: Session) -> str | None:
    """Return the longest part of a beginning that signs alone complete, with them; None after the time limit."""
    brackets = {closing for _, closing in session.spelling.brackets}
    ends = [
        end
        for end in range(len(beginning), 0, -1)
        if (is_word(beginning[end - 1]) and not is_word(beginning[end : end + 1])) or beginning[end - 1] in brackets
    ]
    for end in ends[:MOST_ENDED]:
        state = session.start()
        text = beginning[:end]
        if state.advance(text) < len(text.encode()):
            continue
        try:
            with Stop(ENDING_SECONDS):
                ending = state.shortest_completion()
        except (SearchLimitError, StoppedError):
            return None
        if ending and not any(map(is_word, ending)) and session.check(text + ending).complete:
            return text + ending
    return None


def without_foreign_indentation(text: str, left: str, is_complete: Callable[[str], bool]) -> str:
    """Return a text up to a line that is indented with other blanks than the cursor's line, if it may end there.

    Some languages allow comments anywhere, so that no grammar checks their indentation, and mixing tabs and spaces is
    always wrong. Where the cursor's line is not indented, the nearest indented line above decides.
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


def first_trimmed(completions: Iterable[Completion], session: Session, split: Split) -> Completion:
    """Return the first of several completions of which something is left after trimming.

    If all of them repeat themselves or have no text, return the first with a text; else the first.
    """
    given = iter(completions)
    best = first = completed(next(given), session, split)
    while best.text is None or loops(best, session, split):
        following = next(given, None)
        if following is None:
            return first if first.text is not None else best
        best = completed(following, session, split)
        first = best if first.text is None else first
    return best


def loops(completion: Completion, session: Session, split: Split) -> bool:
    """Return whether a text still repeats itself."""
    before = split.left[split.left.rfind("\n") + 1 :]
    return start_of_loop(completion.text or "", before, session.spelling) is not None


def completed(completion: Completion, session: Session, split: Split) -> Completion:
    """Return a completion with its text trimmed; without a text where nothing is left.

    Where the model gave up because it repeated itself, the beginning becomes a text with the signs that it lacks.
    """
    if completion.text is None:
        return completion if not completion.begun else with_ending(completion, session)
    found = trimmed(completion.text, completion.written, session, split)
    if found.text == completion.text:
        return completion
    if found.text is None:
        return replace(completion, text=None, reason=found.reason, won=None, truncated=True)
    return replace(completion, text=found.text, written=found.written, truncated=True, won=Won.POINT)


def with_ending(completion: Completion, session: Session) -> Completion:
    """Return a completion that has only a beginning, ended; as it is where nothing short ends it."""
    text = ended(completion.begun, session)
    if text is None:
        return completion
    written = tuple(one for one in completion.written if one.end <= len(text))
    return replace(completion, text=text, reason=None, begun="", written=written, truncated=True, won=Won.POINT)
