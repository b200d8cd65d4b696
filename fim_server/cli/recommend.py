"""``fim-server models recommend``: which model of the catalogue is fast enough on this machine."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fim_server.cli.arguments import add_json, bind
from fim_server.cli.output import DONE, complain, print_json, progress
from fim_server.text.terminal import Progress, Table, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.evaluation.model_check.known import Here
    from fim_server.evaluation.model_check.recommendation import Candidate, Recommendation

GIGABYTE = 1e9


@dataclass(frozen=True)
class RecommendArguments:
    """Arguments of ``fim-server models recommend``."""

    again: bool
    json: bool


def add_recommend(steps: Any) -> None:
    parser: argparse.ArgumentParser = steps.add_parser(
        "recommend",
        help="say which model of the catalogue is fast enough here",
        description="Measure the installed models once, estimate the speed of the others from them by parameters and "
        "precision, and recommend the largest model with an open licence that fits in memory and writes a line within "
        "300 ms.",
    )
    parser.add_argument("--again", action="store_true", help="measure again what is measured already")
    add_json(parser)
    bind(parser, RecommendArguments, run_recommend)


def run_recommend(arguments: RecommendArguments) -> int:
    """Run the command; return the exit status."""
    from fim_server.evaluation.model_check.known import models_here
    from fim_server.evaluation.model_check.recommendation import recommend, this_machine

    here, machine = models_here(), this_machine()  # before measuring, which is load as well
    measure(arguments, machine.is_busy)
    found = recommend(here, machine)
    if arguments.json:
        print_json(as_json(found))
    else:
        report(found)
    return DONE


def measure(arguments: RecommendArguments, is_busy: bool) -> None:
    """Measure the models that tell the speed of others, and report those that cannot be loaded.

    On an idle machine this includes those that were measured on a busy one.
    """
    from fim_server.evaluation.model_check.known import known_speeds, models_here
    from fim_server.evaluation.model_check.recommendation import to_measure, twin_of

    here = models_here()
    twin = twin_of(here)
    wanted = [*to_measure(here), *([] if twin is None else [twin])]
    speeds = {} if arguments.again else known_speeds(wanted)
    known = {name for name, speed in speeds.items() if is_busy or not speed.is_spoilt}
    with progress(arguments.json) as shown:
        measure_each([one for one in wanted if one.name not in known], shown, is_busy, twin)


def measure_each(models: Sequence[Here], shown: Progress, is_busy: bool, twin: Here | None = None) -> None:
    """Measure and keep the speed of some models; report those that cannot be loaded.

    Args:
        models: The models.
        shown: Shows the progress.
        is_busy: Whether other programs keep the processor busy.
        twin: The one of the models that has to be written first, if any.
    """
    from fim_server.errors import ModelError
    from fim_server.evaluation.model_check.known import keep_speed
    from fim_server.evaluation.model_check.recommendation import measure_twin
    from fim_server.evaluation.model_check.speed import measure_speed
    from fim_server.models.load import load_model

    for one in models:
        shown.say(f"measuring {one.name}")
        try:
            keep_speed(one, measure_twin(one) if one is twin else measure_speed(load_model(one.name)), is_busy)
        except ModelError as error:
            complain(str(error))


def report(found: Recommendation) -> None:
    machine = found.machine
    memory = "" if machine.memory is None else f", {machine.memory / GIGABYTE:.1f} GB of free memory"
    gpu = f"GPU {machine.gpu}" if machine.gpu else "no GPU for torch"
    runs = "on a GPU" if machine.gpu_runs_gguf else "on the CPU"
    header = ("name", "memory, GB", "read, tok/s", "written, tok/s", "line, ms", "licence", "here")
    references = {one.reference for one in found.candidates if one.reference is not None}
    busy = f"other programs keep the processor busy (load {machine.load:.1f}); a new call measures anew once it is idle"
    best = f"recommended: {found.name}, " if found.name is not None else ""
    show(
        [
            f"this machine: {machine.cores} cores{memory}, {gpu}; llama.cpp runs {runs}",
            Table(header, [cells(one, found.name) for one in found.candidates], numbers={1, 2, 3, 4}),
            "a line: 12 tokens after a new prompt of 192",
            *(f"~ is an estimate by parameters and bytes from {name}, measured here" for name in sorted(references)),
            *([busy] if machine.is_busy else []),
            best + found.reason,
        ]
    )


def cells(one: Candidate, best: str | None) -> tuple[str, ...]:
    about = "~" if one.reference is not None else ""
    speed = one.speed
    figures = ("", "", "")
    if speed is not None:
        figures = (f"{about}{speed.read:.0f}", f"{about}{speed.written:.1f}", f"{about}{speed.line_ms:.0f}")
    licence = one.entry.licence + ("" if one.entry.open else ", not open")
    return (one.entry.name, f"{one.memory / GIGABYTE:.1f}", *figures, licence, verdict(one, best))


def verdict(one: Candidate, best: str | None) -> str:
    if not one.fits:
        return "does not fit"
    if one.speed is None:
        return ""
    if one.entry.name == best:
        return "recommended"
    return "fast enough" if one.is_fast else "too slow"


def as_json(found: Recommendation) -> dict[str, Any]:
    from fim_server.evaluation.model_check.recommendation import LINE_MS

    machine = asdict(found.machine)
    return {
        "machine": {
            "cores": machine["cores"],
            "freeMemoryBytes": machine["memory"],
            "gpu": machine["gpu"],
            "ggufOnGpu": machine["gpu_runs_gguf"],
            "load": machine["load"],
        },
        "mostLineMs": LINE_MS,
        "models": [
            {
                "name": one.entry.name,
                "parameters": one.entry.parameters,
                "precision": one.entry.precision,
                "licence": one.entry.licence,
                "open": one.entry.open,
                "memoryBytes": one.memory,
                "fits": one.fits,
                "readTokensPerSecond": None if one.speed is None else round(one.speed.read, 1),
                "writtenTokensPerSecond": None if one.speed is None else round(one.speed.written, 1),
                "lineMs": None if one.speed is None else round(one.speed.line_ms),
                "estimatedFrom": one.reference,
                "fastEnough": one.is_fast and one.fits,
            }
            for one in found.candidates
        ],
        "recommended": found.name,
        "reason": found.reason,
    }
