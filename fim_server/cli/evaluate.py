"""``fim-server eval``: evaluate a model, and report on runs."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fim_server.cli.arguments import (
    ModelArguments,
    add_json,
    add_model,
    add_seed,
    bind,
    is_whole,
    load_options,
    python_version,
)
from fim_server.cli.output import DONE, NEGATIVE, UNFINISHED
from fim_server.datasets.judging.programs import ASK_ENGINE, ASK_NONE
from fim_server.datasets.python.text import LANGUAGE as PYTHON
from fim_server.evaluation.records import MODES
from fim_server.evaluation.reporting import commands
from fim_server.evaluation.reporting.files import (
    COMPARE_NUMBERS,
    COMPARE_PAGE,
    COMPARE_SUMMARY,
    REPORT_PAGE,
    REPORT_SUMMARY,
)
from fim_server.evaluation.running.settings import Reads
from fim_server.evaluation.running.shards import Shard
from fim_server.language import Language
from fim_server.language.definition.versions import NEWEST
from fim_server.models.loaders import RUNTIMES

if TYPE_CHECKING:
    from fim_server.datasets.samples import Sample
    from fim_server.evaluation.running.settings import WorkerSettings
    from fim_server.evaluation.running.worker import Worker

BATCH, BUDGET, PROMPT_TOKENS = 32, 200, 768

EPILOG = """\
A run is a folder: RUN/run.json holds the arguments, RUN/samples*.jsonl one line for each sample and mode
(docs/evaluation.md). The same command continues a run that was interrupted or killed at any point; it loses only the
batch under way, and repeats nothing. It refuses other settings, except a greater --limit.

One process uses one core well. For two cores, start the command twice with OMP_NUM_THREADS=1 and --shard 1/2 and
--shard 2/2; both write to the same RUN. Shards may run on several machines with RUN on a shared disk, or be copied into
one folder afterwards.

Exit status: 0 done, 1 done except for some samples (their results say why), 2 bad input,
5 out of --minutes, 130 interrupted."""


@dataclass(frozen=True, kw_only=True)
class RunArguments(ModelArguments):
    """Arguments of ``fim-server eval run``."""

    data: Sequence[str]
    out: str
    modes: tuple[str, ...]
    budget: int
    max_prompt_tokens: int
    batch: int
    seed: int
    temperature: float
    judge: Sequence[tuple[str, str]]
    python_version: str | None
    language_version: Sequence[tuple[str, str]]
    no_landing: bool
    contexts: Reads
    no_healing: bool
    single_line: bool
    score: bool
    no_truncation: bool
    unsafe: bool
    untested: bool
    limit: int | None
    minutes: int | None
    shard: Shard
    ray: int | None
    retry_failed: bool
    dry_run: bool


@dataclass(frozen=True, kw_only=True)
class EvalArguments(RunArguments):
    """Arguments of ``fim-server eval`` without a step: a run, and the folder of its report, if any."""

    report: str | None


@dataclass(frozen=True)
class TestArguments:
    """Arguments of ``fim-server eval test``."""

    untested: str
    data: Sequence[str]
    out: str
    unsafe: bool
    minutes: int | None


@dataclass(frozen=True)
class ReportArguments:
    """Arguments of ``fim-server eval report``."""

    runs: Sequence[str]
    out: str
    json: bool


@dataclass(frozen=True)
class CompareArguments:
    """Arguments of ``fim-server eval compare``."""

    a: str
    b: str
    out: str | None
    json: bool


@dataclass(frozen=True)
class TableArguments:
    """Arguments of ``fim-server eval table``."""

    runs: Sequence[str]
    common: bool
    into: Path | None
    block: str
    json: bool


def add_steps(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``fim-server eval``, which are a run and a report at once, and its steps."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    add_run_arguments(parser, required=False)
    parser.add_argument("--report", metavar="DIR", help="write the report of `eval report` there")
    bind(parser, EvalArguments, lambda arguments: run_and_report(parser, arguments))
    steps = parser.add_subparsers(title="steps", metavar="STEP")
    run = steps.add_parser(
        "run",
        help="decode and evaluate samples",
        description="Decode samples in several modes with the same prompts and seeds, and evaluate the texts.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EPILOG,
    )
    add_run_arguments(run, required=True)
    bind(run, RunArguments, run_run)
    testing = steps.add_parser(
        "test",
        help="run the tests of a run's samples",
        description="Run the samples' tests on the texts of a run that was made with --untested, into another run.",
        epilog="Exit status: 0 done, 2 bad input, 5 out of --minutes; the same command continues.",
    )
    add_test(testing)
    reporting = steps.add_parser(
        "report", help="write tables, plots and a page of a run", description="Write the report on one or more runs."
    )
    add_report(reporting)
    comparing = steps.add_parser("compare", help="compare two runs", description="Compare two runs.")
    add_compare(comparing)
    tabling = steps.add_parser(
        "table", help="compare models", description="Print a table for each set, with a row for each model."
    )
    add_table(tabling)


def add_test(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``fim-server eval test``."""
    parser.add_argument("untested", metavar="RUN", help="a folder of `fim-server eval run --untested`")
    parser.add_argument("--data", nargs="+", required=True, metavar="FILE", help="the run's files of samples")
    parser.add_argument("--out", required=True, metavar="TESTED", help="folder of the tested run")
    add_unsafe(parser)
    add_minutes(parser)
    bind(parser, TestArguments, run_test)


