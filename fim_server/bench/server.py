"""``fim-server bench server``: what somebody waits for while they type, measured at the editor's end of the protocol.

Code is taken out of real files and typed again, keystroke by keystroke, to a server process of its own over standard
input and output. The protocol is spoken here without the libraries that the server uses, so what is measured is what an
editor meets. The editor that is played is VS Code: it closes brackets and quotes by itself, waits 50 ms after a
keystroke before it asks, and cancels what it asked when the next key comes first. A seed fixes files, holes and
decisions; what the server offers, and with it some of the decisions, depends on the model.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import os
import random
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from fim_server.bench import engine as bench
from fim_server.bench import masks as masks_bench
from fim_server.bench.engine import DONE
from fim_server.bench.played_editor import (
    BACKSPACE,
    DELETE,
    Edit,
    Editor,
    Hole,
    first_word,
    holes,
    is_word,
    next_key,
    position,
    span,
)
from fim_server.errors import BenchError
from fim_server.models.onnx_runtime import RUNTIMES

SIZES = range(3_000, 30_000)
"""Bytes of the files that are chosen where none are named."""

EDITOR_DELAY = 0.05
"""Seconds that VS Code waits after a keystroke before it asks (its `InlineCompletionsDebounce`)."""

SPREAD = 0.4
"""Standard deviation of the logarithm of the time between two keys."""

KEY_SECONDS = (0.03, 1.5)
"""No two keys are nearer or farther apart than this, but for pauses."""

PAUSE_SHARE, PAUSE_SECONDS = 0.15, (0.4, 1.2)
"""How often somebody thinks before a word, and how long."""

READING_SECONDS = (0.3, 0.7)
"""How long somebody looks at an offer before accepting it."""

BURST = 0.4
"""Keys of a burst are apart by this share of the interval."""

AGREEING = 3
"""Characters besides blanks on which an offer has to agree with what is to be typed to be accepted."""

ACCEPT_SHARE, WORD_SHARE, INVOKED_SHARE, FOLLOW_SHARE = 0.8, 0.5, 0.03, 0.3
"""How often an offer that agrees is accepted, a word of one that only begins right, how often somebody asks, and how
often an offer is followed wherever it leads."""

FOLLOWED_CHARACTERS = (3, 12)
FOLLOWED_OFFERS = 2
"""Offers that are followed one after the other before all of it is taken out again."""

KEYS_PER_HOLE = 25
"""Keystrokes after which somebody goes on elsewhere, and the rest of the hole comes in one piece."""


ANSWER_SECONDS, LOADING_SECONDS = 60.0, 900.0

CANCELLED = -32800
INVOKED, AUTOMATIC = 1, 2

ITEM_GOAL, OWN_GOAL, CANCEL_GOAL = "p50 300", "p95 5", "p95 50"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``fim-server bench server``."""
    parser.epilog = (
        "Exit status: 0 measured, 2 bad input. Times are in milliseconds, from the request to its answer as the "
        "editor sees them."
    )
    parser.add_argument(
        "--path",
        action="append",
        metavar="PATH",
        help="a Python file, or a folder of them, to type in; may be given several times (default: modules of the "
        "standard library, 3 to 30 kB each)",
    )
    parser.add_argument("--files", type=bench.positive_count, default=6, metavar="N", help="files (default: 6)")
    parser.add_argument(
        "--keystrokes", type=bench.positive_count, default=250, metavar="N", help="in each scenario (default: 250)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the choice of all (default: 0)")
    parser.add_argument(
        "--interval-ms",
        type=bench.positive_count,
        default=150,
        metavar="MS",
        help="time between two keys, in the median (default: 150)",
    )
    parser.add_argument(
        "--scenario",
        action="append",
        choices=[scenario.name for scenario in SCENARIOS],
        help="what to play; may be given several times (default: all)",
    )
    parser.add_argument("--model", metavar="NAME", help="a model folder or hub name (default: the embedded model)")
    parser.add_argument("--device", metavar="DEVICE", help="cpu, cuda, ... (default: a GPU if there is one)")
    parser.add_argument(
        "--runtime", choices=RUNTIMES, help="torch or onnxruntime-genai (default: the server chooses by what there is)"
    )
    parser.add_argument(
        "--threads",
        type=bench.positive_count,
        metavar="N",
        help="the model's threads (default: the server chooses by the load when it starts)",
    )
    parser.add_argument(
        "--machine", metavar="TEXT", help="how the report calls this machine (default: its processor and its load)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, every request among it")
    parser.add_argument("--output", metavar="FILE.md", help="write the tables as Markdown")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print tables or JSON; returns the exit status.

    Raises:
        BenchError: There are no files, the server does not start or answer, or a result cannot be written.
    """
    with bench.Progress(enabled=sys.stderr.isatty() or not arguments.json) as progress:
        report = measure(arguments, progress)
    if arguments.json:
        print(json.dumps(report.as_json(), ensure_ascii=False))
    else:
        for line in report.lines():
            print(line)
    if arguments.output is not None:
        try:
            Path(arguments.output).write_text(report.as_markdown(), encoding="utf-8")
        except OSError as error:
            raise BenchError(f"{arguments.output}: {error.strerror}") from error
    return DONE


# --- scenarios ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    """How somebody types."""

    name: str
    waits: bool
    """Whether each answer is waited for before the next key."""
    follows: bool = False
    """Whether offers are followed that are not what was to be written."""
    pace: float = 1.0
    """Time between keys, as a share of the interval."""
    explanation: str = ""


SCENARIOS = (
    Scenario(
        "reads",
        waits=True,
        explanation="Types the file's own text, at least the interval apart, and waits for every answer before the "
        "next key; accepts what agrees with the file. So slow answers count like fast ones: the figures to compare.",
    ),
    Scenario(
        "follows",
        waits=True,
        follows=True,
        explanation="The same, but some of the offers are followed wherever they lead (accepted whole, accepted by a "
        "word, or typed for a few characters), then taken out again: what the memory of offers and prefetching do for "
        "somebody whose model is right more often than the embedded one.",
    ),
    Scenario(
        "types",
        waits=False,
        explanation="Types the file's own text at a human pace and waits for nothing; what the next key overtakes is "
        "cancelled, and has no time of an answer.",
    ),
    Scenario("bursts", waits=False, pace=BURST, explanation="The same, but faster: most requests are cancelled."),
)


# --- the protocol -------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Asked:
    """A request under way or answered; times in seconds."""

    number: int
    sent: float
    answer: asyncio.Future[dict[str, Any]]
    received: float = 0.0
    cancelled: float | None = None
    """When its cancellation was sent."""
    last: dict[str, Any] | None = None
    """What the server's status said of it."""


