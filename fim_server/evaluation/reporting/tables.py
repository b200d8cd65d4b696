"""The tables of a report, as text in cells: Markdown, HTML and JSON are made from the same ones.

Tables I and II of the paper (Melcer et al., arXiv 2402.17988, section VII) are raw counts of how two modes cross on one
set. Their contents are known from the queries that the authors published with their code: how many programs parse with
constrained, with unconstrained and with checked unconstrained generation, and for unconstrained and for checked, how
many parse with that mode and not with constrained, and the other way round; then the constrained failures by whether a
left context had been identified as complete, and how many of them parse unconstrained. Their layout on the page is not
in what we could read, so it is ours: :func:`table_one` crosses constrained with unconstrained, :func:`table_two`
constrained with checked, each for every set, with all four cells, and :func:`constrained_failures` has the rest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fim_server.evaluation.records import WON, Record
from fim_server.evaluation.reporting.measured import (
    CONTEXT_EDGES,
    HOLE_EDGES,
    LINE_EDGES,
    Bools,
    Floats,
    Measured,
    ModeColumns,
    is_success,
)
from fim_server.evaluation.reporting.statistics import (
    CONFIDENCE,
    RESAMPLES,
    Estimate,
    Fit,
    line_fit,
    mcnemar,
    mean,
    paired_difference,
    pass_at_1,
    percentiles,
    power_fit,
    wilson,
)

FULL_SETS = 95_390
"""Samples of the paper's two sets together."""

SUCCESS_GOAL, ENGINE_GOAL = 0.999, 0.05
"""Of issue "Evaluation": constrained success at least, engine's share of the time below."""

PAPER_SUCCESS = {"stack-boundary": 0.950, "stack-randspan": 0.965}
"""What the paper reports for its constrained mode, with its own model."""

COMPARED = (("constrained", "unconstrained"), ("constrained", "checked"), ("checked", "unconstrained"))

MOST_REASONS = 25
REASON_CHARACTERS = 160


@dataclass(frozen=True)
class Table:
    """A table whose cells are text.

    Attributes:
        key: A name for links and programs.
        words: Columns that hold words, from the left; the others hold numbers.
        note: How to read it, in a sentence or two.
        brief: Whether it belongs into the summary.
        long: Whether it is folded away on the page until it is asked for.
    """

    key: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1
    note: str = ""
    brief: bool = False
    long: bool = False


@dataclass(frozen=True)
class Check:
    """Something that should hold, and whether it does; ``holds`` is None where nothing can be said."""

    claim: str
    holds: bool | None
    found: str


# --- text ---------------------------------------------------------------------------------------------------------


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


# --- success, matches, differences --------------------------------------------------------------------------------


def overview(data: Measured) -> Table:
    """Success, matches and similarity by set and mode, each mode on all its records."""
    rows: list[tuple[str, ...]] = []
    for name, mask in data.groups():
        for mode, columns in data.modes.items():
            kept = columns.present & mask
            files = data.clusters_of(kept)
            count = int(kept.sum())
            paper = PAPER_SUCCESS.get(name) if mode == "constrained" else None
            rows.append(
                (
                    name,
                    mode,
                    f"{count:,}",
                    rate(wilson(int(columns.success[kept].sum()), count)),
                    "" if paper is None else percent(paper),
                    rate(mean(columns.exact[kept], files)),
                    rate(mean(columns.edit[kept], files)),
                )
            )
    header: tuple[str, ...] = ("set", "mode", "samples", "success", "paper", "exact match", "edit similarity")
    known = any(row[4] for row in rows)
    if not known:
        header, rows = header[:4] + header[5:], [row[:4] + row[5:] for row in rows]
    note = (
        f"Success: a text was offered and the whole program parses (`ast.parse`). In brackets {100 * CONFIDENCE:.0f} % "
        "intervals: Wilson's for success, which takes samples as independent; bootstrap for the others."
    )
    if known:
        note += " *Paper*: what arXiv 2402.17988 reports for its constrained mode, with its own model and samples."
    return Table("success", "Success by set and mode", header, tuple(rows), 2, note, brief=True)


