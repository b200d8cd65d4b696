"""Lines that begin surely and become unlikely before they are complete: the sure beginning, ended as shortly as can be.

After `if ` above a block nothing is complete before the colon, so that what is written of the condition, however sure
its first word is, could not be offered without one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.decoding.ending.trimming.trimmed import with_ending
from fim_server.decoding.results import StopReason, Won, Written
from fim_server.errors import SearchLimitError, StoppedError
from fim_server.language import Stop
from fim_server.language.shapes import Shape
from fim_server.language.texts import is_word
from fim_server.suggest.context.cursor import PROSE
from fim_server.suggest.context.sessions import unmatched
from fim_server.suggest.postprocess.blocks import with_empty_block
from fim_server.suggest.ranking.display import boundaries, likelihood

if TYPE_CHECKING:
    from fim_server.decoding.results import Completion
    from fim_server.language import Session
    from fim_server.language.spelling import Spelling
    from fim_server.text.document import Split

ENDING_LIKELIHOOD = 0.1
"""So that nothing is offered any more of what only ends a line once the rest is typed."""

ENDING_SECONDS = 0.05
"""How long an ending may be looked for."""

LAST_RESORT = 4
"""Factor of that time for a whole text of the engine's, where nothing else is left."""

MOST_BEGINNINGS = 3
"""Beginnings of a line that an ending is looked for."""

MOST_COVERED = 8
"""Most closers right of the cursor that the engine looks for a text with."""


def with_shortest_ending(completion: Completion, session: Session, split: Split, owes_block: bool) -> Completion:
    """A completion that has no text because it became unlikely, as what of its first line is worth most with an ending.

    An ending has neither words nor operators: closing brackets, what a header ends with, a comma above another line of
    the same list; and no comment, which would hide what stands right of it. It comes after a word or a bracket, not
    after a comma or an operator. The completion as it is where there is none.
    ``owes_block``: the line needs a block, of which there is nothing yet, see :mod:`.blocks`.
    """
    if completion.text is not None or not completion.begun:
        return completion
    line = completion.begun.split("\n", 1)[0]
    brackets = {bracket for pair in session.spelling.brackets for bracket in pair} | session.spelling.closers
    ends = [end for end in boundaries(line) if is_word(line[end - 1]) or line[end - 1] in brackets]
    ends.sort(key=lambda end: -end * likelihood(completion.written, end))
    for end in ends[:MOST_BEGINNINGS]:
        ending = ending_after(line[:end], session, session.spelling.block_opener if owes_block else "")
        if ending is None:
            continue
        text = line[:end] + ending
        starts = (0, *(token.end for token in completion.written))
        kept = [
            replace(token, end=min(token.end, end))
            for start, token in zip(starts, completion.written, strict=False)
            if start < end
        ]
        written = (*kept, Written(len(text), ENDING_LIKELIHOOD))
        if owes_block:
            return with_empty_block(replace(completion, begun=text, written=written), session, split)
        return replace(completion, text=text, reason=None, truncated=True, won=Won.POINT, written=written, begun="")
    return with_ending(completion, session) if completion.stop_reason is StopReason.REPETITION else completion


def with_any_ending(completion: Completion, session: Session, covered: str = "") -> Completion:
    """Return the surest lexemes of a completion's first line, with the shortest text that ends them.

    If none of them can be ended so, return the shortest completion with a word, then one that makes a comment of what
    stands right of it, or else the completion as it is.
    ``covered``: the closers right of the cursor that the text replaces, and has to bring in their order.
    """
    if len(covered) > MOST_COVERED:
        return completion
    line = completion.begun.split("\n", 1)[0]
    ends = sorted(boundaries(line), key=lambda end: -end * likelihood(completion.written, end))
    needed = line_with(covered, session.spelling) if covered else None
    a_word = needed or line_with("", session.spelling, "[0-9A-Za-z]")
    comment = completion
    for end, shape in (*((end, needed) for end in ends[:MOST_BEGINNINGS]), (0, needed), (0, a_word)):
        beginning = line[:end]
        if is_word(beginning[-1:]) and line[end:].startswith(" "):
            beginning += " "  # so that no word lengthens its last one
        try:
            with Stop(ENDING_SECONDS if end else ENDING_SECONDS * LAST_RESORT):
                state = session.start(shape)
                fits = state.advance(beginning) == len(beginning.encode())
                ending = state.shortest_completion() if fits else None
        except (SearchLimitError, StoppedError):
            continue
        if ending and not is_word(ending[0]):
            beginning = beginning.rstrip(" ")
        text = beginning + (ending or "")
        if ending is None or not text.strip() or not session.check(text).complete:
            continue  # the blank that was left out may be needed, as in `1 .x`
        state = session.start()
        state.advance(text)
        kept = tuple(token for token in completion.written if token.end <= end)
        written = (*kept, Written(len(text), ENDING_LIKELIHOOD))
        found = replace(completion, text=text, reason=None, truncated=True, won=Won.POINT, written=written, begun="")
        if state.inside not in PROSE or session.inside == state.inside:
            return found
        comment = found if comment is completion else comment  # it absorbs the text right of it
    return comment


def line_with(characters: str, spelling: Spelling, pattern: str = "") -> Shape:
    """Return the shape of a line with some characters in their order, or with a pattern, and without comments."""
    never = "".join(map(escaped, sorted({"\r", "\n", *(prefix[0] for prefix in spelling.comments)})))
    return Shape.regex(f"[^{never}]*".join(("", *map(escaped, characters), *filter(None, [pattern]), "")))


def escaped(character: str) -> str:
    """Return the pattern of a character."""
    return f"\\x{{{ord(character):x}}}"


def ending_after(beginning: str, session: Session, block_opener: str) -> str | None:
    """The shortest text that completes a beginning, if it is an ending; else None.

    ``block_opener``: where it is not empty, what the ending ends with, for a block is still to come.
    """
    state = session.start()
    if state.advance(beginning) < len(beginning.encode()) or state.inside is not None:
        return None
    try:
        with Stop(ENDING_SECONDS):
            ending = state.shortest_completion()
    except (SearchLimitError, StoppedError):
        return None
    if ending is not None and block_opener:
        found = ending.find(block_opener)
        ending = ending[: found + len(block_opener)] if found >= 0 else None
    if not ending or not is_ending(ending, session.spelling):
        return None
    leaves_string = state.advance(ending) > 0 and state.inside == "string"  # that the quote on the right would end
    return None if leaves_string else ending


def is_ending(text: str, spelling: Spelling) -> bool:
    """Whether a text only ends what is before it, with nothing that wants more.

    So it has no word, no operator, which wants an operand, no comment, and no bracket that something else closes.
    """
    if any(prefix in text for prefix in spelling.comments) or unmatched(text, spelling.brackets)[1]:
        return False
    unwanted = spelling.operators - spelling.closers
    return not any(is_word(one) or one == "\n" or one in unwanted for one in text)