class Client:
    """The editor's end of the protocol, with a server process of its own at the other."""

    def __init__(self, process: asyncio.subprocess.Process, errors: IO[bytes], started: float) -> None:
        self.process = process
        self.started = started
        self.status: dict[str, Any] = {}
        self._errors = errors
        self._waiting: dict[int, Asked] = {}
        self._numbers = 0
        self._status_at = 0.0
        self._changed = asyncio.Event()
        self._ended: BenchError | None = None
        self._reader = asyncio.ensure_future(self._read())

    @classmethod
    async def start(cls, options: Sequence[str], threads: int | None, errors: IO[bytes]) -> Client:
        """Start a server, which writes its log to a file."""
        started = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "fim_server", "serve", *options),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=os.environ | ({} if threads is None else {"OMP_NUM_THREADS": str(threads)}),
        )
        return cls(process, errors, started)

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def ask(self, method: str, params: object) -> Asked:
        """Send a request; the answer comes as the whole message."""
        self._numbers += 1
        asked = Asked(self._numbers, time.perf_counter(), asyncio.get_running_loop().create_future())
        self._waiting[asked.number] = asked
        self._send({"id": asked.number, "method": method, "params": params})
        return asked

    def cancel(self, asked: Asked) -> None:
        """Cancel a request that is not answered yet."""
        if not asked.answer.done():
            asked.cancelled = time.perf_counter()
            self.notify("$/cancelRequest", {"id": asked.number})

    async def answer_to(self, asked: Asked) -> Any:
        """Wait for an answer; gives its result, None where it is an error.

        Raises:
            BenchError: None came.
        """
        try:
            message = await asyncio.wait_for(asyncio.shield(asked.answer), ANSWER_SECONDS)
        except TimeoutError:
            raise BenchError(f"the server did not answer within {ANSWER_SECONDS:.0f} s") from None
        return message.get("result")

    async def settle(self) -> None:
        """Wait for all answers.

        Raises:
            BenchError: One did not come.
        """
        for asked in list(self._waiting.values()):
            await self.answer_to(asked)

    async def ready(self) -> float:
        """Wait until the model is loaded; gives the seconds since the server was started.

        Raises:
            BenchError: It cannot be loaded.
        """
        end = time.perf_counter() + LOADING_SECONDS
        while self.status.get("state") not in ("ready", "busy"):
            if self._ended is not None:
                raise self._ended
            if self.status.get("state") == "error":
                raise BenchError(str(self.status.get("message")))
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), end - time.perf_counter())
            except TimeoutError:
                raise BenchError(f"the server was not ready after {LOADING_SECONDS:.0f} s") from None
        return self._status_at - self.started

    async def end(self) -> None:
        """Shut the server down, in the protocol's way if it still listens."""
        with suppress(BenchError, TimeoutError, OSError):
            if self._ended is None:
                await asyncio.wait_for(self.answer_to(self.ask("shutdown", None)), 5)
                self.notify("exit", None)
                await asyncio.wait_for(self.process.wait(), 5)
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()
        self._reader.cancel()
        with suppress(asyncio.CancelledError):
            await self._reader

    def _send(self, message: dict[str, Any]) -> None:
        if self._ended is not None:
            raise self._ended
        assert self.process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        with suppress(OSError):  # the reader tells of it
            self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    async def _read(self) -> None:
        assert self.process.stdout is not None
        try:
            while headers := await self._read_headers(self.process.stdout):
                body = await self.process.stdout.readexactly(int(headers["content-length"]))
                self._take(json.loads(body), time.perf_counter())
        except (asyncio.IncompleteReadError, ValueError, KeyError):
            pass  # that is no server
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), 5)
        self._ended = BenchError(f"the server ended{self._last_words()}")
        for asked in self._waiting.values():
            asked.answer.set_exception(self._ended)
            asked.answer.exception()  # seen, whether or not it is waited for
        self._changed.set()

    async def _read_headers(self, stream: asyncio.StreamReader) -> dict[str, str]:
        """A message's headers, their names in lower case; none at the end."""
        headers = {}
        while line := (await stream.readline()).decode("ascii").strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return headers

    def _take(self, message: dict[str, Any], now: float) -> None:
        if "method" not in message:
            asked = self._waiting.pop(int(message["id"]))
            asked.received = now
            # The status of an answer is sent right before it; where there is none since the request, it has none.
            if self._status_at > asked.sent:
                asked.last = self.status.get("last")
            asked.answer.set_result(message)
        elif message["method"] == "fim-server/status":
            self.status, self._status_at = message["params"], now
            self._changed.set()
        elif "id" in message:
            items = message["params"]["items"] if message["method"] == "workspace/configuration" else None
            self._send({"id": message["id"], "result": None if items is None else [None] * len(items)})

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else f" with status {self.process.returncode}"


