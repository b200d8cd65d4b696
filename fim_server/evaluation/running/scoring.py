"""Scores of true middles: their bits under a model, whatever the model would write itself.

Exact matches of a few hundred holes separate models that differ much. The bits of the true middle separate those that
differ little, on the same holes and prompts, at the cost of a greedy text of that length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fim_server.models.backend import PREFILL_CHUNK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.models.backend import Logits
    from fim_server.models.model import FimModel
    from fim_server.models.reading import Reading

LEAST_SHARE = 2.0**-100
"""A probability below counts as this one: in single precision it may be 0."""


@dataclass(frozen=True, slots=True)
class Score:
    """The bits of a middle, in the tokens that the tokenizer gives it."""

    text_bits: float
    """Bits of the middle's text. After token healing, a token counts its share among the tokens that begin right."""
    end_bits: float
    """Bits of ending after the middle."""


def score(model: FimModel, reading: Reading, prompt: Sequence[int], healing: bytes, middle: str) -> Score | None:
    """The bits of ``middle`` after ``prompt``, whose text lacks the bytes ``healing`` that come before the middle.

    None where the model's window does not hold both. Raises whatever the model raises, and ValueError where the
    vocabulary has no tokens for the text.
    """
    arithmetic = model.backend.arithmetic
    vocabulary = model.vocabulary
    tokens = vocabulary.encode(healing.decode() + middle)
    if len(prompt) + len(tokens) > model.window:
        return None
    logits: Logits = None
    for begin in range(reading.resume(prompt), len(prompt), PREFILL_CHUNK):
        logits = reading.forward(prompt[begin : begin + PREFILL_CHUNK])
    bits = 0.0
    for token in tokens:
        row = logits
        if healing:
            row = arithmetic.only(row, vocabulary.towards(healing, len(row)))
            healing = healing[len(vocabulary.token_bytes(token)) :]
        bits += _bits(arithmetic.share_of(row, [token]))
        logits = reading.forward([token])
    return Score(bits, _bits(arithmetic.share_of(logits, vocabulary.end_token_ids)))


def _bits(share: float) -> float:
    return -math.log2(max(share, LEAST_SHARE))
