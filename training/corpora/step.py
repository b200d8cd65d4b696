"""The step `corpus` of the recipe."""

from __future__ import annotations

import sys
from typing import Any

from training.corpora.collecting import Sources, collect_corpora
from training.corpora.downloads import download
from training.corpora.lists import read_barred, read_packages, read_wheels, refuse_barred
from training.corpora.options import CorpusOptions
from training.data.corpus import SOURCES_FILE, CollectLimits
from training.data.overlap import read_evaluation_texts

CORPORA, DOWNLOADS = "corpora", "packages"
"""Folders in the step's own: the corpora, by language, and the downloaded packages."""


def run_corpus(options: CorpusOptions) -> None:
    """Download the listed packages and write a corpus for each language."""
    barred = read_barred(options.datasets, options.wheels)
    packages = sorted({*read_packages(options.lists), *read_wheels(options.wheels)})
    refuse_barred(packages, barred)
    evaluation = read_evaluation_texts(options.exclude)
    downloads = options.work / DOWNLOADS
    failed = download([*barred, *packages], downloads, options.archive_bytes, say)
    for package, reason in sorted(failed.items()):
        say(f"left out: {package.key}@{package.version}: {reason}")
    folder = options.work / CORPORA
    manifest = collect_corpora(
        Sources(packages, barred, downloads),
        evaluation,
        CollectLimits(options.package_bytes, options.held_out_bytes),
        folder,
        options.processes,
        say,
    )
    print(table(manifest))
    say(f"{folder}: see {SOURCES_FILE}")


def table(manifest: dict[str, Any]) -> str:
    """The corpora, a row a language, as Markdown."""
    reasons = sorted({reason for row in manifest["languages"].values() for reason in row["dropped_bytes"]})
    head = ["", "packages", "files", "MB", "held out", *reasons]
    rows = [head, ["---"] * len(head)]
    for language, row in manifest["languages"].items():
        dropped = [f"{row['dropped_bytes'].get(reason, 0) / 1e6:.1f}" for reason in reasons]
        sizes = [f"{row[name] / 1e6:.1f}" for name in ("bytes", "held_out_bytes")]
        rows.append([language, str(row["packages"]), str(row["files"]), *sizes, *dropped])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