def differences(data: Measured) -> Table:
    """Paired differences between modes, with the test of the verdicts."""
    rows = []
    left_out: dict[str, int] = {}
    for name, mask in data.groups():
        for first, second in compared(data):
            kept, missing = data.pairs((first, second), mask)
            if name == data.groups()[0][0]:
                left_out[f"{first} beside {second}"] = missing
            one, two = data.modes[first], data.modes[second]
            files = data.clusters_of(kept)
            test = mcnemar(one.success[kept], two.success[kept])
            exact = mcnemar(one.exact[kept], two.exact[kept])
            rows.append(
                (
                    name,
                    f"{first} − {second}",
                    f"{int(kept.sum()):,}",
                    difference(paired_difference(one.success[kept], two.success[kept], files)),
                    f"{test.only_first:,} : {test.only_second:,}",
                    probability(test.p),
                    difference(paired_difference(one.exact[kept], two.exact[kept], files)),
                    probability(exact.p),
                    difference(paired_difference(one.edit[kept], two.edit[kept], files)),
                )
            )
    header = ("set", "modes", "pairs", "success", "only one", "p", "exact match", "p", "edit similarity")
    note = (
        f"Differences in percentage points on the samples that have both modes, with {100 * CONFIDENCE:.0f} % "
        f"percentile intervals of {RESAMPLES:,} paired bootstrap resamples. {data.cluster_reason} *Only one*: samples "
        "on which only the first or only the second succeeds. *p*: McNemar's exact test. " + said_left_out(left_out)
    )
    return Table("differences", "Differences between modes", header, tuple(rows), 2, note, brief=True)


def said_left_out(left_out: dict[str, int]) -> str:
    """A sentence about the samples that lack one of two modes."""
    missing = [f"{count:,} of {name}" for name, count in left_out.items() if count]
    if not missing:
        return "No sample lacks a mode."
    return "Left out, for want of a record of one of the modes: " + ", ".join(missing) + "."


def compared(data: Measured) -> list[tuple[str, str]]:
    """The pairs of modes that the data have."""
    return [(first, second) for first, second in COMPARED if first in data.modes and second in data.modes]


def table_one(data: Measured) -> Table | None:
    """How constrained and unconstrained cross (see the module's text). None if a mode is missing."""
    return _cross(data, "unconstrained", "table-1", "Table I: constrained and unconstrained")


def table_two(data: Measured) -> Table | None:
    """How constrained and checked unconstrained cross. None if a mode is missing."""
    return _cross(data, "checked", "table-2", "Table II: constrained and checked unconstrained")


def _cross(data: Measured, other: str, key: str, title: str) -> Table | None:
    if "constrained" not in data.modes or other not in data.modes:
        return None
    rows = []
    missing = 0
    for name, mask in data.groups():
        kept, lacking = data.pairs(("constrained", other), mask)
        missing = max(missing, lacking)
        ours, theirs = data.modes["constrained"].success[kept], data.modes[other].success[kept]
        count = int(kept.sum())
        cells = (ours & theirs, ours & ~theirs, ~ours & theirs, ~ours & ~theirs, ours, theirs)
        rows.append((name, f"{count:,}", *(of(int(cell.sum()), count) for cell in cells)))
    header = (
        "set",
        "samples",
        "both parse",
        "only constrained",
        f"only {other}",
        "neither",
        "constrained",
        other,
    )
    note = (
        "The paper's cross table: programs that parse with both modes, with one of them, with neither, and in all with "
        "each. " + said_left_out({"samples": missing})
    )
    return Table(key, title, header, tuple(rows), 1, note, brief=True)


