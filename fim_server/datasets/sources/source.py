"""Source: a stream of files.

Files come one at a time, always sorted by name, and none is kept. A source does not read its files' texts;
`fim_server.datasets.build` leaves out those that are not of the language.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple


class SourceText(NamedTuple):
    """File of a source: its bytes, its text where the source keeps texts, or None where it cannot be read."""

    content: bytes | str | None
    path: str
    package: str | None = None
    version: str | None = None
    licence: str | None = None
    language: str | None = None
    """Language that the source states; None where only the file's name tells it."""


class Source(ABC):
    """Stream of files."""

    name: str
    """Name in samples' origin: that of the command line, without parts that only hold for one machine."""

    @abstractmethod
    def __iter__(self) -> Iterator[SourceText]:
        """Yield the files, in the same order each time.

        Raises DatasetError where the source as a whole cannot be read on.
        """

    def pinned(self) -> dict[str, Any]:
        """Return facts for the manifest that must stay the same while a build goes on, such as versions."""
        return {}
