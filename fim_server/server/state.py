"""State of one client's server, by purpose. Only the event loop's thread uses it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lsprotocol import types

    from fim_server.models.store.catalogue import Entry
    from fim_server.models.store.state import State
    from fim_server.server.items import FallbackKinds
    from fim_server.suggest.job import Handle
    from fim_server.suggest.request import Request
    from fim_server.suggest.settings import ServerSettings


@dataclass(slots=True)
class ClientState:
    """Settings and capabilities of the editor.

    Attributes:
        command_line: Settings of the command line, the base of the editor's.
        initial_settings: Settings in the editor's `initialize`.
        settings: The editor's latest settings.
        fallback: Form of the suggestion list's items; None for editors with inline completion.
        uses_fallback: False once the editor has sent a request for inline completion.
    """

    command_line: ServerSettings
    initial_settings: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    fallback: FallbackKinds | None = None
    uses_fallback: bool = True


@dataclass(slots=True)
class IndexState:
    """Reading of the project's files.

    Attributes:
        folders_changed: True once the editor has changed its folders, one of which may be its root.
        is_queued: True while a read of changed files is queued.
        reported_bytes: Memory of the process in the last status sent while files were read.
    """

    folders_changed: bool = False
    is_queued: bool = False
    reported_bytes: int = 0


@dataclass(slots=True)
class Fetching:
    """Progress of a model's download.

    Attributes:
        share: From 0 to 1.
    """

    name: str
    message: str = "starting"
    share: float = 0.0


@dataclass(slots=True)
class ModelState:
    """Loading and fetching of models.

    Attributes:
        failure: Reason for having no model.
        better: Better model that can be fetched, and whether it is missing, outdated or damaged.
        fetching: Model that the user fetches.
        downloading: Model of the hub that is downloaded to be loaded.
        fetcher: Process that fetches.
        cancelled: Set to cancel the fetching.
        progress: Message of the loading, and its share from 0 to 1.
        newer_load: Set when a newer loading replaces the current one.
        overdue: Message about a loading without progress.
    """

    failure: str | None = None
    better: tuple[Entry, State] | None = None
    fetching: Fetching | None = None
    downloading: Fetching | None = None
    fetcher: asyncio.subprocess.Process | None = None
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    progress: tuple[str, float] | None = None
    newer_load: asyncio.Event = field(default_factory=asyncio.Event)
    overdue: str | None = None


@dataclass(slots=True)
class UnderWay:
    """Request that the worker works on, and its job."""

    request: Request
    job: Handle


@dataclass(frozen=True, slots=True)
class HeldPlace:
    """Cursor for which an answer is held back.

    Attributes:
        uri: The document.
        text: Its text.
        position: The cursor, in the client's units.
    """

    uri: str
    text: str
    position: types.Position


@dataclass(slots=True)
class RequestState:
    """Requests under way, by document.

    Attributes:
        superseded: Event of the latest request, which a newer one sets.
        running: Work that a request waits for.
        unclaimed: Work that no request waits for any more, and the next one may take over.
        prefetch: Suggestion that is prepared before a request.
        suspended: Reasons for sending no requests until the document changes.
        waiting: Number of requests that wait for the worker.
        held: Place whose answer is ready, but not shown (trigger `subtle`).
    """

    superseded: dict[str, asyncio.Event] = field(default_factory=dict)
    running: dict[str, UnderWay] = field(default_factory=dict)
    unclaimed: dict[str, UnderWay] = field(default_factory=dict)
    prefetch: UnderWay | None = None
    suspended: dict[str, str] = field(default_factory=dict)
    waiting: int = 0
    held: HeldPlace | None = None

    def of(self, uri: str) -> list[UnderWay]:
        return [work for work in (self.running.get(uri), self.unclaimed.get(uri)) if work is not None]

    def stop_unclaimed(self, uri: str) -> None:
        """Stop a document's unclaimed work."""
        work = self.unclaimed.pop(uri, None)
        if work is not None:
            work.job.cancelled.set()

    def stop_prefetch(self) -> None:
        if self.prefetch is not None:
            self.prefetch.job.cancelled.set()

    def stop_all(self) -> None:
        for work in (*self.running.values(), *self.unclaimed.values()):
            work.job.cancelled.set()
        self.stop_prefetch()


MOST_EDITS_SENT, MOST_EDITS_DECIDED = 64, 256
"""Latest next edits that the user may still decide on, and latest ones that were decided."""


@dataclass(slots=True)
class NextEditState:
    """Next edits that were sent.

    Attributes:
        sent: Their keys, by identity; with that of their document, if it was not the user's.
        decided: Keys of those that the user accepted or dismissed, and of documents that the user dismissed.
        count: Number of them so far.
    """

    sent: OrderedDict[str, tuple[int, int | None]] = field(default_factory=OrderedDict)
    decided: OrderedDict[int, None] = field(default_factory=OrderedDict)
    count: int = 0

    def note(self, key: int, document_key: int | None) -> str:
        """Note an edit that is sent, and return its identity."""
        self.count += 1
        identity = str(self.count)
        self.sent[identity] = key, document_key
        while len(self.sent) > MOST_EDITS_SENT:
            self.sent.popitem(last=False)
        return identity

    def decide(self, identity: str, is_accepted: bool) -> None:
        """Note that the user accepted or dismissed an edit."""
        key, document_key = self.sent.pop(identity, (None, None))
        for one in (key, None if is_accepted else document_key):
            if one is not None:
                self.decided[one] = None
        while len(self.decided) > MOST_EDITS_DECIDED:
            self.decided.popitem(last=False)


@dataclass(slots=True)
class SentStatus:
    """Status that was sent last.

    Attributes:
        state: Its state in one word.
        last: Its field `last`.
    """

    state: str = ""
    last: dict[str, Any] | None = None
