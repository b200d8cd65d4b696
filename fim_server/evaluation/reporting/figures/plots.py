"""The plots of a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import matplotlib as mpl
import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fim_server.evaluation.records import Record
from fim_server.evaluation.reporting.figures.plot import Plot, finished
from fim_server.evaluation.reporting.figures.style import (
    FAINT,
    INK,
    RC,
    SERIES,
    in_percent,
    legend_above,
    logarithmic,
    look,
    new_figure,
)
from fim_server.evaluation.reporting.measured import HOLE_EDGES, Bools, Floats, Measured, ModeColumns
from fim_server.evaluation.reporting.statistics import line_fit, power_fit, proportion
from fim_server.evaluation.reporting.tables.costs import context_sizes, cost_series
from fim_server.evaluation.reporting.tables.pairs import compared
from fim_server.evaluation.reporting.tables.text import percent

MOST_POINTS = 1_200
"""Drawn of a series in a scatter plot; more cannot be told apart. Fits are through all."""

MOST_STEPS = 400


def plots(data: Measured, makers: Sequence[Callable[[Measured], Plot | None]] | None = None) -> list[Plot]:
    """All plots, or some, that the data have something for."""
    if not data.count:
        return []
    makers = (success, validity, latency, context_cost, win_and_loss) if makers is None else makers
    with mpl.rc_context(cast(Any, RC)):
        return [plot for plot in (make(data) for make in makers) if plot is not None]


def success(data: Measured) -> Plot | None:
    """Success by set and mode, with Wilson's intervals."""
    groups = data.groups()
    modes = list(data.modes)
    figure = new_figure(1.2 + 0.22 * len(groups) * (len(modes) + 1))
    axes = figure.add_subplot()
    lowest = 1.0
    for row, (_, mask) in enumerate(groups):
        for place, mode in enumerate(modes):
            columns = data.modes[mode]
            kept = columns.present & mask
            estimate = proportion(columns.success[kept])
            if not estimate.count:
                continue
            lowest = min(lowest, estimate.low)
            y = row * (len(modes) + 1) + place
            colour, marker, _ = look(mode, modes)
            label = mode if row == 0 else None
            axes.plot([estimate.low, estimate.high], [y, y], color=colour, linewidth=2.2, solid_capstyle="butt")
            axes.plot(
                [estimate.value],
                [y],
                color=colour,
                marker=marker,
                markersize=7,
                linestyle="none",
                label=label,
                clip_on=False,
            )
            # Past the right end of the axis, so that no figure lies on a point.
            axes.annotate(
                percent(estimate.value), (1.025, y), xycoords=("axes fraction", "data"), va="center", fontsize=9
            )
    middle = (len(modes) - 1) / 2
    axes.set_yticks([row * (len(modes) + 1) + middle for row in range(len(groups))], [name for name, _ in groups])
    axes.set_ylim(len(groups) * (len(modes) + 1) - 1.2, -0.8)
    start = max(0.0, lowest - 0.1 * (1 - lowest) - 0.002)
    axes.set_xlim(start, 1.0)
    axes.grid(visible=False, axis="y")
    in_percent(axes.xaxis)
    axes.set_xlabel("programs that parse")
    legend_above(axes)
    about = (
        "Share of samples for which a text was offered and the whole program parses, by set and mode. Bars are "
        "Wilson's 95 % intervals." + (" The axis does not begin at 0." if start else "")
    )
    return finished("success", "Success by mode", figure, about)


def validity(data: Measured) -> Plot | None:
    """Plot the share that would have been valid with a smaller budget, from the complete points of the records."""
    budgets = [info.budget for info in data.infos]
    longest = max([*budgets, *(r.tokens or 0 for columns in data.modes.values() for r in columns.chosen())], default=0)
    if not longest or not any(r.complete_at for columns in data.modes.values() for r in columns.chosen()):
        return None
    figure = new_figure(3.6)
    axes = figure.add_subplot()
    for mode, columns in data.modes.items():
        records = columns.chosen()
        if not records:
            continue
        # Where budgets differ, what a run would have done beyond its own is not known.
        own = longest if all(r.stop_reason == "end_token" for r in records) else max(r.tokens or 0 for r in records)
        colour, _, dash = look(mode, list(data.modes))
        shares = valid_within(mode, records, own)
        axes.plot(np.arange(own + 1), shares, color=colour, linestyle=dash, linewidth=1.8, label=mode)
    axes.set_xlim(0, longest * 1.015)
    axes.set_ylim(0, 1.02)
    in_percent(axes.yaxis)
    axes.set_xlabel("budget, tokens")
    axes.set_ylabel("valid within it")
    legend_above(axes)
    about = (
        "Share of samples that would have a valid text had the budget ended after so many tokens, by the engine's "
        "verdict on the tokens generated. Unconstrained: the text as it then stands. Checked and constrained: the text "
        "as it stands or any complete point before. Landed texts are in it: they are made for the run's own budget, so "
        "constrained rises at its end, and would at any other."
    )
    return finished("validity", "Validity against budget", figure, about)


