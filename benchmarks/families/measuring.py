"""``./dev bench engine --families``: every family at every place of the cursor, in processes of their own."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from benchmarks.families.generated import generated
from benchmarks.families.listed import LISTED
from benchmarks.families.operations import (
    CHECK,
    NEED_VOCABULARY,
    OPEN,
    OPERATIONS,
    Job,
    Measured,
    kit_of,
    measured,
)
from benchmarks.families.report import EXPLAINED, Line, Report, Run
from benchmarks.families.texts import CannotGrowError, Family, Placement, Written, of_size
from benchmarks.options import positive_count, positive_counts
from benchmarks.processes import EndedError, Limits, answers_of_limited_process
from benchmarks.report import DONE, kind_of_time, machine, progress_for, publish
from fim_server.errors import BenchError
from fim_server.language.definition import compile as grammar
from fim_server.text.terminal import Progress

SIZES = (4_000, 16_000)
LONG_SIZES = (10_000, 100_000, 1_000_000)
"""Characters of the texts."""

DEFAULT_OPERATIONS = (OPEN, CHECK)
DEFAULT_PLACEMENTS = (Placement.LEFT, Placement.RIGHT, Placement.CUT_RIGHT, Placement.AROUND)

SECONDS = 20
MEGABYTES = 4_000
"""Default limits of an operation."""

MEGABYTE = 1_000_000

SMALL_REPETITIONS = 2
SHAPE_CHARACTERS = 32
SHOWN_AS = str.maketrans({"\n": "\\n", "\t": "\\t", "\r": "\\r", "\f": "\\f"})


@dataclass(frozen=True)
class FamiliesOptions:
    """Options of ``./dev bench engine --families``.

    Attributes:
        language: A language's name.
        only: Patterns of family names (`*` and `?`, or a part of the name); None for all.
        operations: Operations to measure.
        cursors: Places of the cursor.
        sizes: Characters of the texts, growing.
        repeats: Processes for each measurement; the least time counts.
        seconds: Time limit of an operation.
        megabytes: Limit of a process's growth.
        all_lines: True to print all lines, not only the worst.
        cpu_time: True to count processor time.
        json: True to print one JSON object.
    """

    language: str
    only: tuple[str, ...] | None
    operations: tuple[str, ...]
    cursors: tuple[Placement, ...]
    sizes: tuple[int, ...]
    repeats: int
    seconds: int
    megabytes: int
    all_lines: bool
    cpu_time: bool
    json: bool

    @property
    def limits(self) -> Limits:
        """Those of a process."""
        return Limits(self.seconds, self.megabytes * MEGABYTE, self.cpu_time)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``./dev bench engine --families``."""
    group = parser.add_argument_group(
        "families", "texts that repeat one construct, generated from a language's own grammar, instead"
    )
    group.add_argument("--families", action="store_true", help="measure them; prints the worst")
    group.add_argument("--language", choices=grammar.names(), default="python", help="of which (default: python)")
    group.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="families with this in their names, or that match it as a pattern (*); may be given several times",
    )
    group.add_argument(
        "--operations",
        type=_names(OPERATIONS),
        default=DEFAULT_OPERATIONS,
        metavar="NAME,...",
        help=f"of {', '.join(OPERATIONS)}, or all (default: {OPEN},{CHECK})",
    )
    group.add_argument(
        "--cursors",
        type=_placements,
        default=DEFAULT_PLACEMENTS,
        metavar="NAME,...",
        help=f"of {', '.join(each.replace(' ', '-') for each in Placement)}, or all (default: the first four)",
    )
    sizes = group.add_mutually_exclusive_group()
    sizes.add_argument(
        "--sizes", type=positive_counts, metavar="N,...", help=f"characters (default: {','.join(map(str, SIZES))})"
    )
    sizes.add_argument("--long", action="store_true", help=f"sizes {','.join(map(str, LONG_SIZES))}")
    group.add_argument("--all", action="store_true", help="print all lines, not only the worst")
    group.add_argument(
        "--repeats",
        type=positive_count,
        default=1,
        metavar="N",
        help="processes in which each is measured; the least time counts (default: 1)",
    )
    group.add_argument(
        "--most-seconds",
        type=positive_count,
        default=SECONDS,
        metavar="N",
        help="for an operation (default: %(default)s)",
    )
    group.add_argument(
        "--most-megabytes",
        type=positive_count,
        default=MEGABYTES,
        metavar="N",
        help="by which a process may grow (default: %(default)s)",
    )


def _placements(text: str) -> tuple[Placement, ...]:
    """The type of `--cursors`, whose names are written with dashes."""
    by_name = {placement.replace(" ", "-"): placement for placement in Placement}
    return tuple(by_name[name] for name in _names(tuple(by_name))(text))


