"""``python -m benchmarks.engines.vllm``: the plug-in in a real vLLM, for rows with and without holes.

Servers are started one after another from an environment that has vLLM and this package (docs/engines.md). They run
without the plug-in, with it, with it and speculation, and with vLLM's other grammar engines. Each gets the same
simultaneous requests. The exit status is 1 where a row breaks its promise. No test judges the times.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import httpx2

from benchmarks.engines import serving as engines
from benchmarks.engines.serving import Answer, EngineBench, Options, Request
from benchmarks.peers.grammars import JSON_EBNF, JSON_LARK
from fim_server.integrations.holes import PREFIX, is_hole
from fim_server.integrations.meter import BOUNDS
from fim_server.models.source import locate


class Server(engines.Server):
    """A running vLLM."""

    engine = "vLLM"

    def ask(self, request: Request, tokens: int, **settings: Any) -> httpx2.Response:
        """Send one request, greedy unless the settings say otherwise."""
        body: dict[str, Any] = {"model": "bench", "prompt": request.prompt, "max_tokens": tokens, "temperature": 0}
        if request.grammar is not None:
            body["structured_outputs"] = {"grammar": request.grammar}
        if request.xargs is not None:
            body["vllm_xargs"] = {"fim_server": request.xargs}
        body |= {"return_token_ids": True} | settings
        return self.client.post(f"{self.url}/v1/completions", json=body)

    def read(self, body: Any) -> Answer:
        """The answer in the JSON of a response."""
        choice = body["choices"][0]
        return Answer(choice["token_ids"], choice["text"], choice["finish_reason"])

    def metrics(self) -> dict[str, float]:
        """The plug-in's own, by name."""
        lines = self.client.get(f"{self.url}/metrics").text.splitlines()
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
    command += ["--max-num-seqs", str(options.requests), "--max-model-len", "2048", *options.further, *arguments]
    with engines.running("vLLM", command, environment, options.port) as url:
        yield Server(url)


class Bench(EngineBench):
    """All of it."""

    def through_processor(self, number: int) -> Request:
        """A request that is masked by the logits processor."""
        given = self.request(number, masked=True)
        assert given.grammar is not None
        return Request(given.prompt, given.left, given.right, None, xargs=given.grammar.removeprefix(PREFIX))

    def without(self) -> None:
        """No plug-in at all."""
        print("without the plug-in", flush=True)
        with serving(self.options, plug_in=False) as server:
            self.run_without(server)

    def structured(self, name: str, *arguments: str) -> None:
        """The plug-in: every other row masked, then all of them."""
        print(name, flush=True)
        with serving(self.options, *arguments) as server:
            mixed = self.mixed()
            server.answers(mixed, 4)
            answers, seconds = server.answers(mixed, self.options.tokens)
            self.speed("every other row masked", answers, seconds)
            self.judge(name, mixed, answers)
            self.unchanged(answers[1::2])
            requests = self.all(masked=True)
            before = server.metrics()
            answers, seconds = server.answers(requests, self.options.tokens)
            self.speed("all rows masked", answers, seconds)
            self.judge(name, requests, answers)
            self.masks(before, server.metrics())
            lines = self.lines()
            answers, seconds = server.answers(lines, self.options.tokens)
            self.speed("single lines", answers, seconds)
            self.judge(name, lines, answers)
            self.one_line(name, answers)
            self.refused(server, [{"stop": ["\n"]}, {"ignore_eos": True}, {"min_tokens": 3}])

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

    def steps(self) -> Mapping[str, Callable[[], None]]:
        """Parts of the benchmark, by the names that `--only` knows."""
        drafts = json.dumps({"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4})
        return {
            "without": self.without,
            "structured": lambda: self.structured("with the plug-in"),
            "json": self.json,
            "processor": self.processor,
            "speculation": lambda: self.structured("with n-gram speculation", "--speculative-config", drafts),
        }


def below(found: Mapping[str, float], count: float) -> float:
    """The least bound of the histogram of masks that so many of them are below. Unit: seconds."""
    name = "fim_server_mask_seconds_bucket"
    return next(bound for bound in (*BOUNDS, math.inf) if found[f'{name}{{le="{prometheus(bound)}"}}'] >= count)


def prometheus(bound: float) -> str:
    """A bound as Prometheus writes it."""
    return "+Inf" if math.isinf(bound) else str(bound)


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    given = engines.parser("vLLM", "vllm", __doc__).parse_args(argv)
    return engines.main(lambda: Bench(Options(**vars(given))))


if __name__ == "__main__":
    sys.exit(main())
