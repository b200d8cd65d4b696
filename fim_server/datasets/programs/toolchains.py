"""Toolchains of the languages whose programs can be run, as data (toolchains.toml)."""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fim_server.datasets.python.bubblewrap import interpreter

LINKS = 2000
"""Most files of a toolchain's folder that are looked at for links that lead out of it."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Tools of a language; commands contain placeholders (see toolchains.toml)."""

    needs: tuple[str, ...]
    file: str
    run: tuple[str, ...]
    memory_mb: int
    name: str | None = None
    compile: tuple[str, ...] = ()
    classes: str | None = None
    reads: tuple[str, ...] = ()
    home: str | None = None
    libraries: tuple[str, ...] = ()

    def missing(self) -> str | None:
        """Return the first tool that is not installed here."""
        return next((tool for tool in self.needs if shutil.which(tool) is None), None)

    def readable(self) -> tuple[str, ...]:
        """Return the files and folders that its tools read."""
        home = self._values().get("home")
        found = [*self.reads, *([] if home is None else [home, *_leading_out(Path(home))])]
        return tuple(path for path in found if os.path.lexists(path))

    def environment(self) -> dict[str, str]:
        """Return the variables that its tools need; the sandbox has no /proc, where a tool would find its libraries."""
        folders = ":".join(_filled(folder, self._values()) for folder in self.libraries)
        return {"PATH": "/usr/bin:/bin", **({"LD_LIBRARY_PATH": folders} if folders else {})}

    def words(self, command: Sequence[str], program: str) -> list[str]:
        """Return a command for a program; ``{main}`` stays, since only the compiled classes tell it."""
        match = re.search(self.name, program) if self.name else None
        values = {**self._values(), "name": match[1] if match else "Main"}
        return [_filled(word, values) for word in command]

    def _values(self) -> dict[str, str]:
        values = {tool: os.path.realpath(shutil.which(tool) or tool) for tool in self.needs}
        if self.home is not None:
            values["home"] = str(Path(values[self.home]).parents[1])
        return {"python": interpreter(), **values}


def _filled(word: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def _leading_out(home: Path) -> list[str]:
    """Return the folders outside of a tool's own that links in its settings lead to (Debian has them in /etc)."""
    found: dict[str, None] = {}
    for number, path in enumerate(home.glob("conf/**/*")):
        if number >= LINKS:
            break
        if path.is_symlink() and path.exists() and home not in (target := path.resolve()).parents:
            found[str(target.parent)] = None
    return list(found)


@cache
def toolchains() -> dict[str, Toolchain]:
    """Return the toolchains by language."""
    table = tomllib.loads(Path(__file__).with_name("toolchains.toml").read_text(encoding="utf-8"))
    return {language: Toolchain(**_row(row)) for language, row in table.items()}


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
