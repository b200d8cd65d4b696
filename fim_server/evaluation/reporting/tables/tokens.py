"""The section "Tokens": refused and forced tokens, repeated suffixes, the engine's verdict beside ``ast.parse``'s."""

from __future__ import annotations

from fim_server.evaluation.records import Record
from fim_server.evaluation.reporting.measured import Measured
from fim_server.evaluation.reporting.statistics import percentiles
from fim_server.evaluation.reporting.tables.counts import counted, without_text
from fim_server.evaluation.reporting.tables.table import Table
from fim_server.evaluation.reporting.tables.text import number, of, percent


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
        "refused. *Forced*: tokens that the grammar leaves no choice of."
    )
    return Table("tokens", "Tokens, refusals, forced tokens", header, tuple(rows), 1, note)


def suffixes(data: Measured) -> Table:
    """Return the table of texts whose end repeats the text after it, beside the true middles."""
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


def agreement(data: Measured) -> Table:
    """The engine's verdict beside the judge's, on the texts offered."""

    def read(record: Record) -> str:
        if record.text is None:
            return without_text(record)
        ours = {None: "did not say", True: "complete", False: "not complete"}[record.complete]
        return f"engine: {ours}; {judge}: {'parses' if record.parses else 'does not parse'}"

    judge = "ast.parse" if data.only_python else "judge"
    refuses = "`ast.parse` refuses" if data.only_python else "A language's own parser may refuse"
    note = f"{refuses} more than a grammar can say, and a program of an older version is judged by the newest."
    header, rows = counted(data, "verdicts", read)
    return Table("agreement", f"Engine and {judge}", header, rows, 1, note)
