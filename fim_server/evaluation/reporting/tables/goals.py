"""The goals that the data are held to, and whether they meet them."""

from __future__ import annotations

import math

from fim_server.evaluation.reporting.content import Check
from fim_server.evaluation.reporting.measured import Measured
from fim_server.evaluation.reporting.tables.costs import engine_share
from fim_server.evaluation.reporting.tables.pairs import compared
from fim_server.evaluation.reporting.tables.slices import compared_slices
from fim_server.evaluation.reporting.tables.text import of, percent, printable

SUCCESS_GOAL, ENGINE_GOAL = 0.999, 0.05
"""Constrained success at least, engine's share of the time below."""


def checks(data: Measured) -> list[Check]:
    """The goals, and whether the data meet them."""
    parts = compared_slices(data)
    found = []
    for name, mask in data.groups():
        if "constrained" in data.modes:
            columns = data.modes["constrained"]
            kept = columns.present & mask
            count, successes = int(kept.sum()), int(columns.success[kept].sum())
            holds = successes >= SUCCESS_GOAL * count if count else None
            claim = f"constrained success at least {percent(SUCCESS_GOAL)} ({name})"
            found.append(Check(claim, holds, of(successes, count)))
    have = {pair for pair in compared(data) if pair[0] == "constrained"}
    for other, what, below in (
        ("checked", "constrained success never below checked, on any slice", [p for p in parts if p.below]),
        ("unconstrained", "exact match not below unconstrained, on any slice", [p for p in parts if p.exact_below]),
    ):
        if ("constrained", other) in have:
            worst = f"below on {len(below)} of {len(parts)} slices" if below else f"on none of {len(parts)} slices"
            if below:
                worst += ": " + "; ".join(f"{p.cut}: {p.name}" if p.cut != p.name else p.name for p in below[:5])
                worst += "; …" if len(below) > 5 else ""
            found.append(Check(what, not below, printable(worst)))
    if ("constrained", "unconstrained") in have:
        constrained, unconstrained = data.modes["constrained"], data.modes["unconstrained"]
        both = constrained.present & unconstrained.present
        ours, theirs = int(constrained.exact[both].sum()), int(unconstrained.exact[both].sum())
        holds = ours >= theirs if both.any() else None
        found.append(Check("exact match not below unconstrained (all)", holds, f"{ours:,} to {theirs:,}"))
    if "constrained" in data.modes:
        share = engine_share(data.modes["constrained"])
        holds = None if math.isnan(share) else share < ENGINE_GOAL
        found.append(
            Check(f"engine's share of the constrained time below {percent(ENGINE_GOAL)}", holds, percent(share))
        )
    return found
