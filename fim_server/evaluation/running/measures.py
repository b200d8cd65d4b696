"""Measures of one text in a hole: its likeness to the true middle (docs/evaluation.md).

Nothing here knows models or the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module

from fim_server.errors import MissingLibrary

TAIL_CHARACTERS = 2_000
"""Characters of each context that a result carries for the report."""


@cache
def similarity_function() -> Callable[[str, str], float]:
    """The normalised Levenshtein similarity of rapidfuzz. Raises MissingLibrary where it is not installed."""
    try:
        module = import_module("rapidfuzz.distance.Levenshtein")
    except ModuleNotFoundError:
        raise MissingLibrary("edit similarity needs rapidfuzz: install fim-server[eval]") from None
    similarity: Callable[[str, str], float] = module.normalized_similarity
    return similarity


def edit_similarity(text: str | None, reference: str) -> float:
    """``1 - levenshtein(a, b) / max(len(a), len(b))`` of the texts stripped at both ends; 0 where there is none.

    1 for two empty texts. Insertions, deletions and replacements of a character count 1 each. Raises MissingLibrary.
    """
    return 0.0 if text is None else similarity_function()(text.strip(), reference.strip())


def exact_match(text: str | None, reference: str) -> bool:
    """Return whether the texts are equal, stripped at both ends."""
    return text is not None and text.strip() == reference.strip()


def suffix_overlap(text: str | None, right: str) -> int:
    """The longest end of a text that its right context begins with, both stripped: its length, 0 for none."""
    if not text:
        return 0
    end, begin = text.strip(), right.strip()
    end = end[-len(begin) :] if begin else ""
    return next((length for length in range(len(end), 0, -1) if begin.startswith(end[-length:])), 0)


def stretches(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Numbers as runs, first and last of each, in order.

    >>> stretches([5, 1, 2, 3])
    ((1, 3), (5, 5))
    """
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)


def one_line(error: BaseException, limit: int = 300) -> str:
    """An exception in one line: its class, and what it says."""
    said = " ".join(str(error).split())[:limit]
    name = type(error).__name__
    return f"{name}: {said}" if said else name
