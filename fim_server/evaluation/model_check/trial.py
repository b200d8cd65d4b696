"""Ten holes given to a model: how likely it holds the true middles, whether it ends them, and what it writes itself."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fim_server.decoding.complete import complete
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import StopReason
from fim_server.errors import ModelError, first_line
from fim_server.evaluation.model_check.holes import Hole, holes
from fim_server.evaluation.model_check.speed import Clock, Speed, measure_speed
from fim_server.language import Language
from fim_server.models.backend import PREFILL_CHUNK
from fim_server.models.prompt import bind
from fim_server.models.reading import passes
from fim_server.recovery.recovery import Recovery
from fim_server.text.document import Split
from fim_server.tokens.formats import known_formats, other_order

if TYPE_CHECKING:
    from fim_server.models.model import FimModel
    from fim_server.models.prompt import BoundFormat

MOST_PROMPT = 512
"""Tokens of a prompt at most; the holes have some 60."""

MOST_TOKENS = 48
"""Most tokens of a middle."""

TEXT_MS = 20_000.0
"""For one text that the model writes."""

LEAST_SHARE = 1e-6
"""A token that is less likely counts as if it were so likely: servers tell nothing of any but the likeliest."""

SECONDS = 120.0
"""Default time limit of a trial in seconds. A pass under way ends first."""


@dataclass(frozen=True)
class Tried:
    """Result for one hole. Losses are in nats a token of the true middle.

    Attributes:
        loss: With the text after the cursor.
        without: Without text after the cursor.
        swapped: With the text after another hole.
        plain: With the text before the cursor alone, as plain text without a prompt format.
        end_share: Probability of the end tokens after the true middle.
        ends: True if an end token is the likeliest there.
        text: The model's own constrained middle; None for none.
        parses: True if the file parses with ``text``; None where time ran out.
        reason: Reason for a missing text.
    """

    hole: Hole
    loss: float
    without: float
    swapped: float
    plain: float
    end_share: float
    ends: bool
    text: str | None
    parses: bool | None
    reason: str | None

    @property
    def is_true(self) -> bool:
        """Tell whether the model writes the true middle, blanks aside."""
        return self.text is not None and self.text.split() == self.hole.middle.split()


@dataclass(frozen=True)
class Trial:
    """Results for all holes.

    Attributes:
        others: Mean losses with other prompt formats whose tokens the model has, by family; measured where the model's
            own format gave bad results.
        garbled: A hole whose text changes when it is encoded and decoded, or None.
    """

    model: FimModel
    speed: Speed
    tried: tuple[Tried, ...]
    others: dict[str, float]
    garbled: Hole | None
    seconds: float


class OutOfTimeError(Exception):
    """The time for all of it is over."""


def try_out(
    model: FimModel,
    seconds: float = SECONDS,
    tell: Callable[[int], None] = lambda number: None,
    clock: Clock = time.perf_counter,
) -> Trial:
    """Run the holes, as many as there is time for.

    Args:
        model: Any that is loaded.
        seconds: For all of it.
        tell: Told how many holes are done.
        clock: What time is taken by.

    Raises:
        ModelError: Where the model's runtime cannot compute.
    """
    began = clock()
    end = began + seconds
    speed = measure_speed(model, clock, seconds / 4)
    tried: list[Tried] = []
    others: dict[str, float] = {}
    try:
        for number, hole in enumerate(holes()):
            tell(number)
            tried.append(try_hole(model, hole, clock, end))
        if any(one.loss >= min(one.plain, one.swapped) for one in tried):
            others = other_losses(model, clock, end)
    except OutOfTimeError:
        pass
    except RuntimeError as error:
        raise ModelError(f"{model.name}: cannot compute ({first_line(error)})") from error
    garbled = next((hole for hole in holes() if is_garbled(model, hole)), None)
    return Trial(model, speed, tuple(tried), others, garbled, clock() - began)


def try_hole(model: FimModel, hole: Hole, clock: Clock, end: float) -> Tried:
    """Run one. Raises OutOfTimeError, and RuntimeError where the model's runtime does."""

    def loss(prompt: Sequence[int]) -> float:
        return mean_loss(model, prompt, hole.middle, clock, end)[0]

    bound = model.format
    true, end_share, ends = mean_loss(model, prompt_of(model, bound, hole.left, hole.right), hole.middle, clock, end)
    without = loss(prompt_of(model, bound, hole.left, ""))
    swapped = loss(prompt_of(model, bound, hole.left, hole.other))
    plain = loss(bound.text_ids(hole.left)[-limit_of(model) :])
    text, parses, reason = written(model, hole, 1000 * (end - clock()))
    return Tried(hole, true, without, swapped, plain, end_share, ends, text, parses, reason)