def table_exact(data: Measured) -> Table | None:
    """How exact matches cross with the mode: what the constraint wins and loses of what was right."""
    pairs = [pair for pair in compared(data) if pair[0] == "constrained"]
    if not pairs:
        return None
    rows = []
    for name, mask in data.groups():
        for first, second in pairs:
            kept, _ = data.pairs((first, second), mask)
            one, two = data.modes[first], data.modes[second]
            count = int(kept.sum())
            both = kept & one.success & two.success
            cells = (
                one.exact & two.exact & kept,
                one.exact & ~two.exact & kept,
                ~one.exact & two.exact & kept,
                ~one.exact & ~two.exact & kept,
            )
            agree = both & _same_texts(one, two)
            rows.append(
                (
                    name,
                    f"{first}, {second}",
                    f"{count:,}",
                    *(of(int(cell.sum()), count) for cell in cells),
                    of(int(agree.sum()), int(both.sum())),
                )
            )
    header = ("set", "modes", "samples", "both exact", "only first", "only second", "neither", "same text")
    note = "*Same text*: of the samples on which both parse, those with the same text to the character."
    return Table("exact-match", "Exact match, crossed", header, tuple(rows), 2, note)


def _same_texts(one: ModeColumns, two: ModeColumns) -> Bools:
    pairs = zip(one.records, two.records, strict=True)
    return np.array([a is not None and b is not None and a.text == b.text for a, b in pairs], dtype=bool)


# --- slices -------------------------------------------------------------------------------------------------------


def slices(data: Measured) -> dict[str, list[tuple[str, Bools]]]:
    """Every way to cut the samples, each with its parts."""
    parts = {
        "set": [(name, data.in_set(name)) for name in data.sets],
        "kind": [(name, data.of_kind(name)) for name in dict.fromkeys(data.kinds)],
        "hole, characters": data.buckets(lambda record: record.hole_characters, HOLE_EDGES),
        "hole, lines": data.buckets(lambda record: record.hole_lines, LINE_EDGES),
        "left context, characters": data.buckets(lambda record: record.left_characters, CONTEXT_EDGES),
        "right context, characters": data.buckets(lambda record: record.right_characters, CONTEXT_EDGES),
    }
    if len(data.sets) > 1:
        parts["set and hole, characters"] = [
            (f"{name}, {bucket}", mask & in_set)
            for name, in_set in parts["set"]
            for bucket, mask in parts["hole, characters"]
            if (mask & in_set).any()
        ]
    return parts


def by_slice(data: Measured) -> Iterator[Table]:
    """A table for each way to cut the samples, but by set, which the first table has."""
    for cut, parts in slices(data).items():
        if cut == "set" or (cut == "kind" and len(parts) == len(data.sets)):
            continue
        rows = []
        for name, mask in parts:
            counts = [int((columns.present & mask).sum()) for columns in data.modes.values()]
            cells = []
            for (_, columns), count in zip(data.modes.items(), counts, strict=True):
                kept = columns.present & mask
                cells.append(rate(wilson(int(columns.success[kept].sum()), count)))
            for columns, count in zip(data.modes.values(), counts, strict=True):
                kept = columns.present & mask
                cells.append(percent(float(columns.exact[kept].mean())) if count else "–")
            rows.append((name, f"{max(counts, default=0):,}", *cells))
        header = (cut, "samples", *data.modes, *(f"exact, {mode}" for mode in data.modes))
        key = "by-" + cut.replace(",", "").replace(" ", "-")
        long = cut == "set and hole, characters"
        note = "Success with Wilson's interval, then exact match."
        yield Table(key, f"By {cut}", header, tuple(rows), 1, note, brief=cut == "kind", long=long)


@dataclass(frozen=True)
class Slice:
    """One part of the samples, with what each mode made of the pairs in it: counts."""

    cut: str
    name: str
    pairs: int
    constrained: int
    checked: int
    exact_pairs: int
    exact_constrained: int
    exact_unconstrained: int

    @property
    def below(self) -> bool:
        """Whether constrained succeeds less often than checked."""
        return self.constrained < self.checked

    @property
    def exact_below(self) -> bool:
        """Whether constrained matches less often than unconstrained."""
        return self.exact_constrained < self.exact_unconstrained


