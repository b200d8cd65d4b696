"""Options of the step `fim`."""

from __future__ import annotations

import argparse
import math
import os
from dataclasses import dataclass
from pathlib import Path

import fim_server
from training.options import Options, positive, positive_number, share

ADAPTER = Path(fim_server.__file__).parent / "models" / "adapters" / "smollm2.safetensors"
"""The adapter that the package brings."""

RANK = 16
"""Rank of a new adapter."""

SHORTEST_EXAMPLES = 128
"""Tokens: in less there is hardly a place for a context, a middle and the control tokens."""


@dataclass(frozen=True)
class FimOptions(Options):
    """Options of ``fim``; `run` is the folder of checkpoints in `work`."""

    base: Path
    run_name: str
    minutes: float
    processes: int
    device: str
    rank: int | None
    alpha: float | None
    rate: float
    decay: float
    batch: int
    lengths: dict[int, float]
    share: dict[str, float]
    window: int | None
    drawing: int
    held_out: int
    save_minutes: float
    full_precision: bool
    eager: bool
    seed: int
    resume: bool
    start_from: Path | None
    from_committed: bool
    publish: bool


def shares_of_lengths(text: str) -> dict[int, float]:
    """Lengths and their shares, as an argument's type: ``256:0.5,1024:0.5``."""
    found: dict[int, float] = {}
    for each in text.split(","):
        length, colon, share = each.partition(":")
        if not colon or not length.strip().isdecimal():
            raise argparse.ArgumentTypeError(f"{each!r} is not TOKENS:SHARE")
        if int(length) < SHORTEST_EXAMPLES or int(length) in found:
            raise argparse.ArgumentTypeError(f"{length} tokens: twice, or fewer than {SHORTEST_EXAMPLES}")
        try:
            found[int(length)] = positive_number(share)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{share!r} is no share") from error
    if not sum(found.values()) < math.inf:
        raise argparse.ArgumentTypeError("the shares have no finite sum")
    return found


def shares_of_languages(text: str) -> dict[str, float]:
    """Languages and their shares, as an argument's type: ``python=0.5,go=0.5``."""
    found: dict[str, float] = {}
    for each in text.split(","):
        language, sign, amount = each.strip().partition("=")
        if not (language and sign) or language in found:
            raise argparse.ArgumentTypeError(f"{each!r} is not LANGUAGE=SHARE, or is named twice")
        try:
            found[language] = positive_number(amount)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{amount!r} is no share") from error
    return found


def add_fim(command: argparse.ArgumentParser) -> None:
    command.add_argument("--base", type=Path, required=True, help="SmolLM2: its GGUF file or transformers folder")
    command.add_argument("--run-name", default="fim", help="folder of the checkpoints (default: %(default)s)")
    command.add_argument("--minutes", type=positive_number, default=60.0, help="wall clock (default: %(default)s)")
    command.add_argument(
        "--processes", type=positive, default=os.cpu_count() or 1, help="of one thread each, on a processor"
    )
    command.add_argument("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
    command.add_argument(
        "--rank", type=positive, help="of the adapter (default: that of what is gone on from, else 16)"
    )
    command.add_argument(
        "--alpha", type=positive_number, help="scales the adapter by alpha / rank (default: as the rank's, or the rank)"
    )
    command.add_argument("--rate", type=positive_number, default=1e-3, help="of Adam (default: %(default)s)")
    command.add_argument(
        "--decay",
        type=share,
        default=0.0,
        metavar="SHARE",
        help="of the minutes, at their end, in which the rate falls to 0; the weights are then averaged over the last"
        " twentieth of the steps and not over a fifth (default: %(default)s)",
    )
    command.add_argument("--batch", type=positive, default=1024, help="tokens of a step and process")
    command.add_argument(
        "--lengths",
        type=shares_of_lengths,
        default={256: 0.4, 512: 0.3, 1024: 0.3},
        metavar="TOKENS:SHARE,...",
        help="examples of up to so many tokens (default: 256:0.4,512:0.3,1024:0.3)",
    )
    command.add_argument(
        "--share",
        type=shares_of_languages,
        default={},
        metavar="LANGUAGE=SHARE,...",
        help="train on the corpora of `corpus` in these shares, instead of on the corpus of `collect`",
    )
    command.add_argument(
        "--window", type=positive, metavar="TOKENS", help="pack examples of all lengths together; for a GPU"
    )
    command.add_argument(
        "--drawing",
        type=positive,
        default=max(1, (os.cpu_count() or 1) - 2),
        metavar="PROCESSES",
        help="that draw examples for a GPU (default: %(default)s)",
    )
    command.add_argument("--held-out", type=positive, default=96, help="examples measured (default: %(default)s)")
    command.add_argument(
        "--save-minutes", type=positive_number, default=10.0, help="between checkpoints (default: %(default)s)"
    )
    command.add_argument("--full-precision", action="store_true", help="float32, even where less is faster")
    command.add_argument("--eager", action="store_true", help="do without torch.compile")
    command.add_argument("--seed", type=int, default=1)
    start = command.add_mutually_exclusive_group()
    start.add_argument("--resume", action="store_true", help="go on from the run's own latest checkpoint")
    start.add_argument("--start-from", type=Path, metavar="ADAPTER", help="go on from an adapter")
    start.add_argument("--from-committed", action="store_true", help="go on from the adapter of the package")
    command.add_argument("--publish", action="store_true", help="at the end put the adapter into the package")
