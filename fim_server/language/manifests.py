"""Bounded reading and parsing of the files that describe a user's project.

Such files come from others. Their size and their shape are limited, so that the parser's time is linear and a keystroke
does not wait for it.
"""

from __future__ import annotations

import re
import stat
import tomllib
from os import PathLike
from pathlib import Path
from typing import Any

from fim_server.language.limited_files import read_found

MOST_BYTES = 1 << 18
"""Most bytes of a file to parse; the largest ones of public projects have 60 kB."""

MOST_PARTS = 32
"""Most parts of a dotted key, because the time of ``tomllib`` is quadratic in them."""

LONGEST_PATH = 4096
"""Most characters of a path whose folders are searched; no system takes longer ones."""

REMEMBERED = 256
"""Manifests to remember, by their stamps."""

_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_\\-]){_PART}(?:[ \t]*+[.][ \t]*+{_PART}){{{MOST_PARTS}}}")
"""Key with too many parts, also inside of a string that is no key."""


def read_manifest(path: str | PathLike[str]) -> str:
    """Return the text of a project's file.

    Raises OSError as :func:`read_found`; a link must not lead out of the file's folder; ValueError if the file is not
    in UTF-8. A byte order mark is left out.
    """
    return read_found(path, MOST_BYTES, Path(path).parent).decode("utf-8-sig")


def stamp_of(file: Path) -> tuple[int, ...] | None:
    """Return times, size and inode of a regular file, which change with its content; None if there is none."""
    try:
        status = file.stat()
    except (OSError, ValueError):
        return None
    is_regular = stat.S_ISREG(status.st_mode)
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino) if is_regular else None


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a text of TOML.

    Raises ValueError if the text is not TOML, is nested too deeply, or has a key of more than :data:`MOST_PARTS` parts.
    """
    if _LONG_KEY.search(text):
        raise ValueError(f"a key of more than {MOST_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
