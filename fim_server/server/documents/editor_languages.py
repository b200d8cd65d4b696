"""Languages that an editor describes: definitions of its own data, which open documents choose in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from fim_server.errors import LanguageError, StoppedError
from fim_server.language import Stop
from fim_server.language.definition.facts import editor_names
from fim_server.language.editor_data import EditorData, language_of
from fim_server.memory.background import Background
from fim_server.suggest.request import LANGUAGES
from fim_server.text.regions import hosts

if TYPE_CHECKING:
    from fim_server.language import Language

MOST_NAMES = 64
"""Most languages that one editor describes."""

MOST_CHARACTERS = 300_000
"""Most characters of a document that the editor's data describes. It opens in some 80 ms."""

LONGEST_NAME = 100
"""Most characters of a language's name."""

JUDGE_SECONDS, JUDGE_BYTES = 5.0, 256 << 20
"""Longest time for the choice of a document's language, and the most memory of one opening."""


class EditorLanguages:
    """Languages of one editor, and those of its documents. Only the event loop's thread uses it."""

    def __init__(self, prepare: Callable[[Language], object], tell: Callable[[str], object]) -> None:
        """Make an empty store.

        Args:
            prepare: Prepares a language for the model, on a thread of its own.
            tell: Takes a message on data that contradicts itself.
        """
        self._prepare, self._tell = prepare, tell
        self._data: dict[str, EditorData] = {}
        self._chosen: dict[str, tuple[EditorData, Language | None]] = {}
        """Languages of open documents; None for a document that was never taken."""
        self._thread = Background("languages of the editor")

    def describe(self, name: str, configuration: object) -> bool:
        """Take the data of a language; return whether it is new. Languages with a grammar need none.

        Raises LanguageError if it cannot be used, or there are too many languages. Earlier data counts no longer then.
        """
        if name in LANGUAGES or name in editor_names() or any(name in host.editor_ids for host in hosts()):
            return False
        if not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
            raise LanguageError(f"{name[:LONGEST_NAME]!r} is no name of a language")
        earlier = self._data.pop(name, None)
        data = EditorData.read(name, configuration)
        if len(self._data) >= MOST_NAMES:
            raise LanguageError(f"language {name}: the editor describes more than {MOST_NAMES} languages")
        self._data[name] = data
        return data != earlier

    def judge(self, uri: str, name: str, text: str) -> None:
        """Choose the language of an opened or saved document in the background.

        A document that is broken now keeps the language that took it before.
        """
        data = self._data.get(name)
        if data is None or len(text) > MOST_CHARACTERS:
            self._chosen.pop(uri, None)
            return
        if self._chosen.get(uri, (None,))[0] != data:
            self._chosen[uri] = data, None
        self._thread.do(uri, partial(self._choose, asyncio.get_running_loop(), uri, data, text))

    def of(self, uri: str) -> Language | None:
        """Return the language that took a document when it was opened or saved."""
        return self._chosen[uri][1] if uri in self._chosen else None

    def forget(self, uri: str) -> None:
        self._chosen.pop(uri, None)

    def close(self) -> None:
        """Stop choosing, without waiting."""
        self._thread.close(0.0)

    def _choose(self, loop: asyncio.AbstractEventLoop, uri: str, data: EditorData, text: str) -> None:
        problem, language = "", None
        try:
            with Stop(JUDGE_SECONDS, JUDGE_BYTES):
                language = language_of(data, text)
            if language is not None:
                self._prepare(language)
        except StoppedError:
            language = None
        except LanguageError as error:
            problem = str(error)
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(self._note, uri, data, language, problem)

    def _note(self, uri: str, data: EditorData, language: Language | None, problem: str) -> None:
        if problem:
            self._tell(problem)
        if language is not None and uri in self._chosen and self._chosen[uri][0] == data:
            self._chosen[uri] = data, language
