"""The memory of a project: told of folders and documents in the background, asked at a cursor at once."""

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
from fim_server.memory.weights import Weights, fitted_weights

CHARACTERS = 10_000_000
"""Of files that are remembered, where nothing else is asked for."""

LOOKED_AT = 8
"""Continuations that an offer is chosen among."""

BEFORE, AFTER = 300_000, 1_025
"""Characters around a cursor that are passed on, and a little more than what is looked at (`limits.rs`): 16 + 256 KiB
back to the beginning of a line, and 1 KiB ahead."""


class Memory:
    """What the files of a project and its open documents say about how a text goes on.

    Telling returns at once: folders and documents are read by a thread each, of the lowest priority. Asking takes about
    a millisecond, and sees what has been read by then. All methods may be called from any thread.

    Keys are names of documents: for those that have a file, its path, which begins with the folder's as that was given.
    Texts have no line breaks but line feeds. The memory leaves secrets out (``secrets.rs``).

    A query is answered with texts of one language, that of ``language``. Where that is empty, the suffix decides:
    by the names given to :meth:`index`, or else each suffix is a language of its own.
    """

    def __init__(self, characters: int = CHARACTERS, weights: Weights | None = None) -> None:
        """A memory of nothing yet.

        Args:
            characters: Of files at most; those near open documents come first.
            weights: Of the confidence, in place of those that come with the package.
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

    def index(self, folder: Path, suffixes: Sequence[str], languages: Mapping[str, str] | None = None) -> None:
        """Read a folder's files, or what is new and changed among them where it was read before.

        Ignored, hidden, foreign (virtual environments, ``node_modules``, what was built), generated and binary files
        and those over 1 MB are left out, and so is whatever a link leads to. Ignore files are read up to a size and a
        number of rules; a link that leads out of the folder, a pipe or a device in the place of one is not read.

        Args:
            folder: Its path; nothing outside of it is read.
            suffixes: Of the files, ``.py`` for example.
            languages: The names of languages by their suffixes.
        """
        suffixes = list(suffixes)
        self._memory.name_languages(list((languages or {}).items()))
        self._folders.do(("index", folder), lambda: self._memory.index_folder(folder, suffixes, self._stop, decoded))

    @property
    def is_reading(self) -> bool:
        """Return whether a folder is being read, or waits to be."""
        return self._folders.is_busy

    def stop_reading(self) -> None:
        """Stop reading the current folder; keep what was read. :meth:`index` continues from there."""
        stop, self._stop = self._stop, Stop()
        stop.set()

    def take_notes(self) -> list[str]:
        """Take the notes on files left out of folders since the last call."""
        return self._memory.take_notes()

    def changed(self, key: str, before: str, after: str, language: str = "", private: bool = False) -> None:
        """Take what an open document holds now, in place of its file.

        Without the line that the cursor is in, which would be found there again. A document that it does not know is
        opened.

        Args:
            key: The document's name.
            before: All that is before the cursor's line, its line break included.
            after: All that is after that line's line break.
            language: The document's.
            private: Whether its text answers questions about this document alone.
        """
        self._documents.do(key, lambda: self._memory.update(key, before, after, language, private))

    def closed(self, key: str) -> None:
        """Leave an open document: its file counts again, as it was last read."""
        self._documents.do(key, lambda: self._memory.close(key))

    def left(self, folder: Path) -> None:
        """Forget a folder's files, those of folders inside of it as well: they come back where these are read again.

        Args:
            folder: Its path, as it was given.
        """
        self._folders.do(("index", folder), lambda: self._memory.leave_folder(folder))

    def removed(self, key: str) -> None:
        """Forget a file."""
        self._folders.do(("removed", key), lambda: self._memory.remove(key))

    def recall(
        self, key: str, left: str, right: str, most_lines: int = 1, limit: int = LOOKED_AT, language: str = ""
    ) -> list[ScoredContinuation]:
        """What may go on at a cursor, the best first; an offer without text says that nothing is missing.

        Args:
            key: The document's name; where it is unknown, nothing is near.
            left: The text before the cursor.
            right: The text after it.
            most_lines: Of an offer. More than one only where nothing stands right of the cursor on its line, and as far
                as the places where it was found agree.
            limit: Offers at most.
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
        """The best of :meth:`recall`; None where there is none, or without text, or with a first word less sure."""
        best = next(iter(self.recall(key, left, right, most_lines)), None)
        return best if best is not None and best.text and best.first >= confidence else None

    def predict(
        self, key: str, left: str, limit: int = 16, middle: str = "", language: str = ""
    ) -> list[tuple[str, float]]:
        """What may come next, up to the end of a lexeme, or of two where the first is blank.

        Args:
            key: The document's name.
            left: The text before the cursor, of which no more than its end is read.
            limit: Of them at most.
            middle: The text between the cursor and the place.
            language: The document's.

        Returns:
            Texts, the likeliest first, with weights whose sum is at most 1; what is missing is left to others to say.
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
        """What else has to do with a place: definitions of names, and then the lines most like those around it.

        All that is remembered is looked at, some milliseconds for a million characters.

        Args:
            key: The document's name.
            seen: Its lines, from 0, that are known anyway.
            words: Those that stand around the place.
            common: Words that say nothing of what a text is about.
            names: Those whose definitions are wanted; one that many documents define has none.
            defining: Words that a line begins with, or begins with but for one, and a name that it defines comes after.
            limit: Definitions, and other excerpts, at most.
            language: The document's.
        """
        of = (list(words), list(common), list(names), list(defining))
        return [Excerpt(*one) for one in self._memory.related(key, (seen.start, seen.stop), *of, limit, language)]

    def characters(self, language: str = "") -> int:
        """Return the number of remembered characters of a language, or of all languages where none is named."""
        return self._memory.characters(language)

    def sizes(self) -> dict[str, int]:
        """How many files, open documents, characters, segments and strings it knows, and the bytes that they take."""
        names = ("files", "open", "characters", "segments", "strings", "bytes")
        return dict(zip(names, self._memory.sizes(), strict=True))

    def settle(self, seconds: float = 60.0) -> bool:
        """Wait until all that it was told is read, at most so long for each thread; returns whether that is so."""
        # Both are waited for, whatever the first says.
        return all([self._documents.settle(seconds), self._folders.settle(seconds)])

    def close(self) -> bool:
        """End its threads, which may take as long as joining some files; it can still be asked.

        Returns:
            Whether they have ended.
        """
        self._stop.set()
        return all([self._documents.close(), self._folders.close()])


def decoded(key: str, data: bytes) -> str | None:
    """Return the text of a file that may not be in UTF-8; None where it is not in its declared encoding."""
    try:
        return Language.decode(key, data)
    except EncodingError:
        return None


def unseen(left: str) -> int:
    """Characters of a text before a cursor that no question about it looks at: none, or up to a line break."""
    return max(0, left.rfind("\n", 0, max(0, len(left) - BEFORE)))
