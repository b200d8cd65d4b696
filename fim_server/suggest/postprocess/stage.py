"""Fourth stage: make a suggestion of a decoded or recalled text, or tell why it is none."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING

from fim_server.decoding.ending.trimming.trimmed import THERE_ALREADY, roughly_trimmed, trimmed
from fim_server.suggest.context.cursor import is_fresh
from fim_server.suggest.context.prompts import takes_no_comments
from fim_server.suggest.postprocess.blocks import (
    is_header,
    once_typed,
    owes_block,
    with_empty_block,
    without_unsure_block,
)
from fim_server.suggest.postprocess.endings import with_shortest_ending
from fim_server.suggest.postprocess.ends import (
    continued_cuts,
    ends_of,
    finished_cuts,
    without_lines_below,
    without_members_cut_off,
)
from fim_server.suggest.postprocess.identifiers import NameCounts, own_names
from fim_server.suggest.postprocess.plain import closed_cuts, plain_line
from fim_server.suggest.postprocess.trailing_comma import with_last_comma
from fim_server.suggest.ranking.display import NO_NAME, missing_closer, refusal_of_text
from fim_server.suggest.ranking.reasons import Reason, Suppression
from fim_server.suggest.ranking.red_flags import flag_of, flag_of_loop
from fim_server.suggest.suggestion import Display, Ends, Likelihoods, Origin, Suggestion
from fim_server.text.brackets import before_unopened

if TYPE_CHECKING:
    from fim_server.decoding.bias.undefined_names import UndefinedNames
    from fim_server.decoding.results import Completion, Written
    from fim_server.language import Language
    from fim_server.suggest.context.sessions import Opened
    from fim_server.suggest.job import Job
    from fim_server.suggest.ranking.red_flags import RedFlag
    from fim_server.suggest.request import Request
    from fim_server.suggest.sources.project import Project
    from fim_server.suggest.sources.scope_cache import ScopeCache


class Postprocess:
    """Makes suggestions for one document. Used by its thread alone."""

    def __init__(self, identities: count[int], scopes: ScopeCache, project: Project | None = None) -> None:
        """``identities``: names of suggestions, shared with other documents."""
        self._identities = identities
        self._scopes = scopes
        self._project = project
        self._names = NameCounts()

    def read_names(self, request: Request, language: Language) -> None:
        """Read the names of a document, so that no suggestion waits for that."""
        self._names.read(request.named)
        self._scopes.scope(request, language.name)

    def add(self, job: Job, completion: Completion) -> None:
        """Add a completion to the suggestions of a job, or the reason why it is none."""
        suggestion = self.suggestion(completion, job.request, job.opened, job.language)
        if isinstance(suggestion, Suppression):
            job.suppressed.append(suggestion)
            if suggestion.reason is Reason.REPEATED_BELOW:
                job.repeats.append(completion)
        elif suggestion.flag.is_loop:
            job.loops.append(suggestion)
            job.suppressed.append(Suppression(Reason.LOOP, "the text repeats itself"))
        elif all(suggestion.text != other.text for other in job.suggestions):
            job.suggestions.append(suggestion)

    def ended(self, job: Job, completion: Completion) -> Completion:
        """Return a completion with an ending, or with a block, where it has none that a user would accept."""
        request, session, language = job.request, job.opened.session, job.language.name
        if completion.begun and (request.invoked or completion.stop_reason in ("unlikely", "repetition")):
            owes = owes_block(once_typed(request.split, completion.begun), language)
            if owes:
                completion = with_empty_block(completion, session, request.split)
            return with_shortest_ending(completion, session, request.split, owes)
        if not request.invoked and owes_block(request.split, language):
            return without_unsure_block(completion, session, request.split)
        return completion

    def suggestion(
        self, completion: Completion, request: Request, opened: Opened, language: Language
    ) -> Suggestion | Suppression:
        """Return the suggestion that a completion makes, or the reason why it makes none."""
        found = trimmed_text(completion, request, opened)
        if isinstance(found, Suppression):
            return found
        text, tokens, loop = found
        problem = refusal_of_text(text, request.split, opened.covered)
        if problem is not None:
            return problem
        ends = ends_of(text, opened.session, takes_no_comments(request, opened.session.inside), request.split.right)
        ends = without_lines_below(ends, text, request.split)
        if not opened.has_grammar:
            ends = closed_cuts(ends, text, opened.session.spelling)
        if language.guarantee != "exact":
            ends = finished_cuts(ends, text, takes_dots=not language.has_grammar)
        undefined = undefined_names_of(request, opened, language)
        if undefined is not None:
            bound = tuple(end for end in ends.cuts if not undefined.unbound(text[:end]))
            if not bound:
                return Suppression(Reason.UNDEFINED_NAME, NO_NAME)
            text, ends = text[: bound[-1]], Ends(bound, tuple(end for end in ends.lexemes if end <= bound[-1]))
            problem = missing_closer(text, request.split, opened.covered)
            if problem is not None:
                return problem
        spelling = opened.session.spelling
        whole = text + completion.following if text == completion.text else text
        ends = without_members_cut_off(ends, whole)
        continued = continued_cuts(ends.cuts, whole, request.split.right, spelling)
        at = once_typed(request.split, text) if "\n" in text else request.split
        unknown = self._unknown_names(language, request, text, opened)
        flag = flag_of_loop(loop, self._flag(language, request, text, opened, unknown))
        return Suggestion(
            identity=str(next(self._identities)),
            text=text,
            covered=opened.covered,
            closers=spelling.closers,
            origin=Origin(completion, opened.guarantee, opened.covered_lines, opened.stand_in),
            ends=replace(ends, continued=continued),
            likelihoods=likelihoods_of(tokens, unknown, flag, own_names(language.name) is not None),
            display=Display(
                is_fresh=is_fresh(request.split, spelling),
                is_header=is_header(at, language.name),
                owes_block=owes_block(at, language.name),
            ),
        )

    def _unknown_names(self, language: Language, request: Request, text: str, opened: Opened) -> tuple[int, ...]:
        """Return the ends of the names in a text that the document does not have.

        Where the language's names are unknown, return the ends of words that no text of the project has either.
        """
        takes_all = request.cell is not None and request.cell.takes_all
        if request.settings.names == "off" or not language.has_grammar or takes_all:
            return ()
        project = self._project if request.settings.project_memory and own_names(language.name) is None else None

        def is_known(word: str) -> bool:
            return project is not None and project.has_word(request.uri, word)

        return self._names.unknown(language.name, request.named, text, opened.session, is_known)

    def _flag(
        self, language: Language, request: Request, text: str, opened: Opened, unknown: tuple[int, ...]
    ) -> RedFlag:
        """Return the red flag of a text. The closers that it replaces are no text below it."""
        split = replace(request.named, right=request.split.right[opened.covered :])
        scope = None if request.settings.names == "off" else self._scopes.scope(request, language.name)
        return flag_of(language.name, opened.session.spelling, split, text, unknown, scope)


def likelihoods_of(
    tokens: tuple[Written, ...], unknown: tuple[int, ...], flag: RedFlag, has_names: bool
) -> Likelihoods:
    """Return the likelihoods of a text with its unknown names or, where the language's names are unknown, words."""
    return Likelihoods(tokens, unknown if has_names else (), flag, new_words=() if has_names else unknown)


