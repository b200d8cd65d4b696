"""A stream of training windows, each packed with whole examples."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from training.data.cutting import Mixture, cut, line_end
from training.data.layout import Example, encode_example
from training.tokenizer import PAD, token_id


def chunks(texts: Sequence[str], longest: int, generator: random.Random) -> list[str]:
    """Cut texts into pieces of a tenth of `longest` to `longest` characters, and shuffle them.

    Together the pieces are the texts, so that a pass over them sees every character once. The
    lengths are log-uniform: short pieces bring more middles, and fill windows without gaps.
    Most pieces begin at a line, as an untruncated context does; some begin anywhere.
    """
    pieces: list[str] = []
    for text in texts:
        start = 0
        while start < len(text):
            end = start + int(longest * 10 ** generator.uniform(-1, 0))
            if len(text) - end < longest // 16:
                end = len(text)
            elif generator.random() < 0.7:
                end = line_end(text, end) + 1
            pieces.append(text[start:end])
            start = end
    generator.shuffle(pieces)
    return pieces


class Tokens(Protocol):
    """Token ids to pack."""

    @property
    def ids(self) -> list[int]: ...


Packed = TypeVar("Packed", bound=Tokens)


def take_window(waiting: list[Packed], length: int) -> list[Packed]:
    """Take examples that fill a window of `length` tokens out of the waiting ones; no example is torn apart.

    The one that has waited longest comes first, then the longest that still fits, until none does (best fit).
    """
    chosen = [waiting.pop(0)]
    room = length - len(chosen[0].ids)
    while fitting := [one for one in waiting if len(one.ids) <= room]:
        best = max(fitting, key=lambda one: len(one.ids))
        waiting.remove(best)
        chosen.append(best)
        room -= len(best.ids)
    return chosen


class Window(NamedTuple):
    """A training window: ids [length] int64 and loss weights [length] float32, padded."""

    ids: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float32]


def windows(
    texts: Sequence[str],
    tokenizer: Tokenizer,
    mixture: Mixture,
    length: int,
    generator: random.Random,
    held: int = 48,
) -> Iterator[Window]:
    """Pack examples into windows of `length` tokens, pass after pass, without end.

    They are chosen among `held` waiting ones; padding stays near one percent.
    """
    pad = token_id(tokenizer, PAD)
    waiting: list[Example] = []
    source = _examples(texts, tokenizer, mixture, length, generator)
    while True:
        while len(waiting) < held:
            waiting.append(next(source))
        chosen = take_window(waiting, length)
        ids = [token for one in chosen for token in one.ids]
        weights = [weight for one in chosen for weight in one.weights]
        padding = length - len(ids)
        yield Window(
            np.array(ids + [pad] * padding, dtype=np.int64),
            np.array(weights + [0.0] * padding, dtype=np.float32),
        )


def _examples(
    texts: Sequence[str],
    tokenizer: Tokenizer,
    mixture: Mixture,
    length: int,
    generator: random.Random,
) -> Iterator[Example]:
    # At under four characters a token, the longest pieces are trimmed to a full window.
    longest = 4 * length
    while True:
        for piece in chunks(texts, longest, generator):
            order = mixture.order(generator)
            hole = cut(piece, mixture, generator)
            example = encode_example(tokenizer, hole, order, length, mixture.middle_weight)
            if len(example.ids) > 16:
                yield example
