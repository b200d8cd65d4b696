"""``fim-server dataset``: build sets of samples, draw from them, and show them."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from fim_server.cli.arguments import add_color, add_json, add_seed, bind, is_whole
from fim_server.cli.output import DONE
from fim_server.datasets.build import OUTCOMES, Counts, Request, build
from fim_server.datasets.cutters import PYTHON
from fim_server.datasets.drawing import draw
from fim_server.datasets.holes import PER_FILE
from fim_server.datasets.judging.programs import ASK_ENGINE, ASK_NONE
from fim_server.datasets.manifest import manifest_path
from fim_server.datasets.python.human_eval import KINDS as HUMAN_EVAL_KINDS
from fim_server.datasets.python.human_eval import SET as HUMAN_EVAL
from fim_server.datasets.python.human_eval import build_human_eval
from fim_server.datasets.safim import KINDS as SAFIM_KINDS
from fim_server.datasets.safim import SET as SAFIM
from fim_server.datasets.safim import build_safim
from fim_server.datasets.samples import SET_NAMES, MatchTest, ProgramTest, Sample, Test, read_samples
from fim_server.datasets.sources.named import language_of
from fim_server.errors import DatasetError
from fim_server.language.limited_files import parse_json, read_found
from fim_server.text.hidden import escaped
from fim_server.text.terminal import ColourChoice, Progress, is_terminal, paint, wants_colour

PUBLISHED_KINDS = {HUMAN_EVAL: HUMAN_EVAL_KINDS, SAFIM: SAFIM_KINDS}
"""Kinds of samples in the published sets."""

CONTEXT_LINES = 8
"""Lines shown on either side of a hole."""

LOG_SECONDS = 10.0
"""Time between two lines of progress without a terminal."""


@dataclass(frozen=True)
class BuildArguments:
    """Arguments of ``fim-server dataset build``; ``kind`` is for published sets only."""

    set: str
    source: str
    language: str | None
    language_version: str | None
    judge: str | None
    out: Path
    seed: int
    per_file: int
    limit: int | None
    share: float
    kind: Sequence[str] | None
    json: bool


@dataclass(frozen=True)
class DrawArguments:
    """Arguments of ``fim-server dataset draw``."""

    files: Sequence[Path]
    count: int
    seed: int
    out: Path
    json: bool


@dataclass(frozen=True)
class ShowArguments:
    """Arguments of ``fim-server dataset show``; ``sample`` is an id, or a number from 1 on."""

    file: Path
    sample: str | None
    context: int
    color: ColourChoice
    json: bool


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the commands below ``fim-server dataset``."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_build(commands)
    _add_draw(commands)
    _add_show(commands)


def _add_build(commands: Any) -> None:
    parser = commands.add_parser(
        "build",
        help="cut holes into the files of a source",
        description="Build a set of samples, which are holes in the files of a source. The same source, seed and set "
        "give the same bytes. The same command continues an interrupted build.",
        epilog="Exit status: 0 built, 2 bad input. Beside FILE.jsonl is FILE.jsonl.manifest.json: arguments, counts, "
        "checksum.",
    )
    parser.add_argument("set", choices=SET_NAMES, metavar="SET", help=f"one of {', '.join(SET_NAMES)}")
    parser.add_argument(
        "--source",
        required=True,
        metavar="SOURCE",
        help="a file of the language, or a folder of such files; a parquet or JSON Lines file (texts in `content` or "
        "`text`), or a folder of these; stdlib: the interpreter's library without its tests; packages:NAME,...: "
        "installed distributions; go:MODULE@VERSION,..., maven:GROUP:ARTIFACT:VERSION,..., crates:NAME@VERSION,... "
        "or npm:NAME@VERSION,... (JSON, or by --language JavaScript and TypeScript): packages fetched by go, mvn, "
        "cargo or npm; NAME.toml: a list of packages; "
        "hub:OWNER/NAME[@REVISION]: a dataset of the hub; "
        f"hub:OWNER/NAME=PATH: a local copy; for {HUMAN_EVAL} and {SAFIM}: the folder of its files",
    )
    parser.add_argument(
        "--language",
        metavar="NAME",
        help="language of the files (default: the packages' one or that of a file's suffix, else python)",
    )
    parser.add_argument(
        "--language-version",
        metavar="VERSION",
        help="version that the parser of a language other than Python checks (default: the newest that it knows)",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="FILE.jsonl", help="the file of samples")
    parser.add_argument(
        "--judge",
        metavar="PROGRAM",
        help="parser for a language other than Python, as in `fim-server language check` (default: the built-in one); "
        f"{ASK_ENGINE} for the definition, {ASK_NONE} for a language without a grammar",
    )
    add_seed(parser)
    parser.add_argument(
        "--per-file",
        type=_count,
        default=PER_FILE,
        metavar="N",
        help=f"most holes in a file (default: {PER_FILE})",
    )
    parser.add_argument("--limit", type=_count, metavar="N", help="stop after this many samples, in the source's order")
    parser.add_argument(
        "--share",
        type=_share,
        default=1.0,
        metavar="F",
        help="use this share of the files, chosen by seed and contents, the same for every set (default: 1)",
    )
    parser.add_argument(
        "--kind",
        action="append",
        choices=tuple(kind for kinds in PUBLISHED_KINDS.values() for kind in kinds),
        help=f"for {HUMAN_EVAL} and {SAFIM}: only this kind; may be repeated (default: all)",
    )
    add_json(parser, "print the manifest")
    bind(parser, BuildArguments, run_build)


def _add_draw(commands: Any) -> None:
    parser = commands.add_parser(
        "draw",
        help="draw samples from built sets",
        description="Draw samples of built sets, in an order that mixes files and packages. The first N are a draw of "
        "N, so that `fim-server eval run --limit N` evaluates a fair part.",
        epilog="Exit status: 0 drawn, 2 bad input.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.jsonl", help="files of samples")
    parser.add_argument("--count", required=True, type=_count, metavar="N", help="most samples to draw")
    add_seed(parser)
    parser.add_argument("--out", required=True, type=Path, metavar="FILE.jsonl", help="the file to write")
    add_json(parser, "print the manifest")
    bind(parser, DrawArguments, run_draw)


def _add_show(commands: Any) -> None:
    parser = commands.add_parser(
        "show",
        help="show a set, or one sample",
        description="Print an overview of a file of samples, and one sample with its hole marked.",
        epilog="Exit status: 0 shown, 2 bad input.",
    )
    parser.add_argument("file", type=Path, metavar="FILE.jsonl", help="a file of samples")
    parser.add_argument("--sample", metavar="ID", help="show only the sample of this id, or number from 1")
    parser.add_argument(
        "--context", type=_count, default=CONTEXT_LINES, metavar="N", help="lines around the hole (default: 8)"
    )
    add_color(parser, "the hole")
    add_json(parser, "print one JSON object: the sample, or the overview")
    bind(parser, ShowArguments, run_show)


def _count(text: str) -> int:
    if not is_whole(text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share above 0, up to 1")
    return value


# --- build ---------------------------------------------------------------------------------------------------------


def run_build(arguments: BuildArguments) -> int:
    """Run ``fim-server dataset build``. Raises DatasetError on bad input."""
    if arguments.set in PUBLISHED_KINDS:
        manifest = build_published(arguments)
    elif arguments.kind:
        raise DatasetError(f"--kind is for {' and '.join(PUBLISHED_KINDS)}")
    else:
        request = Request(
            set=arguments.set,
            source=arguments.source,
            seed=arguments.seed,
            per_file=arguments.per_file,
            share=arguments.share,
            limit=arguments.limit,
            language=arguments.language or language_of(arguments.source) or PYTHON,
            language_version=arguments.language_version,
            judge=arguments.judge,
        )
        started = time.monotonic()
        with Progress(every=LOG_SECONDS) as progress:
            manifest = build(request, arguments.out, lambda counts: say_counts(progress, counts, started))
    if arguments.json:
        print(json.dumps(manifest))
    else:
        print(f"{arguments.out}: {summary(manifest['counts'])}")
    return DONE


def build_published(arguments: BuildArguments) -> dict[str, Any]:
    """Build a published set and return its manifest. Raises DatasetError on bad input."""
    name, source, kinds = arguments.set, Path(arguments.source), arguments.kind or ()
    if arguments.language_version or arguments.judge:
        raise DatasetError(f"--language-version and --judge are not for {name}")
    if arguments.share != 1 or arguments.per_file != PER_FILE:
        raise DatasetError(f"--share and --per-file are not for {name}, which is taken as it is")
    unknown = [kind for kind in kinds if kind not in PUBLISHED_KINDS[name]]
    if unknown:
        raise DatasetError(f"{name} has no kind {unknown[0]}, but {', '.join(PUBLISHED_KINDS[name])}")
    if name == SAFIM:
        return build_safim(source, arguments.out, kinds, arguments.limit, arguments.language)
    if arguments.language not in (None, PYTHON):
        raise DatasetError(f"{name} is of {PYTHON}")
    return build_human_eval(source, arguments.out, kinds, arguments.limit)


def run_draw(arguments: DrawArguments) -> int:
    """Run ``fim-server dataset draw``. Raises DatasetError on bad input."""
    manifest = draw(arguments.files, arguments.count, arguments.seed, arguments.out)
    if arguments.json:
        print(json.dumps(manifest))
    else:
        counts = manifest["counts"]
        print(f"{arguments.out}: {counts['samples']:,} of {counts['drawn_from']:,} samples")
    return DONE


def summary(counts: dict[str, Any]) -> str:
    """Return a manifest's counts in one line."""
    parts = [f"{counts['samples']:,} samples"]
    if "files" in counts:
        parts.append(f"from {counts['kept']:,} of {counts['files']:,} files")
        others = {"duplicates": counts["duplicates"], **counts["left_out"]}
        named = ", ".join(f"{number:,} {name}" for name, number in others.items() if number)
        parts.append(f"({named})" if named else "")
    return " ".join(filter(None, parts))


