"""Suggestions from the project's memory, beside the model's or in place of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from fim_server.language.texts import is_word
from fim_server.suggest.constants import SOURCES
from fim_server.suggest.context.cursor import is_fresh
from fim_server.suggest.postprocess.ends import cuts_of_lines
from fim_server.suggest.ranking.display import least_first, missing_closer, shown, worth
from fim_server.suggest.ranking.rank import best_of
from fim_server.suggest.ranking.reasons import Suppression
from fim_server.suggest.sources.missing_names import is_needless_import

if TYPE_CHECKING:
    from fim_server.language import Language
    from fim_server.suggest.context.sessions import Opened
    from fim_server.suggest.postprocess.stage import Postprocess
    from fim_server.suggest.request import Request
    from fim_server.suggest.sources.project import Project, Recalled
    from fim_server.suggest.sources.scope_cache import ScopeCache
    from fim_server.suggest.suggestion import Suggestion

RECALL_CONFIDENCE = SOURCES.recall_confidence
"""Confidence of a line from the project's memory that replaces the model."""

MOST_KEPT = SOURCES.recalled_beside_model


class ProjectSuggestions:
    """Suggestions from the project's memory at the cursors of a document. Used by one thread."""

    def __init__(self, project: Project | None, postprocess: Postprocess, scopes: ScopeCache) -> None:
        self._project = project
        self._postprocess = postprocess
        self._scopes = scopes
        self._last: tuple[Request, object, list[Recalled]] | None = None
        """The last request, the texts of its session, and the memory's continuations."""
        self._made: dict[int, tuple[Suggestion, float] | None] = {}
        """Suggestions of these continuations, by the identity of the continuation; None for those that do not fit."""

    def surest(self, request: Request, opened: Opened, language: Language) -> tuple[Suggestion, ...]:
        """Return the suggestions that are sure enough without the model, or the most valuable if no model is asked."""
        closers = request.split.right[: opened.covered]
        least = 0.0 if request.invoked else request.least
        most = request.settings.alternatives if request.invoked else 1
        asks_model = request.settings.ask_model

        def make(one: Recalled) -> Suggestion | None:
            found = self._suggestion(one, request, opened, language)
            if found is None or (asks_model and found[1] < RECALL_CONFIDENCE):
                return None
            return found[0] if shown(found[0], closers, least) else None

        recalled = self._recalled(request, opened, language)
        if asks_model:
            sure = (make(one) for one in recalled if one.whole >= RECALL_CONFIDENCE)
            return tuple(islice((suggestion for suggestion in sure if suggestion is not None), most))
        first = least_first(least, is_fresh(request.split, opened.session.spelling))
        likely = [one for one in recalled if one.first >= first]
        return best_of(likely, make, lambda suggestion: worth(suggestion, closers, least), most)

    def likeliest(self, request: Request, opened: Opened, language: Language) -> list[Suggestion]:
        """Return suggestions that fit, the best first: all for an explicit request, else at most :data:`MOST_KEPT`."""
        fitting = (one for one, _ in self.weighed(request, opened, language))
        return list(fitting if request.invoked else islice(fitting, MOST_KEPT))

    def weighed(self, request: Request, opened: Opened, language: Language) -> Iterator[tuple[Suggestion, float]]:
        """Yield all suggestions that fit, each with the confidence of its whole line."""
        for one in self._recalled(request, opened, language):
            found = self._suggestion(one, request, opened, language)
            if found is not None:
                yield found

    def _recalled(self, request: Request, opened: Opened, language: Language) -> list[Recalled]:
        """Return the memory's continuations, the best first, with one lookup for each request."""
        if self._project is None or not request.settings.project_memory:
            return []
        if opened.guarantee == "none" and opened.has_grammar:
            return []
        last, texts = self._last, (opened.guarantee, opened.left, opened.right)
        if last is None or last[0] is not request or last[1] != texts:
            self._project.send(request.uri, request.remembered, language.name)
            takes_lines = opened.has_grammar and not request.single_line
            about = request.uri, request.split, opened.guarantee, takes_lines
            last = self._last = request, texts, self._project.recall(*about, language.name)
            self._made = {}
        return last[2]

    def _suggestion(
        self, one: Recalled, request: Request, opened: Opened, language: Language
    ) -> tuple[Suggestion, float] | None:
        """Return a continuation as a suggestion with the confidence of its whole line; None if it does not fit."""
        if id(one) not in self._made:
            self._made[id(one)] = self._make(one, request, opened, language)
        return self._made[id(one)]

    def _make(
        self, one: Recalled, request: Request, opened: Opened, language: Language
    ) -> tuple[Suggestion, float] | None:
        if request.word_ends and is_word(one.text[:1]):
            return None
        found = self._postprocess.suggestion(one.completion, request, opened, language)
        if isinstance(found, Suppression) or not found.ends.cuts:
            return None
        cuts = cuts_of_lines(found.text, found.ends.cuts)
        text = found.text[: cuts[-1]] if cuts else ""
        if not cuts or missing_closer(text, request.split, opened.covered) is not None:
            return None
        if is_needless_import(text, language.name, request, self._project, self._scopes):
            return None
        reaches_line_end = text == found.text or "\n" in found.text[: len(text) + 1]
        suggestion = replace(
            found,
            text=text,
            ends=replace(found.ends, cuts=cuts),
            origin=replace(found.origin, is_recalled=True),
            likelihoods=replace(found.likelihoods, is_calibrated=True),
        )
        return suggestion, one.whole if reaches_line_end else 0.0
