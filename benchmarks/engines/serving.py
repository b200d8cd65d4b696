"""Shared parts of the benchmarks of masks in other engines: servers, simultaneous requests, verdicts on answers.

Servers are started from an environment that has the engine and this package (docs/engines.md).
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.engine.cursors import Choice, choose
from fim_server import Language, Vocabulary
from fim_server.errors import BenchError, FimServerError, HoleError
from fim_server.integrations.holes import PREFIX, Hole
from fim_server.language.shapes import SINGLE_LINE
from fim_server.models.prompt import find_format
from fim_server.models.source import locate
from fim_server.models.tokenizer import TOKENIZER_FILE, read_tokenizer
from fim_server.models.weights import require_weights

STARTING_SECONDS = 900
ANSWER_SECONDS = 900

PROMPT_TOKENS = 256

WRONG = {
    "no JSON": "{",
    "an unknown key": '{"left": "", "rigth": ""}',
    "an unknown language": '{"left": "", "language": "cobol"}',
    "no program": '{"left": "x = )", "right": ""}',
    "an odd shape": '{"left": "", "shape": {"lines": 99}}',
}
"""Holes that every engine is to refuse."""


@dataclass(frozen=True)
class Request:
    """One request: its prompt, and the hole that its text is judged by."""

    prompt: list[int] = field(repr=False)
    left: str = field(repr=False)
    right: str = field(repr=False)
    grammar: str | None = field(repr=False)
    language: str = "python"
    xargs: str | None = field(default=None, repr=False)

    @property
    def masked(self) -> bool:
        """Return whether it has a hole at all."""
        return self.grammar is not None or self.xargs is not None


@dataclass(frozen=True)
class Answer:
    """Answer to a request; ``reason`` is `stop` where the text ended by itself."""

    tokens: list[int] = field(repr=False)
    text: str
    reason: str


@dataclass(frozen=True)
class Options:
    """The command line; ``further``: arguments of the engine's server."""

    python: str
    model: str
    requests: int
    tokens: int
    seed: int
    port: int
    further: Sequence[str]
    only: Sequence[str]


class Server(ABC):
    """A running server of an engine."""

    engine: str

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = httpx2.Client(timeout=ANSWER_SECONDS, limits=httpx2.Limits(max_connections=None))

    @abstractmethod
    def ask(self, request: Request, tokens: int, **settings: Any) -> httpx2.Response:
        """Send one request, greedy unless the settings say otherwise."""

    @abstractmethod
    def read(self, body: Any) -> Answer:
        """The answer in the JSON of a response."""

    def answers(self, requests: Sequence[Request], tokens: int, **settings: Any) -> tuple[list[Answer], float]:
        """The answers to requests that are sent at once, and the seconds until the last one came."""
        with ThreadPoolExecutor(len(requests)) as senders:
            started = time.perf_counter()
            responses = list(senders.map(lambda request: self.ask(request, tokens, **settings), requests))
            seconds = time.perf_counter() - started
        for response in responses:
            if response.status_code != 200:
                raise BenchError(f"{self.engine} answered {response.status_code}: {response.text[:300]}")
        return [self.read(response.json()) for response in responses], seconds


@contextmanager
def running(engine: str, command: Sequence[str], environment: Mapping[str, str], port: int) -> Iterator[str]:
    """A server in a process of its own until the block ends; gives its URL. Raises BenchError if it does not start."""
    url = f"http://127.0.0.1:{port}"
    if is_up(url):
        raise BenchError(f"port {port} is taken; --port names another")
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, env=dict(environment), stdout=log, stderr=subprocess.STDOUT)
        try:
            until = time.monotonic() + STARTING_SECONDS
            while not is_up(url):
                if process.poll() is not None or time.monotonic() > until:
                    log.seek(0)
                    raise BenchError(f"{engine} did not start: " + " | ".join(log.read().splitlines()[-5:]))
                time.sleep(1)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def is_up(url: str) -> bool:
    """Return whether a server answers."""
    try:
        return httpx2.get(f"{url}/health", timeout=5).status_code == 200
    except httpx2.HTTPError:
        return False


