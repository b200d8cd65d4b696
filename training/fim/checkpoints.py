"""The folder of a run: its log, the latest adapter and the best one, and those of them that are kept besides."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fim_server.models.smollm2.adapter import read_adapter

ADAPTER_FILE, BEST_FILE, LOG_FILE = "adapter.safetensors", "best.safetensors", "log.jsonl"

SPACING = 1.2
"""A checkpoint is kept besides where it has seen so many times the tokens of the one kept before."""

BOTH, LEFT_ONLY = "both", "left only"
"""Measures of a checkpoint: held-out middles with the suffix in view, and without."""


@dataclass(frozen=True)
class HeldOut:
    """Measures of held-out middles: nats a token, the share whose every token is the likeliest, and their number.

    Each token of a region begins a middle.
    """

    nats: float
    exact: float
    middles: int


@dataclass(frozen=True)
class Measured:
    """An adapter's tokens of training, and its figures with the suffix in view."""

    tokens: int
    held_out: HeldOut

    def is_beaten_by(self, other: Measured) -> bool:
        """Return whether another checkpoint needs no more nats.

        True also where the numbers of middles differ: such figures belong to other held-out files and do not compare.
        """
        ours, theirs = self.held_out, other.held_out
        return not self.is_comparable(other) or math.isnan(ours.nats) or theirs.nats <= ours.nats

    def is_comparable(self, other: Measured) -> bool:
        """Return whether both were measured on equally many middles."""
        return self.held_out.middles == other.held_out.middles


def kept_file(tokens: int) -> str:
    """The name under which the adapter of so many tokens is kept."""
    return f"adapter-{tokens}.safetensors"


class Checkpoints:
    """The checkpoints of a run.

    Attributes:
        best: The one of the fewest nats; None before the first.
    """

    def __init__(self, folder: Path, resumed: bool) -> None:
        """`resumed`: the run that the folder has is gone on with.

        Raises ModelError where its best adapter cannot be read.
        """
        self._folder = folder
        self.best: Measured | None = None
        best = folder / BEST_FILE
        if not resumed:
            if best.exists():
                # Another run's, which the first checkpoint of this one would replace.
                copy(best, folder / kept_file(read_adapter(best).tokens))
                best.unlink()
            return
        log = read_log(folder)
        if not best.exists():
            # A run of before there was a best one has kept all.
            found = best_of([one for one in log if (folder / kept_file(one.tokens)).exists()])
            if found is None:
                return
            copy(folder / kept_file(found.tokens), best)
        tokens = read_adapter(best).tokens
        self.best = next((one for one in reversed(log) if one.tokens == tokens), None)

    def add(self, progress: Mapping[str, Any], loss: float, figures: Mapping[str, HeldOut]) -> bool:
        """Log the adapter that has just been written, keep it where it is due, and say whether it is the best so far.

        `progress`: with its tokens; `loss`: of the training.
        """
        measured = Measured(progress["tokens"], figures[BOTH])
        if measured.tokens >= SPACING * max(kept_tokens(self._folder, measured.tokens), default=0):
            copy(self._folder / ADAPTER_FILE, self._folder / kept_file(measured.tokens))
        is_best = self.best is None or self.best.is_beaten_by(measured)
        if is_best:
            if self.best is not None and not self.best.is_comparable(measured):
                copy(self._folder / BEST_FILE, self._folder / kept_file(self.best.tokens))
            copy(self._folder / ADAPTER_FILE, self._folder / BEST_FILE)
            self.best = measured
        entry = {**progress, "loss": loss, **{name: asdict(one) for name, one in figures.items()}}
        with (self._folder / LOG_FILE).open("a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")
        return is_best


def kept_tokens(folder: Path, most: int) -> list[int]:
    """The tokens of the adapters that are kept in a folder, up to a number."""
    found = (re.fullmatch(r"adapter-(\d+)\.safetensors", path.name) for path in folder.iterdir())
    return [tokens for name in found if name and (tokens := int(name[1])) <= most]


def read_log(folder: Path) -> list[Measured]:
    """Read the records of all runs in a folder's log."""
    path = folder / LOG_FILE
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []:
        # A line that was not written to its end, because the machine stopped, is no reason not to go on.
        with suppress(ValueError, KeyError, TypeError):
            entry = json.loads(line)
            found.append(Measured(int(entry["tokens"]), HeldOut(**entry[BOTH])))
    return found


def best_of(log: Sequence[Measured]) -> Measured | None:
    """The best of the last ones that are comparable with each other; the later one of two as good."""
    best = None
    for one in log:
        if best is None or best.is_beaten_by(one):
            best = one
    return best


def copy(source: Path, to: Path) -> None:
    """Copy a file, whole or not at all."""
    beside = to.with_name(f".{to.name}.new")
    shutil.copyfile(source, beside)
    beside.replace(to)
