"""Models beside each other: one table for each set, a row for each model that was run on it.

What a row is named is up to whoever asks for it (``NAME=RUN``): a model, a checkpoint, a model without the suffix.
Several runs of one name are one row's, so that a model may have a run for each set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fim_server.errors import RecordError
from fim_server.evaluation.records import MODES, Record, RunInfo, read_run
from fim_server.evaluation.reporting.measured import PYTHON, is_exact, is_first_right, is_success
from fim_server.evaluation.reporting.statistics import CONFIDENCE, proportion
from fim_server.evaluation.reporting.tables.table import Table, markdown
from fim_server.evaluation.reporting.tables.text import number, percent, rate

BY_KIND = frozenset({"human-eval-infilling", "safim"})
"""Sets whose kinds are sets of their own."""

NOTE = (
    f"In brackets Wilson's {100 * CONFIDENCE:.0f} % intervals, which take samples as independent. *Exact*: the text is "
    "the one that stood there but for blanks at its ends, in a program that parses. *First lexeme*: its first word or "
    "other character is right. *Similarity*: "
    "`1 - levenshtein(a, b) / max(len(a), len(b))` of the stripped texts, the mean; no text is 0."
)
BITS_NOTE = (
    " *Bits a byte*: of the text that stood there, without the grammar, by its bytes in UTF-8; *to end*: the bits of "
    "ending after it, the mean."
)


@dataclass(frozen=True)
class Row:
    """Results of the runs of one model, by set (or kind) and mode."""

    name: str
    infos: tuple[RunInfo, ...]
    results: Mapping[tuple[str, str], Mapping[str, Record]]
    """By group and mode, then by sample."""

    def of(self, group: str, mode: str, among: frozenset[str] | None) -> list[Record]:
        """The results of a mode in a group, of some samples or all."""
        found = self.results.get((group, mode), {})
        return [record for sample, record in found.items() if among is None or sample in among]

    def samples(self, group: str) -> frozenset[str]:
        """The samples of a group that have a result in every mode that the row has there."""
        parts = [frozenset(found) for (name, _), found in self.results.items() if name == group]
        return frozenset.intersection(*parts) if parts else frozenset()


def read_rows(named: Sequence[str]) -> list[Row]:
    """Rows of ``NAME=RUN`` or ``RUN``, which is named after its folder, in the order of their first run.

    Raises RecordError if a folder is no run, or two runs of one name have results of the same sample and mode.
    """
    folders: dict[str, list[str]] = {}
    for one in named:
        name, equals, folder = one.partition("=")
        if not equals or Path(one).is_dir():
            name, folder = Path(one).name, one
        folders.setdefault(name, []).append(folder)
    return [_row(name, own) for name, own in folders.items()]


def _row(name: str, folders: Sequence[str]) -> Row:
    results: dict[tuple[str, str], dict[str, Record]] = {}
    owner: dict[tuple[str, str], str] = {}
    for folder in folders:
        for record in read_run(folder):
            if owner.setdefault(record.key, folder) != folder:
                raise RecordError(f"{name}: {owner[record.key]} and {folder} both have results of {record.sample}")
            results.setdefault((group_of(record), record.mode), {})[record.sample] = record
    return Row(name, tuple(RunInfo.read(folder) for folder in folders), results)


def group_of(record: Record) -> str:
    """The table that a result belongs to."""
    name = f"{record.set}, {record.kind}" if record.set in BY_KIND else record.set
    return name if record.language == PYTHON else f"{record.language}, {name}"


def tables(rows: Sequence[Row], common: bool = False) -> list[Table]:
    """A table for each set, in the order in which they come. ``common``: on the samples that all of its rows have."""
    groups = dict.fromkeys(group for row in rows for group, _ in row.results)
    return [_table(group, [row for row in rows if row.samples(group)], common) for group in groups]


def _table(group: str, rows: Sequence[Row], common: bool) -> Table:
    among = frozenset.intersection(*(row.samples(group) for row in rows)) if common and rows else None
    modes = [mode for mode in MODES if any((group, mode) in row.results for row in rows)]
    everything = [record for row in rows for mode in modes for record in row.of(group, mode, among)]
    columns: list[tuple[str, Callable[[Sequence[Record]], str]]] = []
    if any(record.passed is not None for record in everything):
        columns.append(("pass@1", lambda some: rate(proportion([bool(record.passed) for record in some]))))
    columns.append(("exact", lambda some: rate(proportion(list(map(is_exact, some))))))
    columns.append(("first lexeme", lambda some: percent(_mean([is_first_right(record) for record in some]))))
    columns.append(("parses", lambda some: percent(_mean([is_success(record) for record in some]))))
    columns.append(("similarity", lambda some: percent(_mean([record.edit_similarity or 0.0 for record in some]))))
    scored = any(record.reference_bits is not None for record in everything)
    cells = []
    for row in rows:
        of_modes = {mode: row.of(group, mode, among) for mode in modes}
        counts = sorted({len(some) for some in of_modes.values() if some})
        cell = [row.name, " / ".join(f"{count:,}" for count in counts)]
        cell += [told(some) if some else "–" for _, told in columns for some in of_modes.values()]
        cells.append((*cell, *(bits_of(next(filter(None, of_modes.values()), [])) if scored else ())))
    header = ["model", "samples", *(f"{name}, {mode}" for name, _ in columns for mode in modes)]
    note = NOTE + (BITS_NOTE if scored else "")
    if scored:
        header += ["bits a byte", "to end"]
    return Table(group.replace(", ", "-"), group, tuple(header), tuple(cells), 1, note)


def bits_of(some: Sequence[Record]) -> tuple[str, str]:
    """Bits a byte of the middles that were scored, and the mean bits of ending there."""
    scored = [record for record in some if record.reference_bits is not None]
    size = sum(len(record.reference.encode(errors="surrogatepass")) for record in scored)
    bits = sum(record.reference_bits or 0.0 for record in scored)
    ends = _mean([record.end_bits or 0.0 for record in scored])
    return number(bits / size if size else math.nan), number(ends)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def as_text(made: Sequence[Table]) -> str:
    """All tables in Markdown; what they have in common is said once, after them."""
    notes = dict.fromkeys(table.note for table in made)
    last = max(notes, key=len, default="")
    parts = [markdown(Table(one.key, one.title, one.header, one.rows, one.words)) for one in made]
    return "\n\n".join([*parts, last]) + "\n"


def put_into(page: Path, block: str, text: str) -> None:
    """Replace what stands in a page of Markdown between ``<!-- BLOCK -->`` and ``<!-- end of BLOCK -->``.

    Raises RecordError if the page cannot be read or written, or has not these two lines.
    """
    begin, end = f"<!-- {block} -->\n", f"<!-- end of {block} -->"
    try:
        before, found, rest = page.read_text(encoding="utf-8").partition(begin)
        _, found_end, after = rest.partition(end)
        if not (found and found_end):
            raise RecordError(f"{page}: has no lines {begin.strip()} and {end}")
        page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
    except OSError as error:
        raise RecordError(f"{page}: {error.strerror or error}") from None
