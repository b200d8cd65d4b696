"""What it costs that a text loads no unbound name, and what it changes.

    python -m benchmarks.names FOLDER... --model smollm2 --cuts 40

Lines of Python files are cut at a word, and the rest of each is written greedily, one line, with names as they come and
with names required. It is told how many have a text, how many of these load a name that nothing binds, how many are the
file's own, and what it took. At the same cuts it is measured what a check of a token takes, before each token of the
true rest; what a mask over the whole vocabulary takes, before one of them; and what judging the rest takes.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from fim_server.decoding.bias.undefined_names import NAMES, Followed, Naming
from fim_server.decoding.complete import complete
from fim_server.decoding.options import DecodeOptions
from fim_server.language import Language
from fim_server.models.load import load_model
from fim_server.text.document import Split

if TYPE_CHECKING:
    from fim_server.decoding.results import Completion
    from fim_server.models.model import FimModel

LEAST_REST = 3
"""Characters of a line's rest."""

MOST_TOKENS = 32
CHECKS = 32
"""Tokens that are checked at each place."""

WORD = re.compile(r"\w+")


def cuts(folders: Sequence[str], count: int, rng: random.Random) -> list[tuple[Split, str]]:
    """Cursors at words of lines of a folder's files, and the rests of the lines."""
    files = [path for folder in folders for path in sorted(Path(folder).rglob("*.py"))]
    found: list[tuple[Split, str]] = []
    while files and len(found) < count:
        text = rng.choice(files).read_text(encoding="utf-8", errors="ignore").replace("\r\n", "\n")
        lines = text.splitlines(keepends=True)
        at = rng.randrange(len(lines)) if lines else 0
        words = [found.start() for found in WORD.finditer(lines[at])] if lines else []
        if not words or lines[at].lstrip().startswith("#"):
            continue
        start = sum(map(len, lines[:at])) + rng.choice(words)
        rest = text[start:].partition("\n")[0]
        if len(rest.strip()) >= LEAST_REST and Language.load("python").open(text, "").check("").complete:
            found.append((Split(text[:start], text[start + len(rest) :]), rest))
    return found


def spread(values: Sequence[float], unit: str) -> str:
    """The middle and the 95th percentile of some seconds."""
    scale = {"ms": 1e3, "us": 1e6}[unit]
    ordered = sorted(values)
    return f"{scale * median(ordered):.1f} ({scale * ordered[int(0.95 * (len(ordered) - 1))]:.1f}) {unit}"


def costs(model: FimModel, chosen: Sequence[tuple[Split, str]], rng: random.Random) -> list[str]:
    """What beginning, checks, masks and judging take."""
    seconds: dict[str, list[float]] = {"begin": [], "check": [], "mask": [], "judge": []}

    def timed(kind: str, began: float, times: int = 1) -> None:
        seconds[kind].append((time.perf_counter() - began) / times)

    vocabulary = model.vocabulary
    for split, rest in chosen:
        began = time.perf_counter()
        naming = Naming.of("python", split.left, split.right)
        assert naming is not None
        followed = Followed(naming, vocabulary, "")
        timed("begin", began)
        tokens = vocabulary.encode(rest)
        masked = rng.randrange(len(tokens))
        for end in range(len(tokens)):
            tried = [rng.randrange(vocabulary.size) for _ in range(CHECKS)]
            followed.refuses(tokens[:end], tokens[end])
            began = time.perf_counter()
            for token in tried:
                followed.refuses(tokens[:end], token)
            timed("check", began, CHECKS)
            if end == masked:
                began = time.perf_counter()
                followed.mask(tokens[:end])
                timed("mask", began)
        began = time.perf_counter()
        naming.unbound(rest)
        timed("judge", began)
    sizes = [len(split.left) + len(split.right) for split, _ in chosen]
    files = f"files of {median(sizes):,.0f} characters ({min(sizes):,} to {max(sizes):,})"
    return [
        f"{files}, {vocabulary.size:,} tokens; p50 (p95)",
        f"reading what is left and right of the cursor: {spread(seconds['begin'], 'ms')}",
        f"a check of a token: {spread(seconds['check'], 'us')}",
        f"a mask over the vocabulary: {spread(seconds['mask'], 'ms')}",
        f"judging a text: {spread(seconds['judge'], 'ms')}",
    ]


def texts(model: FimModel, chosen: Sequence[tuple[Split, str]]) -> list[str]:
    """What is written with names as they come, and required."""
    lines = [
        "| names | with a text | loading an unbound name | the file's own | ms a text |",
        "|---|---:|---:|---:|---:|",
    ]
    language = Language.load("python")
    for names in NAMES:
        options = DecodeOptions(
            names=names, single_line=True, no_comments=True, stop_repetition=True, max_new_tokens=MOST_TOKENS
        )
        began = time.perf_counter()
        written: list[Completion] = [complete(model, language, split, options) for split, _ in chosen]
        took = 1000 * (time.perf_counter() - began) / len(chosen)
        unbound = right = 0
        for completion, (split, rest) in zip(written, chosen, strict=True):
            naming = Naming.of(language.name, split.left, split.right)
            assert naming is not None
            unbound += bool(completion.text and naming.unbound(completion.text))
            right += (completion.text or "").rstrip() == rest.rstrip()
        some = sum(completion.text is not None for completion in written)
        lines.append(f"| `{names}` | {some} of {len(chosen)} | {unbound} | {right} | {took:.0f} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(description="What it costs, and changes, to load no unbound name.")
    parser.add_argument("folder", nargs="+", help="a folder of Python files")
    parser.add_argument("--cuts", type=int, default=40, help="lines that are cut (default: 40)")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (default: 0)")
    parser.add_argument("--model", help="a model folder, hub name, smollm2 or embedded")
    given = parser.parse_args(arguments)
    rng = random.Random(given.seed)
    chosen = cuts(given.folder, given.cuts, rng)
    model = load_model(given.model)
    print("\n".join([*costs(model, chosen, rng), "", *texts(model, chosen)]))
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # threads of the model's runtime need not be waited for
