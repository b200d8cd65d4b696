"""``fim-server eval compare``: two runs, sample by sample.

Runs A and B are paired on the samples that both have: the same set and identifier, and the same hole. For each mode
that both have, differences are B - A.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fim_server.errors import RecordError
from fim_server.evaluation.records import MODES, Record, RunInfo, read_run
from fim_server.evaluation.reporting.report import distinct, eval_extra, write_files
from fim_server.evaluation.reporting.report import summary as in_markdown

if TYPE_CHECKING:
    from fim_server.evaluation.reporting.measured import Bools, Measured
    from fim_server.evaluation.reporting.report import Report
    from fim_server.evaluation.reporting.tables import Table

PAGE, SUMMARY, NUMBERS = "compare.html", "compare.md", "compare.json"

MOST_LISTED = 200
"""Samples in a table of those won or lost; the JSON object has all."""

NOT_SETTINGS = frozenset({"started"})
"""Fields of ``run.json`` that differ between any two runs."""


@dataclass(frozen=True)
class Joined:
    """Two runs as one set of columns, with a column ``A MODE`` and ``B MODE`` for every mode that both have.

    Attributes:
        only_a: Samples that B has not, of those that A has in a common mode.
        different: Samples left out because the same identifier has another hole.
        prompts: Samples of which some mode's prompt is not the same token for token.
    """

    data: Measured
    infos: tuple[RunInfo, RunInfo]
    modes: tuple[str, ...]
    only_a: int
    only_b: int
    different: int
    prompts: int


def run_compare(a: str | Path, b: str | Path, out: str | Path | None = None, json_: bool = False) -> int:
    """``fim-server eval compare``; returns the exit status. Raises RecordError for runs that cannot be compared."""
    with eval_extra():
        joined = join(a, b)
        report = report_on(joined)
        numbers = as_json(joined, report)
        if out is not None:
            write(joined, report, numbers, out)
    if json_:
        print(json.dumps(numbers))
    elif out is None:
        print(in_markdown(replace(report, plots=[])), end="")
    else:
        for check in report.checks:
            print(f"{check.claim}: {check.found}")
        print(Path(out) / PAGE)
    return 0


def join(a: str | Path, b: str | Path) -> Joined:
    """Two runs on their common samples.

    Raises RecordError where a folder is no run, or the runs have no sample and mode in common.
    """
    from fim_server.evaluation.reporting.measured import files_of, measured

    infos = RunInfo.read(a), RunInfo.read(b)
    ours, theirs = ({(one.set, one.sample, one.mode): one for one in read_run(folder)} for folder in (a, b))
    modes = tuple(mode for mode in MODES if all(any(key[2] == mode for key in side) for side in (ours, theirs)))
    samples_a, samples_b = ({key[:2] for key in side if key[2] in modes} for side in (ours, theirs))
    holes_a, holes_b = ({key[:2]: _hole(one) for key, one in side.items()} for side in (ours, theirs))
    common = samples_a & samples_b
    different = {key for key in common if holes_a[key] != holes_b[key]}
    common -= different
    if not common:
        raise RecordError(f"{a} and {b} have no sample in common")
    records = [
        replace(one, mode=f"{name} {one.mode}")
        for name, side in (("A", ours), ("B", theirs))
        for key, one in side.items()
        if key[:2] in common and key[2] in modes
    ]
    names = [f"{name} {mode}" for mode in modes for name in ("A", "B")]
    prompts = {
        key[:2]
        for key, one in ours.items()
        if key[:2] in common and key in theirs and one.prompt_hash != theirs[key].prompt_hash
    }
    files = files_of(infos[:1])
    if isinstance(files, str):
        files = files_of(infos[1:])
    data = measured(infos, records, files, order=names)
    only_a, only_b = len(samples_a - samples_b), len(samples_b - samples_a)
    return Joined(data, infos, modes, only_a, only_b, len(different), len(prompts))


def _hole(record: Record) -> tuple[str, int, int]:
    return record.reference, record.left_characters, record.right_characters


def settings(infos: tuple[RunInfo, RunInfo]) -> list[tuple[str, str, str]]:
    """What was asked for differently: field, A's, B's. Fields of objects as ``object.field``."""
    ours, theirs = (_flat(info.to_json()) for info in infos)
    names = dict.fromkeys([*ours, *theirs])
    return [
        (name, ours.get(name, "–"), theirs.get(name, "–"))
        for name in names
        if ours.get(name) != theirs.get(name) and name.split(".")[0] not in NOT_SETTINGS
    ]


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{name}.")
        elif name == "data":
            found["data"] = ", ".join(f"{Path(one['path']).name} ({one['sha256'][:12]})" for one in value)
        else:
            found[before + name] = value if isinstance(value, str) else json.dumps(value)
    return found


def report_on(joined: Joined) -> Report:
    """What there is to say about two runs."""
    from fim_server.evaluation.reporting import figures, tables
    from fim_server.evaluation.reporting.page import Card
    from fim_server.evaluation.reporting.report import Report
    from fim_server.evaluation.reporting.statistics import mcnemar
    from fim_server.evaluation.reporting.tables import Check

    data = joined.data
    cards, checks = [], []
    for mode in joined.modes:
        kept, _ = data.pairs((f"A {mode}", f"B {mode}"))
        one, two = (data.modes[f"{name} {mode}"].success[kept] for name in ("A", "B"))
        count = int(kept.sum())
        test = mcnemar(two, one)
        if not count:
            continue
        a, b = int(one.sum()), int(two.sum())
        said = f"B won {test.only_first:,} and lost {test.only_second:,} samples, p {tables.probability(test.p)}"
        cards.append(
            Card(
                f"{mode}: programs that parse, A → B",
                f"{tables.percent(a / count)} → {tables.percent(b / count)}",
                said,
                mode == "constrained",
            )
        )
        found = f"{a:,} and {b:,} of {count:,}; {said}"
        checks.append(Check(f"success of B not below A's ({mode})", b >= a, found))
    models = distinct(info.model for info in joined.infos)
    notices = []
    if joined.only_a or joined.only_b:
        notices.append(f"Left out: {joined.only_a:,} samples that only A has, {joined.only_b:,} that only B has.")
    if joined.different:
        notices.append(f"Left out: {joined.different:,} samples whose hole is another in A than in B.")
    if joined.prompts:
        notices.append(f"The prompts of {joined.prompts:,} samples differ between A and B.")
    return Report(
        title=f"Two evaluations compared: {tables.shortened(models)}",
        lead=f"{data.count:,} samples that both runs have, in {', '.join(joined.modes)}. Differences are B − A.",
        facts=[
            ("A, begun", tables.shortened(joined.infos[0].started)),
            ("B, begun", tables.shortened(joined.infos[1].started)),
        ],
        notices=notices,
        cards=cards,
        checks=checks,
        plots=figures.plots(data, (figures.success, figures.validity, figures.latency)),
        sections=_sections(joined),
    )


def _sections(joined: Joined) -> list[tuple[str, list[Table]]]:
    from fim_server.evaluation.reporting import tables

    data = joined.data
    rows = tuple((name, tables.shortened(a), tables.shortened(b)) for name, a, b in settings(joined.infos))
    asked = tables.Table("settings", "Settings that differ", ("setting", "A", "B"), rows, 3, brief=True)
    return [
        ("Settings", [asked]),
        ("Success", [tables.overview(data), differences(joined)]),
        ("Slices", [slices(joined)]),
        ("Samples that changed", [changed(joined, "lost"), changed(joined, "won")]),
        ("How texts ended", [tables.what_won(data), tables.stop_reasons(data), tables.refusals(data)]),
        ("Cost", [tables.cost(data), tables.latencies(data)]),
        ("Failures", [tables.failures(data)]),
    ]


def differences(joined: Joined) -> Table:
    """B - A by set and mode, with intervals and tests."""
    from fim_server.evaluation.reporting import tables
    from fim_server.evaluation.reporting.statistics import CONFIDENCE, RESAMPLES, mcnemar, paired_difference

    data = joined.data
    rows = []
    left_out: dict[str, int] = {}
    for place, (name, mask) in enumerate(data.groups()):
        for mode in joined.modes:
            kept, missing = data.pairs((f"A {mode}", f"B {mode}"), mask)
            if not place:
                left_out[mode] = missing
            one, two = data.modes[f"A {mode}"], data.modes[f"B {mode}"]
            files = data.clusters_of(kept)
            success = mcnemar(two.success[kept], one.success[kept])
            exact = mcnemar(two.exact[kept], one.exact[kept])
            rows.append(
                (
                    name,
                    mode,
                    f"{int(kept.sum()):,}",
                    tables.difference(paired_difference(two.success[kept], one.success[kept], files)),
                    f"{success.only_first:,} : {success.only_second:,}",
                    tables.probability(success.p),
                    tables.difference(paired_difference(two.exact[kept], one.exact[kept], files)),
                    f"{exact.only_first:,} : {exact.only_second:,}",
                    tables.probability(exact.p),
                    tables.difference(paired_difference(two.edit[kept], one.edit[kept], files)),
                )
            )
    header = ("set", "mode", "pairs", "success", "won : lost", "p", "exact match", "won : lost", "p", "edit similarity")
    note = (
        f"B − A in percentage points, with {100 * CONFIDENCE:.0f} % percentile intervals of {RESAMPLES:,} paired "
        f"bootstrap resamples. {data.cluster_reason} *p*: McNemar's exact test. " + tables.said_left_out(left_out)
    )
    return tables.Table("differences", "B − A", header, tuple(rows), 2, note, brief=True)


def slices(joined: Joined) -> Table:
    """Success of A and B on every slice."""
    from fim_server.evaluation.reporting import tables
    from fim_server.evaluation.reporting.statistics import mcnemar

    data = joined.data
    rows = []
    for cut, parts in tables.slices(data).items():
        for name, mask in parts:
            for mode in joined.modes:
                kept, _ = data.pairs((f"A {mode}", f"B {mode}"), mask)
                one, two = (data.modes[f"{side} {mode}"].success[kept] for side in ("A", "B"))
                count, test = int(kept.sum()), mcnemar(two, one)
                cells = (tables.of(int(one.sum()), count), tables.of(int(two.sum()), count))
                won = f"{test.only_first:,} : {test.only_second:,}"
                rows.append((cut, name, mode, f"{count:,}", *cells, won, tables.probability(test.p)))
    header = ("cut", "slice", "mode", "pairs", "A", "B", "won : lost", "p")
    note = "Small slices differ by chance, and of many tests some come out small."
    return tables.Table("slices", "Success by slice", header, tuple(rows), 3, note, long=True)


def changed_mask(joined: Joined, mode: str, which: str) -> Bools:
    """The samples on which B succeeds and A does not (``won``), or the other way round (``lost``)."""
    kept, _ = joined.data.pairs((f"A {mode}", f"B {mode}"))
    a, b = (joined.data.modes[f"{name} {mode}"].success for name in ("A", "B"))
    return kept & b & ~a if which == "won" else kept & a & ~b


def changed(joined: Joined, which: str) -> Table:
    """The samples that B won or lost, and why the other failed."""
    from fim_server.evaluation.reporting import tables

    side = "A" if which == "won" else "B"
    rows: list[tuple[str, ...]] = []
    count = 0
    for mode in reversed(joined.modes):
        mask = changed_mask(joined, mode, which)
        for place in mask.nonzero()[0].tolist():
            count += 1
            record = joined.data.modes[f"{side} {mode}"].records[place]
            if len(rows) < MOST_LISTED and record is not None:
                rows.append((mode, tables.shortened(record.sample), record.kind, tables.failure_reason(record)))
    title = f"Samples that B {which}: {count:,}"
    note = f"The first {MOST_LISTED:,}; {NUMBERS} and --json have all." if count > MOST_LISTED else ""
    header = ("mode", "sample", "kind", f"{side} failed")
    return tables.Table(which, title, header, tuple(rows), 4, note)


def as_json(joined: Joined, report: Report) -> dict[str, Any]:
    """The comparison for programs."""
    from fim_server.evaluation.reporting import tables
    from fim_server.evaluation.reporting.statistics import mcnemar, paired_difference

    data = joined.data
    modes: dict[str, Any] = {}
    for mode in joined.modes:
        kept, missing = data.pairs((f"A {mode}", f"B {mode}"))
        one, two = data.modes[f"A {mode}"], data.modes[f"B {mode}"]
        files = data.clusters_of(kept)
        test = mcnemar(two.success[kept], one.success[kept])
        found: dict[str, Any] = {"pairs": int(kept.sum()), "left_out": missing, "mcnemar_p": test.p}
        for name in ("success", "exact", "edit"):
            a, b = getattr(one, name)[kept], getattr(two, name)[kept]
            gained = paired_difference(b, a, files)
            found[name] = {
                "a": float(a.mean()) if a.size else None,
                "b": float(b.mean()) if b.size else None,
                "difference": gained.value,
                "low": gained.low,
                "high": gained.high,
                "method": gained.method,
            }
        for which in ("won", "lost"):
            places = changed_mask(joined, mode, which).nonzero()[0].tolist()
            found[which] = [{"set": data.keys[place][0], "sample": data.keys[place][1]} for place in places]
        modes[mode] = found
    result: dict[str, Any] = tables.finite(
        {
            "samples": data.count,
            "only_a": joined.only_a,
            "only_b": joined.only_b,
            "other_hole": joined.different,
            "other_prompt": joined.prompts,
            "settings": [{"setting": name, "a": a, "b": b} for name, a, b in settings(joined.infos)],
            "modes": modes,
            "resampled": data.cluster_reason,
            "tables": [tables.as_json(table) for _, some in report.sections for table in some],
        }
    )
    return result


def changed_first(joined: Joined) -> list[int]:
    """The samples that B lost in some mode, that it won, on which both fail, the rest; constrained before others."""
    data = joined.data

    def rank(place: int) -> tuple[int, ...]:
        found = []
        for mode in reversed(joined.modes):
            a, b = (bool(data.modes[f"{name} {mode}"].success[place]) for name in ("A", "B"))
            found.append({(True, False): 0, (False, True): 1, (False, False): 2, (True, True): 3}[a, b])
        return (min(found), *found)

    return sorted(range(data.count), key=rank)


def write(joined: Joined, report: Report, numbers: dict[str, Any], out: str | Path) -> None:
    """Write page, summary, numbers and plots into a folder. Raises RecordError if they cannot be written."""
    from fim_server.evaluation.reporting import page

    samples, left_out = page.packed(joined.data, changed_first(joined))
    notices = [*report.notices, left_out] if left_out else report.notices
    text = page.html(
        page.Page(
            title=report.title,
            lead=report.lead,
            facts=report.facts,
            variants=list(joined.data.modes),
            data=samples,
            cards=report.cards,
            notices=notices,
            checks=report.checks,
            plots=report.plots,
            sections=report.sections,
            footer="Made by fim-server eval compare. Nothing on this page is fetched from anywhere.",
        )
    )
    files = {f"{plot.key}.svg": plot.file() for plot in report.plots}
    write_files(out, {PAGE: text, SUMMARY: in_markdown(report), NUMBERS: json.dumps(numbers, indent=1) + "\n", **files})