def compared_slices(data: Measured) -> list[Slice]:
    """Every slice, the whole first, of data that have all three modes (those that are missing count as nothing)."""
    modes = data.modes
    found = []
    for cut, parts in {"all": [("all", data.everything())], **slices(data)}.items():
        for name, mask in parts:
            counts = [0] * 6
            if "constrained" in modes and "checked" in modes:
                kept, _ = data.pairs(("constrained", "checked"), mask)
                counts[:3] = [int(kept.sum()), *(int(modes[m].success[kept].sum()) for m in ("constrained", "checked"))]
            if "constrained" in modes and "unconstrained" in modes:
                kept, _ = data.pairs(("constrained", "unconstrained"), mask)
                counts[3:] = [
                    int(kept.sum()),
                    *(int(modes[m].exact[kept].sum()) for m in ("constrained", "unconstrained")),
                ]
            found.append(Slice(cut, name, *counts))
    return found


def never_below(data: Measured) -> tuple[Table, Table]:
    """The slices on which constrained is below another mode, and all slices."""
    header = ("cut", "slice", "pairs", "constrained", "checked", "exact, constrained", "exact, unconstrained", "below")

    def row(part: Slice) -> tuple[str, ...]:
        below = [name for name, is_so in (("success", part.below), ("exact match", part.exact_below)) if is_so]
        return (
            part.cut,
            part.name,
            f"{max(part.pairs, part.exact_pairs):,}",
            of(part.constrained, part.pairs),
            of(part.checked, part.pairs),
            of(part.exact_constrained, part.exact_pairs),
            of(part.exact_unconstrained, part.exact_pairs),
            ", ".join(below),
        )

    parts = compared_slices(data)
    bad = [part for part in parts if part.below or part.exact_below]
    note = (
        f"{len(parts):,} slices were looked at; here are those on which constrained succeeds less often than checked, "
        "or matches less often than unconstrained, on the same samples. Small slices differ by chance."
    )
    few = Table("below", "Slices where constrained is below", header, tuple(map(row, bad)), 2, note, brief=True)
    many = Table("slices", "Every slice that was looked at", header, tuple(map(row, parts)), 2, "", long=True)
    return few, many


def checks(data: Measured) -> list[Check]:
    """The goals of issue "Evaluation", and whether the data meet them."""
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


# --- how texts ended ----------------------------------------------------------------------------------------------


def counted(
    data: Measured, key: str, title: str, what: str, read: Callable[[Record], str], note: str = "", brief: bool = False
) -> Table:
    """How often each value of a field occurs, by mode."""
    counts = {mode: Counter(map(read, columns.chosen())) for mode, columns in data.modes.items()}
    totals = {mode: sum(counter.values()) for mode, counter in counts.items()}
    everything: Counter[str] = sum(counts.values(), Counter())
    rows = tuple(
        (value, *(of(counts[mode][value], totals[mode]) if counts[mode][value] else "0" for mode in data.modes))
        for value, _ in sorted(everything.items(), key=lambda item: (-item[1], item[0]))
    )
    return Table(key, title, (what, *data.modes), rows, 1, note, brief=brief)


def stop_reasons(data: Measured) -> Table:
    """Why texts ended."""
    return counted(data, "stop-reasons", "Why generation stopped", "stop reason", lambda r: r.stop_reason or _none(r))


def what_won(data: Measured) -> Table:
    """What the offered texts are: how often the model's own end, a point before the budget's end, a landed text won."""
    table = counted(
        data,
        "won",
        "What was offered",
        "offered text",
        lambda record: record.won or _none(record),
        "*end_token*: the model ended the text; *point*: the best complete point before the budget's end; *landed*: "
        "the text that the budget's end forced; *prefix*: the best prefix that parses; *budget*: cut off where the "
        "budget ended.",
        brief=True,
    )
    known = {name: place for place, name in enumerate(WON)}
    return replace(table, rows=tuple(sorted(table.rows, key=lambda row: known.get(row[0], len(known)))))


