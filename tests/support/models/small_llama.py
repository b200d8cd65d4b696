"""The tiny base with a vocabulary for Python, and a tokenizer whose special tokens stand where SmolLM2's do."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

from support.models.tiny_base import SHAPE, tiny_weights

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from fim_server.models.smollm2.shape import LlamaShape

SPECIAL = (
    "<|endoftext|>",
    *(f"<unused_{number}>" for number in range(1, 8)),
    "<issue_start>",
    "<issue_comment>",
    "<issue_closed>",
)
SPECIAL = (*SPECIAL, *(f"<unused_{number}>" for number in range(11, 17)))
"""Special tokens that stand where SmolLM2's do."""

SOURCE = '''"""Counts words."""

import re


class Counter:
    """Counts the words of texts."""

    def __init__(self, least: int = 1) -> None:
        self.total = 0
        self.least = least
        self.words: dict[str, int] = {}

    def add(self, text: str) -> int:
        # Words are runs of letters.
        for word in re.findall(r"[a-z]+", text.lower()):
            self.words[word] = self.words.get(word, 0) + 1
            self.total += 1
        return self.total

    def often(self) -> list[str]:
        found = [word for word, count in self.words.items() if count >= self.least]

        return sorted(found, key=lambda word: (-self.words[word], word))

    def __repr__(self) -> str:
        return f"Counter(total={self.total}, words={len(self.words)})"


def count(texts: list[str], least: int = 2) -> list[str]:
    counter = Counter(least)
    for text in texts:
        counter.add(text)
    return counter.often()
'''


@functools.cache
def small_tokenizer() -> Tokenizer:
    """A byte-level BPE with 400 tokens, made of :data:`SOURCE`, which cuts words as SmolLM2's does."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = [AddedToken(name, special=True) for name in SPECIAL]
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([SOURCE], trainer)
    tokenizer.encode_special_tokens = True
    return tokenizer


def small_shape() -> LlamaShape:
    """The tiny base's, with the small tokenizer's vocabulary."""
    return replace(SHAPE, vocabulary=small_tokenizer().get_vocab_size())


def small_weights(seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Random weights, by the names of a transformers folder."""
    return tiny_weights(seed, small_shape())
