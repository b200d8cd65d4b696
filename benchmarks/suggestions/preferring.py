"""Fit the weights of existing names beside the model (`language_support/python/preferring.toml`).

    python -m benchmarks.suggestions.preferring FOLDER... --lines 70 --output FILE

Lines are cut and read as by :mod:`.believing`, with the index of the rest of the folder, with that of a small project,
and by the model alone. The likeliest tokens at each step have kinds. The weights maximise the likelihood of the true
tokens, all kinds of projects together. The report compares them with weights fitted to the other folders. 70 lines take
half a minute.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmarks.suggestions import believing
from benchmarks.suggestions.recipes import command_line, drawn_of, end_with, remembered
from fim_server.decoding.bias.name_bias import text_of
from fim_server.decoding.constants import DECODING
from fim_server.language import Language
from fim_server.models.load import load_model
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.suggest.sources.project import Project
from fim_server.suggest.sources.scope_cache import ScopeCache

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.suggestions.projects import Project as Sources
    from fim_server.models.model import FimModel

Array = NDArray[np.float64]

ALONE = "no memory"
"""The kind of the model alone."""

STEPS, PENALTY, LONGEST_STEP = 60, 2e-4, 1.0


@dataclass(frozen=True)
class Candidate:
    """A token: its kinds, its probability before they count, and whether it is right."""

    kinds: tuple[str, ...]
    probability: float
    right: bool


@dataclass(frozen=True)
class Step:
    """A place in a line.

    Attributes:
        folder: The package's name.
        project: Of one of the kinds of :mod:`.believing`, or :data:`ALONE`.
        first: Whether nothing of the rest is written yet.
        candidates: The tokens asked about, and those that are right.
    """

    folder: str
    project: str
    first: bool
    candidates: tuple[Candidate, ...]


def steps_of_line(
    model: FimModel, line: believing.Line, asked: Sequence[believing.Asked], request: Request, whole: Project
) -> Iterator[tuple[str, bool, tuple[Candidate, ...]]]:
    """Each token of a line, with each of the projects: the project's kind, whether it is the first, and candidates."""
    arithmetic = model.backend.arithmetic
    preference = ScopeCache().at(request, "python", whole)
    assert preference is not None, "Python's names are known"
    kinds_of = preference.kinds  # type: ignore[attr-defined]
    for row in line.rows():
        shares, right = arithmetic.shares(row), set(line.right_ones())
        certainty = arithmetic.top(shares, 1)[0][1]
        middle, healing = line.middle.decode(errors="ignore"), line.healing.decode(errors="ignore")
        for one in (None, *asked):
            logits = row
            if one is not None and (weights := line.foretold(one)):
                heaviest = max(weights.values())
                given = {
                    token: one.advice.share(weight, heaviest, certainty, float(shares[token]))
                    for token, weight in weights.items()
                }
                logits = arithmetic.mixed(row, given)
            mixed = arithmetic.shares(logits)
            looked_at = dict(arithmetic.top(mixed, DECODING.rated_tokens))
            looked_at |= {token: float(mixed[token]) for token in right if token not in looked_at}
            kinds = kinds_of(middle, healing, [text_of(model.vocabulary, token) for token in looked_at])
            # Weights change what is looked at alone.
            counted = zip(looked_at.items(), kinds, range(len(looked_at)), strict=True)
            candidates = tuple(
                Candidate(tuple(mine) if number < DECODING.rated_tokens else (), share, token in right)
                for (token, share), mine, number in counted
            )
            yield ALONE if one is None else one.kind, not middle, candidates


def steps(model: FimModel, sources: Sources, seed: int) -> Iterator[Step]:
    """Collect the examples from the lines of a folder."""
    chance = random.Random(f"preferring {sources.name} {seed}")
    python, settings = Language.load("python"), ServerSettings()
    with remembered(sources) as (root, whole):
        for task in sources.tasks:
            split, rest = believing.cut(task, chance)
            uri = (root / task.file).as_uri()
            asked = [one for one in believing.projects(sources, whole, uri, split, chance) if one.kind != "file"]
            line = believing.Line(model, split, rest, python.open(split.left, split.right))
            request = Request(uri, split, "python", task.file, False, True, settings)
            for project, first, candidates in steps_of_line(model, line, asked, request, whole):
                yield Step(sources.name, project, first, candidates)
            whole.forget(uri)
            for one in asked:
                if one.project is not whole:
                    one.project.close()


