"""Trimming of completions: the first of several that leaves a text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.decoding.ending.trimming.endings import with_ending
from fim_server.decoding.ending.trimming.loops import start_of_loop
from fim_server.decoding.ending.trimming.trimmed import trimmed
from fim_server.decoding.results import Won

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fim_server.decoding.results import Completion
    from fim_server.language import Session
    from fim_server.text.document import Split


def first_trimmed(completions: Iterable[Completion], session: Session, split: Split) -> Completion:
    """Return the first of several completions that leaves a text after trimming.

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
    before = split.left[split.left.rfind("\n") + 1 :]
    return start_of_loop(completion.text or "", before, session.spelling) is not None


def completed(completion: Completion, session: Session, split: Split) -> Completion:
    """Return a completion with its text trimmed, or without a text if none is left.

    Where the model stopped because it repeated itself, the beginning becomes a text with added signs.
    """
    if completion.text is None:
        return completion if not completion.begun else with_ending(completion, session)
    found = trimmed(completion.text, completion.written, session, split)
    if found.text == completion.text:
        return completion
    if found.text is None:
        return replace(completion, text=None, reason=found.reason, won=None, truncated=True)
    return replace(completion, text=found.text, written=found.written, truncated=True, won=Won.POINT)
