"""Token table and cached masks of a language and a vocabulary."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fim_server import _core
from fim_server.language.cache import cache_folder, tidy

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from fim_server.language import Language, Matcher
    from fim_server.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class Prepared:
    """Token table that is ready.

    Attributes:
        seconds: Time it took when it was first needed.
        cached: True if it came from an earlier run's file.
        bytes: Its size, in memory as in the file.
    """

    seconds: float
    cached: bool
    bytes: int


def prepare(language: Language, vocabulary: Vocabulary) -> Prepared:
    """Prepare the token table of a language and a vocabulary, which the first mask would do otherwise.

    It is kept in the cache folder (`language.cache`), from where later runs map it into memory. A damaged or foreign
    file is never used: the table is built again. A new one may displace files that were not used for longest.
    """
    began = time.perf_counter()
    prepared = Prepared(*vocabulary.core.prepare(language.core))
    is_new = not prepared.cached and time.perf_counter() - began >= prepared.seconds  # later calls return at once
    if is_new and (folder := cache_folder()) is not None:
        tidy(folder)
    return prepared


def clear(language: Language, vocabulary: Vocabulary) -> None:
    """Forget the computed masks; the table stays."""
    vocabulary.core.clear(language.core)


def statistics(language: Language, vocabulary: Vocabulary) -> dict[str, int]:
    """Return counts of the masks of a language and a vocabulary.

    `masks` states are known, with `distinct` different masks among them, in `bytes`. `hits` were answered from them and
    `misses` computed since they were last cleared. `table` is the size of the token table in bytes.
    """
    names = ("masks", "distinct", "hits", "misses", "bytes", "table")
    return dict(zip(names, vocabulary.core.statistics(language.core), strict=True))


def fill_masks(matchers: Sequence[Matcher], words: NDArray[np.uint32], threads: int | None = None) -> None:
    """Fill a packed mask for each matcher, on several threads and without the interpreter's lock.

    Raises ValueError if the array does not fit or has gaps, or the vocabularies differ in size; BufferError if the
    array is of another type or read-only.

    Args:
        matchers: Matchers of vocabularies of one size, each of which may be of another session and language.
        words: Filled in place; shape [matchers, at least ceil(vocabulary size / 32)], contiguous. Words beyond the
            vocabulary become 0.
        threads: Number of threads; default: one for each processor.
    """
    if words.ndim != 2 or len(words) != len(matchers):
        raise ValueError(f"{len(matchers)} masks do not fit an array of shape {list(words.shape)}")
    if threads is not None and threads < 1:
        raise ValueError(f"{threads} threads cannot fill a mask")
    _core.fill_masks([matcher.core for matcher in matchers], words, threads or os.cpu_count() or 1)