def valid_within(mode: str, records: Sequence[Record], longest: int) -> Floats:
    """Return the share of records with a valid text within every budget from 0 to ``longest`` tokens.

    Unconstrained text is cut at the budget's end. It is valid if left + text + right is complete there, or if the
    model has ended it by then and it succeeds. The other modes may return to any complete point but the empty one. They
    are valid from the first such point on, or from the model's own end of a text that succeeds.
    """
    changes = np.zeros(longest + 2)

    def count(first: int, last: int) -> None:
        if 1 <= first <= last and first <= longest:
            changes[first] += 1
            changes[min(last, longest) + 1] -= 1

    for record in records:
        runs = [(max(first, 1), last) for first, last in record.complete_at or () if last >= 1]
        ended = max(record.tokens or 0, 1) if record.parses and record.stop_reason == "end_token" else longest + 1
        if mode.endswith("unconstrained"):  # of one run, or of several
            for first, last in runs:
                count(first, min(last, ended - 1))
            count(ended, longest)
        else:
            count(min([ended, *(first for first, _ in runs)]), longest)
    shares: Floats = np.cumsum(changes)[: longest + 1] / max(len(records), 1)
    return shares


def latency(data: Measured) -> Plot | None:
    """Cumulative distribution of the time a sample took."""
    series = {mode: columns.numbers(lambda record: record.total_ms) for mode, columns in data.modes.items()}
    series = {mode: np.sort(values[np.isfinite(values) & (values > 0)]) for mode, values in series.items()}
    series = {mode: values for mode, values in series.items() if values.size}
    if not series:
        return None
    figure = new_figure(3.4)
    axes = figure.add_subplot()
    for mode, values in series.items():
        colour, _, dash = look(mode, list(data.modes))
        steps = np.unique(np.linspace(0, values.size - 1, min(values.size, MOST_STEPS)).astype(int))
        shares = (steps + 1) / values.size
        xs = np.concatenate([values[:1], values[steps]])
        axes.step(
            xs, np.concatenate([[0], shares]), where="post", color=colour, linestyle=dash, linewidth=1.8, label=mode
        )
    axes.set_xscale("log")
    logarithmic(axes.xaxis, *axes.get_xlim())
    axes.set_ylim(0, 1.02)
    in_percent(axes.yaxis)
    axes.set_xlabel("time a sample, ms")
    axes.set_ylabel("samples within it")
    legend_above(axes)
    return finished(
        "latency", "Latency", figure, "Share of samples that took at most so long, model and engine together, by mode."
    )


