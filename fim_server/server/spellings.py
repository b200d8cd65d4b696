"""One document, several spellings of its URI: ``file:///C:/a.py`` and ``file:///c%3A/a.py`` are the same.

An editor may open a document by one of them and ask by another (RFC 3986, section 6.2.2; drive letters and `localhost`
are those of RFC 8089). All that is kept of a document has the spelling by which it was opened.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote, urlsplit

DRIVE = re.compile(r"/[A-Za-z]:(?=/|\Z)")

Identity = tuple[str, str, str, str, str]


def identity_of(uri: str) -> Identity:
    """The parts of a URI, without what spells the same in two ways."""
    try:
        scheme, authority, path, query, fragment = urlsplit(uri)
    except ValueError:  # an address in brackets that is none
        return "", "", uri, "", ""
    authority, path = decoded(authority).lower(), decoded(path)
    if scheme == "file" and authority == "localhost":
        authority = ""
    if DRIVE.match(path):
        path = path[:2].lower() + path[2:]
    return scheme, authority, path, decoded(query), decoded(fragment)


def decoded(part: str) -> str:
    """A part without percent escapes; bytes that are no UTF-8 stay apart from each other."""
    return unquote(part, errors="surrogateescape")


class Spellings:
    """The spellings by which documents were opened."""

    def __init__(self) -> None:
        self._opened: dict[Identity, str] = {}

    def open(self, uri: str) -> str:
        """The spelling of a document that is opened: that by which it is open already, else this one."""
        return self._opened.setdefault(identity_of(uri), uri)

    def of(self, uri: str) -> str:
        """The spelling by which a document was opened; the same one where it was not."""
        return self._opened.get(identity_of(uri), uri)

    def close(self, uri: str) -> None:
        """Forget a document."""
        self._opened.pop(identity_of(uri), None)

    def respell(self, document: Any) -> None:
        """Give an identifier of a document, as lsprotocol has it, the spelling by which that was opened."""
        uri = getattr(document, "uri", None)
        if isinstance(uri, str) and hasattr(document, "__attrs_attrs__"):
            document.uri = self.of(uri)
