"""``./dev bench server``: waiting times of a typing user, measured at the editor's end of the protocol.

Code is taken out of real files and typed again, keystroke by keystroke, to a server process over standard input and
output. Times are taken where an editor sees the answer. The played editor is VS Code: it closes brackets and quotes,
waits 50 ms after a keystroke before it asks, and cancels a request when the next key comes first. A seed fixes files,
holes and decisions; the suggestions, and some of the decisions with them, depend on the model.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.engine import corpus
from benchmarks.options import add_json, add_typing_arguments, positive_count
from benchmarks.processes import usage_of
from benchmarks.report import DONE, load_average, machine, progress_for, publish, version_of
from benchmarks.server.lsp_client import CAPABILITIES, Client
from benchmarks.server.played_editor import Hole, holes
from benchmarks.server.report import Report
from benchmarks.server.scenarios import SCENARIOS, Played, Scenario
from benchmarks.server.typist import Typist
from fim_server.errors import BenchError
from fim_server.models.loaders import RUNTIMES
from fim_server.text.terminal import Progress

SIZES = range(3_000, 30_000)
"""Bytes of the files that are chosen where none are named."""


@dataclass(frozen=True)
class ServerOptions:
    """Options of ``./dev bench server``."""

    path: list[str] | None
    files: int
    keystrokes: int
    seed: int
    interval_ms: int
    scenario: list[str] | None
    model: str | None
    device: str | None
    runtime: str | None
    threads: int | None
    max_prompt_tokens: int | None
    machine: str | None
    json: bool
    output: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``./dev bench server``."""
    parser.epilog = (
        "Exit status: 0 measured, 2 bad input. Times are in milliseconds, from the request to its answer as the "
        "editor sees them."
    )
    add_typing_arguments(parser, files=6, keystrokes=250, each="in each scenario")
    parser.add_argument(
        "--interval-ms",
        type=positive_count,
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
        "--runtime", choices=RUNTIMES, help="torch or onnxruntime (default: the server chooses by what there is)"
    )
    parser.add_argument(
        "--threads",
        type=positive_count,
        metavar="N",
        help="the model's threads (default: the server chooses by the load when it starts)",
    )
    parser.add_argument(
        "--max-prompt-tokens",
        type=positive_count,
        metavar="N",
        help="the longest prompt (default: what is read in 0.3 s, as the server measures it)",
    )
    parser.add_argument(
        "--machine", metavar="TEXT", help="how the report calls this machine (default: its processor and its load)"
    )
    add_json(parser, "every request among it")
    parser.add_argument("--output", metavar="FILE.md", help="write the tables as Markdown")


def run(options: ServerOptions) -> int:
    """Measure, and print tables or JSON; returns the exit status.

    Raises:
        BenchError: There are no files, the server does not start or answer, or a result cannot be written.
    """
    with progress_for(options.json) as progress:
        report = measure(options, progress)
    publish(report, options.json, {} if options.output is None else {options.output: report.as_markdown})
    return DONE


# --- measuring ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """A file to type in."""

    name: str
    text: str = field(repr=False)
    holes: list[Hole] = field(repr=False)


def measure(options: ServerOptions, progress: Progress) -> Report:
    """Play all scenarios, each with a server of its own.

    Raises:
        BenchError: There are no files, or the server does not start or answer.
    """
    progress.say("choosing files")
    sources = list(choose(options.path, options.files, options.seed))
    wanted = options.scenario or [scenario.name for scenario in SCENARIOS]
    report = Report(setting(options, sources))
    for scenario in SCENARIOS:
        if scenario.name in wanted:
            report.played.append(asyncio.run(play(scenario, sources, options, progress)))
    report.setting["model"] = ", ".join(f"{name} {value}" for name, value in report.played[0].model.items())
    return report


