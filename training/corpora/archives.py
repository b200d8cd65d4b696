"""Files in archives of packages, read one after the other."""

from __future__ import annotations

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fim_server.errors import TrainingError

MOST_FILES = 60_000
"""Most files of an archive that are looked at."""

MOST_BYTES = 2_000_000_000
"""Most unpacked bytes of an archive that are passed over."""

_ZIPS = (".jar", ".whl", ".zip")

DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, NotImplementedError)


class Member(NamedTuple):
    """File of an archive; its content is None where it is larger than was asked for."""

    path: str
    size: int
    content: bytes | None


def members(archive: Path, largest: int) -> Iterator[Member]:
    """Yield the regular files of a zip or tar archive, in its order, with contents of up to `largest` bytes.

    It ends after `MOST_FILES` files or `MOST_BYTES` bytes. Raises TrainingError for an archive that is damaged.
    """
    files = bytes_passed = 0
    try:
        for member in _zipped(archive, largest) if archive.suffix in _ZIPS else _tarred(archive, largest):
            yield member
            files, bytes_passed = files + 1, bytes_passed + member.size
            if files >= MOST_FILES or bytes_passed >= MOST_BYTES:
                break
    except DAMAGED as error:
        raise TrainingError(f"{archive.name}: cannot be read: {error}") from error


def _zipped(archive: Path, largest: int) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as opened:
        for entry in opened.infolist():
            if not entry.is_dir():
                small = entry.file_size <= largest
                yield Member(entry.filename, entry.file_size, opened.read(entry) if small else None)


def _tarred(archive: Path, largest: int) -> Iterator[Member]:
    with tarfile.open(archive, "r|*") as opened:
        for entry in opened:
            if entry.isfile():
                file = opened.extractfile(entry) if entry.size <= largest else None
                yield Member(entry.name, entry.size, None if file is None else file.read())