def add_report(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``fim-server eval report``."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folders of `fim-server eval run`")
    parser.add_argument(
        "--out", required=True, metavar="DIR", help=f"folder for {REPORT_PAGE}, {REPORT_SUMMARY} and the plots"
    )
    add_json(parser)
    bind(parser, ReportArguments, run_report)


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``fim-server eval compare``."""
    parser.add_argument("a", metavar="A", help="a folder of `fim-server eval run`")
    parser.add_argument("b", metavar="B", help="another one, on the same samples; differences are B - A")
    parser.add_argument(
        "--out",
        metavar="DIR",
        help=f"folder for {COMPARE_PAGE}, {COMPARE_SUMMARY}, {COMPARE_NUMBERS} and the plots",
    )
    add_json(parser, "print one JSON object instead of Markdown")
    bind(parser, CompareArguments, run_compare)


def add_table(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``fim-server eval table``."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="[NAME=]RUN",
        help="folders of `fim-server eval run`; those of one name are one row (default: the folder's name)",
    )
    parser.add_argument("--common", action="store_true", help="use only the samples that all rows of a table have")
    parser.add_argument(
        "--into", type=Path, metavar="PAGE.md", help="write the tables into this page, between two lines"
    )
    parser.add_argument(
        "--block",
        default="tables",
        metavar="NAME",
        help="name in these lines: `<!-- NAME -->` and `<!-- end of NAME -->` (default: tables)",
    )
    add_json(parser)
    bind(parser, TableArguments, run_table)


def add_run_arguments(parser: argparse.ArgumentParser, required: bool) -> None:
    """Add the options of ``fim-server eval run``."""
    parser.add_argument(
        "--data",
        nargs="+",
        required=required,
        metavar="FILE",
        help="samples of `fim-server dataset build`",
    )
    parser.add_argument("--out", required=required, metavar="RUN", help="folder of the run, new or to be continued")
    add_model(parser)
    parser.add_argument(
        "--runtime",
        choices=RUNTIMES,
        help="library that runs the model: torch and llama.cpp decode a batch at once, onnx one sample after another "
        "(default: as for `serve`, onnx if the model has an export)",
    )
    add_prompting(parser)
    add_decoding(parser)
    add_judging(parser)
    add_sharing(parser)


def add_prompting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-prompt-tokens",
        type=at_least(16),
        default=PROMPT_TOKENS,
        metavar="N",
        help=f"longest prompt; longer contexts lose the parts farthest from the hole (default: {PROMPT_TOKENS}, or the "
        "model's window). The engine always sees the whole file",
    )
    parser.add_argument(
        "--contexts",
        type=Reads,
        choices=tuple(Reads),
        default=Reads.BOTH,
        help="contexts in the prompt: both; left, with an empty suffix; left-alone, without control tokens, for a "
        "model that was not trained to fill in (default: both). The engine always sees both",
    )
    parser.add_argument(
        "--no-healing",
        action="store_true",
        help="leave the last token before the hole in the prompt; by default, every text begins with it",
    )


def add_decoding(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--modes",
        type=modes,
        default=MODES,
        metavar="LIST",
        help=f"{', '.join(MODES)}, separated by commas (default: all); checked corrects the unconstrained tokens with "
        "the parser, without a forward pass",
    )
    parser.add_argument(
        "--budget", type=at_least(1), default=BUDGET, metavar="N", help=f"most tokens of a text (default: {BUDGET})"
    )
    parser.add_argument(
        "--single-line",
        action="store_true",
        help="end texts at the line's end in sets whose holes end there, like requests for a single line. The line "
        "break of HumanEval's single lines stays right of the hole. Constrained texts of all sets end at a closer that "
        "begins the right context",
    )
    parser.add_argument(
        "--score",
        action="store_true",
        help="measure the bits of the samples' own middles too, with another forward pass without the grammar",
    )
    parser.add_argument(
        "--no-truncation",
        action="store_true",
        help="leave SAFIM's unconstrained texts as the model ended them, instead of cutting them as the benchmark does",
    )
    parser.add_argument(
        "--batch",
        type=at_least(1),
        default=BATCH,
        metavar="N",
        help=f"samples decoded together (default: {BATCH}); without enough memory, a batch is decoded one by one",
    )
    add_seed(parser)
    parser.add_argument(
        "--temperature",
        type=temperature,
        default=0.0,
        metavar="T",
        help="0: always the likeliest token (default); above 0: sample, all modes with the same seed",
    )


def add_judging(parser: argparse.ArgumentParser) -> None:
    """Add the options of parsing and testing the texts."""
    parser.add_argument(
        "--judge",
        type=judge,
        action="append",
        default=[],
        metavar="[LANGUAGE=]PROGRAM",
        help="parser of the texts. Python: an interpreter (3.9 or newer) with ast.parse (default: this one); LANGUAGE: "
        "a judge of `fim-server language check` (default: the built-in one, if the language's tools are installed), or "
        f"{ASK_ENGINE} for the engine itself, which the report notes, or {ASK_NONE} for a LANGUAGE without a grammar; "
        "may be repeated",
    )
    parser.add_argument(
        "--python-version",
        type=python_version,
        metavar="X.Y",
        help=f"grammar's version for Python, or {NEWEST} (default: the judge's)",
    )
    parser.add_argument(
        "--language-version",
        type=language_version,
        action="append",
        default=[],
        metavar="LANGUAGE=VERSION",
        help="grammar's version for another language (default: the newest that its judge knows); may be repeated",
    )
    parser.add_argument(
        "--no-landing",
        action="store_true",
        help="let constrained texts reach the budget, and cut them back, instead of ending them in time",
    )
    add_unsafe(parser)
    parser.add_argument(
        "--untested",
        action="store_true",
        help="run no tests; `eval test` does so later, on a machine with a sandbox and the languages' compilers",
    )


def add_unsafe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--unsafe",
        action="store_true",
        help="run the samples' tests even without a sandbox (bubblewrap): the model's code then has your rights",
    )


def add_minutes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--minutes",
        type=at_least(1),
        metavar="N",
        help="begin no batch that would end later than this many minutes from now, and exit with status 5 if samples "
        "are left; the same command continues",
    )


def add_sharing(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose and share the samples."""
    parser.add_argument(
        "--limit", type=at_least(1), metavar="N", help="evaluate only the first N samples; may be raised later"
    )
    add_minutes(parser)
    parser.add_argument(
        "--shard",
        type=shard,
        default=Shard(),
        metavar="I/N",
        help="evaluate only part I of N, from 1, into a file of its own",
    )
    parser.add_argument(
        "--ray",
        type=at_least(1),
        metavar="N",
        help="N workers with a model each, on the Ray cluster of RAY_ADDRESS or a local one (extra: cluster); all "
        "machines need the model and fim-server",
    )
    parser.add_argument("--retry-failed", action="store_true", help="evaluate failed samples again")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="write nothing; show the number of samples, how many lose context to the prompt's limit, and the time "
        "that they would take",
    )


