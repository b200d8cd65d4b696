"""Options of the step `corpus`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from training.data.corpus import CollectLimits
from training.options import Options, positive


@dataclass(frozen=True)
class CorpusOptions(Options):
    """Options of ``corpus``; `lists` and `datasets` are folders, `wheels` a file of NAME==VERSION lines."""

    lists: Path
    datasets: Path
    wheels: Path
    exclude: Sequence[Path]
    package_bytes: int
    held_out_bytes: int
    archive_bytes: int
    processes: int


def add_corpus(command: argparse.ArgumentParser) -> None:
    limits = CollectLimits()
    command.add_argument(
        "--lists", type=Path, default=Path("datasets/corpora"), help="packages to learn from (default: %(default)s)"
    )
    command.add_argument(
        "--wheels", type=Path, default=Path("training/packages.txt"), help="Python's (default: %(default)s)"
    )
    command.add_argument(
        "--datasets",
        type=Path,
        default=Path("datasets"),
        help="lists that no model may learn from (default: %(default)s)",
    )
    command.add_argument(
        "--exclude",
        nargs="+",
        type=Path,
        default=[],
        metavar="JSONL",
        help="infilling sets whose solutions must not be trained on: HumanEval's and SAFIM's files",
    )
    command.add_argument(
        "--package-bytes",
        type=positive,
        default=limits.package_bytes,
        help="most of a package and language (default: %(default)s)",
    )
    command.add_argument(
        "--held-out-bytes", type=positive, default=limits.held_out_bytes, help="the same, of a held-out package"
    )
    command.add_argument(
        "--archive-bytes", type=positive, default=150_000_000, help="largest download (default: %(default)s)"
    )
    command.add_argument("--processes", type=positive, default=os.cpu_count() or 1, help="that read packages")
