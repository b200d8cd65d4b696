"""Options of each step of the recipe, and their arguments."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import fim_server
from fim_server.datasets.sources.files import STANDARD_LIBRARY
from training.data.corpus import CollectLimits

HELD_OUT = (
    *(STANDARD_LIBRARY, "flask", "httpx", "marshmallow", "toolz"),
    *("bandit", "cattrs", "falcon", "httpie", "huey", "lifelines", "mesa", "nibabel", "peewee", "pypdf", "structlog"),
)
"""Packages held out by default; the library among them, since the evaluation cuts its holes in it."""

EMBEDDED = Path(fim_server.__file__).parent / "models" / "embedded"


@dataclass(frozen=True)
class Options:
    """Option of every step: the folder of corpus, tokenizer and checkpoints."""

    work: Path


def add_work(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--work",
        type=Path,
        default=Path(".work/training"),
        help="folder of corpus, tokenizer and checkpoints (default: %(default)s)",
    )


def positive(text: str) -> int:
    """A number above 0, as an argument's type."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not positive")
    return value


def positive_number(text: str) -> float:
    """A number above 0 and finite, as an argument's type: nan and inf, which float() reads, are no duration or rate."""
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not positive and finite")
    return value


def share(text: str) -> float:
    """A number from 0 to 1, as an argument's type."""
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


@dataclass(frozen=True)
class CollectOptions(Options):
    """Options of ``collect``; ``folder`` has path, name, version and SPDX licence of source trees."""

    wheels: Path | None
    installed: Sequence[str]
    folder: Sequence[tuple[str, str, str, str]]
    hold_out: Sequence[str]
    exclude: Sequence[Path]
    no_standard_library: bool
    package_bytes: int
    held_out_bytes: int
    processes: int


def add_collect(command: argparse.ArgumentParser) -> None:
    limits = CollectLimits()
    command.add_argument("--wheels", type=Path, help="folder of downloaded wheels")
    command.add_argument("--installed", nargs="+", default=[], metavar="NAME", help="packages installed here")
    command.add_argument(
        "--folder",
        nargs=4,
        action="append",
        default=[],
        metavar=("PATH", "NAME", "VERSION", "SPDX"),
        help="a source tree whose licence you vouch for (repeatable)",
    )
    command.add_argument(
        "--hold-out",
        nargs="*",
        default=list(HELD_OUT),
        metavar="NAME",
        help="packages kept for evaluation (default: %(default)s)",
    )
    command.add_argument(
        "--exclude",
        nargs="+",
        type=Path,
        default=[],
        metavar="JSONL",
        help="infilling sets whose solutions must not be trained on",
    )
    command.add_argument("--no-standard-library", action="store_true", help="leave it out of both sides")
    command.add_argument("--package-bytes", type=positive, default=limits.package_bytes)
    command.add_argument("--held-out-bytes", type=positive, default=limits.held_out_bytes)
    command.add_argument("--processes", type=positive, default=os.cpu_count() or 1, help="that read wheels")


@dataclass(frozen=True)
class TokenizerOptions(Options):
    """Options of ``tokenizer``; ``vocabulary`` is the number of tokens."""

    vocabulary: int


def add_tokenizer(command: argparse.ArgumentParser) -> None:
    command.add_argument("--vocabulary", type=positive, default=16_384, help="tokens")


@dataclass(frozen=True)
class TrainOptions(Options):
    """Options of ``train``; see :class:`~training.plan.Plan`."""

    minutes: float
    steps: int | None
    threads: int
    layers: int | None
    width: int | None
    seed: int
    eager: bool
    half: bool
    hold: float
    long_from: float
    full_from: float
    rate: float | None
    batch: int | None
    resume: bool
    start_from: Path | None


def add_train(command: argparse.ArgumentParser) -> None:
    command.add_argument("--minutes", type=positive_number, default=70.0, help="wall clock, decay included")
    command.add_argument("--steps", type=positive, help="a number of steps instead of a time")
    command.add_argument("--threads", type=positive, default=1, help="CPU threads")
    command.add_argument("--layers", type=positive, help="depth of the model")
    command.add_argument("--width", type=positive, help="width of the model")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--eager", action="store_true", help="do without torch.compile")
    command.add_argument("--half", action="store_true", help="multiply in bfloat16: faster where the processor can")
    command.add_argument(
        "--hold",
        type=float,
        default=0.35,
        help="share of the time before rates decay to zero (default: %(default)s)",
    )
    command.add_argument("--long-from", type=float, default=0.6, help="share before windows of the whole context")
    command.add_argument("--full-from", type=float, default=0.7, help="share before the whole softmax")
    command.add_argument("--rate", type=positive_number, help="factor of the rates (default: 1, with --resume 0.5)")
    command.add_argument("--batch", type=positive, help="tokens a step")
    start = command.add_mutually_exclusive_group()
    start.add_argument("--resume", action="store_true", help="go on from the latest checkpoint")
    start.add_argument(
        "--start-from", type=Path, metavar="FOLDER", help="go on from an exported model and its tokenizer"
    )


@dataclass(frozen=True)
class ExportOptions(Options):
    """Options of ``export``; ``out`` is the folder of the model."""

    out: Path


def add_export(command: argparse.ArgumentParser) -> None:
    command.add_argument("--out", type=Path, default=EMBEDDED, help="folder of the model (default: the embedded one)")


@dataclass(frozen=True)
class EvaluateOptions(ExportOptions):
    """Options of ``evaluate``; ``holes`` are for each kind and order."""

    holes: int
    threads: int


def add_evaluate(command: argparse.ArgumentParser) -> None:
    add_export(command)
    command.add_argument("--holes", type=positive, default=100, help="per kind and order")
    command.add_argument("--threads", type=positive, default=1, help="CPU threads")


@dataclass(frozen=True)
class OnnxOptions(Options):
    """Options of ``onnx``: the folders of the model and of its export."""

    model: Path
    out: Path | None


def add_onnx(command: argparse.ArgumentParser) -> None:
    command.add_argument("--model", type=Path, default=EMBEDDED, help="model folder (default: the embedded one)")
    command.add_argument("--out", type=Path, help="folder of the export (default: onnx in the model's)")
