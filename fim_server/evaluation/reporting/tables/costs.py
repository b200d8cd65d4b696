"""The section "Cost": engine and model, the cost against the context's size, times, samples an hour."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fim_server.evaluation.records import Record
from fim_server.evaluation.reporting.measured import Floats, Measured, ModeColumns
from fim_server.evaluation.reporting.statistics import Fit, line_fit, percentiles, power_fit
from fim_server.evaluation.reporting.tables.table import Table
from fim_server.evaluation.reporting.tables.text import number, percent

FULL_SETS = 95_390
"""Samples of the paper's two sets together."""

LATENCIES: tuple[tuple[str, Callable[[Record], float | None]], ...] = (
    ("total", lambda record: record.total_ms),
    ("opening", lambda record: record.open_ms),
    ("model", lambda record: record.model_ms),
    ("engine", lambda record: record.engine_ms),
    ("engine, waited for", lambda record: record.engine_wait_ms),
)


def cost(data: Measured) -> Table:
    """Return the table of the time spent, by mode."""
    rows = []
    for mode, columns in data.modes.items():
        records = [record for record in columns.chosen() if record.total_ms is not None]
        sums = {
            name: math.fsum(getattr(record, name) or 0.0 for record in records)
            for name in ("open_ms", "model_ms", "engine_ms", "engine_wait_ms", "total_ms")
        }
        opening, model, engine, _, total = sums.values()
        work = opening + model + engine
        per_token = percentiles(1000 * engine_per_token(columns), (0.5, 0.95, 0.99))
        rows.append(
            (
                mode,
                percent(engine_share(columns)),
                percent((opening + engine) / work) if work else "–",
                *(number(value / len(records)) if records else "–" for value in (total, model, engine, opening)),
                *(number(value) for value in per_token),
            )
        )
    header = (
        "mode",
        "engine waited for",
        "engine's work",
        "total, ms a sample",
        "model",
        "engine",
        "opening",
        "engine a token p50, µs",
        "p95",
        "p99",
    )
    note = (
        "*Engine waited for*: (opening + engine time that decoding waited for) / total. *Engine's work*: (opening + "
        "engine) / (opening + engine + model), the engine's work hidden behind the model's included. A sample's time "
        "in a batch is its share of the forward passes."
    )
    return Table("cost", "Engine and model", header, tuple(rows), 1, note, brief=True)


def engine_share(columns: ModeColumns) -> float:
    """Share of the time that went by waiting for the engine: (opening + waiting) / total. NaN without times."""
    records = [record for record in columns.chosen() if record.total_ms is not None]
    total = math.fsum(record.total_ms or 0.0 for record in records)
    waited = math.fsum((record.open_ms or 0.0) + (record.engine_wait_ms or 0.0) for record in records)
    return waited / total if total else math.nan


def engine_per_token(columns: ModeColumns) -> Floats:
    """Milliseconds of the engine for each token generated, a sample each; NaN where there is no token or time."""
    engine = columns.numbers(lambda record: record.engine_ms)
    tokens = columns.numbers(lambda record: record.tokens or None)
    result: Floats = engine / tokens
    return result


def context_sizes(columns: ModeColumns) -> Floats:
    """Characters left and right of the hole, a sample each."""
    return columns.numbers(lambda record: record.left_characters + record.right_characters)


def openings(columns: ModeColumns) -> Floats:
    """Milliseconds to open the session, a sample each."""
    return columns.numbers(lambda record: record.open_ms)


def fits(data: Measured) -> Table | None:
    """Lines and power laws through the engine's cost against the size of the context (the paper's Figure 11)."""
    rows = []
    for mode, columns in data.modes.items():
        for what, values in cost_series(mode, columns):
            line, power = line_fit(context_sizes(columns), values), power_fit(context_sizes(columns), values)
            if line is not None:
                rows.append((what, mode, f"{line.count:,}", *_line_cells(line), *_power_cells(power)))
    if not rows:
        return None
    header = ("cost", "mode", "samples", "line, at 0", "a 1,000 characters", "R²", "power law: exponent", "R²")
    note = (
        "The paper's Figure 11: top, the engine's time a token; bottom, the time to open a session; against the "
        "characters left and right of the hole. Least squares; the power law on logarithms."
    )
    return Table("fits", "Cost against context size, fitted", header, tuple(rows), 2, note)


def cost_series(mode: str, columns: ModeColumns) -> list[tuple[str, Floats]]:
    """Return Figure 11's values: microseconds a token, and milliseconds of opening where the mode opens a session."""
    series = []
    if mode in ("checked", "constrained"):
        series.append(("engine a token, µs", 1000 * engine_per_token(columns)))
    if mode == "constrained":
        series.append(("opening, ms", openings(columns)))
    return [(what, values) for what, values in series if np.isfinite(values).any()]


def _line_cells(fit: Fit) -> tuple[str, str, str]:
    slope, intercept = fit.parameters
    return number(intercept), number(1000 * slope), f"{fit.r_squared:.3f}"


def _power_cells(fit: Fit | None) -> tuple[str, str]:
    return ("–", "–") if fit is None else (f"{fit.parameters[1]:.3f}", f"{fit.r_squared:.3f}")


def latencies(data: Measured) -> Table:
    """Percentiles of times."""
    rows = []
    for mode, columns in data.modes.items():
        for name, read in LATENCIES:
            figures = percentiles(columns.numbers(read), (0.5, 0.9, 0.95, 0.99, 1.0))
            if not math.isnan(figures[0]):
                rows.append((mode, name, *(number(figure) for figure in figures)))
    header = ("mode", "time, ms", "p50", "p90", "p95", "p99", "max")
    return Table("latency", "Time a sample", header, tuple(rows), 2, "Measured values, none interpolated.")


def throughput(data: Measured) -> Table:
    """Samples an hour, and how long the paper's full sets would take at that rate."""
    rows = []
    for name, hours in hours_a_sample(data).items():
        if hours > 0:
            rows.append((name, number(1 / hours), f"{number(FULL_SETS * hours)} h"))
    header = ("mode", "samples an hour", f"{FULL_SETS:,} samples")
    note = (
        f"From the times recorded, of one worker; {FULL_SETS:,} samples are the paper's two sets. Reading the data and "
        "the samples' own tests are not in it. *All modes*: at least so many, since forward passes that modes share "
        "are counted for each of them; checked adds only its parser's time."
    )
    return Table("throughput", "Samples an hour", header, tuple(rows), 1, note, brief=True)


def hours_a_sample(data: Measured) -> dict[str, float]:
    """Mean hours that a sample took, by mode, and of all modes together, which share what opening costs."""
    milliseconds: dict[str, float] = {}
    together = 0.0
    for mode, columns in data.modes.items():
        records = [record for record in columns.chosen() if record.total_ms is not None]
        if not records:
            continue
        total, opening, engine = (
            math.fsum(getattr(record, name) or 0.0 for record in records) / len(records)
            for name in ("total_ms", "open_ms", "engine_ms")
        )
        milliseconds[mode] = total
        together += engine if mode == "checked" and "unconstrained" in data.modes else total
        together -= opening if len(milliseconds) > 1 and mode != "checked" else 0.0
    if len(milliseconds) > 1:
        milliseconds["all modes"] = together
    return {mode: value / 3_600_000 for mode, value in milliseconds.items()}
