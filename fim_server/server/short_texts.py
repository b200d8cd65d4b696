"""Short texts for an explicit request that came to nothing: an explicit request always returns a suggestion.

The model may repeat itself until its budget is spent, reach the deadline before the text is complete anywhere, or say
nothing at all. So the first text has a part of the deadline only. Where nothing came of it, the model writes a few
tokens that have to say something and to end; where it has no time for that, the engine ends what the model began.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.errors import StoppedError
from fim_server.language.shapes import SINGLE_LINE
from fim_server.server.contexts import PATIENCE, shortest

if TYPE_CHECKING:
    from fim_server.decoding.options import DecodeOptions
    from fim_server.language import Session
    from fim_server.tokens.vocabulary import Vocabulary

FIRST_END_SHARE, WRITING_SHARE = 0.6, 0.85
"""Of an explicit request's deadline: until when the text has to be complete somewhere, and when the model stops."""

ENGINE_MS = 250.0
"""What the engine may take at the end of a deadline to end a text that the model has no time for."""

SHORT_TOKENS = 8
"""Tokens of a short text, besides those of the shortest way to complete the program."""


def with_time_to_end(options: DecodeOptions) -> DecodeOptions:
    """Return the options of an explicit request's texts, which leave time for a short one."""
    whole = options.deadline_ms
    if whole is None:
        return options
    return replace(options, deadline_ms=WRITING_SHARE * whole, first_end_ms=FIRST_END_SHARE * whole)


def of_a_short_text(
    options: DecodeOptions, session: Session, vocabulary: Vocabulary, left_ms: float | None
) -> DecodeOptions:
    """Return the options of a short text, where ``left_ms`` are left of the deadline."""
    single_line, needed = options.single_line, ""
    if session.guarantee != "none":
        needed = shortest(session, PATIENCE) or ""
        try:
            single_line = session.start(SINGLE_LINE).is_viable()
        except StoppedError:
            single_line = False
    closing = options.closing
    return replace(
        options,
        max_new_tokens=len(vocabulary.encode(needed)) + SHORT_TOKENS,
        single_line=single_line,
        says_something=True,
        closing=None if closing is None else replace(closing, at_once=False),
        least_likelihood=0.0,
        first_end_ms=None,
        deadline_ms=None if left_ms is None else max(0.0, left_ms - ENGINE_MS),
    )
