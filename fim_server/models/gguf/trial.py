"""Trial of a GGUF file in a process of its own, because llama.cpp ends its process at some files.

The trial loads the file and makes a pass. The cache folder keeps its verdict by a checksum of the header and the file's
stamp, so that a file is tried once (0.5 s for a small one). Weights behind the header end no process, since every
number is a weight.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from fim_server.errors import ModelError
from fim_server.language.cache import cache_folder, read_text, write_text
from fim_server.language.stop import heed
from fim_server.models.gguf.header import check_header
from fim_server.models.gguf.library import library_file
from fim_server.models.source import parts_of
from fim_server.system.files import stamp_of

COMMAND = (sys.executable, "-P", "-m", "fim_server.models.gguf")
"""Isolated start: without -P, Python could run a file of the current folder."""

NO_BACKTRACE = {"GGML_NO_BACKTRACE": "1"}
"""Setting that keeps the library from starting a debugger when it fails."""

VERSION = 1
"""Version of the trial; raise it where the trial finds more faults."""

HEAD_BYTES = 1 << 24
"""Bytes of a file's beginning, which has its header; the largest headers have 10 MB."""

LEAST_SECONDS, BYTES_A_SECOND = 120.0, 20_000_000
"""Least time for a trial, and the slowest disk that it allows for."""

LOOK_SECONDS = 0.02

LONGEST_REASON = 160

ENDED_BY_OTHERS = (1, 2, 9, 15)
"""Signals from outside: hang-up, interrupt, kill, terminate."""

ABORTED_ON_WINDOWS = 3

known: dict[str, str | None] = {}
"""Verdicts of this process by checksum, for users without a cache: None, or the fault."""


@dataclass(frozen=True)
class Tried:
    """Model to try.

    Attributes:
        path: The file; of one in parts the first.
        gpu_layers: Layers that a GPU computes.
        adapter: Another GGUF file.
        vocabulary: Whether only its tokens are needed.
    """

    path: str
    gpu_layers: int = 0
    adapter: str | None = None
    vocabulary: bool = False

    @property
    def files(self) -> list[Path]:
        return [*parts_of(Path(self.path)), *([] if self.adapter is None else [Path(self.adapter)])]


def require_sound(tried: Tried) -> None:
    """Return if llama.cpp can load a file without harm, by an earlier trial or a new one.

    Raises:
        ModelError: The header is invalid, or the trial failed or ended its process; one line.
        StoppedError: A stop of the thread was set.
    """
    try:
        key = checksum_of(tried)
    except OSError as error:
        raise ModelError(f"{tried.path}: cannot be read ({(error.strerror or str(error)).lower()})") from None
    problem = remembered(key)
    if problem is UNKNOWN:
        for file in tried.files:
            check_header(file, "the adapter" if str(file) == tried.adapter else "it")
        problem = verdict_of(tried)
        remember(key, problem)
    if problem is not None:
        raise ModelError(f"{tried.path}: {problem}")


UNKNOWN = "?"
"""Mark of a missing verdict."""


def remembered(key: str) -> str | None:
    """Return the known verdict: None for a sound file, the fault of another, or :data:`UNKNOWN`."""
    place = place_of(key)
    if key not in known and place is not None:
        with suppress(ValueError, LookupError, TypeError):
            problem = json.loads(read_text(place) or "")["problem"]
            if problem is None or isinstance(problem, str):
                known[key] = problem
    return known.get(key, UNKNOWN)


def remember(key: str, problem: str | None) -> None:
    known[key] = problem
    place = place_of(key)
    if place is not None:
        write_text(place, json.dumps({"problem": problem}))


def place_of(key: str) -> Path | None:
    """Return the path of a verdict; None where the user wants no cache."""
    cache = cache_folder()
    return None if cache is None else cache / f"gguf-{key}.trial"


def checksum_of(tried: Tried) -> str:
    """Return a checksum of the model and the library. Raises OSError, and ModelError where there is no library."""
    digest = hashlib.sha256(json.dumps({**asdict(tried), "version": VERSION}).encode())
    digest.update(str(stamp_of(library_file())).encode())
    for file in tried.files:
        digest.update(str(stamp_of(file)).encode())
        with file.open("rb") as opened:
            digest.update(opened.read(HEAD_BYTES))
    return digest.hexdigest()[:32]


def verdict_of(tried: Tried) -> str | None:
    """Try a file and return its fault, or None. Raises ModelError where the trial itself fails."""
    until = time.monotonic() + LEAST_SECONDS + sum(file.stat().st_size for file in tried.files) / BYTES_A_SECOND
    with tempfile.TemporaryFile() as answered, tempfile.TemporaryFile() as complained:
        try:
            process = subprocess.Popen(
                [*COMMAND, json.dumps(asdict(tried))],
                stdin=subprocess.DEVNULL,
                stdout=answered,
                stderr=complained,
                env={**os.environ, **NO_BACKTRACE},
            )
        except OSError as error:
            raise ModelError(f"{tried.path}: cannot be tried ({error.strerror or error})") from None
        try:
            while process.poll() is None:
                heed()
                if time.monotonic() > until:
                    raise ModelError(f"{tried.path}: llama.cpp has not loaded it within {LEAST_SECONDS:.0f} s")
                time.sleep(LOOK_SECONDS)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        with suppress(ValueError, LookupError, TypeError):
            answer: dict[str, Any] = json.loads(beginning_of(answered))
            return None if answer["problem"] is None else str(answer["problem"])
        reason = reason_of(process.returncode, beginning_of(complained))
    if is_crash(process.returncode):
        return f"llama.cpp ends the process that loads it ({reason})"
    # Python's own errors, and processes that the system or a person ended: another trial may succeed.
    raise ModelError(f"{tried.path}: cannot be tried ({reason})")


def is_crash(status: int) -> bool:
    """Return whether a process with that exit status ended itself: by a signal, or by a status of Windows."""
    return (status < 0 and -status not in ENDED_BY_OTHERS) or status == ABORTED_ON_WINDOWS or status > 255


def beginning_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(1 << 16).decode(errors="replace")


def reason_of(status: int, complaint: str) -> str:
    """Return the reason for a process's end, in a few words."""
    lines = [line.strip() for line in complaint.splitlines()]
    chosen = next((line for line in lines if "ASSERT" in line or "what():" in line), "")
    if status == 1 and lines:
        chosen = lines[-1]
    words = chosen.rpartition("/")[2] or (f"signal {-status}" if status < 0 else f"status {status}")
    return "".join(letter if letter.isprintable() else "?" for letter in words[:LONGEST_REASON])