CAPABILITIES = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {"configuration": True},
    "textDocument": {"inlineCompletion": {}, "synchronization": {"dynamicRegistration": True}},
}


# --- typing -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Item:
    """An offer on the screen."""

    text: str
    covered: int
    command: dict[str, Any] | None


@dataclass
class Request:
    """One request as the editor saw it; times in milliseconds."""

    scenario: str
    after: str
    """`key`, `accepted`, `removed`, `moved` (to another place), `opened` (a file), or `invoked`."""
    milliseconds: float = 0.0
    outcome: str = ""
    """`answered`, `cancelled` (with an error, as asked for), `late` (answered although it was cancelled), or
    `failed`."""
    cancel_milliseconds: float | None = None
    """From the cancellation to the answer."""
    items: int = 0
    lines: int = 0
    """Of the first item."""
    last: dict[str, Any] | None = None
    same_right: bool = False
    """Whether the text right of the cursor is that of the request before."""

    @property
    def latency(self) -> dict[str, float]:
        """Where the server says its time went."""
        found: dict[str, float] = self.last["latency"] if self.last is not None else {}
        return found

    @property
    def origin(self) -> str:
        """Where the answer came from: `model`, `cache`, `prefetch`, `joined`, or `none` where no model was asked."""
        if self.last is None:
            return "none"
        parts = self.latency
        if self.last["origin"] == "model" and not parts["prefillMs"] and not parts["decodeMs"]:
            return "none"
        if self.last["origin"] == "model" and sum(parts.values()) - parts["totalMs"] > parts["totalMs"] + 1:
            return "joined"  # with what was being prepared: its parts began before the request
        return str(self.last["origin"])

    @property
    def own(self) -> float | None:
        """The server's own share: the total without its pauses and the model; None where it is not known."""
        parts = self.latency
        if not parts or self.origin == "joined":
            return None
        return max(0.0, parts["totalMs"] - sum(parts[part] for part in MODEL_PARTS))


MODEL_PARTS = ("debounceMs", "queueMs", "prefillMs", "decodeMs")
OWN_PARTS = ("openMs", "engineMs", "serverMs")


@dataclass
class Counts:
    """What somebody did."""

    keystrokes: int = 0
    unasked: int = 0
    """Keystrokes that the next one followed before the editor had asked."""
    accepted: int = 0
    accepted_characters: int = 0
    followed: int = 0


@dataclass
class Played:
    """A scenario and what came of it."""

    scenario: Scenario
    requests: list[Request] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    load: float | None = None
    """The machine's when the server was started."""
    ready: float = 0.0
    """Seconds from the server's start until its model was loaded."""
    seconds: float = 0.0
    """How long was typed."""
    memory: int | None = None
    """The server's bytes at the end."""
    cpu_loading: float | None = None
    cpu_typing: float | None = None
    model: dict[str, str] = field(default_factory=dict)