def _names(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """The type of an argument that is some of the known names with commas between them, or `all`."""

    def chosen(text: str) -> tuple[str, ...]:
        names = tuple(known) if text == "all" else text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return tuple(name for name in known if name in names)

    return chosen


def run(options: FamiliesOptions) -> int:
    """Measure, and print tables or JSON; returns the exit status.

    Raises:
        BenchError: No family has such a name.
    """
    with progress_for(options.json) as progress:
        report = measure(options, progress)
    publish(report, options.json)
    return DONE


# --- measuring ----------------------------------------------------------------------------------------------------


def measure(options: FamiliesOptions, progress: Progress) -> Report:
    """Every family, place of the cursor, size and operation.

    Raises:
        BenchError: No family has such a name.
    """
    progress.say("deriving families from the grammar")
    generation = generated(options.language)
    listed: Sequence[Family] = LISTED.get(options.language, ())
    families = [family for family in (*generation.families, *listed) if _is_wanted(family.name, options.only)]
    if not families:
        raise BenchError(f"no family of {options.language} has {' or '.join(options.only or ())} in its name")
    kit = kit_of(options.language)
    if NEED_VOCABULARY & set(options.operations):
        progress.say("preparing a vocabulary")
        kit.prepare()
    setting = {
        "machine": machine(),
        "families": f"{len(families)} of {options.language}: of {len(generation.families)} generated from "
        f"{generation.occurrences} recursive places in its rules, and {len(listed)} listed",
        "limits": f"{options.seconds} s and {options.megabytes:,} MB for an operation",
        "time": kind_of_time(options.cpu_time),
        "figures": EXPLAINED,
    }
    left_out = {name: reason for name, reason in generation.left_out.items() if _is_wanted(name, options.only)}
    report = Report(setting, options.sizes, options.all_lines, left_out=left_out)
    for family in progress.count("families", families):
        try:
            texts = {size: of_size(family.written, size) for size in options.sizes}
        except CannotGrowError:
            report.left_out[family.name] = "the language's limits allow fewer repetitions"
            continue
        small = family.written(SMALL_REPETITIONS)
        for placement in options.cursors:
            report.lines += _lines(options, family, placement, texts, small)
    return report


def _is_wanted(name: str, patterns: Sequence[str] | None) -> bool:
    return patterns is None or any(pattern in name or fnmatchcase(name, pattern) for pattern in patterns)


def _lines(
    options: FamiliesOptions, family: Family, placement: Placement, texts: Mapping[int, Written], small: Written
) -> list[Line]:
    """All operations with the cursor at one place."""
    left, right = small.split(placement)
    whole = placement not in (Placement.CUT_LEFT, Placement.GAP)
    expected = () if not family.parses else ("complete",) if whole else ("complete", "viable")
    shape = shape_of(left, right)
    lines = {name: Line(family.name, placement, name, shape, expected) for name in options.operations}
    todo = list(options.operations)
    for size, written in texts.items():
        left, right = written.split(placement)
        questions = tuple(name for name in todo if name != OPEN)
        job = Job(options.language, left, right, small.split(placement), questions, options.cpu_time)
        runs = _least(_runs(job, size, options.limits) for _ in range(options.repeats))
        for name, each in runs.items():
            if name in lines:
                lines[name].runs.append(each)
            if each.failed is not None:
                todo = [] if name == OPEN else [other for other in todo if other != name]
        if not todo:
            break
    return [line for line in lines.values() if line.runs]


def _least(repeated: Iterable[dict[str, Run]]) -> dict[str, Run]:
    """By operation, the run of the least time; after one in which an operation failed there are no more."""
    found: dict[str, Run] = {}
    for runs in repeated:
        for name, each in runs.items():
            if name not in found or each.seconds < found[name].seconds:
                found[name] = each
        if any(each.failed for each in runs.values()):
            break
    return found


def _runs(job: Job, size: int, most: Limits) -> dict[str, Run]:
    """By operation what a job measures; a process that passes a limit is followed by one for what is left."""
    characters = len(job.left) + len(job.right)
    runs: dict[str, Run] = {}
    while asked := [name for name in (OPEN, *job.questions) if name not in runs]:
        try:
            rest = replace(job, questions=tuple(name for name in asked if name != OPEN))
            for answer in answers_of_limited_process(most, measured, rest):
                if answer.operation not in runs:
                    runs[answer.operation] = run_of(answer, size, characters)
        except TimeoutError:
            failed = f"over {most.seconds:g} s"
        except EndedError as error:
            failed = (
                f"over {most.bytes // MEGABYTE:,} MB"
                if error.status == -signal.SIGABRT
                else f"ended: {_ending(error.status)}"
            )
        else:
            break
        name = next((name for name in asked if name not in runs), OPEN)
        runs.setdefault(name, Run(size, characters, most.seconds, 0.0, None, failed=failed))
        if name == OPEN:
            break  # what cannot be opened cannot be asked
    return runs


def run_of(measurement: Measured, size: int, characters: int) -> Run:
    """A measurement as a run on a text."""
    return Run(size, characters, measurement.seconds, measurement.fixed, measurement.peak, measurement.answer)


def _ending(status: int | None) -> str:
    if status is not None and status < 0:
        return signal.Signals(-status).name
    return f"exit status {status}"


def shape_of(left: str, right: str) -> str:
    """A short text with its cursor, on one line."""
    before, after = (side.translate(SHOWN_AS) for side in (left, right))
    half = SHAPE_CHARACTERS // 2
    if len(before) > half:
        before = "…" + before[1 - half :]
    if len(after) > half:
        after = after[: half - 1] + "…"
    return f"{before}¦{after}"
