"""Texts that are measured on: the standard library's own sources, a folder's files, or generated documents."""

from __future__ import annotations

import ast
import itertools
import json
import random
import sysconfig
import tokenize
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from benchmarks.engine import json_documents
from fim_server.datasets.judging.cutting import text_of
from fim_server.errors import BenchError
from fim_server.language import Language

SUFFIXES = {"python": (".py",), "json": (".json", ".geojson")}
"""The suffixes of files that are measured; those that a language names, where it is not in here."""

WITHOUT_FOLDER = frozenset(SUFFIXES)
"""The languages that something is measured on where no folder is named."""

SIZES = range(400, 100_000)
"""Characters of the files that are measured; where a folder has none of these, all that are not empty."""


@dataclass(frozen=True)
class Document:
    """A file's text, which its language's own parser takes: CPython's of Python and JSON, the definition of others."""

    name: str
    text: str = field(repr=False)


class Library:
    """The standard library's own sources, without its tests and its tables of characters."""

    SKIPPED = frozenset({"site-packages", "dist-packages", "test", "tests", "idle_test", "encodings", "__pycache__"})

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def paths(self) -> list[Path]:
        """All files, sorted.

        Raises:
            BenchError: There are none.
        """
        found = sorted(
            path
            for path in self.folder.rglob("*.py")
            if not self.SKIPPED.intersection(path.relative_to(self.folder).parts)
        )
        if not found:
            raise BenchError(f"{self.folder}: no sources of the standard library to measure on")
        return found

    @classmethod
    def of_this_interpreter(cls) -> Library:
        """The library that comes with the running interpreter."""
        return cls(Path(sysconfig.get_path("stdlib")))

    def text(self, characters: int) -> str:
        """The first characters of all files in a row."""
        parts: list[str] = []
        missing = characters
        for path in self.paths:
            with suppress(OSError, SyntaxError, UnicodeDecodeError), tokenize.open(path) as file:
                parts.append(file.read(missing))
                missing -= len(parts[-1])
            if missing <= 0:
                break
        return "".join(parts)


def documents(language: str, folder: Path | None, count: int, seed: int) -> Iterator[Document]:
    """Files in random order: a folder's, or the language's default ones.

    Raises:
        BenchError: The folder has none.
    """
    if folder is None and language == "json":
        yield from (
            Document(f"generated {number}", json_documents.document(f"{seed} {number}")) for number in range(count)
        )
        return
    paths = files(language, folder)
    random.Random(f"masks {language} {seed}").shuffle(paths)
    found = (Document(path.name, text) for path in paths if (text := read(language, path)))
    wanted = list(itertools.islice((each for each in found if len(each.text) in SIZES), count))
    if not wanted:
        again = (Document(path.name, text) for path in paths if (text := read(language, path)))
        wanted = list(itertools.islice(again, count))
    if not wanted:
        raise BenchError(f"{folder}: no {language} files to measure on")
    yield from wanted


def files(language: str, folder: Path | None) -> list[Path]:
    """All paths of a language in a folder, sorted; the standard library's if there is none.

    Raises:
        BenchError: No such folder, or none is named for a language that has no default files.
    """
    if folder is None and language not in WITHOUT_FOLDER:
        raise BenchError(f"--corpus: a folder with {language} files is needed, because none come with the package")
    if folder is None:
        return list(Library.of_this_interpreter().paths)
    if not folder.is_dir():
        raise BenchError(f"{folder}: no such folder")
    suffixes = SUFFIXES.get(language) or Language.suffixes_of(language)
    return sorted(path for path in folder.rglob("*") if path.suffix in suffixes and path.is_file())


def read(language: str, path: Path) -> str | None:
    """A file's text; None if its language's own parser, or else the definition, does not take it."""
    if language not in WITHOUT_FOLDER:
        other = text_of(path)
        return other if other is not None and Language.load(language).open(other, "").check("").complete else None
    try:
        if language == "json":
            text = path.read_text(encoding="utf-8")
            json.loads(text, parse_constant=not_json)
            return text
        with tokenize.open(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = file.read()
            ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return text


def not_json(name: str) -> None:
    """Refuses the numbers that Python's reader takes and JSON lacks."""
    raise ValueError(name)
