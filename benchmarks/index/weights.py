"""Fit the index's weights: ``python -m benchmarks.index.weights FOLDER...``.

Each folder is a package. Cursors are drawn in its files. The index is asked as a server asks it: the rest of the
package is indexed, and the file is open without the typed text. Three logistic models are fitted to the typed text by
Newton's method with a small penalty on the weights. The same folders and seed give the same file, in a minute or two.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.index.cursors import Cursor
from benchmarks.index.trial import asked
from fim_server._core import Continuation
from fim_server.language.texts import is_word
from fim_server.memory.features import FURTHER_NAMES, NAMES, features, further_features

Array = NDArray[np.float64]

PENALTY = 1.0
"""Penalty of the squared weights but the bias: as much as one cursor's loss at a weight of about 1."""

STEPS = 50
"""Most steps of Newton's method."""

ALTERNATIVES = 4
"""Continuations of a cursor that are learnt from: those that an offer is chosen among."""

MOST_LINES = 8
"""Most lines of a continuation whose further lines are learnt from."""

LONGEST = 12
"""Lexemes of the longest beginning that is learnt from."""


def beginnings(cursor: Cursor, one: Continuation) -> Iterator[tuple[list[float], bool]]:
    """Each beginning of a continuation, with whether it is right as far as it goes."""
    text = one.text.split("\n", 1)[0]
    for words, (length, share) in enumerate(one.shares[:LONGEST], 1):
        beginning = text[:length]
        rest = cursor.truth[length:]
        # A word that is only a part of what was typed is not right.
        torn = bool(beginning) and is_word(beginning[-1]) and rest[:1] != "" and is_word(rest[0])
        yield features(one, share, length, words), cursor.truth.startswith(beginning) and not torn


def further_lines(cursor: Cursor, one: Continuation) -> Iterator[tuple[list[float], bool]]:
    """Each further line of a continuation, as far as those before it are right, with whether it is."""
    typed = [line.rstrip() for line in cursor.truth.split("\n")]
    for at, line in enumerate(one.text.split("\n")):
        right = at < len(typed) and line.rstrip() == typed[at]
        if at:
            yield further_features(one), right
        if not right:
            return


def examples(folders: Sequence[Path], cursors: int, seed: int) -> Iterator[tuple[str, Sequence[str], Array, Array]]:
    """Yield each model's examples: name, feature names, features [examples, features], answers [examples].

    Args:
        folders: Packages.
        cursors: Number of cursors in each of them.
        seed: Seed of the cursors.
    """
    begun: list[tuple[list[float], bool]] = []
    whole: list[tuple[list[float], bool]] = []
    further: list[tuple[list[float], bool]] = []
    for folder in folders:
        for cursor, found in asked(folder, cursors, seed, ALTERNATIVES):
            for one in found:
                begun.extend(beginnings(cursor, one))
                length = one.shares[-1][0] if one.shares else 0
                right = one.text.rstrip() == cursor.truth.rstrip()
                whole.append((features(one, one.share, length, len(one.shares)), right))
        for cursor, found in asked(folder, cursors, seed, 1, MOST_LINES):
            further.extend(example for one in found for example in further_lines(cursor, one))
    yield "beginning", NAMES, *arrays(begun)
    yield "whole", NAMES, *arrays(whole)
    yield "further", FURTHER_NAMES, *arrays(further)


def arrays(rows: Sequence[tuple[list[float], bool]]) -> tuple[Array, Array]:
    """Examples as arrays; an answer is 1 for right."""
    return np.array([row for row, _ in rows]), np.array([float(right) for _, right in rows])


def fit(inputs: Array, answers: Array, shares: Array | float = 1.0) -> Array:
    """The weights of the logistic model that makes the answers likeliest, with the penalty (Newton's method).

    Args:
        inputs: Features [examples, features], the first of them 1.
        answers: 0 or 1 [examples].
        shares: What each example counts [examples].
    """
    weights = np.zeros(inputs.shape[1])
    penalty = np.full(inputs.shape[1], PENALTY)
    penalty[0] = 0.0
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-np.clip(inputs @ weights, -30, 30)))
        slope = inputs.T @ (shares * (likely - answers)) + penalty * weights
        curve = (inputs * (shares * likely * (1 - likely))[:, None]).T @ inputs + np.diag(penalty + 1e-9)
        step = np.linalg.solve(curve, slope)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return weights


def loss(weights: Array, inputs: Array, answers: Array) -> float:
    """Bits by which an answer surprises the model, on average."""
    logits = np.clip(inputs @ weights, -30, 30)
    return float(np.mean(np.logaddexp(0, logits) - answers * logits) / np.log(2))


def page(folders: Sequence[Path], cursors: int, seed: int) -> str:
    """The file of the weights.

    Args:
        folders: Packages to fit to.
        cursors: In each of them.
        seed: Of what is drawn.
    """
    lines = [
        "# Weights of the models in fim_server/memory/features.py, fitted by benchmarks/index/weights.py",
        f"# to {cursors} cursors (seed {seed}) in each of: {', '.join(sorted(folder.name for folder in folders))}.",
    ]
    for name, named, inputs, answers in examples(folders, cursors, seed):
        weights = fit(inputs, answers)
        surprise = loss(weights, inputs, answers)
        lines += ["", f"# {len(answers)} examples, {answers.mean():.3f} right; {surprise:.4f} bits each.", f"[{name}]"]
        lines += [f"{feature} = {weight:.4f}" for feature, weight in zip(named, weights, strict=True)]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, and write the file."""
    parser = argparse.ArgumentParser(description="Fit the weights of the memory's offers.")
    parser.add_argument("folder", nargs="+", type=Path, help="a package's folder")
    parser.add_argument("--cursors", type=int, default=1500, help="in each package (default: 1500)")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn (default: 1)")
    parser.add_argument("--out", type=Path, required=True, help="the file to write: fim_server/memory/weights.toml")
    given = parser.parse_args(arguments)
    given.out.write_text(page(given.folder, given.cursors, given.seed), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