class Examples:
    """Steps as arrays; the tokens of a step are one axis, the last of them all that was not looked at.

    Attributes:
        kinds: Their names, in the order of the weights.
        inputs: 1 for the kinds of a token [steps, tokens, kinds].
        shares: The probabilities before the weights [steps, tokens].
        rights: 1 where a token is right [steps, tokens].
    """

    def __init__(self, found: Sequence[Step], kinds: Sequence[str]) -> None:
        most = max(len(step.candidates) for step in found) + 1
        self.kinds = kinds
        self.inputs = np.zeros((len(found), most, len(kinds)))
        self.shares, self.rights = np.zeros((len(found), most)), np.zeros((len(found), most))
        for row, step in enumerate(found):
            for column, one in enumerate(step.candidates):
                self.inputs[row, column, [kinds.index(kind) for kind in one.kinds]] = 1
                self.shares[row, column], self.rights[row, column] = one.probability, one.right
            self.shares[row, -1] = max(0.0, 1 - sum(one.probability for one in step.candidates))

    def weighed(self, weights: Array) -> Array:
        """The probabilities with some weights [steps, tokens]."""
        found: Array = self.shares * np.exp(self.inputs @ weights)
        found /= found.sum(1, keepdims=True)
        return found

    def likelihood(self, weighed: Array) -> Array:
        """The probability of what is right [steps]."""
        found: Array = np.maximum((weighed * self.rights).sum(1), 1e-9)
        return found

    def is_right(self, weighed: Array) -> Array:
        """1 where the likeliest token is right [steps]."""
        found: Array = self.rights[np.arange(len(weighed)), weighed[:, :-1].argmax(1)]
        return found


def fit(examples: Examples) -> Array:
    """The weights [kinds] that make what is right likeliest, by Newton's steps."""
    weights = np.zeros(len(examples.kinds))
    for _ in range(STEPS):
        weighed = examples.weighed(weights)
        right = weighed * examples.rights / examples.likelihood(weighed)[:, None]
        expected = np.einsum("st,stk->sk", weighed, examples.inputs)
        slopes = (np.einsum("st,stk->sk", right, examples.inputs) - expected).mean(0) - 2 * PENALTY * weights
        apart = examples.inputs - expected[:, None, :]
        curve = np.einsum("stk,stl->kl", weighed[:, :, None] * apart, apart, optimize=True) / len(weighed)
        step = np.linalg.solve(curve + 2 * PENALTY * np.eye(len(weights)), slopes)
        weights = weights + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        if np.abs(step).max() < 1e-4:
            break
    return weights


def report(found: Sequence[Step]) -> tuple[str, dict[str, float]]:
    """Return the weights' gain, and the weights by kind."""
    kinds = sorted({kind for step in found for one in step.candidates for kind in one.kinds})
    examples = Examples(found, kinds)
    before, after = examples.weighed(np.zeros(len(kinds))), examples.shares.copy()
    for folder in sorted({step.folder for step in found}):
        mine = np.array([step.folder == folder for step in found])
        others = [step for step in found if step.folder != folder]
        after[mine] = examples.weighed(fit(Examples(others or found, kinds)))[mine]
    lines = [
        "| memory | tokens | bits of a token | likeliest right | first tokens | bits | right |",
        "|---|" + "---:|" * 6,
    ]
    for project in dict.fromkeys(step.project for step in found):
        chosen = np.array([step.project == project for step in found])
        firsts = np.array([step.project == project and step.first for step in found])
        cells = [project]
        for rows in (chosen, firsts):
            bits = [-np.log2(examples.likelihood(shares))[rows].mean() for shares in (before, after)]
            right = [examples.is_right(shares)[rows].mean() for shares in (before, after)]
            cells += [f"{rows.sum():,}", f"{bits[0]:.3f} to {bits[1]:.3f}"]
            cells.append(f"{100 * right[0]:.1f} to {100 * right[1]:.1f} %")
        lines.append(f"| {' | '.join(cells)} |")
    weights = dict(zip(kinds, fit(examples).tolist(), strict=True))
    return "\n".join(lines), weights


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask, fit, print, and write the weights."""
    parser = command_line("Fit how much likelier names that exist are.", "--lines", "lines of", 70, 11)
    parser.add_argument("--output", type=Path, help="where the weights go")
    given = parser.parse_args(arguments)
    model = load_model(given.model, None, None)
    found: list[Step] = []
    for sources in drawn_of(given.folder, given.drawn, given.seed, lambda: f"{len(found):,} tokens"):
        found.extend(steps(model, sources, given.seed))
    table, weights = report(found)
    print(table)
    text = "".join(f"{kind} = {weight:.2f}\n" for kind, weight in weights.items())
    print(text)
    if given.output is not None:
        names = ", ".join(Path(folder).name for folder in given.folder)
        head = f"# By `benchmarks/suggestions/preferring.py`: {given.drawn} lines (seed {given.seed}) of each of\n"
        given.output.write_text(f"{head}# {names}; {len(found):,} tokens.\n{text}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    end_with(main)
