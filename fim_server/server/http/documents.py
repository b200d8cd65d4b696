"""Documents of an HTTP client, which sends texts and no names: the one that a request changes is found by its text."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from fim_server.server.http.wanted import Wanted

MOST_DOCUMENTS = 8
"""Most documents of a client: as many as a worker has threads for."""

MOST_LINES = 4_000
"""Most lines of a text that are compared."""

SAME_SHARE = 0.5
"""Least share of the lines of the shorter text that two versions of a document have in common."""

LONGEST_NAME = 255
"""Most characters of a file's name."""


@dataclass(slots=True, eq=False)
class SentDocument:
    """Document as its client sent it last.

    Attributes:
        uri: Its name for the language server.
        language: Its language, as editors name it.
        file: Its file, as the client names it; may be empty.
        prefix: The text before the cursor of the latest request.
        text: The whole text.
        lines: Its lines.
        version: Number of the version.
        number: Place of its latest request in the order of arrival.
        guessed_lines: Number of the lines when its language was guessed; 0 if the client names it.
    """

    uri: str
    language: str
    file: str
    prefix: str = ""
    text: str = ""
    lines: frozenset[str] = frozenset()
    version: int = 0
    number: int = -1
    guessed_lines: int = 0


@dataclass(slots=True)
class Documents:
    """Latest documents of one client, the latest at the end.

    A request belongs to the document of its file. Without one, it belongs to the latest document of its language that
    has half of its lines, or that it continues.
    """

    _known: OrderedDict[str, SentDocument] = field(default_factory=OrderedDict)
    _numbers: count[int] = field(default_factory=count)

    def find(self, wanted: Wanted, language: str) -> SentDocument:
        """Return the document of a request, which may be a new one of version 0.

        ``language``: the language that the client names; empty for a guessed one.
        """
        lines = lines_of(wanted.prefix + wanted.suffix)
        for known in reversed(self._known.values()):
            named = "" if known.guessed_lines else known.language
            if (known.file, named) == (wanted.file, language) and (wanted.file or is_same(known, wanted, lines)):
                self._known.move_to_end(known.uri)
                return known
        name = quote(wanted.file.replace("\\", "/").rpartition("/")[2][:LONGEST_NAME], errors="replace")
        found = SentDocument(f"fim-http:{name}#{next(self._numbers)}", language, wanted.file)
        found.guessed_lines = 0 if language else 1
        self._known[found.uri] = found
        return found

    def too_many(self) -> list[SentDocument]:
        """Forget and return the least recently used documents beyond the limit."""
        return [self._known.popitem(last=False)[1] for _ in range(len(self._known) - MOST_DOCUMENTS)]


def has_grown(known: SentDocument, lines: int) -> bool:
    """Return whether a document has so many more lines that its language has to be guessed again."""
    return bool(known.guessed_lines) and (not known.language or lines >= 2 * known.guessed_lines)


def is_same(known: SentDocument, wanted: Wanted, lines: frozenset[str]) -> bool:
    """Return whether a request is for another version of a document."""
    if wanted.prefix.startswith(known.prefix) or known.prefix.startswith(wanted.prefix):
        return bool(known.prefix and wanted.prefix)
    fewer = min(len(lines), len(known.lines))
    return bool(fewer) and len(lines & known.lines) >= SAME_SHARE * fewer


def lines_of(text: str) -> frozenset[str]:
    """Return the different lines of a text that are not blank."""
    return frozenset(line for line in text.split("\n", MOST_LINES)[:MOST_LINES] if line.strip())


def opened(document: SentDocument) -> dict[str, Any]:
    """Return the notification that opens a document."""
    named = {"uri": document.uri, "languageId": document.language, "version": document.version, "text": document.text}
    return {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": named}}


def changed(document: SentDocument) -> dict[str, Any]:
    """Return the notification that replaces a document's text."""
    named = {"uri": document.uri, "version": document.version}
    changes = [{"text": document.text}]
    return {
        "jsonrpc": "2.0",
        "method": "textDocument/didChange",
        "params": {"textDocument": named, "contentChanges": changes},
    }


def closed(document: SentDocument) -> dict[str, Any]:
    """Return the notification that closes a document."""
    named = {"uri": document.uri}
    return {"jsonrpc": "2.0", "method": "textDocument/didClose", "params": {"textDocument": named}}
