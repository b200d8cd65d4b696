"""Pairs of modes that are compared, and the notice about samples that lack one of them."""

from __future__ import annotations

from fim_server.evaluation.reporting.measured import Bools, Integers, Measured
from fim_server.evaluation.reporting.statistics import mcnemar, paired_difference
from fim_server.evaluation.reporting.tables.text import difference, probability

COMPARED = (("constrained", "unconstrained"), ("constrained", "checked"), ("checked", "unconstrained"))


def compared(data: Measured) -> list[tuple[str, str]]:
    """The pairs of modes that the data have."""
    return [(first, second) for first, second in COMPARED if first in data.modes and second in data.modes]


def have_pairs(data: Measured) -> bool:
    """Tell whether the constrained mode can be compared with another one."""
    return any(first == "constrained" for first, _ in compared(data))


def said_left_out(left_out: dict[str, int]) -> str:
    """A sentence about the samples that lack one of two modes."""
    missing = [f"{count:,} of {name}" for name, count in left_out.items() if count]
    if not missing:
        return "No sample lacks a mode."
    return "Left out, for want of a record of one of the modes: " + ", ".join(missing) + "."


def verdict_cells(first: Bools, second: Bools, files: Integers | None) -> tuple[str, str, str]:
    """Two modes' verdicts on the same samples: their difference, how many only one has right, and McNemar's p."""
    test = mcnemar(first, second)
    gained = difference(paired_difference(first, second, files))
    return gained, f"{test.only_first:,} : {test.only_second:,}", probability(test.p)
