"""Which modules there are for a Python file of a workspace, and what they have for others: by files, none is run.

Modules are those of the workspace's folders and of their `src`, of virtual environments inside of the workspace, and of
the standard library. Nothing else on the disk is looked at, and of an environment's packages only the names.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fim_server.language_support.python.imports import names_in, public_names

ENVIRONMENTS = (".venv", "venv", "env")
"""Folders of a workspace that an environment may be in."""

LOOKED_AT_SECONDS = 10.0
"""How long it is remembered what a folder holds."""

MOST_ENTRIES = 5_000
"""Of a folder."""

MOST_BYTES = 400_000
"""Largest module to read, in bytes."""

MOST_REMEMBERED = 256
"""Folders, and modules."""


@dataclass
class Modules:
    """The modules of a workspace. Used by one thread.

    Attributes:
        folders: The workspace's.
        read: Reads a file of a folder up to a number of bytes: ``limited_files.read_found``.
    """

    folders: Sequence[Path]
    read: Callable[[Path, int, Path], bytes]
    _listed: dict[Path, tuple[float, frozenset[str]]] = field(default_factory=dict, init=False)
    _public: dict[Path, tuple[tuple[int, int], frozenset[str]]] = field(default_factory=dict, init=False)

    def below(self, name: str, file: Path) -> frozenset[str]:
        """What modules and packages a package has.

        Args:
            name: Of the package, with a dot behind it; dots alone are packages of the file's; empty: what can be
                imported by one word.
            file: That the import stands in.
        """
        found = {one for folder in self._folders_of(name, file) for one in self._modules_in(folder)}
        return frozenset(found | sys.stdlib_module_names) if not name else frozenset(found)

    def public(self, name: str, file: Path) -> frozenset[str] | None:
        """What a module has for others, with modules inside of it; None where it is not found."""
        known = public_names(name) if not name.startswith(".") else None
        if known is not None:
            return known
        found: set[str] | None = None
        for path in self._files_of(name, file):
            found = (found or set()) | self._names_of(path)
        inside = self.below(name if name.endswith(".") else f"{name}.", file)
        return frozenset((found or set()) | inside) if found is not None or inside else None

    def at(self, file: Path) -> ModulesAt:
        """What there is for a file."""
        return ModulesAt(self, file)

    def _roots(self) -> Iterator[Path]:
        for folder in self.folders:
            yield folder
            yield folder / "src"
            for environment in ENVIRONMENTS:
                library = folder / environment / "lib"
                yield from (
                    library / one / "site-packages" for one in self._entries(library) if one.startswith("python")
                )
                yield folder / environment / "Lib" / "site-packages"

    def _folders_of(self, name: str, file: Path) -> Iterator[Path]:
        """The folders that a package may be, which need not exist."""
        bare = name.lstrip(".")
        inner = [part for part in bare.split(".") if part]
        dots = len(name) - len(bare)
        if dots:
            base = file
            for _ in range(dots):
                base = base.parent
            if any(base == folder or folder in base.parents for folder in self.folders):
                yield base.joinpath(*inner)
            return
        for root in self._roots():
            yield root.joinpath(*inner)

    def _files_of(self, name: str, file: Path) -> Iterator[Path]:
        """The files that a module may be, as far as they exist."""
        for folder in self._folders_of(name, file):
            for path in (folder / "__init__.py", folder.with_name(folder.name + ".py") if folder.name else folder):
                if path.is_file() and self._is_inside(path):
                    yield path

    def _is_inside(self, path: Path) -> bool:
        """Whether a path is of the workspace, wherever links lead."""
        try:
            return any(path.resolve().is_relative_to(folder.resolve()) for folder in self.folders)
        except (OSError, RuntimeError):  # a cycle of links
            return False

    def _text_of(self, path: Path) -> bytes:
        """Read a module of the workspace. Raises OSError for another kind of file, or one that is too long."""
        folder = next((folder for folder in self.folders if path.is_relative_to(folder)), path.parent)
        return self.read(path, MOST_BYTES, folder)

    def _modules_in(self, folder: Path) -> Iterator[str]:
        for entry in self._entries(folder):
            name, dot, suffix = entry.partition(".")
            is_module = not dot or suffix in ("py", "pyi") or suffix.endswith(("so", "pyd"))
            if is_module and name.isidentifier() and name not in ("__init__", "__pycache__"):
                yield name

    def _entries(self, folder: Path) -> frozenset[str]:
        """The names of a folder's entries: of its folders, and of its files that may be modules."""
        listed = self._listed.get(folder)
        if listed is not None and time.monotonic() - listed[0] < LOOKED_AT_SECONDS:
            return listed[1]
        found = set()
        try:
            if not self._is_inside(folder):
                return frozenset()
            with os.scandir(folder) as entries:
                for number, entry in enumerate(entries):
                    if number >= MOST_ENTRIES:
                        break
                    if entry.name.endswith((".py", ".pyi", ".so", ".pyd")) or entry.is_dir():
                        found.add(entry.name)
        except OSError:
            pass
        if len(self._listed) >= MOST_REMEMBERED:
            self._listed.clear()
        self._listed[folder] = time.monotonic(), frozenset(found)
        return self._listed[folder][1]

    def _names_of(self, path: Path) -> frozenset[str]:
        """Return the names that a module's file binds for others; none where it cannot be read or takes too long."""
        try:
            status = path.stat()
            stamp = status.st_mtime_ns, status.st_size
            known = self._public.get(path)
            if known is not None and known[0] == stamp:
                return known[1]
            names = names_in(self._text_of(path))
        except OSError:
            return frozenset()
        if len(self._public) >= MOST_REMEMBERED:
            self._public.clear()
        self._public[path] = stamp, names
        return self._public[path][1]


@dataclass(frozen=True, slots=True)
class ModulesAt:
    """The modules there are for a file."""

    modules: Modules
    file: Path

    def below(self, name: str) -> frozenset[str]:
        """As :meth:`Modules.below`."""
        return self.modules.below(name, self.file)

    def public(self, name: str) -> frozenset[str] | None:
        """As :meth:`Modules.public`."""
        return self.modules.public(name, self.file)
