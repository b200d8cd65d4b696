"""What a source is: a stream of files.

They come one at a time, always in the same order (that of their names), and nothing of them is kept. What stands in
them is not looked at here; `fim_server.datasets.build` leaves out what is no file of the language.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple


class SourceText(NamedTuple):
    """A file of a source: its bytes, or its text where the source keeps texts, or None where it cannot be read."""

    content: bytes | str | None
    path: str
    package: str | None = None
    version: str | None = None
    licence: str | None = None
    language: str | None = None
    """As the source says; None where it does not, and the file's name is all that there is to go by."""


class Source(ABC):
    """A stream of files."""

    name: str
    """For samples' origin: what was named on the command line, less what is only true of one machine."""

    @abstractmethod
    def __iter__(self) -> Iterator[SourceText]:
        """The files, in the same order each time.

        Raises DatasetError where the source as a whole cannot be read on.
        """

    def pinned(self) -> dict[str, Any]:
        """What of it has to stay the same while a build goes on, and is worth recording: a revision, versions."""
        return {}
