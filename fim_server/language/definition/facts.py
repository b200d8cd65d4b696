"""Facts of the package's languages that need no grammar: whose files they are, and how those are read.

Reading all definitions takes 0.1 s, so the facts are kept in the cache folder.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

from fim_server.errors import LanguageError
from fim_server.language.cache import cache_folder, read_text, write_text
from fim_server.language.definition import compile as grammar
from fim_server.language.definition.adopting import Adopted
from fim_server.language.definition.sources import read_source
from fim_server.language.encodings import Declaration


@dataclass(frozen=True)
class Facts:
    """Facts of a language; the fields are those of :class:`.compile.Definition`."""

    suffixes: tuple[str, ...]
    editor_ids: tuple[str, ...]
    keeps_returns: bool
    encoding: Declaration | None
    adopted: Adopted | None

    @classmethod
    def of(cls, definition: grammar.Definition) -> Self:
        return cls(
            definition.suffixes,
            definition.editor_ids,
            definition.keeps_returns,
            definition.encoding,
            definition.adopted,
        )

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Self:
        """Read what :meth:`as_json` returned. Raises LanguageError or an error of Python's for other data."""
        return cls(
            tuple(map(str, kept["suffixes"])),
            tuple(map(str, kept["editor_ids"])),
            bool(kept["keeps_returns"]),
            Declaration.from_spec(kept),
            Adopted.from_spec(kept),
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "suffixes": self.suffixes,
            "editor_ids": self.editor_ids,
            "keeps_returns": self.keeps_returns,
            "encoding": None if self.encoding is None else self.encoding.as_spec(),
            "adopts": None if self.adopted is None else self.adopted.as_spec(),
        }


def facts_of(name: str) -> Facts:
    """Return the facts of a language of the package. Raises LanguageError if there is no such language."""
    grammar.builtin_variant(name)
    return _facts()[name]


@cache
def editor_names() -> dict[str, str]:
    """Return the languages of the package by the names that editors have for them, beside their own."""
    return {other: name for name, facts in _facts().items() for other in facts.editor_ids}


@cache
def _facts() -> dict[str, Facts]:
    """Return the facts of all languages by name, from the cache folder if their files are unchanged."""
    names, folder = grammar.names(), cache_folder()
    path = None if folder is None else folder / f"languages-{_digest(names)}.json"
    kept = None if path is None else read_text(path)
    if kept is not None:
        try:
            table = json.loads(kept)
            return {name: Facts.from_json(table[name]) for name in names}
        except (AttributeError, KeyError, LanguageError, RecursionError, TypeError, ValueError):  # forged
            pass
    found = {name: Facts.of(grammar.read_builtin(name)) for name in names}
    if path is not None:
        write_text(path, json.dumps({name: facts.as_json() for name, facts in found.items()}))
    return found


def _digest(names: list[str]) -> str:
    """Return a hash of all TOML files and of the code that reads them."""
    texts = [read_source(path) for path in sorted({grammar.builtin_files(name)[1] for name in names})]
    return hashlib.sha256(json.dumps([grammar.hash_of_lowering(), names, texts]).encode()).hexdigest()[:32]
