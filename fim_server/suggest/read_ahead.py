"""Prefill and opening of sessions before a request."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.errors import LanguageError, StoppedError
from fim_server.language import Language, Stop
from fim_server.language.shapes import SINGLE_LINE
from fim_server.suggest import limits
from fim_server.suggest.context.cursor import Place, wants_single_line
from fim_server.suggest.postprocess.blocks import owes_block
from fim_server.suggest.ranking.display import quiet

if TYPE_CHECKING:
    from fim_server.suggest.context.stage import ContextStage
    from fim_server.suggest.job import Loaded, PromptTokens
    from fim_server.suggest.postprocess.stage import Postprocess
    from fim_server.suggest.request import Request
    from fim_server.suggest.sources.project import Project


class ReadAhead:
    """Work before the requests of one document. Used by its thread alone. Errors are left to the request."""

    def __init__(
        self,
        context: ContextStage,
        postprocess: Postprocess,
        project: Project | None,
        tokens: PromptTokens,
        is_wanted: Callable[[], bool],
    ) -> None:
        """``tokens``: counts the tokens of prompts. ``is_wanted``: return whether there is time for this work."""
        self._context = context
        self._postprocess = postprocess
        self._project = project
        self._tokens = tokens
        self._is_wanted = is_wanted

    def prompts(self, loaded: Loaded, request: Request, cancelled: Stop, may_be_pair: bool) -> None:
        """Read the prompts of a request.

        ``may_be_pair``: the character before the cursor may be a closer that the editor inserted, and the cursor before
        it.
        """
        try:
            language = self._context.language(request, loaded)
        except (LanguageError, StoppedError):
            return
        if may_be_pair and request.split.left[-1:] in language.spelling.closers:
            request = between_pair(request)
        with suppress(StoppedError), Stop(limits.ENGINE_SECONDS):
            self._read(loaded, language, request, cancelled)

    def at_rest(self, loaded: Loaded | None, request: Request, cancelled: Stop) -> None:
        """Read the short prompt of a request, open its session, and count the names of the document.

        Without a model, read no prompt. Also send the document to the project's memory, which does not know it before
        the first request.
        """
        with suppress(LanguageError, StoppedError), Stop(limits.ENGINE_SECONDS):
            language = self._context.language(request, loaded)
            if self._project is not None and request.settings.project_memory:
                self._project.send(request.uri, request.remembered, language.name)
            if loaded is not None:
                self._read(loaded, language, request, cancelled, both=False)
            elif not cancelled.is_set():
                self._context.open(request, language)
            if not cancelled.is_set() and request.settings.names != "off" and language.has_grammar:
                self._postprocess.read_names(request, language)

    def _read(self, loaded: Loaded, language: Language, request: Request, cancelled: Stop, both: bool = True) -> None:
        if cancelled.is_set() or not self._is_wanted():
            return
        prompts = self._context.prompts(loaded)
        opened = self._context.open(request, language)
        inside = opened.session.inside
        if cancelled.is_set() or quiet(Place.of(request.split), inside, False, request.settings) is not None:
            return
        healing = self._context.healing(request, loaded)
        options = self._context.options(request, loaded, language, inside)
        read = prompts.read_ahead(request, healing.split, options, cancelled, bool(healing.text), both)
        self._tokens.count_ahead(read)
        if not cancelled.is_set() and opened.guarantee != "none":
            # The first matcher of this shape reads the file again, and the first letter of a line needs it.
            opened.session.matcher(loaded.model.vocabulary, shape=SINGLE_LINE)


def between_pair(request: Request) -> Request:
    """Return a request with its cursor one character further left."""
    split = request.split
    moved = replace(split, left=split.left[:-1], right=split.left[-1] + split.right)
    cell = None if request.cell is None else request.cell.one_back()
    single_line = request.single_line or wants_single_line(
        Place.of(moved), request.settings, owes_block(moved, request.language_id)
    )
    return replace(request, split=moved, single_line=single_line, cell=cell)
