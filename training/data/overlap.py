"""Overlap of texts: near-duplicates, and runs of words shared with an evaluation set."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fim_server.datasets.safim import HOLE
from fim_server.errors import TrainingError
from training.data.packages import SourceFile

SHINGLE_WORDS = 6

_PERMUTATIONS = 64

_BANDS = 16

_WORD = re.compile(r"\w+|[^\w\s]")

_FIRST_COMMENT = re.compile(r"\A(?:\s*(?:/\*.*?\*/|//[^\n]*\n|#(?!include|define|if|pragma)[^\n]*\n))+", re.S)
"""Comments that a program begins with."""


def shingle_hashes(text: str, length: int = SHINGLE_WORDS, fewest: int = 1) -> npt.NDArray[np.uint64]:
    """Hash every run of `length` words and marks: distinct uint64, sorted.

    `fewest`: least number of different words in a run; with 1 there is at least one hash.
    """
    words = np.fromiter((zlib.crc32(word.encode()) for word in _WORD.findall(text)), dtype=np.uint64)
    if len(words) < length:
        words = np.concatenate([words, np.zeros(length - len(words), dtype=np.uint64)])
    runs = len(words) - length + 1
    hashes = np.zeros(runs, dtype=np.uint64)
    for offset in range(length):
        hashes = hashes * np.uint64(0x9E3779B97F4A7C15) + words[offset : offset + runs]
        hashes ^= hashes >> np.uint64(29)
    if fewest > 1:
        ordered = np.sort(np.lib.stride_tricks.sliding_window_view(words, length), axis=1)
        hashes = hashes[(np.diff(ordered, axis=1) != 0).sum(axis=1) + 1 >= fewest]
    return np.unique(hashes)


class NearDuplicates:
    """MinHash signatures in banded buckets; it remembers every text that it called new.

    Signatures have 64 minima in 16 bands of 4. A pair of Jaccard similarity 0.7 shares a band with probability 0.988.
    A pair of 0.3 does with 0.122, and is then compared in full.
    """

    def __init__(self, similarity: float) -> None:
        """`similarity`: share of equal minima, in 0..1, from which a text is a duplicate."""
        generator = np.random.default_rng(20_261_121)
        odd = np.uint64(1)
        size = (_PERMUTATIONS, 1)
        self._factors = generator.integers(1, 2**63, size=size, dtype=np.uint64) | odd
        self._offsets = generator.integers(0, 2**63, size=size, dtype=np.uint64)
        self._similarity = similarity
        self._signatures: list[npt.NDArray[np.uint64]] = []
        self._buckets: dict[tuple[int, bytes], list[int]] = {}

    def signature(self, text: str) -> npt.NDArray[np.uint64]:
        """MinHash signature of a text: [64] uint64."""
        hashes = shingle_hashes(text)[None, :]
        mixed = (hashes * self._factors + self._offsets) >> np.uint64(11)
        minima: npt.NDArray[np.uint64] = mixed.min(axis=1)
        return minima

    def is_new(self, text: str) -> bool:
        """Tell whether no text called new so far resembles this one, and remember it if so."""
        signature = self.signature(text)
        bands = [(band, rows.tobytes()) for band, rows in enumerate(np.split(signature, _BANDS))]
        candidates = {index for band in bands for index in self._buckets.get(band, [])}
        for index in candidates:
            equal = float(np.mean(self._signatures[index] == signature))
            if equal >= self._similarity:
                return False
        for band in bands:
            self._buckets.setdefault(band, []).append(len(self._signatures))
        self._signatures.append(signature)
        return True


def remove_near_duplicates(files: Iterable[SourceFile], duplicates: NearDuplicates) -> Iterator[SourceFile]:
    """Yield the files that resemble none before them."""
    return (file for file in files if duplicates.is_new(file.text))


# Words and marks in a run that two texts share only if one was copied from the other.
OVERLAP_WORDS = 24

DIFFERENT_WORDS = 12
"""Different words in such a run; lines of dashes and lists of includes have fewer."""


def overlaps(text: str, evaluation: npt.NDArray[np.uint64]) -> bool:
    """Tell whether a text shares a run of `OVERLAP_WORDS` words with the evaluation texts."""
    if not len(evaluation):
        return False
    hashes = shingle_hashes(text, OVERLAP_WORDS)
    places = np.searchsorted(evaluation, hashes)
    return bool((evaluation[np.minimum(places, len(evaluation) - 1)] == hashes).any())


def read_evaluation_texts(paths: Iterable[Path]) -> npt.NDArray[np.uint64]:
    """Hash the solutions of infilling sets: distinct uint64, sorted.

    The files are JSON lines, maybe gzipped, of records with `prompt`, `canonical_solution` and `suffix`, or of SAFIM.
    A comment that begins a program of SAFIM is left out: it is mostly a licence, which many files share. Raises
    TrainingError if a file is missing or not of that form.
    """
    solutions: set[str] = set()
    for path in paths:
        try:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
                for line in lines:
                    solutions.add(_solution(json.loads(line)))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise TrainingError(f"{path}: not an infilling set ({error})") from error
    hashes = [shingle_hashes(text, OVERLAP_WORDS, DIFFERENT_WORDS) for text in sorted(solutions)]
    return np.unique(np.concatenate(hashes)) if hashes else np.empty(0, dtype=np.uint64)


def _solution(record: dict[str, str]) -> str:
    if "eval_prompt" not in record:
        return record["prompt"] + record["canonical_solution"] + record["suffix"]
    return _FIRST_COMMENT.sub("", record["eval_prompt"].replace(HOLE, record["ground_truth"]), count=1)