class EngineBench(ABC):
    """Requests of holes in files, and what of the answers was not as promised."""

    def __init__(self, options: Options) -> None:
        self.options = options
        folder = Path(locate(options.model))
        require_weights(folder, options.model)
        tokenizer = read_tokenizer(folder, options.model)
        self.format = find_format(tokenizer, options.model)
        vocabulary = Vocabulary.from_file(folder / TOKENIZER_FILE)
        choice = Choice(None, options.requests, 1, options.tokens, options.seed)
        cursors, _ = choose("python", vocabulary, choice)
        self.holes = [(cursor.left, cursor.right) for cursor in cursors][: options.requests]
        if len(self.holes) < options.requests:
            raise BenchError(f"{len(self.holes)} holes for {options.requests} requests")
        self.failures: list[str] = []
        self.free: list[Answer] = []
        """Rows without the plug-in."""

    @abstractmethod
    def steps(self) -> Mapping[str, Callable[[], None]]:
        """Parts of the benchmark, by the names that `--only` knows."""

    def request(self, number: int, masked: bool, **keys: Any) -> Request:
        """A request of one of the holes."""
        left, right = self.holes[number]
        prompt = self.format.encode(left, right, PROMPT_TOKENS)
        hole = json.dumps({"left": left, "right": right} | keys)
        return Request(prompt, left, right, PREFIX + hole if masked else None)

    def mixed(self) -> list[Request]:
        """Every hole's request, the even ones masked."""
        return [self.request(number, masked=number % 2 == 0) for number in range(self.options.requests)]

    def all(self, masked: bool) -> list[Request]:
        """Every hole's request."""
        return [self.request(number, masked=masked) for number in range(self.options.requests)]

    def lines(self) -> list[Request]:
        """Requests for a single line, of the holes that one can fill."""
        numbers = range(self.options.requests)
        return [self.request(number, masked=True, shape={"lines": 1}) for number in numbers if self.has_line(number)]

    def has_line(self, number: int) -> bool:
        """Return whether one line can fill a hole."""
        left, right = self.holes[number]
        try:
            Hole(left, right, shape=SINGLE_LINE).open()
        except HoleError:
            return False
        return True

    def judge(self, what: str, requests: Sequence[Request], answers: Sequence[Answer]) -> None:
        """Check the masked rows, and count them."""
        viable = complete = stopped = plain = 0
        masked = [pair for pair in zip(requests, answers, strict=True) if pair[0].masked]
        for request, answer in masked:
            verdict = Language.load(request.language).open(request.left, request.right).check(answer.text)
            viable += verdict.viable
            complete += verdict.complete
            stopped += answer.reason == "stop"
            if not verdict.viable or (answer.reason == "stop" and not verdict.complete):
                self.failures.append(f"{what}: {answer.text!r} does not fit")
        known = dict(zip(self.holes, self.free, strict=False))
        for request in requests:
            free = known.get((request.left, request.right))
            if free is not None:
                plain += Language.load("python").open(request.left, request.right).check(free.text).complete
        print(f"  masked rows: {len(masked)}, viable {viable}, complete {complete}, ended by themselves {stopped}")
        if self.free and requests[0].language == "python":
            print(f"  (unmasked, of all {len(requests)} rows complete: {plain})")

    def one_line(self, what: str, answers: Sequence[Answer]) -> None:
        """Check that no row has several lines."""
        if any("\n" in answer.text for answer in answers):
            self.failures.append(f"{what}: a single line of several")

    def unchanged(self, answers: Sequence[Answer]) -> None:
        """Print how many of the odd rows, which are not masked, are what they are without the plug-in."""
        if self.free:
            print(f"  unmasked rows: {same(self.free[1::2], answers)} of {len(answers)} the same as without")

    def speed(self, what: str, answers: Sequence[Answer], seconds: float) -> None:
        """Print tokens a second."""
        count = sum(len(answer.tokens) for answer in answers)
        print(f"  {what}: {count} tokens in {seconds:.1f} s, {count / seconds:.0f} tokens/s", flush=True)

    def run_without(self, server: Server) -> None:
        """Judge the rows without masks, and whether they are the same a second time."""
        requests = self.all(masked=False)
        server.answers(requests, 4)
        self.free, seconds = server.answers(requests, self.options.tokens)
        self.speed("unmasked", self.free, seconds)
        again, _ = server.answers(requests[1::2], self.options.tokens)
        print(f"  the odd rows by themselves, again: {same(self.free[1::2], again)} of {len(again)} the same")

    def refused(self, server: Server, settings: Sequence[Mapping[str, Any]]) -> None:
        """Wrong holes, and holes with settings that keep a middle from its end, get HTTP 400 in words."""
        for what, hole in WRONG.items():
            response = server.ask(Request([1], "", "", PREFIX + hole), 4)
            if response.status_code != 400 or "fim-server" not in response.text:
                self.failures.append(f"{what}: {response.status_code} {response.text[:200]}")
        for setting in settings:
            response = server.ask(self.request(0, masked=True), 4, **setting)
            if response.status_code != 400:
                self.failures.append(f"{setting} was taken")
        print(f"  wrong requests: {len(WRONG) + len(settings)} refused")

    def run(self) -> int:
        """Everything that is wanted; the exit status."""
        print(f"{self.options.model}, {self.options.requests} requests at once, {self.options.tokens} tokens at most")
        for name, step in self.steps().items():
            if not self.options.only or name in self.options.only:
                step()
        for failure in self.failures:
            print(f"NOT AS PROMISED: {failure}")
        return 1 if self.failures else 0


def same(some: Sequence[Answer], others: Sequence[Answer]) -> int:
    """Return the number of answers with the same tokens."""
    return sum(one.tokens == other.tokens for one, other in zip(some, others, strict=True))


def end(number: int, frame: object) -> None:
    """Leave as an exception does."""
    raise SystemExit(128 + number)


def parser(engine: str, name: str, about: str | None) -> argparse.ArgumentParser:
    """The command line of an engine's benchmark.

    Args:
        engine: As it is called.
        name: As its module and the option for its further arguments are called.
        about: What the command does.
    """
    made = argparse.ArgumentParser(prog=f"python -m benchmarks.engines.{name}", description=about)
    made.add_argument("--python", required=True, help=f"the interpreter of an environment with {engine} and fim-server")
    made.add_argument("--model", default="smollm2", help="a folder or name with safetensors (default: smollm2)")
    made.add_argument("--requests", type=int, default=64)
    made.add_argument("--tokens", type=int, default=48, help="of each text at most")
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--port", type=int, default=8431)
    further = f"a further argument of {engine}"
    made.add_argument(f"--{name}", action="append", default=[], dest="further", help=further)
    made.add_argument("--only", action="append", default=[], help="a step's name: without, structured, …")
    return made


def main(bench: Callable[[], EngineBench]) -> int:
    """Run a benchmark; the exit status."""
    signal.signal(signal.SIGTERM, end)  # so that no server is left behind
    try:
        return bench().run()
    except FimServerError as error:
        print(f"fim-server: {error}", file=sys.stderr)
        return 2
