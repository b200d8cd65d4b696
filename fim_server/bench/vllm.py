"""``python -m fim_server.bench.vllm``: the plug-in in a real vLLM, with rows that have holes and rows that have none.

Servers are started one after another from an environment that has vLLM and this package (docs/engines.md): without the
plug-in, with it, with it and speculation, and with vLLM's other grammar engines. To each go the same requests at once.
Exits with 1 where a row is not what was promised. What it prints of time is for people and judged by no test.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from fim_server import Language, Vocabulary
from fim_server.bench.cursors import Choice, choose
from fim_server.bench.peers.grammars import JSON_EBNF, JSON_LARK
from fim_server.errors import BenchError, FimServerError, HoleError
from fim_server.integrations.holes import PREFIX, Hole, is_hole
from fim_server.integrations.meter import BOUNDS
from fim_server.language.shapes import SINGLE_LINE
from fim_server.models.prompt import find_format
from fim_server.models.source import locate
from fim_server.models.tokenizer import TOKENIZER_FILE, read_tokenizer

STARTING_SECONDS = 900
ANSWER_SECONDS = 900


@dataclass(frozen=True)
class Request:
    """One request: its prompt, and the hole that its text is judged by."""

    prompt: list[int] = field(repr=False)
    left: str = field(repr=False)
    right: str = field(repr=False)
    grammar: str | None = field(repr=False)
    language: str = "python"
    xargs: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Answer:
    """What came of it."""

    tokens: list[int] = field(repr=False)
    text: str
    reason: str


class Server:
    """A running vLLM."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx2.Client(timeout=ANSWER_SECONDS, limits=httpx2.Limits(max_connections=None))

    def ask(self, request: Request, tokens: int, **settings: Any) -> httpx2.Response:
        """Send one request, greedy unless the settings say otherwise."""
        body: dict[str, Any] = {"model": "bench", "prompt": request.prompt, "max_tokens": tokens, "temperature": 0}
        if request.grammar is not None:
            body["structured_outputs"] = {"grammar": request.grammar}
        if request.xargs is not None:
            body["vllm_xargs"] = {"fim_server": request.xargs}
        body |= {"return_token_ids": True} | settings
        return self._client.post(f"{self.url}/v1/completions", json=body)

    def answers(self, requests: Sequence[Request], tokens: int, **settings: Any) -> tuple[list[Answer], float]:
        """The answers to requests that are sent at once, and the seconds until the last one came."""
        with ThreadPoolExecutor(len(requests)) as senders:
            started = time.perf_counter()
            responses = list(senders.map(lambda request: self.ask(request, tokens, **settings), requests))
            seconds = time.perf_counter() - started
        found = []
        for response in responses:
            if response.status_code != 200:
                raise BenchError(f"vLLM answered {response.status_code}: {response.text[:300]}")
            choice = response.json()["choices"][0]
            found.append(Answer(choice["token_ids"], choice["text"], choice["finish_reason"]))
        return found, seconds

    def metrics(self) -> dict[str, float]:
        """The plug-in's own, by name."""
        lines = self._client.get(f"{self.url}/metrics").text.splitlines()
        return {
            line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith("fim_server_") and "_created" not in line
        }