def context_cost(data: Measured) -> Plot | None:
    """The paper's Figure 11: the engine's cost against the size of the context; top a token, bottom opening."""
    panels: dict[str, list[tuple[str, ModeColumns, Floats]]] = {}
    for mode, columns in data.modes.items():
        for what, values in cost_series(mode, columns):
            if not np.any(values[np.isfinite(values)] > 0):
                continue
            panels.setdefault(what, []).append((mode, columns, values))
    if not panels:
        return None
    figure = new_figure(3.4 * len(panels))
    order = list(data.modes)
    for place, (what, series) in enumerate(sorted(panels.items()), start=1):
        axes = figure.add_subplot(len(panels), 1, place)
        for mode, columns, values in series:
            sizes = context_sizes(columns)
            kept = np.flatnonzero(np.isfinite(values) & np.isfinite(sizes) & (values > 0) & (sizes > 0))
            if not kept.size:
                continue
            colour, marker, dash = look(mode, order)
            drawn = kept[np.unique(np.linspace(0, kept.size - 1, min(kept.size, MOST_POINTS)).astype(int))]
            axes.plot(
                sizes[drawn],
                values[drawn],
                marker,
                color=colour,
                markersize=3,
                alpha=0.35,
                markeredgewidth=0,
                label=mode,
            )
            xs = np.geomspace(sizes[kept].min(), sizes[kept].max(), 60)
            line, power = line_fit(sizes, values), power_fit(sizes, values)
            if line is not None:
                label = f"{mode}, line: R² {line.r_squared:.2f}"
                above = line.at(xs)
                axes.plot(xs[above > 0], above[above > 0], color=INK, linestyle=dash, linewidth=1.3, label=label)
            if power is not None:
                label = f"{mode}, power {power.parameters[1]:.2f}: R² {power.r_squared:.2f}"
                axes.plot(xs, power.at(xs), color=colour, linestyle=dash, linewidth=1.8, label=label)
        axes.set_xscale("log")
        axes.set_yscale("log")
        logarithmic(axes.xaxis, *axes.get_xlim())
        logarithmic(axes.yaxis, *axes.get_ylim())
        axes.set_xlabel("context, characters left and right of the hole")
        axes.set_ylabel(what)
        legend = axes.legend(
            loc="upper left", bbox_to_anchor=(0, -0.2), ncols=len(series), fontsize=8.5, borderaxespad=0
        )
        for handle in legend.legend_handles:
            if handle is not None:
                handle.set_alpha(1)
    about = (
        "The engine's time for each token generated, and the time to open a session, against the size of the context "
        "(the paper's Figure 11). Both axes are logarithmic; lines are least-squares fits of a line and of a power "
        f"law, through all samples, of which at most {MOST_POINTS:,} of each series are drawn."
    )
    return finished("context-cost", "Cost against context size", figure, about)


def win_and_loss(data: Measured) -> Plot | None:
    """Plot wins and losses of constrained against the other modes, by the length of the hole."""
    pairs = [pair for pair in compared(data) if pair[0] == "constrained"]
    buckets = data.buckets(lambda record: record.hole_characters, HOLE_EDGES)
    if not pairs or not buckets:
        return None
    figure = new_figure(1.5 + 0.42 * len(buckets))
    figure.set_layout_engine("constrained", wspace=0.1)
    panels: list[Any] = np.atleast_1d(figure.subplots(1, len(pairs), sharey=True)).tolist()
    most = 0.0
    for axes, (first, second) in zip(panels, pairs, strict=True):
        one, two = data.modes[first], data.modes[second]
        for row, (_, mask) in enumerate(buckets):
            kept, _ = data.pairs((first, second), mask)
            count = int(kept.sum())
            for offset, ours, theirs, solid in (
                (-0.19, one.success, two.success, True),
                (0.19, one.exact, two.exact, False),
            ):
                wins, losses = _share(ours & ~theirs & kept, count), _share(theirs & ~ours & kept, count)
                most = max(most, wins, losses)
                for share, colour in ((wins, SERIES[2]), (-losses, SERIES[0])):
                    if not share:
                        continue
                    fill = colour if solid else "none"
                    axes.barh(row + offset, share, height=0.34, color=fill, edgecolor=colour, linewidth=1.1)
        axes.axvline(0, color=FAINT, linewidth=0.9)
        axes.set_title(f"{first} beside {second}", loc="left")
        axes.grid(visible=False, axis="y")
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * abs(value):.3g} %"))
        axes.set_xlabel("← loses\u00a0\u00a0\u00a0\u00a0\u00a0\u00a0wins →")
    most = max(most * 1.15, 0.005)
    for axes in panels:
        axes.set_xlim(-most, most)
        axes.set_ylim(len(buckets) - 0.4, -0.6)
    panels[0].set_yticks(range(len(buckets)), [name for name, _ in buckets])
    panels[0].set_ylabel("hole, characters")
    about = (
        "Share of samples on which only constrained succeeds (right) or only the other mode (left), by the length of "
        "the hole. Filled: the program parses; outlined: the text is an exact match."
    )
    return finished("win-and-loss", "Win and loss by hole length", figure, about)


def _share(mask: Bools, count: int) -> float:
    return int(mask.sum()) / count if count else 0.0
