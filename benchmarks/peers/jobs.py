"""Jobs of peers: their input, the questions and the outcomes."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Job:
    """One cursor.

    Attributes:
        left: The text left of it, in bytes.
        left_ids: That text's tokens.
        ids: The true middle's tokens, at each of which a mask is computed.
    """

    left: bytes = field(repr=False)
    left_ids: list[int] = field(repr=False)
    ids: list[int]


@dataclass(frozen=True)
class Work:
    """Input of every peer.

    Attributes:
        language: Name of the language.
        tokens: Byte strings by token id; None for special tokens and holes.
        end_token_id: The token that ends a text, if there is one.
        jobs: The cursors.
        others: Cursors in other files.
        cpu_time: True if times are processor times.
    """

    language: str
    tokens: list[bytes | None] = field(repr=False)
    end_token_id: int | None
    jobs: list[Job] = field(repr=False)
    others: list[Job] = field(repr=False)
    cpu_time: bool = False


@dataclass
class Outcome:
    """Costs of a peer. Times in seconds, memory in bytes, None where nothing was measured.

    Attributes:
        name: The peer with its version and settings.
        note: The language it was asked for, or the reason why it did not run.
        preparation: Time for the vocabulary and the grammar.
        prepared_memory: Growth of the process after that.
        peak_memory: Largest growth, all cursors included.
        cold: Times of masks in a first pass over all cursors.
        warm: Times of masks in a second pass with new matchers.
        others: Times of masks in a first pass over the other files, after these two.
        commits: Times to append a token, in all passes.
        steps: Masks in all passes.
        refused: True next tokens that a mask refused, in all passes; the replay of the cursor ends there.
        refused_left: Cursors of all passes that were not measured because the text left of them was refused.
    """

    name: str
    note: str
    ran: bool = False
    preparation: float | None = None
    prepared_memory: int | None = None
    peak_memory: int | None = None
    cold: list[float] = field(default_factory=list, repr=False)
    warm: list[float] = field(default_factory=list, repr=False)
    others: list[float] = field(default_factory=list, repr=False)
    commits: list[float] = field(default_factory=list, repr=False)
    steps: int = 0
    refused: int = 0
    refused_left: int = 0


class Matcher(Protocol):
    """One cursor in a peer."""

    def fill_mask(self) -> None:
        """Computes the mask into the engine's buffer."""

    def commit(self, token_id: int) -> bool:
        """Appends a token; false if it is refused."""


class Engine(Protocol):
    """A peer with a compiled grammar; `words` is its mask, shape [at least ceil(vocabulary size / 32)], int32."""

    words: NDArray[np.int32]

    def open(self, job: Job) -> Matcher | None:
        """A matcher after the job's left text; None if that is refused."""


@dataclass(frozen=True)
class Peer:
    """A way to run a peer.

    Attributes:
        package: The module that it is imported as, and the distribution that it is installed from.
        settings: What of it is chosen, in words.
        grammar: The text that it is given for a language. Raises LanguageError where there is none.
        prepare: Builds it from the vocabulary and that text. Raises ValueError where it refuses one of them.
    """

    package: str
    settings: str
    grammar: Callable[[str], str]
    prepare: Callable[[Work, str], Engine]

    @property
    def name(self) -> str:
        """With the version, if it is installed."""
        try:
            return f"{self.package} {metadata.version(self.package)}, {self.settings}"
        except metadata.PackageNotFoundError:
            return f"{self.package}, {self.settings}"

    def installed(self) -> bool:
        return importlib.util.find_spec(self.package) is not None
