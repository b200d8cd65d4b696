"""Checksums of the files of a model in a cache, since files that are there may be damaged.

A model that is built here has a manifest in its folder, written before the folder gets its name: each file's size and
SHA-256. Hashing 410 MB at every start would take 0.4 s on an idle core, 4 s on a busy one, and longer from a cold disk.
So hashed files are stamped with size, times and number. Every write through the file system changes one of these,
because the time of change cannot be set.

A file is hashed where its stamp differs, where loading has failed, and where the user asks for the model. Checking
stamps takes 0.5 ms. Files of the hub's cache have their checksum as the name of their blob: SHA-256, or git's for small
ones.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fim_server.language.cache import cache_folder, checksummed, read_text, write_text
from fim_server.system.files import Stamp, stamp_of

MANIFEST, STAMPS = "manifest.json", "verified.json"

FRESH = ".manifest.json.new"
"""Name of a manifest while it is written."""

BLOB = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""Name of a file in the hub's cache: a checksum of git's, or SHA-256."""

CHUNK = 1 << 20

NOTHING_KNOWN: Mapping[str, str] = {}


@dataclass(frozen=True)
class Expected:
    """Expected content of a file.

    Attributes:
        digest: SHA-256 in 64 hexadecimal digits, or git's SHA-1 of a blob in 40.
        size: In bytes; None where only the digest says it.
    """

    digest: str
    size: int | None = None


verdicts: dict[Path, tuple[object, str | None]] = {}
"""Latest results and their stamps, by folder, so that a damaged file is not hashed again and again."""


def write_manifest(
    folder: Path, known: Mapping[str, str] = NOTHING_KNOWN, source: str | None = None, without: Collection[str] = ()
) -> None:
    """Write the manifest of a folder that is complete, and the stamps of its files. Raises OSError.

    An existing manifest is replaced at once, since other processes may read it.

    Args:
        folder: The folder.
        known: SHA-256 of files that have been checked.
        source: Origin of the files, for users.
        without: Names of files that the caller is about to remove.
    """
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    described = {
        name: {"size": path.stat().st_size, "sha256": known.get(name) or digest_of(path, Expected("0" * 64))}
        for name, path in files.items()
        if name not in (MANIFEST, STAMPS, FRESH, *without)
    }
    content = {"files": described} if source is None else {"source": source, "files": described}
    fresh = folder / FRESH
    try:
        fresh.write_bytes(checksummed(json.dumps(content, indent=1)))
        fresh.replace(folder / MANIFEST)
    finally:
        fresh.unlink(missing_ok=True)
    keep_stamps(folder / STAMPS, {name: stamp_of(folder / name) for name in described})


def has_manifest(folder: Path) -> bool:
    """Return whether a folder has a manifest, whole or not."""
    return os.path.lexists(folder / MANIFEST)


def damage_of(folder: Path, thorough: bool = False) -> str | None:
    """Return the damage of a folder's files in a few words; None for none, or without a manifest.

    ``thorough``: hash files also where their stamps are unchanged.
    """
    if not has_manifest(folder):
        return None
    try:
        described = json.loads(read_text(folder / MANIFEST) or "")["files"]
        files = {str(name): Expected(row["sha256"], row["size"]) for name, row in described.items()}
    except (ValueError, LookupError, TypeError, AttributeError):
        return f"{MANIFEST} is damaged"
    return first_damage(folder, files, folder / STAMPS, thorough)


def hub_damage_of(folder: Path, names: list[str]) -> str | None:
    """Return the damage of files that match some patterns in a snapshot of the hub's cache; None for none."""
    files = {}
    for name in names:
        for path in folder.glob(name):
            blob = path.readlink().name if path.is_symlink() else ""
            if BLOB.fullmatch(blob):
                files[path.name] = Expected(blob)
    cache = cache_folder()
    key = hashlib.sha256(os.fsencode(folder.absolute())).hexdigest()[:32]
    return first_damage(folder, files, None if cache is None else cache / f"hub-{key}.json")


def first_damage(
    folder: Path, files: Mapping[str, Expected], stamps: Path | None, thorough: bool = False
) -> str | None:
    """Return the damage of the first file that differs from its expected content."""
    known, now = read_stamps(stamps), dict[str, Stamp]()
    for name, wanted in files.items():
        try:
            found = (folder / name).stat()
        except FileNotFoundError:
            return f"{name} is missing"
        except OSError as error:
            return f"{name}: {(error.strerror or str(error)).lower()}"
        if not stat.S_ISREG(found.st_mode):
            return f"{name} is no file"
        if wanted.size is not None and found.st_size != wanted.size:
            return f"{name} has {found.st_size:,} bytes, not {wanted.size:,}"
        if not os.access(folder / name, os.R_OK):
            return f"{name} may not be read"
        now[name] = stamp_of(folder / name)
    before, problem = verdicts.get(folder, (None, None))
    if not thorough and (before == now or known == now):
        return problem if before == now else None
    problem = None
    for name, wanted in files.items():
        if thorough or known.get(name) != now[name]:
            try:
                is_right = digest_of(folder / name, wanted) == wanted.digest
            except OSError as error:
                problem = f"{name}: {(error.strerror or str(error)).lower()}"
                break
            if not is_right:
                problem = f"{name} is not what was {'installed' if wanted.size is not None else 'fetched'}"
                break
    verdicts[folder] = now, problem
    if problem is None and known != now and stamps is not None:
        keep_stamps(stamps, now)
    return problem


def read_stamps(path: Path | None) -> dict[str, Stamp]:
    """Return the kept stamps; none where they are missing or damaged."""
    text = None if path is None else read_text(path)
    if text is None:
        return {}
    try:
        kept: Any = json.loads(text)
    except ValueError:
        return {}
    return kept if isinstance(kept, dict) else {}


def keep_stamps(path: Path, stamps: Mapping[str, Stamp]) -> None:
    """Keep stamps; where that fails, the files are hashed again next time."""
    write_text(path, json.dumps(stamps))


def digest_of(path: Path, wanted: Expected) -> str:
    """Return a file's checksum of the wanted kind. Raises OSError."""
    with path.open("rb") as file:
        if len(wanted.digest) == 64:
            return hashlib.file_digest(file, "sha256").hexdigest()
        digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
        while chunk := file.read(CHUNK):
            digest.update(chunk)
        return digest.hexdigest()