class Typist:
    """Somebody at an editor."""

    def __init__(self, client: Client, played: Played, interval: float, draw: random.Random) -> None:
        self.client = client
        self.played = played
        self.scenario = played.scenario
        self.interval = interval * played.scenario.pace
        self.draw = draw
        self.left = 0
        """Keystrokes that are still to come."""
        self.editor = Editor("", 0)
        self.uri = ""
        self.version = 0
        self.item: Item | None = None
        """The offer on the screen."""
        self.asked: Asked | None = None
        """What was asked last."""
        self.right: str | None = None
        """The text right of the cursor at that time."""
        self.due = 0.0
        """When the next key comes."""
        self.turned_down: int | None = None
        """Where an offer was followed and taken out again."""

    async def type_in(self, name: str, text: str, gaps: Sequence[Hole], keystrokes: int) -> None:
        """Open a file, and take text out of it and type it again, until so many keystrokes are spent."""
        self.left = keystrokes
        self.uri, self.version = f"file:///typed/{name}", 1
        opening = {"uri": self.uri, "languageId": "python", "version": 1, "text": text}
        self.client.notify("textDocument/didOpen", {"textDocument": opening})
        self.editor = Editor(text, 0)
        after = "opened"
        for hole in itertools.cycle(gaps):
            self.turned_down = None
            await self.change(self.editor.replace(hole.start, hole.end, ""), after, self.draw.uniform(*PAUSE_SECONDS))
            await self.fill(hole.start, text[hole.start : hole.end], self.left - KEYS_PER_HOLE)
            await self.settle()
            after = "moved"
            if self.left <= 0:
                break
            if self.editor.text != text:
                self.send(self.editor.restore(text, hole.end))
        self.client.notify("textDocument/didClose", {"textDocument": {"uri": self.uri}})

    async def fill(self, start: int, wanted: str, until: int) -> None:
        """Type a text, and accept and follow offers as the scenario says, until so many keystrokes are left."""
        while self.left > max(until, 0):
            await asyncio.sleep(self.due - time.perf_counter())
            item = self.item
            if item is not None and await self.agrees(item, wanted[self.editor.cursor - start :]):
                continue
            if item is not None and self.follows():
                await self.follow(item)
                continue
            key = next_key(self.editor, start, wanted)
            if key is None:
                return
            await self.change(self.editor.press(key), "key", self.interval_after(key))
            if self.scenario.waits and self.draw.random() < INVOKED_SHARE:
                self.ask("invoked")
                await self.settle()

    async def agrees(self, item: Item, wanted: str) -> bool:
        """Whether an offer, or its first word, was accepted because it is what was to be typed."""
        whole = item.text if item.covered <= len(self.editor.closers) else ""
        word = first_word(item.text, item.covered)
        for part, covered, share in ((whole, item.covered, ACCEPT_SHARE), (word, 0, WORD_SHARE)):
            enough = len("".join(part.split())) >= AGREEING
            if enough and wanted.startswith(part) and self.draw.random() < share:
                await self.accept(item, part, covered)
                return True
        return False

    def follows(self) -> bool:
        """Whether somebody follows the offer that they see."""
        new = self.turned_down != self.editor.cursor
        return self.scenario.follows and new and self.draw.random() < FOLLOW_SHARE

    async def follow(self, item: Item) -> None:
        """Follow an offer, and perhaps the next one, then take it all out again."""
        text, cursor, closers = self.editor.text, self.editor.cursor, self.editor.closers
        following: Item | None = item
        for _ in range(FOLLOWED_OFFERS):
            if following is None:
                break
            self.played.counts.followed += 1
            word = first_word(following.text, following.covered)
            match self.draw.choice(("whole", "word", "letters")):
                case "word" if word:
                    await self.accept(following, word, 0)
                case "letters":
                    await self.retype(following.text[: self.draw.randint(*FOLLOWED_CHARACTERS)])
                case _:
                    await self.accept(following, following.text, following.covered)
            following = self.item
        await asyncio.sleep(self.draw.uniform(*READING_SECONDS))
        edit = self.editor.restore(text, cursor)
        self.editor.closers = closers
        self.turned_down = cursor
        await self.change(edit, "removed", self.interval)

    async def retype(self, text: str) -> None:
        """Type the beginning of an offer."""
        start = self.editor.cursor
        while (key := next_key(self.editor, start, text)) not in (None, BACKSPACE, DELETE):
            await asyncio.sleep(self.due - time.perf_counter())
            await self.change(self.editor.press(str(key)), "key", self.interval_after(str(key)))

    async def accept(self, item: Item, part: str, covered: int) -> None:
        """Accept an offer or a part of it, after a look at it."""
        await asyncio.sleep(self.draw.uniform(*READING_SECONDS))
        self.played.counts.accepted += 1
        self.played.counts.accepted_characters += len(part)
        edit = self.editor.accept(part, covered)
        if part == item.text and item.command is not None:
            command = {name: item.command.get(name) for name in ("command", "arguments")}
            self.client.ask("workspace/executeCommand", command)
        await self.change(edit, "accepted", self.interval)

    async def change(self, edit: Edit, after: str, pause: float = 0.0) -> None:
        """Tell the server of an edit, and ask for completions if the next key does not come too soon."""
        self.due = time.perf_counter() + pause
        self.left -= 1
        self.played.counts.keystrokes += 1
        self.send(edit)
        self.item = None
        if self.asked is not None:
            self.client.cancel(self.asked)
        if not self.scenario.waits and 0 < pause <= EDITOR_DELAY:
            self.played.counts.unasked += 1
            return
        await asyncio.sleep(EDITOR_DELAY)
        self.ask(after)
        if self.scenario.waits:
            await self.settle()

    def send(self, edit: Edit) -> None:
        """Tell the server of an edit that was just made."""
        self.version += 1
        changes = [{"range": span(self.editor.before, edit.start, edit.end), "text": edit.text}]
        document = {"uri": self.uri, "version": self.version}
        self.client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    def ask(self, after: str) -> None:
        """Ask for completions at the cursor."""
        right = self.editor.text[self.editor.cursor :]
        request = Request(self.scenario.name, after, same_right=right == self.right)
        self.right = right
        self.played.requests.append(request)
        version = self.version
        self.asked = asked = self.client.ask(
            "textDocument/inlineCompletion",
            {
                "textDocument": {"uri": self.uri},
                "position": position(self.editor.text, self.editor.cursor),
                "context": {"triggerKind": INVOKED if after == "invoked" else AUTOMATIC},
            },
        )

        def finish(answer: asyncio.Future[dict[str, Any]]) -> None:
            if answer.cancelled() or answer.exception() is not None:
                return
            items = note(request, asked, answer.result())
            if asked.cancelled is None and version == self.version:
                self.item = items[0] if items else None

        asked.answer.add_done_callback(finish)

    async def settle(self) -> None:
        """Wait for the last answer."""
        if self.asked is not None:
            await self.client.answer_to(self.asked)

    def interval_after(self, key: str) -> float:
        """Seconds from a key to the next one."""
        seconds = self.draw.lognormvariate(math.log(self.interval), SPREAD)
        thinks = self.scenario.pace == 1 and not is_word(key[-1:]) and self.draw.random() < PAUSE_SHARE
        seconds = min(max(seconds, KEY_SECONDS[0]), KEY_SECONDS[1])
        return seconds + (self.draw.uniform(*PAUSE_SECONDS) if thinks else 0.0)


