"""Types of arguments that several benchmarks share."""

from __future__ import annotations

import argparse


def positive_count(text: str) -> int:
    """An argument that is a number above 0."""
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return int(text)


def positive_counts(text: str) -> tuple[int, ...]:
    """Numbers above 0 with commas between them."""
    return tuple(positive_count(part) for part in text.split(","))