def modes(text: str) -> tuple[str, ...]:
    """Parse modes separated by commas, into the order of tables."""
    named = text.split(",")
    unknown = [name for name in named if name not in MODES]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not a mode: {', '.join(MODES)}")
    return tuple(mode for mode in MODES if mode in named)


def at_least(least: int) -> Callable[[str], int]:
    """Return an argument type for whole numbers from ``least`` on."""

    def convert(text: str) -> int:
        if not is_whole(text) or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least} on")
        return int(text)

    return convert


def temperature(text: str) -> float:
    """Parse a finite number from 0 on."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return value


def judge(text: str) -> tuple[str, str]:
    """Parse a language and its judge; without a language it is Python."""
    language, equals, program = text.partition("=")
    return (language, program) if equals and (language in Language.names() or program == ASK_NONE) else (PYTHON, text)


def language_version(text: str) -> tuple[str, str]:
    """Parse a language other than Python, and one of its versions."""
    language, equals, version = text.partition("=")
    if not (equals and language in Language.names()) or language == PYTHON:
        raise argparse.ArgumentTypeError(f"{text!r} is not LANGUAGE=VERSION (for {PYTHON}, use --python-version)")
    if version not in Language.versions(language):
        known = ", ".join(Language.versions(language)) or "none"
        raise argparse.ArgumentTypeError(f"{version!r} is not a known version of {language}: {known}")
    return language, version


def shard(text: str) -> Shard:
    """Parse ``I/N``."""
    try:
        return Shard.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run_run(arguments: RunArguments) -> int:
    """Run the command; return the exit status. Raises RecordError, DatasetError and ModelError."""
    from fim_server.errors import RunError
    from fim_server.evaluation.running.data import all_samples, read_data
    from fim_server.evaluation.running.run import run
    from fim_server.evaluation.running.settings import Asked
    from fim_server.evaluation.running.unit_tests import require_sandbox
    from fim_server.evaluation.running.worker import Worker

    if arguments.ray is not None and arguments.shard.count > 1:
        raise RunError("--ray and --shard both share the work: use one of them")
    data = tuple(arguments.data)
    asked = Asked(
        data,
        Path(arguments.out),
        arguments.batch,
        arguments.limit,
        arguments.shard,
        arguments.retry_failed,
        end_of(arguments.minutes),
    )
    known, ids, languages = read_data(data)  # before loading the model, so that a refusal comes early
    settings = worker_settings(arguments, languages)
    if arguments.ray is None and not arguments.untested:  # a cluster's machines check it themselves
        require_sandbox(all_samples(data, arguments.limit), arguments.unsafe)
    if arguments.dry_run:
        with Worker(settings) as worker:
            return dry_run(arguments, ids, worker)
    try:
        if arguments.ray is None:
            with Worker(settings) as worker:
                ended = run(asked, settings, worker, known, ids)
        else:
            from fim_server.evaluation.running.cluster import Cluster

            with Cluster(settings, arguments.ray) as cluster:
                ended = run(asked, settings, cluster, known, ids)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command continues the run", file=sys.stderr)
        raise
    return say_left(ended.left) or (NEGATIVE if ended.failed else DONE)


def end_of(minutes: int | None) -> float | None:
    """Return the end of a time that begins now, on the monotonic clock."""
    return None if minutes is None else time.monotonic() + 60 * minutes


def say_left(samples: int) -> int:
    """Return the exit status of a run with this many samples left, and say so."""
    if not samples:
        return DONE
    print(f"out of time, {samples:,} samples are left; the same command continues the run", file=sys.stderr)
    return UNFINISHED


def run_test(arguments: TestArguments) -> int:
    """Run the command; return the exit status. Raises RunError, RecordError and DatasetError."""
    from fim_server.evaluation.running.later_tests import test_later

    ends = end_of(arguments.minutes)
    return say_left(test_later(Path(arguments.untested), arguments.data, Path(arguments.out), arguments.unsafe, ends))


def worker_settings(arguments: RunArguments, languages: tuple[str, ...]) -> WorkerSettings:
    from fim_server.evaluation.running.settings import WorkerSettings

    judges = dict(arguments.judge)
    return WorkerSettings(
        model=arguments.model,
        device=arguments.device,
        modes=arguments.modes,
        budget=arguments.budget,
        max_prompt_tokens=arguments.max_prompt_tokens,
        seed=arguments.seed,
        temperature=arguments.temperature,
        judge=judges.pop(PYTHON, None),
        language_version=arguments.python_version,
        landing=not arguments.no_landing,
        runtime=arguments.runtime,
        load=load_options(arguments),
        reads=arguments.contexts,
        heal=not arguments.no_healing,
        single_line=arguments.single_line,
        score=arguments.score,
        truncation=not arguments.no_truncation,
        unsafe=arguments.unsafe,
        tested=not arguments.untested,
        languages=languages,
        judges=judges,
        versions=dict(arguments.language_version),
    )


def run_and_report(parser: argparse.ArgumentParser, arguments: EvalArguments) -> int:
    """Run ``fim-server eval --data ... --out RUN --report DIR``; return the exit status."""
    for name in ("data", "out"):
        if getattr(arguments, name) is None:
            parser.error(f"--{name} is missing, or a step: run, test, report, compare, table")
    status = run_run(arguments)
    if arguments.report is None or arguments.dry_run:
        return status
    return run_report(ReportArguments([arguments.out], arguments.report, json=False)) or status


def run_report(arguments: ReportArguments) -> int:
    """Run the command; return the exit status. Raises RecordError."""
    return commands.run_report(arguments.runs, arguments.out, arguments.json)


def run_compare(arguments: CompareArguments) -> int:
    """Run the command; return the exit status. Raises RecordError."""
    return commands.run_compare(arguments.a, arguments.b, arguments.out, arguments.json)


def run_table(arguments: TableArguments) -> int:
    """Run the command; return the exit status. Raises RecordError."""
    return commands.run_table(arguments.runs, arguments.common, arguments.into, arguments.block, arguments.json)


def dry_run(arguments: RunArguments, ids: Sequence[str], worker: Worker) -> int:
    """Print the size of a run, and its time by decoding a few samples."""
    from fim_server.evaluation.running.data import all_samples
    from fim_server.evaluation.running.progress import duration

    own = len(list(arguments.shard.of(ids[: arguments.limit])))
    timed: list[Sample] = []
    chosen = set(random.Random(0).sample(range(own), min(own, arguments.batch)))
    lengths: list[int] = []
    cut = unusable = 0
    limit = worker.decoder.longest_prompt
    for number, sample in enumerate(arguments.shard.of(all_samples(arguments.data, arguments.limit))):
        try:
            whole = len(worker.decoder.prompt(sample, limit=sys.maxsize >> 8))
        except ValueError:
            unusable += 1
            continue
        lengths.append(min(whole, limit))
        cut += whole > limit
        if number in chosen:
            timed.append(sample)
    print(f"{own} samples, {own * len(arguments.modes)} results: modes {', '.join(arguments.modes)}")
    if lengths:
        lengths.sort()
        median = lengths[len(lengths) // 2]
        print(f"prompts of {lengths[0]} to {lengths[-1]} tokens, median {median}")
        print(f"{cut} samples lose context to the limit of {limit} tokens")
    if unusable:
        print(f"{unusable} samples have no prompt")
    started = time.perf_counter()
    for begin in range(0, len(timed), arguments.batch):
        worker.measure(timed[begin : begin + arguments.batch])
    if timed:
        each = (time.perf_counter() - started) / len(timed)
        workers = arguments.ray or 1
        print(
            f"about {duration(own * each / workers)} with {workers} worker{'s' * (workers > 1)}, by {len(timed)} "
            f"samples decoded now on {worker.model.device} ({each:.2f} s each, {os.cpu_count()} cores here)"
        )
    return DONE
