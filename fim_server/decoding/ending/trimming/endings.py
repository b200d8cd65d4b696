"""Endings: brackets and quotes that complete the beginning of a text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.decoding.results import Won
from fim_server.errors import SearchLimitError, StoppedError
from fim_server.language import Stop
from fim_server.language.texts import is_word

if TYPE_CHECKING:
    from fim_server.decoding.results import Completion
    from fim_server.language import Session

ENDING_SECONDS = 0.05
"""Longest time to search for an ending."""

MOST_ENDED = 3
"""Beginnings to try an ending for."""


def ended(beginning: str, session: Session) -> str | None:
    """Return the longest part of a beginning that added signs complete, with them; None if there is none in time."""
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


def with_ending(completion: Completion, session: Session) -> Completion:
    """Return a completion without a text as its ended beginning, or unchanged if no short ending exists."""
    text = ended(completion.begun, session)
    if text is None:
        return completion
    written = tuple(one for one in completion.written if one.end <= len(text))
    return replace(completion, text=text, reason=None, begun="", written=written, truncated=True, won=Won.POINT)