def written(model: FimModel, hole: Hole, milliseconds: float) -> tuple[str | None, bool | None, str | None]:
    """Return the model's middle for a hole, whether the program parses with it, and the reason for a missing text."""
    if milliseconds <= 0:
        raise OutOfTimeError
    language = Language.load(hole.language)
    options = DecodeOptions(max_new_tokens=MOST_TOKENS, deadline_ms=min(TEXT_MS, milliseconds))
    split = Split(hole.left, hole.right)
    completion = complete(model, Recovery(language.open, name=language.name), split, options)
    if completion.text is None:
        out_of_time = completion.stop_reason in (StopReason.DEADLINE, StopReason.CANCELLED)
        return None, None if out_of_time else False, completion.reason
    return completion.text, language.open("", "").check(split.joined(completion.text)).complete, None


def mean_loss(
    model: FimModel, prompt: Sequence[int], middle: str, clock: Clock, end: float
) -> tuple[float, float, bool]:
    """Return a middle's loss in nats a token, the share of end tokens, and whether one of them is the likeliest."""
    tokens = model.vocabulary.encode(middle)
    cache = model.new_cache(len(prompt) + len(tokens))
    arithmetic = model.backend.arithmetic
    logits = None
    nats = 0.0
    for part in passes(prompt, 0, PREFILL_CHUNK):
        logits = in_time(clock, end, model, part, cache)
    for token in tokens:
        nats -= math.log(max(LEAST_SHARE, arithmetic.share_of(logits, [token])))
        logits = in_time(clock, end, model, [token], cache)
    stops = model.format.stop_ids
    return nats / len(tokens), arithmetic.share_of(logits, stops), arithmetic.likeliest(logits) in stops


def in_time(clock: Clock, end: float, model: FimModel, tokens: Sequence[int], cache: object) -> object:
    """A pass, unless the time is over."""
    if clock() >= end:
        raise OutOfTimeError
    return model.forward(tokens, cache)


def other_losses(model: FimModel, clock: Clock, end: float) -> dict[str, float]:
    """Return the mean loss with each other format that the model's tokens would do for, in both orders of contexts."""
    found: dict[str, float] = {}
    tried = {model.format.pieces}
    for row in (*known_formats(), *map(other_order, known_formats())):
        bound = bind(row, model.format.tokenizer)
        if bound is None or bound.pieces in tried:
            continue
        tried.add(bound.pieces)
        bound = replace(bound, plain=model.format.plain)
        prompts = [prompt_of(model, bound, hole.left, hole.right) for hole in holes()]
        losses = [
            mean_loss(model, prompt, hole.middle, clock, end)[0] for prompt, hole in zip(prompts, holes(), strict=True)
        ]
        found[row.family] = sum(losses) / len(losses)
    return found


def prompt_of(model: FimModel, bound: BoundFormat, left: str, right: str) -> list[int]:
    """Return a hole's prompt."""
    return bound.encode(left, right, limit_of(model))


def limit_of(model: FimModel) -> int:
    """Return the most tokens of a prompt."""
    return min(MOST_PROMPT, model.window // 2)


def is_garbled(model: FimModel, hole: Hole) -> bool:
    """Return whether a hole's text changes when encoded and decoded."""
    text = hole.left + hole.middle + hole.right
    tokens = model.format.text_ids(text)
    return b"".join(map(model.vocabulary.token_bytes, tokens)).decode(errors="replace") != text