def note(request: Request, asked: Asked, message: dict[str, Any]) -> list[Item]:
    """Take an answer into the record of its request; gives the offers."""
    request.milliseconds = 1000 * (asked.received - asked.sent)
    if asked.cancelled is not None:
        request.cancel_milliseconds = 1000 * (asked.received - asked.cancelled)
    if "error" in message:
        request.outcome = "cancelled" if message["error"].get("code") == CANCELLED else "failed"
        return []
    request.outcome = "answered" if asked.cancelled is None else "late"
    result = message["result"] or []
    found = result["items"] if isinstance(result, dict) else result
    items = [item_of(entry) for entry in found]
    request.items = len(items)
    request.lines = items[0].text.count("\n") + 1 if items else 0
    request.last = asked.last if request.outcome == "answered" else None
    return items


def item_of(entry: dict[str, Any]) -> Item:
    """An item of the protocol's. Its range begins at the cursor, since nothing is selected."""
    covered = 0
    if entry.get("range") is not None:
        covered = entry["range"]["end"]["character"] - entry["range"]["start"]["character"]
    return Item(entry["insertText"], covered, entry.get("command"))


# --- measuring ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """A file to type in."""

    name: str
    text: str = field(repr=False)
    holes: list[Hole] = field(repr=False)


def measure(arguments: argparse.Namespace, progress: bench.Progress) -> Report:
    """Play all scenarios, each with a server of its own.

    Raises:
        BenchError: There are no files, or the server does not start or answer.
    """
    progress.say("choosing files")
    sources = list(choose(arguments.path, arguments.files, arguments.seed))
    wanted = arguments.scenario or [scenario.name for scenario in SCENARIOS]
    report = Report(setting(arguments, sources))
    for scenario in SCENARIOS:
        if scenario.name in wanted:
            report.played.append(asyncio.run(play(scenario, sources, arguments, progress)))
    report.setting["model"] = ", ".join(f"{name} {value}" for name, value in report.played[0].model.items())
    return report


def choose(paths: Sequence[str] | None, count: int, seed: int) -> Iterator[Source]:
    """Files in random order, and the holes in them.

    Raises:
        BenchError: There are none.
    """
    if paths is None:
        found = [path for path in masks_bench.files("python", None) if path.stat().st_size in SIZES]
    else:
        found = [
            path
            for given in map(Path, paths)
            for path in ([given] if given.is_file() else masks_bench.files("python", given))
        ]
    random.Random(f"server {seed}").shuffle(found)
    chosen = 0
    for path in found:
        text = masks_bench.read("python", path)
        gaps = holes(text, random.Random(f"holes {path.name} {seed}")) if text else []
        if text and gaps:
            yield Source(path.name, text, gaps)
            chosen += 1
        if chosen == count:
            return
    if not chosen:
        raise BenchError(f"{', '.join(paths or ['the standard library'])}: no Python files to type in")


