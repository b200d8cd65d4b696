"""Fit the confidence of suggestions (`fim_server/suggest/ranking/constants.toml`).

    python -m benchmarks.suggestions.calibration --language python --language go --cursors 30

Lines of a set's projects, or of folders, are typed again, with the rest of the project beside them. The server's worker
is asked in this process at some of the keys. Each suggestion of the model gives up to three examples of texts: its
first cut, its first line and its whole, each right or not as far as it goes. It gives one example of a first lexeme:
the log odds of its tokens, whether it loads an undefined name or has a new word, and whether it is right. A logistic
model is fitted to each kind. Then the suggestion is followed while the keys agree with it: the shift that makes its
confidence right is shrunk by its standard error over files. Shifts of languages are told as well; none is in use. The
report compares likelihoods with shares of right texts. Two cores process some 2,000 requests an hour.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.server.played_editor import DELETE, Editor, next_key
from benchmarks.server.scenarios import Item
from benchmarks.suggestions.judge import Judgement, Truth, judge
from benchmarks.suggestions.lines import draw_lines
from benchmarks.suggestions.projects import Project as Sources
from benchmarks.suggestions.projects import Task, open_set
from benchmarks.suggestions.recipes import PROMPT_TOKENS, command_line, drawn_of, end_with, remembered
from benchmarks.suggestions.typed_language import typed
from fim_server.errors import BenchError
from fim_server.suggest.answer_cache import rest_of
from fim_server.suggest.context.cursor import Place, wants_single_line
from fim_server.suggest.ranking.confidence import first_confidence
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

USUAL_SHIFT = 0.5
"""Standard deviation of shifts, in log odds."""

LEAST_SHOWN = 0.2
"""Least confidence of a rest that may be on the screen."""

WEIGHTS = ("intercept", "per_log_odds", "per_unknown_name", "per_new_word")


class Example(NamedTuple):
    """Text or first lexeme of a suggestion.

    Attributes:
        odds: Logarithm of the odds of its tokens.
        unknown: Whether it loads an unknown name.
        new: Whether it has a new word, where the language's names are unknown.
        right: Whether it is right.
        language: Its language.
        file: Project and file.
    """

    odds: float
    unknown: bool
    new: bool
    right: bool
    language: str = "python"
    file: str = ""


TEXTS, FIRST, TYPED = "", "first_", "typed_"
"""Kinds of examples, which the names of the weights begin with."""


def places(task: Task, chance: random.Random) -> Iterator[Editor]:
    """Editors at some of the keys with which a line is typed."""
    keyboard = typed(task.language).keyboard
    editor = Editor(task.before + task.after, len(task.before), keyboard)
    states: list[tuple[str, int, str]] = []
    while (key := next_key(editor, len(task.before), task.wanted)) not in (None, DELETE):
        editor.press(key or "")
        written = editor.text[len(task.before) : editor.cursor]
        if task.wanted.startswith(written) and written != task.wanted:
            states.append((editor.text, editor.cursor, editor.closers))
    for text, cursor, closers in chance.sample(states, min(KEYS_OF_A_LINE, len(states))):
        found = Editor(text, cursor, keyboard)
        found.closers = closers
        yield found


def examples_of(
    offer: Suggestion, editor: Editor, truth: Truth, language: str = "python", file: str = ""
) -> Iterator[tuple[str, Example]]:
    """Yield a suggestion's examples of texts and of first lexemes."""

    def judged(end: int) -> Judgement:
        return judge(editor, truth, Item(offer.text[:end], offer.covered, None))

    def example(end: int, right: bool) -> Example:
        share = min(max(likelihood(offer.tokens, end), LEAST), 1 - LEAST)
        unknown, new = (
            any(name <= end for name in names) for names in (offer.likelihoods.unknown, offer.likelihoods.new_words)
        )
        return Example(math.log(share / (1 - share)), unknown, new, right, language, file)

    first_line = [cut for cut in offer.ends.cuts if "\n" not in offer.text[:cut]]
    for cut in sorted({*first_line[:1], *first_line[-1:], *offer.ends.cuts[-1:]}):
        yield TEXTS, example(cut, judged(cut).agrees)
    if offer.ends.lexemes:
        yield FIRST, example(offer.ends.lexemes[0], judged(len(offer.text)).lexeme)


