"""``fim-server models check``: try a model on ten holes, and report its faults."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fim_server.cli.arguments import ModelArguments, add_json, add_loading, add_runtime, bind, load_options, positive
from fim_server.cli.output import DONE, NEGATIVE, print_json, progress
from fim_server.text.terminal import Table, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.evaluation.model_check.findings import Finding
    from fim_server.evaluation.model_check.trial import Trial

SECONDS = 120.0
"""Copy of :data:`fim_server.evaluation.model_check.trial.SECONDS`, whose import is slow."""


@dataclass(frozen=True)
class CheckModelArguments(ModelArguments):
    """Arguments of ``fim-server models check``."""

    model: str
    seconds: float
    json: bool


def add_check_model(steps: Any) -> None:
    parser: argparse.ArgumentParser = steps.add_parser(
        "check",
        help="try a model on ten holes, and report its faults",
        description="Have a model fill ten holes in Python and JSON, and report its faults: missing tokens or a wrong "
        "format for filling in, no use of the text after the cursor, texts that do not end or do not parse, or too "
        "little speed for typing.",
        epilog="Exit status: 0 all is right, 1 something is wrong, 2 bad input.",
    )
    parser.add_argument("model", metavar="NAME", help="model, as for --model of other commands")
    add_loading(parser)
    add_runtime(parser)
    parser.add_argument(
        "--seconds",
        type=positive(float),
        default=SECONDS,
        metavar="S",
        help=f"longest time after loading (default: {SECONDS:.0f})",
    )
    add_json(parser)
    bind(parser, CheckModelArguments, run_check_model)


def run_check_model(arguments: CheckModelArguments) -> int:
    """Run the command; return the exit status. Raises ModelError."""
    from fim_server.errors import FormatError
    from fim_server.evaluation.model_check.findings import findings, no_format
    from fim_server.evaluation.model_check.holes import holes
    from fim_server.evaluation.model_check.trial import try_out
    from fim_server.models.load import load_model

    with progress(arguments.json) as shown:
        shown.say(f"loading model {arguments.model}")
        try:
            model = load_model(arguments.model, arguments.device, arguments.runtime, load_options(arguments))
        except FormatError as error:
            report(arguments, None, [no_format(str(error))])
            return NEGATIVE
        shown.say("measuring")
        trial = try_out(model, arguments.seconds, lambda number: shown.say(f"hole {number + 1} of {len(holes())}"))
    found = findings(trial)
    report(arguments, trial, found)
    return DONE if all(finding.good for finding in found) else NEGATIVE


def report(arguments: CheckModelArguments, trial: Trial | None, found: Sequence[Finding]) -> None:
    if arguments.json:
        print_json(
            {
                "model": arguments.model,
                "good": all(finding.good for finding in found),
                "findings": [asdict(finding) for finding in found],
                **({} if trial is None else measured(trial)),
            }
        )
        return
    show(
        [
            Table(
                ("", "about", "what was found"),
                [("ok" if one.good else "WRONG", one.aspect, one.words) for one in found],
            )
        ]
    )


def measured(trial: Trial) -> dict[str, Any]:
    """Return the figures of a trial in JSON; losses are nats per token of the true middle."""
    model = trial.model
    return {
        "runtime": model.runtime,
        "device": model.device,
        "threads": model.backend.threads,
        "format": model.format.family,
        "seconds": round(trial.seconds, 1),
        "speed": {
            "readTokensPerSecond": round(trial.speed.read, 1),
            "writtenTokensPerSecond": round(trial.speed.written, 1),
            "peakMemoryBytes": trial.speed.memory,
        },
        "holes": [
            {
                "language": one.hole.language,
                "middle": one.hole.middle,
                "text": one.text,
                "parses": one.parses,
                "reason": one.reason,
                "losses": {
                    "prompt": round(one.loss, 3),
                    "noSuffix": round(one.without, 3),
                    "otherSuffix": round(one.swapped, 3),
                    "leftAlone": round(one.plain, 3),
                },
                "endProbability": round(one.end_share, 4),
            }
            for one in trial.tried
        ],
    }