async def play(
    scenario: Scenario, sources: Sequence[Source], arguments: argparse.Namespace, progress: bench.Progress
) -> Played:
    """Play one scenario.

    Raises:
        BenchError: The server does not start or answer.
    """
    played = Played(scenario, load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None)
    named = ((name, getattr(arguments, name)) for name in ("model", "device", "runtime"))
    options = [f"--{name}={value}" for name, value in named if value is not None]
    progress.say(f"{scenario.name}: starting the server")
    with tempfile.TemporaryFile() as errors:
        client = await Client.start(options, arguments.threads, errors)
        try:
            initialize = {"processId": os.getpid(), "rootUri": None, "capabilities": CAPABILITIES}
            await client.answer_to(client.ask("initialize", initialize))
            client.notify("initialized", {})
            played.ready = await client.ready()
            played.model = client.status.get("model", {})
            before = process_figures(client.process.pid)
            started = time.perf_counter()
            draw = random.Random(f"typing {arguments.seed}")
            typist = Typist(client, played, arguments.interval_ms / 1000, draw)
            shares = shared(arguments.keystrokes, len(sources))
            for number, (source, share) in enumerate(zip(sources, shares, strict=True), start=1):
                progress.say(f"{scenario.name}: {source.name}, {number} of {len(sources)}")
                if share:
                    await typist.type_in(source.name, source.text, source.holes, share)
            played.seconds = time.perf_counter() - started
            await client.settle()
            after = process_figures(client.process.pid)
            if before is not None and after is not None:
                played.cpu_loading, played.cpu_typing = before.seconds, after.seconds - before.seconds
                played.memory = after.memory
        finally:
            await client.end()
    return played


