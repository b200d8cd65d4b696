"""The models that are on this machine, and how fast each was when that was last measured: kept in the cache folder."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fim_server.language.cache import cache_folder
from fim_server.language.limited_files import parse_json, read_found
from fim_server.models.source import EMBEDDED_NAME, locate, names_gguf_model, parts_of
from fim_server.models.store.catalogue import catalogue
from fim_server.models.store.folders import cached_folder, models_folder, size_of, usual_folders
from fim_server.models.store.hub import hub_models

if TYPE_CHECKING:
    from fim_server.evaluation.model_check.speed import Speed

FILE = "model-speeds.json"

MOST_LOOKED_AT, DEEPEST = 2000, 4
"""Entries of such folders, and levels below them, that are looked at."""

TYPING_MS = 1500.0
"""See :data:`.speed.TYPING_MS`."""


@dataclass(frozen=True)
class Here:
    """A model that is on this machine.

    Attributes:
        name: As `--model` takes it.
        place: Its folder or file.
        size: In bytes.
        is_of_hub: Whether it is in the hub's own cache.
    """

    name: str
    place: Path
    size: int
    is_of_hub: bool = False

    @property
    def stamp(self) -> str:
        """Another one once its files are others."""
        files = [self.place] if self.place.is_file() else sorted(self.place.glob("*"))
        newest = max((path.stat().st_mtime_ns for path in files if path.is_file()), default=0)
        return f"{self.size} {newest}"


@dataclass(frozen=True)
class Kept:
    """Measured speed of a model: tokens a second read and written, and milliseconds for a line of code.

    ``is_spoilt``: whether other programs kept the processor busy.
    """

    read: float
    written: float
    line_ms: float
    is_spoilt: bool = False

    @property
    def is_for_typing(self) -> bool:
        """Tell whether a line arrives before the server's deadline."""
        return self.line_ms <= TYPING_MS


def models_here() -> list[Here]:
    """The embedded model, those of the catalogue and of the hub that are in the caches, GGUF files in usual folders."""
    found = [(name, cached_folder(name)) for name in catalogue()]
    with suppress(Exception):  # an installation may have none
        found.append((EMBEDDED_NAME, Path(locate(EMBEDDED_NAME))))
    of_hub = hub_models()
    paths = dict.fromkeys([*gguf_files(), *(path for one in of_hub for path in one.gguf_files)])
    files = [Here(str(path), path, sum(part.stat().st_size for part in parts_of(path))) for path in paths]
    fetched = [Here(one.name, one.folder, one.size, is_of_hub=True) for one in of_hub if one.is_loaded_by_name]
    return [Here(name, folder, size_of(folder)) for name, folder in found if folder is not None] + fetched + files


def gguf_files() -> list[Path]:
    """GGUF files in the cache's folder of models and in the usual folders of others, as far as is looked.

    Those of the catalogue's models have names of their own.
    """
    left, own = iter(range(MOST_LOOKED_AT)), models_folder()
    found = [path for folder in usual_folders() for path in below(folder, DEEPEST, left)]
    of_catalogue = set() if own is None else {own / name for name in catalogue()}
    return [path for path in dict.fromkeys(found) if path.parent not in of_catalogue]


def below(folder: Path, levels: int, left: Iterator[int]) -> Iterator[Path]:
    """The GGUF files in a folder, in its order; of a file in parts the first."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if next(left, None) is None:
            return
        with suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                if levels > 1:
                    yield from below(Path(entry.path), levels - 1, left)
            elif names_gguf_model(entry.name) and entry.is_file():
                yield Path(entry.path)


def machine_name() -> str:
    """Return the machine that figures belong to: its processor and number of cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{platform.machine()} {platform.processor()} {cores}"


def known_speeds(here: Sequence[Here] | None = None) -> dict[str, Kept]:
    """Return the speeds measured on this machine, by model name; empty where the file cannot be read.

    ``here``: the models to look up; None for all that are here.
    """
    cache = cache_folder()
    if cache is None:
        return {}
    try:
        kept = parse_json(read_found(cache / FILE))[machine_name()]
        return {
            one.name: kept_in(kept[one.name])
            for one in (models_here() if here is None else here)
            if one.name in kept and kept[one.name].get("stamp") == one.stamp
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def kept_in(entry: dict[str, Any]) -> Kept:
    """Return the speed in an entry of the file. Raises LookupError, TypeError or ValueError for another entry."""
    read, written, line_ms = (float(entry[part]) for part in ("read", "written", "line_ms"))
    return Kept(read, written, line_ms, bool(entry.get("is_spoilt")))


def keep_speed(one: Here, speed: Kept | Speed, is_spoilt: bool = False) -> None:
    """Keep what was measured of a model; nothing is kept where there is no cache. ``is_spoilt``: see :class:`Kept`."""
    cache = cache_folder()
    if cache is None:
        return
    known: Any = {}
    with suppress(OSError, ValueError):
        known = parse_json(read_found(cache / FILE))
    if not isinstance(known, dict):
        known = {}
    mine = known.get(machine_name())
    known[machine_name()] = {
        **(mine if isinstance(mine, dict) else {}),
        one.name: {
            "stamp": one.stamp,
            "read": speed.read,
            "written": speed.written,
            "line_ms": speed.line_ms,
            "is_spoilt": is_spoilt,
        },
    }
    with suppress(OSError):  # it is measured again then
        cache.mkdir(parents=True, exist_ok=True)
        written = cache / f".{FILE}.{os.getpid()}"
        written.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        written.replace(cache / FILE)


def recommended(here: list[Here], speeds: dict[str, Kept]) -> tuple[str, str] | None:
    """The model to use, and why, in words: of those that are fast enough for typing the largest.

    None where nothing was measured.
    """
    fast = [one for one in here if one.name in speeds and speeds[one.name].is_for_typing]
    if fast:
        best = max(fast, key=lambda one: one.size)
        line = speeds[best.name].line_ms / 1000
        return best.name, f"the largest here that writes a line while the user types ({line:.2f} s)"
    if speeds:
        least = min(speeds, key=lambda name: speeds[name].line_ms)
        return least, f"the fastest here, though a line takes {speeds[least].line_ms / 1000:.1f} s"
    return None
