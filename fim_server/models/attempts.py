"""Loads that ended their process: after the second one a model is not loaded again for a while.

An editor starts a server that has crashed again, and the server loads the same model again. So a process leaves a mark
in the cache folder while a native library reads the files of a model that is no part of the package, and takes it away
afterwards, whatever comes of it. A mark whose process is no more is a crash.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fim_server.errors import ModelError
from fim_server.language.cache import cache_folder

MOST_CRASHES = 2
"""After so many a model is not loaded."""

FORGOTTEN_SECONDS = 600.0
"""Age at which a crash counts no more: something else may have changed, and a second look every ten minutes costs
little."""

MOST_FILES = 100
"""Files of a folder that are looked at; a model has some ten, and what is no model's may have more."""

marks: set[Path] = set()
"""Those of this process."""


@contextmanager
def attempt(name: str, place: Path) -> Iterator[None]:
    """Mark that this process loads a model from a file or folder. Raises ModelError where that has ended others."""
    cache = cache_folder()
    if cache is None:
        yield
        return
    key = hashlib.sha256(f"{place.absolute()} {stamp_of(place)}".encode(errors="surrogateescape")).hexdigest()[:32]
    if crashes(cache, key) >= MOST_CRASHES:
        minutes = round(FORGOTTEN_SECONDS / 60)
        raise ModelError(
            f"{name}: has ended the process that loads it {MOST_CRASHES} times: choose another model; "
            f"it is tried again after {minutes} minutes, or once its files change"
        )
    mark = cache / f"loading-{key}-{os.getpid()}.mark"
    try:
        with suppress(OSError):
            cache.mkdir(parents=True, exist_ok=True)
            mark.touch()
            marks.add(mark)
        yield
    finally:
        forget(mark)


def forget(mark: Path) -> None:
    """Take a mark away."""
    marks.discard(mark)
    with suppress(OSError):
        mark.unlink(missing_ok=True)


def forget_all() -> None:
    """Take away the marks of this process, which ends in the middle of loading because it is told to."""
    for mark in list(marks):
        forget(mark)


def crashes(cache: Path, key: str) -> int:
    """How many processes have ended while they loaded a model; what is old is removed."""
    found = 0
    with suppress(OSError):
        for mark in cache.glob(f"loading-{key}-*.mark"):
            with suppress(OSError, ValueError):
                if time.time() - mark.stat().st_mtime > FORGOTTEN_SECONDS:
                    mark.unlink(missing_ok=True)
                elif not is_alive(int(mark.stem.rpartition("-")[2])):
                    found += 1
    return found


def stamp_of(place: Path) -> str:
    """Another one once the files are others."""
    files = [place] if place.is_file() else sorted([*place.glob("*"), *place.glob("onnx/*")])
    found = [path.stat() for path in files[:MOST_FILES] if path.is_file()]
    return " ".join(f"{one.st_size}:{one.st_mtime_ns}" for one in found)


def is_alive(process: int) -> bool:
    """Whether a process of that number runs."""
    if sys.platform == "win32":
        import ctypes

        handle = ctypes.windll.kernel32.OpenProcess(0x1000, False, process)  # to ask, not to end it
        if handle:
            ctypes.windll.kernel32.CloseHandle(handle)
        return bool(handle)
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True