def shared(total: int, parts: int) -> list[int]:
    """A number in parts that are as equal as can be.

    >>> shared(8, 3)
    [3, 3, 2]
    """
    return [total // parts + (number < total % parts) for number in range(parts)]


@dataclass(frozen=True)
class Figures:
    """What a process has used."""

    memory: int
    """Bytes that it holds."""
    seconds: float
    """Of processor time."""


def process_figures(identity: int) -> Figures | None:
    """What another process has used until now; None where the system does not tell."""
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{identity}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        return Figures(int(fields[21]) * os.sysconf("SC_PAGE_SIZE"), ticks / os.sysconf("SC_CLK_TCK"))
    return None


def setting(arguments: argparse.Namespace, sources: Sequence[Source]) -> dict[str, str]:
    """The machine and the work, in words; folders of this machine are not named."""
    options = [f"--path {Path(path).name}" for path in arguments.path or ()]
    options += [f"--{name} {getattr(arguments, name)}" for name in ("files", "keystrokes", "seed")]
    options += [f"--interval-ms {arguments.interval_ms}"]
    options += [f"--scenario {name}" for name in arguments.scenario or ()]
    options += [f"--model {Path(arguments.model).name}"] if arguments.model is not None else []
    options += [
        f"--{name} {value}"
        for name in ("device", "runtime", "threads")
        if (value := getattr(arguments, name)) is not None
    ]
    sizes = ", ".join(f"{source.name} ({len(source.text) / 1000:.0f} kB)" for source in sources)
    return {
        "command": f"fim-server bench server {' '.join(options)}",
        "machine": arguments.machine or bench.machine(),
        "versions": ", ".join(f"{name} {version_of(name)}" for name in ("fim-server", "torch", "pygls")),
        "files": sizes,
        "typing": f"{arguments.keystrokes} keystrokes in each scenario, {arguments.interval_ms} ms apart in the median",
    }


def version_of(name: str) -> str:
    """The version of an installed package."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "(not installed)"


# --- the report ---------------------------------------------------------------------------------------------------


def percentile(values: Sequence[float], share: float) -> float | None:
    """A percentile, which is one of the values; None of none."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)), 1) - 1] if ordered else None


@dataclass(frozen=True)
class Row:
    """Times of one kind, in milliseconds."""

    scenario: str
    what: str
    n: int
    p50: float | None
    p95: float | None
    max: float | None
    goal: str = ""

    @classmethod
    def of(cls, scenario: str, what: str, values: Sequence[float], goal: str = "") -> Row:
        """The figures of some values."""
        p50, p95, most = (percentile(values, share) for share in (0.5, 0.95, 1.0))
        return cls(scenario, what, len(values), p50, p95, most, goal)

    def cells(self) -> tuple[str, ...]:
        """A line of the table."""
        figures = map(bench.shown, (self.p50, self.p95, self.max))
        return self.scenario, self.what, f"{self.n:,}", *figures, self.goal


def two_figures(row: Row) -> str:
    """The middle and the upper end of some times."""
    return f"p50 {bench.shown(row.p50)} ms, p95 {bench.shown(row.p95)} ms"


def is_automatic(request: Request) -> bool:
    return request.outcome == "answered" and request.after != "invoked"


def is_from_model(request: Request) -> bool:
    return is_automatic(request) and request.origin == "model"


def by_reuse(requests: Sequence[Request]) -> Iterator[tuple[str, list[Request]]]:
    """Requests by what the server can have read for the one before."""
    first = [one for one in requests if one.after in ("opened", "moved")]
    rest = [one for one in requests if one.after not in ("opened", "moved")]
    yield "the first in a file or at a place", first
    yield "later, the right side as before", [one for one in rest if one.same_right]
    yield "later, the right side changed", [one for one in rest if not one.same_right]


ONE_LINE = "item of one line, from the model"

KINDS: tuple[tuple[str, Callable[[Request], bool], str], ...] = (
    ("every answer", is_automatic, ""),
    (ONE_LINE, lambda one: is_from_model(one) and one.lines == 1, ITEM_GOAL),
    ("item of several lines, from the model", lambda one: is_from_model(one) and one.lines > 1, ""),
    ("nothing to offer, says the model", lambda one: is_from_model(one) and not one.items, ""),
    ("these three: first in a file", lambda one: is_from_model(one) and one.after == "opened", ""),
    ("these three: first at another place", lambda one: is_from_model(one) and one.after == "moved", ""),
    ("from the cache", lambda one: is_automatic(one) and one.origin == "cache", ""),
    ("prepared before (prefetch)", lambda one: is_automatic(one) and one.origin == "prefetch", ""),
    ("still being prepared (prefetch)", lambda one: is_automatic(one) and one.origin == "joined", ""),
    ("no model asked (comment, string, word)", lambda one: is_automatic(one) and one.origin == "none", ""),
    (
        "invoked: up to three items, from the model",
        lambda one: one.outcome == "answered" and one.after == "invoked" and one.origin == "model",
        "",
    ),
)
"""What requests are told apart by, and what is asked of each."""

CANCEL_KINDS = (
    ("cancelled: from there to the error", "cancelled", CANCEL_GOAL),
    ("cancelled, but already answered", "late", ""),
)

SHORT_HEADER = ("figure", "result", "goal, ms")
TIMES_HEADER = ("scenario", "request", "n", "p50", "p95", "max", "goal")
PARTS_HEADER = ("of", "part", "n", "p50", "p95", "max", "goal")
KEYS_HEADER = (
    "scenario",
    "keystrokes",
    "cache",
    "prefetch",
    "no model asked",
    "not asked",
    "without the model",
    "model: item",
    "model: nothing",
    "cancelled",
    "failed",
    "accepted",
    "followed",
)
PROCESS_HEADER = (
    "scenario",
    "load before",
    "s to ready",
    "CPU s to ready",
    "s typing",
    "CPU s typing",
    "CPU ms a key",
    "MB at end",
)


@dataclass
class Report:
    """What was measured, on what."""

    setting: dict[str, str]
    played: list[Played] = field(default_factory=list)

    def times(self) -> Iterator[Row]:
        """Times from request to answer, by scenario and kind."""
        for played in self.played:
            name = played.scenario.name
            for what, belongs, goal in KINDS:
                values = [request.milliseconds for request in played.requests if belongs(request)]
                if values:
                    yield Row.of(name, what, values, goal if played.scenario.waits else "")
            for what, outcome, goal in CANCEL_KINDS:
                values = [
                    request.cancel_milliseconds
                    for request in played.requests
                    if request.outcome == outcome and request.cancel_milliseconds is not None
                ]
                if values:
                    yield Row.of(name, what, values, goal)

    def parts(self) -> Iterator[Row]:
        """Where the time of answers went, as the server says; all scenarios together."""
        known = [
            one
            for played in self.played
            for one in played.requests
            if is_automatic(one) and one.latency and one.own is not None
        ]
        model = [one for one in known if one.origin == "model"]
        kinds = (
            ("every answer", known, OWN_GOAL),
            ("answers of the model", model, OWN_GOAL),
            ("answers from memory", [one for one in known if one.origin in ("cache", "prefetch")], OWN_GOAL),
        )
        for name, requests, goal in kinds:
            yield Row.of(name, "server's own share", [one.own or 0.0 for one in requests], goal)
            outside = [one.milliseconds - one.latency["totalMs"] for one in requests]
            yield Row.of(name, "outside the server's clock", outside)
        for part in (*OWN_PARTS, *MODEL_PARTS):
            yield Row.of("answers of the model", part.removesuffix("Ms"), [one.latency[part] for one in model])
        for what, requests in by_reuse(model):
            yield Row.of(what, "prefill", [one.latency["prefillMs"] for one in requests])
            yield Row.of(what, "server's own share", [one.own or 0.0 for one in requests])

    def short(self) -> Iterator[tuple[str, ...]]:
        """The figures that stand for all the others."""
        for row in self.times():
            if row.what in (ONE_LINE, CANCEL_KINDS[0][0]) and row.goal:
                yield (f"{row.what} ({row.scenario})", two_figures(row), row.goal)
        own = next(self.parts())
        yield ("server's own share of an answer (all scenarios)", two_figures(own), own.goal)
        for played, cells in zip(self.played, self.keys(), strict=True):
            named = dict(zip(KEYS_HEADER, cells, strict=True))
            value = f"cache {named['cache']}, prefetch {named['prefetch']}"
            yield (f"keystrokes answered from memory ({played.scenario.name})", value, "")
        ready = percentile([played.ready for played in self.played], 0.5)
        memory = max((played.memory for played in self.played if played.memory is not None), default=None)
        yield ("from the server's start until it is ready", f"{bench.shown(ready)} s", "")
        yield ("memory of the server at the end", f"{bench.shown(None if memory is None else memory / 1e6)} MB", "")

    def keys(self) -> Iterator[tuple[str, ...]]:
        """What became of the keystrokes, in shares of them."""
        for played in self.played:
            counts = played.counts
            requests = [one for one in played.requests if one.after != "invoked"]
            answered = [one for one in requests if one.outcome == "answered"]

            def of(*origins: str, among: list[Request] = answered) -> list[Request]:
                return [one for one in among if one.origin in origins]

            model = of("model", "joined")
            saved = len(of("cache")), len(of("prefetch")), len(of("none")), counts.unasked
            shares = (
                *saved,
                sum(saved),
                sum(one.items > 0 for one in model),
                sum(one.items == 0 for one in model),
                sum(one.outcome in ("cancelled", "late") for one in requests),
                sum(one.outcome == "failed" for one in requests),
            )
            yield (
                played.scenario.name,
                f"{counts.keystrokes:,}",
                *(f"{100 * share / max(counts.keystrokes, 1):.1f} %" for share in shares),
                f"{counts.accepted} ({counts.accepted_characters} characters)",
                f"{counts.followed}",
            )

    def processes(self) -> Iterator[tuple[str, ...]]:
        """What the server's process took."""
        for played in self.played:
            memory = None if played.memory is None else played.memory / 1e6
            keys = max(played.counts.keystrokes, 1)
            each = None if played.cpu_typing is None else 1000 * played.cpu_typing / keys
            figures = (played.load, played.ready, played.cpu_loading, played.seconds, played.cpu_typing, each, memory)
            yield played.scenario.name, *map(bench.shown, figures)

    def tables(self) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]], range]]:
        """Titles, headers, lines, and the columns of numbers."""
        yield "In short", SHORT_HEADER, list(self.short()), range(0)
        yield (
            "From request to answer, in ms",
            TIMES_HEADER,
            [row.cells() for row in self.times()],
            range(2, 6),
        )
        yield (
            "Where the server says the time went, in ms",
            PARTS_HEADER,
            [row.cells() for row in self.parts()],
            range(2, 6),
        )
        yield "What became of the keystrokes", KEYS_HEADER, list(self.keys()), range(1, 11)
        yield "The server's process", PROCESS_HEADER, list(self.processes()), range(1, 8)

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        scenarios = []
        for played in self.played:
            entry = asdict(played)
            entry["scenario"] = played.scenario.name
            for request, written in zip(played.requests, entry["requests"], strict=True):
                written |= {"origin": request.origin, "own": request.own}
            scenarios.append(entry)
        return {
            "setting": self.setting,
            "times": [asdict(row) for row in self.times()],
            "parts": [asdict(row) for row in self.parts()],
            "scenarios": scenarios,
        }

    def lines(self) -> Iterator[str]:
        """The report as aligned tables."""
        yield from (f"{name}: {value}" for name, value in self.setting.items())
        for title, header, lines, numbers in self.tables():
            yield ""
            yield f"{title}:"
            yield from masks_bench.aligned(header, lines, numbers)

    def as_markdown(self) -> str:
        """The report as a page of `docs/results`."""
        lines = ["# The server while somebody types", "", f"    {self.setting['command']}", ""]
        lines += [f"- {name}: {value}" for name, value in self.setting.items() if name != "command"]
        lines += ["", *textwrap.wrap(EXPLAINED.strip(), 118), ""]
        for played in self.played:
            text = f"- **{played.scenario.name}**: {played.scenario.explanation}"
            lines += textwrap.wrap(text, 118, subsequent_indent="  ")
        for (title, header, rows, numbers), explanation in zip(self.tables(), TABLES_EXPLAINED, strict=True):
            lines += ["", f"## {title}", "", *textwrap.wrap(explanation.strip(), 118), ""]
            lines += masks_bench.markdown(header, rows, numbers)
        return "\n".join([*lines, ""])


