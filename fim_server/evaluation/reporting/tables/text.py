"""Figures as text: shares, differences, numbers and other cells of a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fim_server.evaluation.reporting.statistics import Estimate

REASON_CHARACTERS = 160


def percent(share: float) -> str:
    """``95.0 %``; near 0 and 100 two decimals, and never 100 for what is not quite."""
    if math.isnan(share):
        return "–"
    value = 100 * share
    near_an_end = 0 < abs(value) < 0.1 or 99 < abs(value) < 100
    text = f"{value:.2f}" if near_an_end else f"{value:.1f}"
    if float(text) in (0.0, 100.0) and value not in (0.0, 100.0):
        text = f"{value:.4f}"
    return f"{text} %"


def points(difference: float) -> str:
    """A difference of shares, in percentage points, signed."""
    return "–" if math.isnan(difference) else f"{100 * difference:+.2f}"


def rate(estimate: Estimate) -> str:
    """A share with its interval."""
    if not estimate.count:
        return "–"
    return f"{percent(estimate.value)} ({100 * estimate.low:.1f}–{100 * estimate.high:.1f})"


def difference(estimate: Estimate) -> str:
    """A difference of shares with its interval, in percentage points."""
    if not estimate.count:
        return "–"
    return f"{points(estimate.value)} ({points(estimate.low)} to {points(estimate.high)})"


def number(value: float, digits: int = 3) -> str:
    """Some significant digits, thousands apart, no exponent."""
    if math.isnan(value):
        return "–"
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def probability(p: float) -> str:
    """A p value."""
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def of(part: int, whole: int) -> str:
    """``12 (3.4 %)``."""
    return f"{part:,} ({percent(part / whole)})" if whole else "0"


def printable(text: str) -> str:
    """A text on one line, with what cannot be printed, or would reorder the line, escaped."""
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def shortened(text: str, characters: int = REASON_CHARACTERS) -> str:
    """A printable text, cut after some characters."""
    line = printable(text)
    return line if len(line) <= characters else line[: characters - 1] + "…"
