"""Division of a run's samples: shards, windows, batches.

All of it follows from the order of the data alone. A resumed run forms the same batches and gets the same results as a
run without a break.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from fim_server.datasets.samples import Sample

Item = TypeVar("Item")

WINDOW_BATCHES = 16
"""Batches that are formed together, of samples of similar length: more would be more alike, and read ahead further."""

CHARACTERS_PER_TOKEN = 4
"""Assumed characters of a prompt token, to group samples of similar length; source code has 3 to 4."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One of ``count`` parts of the data: every sample whose number leaves ``index - 1`` when divided by ``count``."""

    index: int = 1
    """From 1 on."""
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """``I/N``. Raises ValueError for anything else."""
        index, slash, count = text.partition("/")
        if not (
            slash
            and (index + count).isascii()
            and index.isdecimal()
            and count.isdecimal()
            and 1 <= int(index) <= int(count)
        ):
            raise ValueError(f"{text!r} is not a shard: I/N expected, as in 1/4, with I from 1 to N")
        return cls(int(index), int(count))

    @property
    def file(self) -> str:
        """The name of the file of its results."""
        return "samples.jsonl" if self.count == 1 else f"samples-{self.index}-of-{self.count}.jsonl"

    def of(self, samples: Iterable[Item]) -> Iterator[Item]:
        """Its part of the samples, or of what is told of each, in order."""
        return islice(samples, self.index - 1, None, self.count)


def form_batches(samples: Iterable[Sample], size: int, max_prompt_tokens: int) -> Iterator[list[Sample]]:
    """Batches of at most ``size`` samples of similar length, in windows of :data:`WINDOW_BATCHES` of them."""
    longest = max_prompt_tokens * CHARACTERS_PER_TOKEN
    stream = iter(samples)
    while window := list(islice(stream, size * WINDOW_BATCHES)):
        window.sort(key=lambda sample: min(len(sample.left) + len(sample.right), longest))  # stable, so deterministic
        for begin in range(0, len(window), size):
            yield window[begin : begin + size]
