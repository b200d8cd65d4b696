"""What the project says already: the memory of a client's folders and open documents, as the server uses it.

Folders are read on a thread of its own, which a document's thread never waits for; what has been read so far is asked.
A document's thread brings its text up to date before it asks, but for the line that the cursor is on.
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
"""Of files that are read, however little memory there is."""

LONGEST_PATH = 4096
"""Most characters of a path; no system takes longer ones."""

MEASURED_SECONDS = 1.0
"""How old what is said of the memory's size may be."""

ADVISED = 8
"""Texts of the memory that are mixed into a step."""

DRAFTED_LEXEMES, LEAST_DRAFTED = SOURCES.draft_lexemes, SOURCES.draft_confidence

MOST_LINES = 8
"""Most lines of a recalled text."""

LINES_CONFIDENCE = SOURCES.recalled_lines_confidence
"""Least confidence of all lines of a recalled text."""


@dataclass(frozen=True)
class Recalled:
    """What the memory offers at a cursor: few of those that it tells of are looked at closer.

    Attributes:
        offer: The memory's.
        guarantee: Of the session that it is for.
    """

    offer: ScoredContinuation
    guarantee: str

    @property
    def whole(self) -> float:
        """How likely it is right up to its first line's end."""
        return self.offer.whole

    @property
    def first(self) -> float:
        """How likely its first lexeme is right, at most."""
        return self._sure[0][1] if self._sure else 1.0

    @property
    def most_worth(self) -> float:
        """What is shown of it is worth no more (`showing.worth`): it may be doubted, and get a comma."""
        if not self._sure:
            return len(self.text) + 1.0
        return max((end + 1) * max(sure, *CONFIDENCES) for end, sure in self._sure)

    @cached_property
    def text(self) -> str:
        """Its first line, and further ones as far as they are sure."""
        return self.offer.text[: self.offer.end_of_lines(LINES_CONFIDENCE)]

    @cached_property
    def completion(self) -> Completion:
        """In the form of what a model has written: its tokens are lexemes."""
        tokens, before = [], 1.0
        for end, sure in self._sure:
            tokens.append(Written(end, min(1.0, sure / before) if before else 0.0))
            before = sure
        ended = StopReason.END_TOKEN
        return Completion(self.text, self.guarantee, ended, None, won=Won.END_TOKEN, written=tuple(tokens))

    @cached_property
    def _sure(self) -> list[tuple[int, float]]:
        """For each lexeme and further line the characters up to its end, and how likely all is right up to there."""
        return [(end, sure) for end, sure in (*self.offer.beginnings, *self.offer.lines) if end <= len(self.text)]


