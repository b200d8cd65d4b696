"""Comparison of a program's output with the expected one, by the rules of ExecEval, which SAFIM is judged by.

Khan et al., xCodeEval (arXiv 2303.03004).
"""

from __future__ import annotations

from decimal import Context, Decimal, InvalidOperation

WORDS = frozenset({"yes", "no", "true", "false"})
"""Words whose case does not matter."""

LARGEST_DIFFERENCE = Decimal("1e-12")
PRECISION = Context(prec=60)
"""Digits of a difference; longer equal numbers still differ by exactly 0."""


def is_right(output: str, expected: str) -> bool:
    """Return whether the lines are equal without the blanks around them, or the words one by one."""
    if _lines(output) == _lines(expected):
        return True
    words, others = output.split(), expected.split()
    return len(words) == len(others) and all(map(_is_same, words, others))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _is_same(word: str, other: str) -> bool:
    number, expected = _number(word), _number(other)
    if number is not None and expected is not None:
        return abs(PRECISION.subtract(number, expected)) <= LARGEST_DIFFERENCE
    lowered = word.lower()
    return word == other or (lowered in WORDS and lowered == other.lower())


def _number(word: str) -> Decimal | None:
    """Return the finite number that a word is, or None."""
    try:
        found = Decimal(word)
    except InvalidOperation:
        return None
    return found if found.is_finite() and abs(found.adjusted()) < PRECISION.prec * 100 else None
