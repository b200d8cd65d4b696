"""Memory of a client's folders and open documents.

The memory reads folders on a thread of its own, for which no other thread waits. The thread of a document sends its
text before each query, without the cursor's line.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING

from pygls.uris import to_fs_path

from fim_server.decoding.results import Completion, StopReason, Won, Written
from fim_server.memory.belief import FITTED
from fim_server.memory.memory import CHARACTERS, Memory, unseen
from fim_server.suggest.constants import SOURCES
from fim_server.suggest.ranking.red_flags import CONFIDENCES
from fim_server.suggest.sources.private_documents import PrivateDocuments
from fim_server.system.process import release_memory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fim_server.decoding.protocols import Drafts
    from fim_server.memory.continuations import ScoredContinuation
    from fim_server.text.document import Split

LEAST_CHARACTERS = 100_000
"""Least characters of files that are read, however little memory there is."""

LONGEST_PATH = 4096
"""Most characters of a path; no system takes longer ones."""

MEASURED_SECONDS = 1.0
"""Greatest age of a reported size. Unit: seconds."""

MOST_PREDICTED = 8
"""Most texts of the memory in the bias of a step."""

DRAFTED_LEXEMES, LEAST_DRAFTED = SOURCES.draft_lexemes, SOURCES.draft_confidence

MOST_LINES = 8
"""Most lines of a recalled text."""

LINES_CONFIDENCE = SOURCES.recalled_lines_confidence
"""Least confidence of all lines of a recalled text."""


@dataclass(frozen=True)
class Recalled:
    """Continuation from the memory at a cursor. Its text and completion are made only for few.

    Attributes:
        continuation: The continuation.
        guarantee: The guarantee of the session at the cursor.
    """

    continuation: ScoredContinuation
    guarantee: str

    @property
    def whole(self) -> float:
        """Return the confidence of the whole first line."""
        return self.continuation.whole

    @property
    def first(self) -> float:
        """Return an upper bound of the confidence of the first lexeme."""
        return self._sure[0][1] if self._sure else 1.0

    @property
    def most_worth(self) -> float:
        """Return an upper bound of `display.worth`: the suggestion may get a red flag and a comma."""
        if not self._sure:
            return len(self.text) + 1.0
        return max((end + 1) * max(sure, *CONFIDENCES) for end, sure in self._sure)

    @cached_property
    def text(self) -> str:
        """Return the first line, and further ones as far as they are confident."""
        return self.continuation.text[: self.continuation.end_of_lines(LINES_CONFIDENCE)]

    @cached_property
    def completion(self) -> Completion:
        """Return the continuation in the form of a decoded text, whose tokens are lexemes."""
        tokens, before = [], 1.0
        for end, sure in self._sure:
            tokens.append(Written(end, min(1.0, sure / before) if before else 0.0))
            before = sure
        ended = StopReason.END_TOKEN
        return Completion(self.text, self.guarantee, ended, None, won=Won.END_TOKEN, written=tuple(tokens))

    @cached_property
    def _sure(self) -> list[tuple[int, float]]:
        """Return the end of each lexeme and further line, in characters, with the confidence of the text up to it."""
        return [
            (end, sure)
            for end, sure in (*self.continuation.beginnings, *self.continuation.lines)
            if end <= len(self.text)
        ]


class Project:
    """Memory of one client's project. Safe to use from several threads."""

    def __init__(self, memory: Memory | None = None) -> None:
        self.memory = Memory() if memory is None else memory
        self._is_begun = False
        self._characters = CHARACTERS
        self._size = (0, -MEASURED_SECONDS)
        """Bytes, and the time of their measurement."""
        self._lock = Lock()
        self._open: set[str] = set()
        """Open documents. Text of others came too late."""
        self._folders: tuple[Path, ...] = ()
        self._private = PrivateDocuments()
        self._sent: dict[str, tuple[str, str, str, bool]] = {}
        """Documents as last sent: text around the cursor's line, language, and whether the document is private."""

    def read(self, folders: Sequence[str], languages: Mapping[str, str], secret: tuple[str, ...] = ()) -> None:
        """Read the files below folders in the background, and changed ones again.

        Args:
            folders: Their URIs.
            languages: The languages of file suffixes.
            secret: The user's globs for files that are never read.
        """
        self._is_begun = True
        known = tuple(folder for folder in map(path_of, folders) if folder is not None)
        self._folders = known
        for folder in known:
            if is_folder(folder):
                self.memory.index(folder, list(languages), languages, secret)

    def leave(self, folders: Sequence[str]) -> None:
        """Drop the files below folders, given by URI. Files of other folders among them have to be read again."""
        for folder in map(path_of, folders):
            if folder is not None:
                self.memory.left(folder)

    @property
    def folders(self) -> tuple[Path, ...]:
        return self._folders

    @property
    def is_reading(self) -> bool:
        return self.memory.is_reading

    def stop_reading(self) -> None:
        """Stop reading files until the next order to read them; keep what was read."""
        self.memory.stop_reading()

    def take_notes(self) -> list[str]:
        """Take the notes on files left out of the folders, and the reasons."""
        return self.memory.take_notes()

    @property
    def is_begun(self) -> bool:
        """Return whether a document was sent, or a folder is to be read."""
        return self._is_begun

    @property
    def size(self) -> int:
        """Return the bytes that the memory took about a second ago."""
        size, measured = self._size
        if time.monotonic() - measured >= MEASURED_SECONDS:
            size = self.memory.sizes()["bytes"]
            self._size = size, time.monotonic()
        return size

    def clear(self) -> None:
        """Drop everything, and stop reading. Documents are sent again before the next query."""
        self._begin(CHARACTERS)

    def shrink(self) -> None:
        """Drop everything; files are read again up to half as much as before."""
        self._begin(max(LEAST_CHARACTERS, self._characters // 2))

    def _begin(self, characters: int) -> None:
        with self._lock:
            old = [self.memory]
            self.memory, self._characters = Memory(characters), characters
            self._sent.clear()
            self._is_begun = False
            self._size = (0, -MEASURED_SECONDS)

        def end() -> None:
            old.pop().close()
            release_memory()

        Thread(target=end, daemon=True, name="fim-project-end").start()

    def forget(self, uri: str) -> None:
        """Note that a document was closed: its file on the disk counts again."""
        with self._lock:
            self._open.discard(uri)
            self._sent.pop(uri, None)
            self.memory.closed(key_of(uri))

    def drop(self, uri: str) -> None:
        """Drop the text of an open document until it is sent again."""
        with self._lock:
            if self._sent.pop(uri, None) is not None:
                self.memory.closed(key_of(uri))

    def opened(self, uri: str) -> None:
        with self._lock:
            self._open.add(uri)

    def close(self) -> None:
        """Stop reading, without waiting: a disk may not answer."""
        Thread(target=self.memory.close, daemon=True, name="fim-project-end").start()

    def send(self, uri: str, split: Split, language: str = "") -> None:
        """Send the current text of a document without the cursor's line, and its ``language``."""
        start = split.left.rfind("\n") + 1
        end = split.right.find("\n")
        private = self._private.contains(path_of(uri), self._folders)
        around = split.left[:start], "" if end < 0 else split.right[end + 1 :], language, private
        with self._lock:
            if uri in self._open and self._sent.get(uri) != around:
                self._sent[uri], self._is_begun = around, True
                self.memory.changed(key_of(uri), *around)

    def place_of(self, key: str) -> tuple[str, str]:
        """Return the name of a document's folder, and its path there; outside of all folders, '' and its name."""
        path = Path(key)
        for folder in self._folders:
            if path.is_relative_to(folder):
                return folder.name, path.relative_to(folder).as_posix()
        return "", path.name

    def recall(
        self, uri: str, split: Split, guarantee: str, several_lines: bool = False, language: str = ""
    ) -> list[Recalled]:
        """Return continuations of the same text elsewhere in the project, the best first.

        ``several_lines``: include further lines where they are confident enough.
        """
        most = MOST_LINES if several_lines else 1
        found = self.memory.recall(key_of(uri), split.left, split.right, most, language=language)
        return [Recalled(one, guarantee) for one in found if one.text.strip()]

    def bias(self, uri: str, left: str, language: str = "") -> MemoryBias:
        near = left[unseen(left) :]  # not the whole text for each token
        return MemoryBias(self.memory, key_of(uri), near, self.memory.characters(language), language)

    def has_word(self, uri: str, word: str) -> bool:
        """Return whether another text of the project than a document's has a word."""
        return self.memory.has_word(key_of(uri), word)

    def drafts(self, uri: str, left: str, language: str = "") -> Drafts:
        """Return the memory's drafts: the likeliest lexemes after a middle, one after the other."""
        key, memory = key_of(uri), self.memory
        near = left[unseen(left) :]

        def propose(middle: str) -> str:
            text, sure = "", 1.0
            for _ in range(DRAFTED_LEXEMES):
                found = memory.predict(key, near, 1, middle + text, language)
                sure *= found[0][1] if found else 0.0
                if sure < LEAST_DRAFTED:
                    break
                text += found[0][0]
            return text

        return propose


@dataclass(frozen=True, slots=True)
class MemoryBias:
    """Bias of a memory for the tokens at a cursor: a `ProjectBias`."""

    memory: Memory
    key: str
    left: str
    characters: int
    """Characters of the language that the memory has."""
    language: str = ""

    def __call__(self, middle: str) -> Sequence[tuple[str, float]]:
        """Return texts that may follow a middle, with the memory's weights."""
        return self.memory.predict(self.key, self.left, MOST_PREDICTED, middle, self.language)

    def share(self, weight: float, heaviest: float, certainty: float, probability: float) -> float:
        return FITTED.share(weight, self.characters, heaviest, certainty, probability)


def key_of(uri: str) -> str:
    """Return the memory's key of a document: the path of a file, else the URI."""
    path = path_of(uri)
    # A client may send half of a surrogate pair, which no file's name can have.
    return (uri if path is None else str(path)).encode(errors="backslashreplace").decode()


def path_of(uri: str) -> Path | None:
    """Return the path of a file or folder; None for other URIs, and for paths that no file can have."""
    try:
        path = to_fs_path(uri) if uri.startswith("file:") else None
    except ValueError:  # half of an address in brackets
        return None
    return None if path is None or not is_possible(path) else Path(path)


def is_folder(path: Path) -> bool:
    """Return whether a path is that of a folder; false for a name that is too long."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_possible(path: str) -> bool:
    """Return whether a file may have a path: it is not too long, and has no NUL and no half of a surrogate pair."""
    try:
        return len(path) <= LONGEST_PATH and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False
