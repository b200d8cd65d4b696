"""Encodings of source files, as languages let files declare them.

The table `[encoding]` of a language's TOML file describes the declaration. Files without a declaration, and files of
languages without the table, are in UTF-8.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from fim_server.errors import FimServerError, LanguageError

UTF8 = "utf-8"

_SIGNATURE = codecs.BOM_UTF8
_OTHER_SIGNATURES = ((codecs.BOM_UTF16_LE, "UTF-16"), (codecs.BOM_UTF16_BE, "UTF-16"))
_LINE_BREAK = re.compile(rb"\r\n|\r|\n")
_SHOWN = 40
"""Characters of an encoding's name in a message."""


class EncodingError(FimServerError):
    """Bytes that cannot be decoded, described in one line without the file's name."""


@dataclass(frozen=True)
class Declaration:
    """Rule by which files of a language declare their encoding.

    Attributes:
        pattern: Pattern of the declaring line, with the encoding's name as its group.
        lines: Number of lines to search, from the first one on.
        before: Pattern of the lines above the declaration.
        suffixed: Names by their encoding; with a hyphen and any text after it, each names the same encoding.
    """

    pattern: re.Pattern[bytes]
    lines: int
    before: re.Pattern[bytes]
    suffixed: Mapping[str, tuple[str, ...]]

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Self | None:
        """Read the optional table `[encoding]` of a language.

        Raises LanguageError if the table lacks a field, or a field is wrong.
        """
        table = spec.get("encoding")
        if table is None:
            return None
        try:
            found = cls(
                re.compile(table["declaration"].encode("ascii")),
                int(table["lines"]),
                re.compile(table["before"].encode("ascii")),
                {str(encoding): tuple(map(str, names)) for encoding, names in table.get("suffixed", {}).items()},
            )
        except (AttributeError, KeyError, TypeError, ValueError, re.error) as error:
            raise LanguageError(f"language {spec.get('name')}: [encoding] is incomplete: {error}") from error
        if found.pattern.groups != 1:
            raise LanguageError(f"language {spec.get('name')}: encoding.declaration: one group was expected")
        return found

    def as_spec(self) -> dict[str, Any]:
        """Return the table that :meth:`from_spec` reads."""
        return {
            "declaration": self.pattern.pattern.decode("ascii"),
            "lines": self.lines,
            "before": self.before.pattern.decode("ascii"),
            "suffixed": {encoding: list(names) for encoding, names in self.suffixed.items()},
        }

    def find(self, data: bytes) -> tuple[str, int] | None:
        """Return the encoding that a file declares and the offset after that line; None without a declaration."""
        start = len(_SIGNATURE) if data.startswith(_SIGNATURE) else 0
        for _ in range(self.lines):
            found = _LINE_BREAK.search(data, start)
            end = len(data) if found is None else found.start()
            line = data[start:end]
            if named := self.pattern.match(line):
                return named[1].decode("ascii", "replace"), end
            if found is None or not self.before.match(line):
                return None
            start = found.end()
        return None

    def encoding_of(self, name: str) -> str:
        """Return the encoding that a declared name means: another name for suffixed ones."""
        plain = _plain(name)
        for encoding, names in self.suffixed.items():
            if plain in names or plain.startswith(tuple(f"{one}-" for one in names)):
                return encoding
        return UTF8 if plain == UTF8 else name


def decode(data: bytes, declaration: Declaration | None = None) -> str:
    """Decode a file of a language that declares encodings like this, without the byte order mark.

    Raises EncodingError if the file is not in the encoding that it declares (UTF-8 without a declaration), or there is
    no such encoding for sources.
    """
    for signature, name in _OTHER_SIGNATURES:
        if data.startswith(signature):
            raise EncodingError(f"in {name}, not UTF-8")
    declared = declaration.find(data) if declaration is not None else None
    signed = data.startswith(_SIGNATURE)
    if declared is None:
        return _decoded(data[len(_SIGNATURE) :] if signed else data, UTF8, len(_SIGNATURE) * signed)
    written, end = declared
    assert declaration is not None, "it found the name"
    name, shown = declaration.encoding_of(written), written[:_SHOWN]
    if name == UTF8:
        return _decoded(data[len(_SIGNATURE) :] if signed else data, UTF8, len(_SIGNATURE) * signed)
    if signed:
        raise EncodingError(f"begins with the byte order mark of UTF-8 and declares {shown}")
    try:
        codec = codecs.lookup(name)
        # A codec from bytes to bytes, or from text to text, is no encoding: `bytes.decode` refuses it.
        head = data[:end].decode(name)
    except (LookupError, ValueError):
        raise EncodingError(_refusal(name, shown)) from None
    found = declaration.find(head.encode("utf-8", "replace"))
    if found is None or found[0] != written:
        # The declaration could not have been read in this encoding, UTF-16 for example.
        raise EncodingError(f"declares {shown}, an encoding that source files cannot have")
    return _decoded(data, codec.name, 0, shown)


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def _refusal(name: str, shown: str) -> str:
    try:
        codecs.lookup(name)
    except (LookupError, ValueError):
        return f"unknown encoding {shown}"
    return f"declares {shown}, an encoding that source files cannot have"


def _decoded(data: bytes, encoding: str, skipped: int, shown: str = "UTF-8") -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        at, line = error.start, len(_LINE_BREAK.findall(data, 0, error.start)) + 1
        byte = data[at] if at < len(data) else 0
        raise EncodingError(f"not {shown} (byte 0x{byte:02x} at offset {at + skipped}, line {line})") from None
    except ValueError:
        raise EncodingError(f"not {shown}") from None