def _none(record: Record) -> str:
    return "not measured" if record.error is not None else "no text" if record.text is None else "not said"


def won_quality(data: Measured) -> Table:
    """Success and matches by what was offered."""
    rows = []
    for mode, columns in data.modes.items():
        records = columns.chosen()
        for value in sorted({record.won or _none(record) for record in records}):
            some = [record for record in records if (record.won or _none(record)) == value]
            similar = [record.edit_similarity or 0.0 for record in some]
            rows.append(
                (
                    mode,
                    value,
                    f"{len(some):,}",
                    rate(wilson(sum(map(is_success, some)), len(some))),
                    percent(sum(bool(record.exact_match) for record in some) / len(some)),
                    percent(sum(similar) / len(some)),
                )
            )
    header = ("mode", "offered text", "samples", "success", "exact match", "edit similarity")
    return Table("won-quality", "How good each kind of offered text is", header, tuple(rows), 2)


def landing(data: Measured) -> Table | None:
    """Steps at which the budget's end ruled tokens out."""
    columns = data.modes.get("constrained")
    if columns is None:
        return None
    rows = []
    for name, mask in data.groups():
        records = [record for record in columns.chosen(mask) if record.landing is not None]
        steps = [float(record.landing or 0) for record in records if record.landing]
        won = Counter(record.won for record in records if record.landing)
        figures = percentiles(steps, (0.5, 0.9, 1.0))
        rows.append(
            (
                name,
                of(len(steps), len(records)),
                *(number(figure) for figure in figures),
                of(won["landed"], len(steps)),
                of(won["point"], len(steps)),
                of(won["end_token"], len(steps)),
            )
        )
    header = ("set", "samples landed", "steps p50", "p90", "max", "landed won", "point won", "ended by the model")
    note = (
        "Of the constrained samples at which the budget's end ruled out at least one token, and what was offered then."
    )
    return Table("landing", "Landing", header, tuple(rows), 1, note, brief=True)


def guarantees(data: Measured) -> Table:
    """What the sessions guaranteed."""
    return counted(data, "guarantees", "Guarantees", "guarantee", lambda record: record.guarantee or _none(record))


def agreement(data: Measured) -> Table:
    """The engine's verdict beside ``ast.parse``'s, on the texts offered."""

    def read(record: Record) -> str:
        if record.text is None:
            return _none(record)
        ours = {None: "did not say", True: "complete", False: "not complete"}[record.complete]
        return f"engine: {ours}; ast.parse: {'parses' if record.parses else 'does not parse'}"

    note = "`ast.parse` refuses more than a grammar can say, and a program of an older version is judged by the newest."
    return counted(data, "agreement", "Engine and ast.parse", "verdicts", read, note)


def refusals(data: Measured) -> Table:
    """Refused and forced tokens, and repeated suffixes."""
    rows = []
    for mode, columns in data.modes.items():
        records = [record for record in columns.chosen() if record.error is None]
        tokens = sum(record.tokens or 0 for record in records)
        refused = sum(record.refused or 0 for record in records)
        forced = sum(record.forced or 0 for record in records)
        some = sum(bool(record.refused) for record in records)
        kept = sum(record.text_tokens or 0 for record in records)
        rows.append(
            (
                mode,
                f"{tokens:,}",
                percent(kept / tokens) if tokens else "–",
                percent(refused / tokens) if tokens else "–",
                of(some, len(records)),
                percent(forced / tokens) if tokens else "–",
                *(number(value) for value in percentiles([float(r.tokens or 0) for r in records], (0.5, 0.95))),
            )
        )
    header = ("mode", "tokens", "offered", "refused", "samples with a refusal", "forced", "tokens p50", "p95")
    note = (
        "Shares of all generated tokens. *Offered*: those in the text. *Refused*: steps whose first choice the grammar "
        "refused. *Forced*: tokens nobody asked the model for."
    )
    return Table("tokens", "Tokens, refusals, forced tokens", header, tuple(rows), 1, note)


