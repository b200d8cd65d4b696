"""Files of one variant that another one reads in some projects: `.js` files with JSX, where a dependency reads JSX."""

import json
import logging
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from fim_server.errors import LanguageError
from fim_server.language.manifests import LONGEST_PATH, REMEMBERED, read_manifest, stamp_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Adopted:
    """Files that a variant takes from another one, by the nearest project's file upward.

    Attributes:
        suffixes: Suffixes of the files.
        file: Name of the project's file, in JSON.
        keys: Keys of its tables of dependencies.
        names: Dependencies of which one has to be there.
    """

    suffixes: tuple[str, ...]
    file: str
    keys: tuple[str, ...]
    names: frozenset[str]

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Self | None:
        """Read the optional table `adopts` of a language.

        Raises LanguageError if the table lacks a field, or a field has the wrong type.
        """
        table = spec.get("adopts")
        if table is None:
            return None
        try:
            lists = [table[key] for key in ("suffixes", "keys", "names")]
            if set(table) != {"suffixes", "file", "keys", "names"} or not isinstance(table["file"], str):
                raise TypeError("suffixes, file, keys and names expected")
            if not all(isinstance(one, list) and all(isinstance(text, str) for text in one) for one in lists):
                raise TypeError("lists of texts expected")
        except (AttributeError, KeyError, TypeError) as error:
            raise LanguageError(f"language {spec.get('name')}: adopts: {error}") from error
        suffixes, keys, names = lists
        return cls(tuple(suffixes), table["file"], tuple(keys), frozenset(names))

    def as_spec(self) -> dict[str, Any]:
        """Return the table that :meth:`from_spec` reads."""
        return {
            "suffixes": list(self.suffixes),
            "file": self.file,
            "keys": list(self.keys),
            "names": sorted(self.names),
        }

    def adopts(self, path: Path) -> bool:
        """Return whether a file is one of these, as the project's nearest file tells."""
        absolute = path.absolute()
        if not path.name.endswith(self.suffixes) or len(os.fspath(absolute)) > LONGEST_PATH:
            return False
        for folder in absolute.parents:
            file = folder / self.file
            stamp = stamp_of(file)
            if stamp is not None:
                return _depends(self, os.fspath(file), stamp)
        return False


@lru_cache(REMEMBERED)
def _depends(adopted: Adopted, path: str, stamp: tuple[int, ...]) -> bool:
    """Return whether a project's file has one of the dependencies, read once for each stamp; log an unfit file."""
    try:
        told = json.loads(read_manifest(path))
        tables = [told.get(key) for key in adopted.keys] if isinstance(told, dict) else []
        return any(isinstance(table, dict) and not adopted.names.isdisjoint(table) for table in tables)
    except OSError as error:
        reason = error.strerror
    except (ValueError, RecursionError) as error:
        reason = str(error) or "nested too deeply"
    logger.warning("%r: %.200s; the suffix alone tells the language", path, reason)
    return False