def trimmed_text(
    completion: Completion, request: Request, opened: Opened
) -> tuple[str, tuple[Written, ...], int] | Suppression:
    """Return the text, tokens and loop of a completion without repetitions, with a trailing comma if it is a habit."""
    if completion.text is None:
        reason = Reason.LOW_CONFIDENCE if completion.stop_reason == "unlikely" else Reason.NO_TEXT
        return Suppression(reason, completion.reason or "there is no text")
    spelling = opened.session.spelling
    if not opened.has_grammar:
        plain = plain_line(completion.text, request.split, opened.session)
        return plain if isinstance(plain, Suppression) else (plain, completion.written, 0)
    if opened.guarantee == "none":
        line = completion.text.split("\n", 1)[0] if request.single_line else completion.text
        text = roughly_trimmed(line, request.split, opened.session)
        return before_unopened(text, spelling.brackets), completion.written, 0
    found = trimmed(completion.text, completion.written, opened.session, request.split)
    if found.text is None:
        reason = Reason.REPEATED_BELOW if found.reason == THERE_ALREADY else Reason.NO_TEXT
        return Suppression(reason, found.reason or "")

    def is_complete(text: str) -> bool:
        return opened.session.check(text).complete

    return with_last_comma(found.text, request.split, spelling, is_complete), found.written, found.loop


def undefined_names_of(request: Request, opened: Opened, language: Language) -> UndefinedNames | None:
    """Return the test for undefined names, if the settings require that all names are defined."""
    if request.settings.names != "require":
        return None
    split = request.named
    return _undefined_names(language.name, split.left, split.right[opened.covered :], opened.guarantee)


@lru_cache(maxsize=4)
def _undefined_names(language: str, left: str, right: str, guarantee: str) -> UndefinedNames | None:
    from fim_server.decoding.bias.undefined_names import UndefinedNames

    return UndefinedNames.of(language, left, right, guarantee)
