"""Cache folder, and files with checksums in it.

The folder holds compiled languages and the tokens of tokenizers, which are read and written here, and token tables,
which the engine maps itself (`rust_core/src/masking/table/file.rs`). A missing or damaged file only costs time: it is
made again. Those not used for longest are removed where all are too large.
"""

import hashlib
import itertools
import os
import re
import time
from contextlib import suppress
from pathlib import Path

from fim_server.language.limited_files import read_found

LEFT_OVER_SECONDS = 3600
"""Age of a temporary file that a killed process left; writing one takes less than a second. Unit: seconds."""

MOST_KEPT = 200 << 20
"""Most bytes of compiled languages and token tables together. 151k tokens need 1 to 10 MB a language."""

_MOST_BYTES = 256 << 20
"""Most bytes of a compiled language; the largest of the package has less than 1 MB."""

_MAGIC = b"fim-server cache 1 "
_REMADE = re.compile(r"(\w+-[0-9a-f]{32}\.json|[0-9a-f]{32}-[0-9a-f]{32}\.spanner)", re.ASCII)
_TEMPORARY = re.compile(r"[\w-]+\.\d+-\d+-\d+\.new", re.ASCII)
_written = itertools.count()


def cache_folder() -> Path | None:
    """Return the folder, which may not exist yet; None if the user wants no cache (FIM_SERVER_CACHE is empty).

    FIM_SERVER_CACHE names it; otherwise it is `fim-server` in XDG_CACHE_HOME or `~/.cache`. A user without a home has
    none.
    """
    folder = os.environ.get("FIM_SERVER_CACHE")
    if folder == "":
        return None
    if folder:
        return Path(folder)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fim-server"
    except RuntimeError:
        return None


def read_text(path: Path) -> str | None:
    """Return the text that `write_text` wrote; None if there is no such file or a byte of it has changed."""
    try:
        content = read_found(path, _MOST_BYTES)
    except OSError:
        return None
    head, _, body = content.partition(b"\n")
    if head != _head(body):
        return None
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:  # a forged file with the right checksum
        return None


def write_text(path: Path, text: str) -> bool:
    """Write a file with its checksum, whole or not at all, and return whether that worked.

    This also removes such files, and token tables, that killed processes left in the folder or that do not fit in it.
    """
    fresh = path.with_suffix(f".{os.getpid()}-{time.time_ns()}-{next(_written)}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with fresh.open("xb") as file:
            file.write(checksummed(text))
        fresh.replace(path)
        is_written = True
    except OSError:
        is_written = False
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
    tidy(path.parent)
    return is_written


def checksummed(text: str) -> bytes:
    """Return the bytes of a file that holds a text and its checksum, as :func:`read_text` reads it."""
    body = text.encode("utf-8")
    return _head(body) + b"\n" + body


def _head(body: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(body).hexdigest().encode()


def tidy(folder: Path) -> None:
    """Remove the temporary files that no process is still writing, and the files used least recently beyond the limit.

    Age decides on temporary files, because their process may run on another machine or in another container that shares
    the folder.
    """
    before = time.time() - LEFT_OVER_SECONDS
    remade: list[tuple[float, int, Path]] = []
    with suppress(OSError):
        for path in folder.iterdir():
            is_remade = _REMADE.fullmatch(path.name)
            if is_remade or _TEMPORARY.fullmatch(path.name):
                with suppress(OSError):
                    found = path.lstat()
                    if is_remade:
                        remade.append((max(found.st_mtime, found.st_atime), found.st_size, path))
                    elif found.st_mtime < before:
                        path.unlink()
    beyond = sum(size for _, size, _ in remade) - MOST_KEPT
    for _, size, path in sorted(remade):
        if beyond <= 0:
            break
        beyond -= size
        with suppress(OSError):  # Windows keeps a file that a process maps
            path.unlink()
