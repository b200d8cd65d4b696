"""Notes and checksums of a release."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from release.running import ReleaseError

NOTES, CHECKSUMS = "notes.md", "SHA256SUMS"


def version_of(root: Path) -> str:
    """Return the version that the crates and the extension carry.

    Raises:
        ReleaseError: They differ.
    """
    crates = tomllib.loads((root / "rust_core" / "Cargo.toml").read_text(encoding="utf-8"))
    extension = json.loads((root / "vscode-extension" / "package.json").read_text(encoding="utf-8"))
    version, other = str(crates["workspace"]["package"]["version"]), str(extension["version"])
    if version != other:
        raise ReleaseError(f"the crates have version {version}, the extension has {other}")
    return version


def notes_of(changelog: str, version: str) -> str:
    """Return the part of a changelog on a version; before its release, the part *Unreleased*.

    Raises:
        ReleaseError: There is none.

    >>> notes_of("# Changelog\\n\\n## Unreleased\\n\\n- One.\\n\\n## 0.1.0\\n\\n- Two.\\n", "0.2.0")
    '- One.\\n'
    """
    sections = re.split(r"^## +", changelog, flags=re.MULTILINE)[1:]
    for wanted in (version, "Unreleased"):
        for section in sections:
            title, _, text = section.partition("\n")
            if re.match(rf"\[?{re.escape(wanted)}(?![\w.])", title):
                return text.strip() + "\n"
    raise ReleaseError(f"the changelog has no part on {version}, nor an unreleased one")


def write_checksums(files: Iterable[Path], out: Path) -> Path:
    """Write the SHA-256 of files, as ``sha256sum --check`` reads them."""
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(files)]
    path = out / CHECKSUMS
    path.write_text("".join(lines), encoding="ascii")
    return path
