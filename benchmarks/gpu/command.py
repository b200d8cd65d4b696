"""``./dev bench gpu``: the constraint's share of a token, by the number of rows that are decoded at once.

Networks have random weights and the shapes of known ones; a step's time depends on nothing else. Each batch is decoded
without a constraint, with this engine's and with the peers', in blocks that take turns on the same machine. The loop is
:mod:`benchmarks.gpu.masked_steps` for all of them.

Everything has a time limit, a failure becomes a row that names it, and the results are written after each batch.
``--device cpu --shape tiny`` is a dry run; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.gpu.report import Report
from benchmarks.options import add_json, add_seed, positive_count, positive_counts
from benchmarks.report import DONE, machine, progress_for, publish, version_of
from fim_server.errors import BenchError
from fim_server.models.pytorch.devices import require_torch
from fim_server.text.terminal import Progress

SHAPES = ("tiny", "0.5b", "1.5b", "3b", "7b")

SYNTHETIC = "synthetic"


@dataclass(frozen=True)
class GpuOptions:
    """Options of ``./dev bench gpu``."""

    device: str | None
    shape: tuple[str, ...]
    batch: tuple[int, ...]
    graphs: tuple[bool, ...]
    context: int
    seconds: int
    total_seconds: int | None
    vocabulary: str | None
    no_peers: bool
    without: tuple[str, ...]
    seed: int
    output: str | None
    json: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``./dev bench gpu``."""
    parser.epilog = (
        "Exit status: 0 measured, 2 bad input; what could not be measured is a row that says why. The first table is "
        "the device's work of choosing tokens from random logits and masks. share: by how much a "
        "step's median is longer than without a constraint. masks and tokens µs/row: the host's work by the clock, a "
        "row's part, on all threads and mostly hidden behind the model; one mask: computed alone on a thread. refused: "
        "tokens of the true middles, which should be 0. Dry run: --device cpu --shape tiny --batch 1,4 --seconds 1."
    )
    parser.add_argument("--device", metavar="DEVICE", help="as torch calls it (default: cuda where it is, else cpu)")
    parser.add_argument(
        "--shape",
        type=shapes_named,
        default=("0.5b", "7b"),
        metavar="SHAPE,...",
        help=f"of {', '.join(SHAPES)} (default: 0.5b,7b)",
    )
    parser.add_argument(
        "--batch", type=positive_counts, default=(1, 64, 512), metavar="N,N,...", help="rows (default: 1,64,512)"
    )
    parser.add_argument(
        "--graphs",
        type=switches_named,
        default=(True, False),
        metavar="on,off",
        help="steps as CUDA graphs, or kernel by kernel (default: both; without CUDA there are none)",
    )
    parser.add_argument(
        "--context", type=positive_count, default=512, metavar="N", help="tokens that each row has read (default: 512)"
    )
    parser.add_argument(
        "--seconds", type=positive_count, default=10, metavar="S", help="of steps for each batch (default: 10)"
    )
    parser.add_argument(
        "--total-seconds", type=positive_count, metavar="S", help="no batch begins after this (default: no limit)"
    )
    parser.add_argument(
        "--vocabulary",
        metavar="TOKENIZER.json",
        help="a model's tokenizer.json (default: one of 151,669 tokens made from the standard library; for the shape "
        "tiny alone the embedded model's)",
    )
    parser.add_argument("--no-peers", action="store_true", help="leave llguidance and XGrammar out")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="WORDS",
        help="leave out constraints that are called so, such as 'flat Python', which takes half a minute to open",
    )
    add_seed(parser, "the choice of all")
    parser.add_argument("--output", metavar="FILE.json", help="write what was found after each batch")
    add_json(parser)


def shapes_named(text: str) -> tuple[str, ...]:
    """Shapes with commas between them."""
    named = tuple(dict.fromkeys(text.lower().split(",")))
    if not set(named) <= set(SHAPES):
        raise argparse.ArgumentTypeError(f"there are {', '.join(SHAPES)}")
    return named


def switches_named(text: str) -> tuple[bool, ...]:
    """``on``, ``off`` or both with a comma between them."""
    named = tuple(dict.fromkeys(text.split(",")))
    if not set(named) <= {"on", "off"}:
        raise argparse.ArgumentTypeError("on, off or on,off")
    return tuple(name == "on" for name in named)


def run(options: GpuOptions) -> int:
    """Measure, and print tables or JSON; returns the exit status.

    Raises:
        BenchError: The vocabulary cannot be read, or the result cannot be written.
        ModelError: There is no such device, or torch is not installed.
    """
    require_torch("bench gpu")
    with progress_for(options.json) as progress:
        for report in measure(options, progress):
            write(report, options.output)
    publish(report, options.json)
    return DONE


