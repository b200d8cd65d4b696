"""``python -m benchmarks.engines.sglang``: the grammar backend in a real SGLang, for rows with and without holes.

Servers are started one after another from an environment that has SGLang and this package (docs/engines.md). One has
SGLang's own grammar backend, one has this one, and one has this one without overlap between steps. Each gets the same
simultaneous requests. The exit status is 1 where a row breaks its promise. No test judges the times.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.engines import serving as engines
from benchmarks.engines.serving import Answer, EngineBench, Options, Request
from fim_server.models.source import locate

BACKEND = ("--grammar-backend", "fim-server")

ENDINGS: tuple[dict[str, Any], ...] = (
    {"stop": ["\n"]},
    {"stop_regex": "b"},
    {"ignore_eos": True},
    {"min_new_tokens": 3},
)
"""Settings with which a middle would not end where it is complete."""

OTHERS: tuple[dict[str, Any], ...] = ({"regex": "a+"}, {"json_schema": "{}"}, {"ebnf": 'root ::= "a"'})
"""Grammars that are no holes."""

LEAVING_SECONDS = 0.5
"""Seconds after which a client that goes away stops waiting."""


STAND_INS = Path(__file__).with_name("stand_ins")

CPU = ("--device", "cpu", "--attention-backend", "torch_native", "--dtype", "float32", "--max-total-tokens", "40000")
"""Arguments with which SGLang serves on a processor without its kernels."""


@dataclass(frozen=True)
class SglangOptions(Options):
    """The command line; ``cpu``: whether the servers run on the processor."""

    cpu: bool = False


class Server(engines.Server):
    """A running SGLang."""

    engine = "SGLang"

    def ask(self, request: Request, tokens: int, **settings: Any) -> httpx2.Response:
        """Send one request, greedy unless the settings say otherwise."""
        return self.client.post(f"{self.url}/generate", json=body(request, tokens, settings))

    def leave(self, request: Request, tokens: int) -> None:
        """Send a request and go away before it is answered."""
        with suppress(httpx2.TimeoutException):
            httpx2.post(f"{self.url}/generate", json=body(request, tokens, {}), timeout=LEAVING_SECONDS)

    def read(self, body: Any) -> Answer:
        """The answer in the JSON of a response."""
        return Answer(body["output_ids"], body["text"], body["meta_info"]["finish_reason"]["type"])


def body(request: Request, tokens: int, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Body of a request."""
    grammar = {} if request.grammar is None else {"ebnf": request.grammar}
    sampling = {"max_new_tokens": tokens, "temperature": 0} | grammar | dict(settings)
    return {"input_ids": request.prompt, "sampling_params": sampling}


@contextmanager
def serving(options: SglangOptions, *arguments: str) -> Iterator[Server]:
    """An SGLang in a process of its own, until the block ends."""
    environment = {"HF_HUB_OFFLINE": "1", "SGLANG_PLUGINS": "fim_server"}
    if options.cpu:
        environment |= {"SGLANG_USE_CPU_ENGINE": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(STAND_INS)}
        arguments = (*CPU, *arguments)
    command = [options.python, "-m", "sglang.launch_server", "--model-path", locate(options.model)]
    command += ["--host", "127.0.0.1", "--port", str(options.port), "--context-length", "2048"]
    command += ["--max-running-requests", str(options.requests), *options.further, *arguments]
    with engines.running("SGLang", command, os.environ | environment, options.port) as url:
        yield Server(url)


class Bench(EngineBench):
    """All of it."""

    options: SglangOptions

    def without(self) -> None:
        """SGLang's own grammar backend, and no grammars."""
        print("without the backend", flush=True)
        with serving(self.options) as server:
            self.run_without(server)

    def structured(self, name: str, *arguments: str) -> None:
        """The backend: no row masked, every other row, and all of them."""
        print(name, flush=True)
        with serving(self.options, *BACKEND, *arguments) as server:
            mixed = self.mixed()
            server.answers(mixed, 4)
            answers, seconds = server.answers(self.all(masked=False), self.options.tokens)
            self.speed("unmasked", answers, seconds)
            self.unchanged(answers[1::2])
            answers, seconds = server.answers(mixed, self.options.tokens)
            self.speed("every other row masked", answers, seconds)
            self.judge(name, mixed, answers)
            self.unchanged(answers[1::2])
            for what, requests in {"all rows masked": self.all(masked=True), "single lines": self.lines()}.items():
                answers, seconds = server.answers(requests, self.options.tokens)
                self.speed(what, answers, seconds)
                self.judge(name, requests, answers)
                if what == "single lines":
                    self.one_line(name, answers)
            self.drawn(name, server)
            self.refused(server, [*ENDINGS, *OTHERS])
            self.left(name, server)

    def drawn(self, name: str, server: Server) -> None:
        """Tokens that are drawn, not the likeliest."""
        requests = self.all(masked=True)
        answers, seconds = server.answers(requests, self.options.tokens, temperature=1.0)
        self.speed("all rows masked, drawn at temperature 1", answers, seconds)
        self.judge(name, requests, answers)

    def left(self, name: str, server: Server) -> None:
        """Clients that go away: the others' rows are what they are without them."""
        requests = self.all(masked=True)
        expected, _ = server.answers(requests[:4], self.options.tokens)
        for request in requests[4:12]:
            server.leave(request, self.options.tokens)
        answers, _ = server.answers(requests[:4], self.options.tokens)
        self.judge(name, requests[:4], answers)
        print(f"  after clients that went away: {engines.same(expected, answers)} of {len(answers)} the same as before")

    def steps(self) -> Mapping[str, Callable[[], None]]:
        """Parts of the benchmark, by the names that `--only` knows."""
        return {
            "without": self.without,
            "structured": lambda: self.structured("with the backend"),
            "synchronous": lambda: self.structured("without overlap", "--disable-overlap-schedule"),
        }


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = engines.parser("SGLang", "sglang", __doc__)
    parser.add_argument("--cpu", action="store_true", help="serve on the processor, without SGLang's kernels")
    given = parser.parse_args(argv)
    return engines.main(lambda: Bench(SglangOptions(**vars(given))))


if __name__ == "__main__":
    sys.exit(main())
