"""Bounds of versions in a project's file: specifiers of PEP 440, and constraints of Poetry (`^3.9`, `~3.11`)."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

_REMEMBERED = 256
"""Texts whose oldest version is remembered."""

_PATCHES = 100
"""Patch releases tried of each version: no known language has had so many of one."""

_ALTERNATIVES = re.compile(r"\|\|?")
_BLANKS_IN_CONSTRAINT = re.compile(r"(?<=[\^~=!<>])\s+")
_BETWEEN_CONSTRAINTS = re.compile(r"\s*,\s*|\s+")
_CONSTRAINT = re.compile(
    r"(?P<operator>\^|~=?|={1,3}|!=|[<>]=?|)"
    r"v?(?P<release>\d+(?:\.\d+)*)(?:(?P<wildcard>(?:\.[xX*])+)|(?P<suffix>[-+.\w]*))"
)


@lru_cache(_REMEMBERED)
def oldest(known: tuple[str, ...], text: str) -> str | None:
    """Return the oldest known version that bounds such as `>=3.11.4,<4` or `^3.11` admit; None if they admit none.

    A version is admitted if one of its patch releases is: to the grammar they are all alike. Broken bounds admit none.
    """
    alternatives = _alternatives(text)
    for version in known:
        releases = [f"{version}.{patch}" for patch in range(_PATCHES)]
        for specifiers in alternatives:
            if any(specifiers.contains(release, prereleases=True) for release in releases):
                return version
    return None


def _alternatives(text: str) -> "list[SpecifierSet]":
    """Return the specifiers of which a version has to fulfil one; none for broken bounds."""
    # Only needed where a project says something.
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return [SpecifierSet(text)]
    except InvalidSpecifier:
        pass
    try:
        return [SpecifierSet(",".join(_specifiers(one))) for one in _ALTERNATIVES.split(text)]
    except ValueError:  # of which InvalidSpecifier is one
        return []


def _specifiers(constraints: str) -> Iterator[str]:
    """Return Poetry's constraints, separated by commas or blanks, as specifiers.

    Raises ValueError if one is broken.
    """
    for text in _BETWEEN_CONSTRAINTS.split(_BLANKS_IN_CONSTRAINT.sub("", constraints.strip())):
        found = _CONSTRAINT.fullmatch(text)
        if text == "*":
            continue
        if found is None:
            raise ValueError(f"{text!r} is no constraint")
        operator, release, suffix = found["operator"], found["release"], found["suffix"] or ""
        if found["wildcard"]:
            yield f"{'==' if operator in ('', '=') else operator}{release}.*"
        elif operator in ("^", "~"):
            yield f">={release}{suffix}"
            yield f"<{_next(operator, [int(number) for number in release.split('.')])}"
        else:
            yield f"{'==' if operator in ('', '=') else operator}{release}{suffix}"


def _next(operator: str, release: list[int]) -> str:
    """Return the first release beyond `^` (its first part that is not 0 may not change) or `~` (its minor part)."""
    if operator == "~":
        at = min(1, len(release) - 1)
    else:
        at = next((number for number, part in enumerate(release) if part), len(release) - 1)
    return ".".join(map(str, (*release[:at], release[at] + 1)))
