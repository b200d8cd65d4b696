"""Manifest of a set, and the names of the other files beside it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from pathlib import Path
from typing import Any

from fim_server.errors import DatasetError
from fim_server.language.limited_files import parse_json, read_found


def manifest_path(out: Path) -> Path:
    """Return the path of the manifest of a file of samples."""
    return beside(out, ".manifest.json")


def write_manifest(out: Path, part: Path, fields: dict[str, Any]) -> dict[str, Any]:
    """Finish a set: write the manifest with the SHA-256 of ``part`` and move ``part`` to ``out``. Raises OSError."""
    with part.open("rb") as written:
        os.fsync(written.fileno())
        digest = hashlib.file_digest(written, "sha256").hexdigest()
    manifest = {**fields, "sha256": digest}
    temporary = beside(out, ".manifest.json.part")
    with temporary.open("w", encoding="utf-8") as output:
        json.dump(manifest, output, indent=1)
        output.write("\n")
        output.flush()
        os.fsync(output.fileno())
    temporary.replace(manifest_path(out))
    part.replace(out)
    return manifest


def interpreter() -> str:
    """Return the name and version of the Python that builds, whose `ast.parse` decides what is a file."""
    return f"{platform.python_implementation()} {platform.python_version()}"


def beside(out: Path, suffix: str) -> Path:
    return out.with_name(out.name + suffix)


def finished(out: Path, arguments: dict[str, Any], construction: dict[str, Any]) -> dict[str, Any] | None:
    """Return the manifest of an existing set with these arguments; None if there is no ``out``.

    Raises DatasetError if ``out`` is another set, or differs from its manifest.
    """
    if not out.exists():
        return None
    try:
        manifest: dict[str, Any] = parse_json(read_found(manifest_path(out)))
        with out.open("rb") as written:
            same = manifest["sha256"] == hashlib.file_digest(written, "sha256").hexdigest()
        same = same and manifest["arguments"] == arguments and manifest["construction"] == construction
    except (OSError, ValueError, KeyError, TypeError):
        same = False
    if not same:
        raise DatasetError(f"{out} is there already, and not from these arguments: remove it or name another --out")
    return manifest
