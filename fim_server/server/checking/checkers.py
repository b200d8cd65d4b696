"""Checkers of one client: their processes, and the findings that are known.

A checker is started when a cursor rests in a document of its language, or with the first suggestion there. It starts
again after a crash, a few times. Without one, suggestions are as the model makes them.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fim_server.server.checking.catalogue import Entry, checker_of
from fim_server.server.checking.client import CheckerClient, LostCheckerError
from fim_server.suggest.ranking.findings import Finding
from fim_server.suggest.sources.project import path_of
from fim_server.text.document import Document, PositionEncoding

if TYPE_CHECKING:
    from fim_server.suggest.ranking.findings import Kind

MOST_STARTS = 3
"""Most starts of a checker by the same settings."""

MOST_WAITS = 2
"""A checker whose last answer took more than that many times the longest wait is not waited for."""

MOST_KNOWN = 128
"""Most documents with a suggestion whose findings are kept."""


@dataclass(eq=False)
class Running:
    """A checker in use.

    Attributes:
        starting: Its process, once it has started.
        turn: Held while it works on a document.
        waiting: Number of questions that it has not answered.
        last_seconds: Time of its last answer.
    """

    starting: asyncio.Task[CheckerClient]
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0
    last_seconds: float = 0.0

    @property
    def client(self) -> CheckerClient | None:
        task = self.starting
        return task.result() if task.done() and not task.cancelled() and task.exception() is None else None

    def end(self) -> None:
        self.starting.cancel()
        if self.client is not None:
            self.client.end()


class LanguageChecker:
    """Checker of one language at a setting: a :class:`.Checker`."""

    def __init__(self, checkers: Checkers, entry: Entry, language: str) -> None:
        self._checkers, self._entry, self._language = checkers, entry, language

    @property
    def longest_seconds(self) -> float:
        """Longest time that a suggestion ever waits for findings."""
        return self._entry.wait_ms / 1000

    @property
    def wait_seconds(self) -> float:
        """Time that a suggestion waits for findings now; 0 if the last ones took far longer."""
        return self._checkers.wait_seconds(self._entry)

    async def findings(self, uri: str, text: str, lines: range, deadline: float) -> Sequence[Finding] | None:
        """Return the findings in some lines that no other line has; None before the deadline is later than they are.

        Findings that are late are known the next time. Arguments as of :class:`.Checker`.
        """
        known = self._checkers.known(uri, text, lines)
        if known is None:
            asked = self._checkers.ask(self._entry, self._language, uri, text, lines)
            if asked is None:
                return None
            await asyncio.wait((asked,), timeout=max(0.0, deadline - asyncio.get_running_loop().time()))
            known = self._checkers.known(uri, text, lines)
        return known

    def warm(self, uri: str, text: str) -> None:
        """Have the checker read a document before a suggestion is made in it."""
        self._checkers.ask(self._entry, self._language, uri, text, range(-1, -1))


class Checkers:
    """Checkers of one client. Used by the event loop's thread."""

    def __init__(
        self,
        is_on: Callable[[], bool],
        folders: Callable[[], list[str]],
        texts: Callable[[str], Mapping[str, str]],
        log: Callable[[str], object],
    ) -> None:
        """Start none yet.

        Args:
            is_on: Return the setting `checker`.
            folders: Return the URIs of the workspace's folders.
            texts: Return the texts of the open documents of a language that may be read, by URI.
            log: Log a message once.
        """
        self._is_on, self._folders, self._texts, self._log = is_on, folders, texts, log
        self._running: dict[str, Running] = {}
        self._starts: Counter[str] = Counter()
        self._known: OrderedDict[tuple[str, int, int, int], Sequence[Finding]] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_ended = False
        """True once the checkers took too much memory, or the client has left."""

    def checker(self, language: str, uri: str) -> LanguageChecker | None:
        """Return the checker of a document's language; None without one, or outside of the workspace's folders."""
        entry = checker_of(language) if self._is_on() else None
        path = path_of(uri)
        if entry is None or self.is_ended or path is None:
            return None
        inside = any(path.is_relative_to(folder) for folder in map(path_of, self._folders()) if folder is not None)
        return LanguageChecker(self, entry, language) if inside else None

    @property
    def resident_bytes(self) -> int:
        """Return the bytes of memory that the processes hold."""
        return sum(one.client.resident_bytes for one in self._running.values() if one.client is not None)

    def known(self, uri: str, text: str, lines: range) -> Sequence[Finding] | None:
        """Return the findings in some lines of a document's text, if they are known."""
        return self._known.get((uri, lines.start, len(text), hash(text)))

    def wait_seconds(self, entry: Entry) -> float:
        """Return the time for which to wait for a checker."""
        running = self._running.get(entry.name)
        is_slow = running is not None and running.last_seconds > MOST_WAITS * entry.wait_ms / 1000
        return 0.0 if is_slow else entry.wait_ms / 1000

    def ask(self, entry: Entry, language: str, uri: str, text: str, lines: range) -> asyncio.Task[None] | None:
        """Ask a checker for findings, and keep them; None if it is not there, or has enough to do."""
        if len(text) > entry.most_characters:
            return None
        running = self._started(entry)
        if running is None or running.waiting > 1:
            return None
        task = asyncio.ensure_future(self._ask(entry, running, language, uri, text, lines))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def forget(self, uri: str) -> None:
        """Forget a closed document."""
        for running in self._running.values():
            if running.client is not None:
                running.client.close(uri)

    def end(self) -> None:
        """End all processes."""
        for task in self._tasks:
            task.cancel()
        for running in self._running.values():
            running.end()
        self._running.clear()

    def close(self) -> None:
        """End all processes and start none any more."""
        self.is_ended = True
        self.end()

    def reconsider(self) -> None:
        """End the processes after a change of the settings or of the workspace's folders; they may start again."""
        self.end()
        self._starts.clear()
        self._known.clear()

    def _started(self, entry: Entry) -> Running | None:
        """Return a running checker, and start one that is not."""
        running = self._running.get(entry.name)
        if running is not None and not running.starting.done():
            return running
        if running is not None and running.client is not None and not running.client.is_lost:
            return running
        if self.is_ended or self._starts[entry.name] >= MOST_STARTS:
            return None
        folders = [folder for folder in self._folders() if path_of(folder) is not None]
        program = entry.program([str(path_of(folder)) for folder in folders])
        if program is None:
            self._starts[entry.name] = MOST_STARTS
            self._log(f"there is no {entry.command[0]} on the PATH outside of the workspace (setting checker)")
            return None
        self._starts[entry.name] += 1
        running = Running(asyncio.ensure_future(CheckerClient.start(entry, program, folders)))
        self._running[entry.name] = running
        return running

    async def _ask(self, entry: Entry, running: Running, language: str, uri: str, text: str, lines: range) -> None:
        running.waiting += 1
        try:
            async with running.turn:
                client = await asyncio.shield(running.starting)
                others = self._texts(language).items()
                client.show({other: its for other, its in others if other != uri}, language, entry.most_characters)
                started = time.perf_counter()
                diagnostics = await client.diagnostics(uri, language, text)
                running.last_seconds = time.perf_counter() - started
        except (LostCheckerError, OSError) as error:
            self._log(f"the checker {entry.name} has ended or does not answer ({type(error).__name__})")
            running.end()
            return
        finally:
            running.waiting -= 1
        self._known[uri, lines.start, len(text), hash(text)] = findings_of(
            diagnostics, entry.kinds, text, lines, client.encoding
        )
        while len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)


def findings_of(
    diagnostics: Sequence[Mapping[str, Any]],
    kinds: Mapping[str, Kind],
    text: str,
    lines: range,
    encoding: PositionEncoding,
) -> list[Finding]:
    """Return the findings that diagnostics tell of in some lines.

    A diagnostic that other lines have as well is none: the user lives with it.
    """
    document = Document(text)

    def offset(at: Mapping[str, int]) -> int:
        return document.offset_at_position(at["line"], at["character"], encoding)

    places: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for one in diagnostics:
        places.setdefault((str(one.get("code")), str(one.get("message"))), []).append(one["range"])
    return [
        Finding(offset(spot["start"]), offset(spot["end"]), kind)
        for (code, _), spots in places.items()
        if (kind := kinds.get(code)) is not None and all(spot["start"]["line"] in lines for spot in spots)
        for spot in spots
        if spot["end"]["line"] in lines
    ]
