"""Arguments of a wrong type, refused where they are given: the error names the argument, as the engine's own do."""

from __future__ import annotations

from types import UnionType
from typing import SupportsIndex


def expect(name: str, value: object, kind: type | UnionType, expected: str) -> None:
    """Raises TypeError where an argument is of another type; ``expected``: what it has to be, in words."""
    if not isinstance(value, kind):
        raise TypeError(f"{name}: {expected} expected, not {type(value).__name__}")


def expect_text(name: str, value: object) -> None:
    """Raises TypeError where an argument is no str."""
    if not isinstance(value, str):
        expect(name, value, str, "a str")


def expect_count(name: str, value: object) -> None:
    """Raises TypeError where an argument is no whole number; other libraries' are taken as well."""
    if not isinstance(value, int):
        expect(name, value, SupportsIndex, "a whole number")


def expect_able(name: str, value: object, method: str, expected: str) -> None:
    """Raises TypeError where an argument lacks a method, for what is known by its methods alone."""
    if not callable(getattr(value, method, None)):
        raise TypeError(f"{name}: {expected} expected, not {type(value).__name__}")
