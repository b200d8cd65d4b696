"""The file that a process writes its results to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO

from fim_server.errors import RunError
from fim_server.evaluation.records import Record, encode_record, read_records, record_files
from fim_server.evaluation.running.shards import Shard
from fim_server.system.file_locks import lock


class Journal:
    """The file that this process alone writes results to, cut after its last whole line."""

    def __init__(self, folder: Path, shard: Shard) -> None:
        """Opens or makes the file. Raises RunError where it cannot, or another process is writing it."""
        self.path = folder / shard.file
        try:
            self._file: IO[bytes] = self.path.open("ab+")
        except OSError as error:
            raise RunError(f"{self.path}: {error.strerror or error}") from None
        try:
            lock(self._file)
        except OSError:
            self._file.close()
            raise RunError(f"{self.path}: another process is writing it") from None
        self._cut_torn_line()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def _cut_torn_line(self) -> None:
        """Cut off what follows the last line break."""
        end = self._file.seek(0, os.SEEK_END)
        keep = end
        while keep > 0:
            begin = max(0, keep - (1 << 16))
            self._file.seek(begin)
            found = self._file.read(keep - begin).rfind(b"\n")
            if found >= 0:
                keep = begin + found + 1
                break
            keep = begin
        if keep < end:
            self._file.truncate(keep)

    def write(self, records: Iterable[Record]) -> None:
        """Append results, and hand them to the system. Raises RunError where the disk refuses."""
        try:
            self._file.write(b"".join(map(encode_record, records)))
            self._file.flush()
        except OSError as error:
            raise RunError(f"{self.path}: {error.strerror or error}") from None

    def size(self) -> int:
        """Return the offset of the next result, in bytes."""
        return self._file.seek(0, os.SEEK_END)

    def cut(self, size: int) -> None:
        """Forget what was written from there on."""
        self._file.truncate(size)

    def drop_failed(self) -> int:
        """Forget the results that are errors, so that they are measured again; returns how many there were.

        What is kept takes the file's place as a whole, so that a kill loses nothing.
        """
        kept = [record for record in read_records(self.path) if record.error is None]
        dropped = sum(1 for _ in read_records(self.path)) - len(kept)
        if dropped:
            part = self.path.with_name(f"{self.path.name}.part")
            with part.open("wb") as output:
                output.writelines(map(encode_record, kept))
                output.flush()
                os.fsync(output.fileno())
            if sys.platform == "win32":  # where no open file can be replaced
                self._file.close()
                part.replace(self.path)
                self._file = self.path.open("ab+")
                lock(self._file)
            else:
                replacement = part.open("ab+")
                lock(replacement)
                part.replace(self.path)
                self._file.close()
                self._file = replacement
        return dropped


def done_in(folder: Path) -> set[tuple[str, str]]:
    """The samples and modes that have their results, in whatever shard's file."""
    return {record.key for file in record_files(folder) for record in read_records(file)}
