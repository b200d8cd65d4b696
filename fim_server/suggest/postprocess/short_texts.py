"""Short texts for explicit requests that would have no suggestion, because each has to return one.

The model may repeat itself until its budget is spent, reach the deadline before the text is complete anywhere, or write
nothing. So the first text gets only a part of the deadline. If it fails, the model writes a few tokens that have to say
something and to end. Without time for that, the engine ends the beginning that the model wrote.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.errors import StoppedError
from fim_server.language.shapes import SINGLE_LINE
from fim_server.suggest.constants import POSTPROCESS
from fim_server.suggest.context.sessions import PATIENCE, shortest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.decoding.options import DecodeOptions
    from fim_server.decoding.results import Completion
    from fim_server.language import Session
    from fim_server.suggest.suggestion import Suggestion
    from fim_server.tokens.vocabulary import Vocabulary

FIRST_END_SHARE, WRITING_SHARE = POSTPROCESS.first_end_share, POSTPROCESS.writing_share

ENGINE_MS = 250.0
"""Time that the engine may take at the end of a deadline to end a text without the model."""

SHORT_TOKENS = 8
"""Tokens of a short text beyond the shortest way to complete the program."""


def with_time_to_end(options: DecodeOptions) -> DecodeOptions:
    """Return the options of an explicit request's texts, with time left for a short one."""
    whole = options.deadline_ms
    if whole is None:
        return options
    return replace(options, deadline_ms=WRITING_SHARE * whole, first_end_ms=FIRST_END_SHARE * whole)


def of_a_short_text(
    options: DecodeOptions, session: Session, vocabulary: Vocabulary, left_ms: float | None
) -> DecodeOptions:
    """Return the options of a short text, with ``left_ms`` of the deadline left."""
    single_line, needed = options.single_line, ""
    if session.guarantee != "none":
        needed = shortest(session, PATIENCE) or ""
        try:
            single_line = session.start(SINGLE_LINE).is_viable()
        except StoppedError:
            single_line = False
    closing = options.right_closer
    return replace(
        options,
        max_new_tokens=len(vocabulary.encode(needed)) + SHORT_TOKENS,
        single_line=single_line,
        says_something=True,
        right_closer=None if closing is None else replace(closing, at_once=False),
        least_likelihood=0.0,
        first_end_ms=None,
        deadline_ms=None if left_ms is None else max(0.0, left_ms - ENGINE_MS),
    )


def beginning_of(completions: Sequence[Completion], loops: Sequence[Suggestion]) -> Completion:
    """Return a completion for the engine to end.

    That is one that the model gave up, or the beginning of one that repeats itself, or the last one.

    Args:
        completions: The model's texts, at least one.
        loops: Suggestions that repeat themselves.
    """
    for completion in completions:
        if completion.begun:
            return completion
    for suggestion in loops:
        beginning = suggestion.text[: suggestion.flag.end - 1]
        return replace(suggestion.origin.completion, text=None, begun=beginning, written=suggestion.tokens)
    return completions[-1]
