"""Loads that ended their process: after the second one a model is blocked for a while.

Editors restart a crashed server, which loads the same model again. So a process leaves a mark in the cache folder
while a native library reads the files of a foreign model, and removes it afterwards in any case. A mark whose process
is gone is a crash.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fim_server.errors import ModelError
from fim_server.language.cache import cache_folder
from fim_server.system.files import stamp_of
from fim_server.system.other_processes import is_alive

MOST_CRASHES = 2
"""Crashes after which a model is blocked."""

FORGOTTEN_SECONDS = 600.0
"""Age at which a crash no longer counts: its cause may be gone, and an attempt every ten minutes costs little."""

MOST_FILES = 100
"""Files of a folder to look at. A model has some ten; other folders may have more."""

marks: set[Path] = set()
"""Marks of this process."""


@contextmanager
def attempt(name: str, place: Path) -> Iterator[None]:
    """Mark a load of a file or folder by this process. Raises ModelError where such loads ended other processes."""
    cache = cache_folder()
    if cache is None:
        yield
        return
    key = hashlib.sha256(f"{place.absolute()} {stamps_of(place)}".encode(errors="surrogateescape")).hexdigest()[:32]
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
    marks.discard(mark)
    with suppress(OSError):
        mark.unlink(missing_ok=True)


def forget_all() -> None:
    """Remove the marks of this process, which may end in the middle of loading."""
    for mark in list(marks):
        forget(mark)


def crashes(cache: Path, key: str) -> int:
    """Count the processes that ended while loading a model, and remove old marks."""
    found = 0
    with suppress(OSError):
        for mark in cache.glob(f"loading-{key}-*.mark"):
            with suppress(OSError, ValueError):
                if time.time() - mark.stat().st_mtime > FORGOTTEN_SECONDS:
                    mark.unlink(missing_ok=True)
                elif not is_alive(int(mark.stem.rpartition("-")[2])):
                    found += 1
    return found


def stamps_of(place: Path) -> str:
    """Return stamps of a file, or of a folder's files."""
    files = [place] if place.is_file() else sorted([*place.glob("*"), *place.glob("onnx/*")])
    return " ".join(str(stamp_of(path)) for path in files[:MOST_FILES] if path.is_file())
