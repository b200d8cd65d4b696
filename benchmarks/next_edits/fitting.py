"""Fit of the confidence in next edits to replayed releases."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

import numpy as np

from benchmarks.index.weights import fit, loss
from benchmarks.next_edits.replay import Step, judged
from fim_server.next_edit.confidence import NAMES
from fim_server.next_edit.propose import rated
from fim_server.suggest.next_edit import uses_in


def page(steps: Iterable[tuple[str, Step]], names: Iterable[str]) -> str:
    """Return the file of the weights, fitted to the places of some steps.

    The places of a step count as one example together, so that none with many decides alone.
    """
    inputs, answers, shares = [], [], []
    for language, step in steps:
        found = rated(step.edits, step.file, step.text, uses_in(language, step.text))
        for place, features in found:
            inputs.append(features)
            answers.append(float(judged(step, place.start, place.end, place.text).is_right))
            shares.append(len(found) ** -0.5)
    rows, right, weight = np.array(inputs), np.array(answers), np.array(shares)
    weights = fit(rows, right, weight)
    lines = [
        "# Weights of the confidence in next edits (fim_server/next_edit/confidence.py), fitted by",
        "# `./dev bench next-edits --fit` to these releases and what followed them:",
        *(f"# {line}" for line in textwrap.wrap(", ".join(sorted(names)), 110)),
        f"# {len(right)} places, {right.mean():.3f} right; {loss(weights, rows, right):.4f} bits each.",
        "[weights]",
        *(f"{name} = {one:.4f}" for name, one in zip(NAMES, weights, strict=True)),
    ]
    return "\n".join(lines) + "\n"