@contextmanager
def serving(options: Options, *arguments: str, plug_in: bool = True) -> Iterator[Server]:
    """A vLLM in a process of its own, until the block ends."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    environment |= {"VLLM_PLUGINS": "fim_server" if plug_in else "none"}
    environment.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")
    command = [options.python, "-m", "vllm.entrypoints.openai.api_server", "--model", locate(options.model)]
    command += ["--served-model-name", "bench", "--host", "127.0.0.1", "--port", str(options.port)]
    command += ["--max-num-seqs", str(options.requests), "--max-model-len", "2048", *options.vllm, *arguments]
    if is_up(f"http://127.0.0.1:{options.port}"):
        raise BenchError(f"port {options.port} is taken; --port names another")
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            server = Server(f"http://127.0.0.1:{options.port}")
            until = time.monotonic() + STARTING_SECONDS
            while not is_up(server.url):
                if process.poll() is not None or time.monotonic() > until:
                    log.seek(0)
                    raise BenchError("vLLM did not start: " + " | ".join(log.read().splitlines()[-5:]))
                time.sleep(1)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def is_up(url: str) -> bool:
    """Whether a server answers."""
    try:
        return httpx2.get(f"{url}/health", timeout=5).status_code == 200
    except httpx2.HTTPError:
        return False


@dataclass(frozen=True)
class Options:
    """The command line."""

    python: str
    model: str
    requests: int
    tokens: int
    seed: int
    port: int
    vllm: Sequence[str]
    only: Sequence[str]


class Bench:
    """All of it; `failures` says what was not as promised."""

    def __init__(self, options: Options) -> None:
        self.options = options
        folder = Path(locate(options.model))
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
        """What the rows are without the plug-in."""

    def request(self, number: int, masked: bool, **keys: Any) -> Request:
        """A request of one of the holes."""
        left, right = self.holes[number]
        prompt = self.format.encode(left, right, 256)
        hole = json.dumps({"left": left, "right": right} | keys)
        return Request(prompt, left, right, PREFIX + hole if masked else None)

    def has_line(self, number: int) -> bool:
        """Whether one line can fill a hole."""
        left, right = self.holes[number]
        try:
            Hole(left, right, shape=SINGLE_LINE).open()
        except HoleError:
            return False
        return True

    def through_processor(self, number: int) -> Request:
        """The same, masked by the logits processor."""
        given = self.request(number, masked=True)
        assert given.grammar is not None
        return Request(given.prompt, given.left, given.right, None, xargs=given.grammar.removeprefix(PREFIX))

    def judge(self, what: str, requests: Sequence[Request], answers: Sequence[Answer]) -> None:
        """Check the masked rows, and count them."""
        viable = complete = stopped = plain = 0
        masked = [
            (request, answer)
            for request, answer in zip(requests, answers, strict=True)
            if request.grammar is not None or request.xargs is not None
        ]
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

    def unchanged(self, answers: Sequence[Answer]) -> None:
        """Print how many of the odd rows, which are not masked, are what they are without the plug-in."""
        if self.free:
            print(f"  unmasked rows: {same(self.free[1::2], answers)} of {len(answers)} the same as without")

    def speed(self, what: str, answers: Sequence[Answer], seconds: float) -> None:
        """Print tokens a second."""
        count = sum(len(answer.tokens) for answer in answers)
        print(f"  {what}: {count} tokens in {seconds:.1f} s, {count / seconds:.0f} tokens/s", flush=True)

    def without(self) -> None:
        """No plug-in at all: what unmasked rows are, and whether they are the same a second time."""
        print("without the plug-in", flush=True)
        with serving(self.options, plug_in=False) as server:
            requests = [self.request(number, masked=False) for number in range(self.options.requests)]
            server.answers(requests, 4)
            self.free, seconds = server.answers(requests, self.options.tokens)
            self.speed("unmasked", self.free, seconds)
            again, _ = server.answers(requests[1::2], self.options.tokens)
            print(f"  the odd rows by themselves, again: {same(self.free[1::2], again)} of {len(again)} the same")

    def structured(self, name: str, *arguments: str) -> None:
        """The plug-in: every other row masked, then all of them."""
        print(name, flush=True)
        with serving(self.options, *arguments) as server:
            numbers = range(self.options.requests)
            server.answers([self.request(number, masked=number % 2 == 0) for number in numbers], 4)
            mixed = [self.request(number, masked=number % 2 == 0) for number in numbers]
            answers, seconds = server.answers(mixed, self.options.tokens)
            self.speed("every other row masked", answers, seconds)
            self.judge(name, mixed, answers)
            self.unchanged(answers[1::2])
            requests = [self.request(number, masked=True) for number in numbers]
            before = server.metrics()
            answers, seconds = server.answers(requests, self.options.tokens)
            self.speed("all rows masked", answers, seconds)
            self.judge(name, requests, answers)
            self.masks(before, server.metrics())
            lines = [
                self.request(number, masked=True, shape={"lines": 1}) for number in numbers if self.has_line(number)
            ]
            answers, seconds = server.answers(lines, self.options.tokens)
            self.speed("single lines", answers, seconds)
            self.judge(name, lines, answers)
            if any("\n" in answer.text for answer in answers):
                self.failures.append(f"{name}: a single line of several")
            self.refusals(server)

    def masks(self, before: Mapping[str, float], after: Mapping[str, float]) -> None:
        """Print what a mask took."""
        found = {key: after[key] - before.get(key, 0.0) for key in after}
        count = found.get("fim_server_mask_seconds_count", 0)
        if not count:
            self.failures.append("no masks in the metrics")
            return
        mean, half, most = (
            1e6 * seconds
            for seconds in (
                found["fim_server_mask_seconds_sum"] / count,
                below(found, count / 2),
                below(found, 0.95 * count),
            )
        )
        opening = 1e3 * found["fim_server_session_seconds_total"] / found["fim_server_sessions_total"]
        print(f"  {count:.0f} masks, mean {mean:.0f} µs, half below {half:.0f} µs, 95 % below {most:.0f} µs")
        print(f"  sessions {opening:.1f} ms each; refused tokens {found['fim_server_refused_tokens_total']:.0f}")

    def refusals(self, server: Server) -> None:
        """Wrong requests get HTTP 400 in words."""
        wrong = {
            "no JSON": "{",
            "an unknown key": '{"left": "", "rigth": ""}',
            "an unknown language": '{"left": "", "language": "cobol"}',
            "no program": '{"left": "x = )", "right": ""}',
            "an odd shape": '{"left": "", "shape": {"lines": 99}}',
        }
        for what, grammar in wrong.items():
            response = server.ask(Request([1], "", "", PREFIX + grammar), 4)
            said = response.json().get("error", {}).get("message", "")
            if response.status_code != 400 or "fim-server" not in said:
                self.failures.append(f"{what}: {response.status_code} {said}")
        for settings in ({"stop": ["\n"]}, {"ignore_eos": True}, {"min_tokens": 3}):
            if server.ask(self.request(0, masked=True), 4, **settings).status_code != 400:
                self.failures.append(f"{settings} was taken")
        print(f"  wrong requests: {len(wrong) + 3} refused")

    def processor(self) -> None:
        """The logits processor of the interface that this vLLM's runner has."""
        name = "logits processor"
        print(name, flush=True)
        with serving(self.options, "--logits-processors", "fim_server.integrations.vllm:FimLogitsProcessor") as server:
            numbers = range(self.options.requests)
            mixed = [self.through_processor(n) if n % 2 == 0 else self.request(n, masked=False) for n in numbers]
            server.answers(mixed, 4)
            answers, seconds = server.answers(mixed, self.options.tokens)
            self.speed("every other row masked", answers, seconds)
            self.judge(name, mixed, answers)
            self.unchanged(answers[1::2])
            odd = server.ask(Request([1], "", "", None, xargs='{"left": "x = )"}'), 4)
            if odd.status_code != 400:
                self.failures.append(f"{name}: a wrong hole got {odd.status_code}")

    def json(self) -> None:
        """JSON with nothing around it, which vLLM's own engines can do as well."""
        hole = PREFIX + json.dumps({"left": "", "right": "", "language": "json"})
        print("JSON, no text around it", flush=True)
        with serving(self.options) as server:
            for name, grammar in {"unmasked": None, "this engine": hole, "XGrammar": JSON_EBNF}.items():
                self.documents(server, name, grammar)
        with serving(self.options, "--structured-outputs-config", json.dumps({"backend": "guidance"})) as server:
            self.documents(server, "llguidance", JSON_LARK)

    def documents(self, server: Server, name: str, grammar: str | None) -> None:
        """Ask for documents under a grammar."""
        prompts = [self.format.encode(f"data{n} = ", "", 256) for n in range(self.options.requests)]
        requests = [Request(prompt, "", "", grammar, "json") for prompt in prompts]
        server.answers(requests, 4)
        # Unmasked, a model that writes code has nothing to say to such a prompt, and would end at once.
        settings = {"ignore_eos": True} if grammar is None else {}
        before = server.metrics()
        answers, seconds = server.answers(requests, self.options.tokens, **settings)
        self.speed(name, answers, seconds)
        if grammar is not None:
            self.judge(name, requests, answers)
        if is_hole(grammar):
            self.masks(before, server.metrics())

    def run(self) -> int:
        """Everything that is wanted; the exit status."""
        print(f"{self.options.model}, {self.options.requests} requests at once, {self.options.tokens} tokens at most")
        drafts = json.dumps({"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4})
        steps: dict[str, Callable[[], None]] = {
            "without": self.without,
            "structured": lambda: self.structured("with the plug-in"),
            "json": self.json,
            "processor": self.processor,
            "speculation": lambda: self.structured("with n-gram speculation", "--speculative-config", drafts),
        }
        for name, step in steps.items():
            if not self.options.only or name in self.options.only:
                step()
        for failure in self.failures:
            print(f"NOT AS PROMISED: {failure}")
        return 1 if self.failures else 0


def same(some: Sequence[Answer], others: Sequence[Answer]) -> int:
    """How many answers have the same tokens."""
    return sum(one.tokens == other.tokens for one, other in zip(some, others, strict=True))


def below(found: Mapping[str, float], count: float) -> float:
    """The least bound of the histogram of masks that so many of them are below. Unit: seconds."""
    name = "fim_server_mask_seconds_bucket"
    return next(bound for bound in (*BOUNDS, math.inf) if found[f'{name}{{le="{prometheus(bound)}"}}'] >= count)


def prometheus(bound: float) -> str:
    """A bound as Prometheus writes it."""
    return "+Inf" if math.isinf(bound) else str(bound)


def end(number: int, frame: object) -> None:
    """Leave as an exception does."""
    raise SystemExit(128 + number)


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m fim_server.bench.vllm", description=__doc__)
    parser.add_argument("--python", required=True, help="the interpreter of an environment with vLLM and fim-server")
    parser.add_argument("--model", default="smollm2", help="a folder or name with safetensors (default: smollm2)")
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=48, help="of each text at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--port", type=int, default=8431)
    parser.add_argument("--vllm", action="append", default=[], help="a further argument of vLLM")
    parser.add_argument("--only", action="append", default=[], help="a step's name: without, structured, …")
    signal.signal(signal.SIGTERM, end)  # so that no server is left behind
    try:
        return Bench(Options(**vars(parser.parse_args(argv)))).run()
    except FimServerError as error:
        print(f"fim-server: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