EXPLAINED = """
Code is taken out of files (the rest of a line, a line, a block, the arguments of a call) and typed again, 25 keystrokes
of it at most, through the real protocol, to a server process of its own for each scenario. The editor is played as VS
Code is: brackets and quotes close by themselves, each keystroke is a change, and 50 ms after it comes an automatic
request, which is cancelled if the next keystroke comes before the answer. Times between keys are log-normal, with
pauses for thought. An offer that is what the file says is accepted most of the time, whole or by a word; the embedded
model is weak, so that is rare. Percentiles are measured values.
"""

TABLES_EXPLAINED = (
    """
Of the figures below, those that goals were set for.
""",
    """
From the moment the request is written to the moment its answer is read, at the editor's end; the 50 ms before the
request are not in it. An item may have several lines wherever the cursor is at a line's end. In the scenarios that wait
for nothing only requests that the next key left time for have an answer, so the slow ones are missing there.
""",
    """
The server's own share is the total without its own pause (debounce), waiting for the worker (queue), and the model
(prefill and decode): open and engine, which are the grammar's, and the server's rest. What lies outside the server's
clock is the reading and writing of messages at both ends, and the pipe between them. A request that found its answer
already being prepared is left out: its parts began before it. The right side is the text right of the cursor, which
comes first in the prompt: what closes by itself changes it, and the model reads all of the prompt anew. What was asked
for explicitly (invoked) is left out.
""",
    """
Shares of the keystrokes (acceptances and removals count as one each). Not asked: the next key came within the 50 ms.
Without the model: the four columns before it. Failed: an error that is not the cancellation's.
""",
    """
Load before: the machine's when the server was started, by which it chooses the model's threads. Ready: from the start
of the process to the status `ready`. Processor time is of all the server's threads.
""",
)
