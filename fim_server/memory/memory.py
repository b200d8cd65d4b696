"""Memory of a project: indexes folders and documents in the background, answers at a cursor at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from fim_server._core import ProjectMemory, Stop
from fim_server.language import Language
from fim_server.language.encodings import EncodingError
from fim_server.memory.background import Background
from fim_server.memory.continuations import ScoredContinuation, ranked
from fim_server.memory.excerpts import Excerpt
from fim_server.memory.ignoring import secret_files
from fim_server.memory.weights import Weights, fitted_weights

CHARACTERS = 10_000_000
"""Default limit of remembered characters of files."""

LOOKED_AT = 8
"""Continuations among which the best is chosen."""

BEFORE, AFTER = 300_000, 1_025
"""Characters around a cursor to pass on, a little more than the index looks at (`limits.rs`): 16 + 256 KiB back to the
beginning of a line, and 1 KiB ahead."""


class Memory:
    """Index of a project's files and open documents, for continuations of a text.

    Updates return at once: a thread of the lowest priority reads folders, another one documents. Queries take about a
    millisecond and see the text read by then. All methods may be called from any thread.

    Keys are names of documents. For a file it is its path, which begins with the folder's as that was given. Texts have
    line feeds as their only line breaks. The memory leaves secrets out (``secrets.rs``).

    A query is answered with texts of its ``language``. If that is empty, the suffix decides: by the names given to
    :meth:`index`, or else each suffix is a language of its own.
    """

    def __init__(self, characters: int = CHARACTERS, weights: Weights | None = None) -> None:
        """Make an empty memory.

        Args:
            characters: Most characters of files; those near open documents come first.
            weights: Weights of the confidence instead of the package's.
        """
        self._memory = ProjectMemory(characters)
        self._weights = weights
        self._stop = Stop()
        self._folders = Background("memory of folders")
        self._documents = Background("memory of documents")

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def index(
        self,
        folder: Path,
        suffixes: Sequence[str],
        languages: Mapping[str, str] | None = None,
        secret: tuple[str, ...] = (),
    ) -> None:
        """Read a folder's files, or the new and changed ones if it was read before.

        Left out are secret, ignored, hidden, foreign (virtual environments, ``node_modules``, build output), generated
        and binary files, files over 1 MB, and targets of links. Ignore files are read up to a size and a number of
        rules. A link out of the folder, a pipe or a device in the place of one is not read.

        Args:
            folder: Its path; nothing outside of it is read.
            suffixes: Suffixes of the files, such as ``.py``.
            languages: Names of languages by their suffixes.
            secret: The user's globs of :func:`.ignoring.secret_files`.
        """
        suffixes, files = list(suffixes), secret_files(secret)
        self._memory.name_languages(list((languages or {}).items()))
        self._folders.do(
            ("index", folder), lambda: self._memory.index_folder(folder, suffixes, self._stop, decoded, files)
        )

    @property
    def is_reading(self) -> bool:
        """Return whether a folder is being read or waits to be."""
        return self._folders.is_busy

    def stop_reading(self) -> None:
        """Stop reading the current folder; keep what was read. :meth:`index` continues from there."""
        stop, self._stop = self._stop, Stop()
        stop.set()

    def take_notes(self) -> list[str]:
        """Return the notes on files left out of folders since the last call."""
        return self._memory.take_notes()

    def changed(self, key: str, before: str, after: str, language: str = "", private: bool = False) -> None:
        """Take the text of an open document in place of its file, without the cursor's line; open an unknown document.

        Args:
            key: The document's name.
            before: Text before the cursor's line, with its last line break.
            after: Text after that line's line break.
            language: The document's.
            private: Whether its text answers queries about this document alone.
        """
        self._documents.do(key, lambda: self._memory.update(key, before, after, language, private))

    def closed(self, key: str) -> None:
        """Close a document: its file counts again, as it was last read."""
        self._documents.do(key, lambda: self._memory.close(key))

    def left(self, folder: Path) -> None:
        """Forget a folder's files, also those of folders inside of it, which come back when these are read again.

        ``folder``: its path, as it was given to :meth:`index`.
        """
        self._folders.do(("index", folder), lambda: self._memory.leave_folder(folder))

    def removed(self, key: str) -> None:
        self._folders.do(("removed", key), lambda: self._memory.remove(key))

    def recall(
        self, key: str, left: str, right: str, most_lines: int = 1, limit: int = LOOKED_AT, language: str = ""
    ) -> list[ScoredContinuation]:
        """Return continuations at a cursor, the best first; one without text says that nothing is missing.

        Args:
            key: The document's name; if it is unknown, no text is near.
            left: Text before the cursor.
            right: Text after it.
            most_lines: Most lines of a continuation. More than one only where no text stands right of the cursor on its
                line, and as far as its matches agree.
            limit: Most continuations.
            language: The document's.
        """
        start = unseen(left)
        above = left.count("\n", 0, start)
        most = max(limit, LOOKED_AT)
        found = self._memory.continuations(key, left[start:], right[:AFTER], most_lines, most, above, language)
        return ranked(found, self._weights or fitted_weights())[:limit]

    def recall_best(
        self, key: str, left: str, right: str, most_lines: int = 1, confidence: float = 0.0
    ) -> ScoredContinuation | None:
        """Return the best of :meth:`recall`; None without a text, or if its first word is less sure than asked."""
        best = next(iter(self.recall(key, left, right, most_lines)), None)
        return best if best is not None and best.text and best.first >= confidence else None

    def predict(
        self, key: str, left: str, limit: int = 16, middle: str = "", language: str = ""
    ) -> list[tuple[str, float]]:
        """Return texts that may come next, up to the end of a lexeme, or of two if the first is blank.

        The likeliest comes first. The weights sum to at most 1; the rest is left to the model.

        Args:
            key: The document's name.
            left: Text before the cursor, of which only the end is read.
            limit: Most texts.
            middle: Text between the cursor and the place.
            language: The document's.
        """
        return self._memory.predict(key, left[unseen(left) :], limit, middle, language)

    def related(
        self,
        key: str,
        seen: range,
        words: Sequence[str],
        common: Sequence[str],
        names: Sequence[str] = (),
        defining: Sequence[str] = (),
        limit: int = 8,
        language: str = "",
    ) -> list[Excerpt]:
        """Return excerpts related to a place: definitions of names, then the lines most like those around it.

        This searches all of the memory: some milliseconds for a million characters.

        Args:
            key: The document's name.
            seen: Its lines, from 0, that are shown anyway.
            words: Words around the place.
            common: Words that say nothing about a text's subject.
            names: Names whose definitions are wanted; a name that many documents define has none.
            defining: Words that begin a line, or all but begin it, before the name that it defines.
            limit: Most definitions, and most other excerpts.
            language: The document's.
        """
        of = (list(words), list(common), list(names), list(defining))
        return [Excerpt(*one) for one in self._memory.related(key, (seen.start, seen.stop), *of, limit, language)]

    def has_word(self, key: str, word: str) -> bool:
        """Return whether a text other than the document ``key`` has a word. Texts of all languages count."""
        return self._memory.has_word(key, word)

    def characters(self, language: str = "") -> int:
        """Return the remembered characters of a language, or of all languages if it is empty."""
        return self._memory.characters(language)

    def sizes(self) -> dict[str, int]:
        """Return the numbers of files, open documents, characters, segments and strings, and their bytes."""
        names = ("files", "open", "characters", "segments", "strings", "bytes")
        return dict(zip(names, self._memory.sizes(), strict=True))

    def settle(self, seconds: float = 60.0) -> bool:
        """Wait until all updates are read, up to ``seconds`` for each thread; return False if it takes longer."""
        # A list, so that both are waited for.
        return all([self._documents.settle(seconds), self._folders.settle(seconds)])

    def close(self) -> bool:
        """End the threads, which may take as long as joining some files; return whether they have ended.

        Queries still work.
        """
        self._stop.set()
        return all([self._documents.close(), self._folders.close()])


def decoded(key: str, data: bytes) -> str | None:
    """Return the text of a file; None if its bytes are not in its declared encoding."""
    try:
        return Language.decode(key, data)
    except EncodingError:
        return None


def unseen(left: str) -> int:
    """Return the number of leading characters of a left context that no query looks at: up to a line break."""
    return max(0, left.rfind("\n", 0, max(0, len(left) - BEFORE)))
