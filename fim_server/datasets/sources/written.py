"""Code that people wrote, as opposed to what programs made of it: packages of npm hold both.

Minified, bundled, compiled and generated files would fill a set with texts that no author edits. Declarations that a
compiler wrote repeat their module.
"""

from __future__ import annotations

import re

LARGEST = 200_000
"""Most bytes of a file; larger ones are bundles and data."""

LONGEST_LINE = 1_000
"""Most bytes of a line; longer ones are minified, or data."""

HEAD = 2_000
"""Bytes at the beginning of a file, where generators and compilers leave their marks."""

_NAMES = re.compile(r"[.-]min\.\w+$|\.d\.[cm]?ts$")
_FOLDERS = frozenset({"bundles", "dist", "umd", "vendor"})
_MARKS = re.compile(
    rb"@generated|auto-?generated|generated (by|from)|do not edit|__esModule|_interopRequire", re.IGNORECASE
)
_MAP = re.compile(rb"//[#@] sourceMappingURL=[^\n]*\s*\Z")


def is_written(name: str, content: bytes) -> bool:
    """Return whether a file of a package is source code, by its name and its bytes."""
    *folders, last = name.split("/")
    if _NAMES.search(last) or not _FOLDERS.isdisjoint(folders) or len(content) > LARGEST:
        return False
    if _MARKS.search(content[:HEAD]) or _MAP.search(content):
        return False
    return max(map(len, content.split(b"\n"))) <= LONGEST_LINE