class Project:
    """The memory of one client's project. From any thread."""

    def __init__(self, memory: Memory | None = None) -> None:
        self.memory = Memory() if memory is None else memory
        """What is known; another one where that was forgotten."""
        self._is_begun = False
        self._characters = CHARACTERS
        self._size = (0, -MEASURED_SECONDS)
        """In bytes, and when that was so."""
        self._lock = Lock()
        self._open: set[str] = set()
        """Documents that are open: what a thread tells of another came too late."""
        self._folders: tuple[Path, ...] = ()
        self._private = PrivateDocuments()
        self._told: dict[str, tuple[str, str, str, bool]] = {}
        """Documents as last sent: the text without the cursor's line, the language, and whether it is private."""

    def read(self, folders: Sequence[str], languages: Mapping[str, str]) -> None:
        """Read the files below folders in the background, again those that have changed.

        ``folders``: their URIs. ``languages``: by the suffixes of the files.
        """
        self._is_begun = True
        known = tuple(folder for folder in map(path_of, folders) if folder is not None)
        self._folders = known
        for folder in known:
            if is_folder(folder):
                self.memory.index(folder, list(languages), languages)

    def leave(self, folders: Sequence[str]) -> None:
        """Forget the files below folders, by their URIs; what other folders have of these is to be read again."""
        for folder in map(path_of, folders):
            if folder is not None:
                self.memory.left(folder)

    @property
    def folders(self) -> tuple[Path, ...]:
        """The client's."""
        return self._folders

    @property
    def is_reading(self) -> bool:
        """Return whether files are being read."""
        return self.memory.is_reading

    def stop_reading(self) -> None:
        """Stop reading files until the next order to read them; keep what was read."""
        self.memory.stop_reading()

    def take_notes(self) -> list[str]:
        """Take the notes on files left out of the folders, and the reasons."""
        return self.memory.take_notes()

    @property
    def is_begun(self) -> bool:
        """Whether anything was told, or is to be read."""
        return self._is_begun

    @property
    def size(self) -> int:
        """Bytes that the memory takes, about a second ago."""
        size, measured = self._size
        if time.monotonic() - measured >= MEASURED_SECONDS:
            size = self.memory.sizes()["bytes"]
            self._size = size, time.monotonic()
        return size

    def clear(self) -> None:
        """Forget everything, and leave what is being read; documents are told again before they are asked about."""
        self._begin(CHARACTERS)

    def shrink(self) -> None:
        """Forget everything; files are read again up to half as much as before."""
        self._begin(max(LEAST_CHARACTERS, self._characters // 2))

    def _begin(self, characters: int) -> None:
        """Go on with a memory of nothing."""
        with self._lock:
            old = [self.memory]
            self.memory, self._characters = Memory(characters), characters
            self._told.clear()
            self._is_begun = False
            self._size = (0, -MEASURED_SECONDS)

        def end() -> None:
            old.pop().close()
            release_memory()

        Thread(target=end, daemon=True, name="fim-project-end").start()

    def forget(self, uri: str) -> None:
        """A document was closed: what is on the disk counts again."""
        with self._lock:
            self._open.discard(uri)
            self._told.pop(uri, None)
            self.memory.closed(key_of(uri))

    def opened(self, uri: str) -> None:
        """A document was opened."""
        with self._lock:
            self._open.add(uri)

    def close(self) -> None:
        """End what is being read; not waited for, since a disk may not answer."""
        Thread(target=self.memory.close, daemon=True, name="fim-project-end").start()

    def tell(self, uri: str, split: Split, language: str = "") -> None:
        """Send the current text of a document, but for the cursor's line. ``language``: its own, from now on."""
        start = split.left.rfind("\n") + 1
        end = split.right.find("\n")
        private = self._private.contains(path_of(uri), self._folders)
        around = split.left[:start], "" if end < 0 else split.right[end + 1 :], language, private
        with self._lock:
            if uri in self._open and self._told.get(uri) != around:
                self._told[uri], self._is_begun = around, True
                self.memory.changed(key_of(uri), *around)

    def place_of(self, key: str) -> tuple[str, str]:
        """The name of the folder that a document is in, and its path there; by itself, no folder and its name."""
        path = Path(key)
        for folder in self._folders:
            if path.is_relative_to(folder):
                return folder.name, path.relative_to(folder).as_posix()
        return "", path.name

    def recall(
        self, uri: str, split: Split, guarantee: str, several_lines: bool = False, language: str = ""
    ) -> list[Recalled]:
        """What stood elsewhere where the same stood before, the best first.

        ``several_lines``: where it is sure enough, with the lines that came after.
        """
        most = MOST_LINES if several_lines else 1
        offers = self.memory.recall(key_of(uri), split.left, split.right, most, language=language)
        return [Recalled(offer, guarantee) for offer in offers if offer.text.strip()]

    def advice(self, uri: str, left: str, language: str = "") -> ProjectAdvice:
        """What the memory knows of each next token of a middle."""
        near = left[unseen(left) :]  # kept for all the tokens: the whole text is not passed on for each
        return ProjectAdvice(self.memory, key_of(uri), near, self.memory.characters(language), language)

    def drafts(self, uri: str, left: str, language: str = "") -> Drafts:
        """What the memory takes to be likely after a middle: its likeliest lexemes, one after the other."""
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
class ProjectAdvice:
    """What a memory knows of the next tokens at a cursor: an :class:`~fim_server.decoding.protocols.ProjectBias`."""

    memory: Memory
    key: str
    left: str
    characters: int
    """Return the language that the memory knows."""
    language: str = ""

    def __call__(self, middle: str) -> Sequence[tuple[str, float]]:
        """What may come after a middle, with the memory's weights."""
        return self.memory.predict(self.key, self.left, ADVISED, middle, self.language)

    def share(self, weight: float, heaviest: float, certainty: float, probability: float) -> float:
        """How much of a weight is believed."""
        return FITTED.share(weight, self.characters, heaviest, certainty, probability)


def key_of(uri: str) -> str:
    """What a document is called in the memory: its path where it is a file, so that it stands for that."""
    path = path_of(uri)
    # A client may send half of a surrogate pair, which no file's name can have.
    return (uri if path is None else str(path)).encode(errors="backslashreplace").decode()


def path_of(uri: str) -> Path | None:
    """The path of a file's or a folder's URI, None for other URIs, and for paths that no file can have."""
    path = to_fs_path(uri) if uri.startswith("file:") else None
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
