"""Compare a model behind llama.cpp's own server, or another one, with the same file in this process.

    python -m benchmarks.models.remote FOLDER... --gguf FILE.gguf --holes 100

A server is started with the file (package `xllamacpp`), on one thread; `--address` names a running one, Ollama for
example. Lines of each folder's files are cut at a lexeme. Both models write the rest of the line, alone and with the
two lines below it, under the grammar. The report counts texts with the same tokens, and requests of the remote model.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.suggestions.holes import Hole, holes
from benchmarks.suggestions.recipes import add_prompt_tokens, command_line, drawn_of, end_with
from fim_server.decoding.complete import complete
from fim_server.decoding.options import DecodeOptions
from fim_server.errors import BenchError
from fim_server.language import Language
from fim_server.models.load import load_model
from fim_server.models.remote.backend import RemoteBackend

if TYPE_CHECKING:
    from fim_server.models.model import FimModel

TOKENS = {True: 48, False: 64}
"""Most tokens of a middle of one line, and of several."""

SERVER = """
import sys, time, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.n_ctx, parameters.n_parallel, parameters.warmup = 4096, 1, False
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = int(sys.argv[2])
parameters.port = 0
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
"""
"""llama.cpp's server until its standard input ends; tells its address first."""

START_SECONDS = 60.0


@contextlib.contextmanager
def llama_cpp_server(file: Path, threads: int = 1) -> Iterator[str]:
    """The address of a server of llama.cpp's that runs a GGUF file. Raises BenchError where it does not start."""
    command = [sys.executable, "-c", SERVER, str(file), str(threads)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        if not address.startswith("http"):
            raise BenchError(f"{file}: llama.cpp's server does not start (package xllamacpp)")
        yield address
    finally:
        process.stdin.close()
        process.kill()
        process.wait(START_SECONDS)


@dataclass(frozen=True)
class Pair:
    """Results for a hole: equality of tokens and texts; requests of the remote model, seconds of each.

    Texts may differ where tokens do not. A text that the budget ends is cut where its end was likely, and an endpoint
    does not report an end that is not among the likeliest tokens.
    """

    equal: bool
    same_text: bool
    trips: int
    refused: int
    local_seconds: float
    remote_seconds: float


def compare(language: Language, local: FimModel, remote: FimModel, hole: Hole, prompt_tokens: int) -> Pair:
    """Fill a hole by both."""
    options = DecodeOptions(
        max_new_tokens=TOKENS[hole.single_line],
        max_prompt_tokens=prompt_tokens,
        single_line=hole.single_line,
        stop_repetition=True,
    )
    assert isinstance(remote.backend, RemoteBackend)
    client = remote.backend.client
    before, written, seconds = client.trips, [], []
    for model in (local, remote):
        steps: list[Sequence[int]] = []
        started = time.perf_counter()
        completion = complete(model, language, hole.split, options, on_token=steps.append)
        seconds.append(time.perf_counter() - started)
        written.append((list(steps[-1]) if steps else [], completion.stop_reason, completion.text))
    here, there = written
    trips, refused = client.trips - before, completion.statistics.refused_tokens
    return Pair(here[:2] == there[:2], here[2] == there[2], trips, refused, *seconds)


def told(name: str, found: Sequence[Pair]) -> str:
    """A line of the table."""
    trips = sorted(pair.trips for pair in found)
    ninth = trips[min(len(trips) - 1, len(trips) * 9 // 10)]
    equal, texts = sum(pair.equal for pair in found), sum(pair.same_text for pair in found)
    refused = sum(pair.refused for pair in found) / len(found)
    return (
        f"| {name} | {len(found)} | {equal} | {texts} "
        f"| {statistics.mean(trips):.2f} | {ninth} | {trips[-1]} | {refused:.2f} "
        f"| {1000 * statistics.median(pair.local_seconds for pair in found):.0f} "
        f"| {1000 * statistics.median(pair.remote_seconds for pair in found):.0f} |"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill in holes, and print a table."""
    parser = command_line("A model behind llama.cpp's server beside it in this process.", "--holes", "lines of", 20, 0)
    parser.add_argument("--gguf", type=Path, required=True, metavar="FILE", help="the model's file")
    parser.add_argument("--address", metavar="ADDRESS", help="of an endpoint that runs it; default: one is started")
    add_prompt_tokens(parser)
    given = parser.parse_args(arguments)
    language = Language.load("python")
    local = load_model(str(given.gguf))
    found: dict[bool, list[Pair]] = {True: [], False: []}
    with contextlib.nullcontext(given.address) if given.address else llama_cpp_server(given.gguf) as address:
        remote = load_model(address)
        drawn = drawn_of(given.folder, given.drawn, given.seed, lambda: f"{sum(map(len, found.values()))} holes")
        for sources in drawn:
            for hole in holes(sources, given.seed):
                found[hole.single_line].append(compare(language, local, remote, hole, given.prompt_tokens))
    print(
        "| middle | holes | equal tokens | equal texts | trips, mean | p90 | most | refused | here, ms | remote, ms |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for single_line, mine in found.items():
        if mine:
            print(told("one line" if single_line else "several lines", mine))
    return 0


if __name__ == "__main__":
    end_with(main)
