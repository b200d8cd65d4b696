"""An HTTP client as a client of the language server: the same worker, settings, ranking and cache serve both."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from fim_server.memory.ignoring import has_secret_name
from fim_server.server.http.documents import (
    Documents,
    SentDocument,
    changed,
    closed,
    has_grown,
    lines_of,
    opened,
)
from fim_server.server.http.languages import by_file, guess, named_language
from fim_server.server.requests.request import IncomingRequest
from fim_server.text.document import LINE_BREAK, Split

if TYPE_CHECKING:
    from collections.abc import Callable

    from fim_server.models.model import FimModel
    from fim_server.server.http.wanted import Excerpt, Wanted
    from fim_server.server.language_server import FimLanguageServer
    from fim_server.suggest.settings import ServerSettings

MOST_CLIENTS = 8
"""Most clients with a server of their own; the least recently used one makes room for another."""

MOST_EXCERPTS, MOST_EXCERPT_CHARACTERS = 64, 400_000
"""Most excerpts of other files that a client's memory holds, and their characters."""

INITIALIZE = {
    "processId": None,
    "rootUri": None,
    "capabilities": {
        "general": {"positionEncodings": ["utf-32"]},
        "textDocument": {"inlineCompletion": {}},
    },
}


@dataclass(slots=True, eq=False)
class HttpClient:
    """Client with its server, its documents, and its excerpts of other files.

    Attributes:
        server: The language server of this client alone.
        documents: Its documents.
        excerpts: The names under which the project's memory has excerpts, by excerpt.
        running: Number of its requests that are being answered.
    """

    server: FimLanguageServer
    documents: Documents = field(default_factory=Documents)
    excerpts: dict[Excerpt, str] = field(default_factory=dict)
    running: int = 0

    def begin(self) -> None:
        """Initialize the server, which then loads its model."""
        self._tell({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE})
        self._tell({"jsonrpc": "2.0", "method": "initialized", "params": {}})

    def _tell(self, message: dict[str, Any]) -> None:
        protocol = self.server.protocol
        protocol.handle_message(protocol.structure_message(message))

    async def document_of(self, wanted: Wanted) -> SentDocument:
        """Return the document of a request, in the language that the client names or the text seems to have."""
        document = self.documents.find(wanted, named_language(wanted))
        count = len(lines_of(wanted.prefix + wanted.suffix))
        if has_grown(document, count):
            language = await asyncio.to_thread(guess, wanted.prefix, wanted.suffix)
            if document.version and language != document.language:
                self._tell(closed(document))
                document.version = 0
            document.language, document.guessed_lines = language, max(1, count)
        return document

    def take(self, wanted: Wanted, document: SentDocument) -> IncomingRequest:
        """Bring a document to the text of a request, and return the request at its cursor."""
        text = wanted.prefix + wanted.suffix
        if not document.version or document.text != text:
            is_new = not document.version
            document.text, document.version, document.lines = text, document.version + 1, lines_of(text)
            self._tell(opened(document) if is_new else changed(document))
        document.prefix = wanted.prefix
        for old in self.documents.too_many():
            self._tell(closed(old))
        known = self.server.open_document(document.uri)
        assert known is not None, "opened above"
        before = LINE_BREAK.split(wanted.prefix)
        return IncomingRequest(
            uri=document.uri,
            position=types.Position(len(before) - 1, len(before[-1])),
            invoked=wanted.invoked,
            selected=None,
            takes_lines=not any(stop.startswith("\n") for stop in wanted.stops),
            arrived=time.perf_counter(),
            document=known.frozen(),
            version=known.version,
            allowed_ms=wanted.allowed_ms,
            limits=wanted.limits,
        )

    async def remember(self, wanted: Wanted) -> None:
        """Have the project's memory hold the excerpts of a request, and no others."""
        server, around = self.server, wanted.prefix + wanted.suffix
        if not server.settings.project_memory:
            return
        kept: dict[Excerpt, str] = {}
        room = MOST_EXCERPT_CHARACTERS
        for excerpt in wanted.excerpts[-MOST_EXCERPTS:]:
            room -= len(excerpt.text)
            is_own = excerpt.text.strip() in around  # clients send parts of the same file
            if room < 0 or is_own or has_secret_name(excerpt.file, server.settings.secret_files):
                continue
            kept[excerpt] = self.excerpts.get(excerpt, f"fim-http-excerpt:{id(self)}/{hash(excerpt)}")
        old, new = self.excerpts.keys() - kept.keys(), kept.keys() - self.excerpts.keys()
        gone = [self.excerpts[excerpt] for excerpt in old]
        self.excerpts = kept
        if gone or new:
            await asyncio.to_thread(self._exchange, gone, {excerpt: kept[excerpt] for excerpt in new})

    def _exchange(self, gone: list[str], new: dict[Excerpt, str]) -> None:
        """Forget excerpts and take new ones. Safe on any thread."""
        project = self.server.project
        for uri in gone:
            project.forget(uri)
        for excerpt, uri in new.items():
            project.opened(uri)
            text = LINE_BREAK.sub("\n", excerpt.text.encode(errors="replace").decode())
            project.send(uri, Split(f"{text}\n", ""), by_file(excerpt.file))


class HttpClients:
    """Clients by their names. Used by the event loop's thread."""

    def __init__(self, create: Callable[[ServerSettings], FimLanguageServer]) -> None:
        """``create``: return a new server with settings."""
        self._create = create
        self._known: OrderedDict[tuple[str, ...], HttpClient] = OrderedDict()
        self._first: FimLanguageServer | None = None

    def begin(self, settings: ServerSettings) -> None:
        """Load the model, which all clients share, and keep it."""
        first = HttpClient(self._create(settings))
        first.begin()
        self._first = first.server

    @property
    def model(self) -> FimModel | None:
        """The model; None before it is loaded."""
        return None if self._first is None else self._first.worker.model

    @property
    def failure(self) -> str | None:
        """The reason for having no model."""
        return None if self._first is None else self._first.model.failure

    def __len__(self) -> int:
        return len(self._known)

    def find(self, name: tuple[str, ...], settings: ServerSettings) -> HttpClient:
        """Return the client of a name. A new one has a server with these settings."""
        client = self._known.get(name)
        if client is None:
            idle = [other for other, one in self._known.items() if not one.running]
            if len(self._known) >= MOST_CLIENTS and idle:
                self._known.pop(idle[0]).server.close()
            client = self._known[name] = HttpClient(self._create(settings))
            client.begin()
        self._known.move_to_end(name)
        return client

    def close(self) -> None:
        """Stop all work."""
        for client in self._known.values():
            client.server.close()
        self._known.clear()
        if self._first is not None:
            self._first.close()