def followed(offer: Suggestion, editor: Editor, task: Task, truth: Truth) -> Iterator[tuple[str, Example]]:
    """Yield the rests of a suggestion while the user types along with it, by their confidence without a shift."""
    right, start, rest = editor.text[editor.cursor :], editor.cursor, offer
    while (key := next_key(editor, len(task.before), task.wanted)) not in (None, DELETE):
        editor.press(key or "")
        found = rest_of(offer, right, editor.text[start : editor.cursor], editor.text[editor.cursor :])
        if found is None or not truth.rest(editor.cursor).partition("\n")[0]:
            return
        rest = replace(found, likelihoods=replace(found.likelihoods, shift=0.0))
        share = first_confidence(rest)
        if share < LEAST_SHOWN:
            return
        share = min(share, 1 - LEAST)
        is_right = judge(editor, truth, Item(rest.text, rest.covered, None)).lexeme
        place = task.language, f"{task.project} {task.file}"
        yield TYPED, Example(math.log(share / (1 - share)), False, False, is_right, *place)


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
            wanted = task.before + task.wanted + task.after
            truth = Truth(wanted, len(task.before) + len(task.wanted), sources.language)
            uri = (root / task.file).as_uri()
            project.opened(uri)
            for editor in places(task, chance):
                split = Split(editor.text[: editor.cursor], editor.text[editor.cursor :])
                single_line = wants_single_line(Place.of(split), settings)
                request = Request(uri, split, task.language, task.file, False, single_line, settings)
                work = worker.submit(request).future.result()
                asked += 1
                offers = work.answer.suggestions if work is not None else ()
                for offer in offers:
                    if not offer.likelihoods.is_calibrated:
                        yield from examples_of(offer, editor, truth, task.language, f"{sources.name} {task.file}")
                if offers and not offers[0].likelihoods.is_calibrated:
                    yield from followed(offers[0], editor, task, truth)
            if asked >= cursors:
                break
        worker.close()


def fit(inputs: NDArray[np.float64], answers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of the logistic model that makes the answers likeliest (Newton's method).

    Args:
        inputs: [examples, weights], the first of them 1.
        answers: 0 or 1 [examples].
    """
    weights = np.zeros(inputs.shape[1])
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-inputs @ weights))
        curve = (inputs * (likely * (1 - likely))[:, None]).T @ inputs + 1e-6 * np.eye(len(weights))
        weights += np.linalg.solve(curve, inputs.T @ (answers - likely))
    return weights


def inputs_of(found: Sequence[Example], weights: int) -> NDArray[np.float64]:
    return np.array([(1.0, one.odds, float(one.unknown), float(one.new)) for one in found])[:, :weights]


def shift_of(odds: NDArray[np.float64], answers: NDArray[np.float64], files: Sequence[str]) -> tuple[float, float]:
    """Return a shrunk shift of log odds, and the standard error of the likeliest one, clustered by files."""
    shift = 0.0
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-(odds + shift)))
        curve = np.sum(likely * (1 - likely)) + LEAST
        shift = min(max(shift + float(np.sum(answers - likely) / curve), -5.0), 5.0)  # all are right, or none
    _, places = np.unique(files, return_inverse=True)
    error = float(np.sqrt(np.sum(np.bincount(places, answers - likely) ** 2)) / curve)
    return shift * USUAL_SHIFT**2 / (USUAL_SHIFT**2 + error**2), error


def report(what: str, found: Sequence[Example]) -> str:
    """The numbers, and how well they are calibrated."""
    named = WEIGHTS if what == FIRST else WEIGHTS[:3]
    inputs, answers = inputs_of(found, len(named)), np.array([float(one.right) for one in found])
    odds = np.array([one.odds for one in found])
    lines = [f"{len(found)} examples, {answers.mean():.3f} right"]
    if what == TYPED:
        shift, error = shift_of(odds, answers, [one.file for one in found])
        odds += shift
        lines.append(f"typed_shift = {shift:.2f} (standard error {error:.2f})")
    else:
        weights = fit(inputs, answers)
        odds = inputs @ weights
        told = ", ".join(f"{what}{name}" for name in named), ", ".join(f"{weight:.2f}" for weight in weights)
        lines.append(" = ".join(told))
    for language in sorted({one.language for one in found}) if what != TEXTS else ():
        mine = [at for at, one in enumerate(found) if one.language == language]
        shift, error = shift_of(odds[mine], answers[mine], [found[at].file for at in mine])
        lines.append(f"shift in {language}: {shift:.2f} (standard error {error:.2f})")
    likely = 1 / (1 + np.exp(-odds))
    for low in range(BINS):
        within = (likely * BINS).astype(int) == low
        if within.any():
            lines.append(f"{within.sum():6} said {likely[within].mean():.3f}, right {answers[within].mean():.3f}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask, fit, and print."""
    parser = command_line(
        "Fit the confidence of suggestions to lines typed again.", "--cursors", "requests in", 200, 1, "*"
    )
    parser.add_argument("--language", action="append", default=[], help="type in the projects of this language's set")
    parser.add_argument("--set", default="fit", help="which of its sets (default: fit)", dest="use")
    given = parser.parse_args(arguments)
    found: list[tuple[str, Example]] = []
    for sources in drawn_of(given.folder, given.drawn, given.seed, lambda: f"{len(found)} examples"):
        found.extend(examples(sources, given.drawn, given.seed, given.model))
    for language in given.language:
        for sources in open_set(language, given.use, lambda said: print(said, file=sys.stderr)):
            draw_lines(sources, given.drawn, given.seed)
            found.extend(examples(sources, given.drawn, given.seed, given.model))
    if not found:
        raise BenchError("no folder and no language, or no suggestion there")
    for what in (TEXTS, FIRST, TYPED):
        print(report(what, [example for kind, example in found if kind == what]))
    return 0


if __name__ == "__main__":
    end_with(main)