def say_counts(progress: Progress, counts: Counts, started: float) -> None:
    if not progress.is_due():
        return
    dropped = sum(counts.outcomes[name] for name in OUTCOMES[1:])
    text = f"{counts.samples:,} samples, {counts.files:,} files, {dropped:,} left out"
    if not is_terminal(sys.stderr):  # a terminal shows the time
        text += f" ({time.monotonic() - started:.0f} s)"
    progress.update(text)


# --- show ----------------------------------------------------------------------------------------------------------


def run_show(arguments: ShowArguments) -> int:
    """Run ``fim-server dataset show``. Raises DatasetError on bad input."""
    colour = wants_colour(arguments.color)
    if arguments.sample is not None:
        sample = find(arguments.file, arguments.sample)
        print(json.dumps(sample.to_json()) if arguments.json else describe(sample, arguments.context, colour))
        return DONE
    overview = look_over(arguments.file)
    if arguments.json:
        print(json.dumps(overview))
        return DONE
    print(f"{arguments.file}: {overview['samples']:,} samples")
    print(f"{'language':<10}{'set':<22}{'kind':<20}{'samples':>9}  characters of the hole: median, most")
    for row in overview["kinds"]:
        named = f"{row['language']:<10}{row['set']:<22}{row['kind']:<20}"
        print(f"{named}{row['samples']:>9,}  {row['median']:,.0f}, {row['most']:,}")
    first = next(read_samples(arguments.file), None)
    if first is not None:
        print(f"\n{describe(first, arguments.context, colour)}")
    return DONE


