"""Answers that are known before the worker is asked, and the part of an answer that is shown."""

from __future__ import annotations

from dataclasses import replace

from fim_server.server.documents.cell_check import kept_in_cell
from fim_server.server.language_server import FimLanguageServer
from fim_server.suggest.answer_cache import Answer, Suggestion
from fim_server.suggest.job import Request
from fim_server.suggest.ranking.display import asked_for, shown


def look_up(ls: FimLanguageServer, request: Request) -> Answer | None:
    """Return a cached answer that holds for a request."""
    several = request.invoked and request.settings.alternatives > 1
    split = request.split
    place = request.key, split.left, split.right, request.single_line
    found = ls.answers.find(*place, several, asked=request.invoked, word_ends=request.word_ends)
    if found is not None and found.moved and not request.invoked and not as_shown(found, request).suggestions:
        # The text typed since rules out other beginnings: asked again, the model may be sure enough.
        return None
    return found


def remember(ls: FimLanguageServer, request: Request, found: Answer) -> None:
    """Cache an answer, if it will still hold and the settings are unchanged."""
    if found.lasting and request.settings == ls.settings:
        ls.answers.add(found)


def is_same(some: Request, other: Request) -> bool:
    """Return whether two requests have the same answer."""
    return (some.key, some.split.left, some.split.right, some.single_line, some.settings, some.word_ends) == (
        other.key,
        other.split.left,
        other.split.right,
        other.single_line,
        other.settings,
        other.word_ends,
    )


def is_prefetched(ls: FimLanguageServer, request: Request) -> bool:
    """Return whether the answer to a request is being prefetched."""
    return ls.requests.prefetch is not None and is_same(ls.requests.prefetch.request, request)


def as_shown(found: Answer, request: Request) -> Answer:
    """Return the part of an answer that is shown.

    An explicit request shows a part of each suggestion, an automatic one only what is likely enough to be right. Typing
    along with a suggestion of an explicit request keeps it; of several, the first that is typed.
    """
    return kept_in_cell(likely(found, request), request.cell)


def likely(found: Answer, request: Request) -> Answer:
    """Return the items of :func:`as_shown`, whatever they do to a cell."""
    split, least = request.split, request.settings.min_confidence
    if request.invoked or (found.complete and found.moved):
        asked: dict[str, Suggestion] = {}
        for suggestion in found.suggestions if request.invoked else found.suggestions[:1]:
            part = asked_for(suggestion, split.right[: suggestion.covered], least)
            asked.setdefault(part.text, part)
        return replace(found, suggestions=tuple(asked.values()))
    suggestions = [shown(suggestion, split.right[: suggestion.covered], least) for suggestion in found.suggestions]
    kept = tuple(suggestion for suggestion in suggestions if suggestion is not None)
    if kept or not found.suggestions:
        return replace(found, suggestions=kept[:1])
    return replace(found, suggestions=(), reason="the model is not sure enough (setting minConfidence)")