def choose(paths: Sequence[str] | None, count: int, seed: int) -> Iterator[Source]:
    """Files in random order, and the holes in them.

    Raises:
        BenchError: There are none.
    """
    if paths is None:
        found = [path for path in corpus.files("python", None) if path.stat().st_size in SIZES]
    else:
        found = [
            path
            for given in map(Path, paths)
            for path in ([given] if given.is_file() else corpus.files("python", given))
        ]
    random.Random(f"server {seed}").shuffle(found)
    chosen = 0
    for path in found:
        text = corpus.read("python", path)
        gaps = holes(text, random.Random(f"holes {path.name} {seed}")) if text else []
        if text and gaps:
            yield Source(path.name, text, gaps)
            chosen += 1
        if chosen == count:
            return
    if not chosen:
        raise BenchError(f"{', '.join(paths or ['the standard library'])}: no Python files to type in")


async def play(scenario: Scenario, sources: Sequence[Source], options: ServerOptions, progress: Progress) -> Played:
    """Play one scenario.

    Raises:
        BenchError: The server does not start or answer.
    """
    played = Played(scenario, load=load_average())
    named = ((name, getattr(options, name)) for name in ("model", "device", "runtime"))
    given = [f"--{name}={value}" for name, value in named if value is not None]
    if options.max_prompt_tokens is not None:
        given.append(f"--max-prompt-tokens={options.max_prompt_tokens}")
    progress.say(f"{scenario.name}: starting the server")
    with tempfile.TemporaryFile() as errors:
        client = await Client.start(given, options.threads, errors)
        try:
            initialize = {
                "processId": os.getpid(),
                "rootUri": None,
                "capabilities": CAPABILITIES,
                "initializationOptions": {"personalThreshold": False},
            }
            await client.answer_to(client.ask("initialize", initialize))
            client.notify("initialized", {})
            played.ready = await client.ready()
            played.model = client.status.get("model", {})
            before = usage_of(client.process.pid)
            started = time.perf_counter()
            draw = random.Random(f"typing {options.seed}")
            typist = Typist(client, played, options.interval_ms / 1000, draw)
            shares = shared(options.keystrokes, len(sources))
            for number, (source, share) in enumerate(zip(sources, shares, strict=True), start=1):
                progress.say(f"{scenario.name}: {source.name}, {number} of {len(sources)}")
                if share:
                    await typist.type_in(source.name, source.text, source.holes, share)
            played.seconds = time.perf_counter() - started
            await client.settle()
            command = {"command": "fim-server.statistics", "arguments": []}
            found = await client.answer_to(client.ask("workspace/executeCommand", command))
            played.prompt_tokens = found.get("promptTokens") if isinstance(found, dict) else None
            after = usage_of(client.process.pid)
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


def setting(options: ServerOptions, sources: Sequence[Source]) -> dict[str, str]:
    """The machine and the work, in words; folders of this machine are not named."""
    given = [f"--path {Path(path).name}" for path in options.path or ()]
    given += [f"--{name} {getattr(options, name)}" for name in ("files", "keystrokes", "seed")]
    given += [f"--interval-ms {options.interval_ms}"]
    given += [f"--scenario {name}" for name in options.scenario or ()]
    given += [f"--model {Path(options.model).name}"] if options.model is not None else []
    given += [
        f"--{name} {value}"
        for name in ("device", "runtime", "threads")
        if (value := getattr(options, name)) is not None
    ]
    if options.max_prompt_tokens is not None:
        given.append(f"--max-prompt-tokens {options.max_prompt_tokens}")
    sizes = ", ".join(f"{source.name} ({len(source.text) / 1000:.0f} kB)" for source in sources)
    return {
        "command": f"./dev bench server {' '.join(given)}",
        "machine": options.machine or machine(),
        "versions": ", ".join(f"{name} {version_of(name)}" for name in ("fim-server", "torch", "pygls")),
        "files": sizes,
        "typing": f"{options.keystrokes} keystrokes in each scenario, {options.interval_ms} ms apart in the median",
    }