def write(report: Report, path: str | None) -> None:
    """Write what there is; at no time is there half a file."""
    if path is None:
        return
    partial = Path(path).with_name(Path(path).name + ".part")
    try:
        partial.write_text(json.dumps(report.as_json(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from error


def measure(options: GpuOptions, progress: Progress) -> Iterator[Report]:
    """The report at first, and as it is after each part of the work."""
    from benchmarks.engine.corpus import Library
    from benchmarks.engine.vocabularies import (
        EMBEDDED_TOKENIZER,
        SYNTHETIC_CORPUS_CHARACTERS,
        SYNTHETIC_SIZE,
        read_tokens,
        synthetic_tokens,
    )
    from benchmarks.gpu import choices, measuring, replays, shapes
    from fim_server.errors import first_line
    from fim_server.models.pytorch.backend import choose_device, free_memory, without_cudnn_attention

    until = None if options.total_seconds is None else time.perf_counter() + options.total_seconds
    place = choose_device(options.device)
    if place.type == "cuda":
        without_cudnn_attention()  # as the backend has it, from the first shape on
    progress.say("reading the vocabulary")
    if options.vocabulary is not None:
        tokens = read_tokens(Path(options.vocabulary).name, Path(options.vocabulary))
    elif options.shape == ("tiny",):
        tokens = read_tokens("the embedded model's", EMBEDDED_TOKENIZER)
    else:
        text = Library.of_this_interpreter().text(SYNTHETIC_CORPUS_CHARACTERS)
        tokens = synthetic_tokens(text, SYNTHETIC_SIZE)
    size = tokens.vocabulary.size
    contestants = list(replays.OURS)
    report = Report(setting(options, place, tokens.label))
    if place.type != "cuda":
        report.setting["dry run"] = "no GPU: these figures say nothing of one"
    for package, given in () if options.no_peers else replays.PEERS.items():
        if importlib.util.find_spec(package) is None:
            report.left_out.append(f"{package}, which is not installed")
        else:
            contestants += given
    for words in options.without:
        if not words or not any(
            words in one.name for given in (replays.OURS, *replays.PEERS.values()) for one in given
        ):
            raise BenchError(f"--without {words}: no constraint is called so")
        report.left_out += [one.name for one in contestants if words in one.name]
        contestants = [one for one in contestants if words not in one.name]
    yield report

    def late(what: str) -> bool:
        if until is None or time.perf_counter() < until:
            return False
        report.left_out.append(f"{what}: no time was left")
        return True

    for batch in options.batch:
        if not late(f"choices, batch {batch}"):
            progress.say(f"choosing the tokens of {batch} rows")
            report.choices += choices.measure_choices(place, size, batch, options.seed)
    yield report
    batches: dict[int, list[measuring.Entry]] = {}
    graphs = options.graphs if place.type == "cuda" else (False,)
    for name in options.shape:
        if late(name):
            continue
        progress.say(f"{name}: making the network")
        try:
            network = shapes.network_of(shapes.SHAPES[name], size, place)
        except Exception as error:  # noqa: BLE001  # above all of memory; other shapes may fit
            report.left_out.append(f"{name}: {first_line(error) or type(error).__name__}")
            free_memory()
            continue
        report.setting[f"shape {name}"] = f"{shapes.parameters_of(network) / 1e6:,.0f} M parameters, {network.dtype}"
        for batch in options.batch:
            if late(f"{name}, batch {batch}"):
                continue
            if batch not in batches:
                progress.say(f"opening a batch of {batch}")
                batches[batch] = measuring.opened(contestants, tokens, batch, options.seed)
            for captured in graphs:
                what = f"{name}, batch {batch}, graphs {'on' if captured else 'off'}"
                if late(what):
                    continue
                progress.say(what)
                entries = [entry.again() for entry in batches[batch]]
                report.steps += measuring.measure_steps(
                    network, place, name, entries, size, batch, options.context, options.seconds, captured
                )
                yield report
        if not late(f"{name}, keystrokes"):
            progress.say(f"{name}: keystrokes")
            report.steps += measuring.measure_single(network, place, name, options.context, options.seconds)
            report.keystrokes += measuring.measure_keystrokes(
                network, place, name, tokens, 2 * options.context, options.seconds, options.seed
            )
            yield report
        del network
        free_memory()


def setting(options: GpuOptions, place: Any, vocabulary: str) -> dict[str, str]:
    """The machine and the work, in words."""
    from benchmarks.gpu import replays, shapes

    libraries = [f"{name} {version_of(name)}" for name in ("torch", "transformers", *replays.PEERS)]
    return {
        "device": shapes.described(place),
        "machine": f"{machine()}, {os.cpu_count()} threads for masks",
        "libraries": ", ".join(libraries),
        "vocabulary": f"{vocabulary} tokens",
        "work": f"{options.context} tokens read by each row, {options.seconds} s a batch, seed {options.seed}",
    }
