"""Findings of a trial: causes for good and bad results of a model, in words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from fim_server.evaluation.model_check.holes import holes
from fim_server.evaluation.model_check.speed import READ_TOKENS, TYPING_MS, WRITTEN_TOKENS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fim_server.evaluation.model_check.trial import Trial

LEAST_GAIN = 0.2
"""Nats a token by which the true right context makes the true middle likelier than none, and than another one. The
embedded model gains 1.1, SmolLM2 1.9; where the prompt does not show the suffix it is 0."""

LEAST_HELPED = 0.5
"""The share of holes of which it makes the middle likelier than both."""

LIKELY_END = 0.1
LEAST_ENDED = 0.3
"""The share of holes after whose middle the end is at least so likely. The embedded model: 0.7, SmolLM2: 0.8."""

BETTER = 0.1
"""Nats a token by which another format has to be better to be named."""


class Aspect(StrEnum):
    """Kinds of findings."""

    TOKENS = "tokens"
    FORMAT = "format"
    SUFFIX = "suffix"
    END = "end"
    PARSES = "parses"
    SPEED = "speed"
    TIME = "time"


@dataclass(frozen=True)
class Finding:
    """About one aspect.

    Attributes:
        words: What was found, in one line.
    """

    aspect: Aspect
    good: bool
    words: str


def findings(trial: Trial) -> list[Finding]:
    """Return the findings about a model, causes before their effects."""
    found = [of_tokens(trial)]
    if trial.tried:
        found += [of_format(trial), of_suffix(trial), of_end(trial), of_texts(trial)]
    found.append(of_speed(trial))
    if len(trial.tried) < len(holes()):
        words = (
            f"{len(trial.tried)} of {len(holes())} holes were done in {trial.seconds:.0f} s (--seconds gives it more)"
        )
        found.append(Finding(Aspect.TIME, good=False, words=words))
    return found


def no_format(problem: str) -> Finding:
    """The finding about a model that has the tokens of no known format."""
    return Finding(Aspect.TOKENS, good=False, words=problem)


def of_tokens(trial: Trial) -> Finding:
    """Judge whether the model has control tokens for prompts, and encodes texts without loss."""
    if not trial.model.format.sees_suffix:
        words = (
            "it has no fill-in-the-middle tokens: it writes on from the left, and what stands after is not shown to it"
        )
        return Finding(Aspect.TOKENS, good=False, words=words)
    if trial.garbled is not None:
        words = f"a text's tokens are not those of the text, where {trial.garbled.words!r} is left out"
        return Finding(Aspect.TOKENS, good=False, words=words)
    return Finding(Aspect.TOKENS, good=True, words=f"it has those of the {trial.model.format.family} format")


def of_format(trial: Trial) -> Finding:
    """Judge whether the model knows the prompt format's control tokens."""
    loss, plain = mean(one.loss for one in trial.tried), mean(one.plain for one in trial.tried)
    costs = f"{loss:.2f} nats a token of the true middle, {plain:.2f} after the text before the cursor alone"
    better = min(trial.others.items(), key=lambda item: item[1], default=None)
    if better is not None and better[1] < loss - BETTER:
        words = (
            f"the {better[0]} format would be better: {better[1]:.2f} nats a token of the true middle, not {loss:.2f}"
        )
        return Finding(Aspect.FORMAT, good=False, words=words)
    if trial.model.format.sees_suffix and loss >= plain:
        words = f"a prompt in the {trial.model.format.family} format is worse than none: {costs}"
        return Finding(Aspect.FORMAT, good=False, words=words)
    return Finding(Aspect.FORMAT, good=True, words=costs)


def of_suffix(trial: Trial) -> Finding:
    """Judge whether the model uses the text after the cursor."""
    without = mean(one.without - one.loss for one in trial.tried)
    swapped = mean(one.swapped - one.loss for one in trial.tried)
    helped = sum(one.loss < min(one.without, one.swapped) for one in trial.tried)
    gained = (
        f"{without:+.2f} nats a token against none, {swapped:+.2f} against another file's suffix, likelier in {helped}"
    )
    gained += f" of {len(trial.tried)}"
    good = min(without, swapped) >= LEAST_GAIN and helped >= LEAST_HELPED * len(trial.tried)
    words = "the text after the cursor helps" if good else "the text after the cursor does not help"
    return Finding(Aspect.SUFFIX, good, f"{words}: {gained}")


def of_end(trial: Trial) -> Finding:
    """Judge whether the model ends its middles."""
    ended = sum(one.end_share >= LIKELY_END for one in trial.tried)
    most = max(one.end_share for one in trial.tried)
    words = f"after {ended} of {len(trial.tried)} true middles the end is likely (at most {100 * most:.0f} %)"
    if ended >= LEAST_ENDED * len(trial.tried):
        return Finding(Aspect.END, good=True, words=words)
    return Finding(Aspect.END, good=False, words=f"it does not end its middles: {words}")


def of_texts(trial: Trial) -> Finding:
    """Judge whether the files parse with the model's constrained middles."""
    true = sum(one.is_true for one in trial.tried)
    wrong = [one for one in trial.tried if one.parses is False]
    if wrong:
        first = wrong[0]
        why = f"no text ({first.reason})" if first.text is None else f"{first.text!r} does not fit"
        words = f"{len(wrong)} of {len(trial.tried)} texts fail, as where {first.hole.words!r} is left out: {why}"
        return Finding(Aspect.PARSES, good=False, words=words)
    late = sum(one.parses is None for one in trial.tried)
    words = f"all files parse with what it writes, which is the true middle in {true} of {len(trial.tried)}"
    if late:
        words += f"; {late} came too late"
    return Finding(Aspect.PARSES, good=True, words=words)


def of_speed(trial: Trial) -> Finding:
    """Judge whether the model is fast enough for typing."""
    speed = trial.speed
    words = f"{rounded(speed.read)} tokens/s read, {rounded(speed.written)} written: "
    words += f"{speed.line_ms / 1000:.2f} s for a line of {WRITTEN_TOKENS} tokens after {READ_TOKENS} new ones"
    if speed.is_for_typing:
        return Finding(Aspect.SPEED, good=True, words=words)
    return Finding(Aspect.SPEED, good=False, words=f"too slow for typing ({TYPING_MS / 1000:.1f} s): {words}")


def rounded(number: float) -> str:
    """Three digits at most where there are no more before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def mean(numbers: Iterable[float]) -> float:
    """The mean of at least one number."""
    listed = list(numbers)
    return sum(listed) / len(listed)
