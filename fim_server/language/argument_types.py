"""Arguments of a wrong type, refused where they are given: the error names the argument, as the engine's own do."""

from __future__ import annotations

import operator
import sys
from types import UnionType
from typing import Any


def expect(name: str, value: object, kind: type | UnionType, expected: str) -> None:
    """Raises TypeError where an argument is of another type; ``expected``: what it has to be, in words."""
    if not isinstance(value, kind):
        raise TypeError(f"{name}: {expected} expected, not {type(value).__name__}")


def expect_text(name: str, value: object) -> None:
    """Raises TypeError where an argument is no str."""
    if not isinstance(value, str):
        expect(name, value, str, "a str")


def expect_count(name: str, value: Any) -> None:
    """Raises TypeError where an argument is no whole number; other libraries' are taken as well."""
    try:
        operator.index(value)
    except TypeError:  # arrays and types have what numbers have, so that having it says nothing
        raise TypeError(f"{name}: a whole number expected, not {type(value).__name__}") from None


def expect_size(name: str, value: Any) -> None:
    """Raises TypeError where an argument is no whole number, ValueError where it is negative or beyond all memory."""
    expect_count(name, value)
    if not 0 <= operator.index(value) <= sys.maxsize:
        raise ValueError(f"{name}: {value} is out of range")


def expect_token(name: str, value: Any, size: int) -> None:
    """The same for a token's id, in a vocabulary of ``size`` tokens."""
    expect_count(name, value)
    if not 0 <= operator.index(value) < size:
        raise ValueError(f"token {value} is outside the vocabulary of {size} tokens")


def expect_able(name: str, value: object, method: str, expected: str) -> None:
    """Raises TypeError where an argument lacks a method, for what is known by its methods alone."""
    if not callable(getattr(value, method, None)):
        raise TypeError(f"{name}: {expected} expected, not {type(value).__name__}")