def suffixes(data: Measured) -> Table:
    """How often a text's end repeats what follows it, beside how often the samples' own middles do."""
    rows = []
    sides: list[tuple[str, list[int]]] = [("reference", data.about(reference_overlap))]
    for mode, columns in data.modes.items():
        offered = [record for record in columns.chosen() if record.text is not None]
        sides.append((mode, [record.suffix_overlap or 0 for record in offered]))
    for name, overlaps in sides:
        count = len(overlaps)
        cells = (of(sum(length >= least for length in overlaps), count) for least in (1, 4, 16))
        rows.append((name, f"{count:,}", *cells, number(sum(overlaps) / count) if count else "–"))
    header = ("text", "texts", "any overlap", "4 characters or more", "16 or more", "mean, characters")
    note = (
        "The longest end of the stripped text that the stripped right context begins with. *Reference*: the samples' "
        "own middles, which end so by chance."
    )
    return Table("suffix-overlap", "Repeated suffix", header, tuple(rows), 1, note)


def reference_overlap(record: Record) -> int:
    """``suffix_overlap`` of the sample's own middle, as far as the record has its right context. Characters."""
    text, right = record.reference.strip(), record.right_head.strip()
    if not text or not right:
        return 0
    start = text.find(right[0], max(0, len(text) - len(right)))
    while start >= 0:
        if right.startswith(text[start:]):
            return len(text) - start
        start = text.find(right[0], start + 1)
    return 0


# --- tests --------------------------------------------------------------------------------------------------------


def has_test(data: Measured) -> Bools:
    """The samples with a test of their own: those of which any mode's text was tested."""
    found = data.everything() & False
    for columns in data.modes.values():
        tested = [
            record is not None and (record.passed is not None or bool(record.failure)) for record in columns.records
        ]
        found |= np.array(tested, dtype=bool)
    return found


def passes(data: Measured) -> list[Table]:
    """pass@1 by kind, differences, and why tests failed. A sample without a text has not passed."""
    tested = has_test(data)
    if not tested.any():
        return []
    rows = []
    kinds = list(dict.fromkeys(kind for kind, is_tested in zip(data.kinds, tested, strict=True) if is_tested))
    groups = [(kind, tested & data.of_kind(kind)) for kind in kinds]
    for name, mask in groups if len(groups) == 1 else [("all", tested), *groups]:
        for mode, columns in data.modes.items():
            kept = columns.present & mask
            passed = _passed(columns)
            estimate = pass_at_1(passed[kept])
            rows.append((name, mode, f"{int(kept.sum()):,}", rate(estimate), *_beside(data, mode, mask)))
    header = ("kind", "mode", "samples", "pass@1", "− unconstrained", "only one", "p")
    note = (
        "One text a sample. Wilson's intervals; then the difference to unconstrained on the same samples, in "
        "percentage points, the samples that pass with only one of both, and McNemar's exact test."
    )
    first = Table("pass-at-1", "pass@1", header, tuple(rows), 2, note, brief=True)

    def why(record: Record) -> str:
        return "passed" if record.passed else record.failure or _none(record)

    limited = _limited(data, tested)
    return [first, counted(limited, "test-failures", "Why tests failed", "verdict of the test", why)]


def _passed(columns: ModeColumns) -> Bools:
    return np.array([record is not None and bool(record.passed) for record in columns.records], dtype=bool)


def _beside(data: Measured, mode: str, mask: Bools) -> tuple[str, str, str]:
    if mode == "unconstrained" or "unconstrained" not in data.modes:
        return "", "", ""
    kept, _ = data.pairs((mode, "unconstrained"), mask)
    one, two = (_passed(data.modes[name])[kept] for name in (mode, "unconstrained"))
    test = mcnemar(one, two)
    found = difference(paired_difference(one, two, data.clusters_of(kept)))
    return found, f"{test.only_first:,} : {test.only_second:,}", probability(test.p)


