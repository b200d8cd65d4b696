"""Answers that are known before the worker is asked."""

from __future__ import annotations

from fim_server.server.language_server import FimLanguageServer
from fim_server.suggest.answer_cache import Answer
from fim_server.suggest.ranking.display import display
from fim_server.suggest.request import Request


def look_up(ls: FimLanguageServer, request: Request) -> Answer | None:
    """Return a cached answer that holds for a request."""
    several = request.invoked and request.settings.alternatives > 1
    split = request.split
    place = request.key, split.left, split.right, request.single_line
    found = ls.answers.find(*place, several, asked=request.invoked, word_ends=request.word_ends)
    if found is not None and found.moved and not request.invoked and not display(found, request).suggestions:
        # The text typed since rules out other beginnings: asked again, the model may be sure enough.
        return None
    return found


def remember(ls: FimLanguageServer, request: Request, found: Answer) -> None:
    """Cache an answer, if it will still hold and the settings are unchanged."""
    if found.lasting and request.settings == request.limits.within(ls.settings):
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
