"""The section "Slices": success and matches on every part of the samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fim_server.evaluation.reporting.measured import CONTEXT_EDGES, HOLE_EDGES, LINE_EDGES, Bools, Measured
from fim_server.evaluation.reporting.statistics import proportion
from fim_server.evaluation.reporting.tables.table import Table
from fim_server.evaluation.reporting.tables.text import of, percent, rate


def slices(data: Measured) -> dict[str, list[tuple[str, Bools]]]:
    """Every way to cut the samples, each with its parts."""
    parts: dict[str, list[tuple[str, Bools]]] = {}
    if len(set(data.languages)) > 1:
        parts["language"] = [(name, data.in_language(name)) for name in dict.fromkeys(data.languages)]
    parts |= {
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
            for columns in data.modes.values():
                kept = columns.present & mask
                cells.append(rate(proportion(columns.success[kept])))
            for columns, count in zip(data.modes.values(), counts, strict=True):
                kept = columns.present & mask
                cells.append(percent(float(columns.exact[kept].mean())) if count else "–")
            rows.append((name, f"{max(counts, default=0):,}", *cells))
        header = (cut, "samples", *data.modes, *(f"exact, {mode}" for mode in data.modes))
        key = "by-" + cut.replace(",", "").replace(" ", "-")
        long = cut == "set and hole, characters"
        note = "Success with Wilson's interval, then exact match."
        yield Table(key, f"By {cut}", header, tuple(rows), 1, note, brief=cut in ("language", "kind"), long=long)


@dataclass(frozen=True)
class Slice:
    """Part of the samples, with each mode's counts."""

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
        """Tell whether constrained succeeds less often than checked."""
        return self.constrained < self.checked

    @property
    def exact_below(self) -> bool:
        """Tell whether constrained matches less often than unconstrained."""
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