def find(path: Path, named: str) -> Sample:
    """Return the sample of an id, or of a number from 1. Raises DatasetError if there is none."""
    if is_whole(named) and int(named) > 0:
        sample = next(islice(read_samples(path), int(named) - 1, None), None)
    else:
        sample = next((one for one in read_samples(path) if one.id == named), None)
    if sample is None:
        raise DatasetError(f"{path}: no sample {named}")
    return sample


def look_over(path: Path) -> dict[str, Any]:
    """Return the counts of a file of samples by language, set and kind, and its manifest, if any."""
    lengths: dict[tuple[str, str, str], list[int]] = {}
    files: Counter[str] = Counter()
    for sample in read_samples(path):
        lengths.setdefault((sample.language, sample.set, sample.kind), []).append(len(sample.middle))
        files[sample.origin.sha256] += 1
    try:
        manifest = parse_json(read_found(manifest_path(path)))
    except (OSError, ValueError):
        manifest = None
    return {
        "samples": files.total(),
        "files": len(files),
        "kinds": [
            {
                "language": language,
                "set": set_,
                "kind": kind,
                "samples": len(of),
                "median": statistics.median(of),
                "most": max(of),
            }
            for (language, set_, kind), of in sorted(lengths.items())
        ],
        "manifest": manifest,
    }


def test_title(test: Test) -> str:
    """Describe a test in a few words."""
    match test:
        case ProgramTest(cases):
            return f"{len(cases)} inputs and outputs"
        case MatchTest(rule):
            return f"the same {rule}"
        case _:
            return test.task_id


def describe(sample: Sample, context: int, colour: bool) -> str:
    """Return a sample for the user: its origin, and the lines around its hole.

    The hole is coloured; without colour, ⟦ and ⟧ mark its ends.
    """
    origin = sample.origin
    package = " ".join(filter(None, (origin.package, origin.version)))
    before = sample.left.split("\n")
    after = sample.right.split("\n")
    line, column = len(before), len(before[-1]) + 1
    left = "\n".join(before[-context - 1 :])
    right = "\n".join(after[: context + 1])
    middle = f"⟦{sample.middle}⟧"
    if colour:  # a terminal's background does not show where a line ends or is empty
        lines = sample.middle.replace("\n", "↵\n").split("\n")
        middle = "\n".join(paint(line, "black on green") for line in lines)
    else:
        middle = escaped(middle)
    heading = [
        sample.id,
        f"{sample.language}, {sample.set}, {sample.kind}: {len(sample.middle):,} characters at {line}:{column}",
        f"{origin.source}: {package + ', ' if package else ''}{origin.path}, {origin.licence or 'licence not known'}",
    ]
    if sample.test is not None:
        heading.append(f"with a test: {test_title(sample.test)}")
    return "\n".join([*(paint(one, "dim", colour) for one in heading), "", f"{escaped(left)}{middle}{escaped(right)}"])
