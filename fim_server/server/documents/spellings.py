"""Spellings of a document's URI: ``file:///C:/a.py`` and ``file:///c%3A/a.py`` name the same document.

An editor may open a document by one spelling and send requests by another (RFC 3986, section 6.2.2; drive letters and
`localhost` are those of RFC 8089). The server keeps the spelling by which a document was opened.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote, urlsplit

DRIVE = re.compile(r"/[A-Za-z]:(?=/|\Z)")

Identity = tuple[str, str, str, str, str]


def identity_of(uri: str) -> Identity:
    """Return the parts of a URI in one spelling for all equal URIs."""
    try:
        scheme, authority, path, query, fragment = urlsplit(uri)
    except ValueError:  # an invalid address in brackets
        return "", "", uri, "", ""
    authority, path = decoded(authority).lower(), decoded(path)
    if scheme == "file" and authority == "localhost":
        authority = ""
    if DRIVE.match(path):
        path = path[:2].lower() + path[2:]
    return scheme, authority, path, decoded(query), decoded(fragment)


def decoded(part: str) -> str:
    """Decode the percent escapes of a part; different bytes outside of UTF-8 stay different."""
    return unquote(part, errors="surrogateescape")


class Spellings:
    """Spellings by which documents were opened."""

    def __init__(self) -> None:
        self._opened: dict[Identity, str] = {}

    def open(self, uri: str) -> str:
        """Return the spelling of a document that is being opened: its earlier one where it is open, else this one."""
        return self._opened.setdefault(identity_of(uri), uri)

    def of(self, uri: str) -> str:
        """Return the spelling by which a document was opened, or the same one where it is not open."""
        return self._opened.get(identity_of(uri), uri)

    def close(self, uri: str) -> None:
        self._opened.pop(identity_of(uri), None)

    def respell(self, document: Any) -> None:
        """Give a document's identifier of lsprotocol the spelling by which the document was opened."""
        uri = getattr(document, "uri", None)
        if isinstance(uri, str) and hasattr(document, "__attrs_attrs__"):
            document.uri = self.of(uri)