def _limited(data: Measured, mask: Bools) -> Measured:
    """The same data with the records of some samples alone."""
    modes = {
        mode: ModeColumns(**{**vars(columns), "present": columns.present & mask})
        for mode, columns in data.modes.items()
    }
    return Measured(**{**vars(data), "modes": modes})


# --- cost ---------------------------------------------------------------------------------------------------------


def engine_share(columns: ModeColumns) -> float:
    """Share of the time that went by waiting for the engine: (opening + waiting) / total. NaN without times."""
    records = [record for record in columns.chosen() if record.total_ms is not None]
    total = math.fsum(record.total_ms or 0.0 for record in records)
    waited = math.fsum((record.open_ms or 0.0) + (record.engine_wait_ms or 0.0) for record in records)
    return waited / total if total else math.nan


def cost(data: Measured) -> Table:
    """Where the time went, by mode."""
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
    """What Figure 11 plots of a mode: microseconds a token, and milliseconds of opening where the mode needs it."""
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


LATENCIES: tuple[tuple[str, Callable[[Record], float | None]], ...] = (
    ("total", lambda record: record.total_ms),
    ("opening", lambda record: record.open_ms),
    ("model", lambda record: record.model_ms),
    ("engine", lambda record: record.engine_ms),
    ("engine, waited for", lambda record: record.engine_wait_ms),
)


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


# --- failures -----------------------------------------------------------------------------------------------------


def failure_reason(record: Record) -> str:
    """Why a record is no success, in words that are the same for failures of one kind; empty for a success."""
    if record.error is not None:
        return "not measured: " + shortened(record.error)
    if record.text is None:
        return f"no text: stopped by {shortened(record.stop_reason or 'what is not said')}"
    if not record.parses:
        guarantee = record.guarantee or "unknown"
        verdict = {None: "did not judge it", True: "takes it", False: "refuses it"}[record.complete]
        return f"does not parse: {record.won or 'text'}, guarantee {guarantee}, the engine {verdict}"
    return ""


def failures(data: Measured) -> Table:
    """Failures by reason and mode, the commonest first."""
    counts = {mode: Counter(map(failure_reason, columns.chosen())) for mode, columns in data.modes.items()}
    everything: Counter[str] = sum(counts.values(), Counter())
    del everything[""]
    reasons = sorted(everything, key=lambda reason: (-everything[reason], reason))
    rows = [(reason, *(f"{counts[mode][reason]:,}" for mode in data.modes)) for reason in reasons[:MOST_REASONS]]
    if len(reasons) > MOST_REASONS:
        rest = reasons[MOST_REASONS:]
        rows.append(
            (
                f"{len(rest):,} other reasons",
                *(f"{sum(counts[mode][reason] for reason in rest):,}" for mode in data.modes),
            )
        )
    rows.append(("in all", *(f"{sum(c.values()) - c['']:,}" for c in counts.values())))
    return Table("failures", "Failures by reason", ("reason", *data.modes), tuple(rows), 1, brief=True)


def constrained_failures(data: Measured) -> Table | None:
    """The paper's two ways in which constrained generation fails, and how often the other modes succeed there."""
    columns = data.modes.get("constrained")
    if columns is None:
        return None
    others = [mode for mode in data.modes if mode != "constrained"]
    rows = []
    for name, mask in data.groups():
        failed = columns.present & mask & ~columns.success
        ways = (
            ("a text was offered that does not parse", failed & columns.offered),
            ("no complete text was found", failed & ~columns.offered & ~columns.error),
            ("not measured", failed & columns.error),
        )
        for way, part in ways:
            count = int(part.sum())
            beside = (of(int((part & data.modes[mode].success).sum()), count) for mode in others)
            rows.append((name, way, f"{count:,}", *beside))
    header = ("set", "constrained failed", "samples", *(f"{mode} parses" for mode in others))
    note = (
        "The paper's failure modes: its parser took a left context for complete that is not, or never found one; and "
        "how many of these the other modes get right."
    )
    return Table("constrained-failures", "Where constrained fails", header, tuple(rows), 2, note, brief=True)


