"""The step `fim` of the recipe."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

from training.corpora.step import CORPORA
from training.data.corpus import HELD_OUT_FILE, TRAIN_FILE, read_corpus
from training.data.packages import SourceFile
from training.fim.options import ADAPTER, RANK, FimOptions

WEIGHTS = 1e15
"""Sum of the weights of files, which are whole numbers."""

AVERAGE_OF_DECAYED = 0.05
"""Share of the steps that is averaged over where the rate falls: the weights of higher rates are worse."""


def run_fim(options: FimOptions) -> None:
    """Train the adapter; its checkpoints lie in the run's folder."""
    # Read by the libraries when they load, which the imports below do.
    if options.device == "cpu" and options.processes > 1 and hasattr(os, "fork"):
        os.environ["OMP_NUM_THREADS"] = "1"
    from fim_server.models.smollm2.adapter import read_adapter, write_adapter
    from training.fim.checkpoints import ADAPTER_FILE, BEST_FILE
    from training.fim.network import FULL, INT8
    from training.fim.training import Job, Plan, train

    folder = options.work / options.run_name
    start_from = ADAPTER if options.from_committed else options.start_from
    rank, alpha = size_of(options.rank, options.alpha, folder / ADAPTER_FILE if options.resume else start_from)
    plan = Plan(
        minutes=options.minutes,
        rank=rank,
        alpha=alpha,
        rate=options.rate,
        decay=options.decay,
        average=AVERAGE_OF_DECAYED if options.decay else Plan.average,
        tokens=options.batch,
        lengths=tuple(options.lengths),
        shares=tuple(options.lengths.values()),
        window=options.window,
        drawing=options.drawing,
        held_out=options.held_out,
        save_seconds=60 * options.save_minutes,
        arithmetic=FULL if options.full_precision else INT8,
        compiled=not options.eager,
        seed=options.seed,
    )
    trained, held_out = (read_texts(options, name) for name in (TRAIN_FILE, HELD_OUT_FILE))
    job = Job(
        plan=plan,
        base=options.base,
        corpus=trained.files,
        held_out=held_out.files,
        weights=trained.weights,
        held_out_weights=held_out.weights,
        languages=held_out.languages,
        folder=folder,
        start_from=start_from,
        resume=options.resume,
        device=options.device,
        recipe="./dev train fim",
    )
    best = train(job, options.processes, _say)
    if options.publish and best is not None:
        ADAPTER.parent.mkdir(exist_ok=True)
        write_adapter(ADAPTER, read_adapter(folder / BEST_FILE), small=True)
        _say(
            f"{ADAPTER}: the best of {folder}, after {best.tokens / 1e6:.3f} M tokens"
            f" ({best.held_out.nats:.4f} nats held out), {ADAPTER.stat().st_size / 1e6:.1f} MB"
        )


class Texts(NamedTuple):
    """Files, their chances to be drawn (None: by their lengths), and the files by language if there are several."""

    files: list[SourceFile]
    weights: list[int] | None
    languages: dict[str, list[SourceFile]]


def read_texts(options: FimOptions, name: str) -> Texts:
    """Read one file of the corpus, or of those of the languages that have a share."""
    if not options.share:
        return Texts(read_corpus(options.work / "corpus" / name), None, {})
    languages = {one: read_corpus(options.work / CORPORA / one / name, "corpus") for one in options.share}
    return mixed({one: files for one, files in languages.items() if files}, options.share)


def mixed(languages: dict[str, list[SourceFile]], shares: dict[str, float]) -> Texts:
    """Weigh files so that each language is drawn by its share, and within it each file by its length."""
    weights: list[int] = []
    for language, files in languages.items():
        unit = WEIGHTS * shares[language] / sum(shares.values()) / sum(len(file.text) for file in files)
        weights += [max(1, round(unit * len(file.text))) for file in files]
    return Texts([file for files in languages.values() for file in files], weights, languages)


def size_of(rank: int | None, alpha: float | None, origin: Path | None) -> tuple[int, float]:
    """Rank and alpha: what was given, else those of the adapter that is gone on from, else of one that begins.

    Raises ModelError where there is a file that is no adapter.
    """
    from fim_server.models.smollm2.adapter import read_adapter

    if rank is None and origin is not None and origin.is_file():
        adapter = read_adapter(origin)
        return adapter.rank, alpha or adapter.alpha
    return rank or RANK, alpha or float(rank or RANK)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
