"""Shortest endings of lines that became unlikely before they were complete.

After `if ` above a block, nothing is complete before the colon. So the likely beginning of the condition needs an
ending to be a suggestion.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.decoding.ending.trimming.endings import with_ending
from fim_server.decoding.results import StopReason
from fim_server.errors import SearchLimitError, StoppedError
from fim_server.language import Stop
from fim_server.language.shapes import Shape
from fim_server.language.texts import is_word
from fim_server.suggest.constants import POSTPROCESS
from fim_server.suggest.context.cursor import PROSE
from fim_server.suggest.postprocess.blocks import with_empty_block
from fim_server.suggest.postprocess.ends import boundaries
from fim_server.suggest.postprocess.shorten import tokens_within, with_text
from fim_server.suggest.suggestion import likelihood
from fim_server.text.brackets import unmatched

if TYPE_CHECKING:
    from fim_server.decoding.results import Completion
    from fim_server.language import Session
    from fim_server.language.spelling import Spelling
    from fim_server.text.document import Split

ENDING_SECONDS = 0.05
"""Time for the search of an ending."""

LAST_RESORT = 4
"""Factor of that time for a whole text by the engine, if nothing else is left."""

MOST_BEGINNINGS = 3
"""Most beginnings of a line whose endings are searched."""

MOST_COVERED = 8
"""Most closers right of the cursor with which the engine searches a text."""


def with_shortest_ending(completion: Completion, session: Session, split: Split, owes_block: bool) -> Completion:
    """Return the best beginning of an incomplete completion's first line with an ending.

    An ending has closing brackets, the end of a header, or a comma above another line of the same list. It has no
    words, operators or comments, and follows a word or a bracket. Return the completion as it is if there is none.

    ``owes_block``: the line needs a block that is missing.
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
        starts = (0, *(token.end for token in completion.written))
        kept = [
            replace(token, end=min(token.end, end))
            for start, token in zip(starts, completion.written, strict=False)
            if start < end
        ]
        ended = with_text(completion, line[:end] + ending, kept, POSTPROCESS.ending_likelihood)
        if owes_block:
            header = replace(completion, begun=line[:end] + ending, written=ended.written)
            return with_empty_block(header, session, split)
        return ended
    return with_ending(completion, session) if completion.stop_reason is StopReason.REPETITION else completion


def with_any_ending(completion: Completion, session: Session, covered: str = "") -> Completion:
    """Return the likeliest lexemes of a completion's first line, with the shortest text that ends them.

    If none of them has one, return the shortest text that completes the program, with a word if it is blank. Return a
    text that makes a comment of the rest of the line only if there is no other, and the completion if there is none.

    ``covered``: the closers right of the cursor that the text replaces, and must contain in their order.
    """
    if len(covered) > MOST_COVERED:
        return completion
    line = completion.begun.split("\n", 1)[0]
    ends = sorted(boundaries(line), key=lambda end: -end * likelihood(completion.written, end))
    needed = line_shape(covered, session.spelling) if covered else None
    a_word = needed or line_shape("", session.spelling, "[0-9A-Za-z]")
    comment = completion
    for end, shape in (*((end, needed) for end in ends[:MOST_BEGINNINGS]), (0, needed), (0, a_word)):
        beginning = line[:end]
        if is_word(beginning[-1:]) and line[end:].startswith(" "):
            beginning += " "  # so that the ending does not extend its last word
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
            continue  # the text may need the blank that was left out, as in `1 .x`
        state = session.start()
        state.advance(text)
        found = with_text(completion, text, tokens_within(completion.written, end), POSTPROCESS.ending_likelihood)
        if state.inside not in PROSE or session.inside == state.inside:
            return found
        comment = found if comment is completion else comment  # it absorbs the text right of it
    return comment


def line_shape(characters: str, spelling: Spelling, pattern: str = "") -> Shape:
    """Return the shape of a line with some characters in their order, or with a pattern, and without comments."""
    never = "".join(map(escaped, sorted({"\r", "\n", *(prefix[0] for prefix in spelling.comments)})))
    return Shape.regex(f"[^{never}]*".join(("", *map(escaped, characters), *filter(None, [pattern]), "")))


def escaped(character: str) -> str:
    return f"\\x{{{ord(character):x}}}"


def ending_after(beginning: str, session: Session, block_opener: str) -> str | None:
    """Return the shortest text that completes a beginning, if it is an ending; else None.

    ``block_opener``: the end of the ending, if a block has to follow.
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
    opens_string = state.advance(ending) > 0 and state.inside == "string"  # the quote right of it would end it
    return None if opens_string else ending


def is_ending(text: str, spelling: Spelling) -> bool:
    """Return whether a text only ends the text before it.

    It has no word, no operator that needs an operand, no comment, and no bracket that other text closes.
    """
    if any(prefix in text for prefix in spelling.comments) or unmatched(text, spelling.brackets)[1]:
        return False
    unwanted = spelling.operators - spelling.closers
    return not any(is_word(one) or one == "\n" or one in unwanted for one in text)
