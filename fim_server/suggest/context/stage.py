"""First stage: the language, the prompt and the session of a cursor."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.language_support.registry import support_of
from fim_server.suggest.context.cross_file import CrossFile
from fim_server.suggest.context.other_cells import OtherCells
from fim_server.suggest.context.prompts import Prompts
from fim_server.suggest.context.sessions import PATIENCE, opened
from fim_server.suggest.postprocess.identifiers import own_names
from fim_server.system.blocking_pool import BLOCKING_POOL
from fim_server.text.regions import read_alone
from fim_server.tokens import masks

if TYPE_CHECKING:
    from collections.abc import Callable

    from fim_server.decoding.concurrent_prefill import ConcurrentPrefill
    from fim_server.decoding.loop.healing import Healing
    from fim_server.decoding.options import DecodeOptions
    from fim_server.language import Language
    from fim_server.models.project_context import ProjectContext
    from fim_server.models.reading import Lent
    from fim_server.suggest.context.sessions import DocumentSessions, Opened
    from fim_server.suggest.job import Loaded
    from fim_server.suggest.request import Request
    from fim_server.suggest.sources.project import Project
    from fim_server.text.notebook import CellContexts
    from fim_server.tokens.vocabulary import Vocabulary

LANGUAGE_SECONDS, MOST_LANGUAGES = 5.0, 256
"""Time for which the language and version of a document are kept, and the most documents."""


class ContextStage:
    """Sessions, prompts and languages of one document. Used by its thread alone."""

    def __init__(self, contexts: DocumentSessions, project: Project | None) -> None:
        self.contexts = contexts
        self._project = project
        self._cells = OtherCells()
        self._cross_file = CrossFile()
        self._languages: dict[tuple[object, ...], tuple[Language, float]] = {}
        self._loaded: Loaded | None = None
        self._prompts: Prompts | None = None
        self._prefill: ConcurrentPrefill | None = None
        """Prefill of the last request that was answered."""

    @property
    def languages(self) -> list[Language]:
        """Return the languages that are in use. Safe to call from other threads."""
        return [language for language, _ in tuple(self._languages.values())]

    @property
    def loaded(self) -> Loaded | None:
        """Return the model of the last request; None before one."""
        return self._loaded

    def language(self, request: Request, loaded: Loaded | None) -> Language:
        """Return the language of a request, ready for the model that is ``loaded``.

        The project's files tell its version, which is not looked up at each keystroke.
        """
        versions = tuple(sorted(request.settings.language_versions.items()))
        of_file = request.path, request.language_id, request.described
        key = (*of_file, request.settings.python_version, versions, loaded is None)
        now = time.monotonic()
        known = self._languages.get(key)
        if known is None or now - known[1] > LANGUAGE_SECONDS:
            if len(self._languages) >= MOST_LANGUAGES:
                self._languages.clear()
            # `prepared` keeps the model alive, so its id names it.
            language = BLOCKING_POOL.run((*key, id(loaded)), lambda: prepared(request, loaded))
            known = self._languages[key] = (language, now)
        return known[0]

    def open(self, request: Request, language: Language) -> Opened:
        """Return the session at a request's cursor.

        Unless the user explicitly asks for several lines, it may have a stand-in.
        """
        if not language.has_grammar:
            return without_grammar(request, language)
        stands_in = request.single_line or not request.invoked
        patience, floor = PATIENCE if request.invoked else 1.0, request.settings.floor
        found = self.contexts.open(request.uri, language, request.contexts, floor, stands_in, patience)
        if request.cell is None:
            return found
        found = self._cells.judged(found, request.cell, language)
        return found if request.cell.region is None else alone(found, request.cell, language.name)

    def prompts(self, loaded: Loaded) -> Prompts:
        """Return this thread's share of the prompts that the model has read."""
        self._end_prefill()
        if self._loaded is not loaded or self._prompts is None:
            self._loaded, self._prompts = loaded, Prompts(loaded.model, loaded.pace, loaded.readings)
        return self._prompts

    def healing(self, request: Request, loaded: Loaded) -> Healing:
        """Return the end of the text before the cursor that the model writes again."""
        from fim_server.decoding.loop.healing import Healing

        return Healing.of(loaded.model, request.split, request.healable)

    def options(self, request: Request, loaded: Loaded, language: Language, inside: str | None) -> DecodeOptions:
        """Return the options of decoding, with the text of other files that the prompt shows."""
        return self.prompts(loaded).options(request, 0, inside, self._other_files(request, loaded, language))

    def begin_prefill(
        self, loaded: Loaded, healing: Healing, options: DecodeOptions, readings: Lent
    ) -> ConcurrentPrefill:
        """Begin the prefill, which runs while the session is opened."""
        from fim_server.decoding.concurrent_prefill import ConcurrentPrefill

        self._prefill = ConcurrentPrefill(loaded.model, healing.split, options, readings, bool(healing.text))
        return self._prefill

    def give_back(self) -> None:
        """Let other threads use the prompts that were read, and the memory of sessions."""
        self.contexts.rest()
        self._end_prefill()
        if self._prompts is not None:
            self._prompts.give_back()

    def _end_prefill(self) -> None:
        """Wait for a forward pass that continues after the answer: its reading can be used again then."""
        prefill, self._prefill = self._prefill, None
        if prefill is not None:
            prefill.close()

    def _other_files(self, request: Request, loaded: Loaded, language: Language) -> ProjectContext | None:
        wanted = request.settings.project_context
        if wanted == "auto":
            wanted = "off" if loaded.model.format.repository is None else "on"
        if self._project is None or wanted == "off" or not request.settings.project_memory:
            return None
        self._project.send(request.uri, request.remembered, language.name)
        return self._cross_file.context(self._project, request, language)


def without_grammar(request: Request, language: Language) -> Opened:
    """Return the session at a cursor in a language without a grammar, which refuses nothing."""
    left, right = request.split.left, request.split.right
    return opened(language.open(left, right), left, right)


def alone(opened: Opened, cell: CellContexts, language: str) -> Opened:
    """Return the session of a region, whose guarantee covers no other lines of its file."""
    region = cell.region
    if region is None or opened.guarantee == "none":
        return opened
    covered = (
        range(max(lines.start, region.start), min(lines.stop, region.stop))
        for lines in opened.covered_lines or (region,)
    )
    return replace(
        opened,
        guarantee="partial",
        covered_lines=tuple(lines for lines in covered if lines),
        diagnostics=(*opened.diagnostics, read_alone(cell, language)),
    )


def prepared(request: Request, loaded: Loaded | None) -> Language:
    """Return a request's language, ready for the model that is ``loaded``."""
    return prepare(request.language, None if loaded is None else loaded.model.vocabulary)


def prepare(find: Callable[[], Language], vocabulary: Vocabulary | None) -> Language:
    """Return a language after loading its names and the table of a model's tokens, which may take seconds."""
    language = find()
    own_names(language.name)
    support_of(language.name)
    if vocabulary is not None:
        masks.prepare(language, vocabulary)
    return language
