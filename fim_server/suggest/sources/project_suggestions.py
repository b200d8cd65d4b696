"""What the project's memory says as suggestions: instead of the model's, where it is sure, and beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from fim_server.language.texts import is_word
from fim_server.suggest.answer_cache import Suggestion
from fim_server.suggest.context.cursor import is_fresh
from fim_server.suggest.context.sessions import Opened, fits
from fim_server.suggest.ranking.display import least_first, shown, worth
from fim_server.suggest.ranking.rank import best_of, cuts_of_lines
from fim_server.suggest.sources.missing_names import is_needless_import

if TYPE_CHECKING:
    from fim_server.decoding.results import Completion
    from fim_server.language import Language
    from fim_server.suggest.job import Request
    from fim_server.suggest.sources.project import Project, Recalled
    from fim_server.suggest.sources.scope_cache import Preferences

RECALL_CONFIDENCE = 0.8
"""How likely a line from the project's memory has to be right for the model not to be asked."""

MOST_KEPT = 3
"""The memory's suggestions beside the model's where nobody has asked: each takes half a millisecond, there are 7.5 on
average, and with all of them what was shown on the packages for tuning was right as often."""


class Recalls:
    """What the project's memory says at the cursors of a document. Used by one thread."""

    def __init__(
        self,
        project: Project | None,
        suggestion_of: Callable[[Completion, Request, Opened, Language], Suggestion | str],
        preferences: Preferences,
    ) -> None:
        """``suggestion_of``: makes a suggestion of a completion, or says why not. ``preferences``: the document's."""
        self._project = project
        self._suggestion_of = suggestion_of
        self._preferences = preferences
        self._last: tuple[Request, object, list[Recalled]] | None = None
        """To which request, on which texts, the memory said what last."""
        self._made: dict[int, tuple[Suggestion, float] | None] = {}
        """What of that, by its identity, was made a suggestion of; None for what does not fit."""

    def surest(self, request: Request, opened: Opened, language: Language) -> tuple[Suggestion, ...]:
        """What the memory is so sure of that no model need be asked.

        Where no model is asked at all, what is worth most of what it says.
        """
        closers = request.split.right[: opened.covered]
        least = 0.0 if request.invoked else request.settings.min_confidence
        most = request.settings.alternatives if request.invoked else 1
        asks_model = request.settings.ask_model

        def suggestion_of(one: Recalled) -> Suggestion | None:
            """What may be shown of what the memory says."""
            found = self._suggestion(one, request, opened, language)
            if found is None or (asks_model and found[1] < RECALL_CONFIDENCE):
                return None
            return found[0] if shown(found[0], closers, least) else None

        said = self._said(request, opened, language)
        if asks_model:
            sure = (suggestion_of(one) for one in said if one.whole >= RECALL_CONFIDENCE)
            return tuple(islice((suggestion for suggestion in sure if suggestion is not None), most))
        first = least_first(least, is_fresh(request.split, opened.session.spelling))
        likely = [one for one in said if one.first >= first]
        return best_of(likely, suggestion_of, lambda suggestion: worth(suggestion, closers, least), most)

    def likeliest(self, request: Request, opened: Opened, language: Language) -> list[Suggestion]:
        """Suggestions that fit, the best first: at most :data:`MOST_KEPT`, but all of them where somebody has asked."""
        made = (self._suggestion(one, request, opened, language) for one in self._said(request, opened, language))
        fitting = (one[0] for one in made if one is not None)
        return list(fitting if request.invoked else islice(fitting, MOST_KEPT))

    def weighed(self, request: Request, opened: Opened, language: Language) -> list[tuple[Suggestion, float]]:
        """All suggestions that fit, each with how likely its whole line is right."""
        found = (self._suggestion(one, request, opened, language) for one in self._said(request, opened, language))
        return [one for one in found if one is not None]

    def _said(self, request: Request, opened: Opened, language: Language) -> list[Recalled]:
        """What the memory says, the best first: asked once for a request."""
        if self._project is None or not request.settings.project_memory or opened.guarantee == "none":
            return []
        last, texts = self._last, (opened.guarantee, opened.left, opened.right)
        if last is None or last[0] is not request or last[1] != texts:  # not asked before the model was
            self._project.tell(request.uri, request.split, language.name)
            of = request.uri, request.split, opened.guarantee, not request.single_line
            said = self._project.recall(*of, language.name)
            last = self._last = request, texts, said
            self._made = {}
        return last[2]

    def _suggestion(
        self, one: Recalled, request: Request, opened: Opened, language: Language
    ) -> tuple[Suggestion, float] | None:
        """What the memory says as a suggestion, with how likely its whole line is right; None where it does not fit."""
        if id(one) not in self._made:
            self._made[id(one)] = self._new(one, request, opened, language)
        return self._made[id(one)]

    def _new(
        self, one: Recalled, request: Request, opened: Opened, language: Language
    ) -> tuple[Suggestion, float] | None:
        """As :meth:`_suggestion`, of what was not made one for this request."""
        if request.word_ends and is_word(one.text[:1]):
            return None
        suggestion = self._suggestion_of(one.completion, request, opened, language)
        if not isinstance(suggestion, Suggestion) or not suggestion.cuts:
            return None
        cuts = cuts_of_lines(suggestion.text, suggestion.cuts)
        text = suggestion.text[: cuts[-1]] if cuts else ""
        if not cuts or fits(text, request.split, opened) is not None:
            return None
        if is_needless_import(text, language.name, request, self._project, self._preferences):
            return None
        reaches_line_end = text == suggestion.text or "\n" in suggestion.text[: len(text) + 1]
        whole = one.whole if reaches_line_end else 0.0
        return replace(suggestion, text=text, cuts=cuts, recalled=True, calibrated=True), whole
