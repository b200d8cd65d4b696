"""Modules that a Python file of a workspace can import, and their public names, read from files: no module is run.

The modules are those of the workspace's folders, of their `src`, of virtual environments in the workspace, and of the
standard library. No other folder is read.
"""

from __future__ import annotations

import io
import os
import re
import sys
import sysconfig
import time
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path

from fim_server.language_support.python.model import Model, unified

LIBRARY = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
"""Folders of the standard library. The interpreter looks first in others, such as the working directory."""

ENCODINGS = re.compile(r"utf-8(?:-sig)?|ascii|us-ascii|iso-8859-\d+|latin-?1|cp125\d|windows-125\d|koi8-[ru]")
"""Encodings of sources in which each character takes its own bytes."""

TEXTS = "|".join(
    rf"{quote * 3}(?:[^\\{quote}]++|\\.|{quote}(?!{quote * 2}))*+(?:{quote * 3}|\Z)"
    rf"|{quote}(?:[^\\\n{quote}]++|\\.)*+{quote}?"
    for quote in "\"'"
)
BLOCK = re.compile(
    r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)"
    rf"(?:[^\"'#\n]++|\#[^\n]*+|{TEXTS}|\n(?=[ \t\f\r\#\n)\]}}]|\Z))*+"
    rf"|\#[^\n]*|{TEXTS}",
    re.MULTILINE | re.DOTALL,
)
"""A definition at the top of a module with its block; or a comment or string, in which there is none."""

ENVIRONMENTS = (".venv", "venv", "env")
"""Folders of a workspace that may hold an environment."""

LOOKED_AT_SECONDS = 10.0
"""Seconds after which a folder is listed again."""

MOST_ENTRIES = 5_000
"""Entries of a folder that are read."""

MOST_BYTES = 400_000
"""Largest module to read, in bytes."""

MOST_REMEMBERED = 256
"""Folders that stay listed, and modules whose names are kept."""


@dataclass
class Modules:
    """The modules of a workspace. Used by one thread.

    Attributes:
        folders: The folders of the workspace.
        read: Reads a file of a folder up to a number of bytes: ``limited_files.read_found``.
    """

    folders: Sequence[Path]
    read: Callable[[Path, int, Path], bytes]
    _listed: dict[Path, tuple[float, frozenset[str]]] = field(default_factory=dict, init=False)
    _public: dict[Path, tuple[tuple[int, int], frozenset[str]]] = field(default_factory=dict, init=False)

    def below(self, name: str, file: Path) -> frozenset[str]:
        """Return the modules and packages of a package.

        Args:
            name: The package with a final dot; only dots for a package of the file; empty for all top-level modules.
            file: The file with the import.
        """
        found = {one for folder in self._folders_of(name, file) for one in self._modules_in(folder)}
        return frozenset(found | sys.stdlib_module_names) if not name else frozenset(found)

    def public(self, name: str, file: Path) -> frozenset[str] | None:
        """Return the public names of a module, with modules inside it; None if it is not found."""
        known = public_names(name) if not name.startswith(".") else None
        if known is not None:
            return known
        found: set[str] | None = None
        for path in self._files_of(name, file):
            names = self._names_of(path)
            found = found if names is None else (found or set()) | names
        inside = self.below(name if name.endswith(".") else f"{name}.", file)
        return frozenset((found or set()) | inside) if found is not None or inside else None

    def at(self, file: Path) -> ModulesAt:
        """Return the modules that a file can import."""
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
        """Return the folders that a package may be, which need not exist."""
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
        """Return the existing files that a module may be."""
        for folder in self._folders_of(name, file):
            for path in (folder / "__init__.py", folder.with_name(folder.name + ".py") if folder.name else folder):
                if path.is_file() and self._is_inside(path):
                    yield path

    def _is_inside(self, path: Path) -> bool:
        """Return whether a path leads into the workspace, also through links."""
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
        """Return the names of a folder's folders, and of its files that may be modules."""
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

    def _names_of(self, path: Path) -> frozenset[str] | None:
        """Return the names that a module's file binds for others; none where it cannot be read or takes too long.

        None for a file that may not be read.
        """
        try:
            status = path.stat()
            stamp = status.st_mtime_ns, status.st_size
            known = self._public.get(path)
            if known is not None and known[0] == stamp:
                return known[1]
            names = names_in(self._text_of(path))
        except PermissionError:
            return None
        except OSError:
            return frozenset()
        if len(self._public) >= MOST_REMEMBERED:
            self._public.clear()
        self._public[path] = stamp, names
        return self._public[path][1]


@dataclass(frozen=True, slots=True)
class ModulesAt:
    """Modules that a file can import."""

    modules: Modules
    file: Path

    def below(self, name: str) -> frozenset[str]:
        """Return the modules of a package."""
        return self.modules.below(name, self.file)

    def public(self, name: str) -> frozenset[str] | None:
        """Return the public names of a module."""
        return self.modules.public(name, self.file)


@lru_cache(maxsize=256)
def public_names(module: str) -> frozenset[str] | None:
    """Return the public names of a module of the standard library; None for any other. Only built-in ones are run."""
    if module.partition(".")[0] not in sys.stdlib_module_names:
        return None
    if module in sys.builtin_module_names:
        return frozenset(name for name in dir(import_module(module)) if not name.startswith("_"))
    path: Sequence[str] = LIBRARY
    spec = None
    for end in range(1, module.count(".") + 2):
        spec = PathFinder.find_spec(".".join(module.split(".")[:end]), path)
        if spec is None:
            return frozenset()
        path = list(spec.submodule_search_locations or ())
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return frozenset()
    try:
        return names_in(Path(spec.origin).read_bytes())
    except OSError:
        return frozenset()


def names_in(source: bytes) -> frozenset[str]:
    """Return the public names that a module's source binds; none if its encoding is wrong."""
    try:
        text = decoded(source)
    except (SyntaxError, ValueError):
        return frozenset()
    names = Model(BLOCK.sub(without_block, text), None).module.bound
    return frozenset(name for name in names if not name.startswith("_"))


def without_block(found: re.Match[str]) -> str:
    """Return a statement that binds the name of a definition; any other text as it is."""
    return found[0] if found[1] is None else f"{found[1]} = 0"


def decoded(source: bytes) -> str:
    """Return the text of a source as Python reads it. Raises SyntaxError and ValueError, also for rare encodings."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    if ENCODINGS.fullmatch(encoding.lower()) is None:
        raise ValueError("an encoding that is not read")
    return unified(source.decode(encoding))
