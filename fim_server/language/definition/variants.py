"""Variants of a language: several languages that share one definition, such as one with an extension of its syntax.

They are data, tables `[variants.NAME]` of the TOML file. Markers in both files tell which variants a line holds for; a
marker may name versions as well.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from fim_server.errors import LanguageError

_TABLE = re.compile(r"^\[variants\.(?:\"([^\"\n]+)\"|([\w-]+))\]", re.MULTILINE)

_NAME = re.compile(r"^name *= *[\"'](.*)[\"']", re.MULTILINE)

_MARKER = re.compile(
    r"(?P<sign>//|#) (?P<kind>only|not) (?P<names>[\w.+-]+(?:, [\w.+-]+)*)"
    r"(?P<versions>(?: since \S+)?(?: until \S+)?)\s*$"
)

_OF_ALL = ("name", "variants")
"""Keys that a variant cannot have for itself."""


@dataclass(frozen=True)
class Variants:
    """Variants of one definition.

    Attributes:
        definition: The definition's name, for messages.
        names: Names of the variants, each a language; empty if the definition is one language.
    """

    definition: str
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the variants that a TOML file's text declares; it need not be valid TOML."""
        name = _NAME.search(text)
        return cls(name[1] if name else "(without a name)", tuple(one or other for one, other in _TABLE.findall(text)))

    def chosen(self, name: str | None) -> str | None:
        """Return the variant of a name; None where the definition is one language.

        Raises LanguageError if there is no such variant, or none is named where there are several.
        """
        if name in self.names or (name is None and not self.names):
            return name
        if not self.names:
            raise LanguageError(f"language {self.definition} has no variants ({name!r} was asked for)")
        known = ", ".join(self.names)
        if name is None:
            raise LanguageError(f"language {self.definition} has variants, of which one has to be named: {known}")
        raise LanguageError(f"language {self.definition} has no variant {name!r}; known: {known}")

    def select(self, text: str, name: str | None) -> str:
        """Return a text with the lines emptied that a variant does not have; line numbers stay.

        Raises LanguageError if a marker names an unknown variant.
        """
        if name is None:
            return text
        return "\n".join(self._selected(line, name) for line in text.split("\n"))

    def _selected(self, line: str, name: str) -> str:
        """Return a line without its marker, but for the versions in it; an empty one if the variant lacks the line."""
        marker = _MARKER.search(line)
        if marker is None:
            return line
        names = marker["names"].split(", ")
        for other in names:
            if other not in self.names:
                raise LanguageError(f"language {self.definition}: no variant {other!r}, as in {line.strip()!r}")
        if (name in names) != (marker["kind"] == "only"):
            return ""
        return line[: marker.start()] + (f"{marker['sign']}{marker['versions']}" if marker["versions"] else "")

    def narrowed(self, spec: Mapping[str, Any], name: str | None) -> dict[str, Any]:
        """Return a TOML file's fields with those of a variant in their place, and without the tables of variants.

        Raises LanguageError if a table of a variant is none, or has a key that is for all.
        """
        tables = spec.get("variants", {})
        if not isinstance(tables, dict) or tuple(tables) != self.names:
            raise LanguageError(f"language {self.definition}: variants: each has a table of its own, [variants.NAME]")
        for variant, table in tables.items():
            for key in _OF_ALL:
                if not isinstance(table, dict) or key in table:
                    raise LanguageError(f"language {self.definition}: variants.{variant}.{key}: unknown key")
        own = {} if name is None else {"name": name, **tables[name]}
        return {**{key: value for key, value in spec.items() if key != "variants"}, **own}

    def longer_suffixes(self, spec: Mapping[str, Any], suffixes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the suffixes of variants that end with one of some given suffixes, without those themselves.

        ``spec``: a TOML file's fields, which :meth:`narrowed` takes. A variant's wrong suffixes are left out.
        """
        lists = [table.get("suffixes") for table in spec.get("variants", {}).values()]
        every = [one for own in lists if isinstance(own, list) for one in own if isinstance(one, str)]
        return tuple(one for one in every if one.endswith(suffixes) and one not in suffixes)