# --- all ----------------------------------------------------------------------------------------------------------


def sections(data: Measured) -> list[tuple[str, list[Table]]]:
    """All tables there is something to say in, in their order, under their headings."""
    below, every_slice = never_below(data)
    named: list[tuple[str, list[Table | None]]] = [
        ("Success", [overview(data), differences(data) if compared(data) else None]),
        ("The paper's tables", [table_one(data), table_two(data), constrained_failures(data), table_exact(data)]),
        ("Slices", [below if have_pairs(data) else None, *by_slice(data), every_slice if have_pairs(data) else None]),
        ("Tests", list(passes(data))),
        ("How texts ended", [what_won(data), won_quality(data), landing(data), stop_reasons(data), guarantees(data)]),
        ("Tokens", [refusals(data), suffixes(data), agreement(data)]),
        ("Cost", [cost(data), fits(data), latencies(data), throughput(data)]),
        ("Failures", [failures(data)]),
    ]
    kept = ((heading, [table for table in tables if table is not None]) for heading, tables in named)
    return [(heading, tables) for heading, tables in kept if tables]


def have_pairs(data: Measured) -> bool:
    """Whether constrained can be compared with anything."""
    return any(first == "constrained" for first, _ in compared(data))


def markdown(table: Table) -> str:
    """A table in Markdown, with its note."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(printable(cell).replace("|", "\\|") for cell in cells) + " |"

    marks = ["---" if index < table.words else "---:" for index in range(len(table.header))]
    body = [line(row) for row in table.rows] or [line(["none", *([""] * (len(table.header) - 1))])]
    parts = [f"**{table.title}**", "", line(table.header), "|" + "|".join(marks) + "|", *body]
    return "\n".join([*parts, "", table.note] if table.note else parts)


def as_json(table: Table) -> dict[str, Any]:
    """A table for programs: cells as they are printed."""
    return {"key": table.key, "title": table.title, "header": table.header, "rows": table.rows, "note": table.note}


def estimates(data: Measured) -> dict[str, Any]:
    """The main figures as numbers, for programs: shares between 0 and 1."""

    def plain(estimate: Estimate) -> dict[str, Any]:
        return {"value": estimate.value, "low": estimate.low, "high": estimate.high, "samples": estimate.count}

    found: dict[str, Any] = {}
    for name, mask in data.groups():
        modes: dict[str, Any] = {}
        for mode, columns in data.modes.items():
            kept = columns.present & mask
            modes[mode] = {
                "success": plain(wilson(int(columns.success[kept].sum()), int(kept.sum()))),
                "exact_match": plain(mean(columns.exact[kept], data.clusters_of(kept))),
                "edit_similarity": plain(mean(columns.edit[kept], data.clusters_of(kept))),
            }
        pairs = []
        for first, second in compared(data):
            kept, missing = data.pairs((first, second), mask)
            one, two = data.modes[first], data.modes[second]
            test = mcnemar(one.success[kept], two.success[kept])
            gained = paired_difference(one.success[kept], two.success[kept], data.clusters_of(kept))
            pairs.append(
                {
                    "first": first,
                    "second": second,
                    "pairs": int(kept.sum()),
                    "left_out": missing,
                    "success": {**plain(gained), "method": gained.method},
                    "only_first": test.only_first,
                    "only_second": test.only_second,
                    "mcnemar_p": test.p,
                }
            )
        found[name] = {"modes": modes, "differences": pairs}
    return found


def finite(value: Any) -> Any:
    """The same with null for every NaN, which JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [finite(inner) for inner in value]
    return value
