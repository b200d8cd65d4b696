"""Type checks of arguments: the error names the argument, as the engine's own do."""

from __future__ import annotations

import operator
import sys
from types import UnionType
from typing import Any


def expect(name: str, value: object, kind: type | UnionType, expected: str) -> None:
    """Raise TypeError for an argument of another type; ``expected``: the right type in words."""
    if not isinstance(value, kind):
        raise TypeError(f"{name}: {expected} expected, not {type(value).__name__}")


def expect_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        expect(name, value, str, "a str")


def expect_count(name: str, value: Any) -> None:
    """Raise TypeError for an argument that is no whole number; other libraries' numbers are taken as well."""
    try:
        operator.index(value)
    except TypeError:  # not hasattr: arrays and types have `__index__` too
        raise TypeError(f"{name}: a whole number expected, not {type(value).__name__}") from None


def expect_size(name: str, value: Any) -> None:
    """Raise TypeError for an argument that is no whole number, ValueError if it is negative or beyond all memory."""
    expect_count(name, value)
    if not 0 <= operator.index(value) <= sys.maxsize:
        raise ValueError(f"{name}: {value} is out of range")


def expect_token(name: str, value: Any, size: int) -> None:
    """Raise TypeError or ValueError for an argument that is no token's id in a vocabulary of ``size`` tokens."""
    expect_count(name, value)
    if not 0 <= operator.index(value) < size:
        raise ValueError(f"token {value} is outside the vocabulary of {size} tokens")


def expect_able(name: str, value: object, method: str, expected: str) -> None:
    """Raise TypeError for an argument that lacks a method, where only that method is needed."""
    if not callable(getattr(value, method, None)):
        raise TypeError(f"{name}: {expected} expected, not {type(value).__name__}")
