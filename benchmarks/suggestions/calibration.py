"""Fit the confidence of suggestions (`fim_server/suggest/ranking/constants.toml`).

    python -m benchmarks.suggestions.calibration FOLDER... --cursors 1500

Lines of each folder's files are typed again, with the rest of the folder as the project. The server's worker is asked
in this process at some of the keys. Each suggestion of the model gives up to three examples of texts: its first cut,
its first line and its whole, each right or not as far as it goes. It gives one example of a first lexeme: the log odds
of its tokens, whether it loads an undefined name, and whether it is right. A logistic model is fitted to each kind. The
report compares likelihoods with shares of right texts. Two cores process some 2,000 requests an hour.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.server.played_editor import DELETE, Editor, next_key
from benchmarks.server.scenarios import Item
from benchmarks.suggestions.judge import Judgement, Truth, judge
from benchmarks.suggestions.projects import Project as Sources
from benchmarks.suggestions.projects import Task
from benchmarks.suggestions.recipes import PROMPT_TOKENS, command_line, drawn_of, end_with, remembered
from fim_server.suggest.context.cursor import Place, wants_single_line
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.suggest.suggestion import Suggestion, likelihood
from fim_server.text.document import Split
from fim_server.workers.worker import CompletionWorker

KEYS_OF_A_LINE = 3
"""Keys of a line at which the worker is asked."""

LEAST = 1e-6
"""A probability is taken to be at least that far from 0 and 1."""

STEPS, BINS = 50, 10

Example = tuple[float, bool, bool]
"""The logarithm of the odds, whether a name is unknown, whether it is right."""

TEXTS, FIRST = "", "first_"
"""Kinds of examples, which the names of the weights begin with."""


def places(task: Task, chance: random.Random) -> Iterator[Editor]:
    """Editors at some of the keys with which a line is typed."""
    editor = Editor(task.before + task.after, len(task.before))
    states: list[tuple[str, int, str]] = []
    while (key := next_key(editor, len(task.before), task.wanted)) not in (None, DELETE):
        editor.press(key or "")
        written = editor.text[len(task.before) : editor.cursor]
        if task.wanted.startswith(written) and written != task.wanted:
            states.append((editor.text, editor.cursor, editor.closers))
    for text, cursor, closers in chance.sample(states, min(KEYS_OF_A_LINE, len(states))):
        found = Editor(text, cursor)
        found.closers = closers
        yield found


def examples_of(offer: Suggestion, editor: Editor, truth: Truth) -> Iterator[tuple[str, Example]]:
    """Yield a suggestion's examples of texts and of first lexemes."""

    def judged(end: int) -> Judgement:
        return judge(editor, truth, Item(offer.text[:end], offer.covered, None))

    def example(end: int, right: bool) -> Example:
        share = min(max(likelihood(offer.tokens, end), LEAST), 1 - LEAST)
        return math.log(share / (1 - share)), any(name <= end for name in offer.likelihoods.unknown), right

    first_line = [cut for cut in offer.ends.cuts if "\n" not in offer.text[:cut]]
    for cut in sorted({*first_line[:1], *first_line[-1:], *offer.ends.cuts[-1:]}):
        yield TEXTS, example(cut, judged(cut).agrees)
    if offer.ends.lexemes:
        yield FIRST, example(offer.ends.lexemes[0], judged(len(offer.text)).lexeme)


def examples(sources: Sources, cursors: int, seed: int, model: str | None) -> Iterator[tuple[str, Example]]:
    """Collect the examples from the lines of a folder."""
    chance = random.Random(f"calibration {sources.name} {seed}")
    settings = ServerSettings(
        model=model, prefetch=False, deadline_ms=None, prompt_tokens=PROMPT_TOKENS, min_confidence=0.0
    )
    with remembered(sources) as (root, project):
        worker = CompletionWorker(settings, project=project)
        worker.load().result()
        asked = 0
        for task in sources.tasks:
            truth = Truth(task.before + task.wanted + task.after, len(task.before) + len(task.wanted))
            uri = (root / task.file).as_uri()
            project.opened(uri)
            for editor in places(task, chance):
                split = Split(editor.text[: editor.cursor], editor.text[editor.cursor :])
                single_line = wants_single_line(Place.of(split), settings)
                request = Request(uri, split, "python", task.file, False, single_line, settings)
                work = worker.submit(request).future.result()
                asked += 1
                for offer in work.answer.suggestions if work is not None else ():
                    if not offer.likelihoods.is_calibrated:
                        yield from examples_of(offer, editor, truth)
            if asked >= cursors:
                break
        worker.close()


def fit(inputs: NDArray[np.float64], answers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of the logistic model that makes the answers likeliest (Newton's method).

    Args:
        inputs: [examples, 3], the first of them 1.
        answers: 0 or 1 [examples].
    """
    weights = np.zeros(inputs.shape[1])
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-inputs @ weights))
        curve = (inputs * (likely * (1 - likely))[:, None]).T @ inputs + 1e-6 * np.eye(len(weights))
        weights += np.linalg.solve(curve, inputs.T @ (answers - likely))
    return weights


def report(what: str, found: Sequence[Example]) -> str:
    """The numbers, and how well they are calibrated."""
    inputs = np.array([(1.0, odds, float(unknown)) for odds, unknown, _ in found])
    answers = np.array([float(right) for _, _, right in found])
    weights = fit(inputs, answers)
    likely = 1 / (1 + np.exp(-inputs @ weights))
    lines = [
        f"{len(found)} examples, {answers.mean():.3f} right",
        ", ".join(f"{what}{name}" for name in ("intercept", "per_log_odds", "per_unknown_name"))
        + " = "
        + ", ".join(f"{weight:.2f}" for weight in weights),
    ]
    for low in range(BINS):
        within = (likely * BINS).astype(int) == low
        if within.any():
            lines.append(f"{within.sum():6} said {likely[within].mean():.3f}, right {answers[within].mean():.3f}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask, fit, and print."""
    parser = command_line("Fit the confidence of suggestions to lines typed again.", "--cursors", "requests in", 200, 1)
    given = parser.parse_args(arguments)
    found: list[tuple[str, Example]] = []
    for sources in drawn_of(given.folder, given.drawn, given.seed, lambda: f"{len(found)} examples"):
        found.extend(examples(sources, given.drawn, given.seed, given.model))
    for what in (TEXTS, FIRST):
        print(report(what, [example for kind, example in found if kind == what]))
    return 0


if __name__ == "__main__":
    end_with(main)
