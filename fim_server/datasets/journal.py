"""Journal of a build, from which a killed build goes on."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from fim_server.errors import DatasetError
from fim_server.language.limited_files import parse_json
from fim_server.system.file_locks import lock


@dataclass(frozen=True)
class Record:
    """Record of a source file: digest, index of the outcome, number of samples, and end of their bytes."""

    digest: bytes
    outcome: int
    samples: int
    end: int


_RECORD = struct.Struct("<32sBIQ")


class Journal:
    """Records of a build under way, after one line of JSON that describes the build. It is locked while it is open."""

    def __init__(self, path: Path) -> None:
        """Open or create it.

        Raises:
            OSError: It cannot be opened.
            DatasetError: Another process has it open.
        """
        self._path = path
        self._file: BinaryIO = path.open("a+b")
        try:
            lock(self._file)
        except OSError:
            self._file.close()
            raise DatasetError(f"{path}: another process is building this set") from None
        self._kept = 0

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        if sys.platform == "win32":
            self._file.close()  # an open file cannot be removed there
        if self._kept == 0:  # nothing was begun
            self._path.unlink(missing_ok=True)
        self._file.close()

    def header(self) -> dict[str, Any] | None:
        """Return the first line, or None where it is incomplete. Raises DatasetError if the file is no journal."""
        self._file.seek(0)
        line = self._file.readline()
        if not line.endswith(b"\n"):
            self._file.truncate(0)
            return None
        self._kept = len(line)
        try:
            header: dict[str, Any] = parse_json(line)
        except ValueError:
            raise DatasetError(f"{self._path}: not the journal of a build: remove it") from None
        return header

    def begin(self, header: dict[str, Any]) -> None:
        self._kept = self._file.write(json.dumps(header).encode() + b"\n")
        self._file.flush()

    def records(self) -> Iterator[Record]:
        """Yield the complete records in order, without a torn one at the end."""
        at = self._kept
        while True:
            self._file.seek(at)
            read = self._file.read(_RECORD.size)
            if len(read) < _RECORD.size:
                return
            at += _RECORD.size
            yield Record(*_RECORD.unpack(read))

    def keep(self) -> None:
        self._kept += _RECORD.size

    def cut(self) -> None:
        self._file.truncate(self._kept)

    def add(self, record: Record) -> None:
        self._file.write(_RECORD.pack(record.digest, record.outcome, record.samples, record.end))
        self._file.flush()
