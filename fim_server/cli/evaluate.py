"""``fim-server eval``: its options, and what they start."""

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
from fim_server.cli.output import DONE, NEGATIVE
from fim_server.datasets.python.text import LANGUAGE as PYTHON
from fim_server.evaluation.records import ASK_ENGINE, MODES
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
from fim_server.language.versions import NEWEST
from fim_server.models.loaders import RUNTIMES

if TYPE_CHECKING:
    from fim_server.datasets.samples import Sample
    from fim_server.evaluation.running.settings import WorkerSettings
    from fim_server.evaluation.running.worker import Worker

BATCH, BUDGET, PROMPT_TOKENS = 32, 200, 768

EPILOG = """\
A run is a folder: RUN/run.json holds what was asked for, RUN/samples*.jsonl one line for each sample and mode
(docs/evaluation.md). The same command goes on with a run that was interrupted, killed or shut down at any point;
nothing is lost but the batch under way, and nothing is there twice. Other settings are refused, but for a greater
--limit.

One process uses one core well. Two cores: start the command twice, with OMP_NUM_THREADS=1 and --shard 1/2 and
--shard 2/2; both write to the same RUN. Shards may run on other machines, where RUN is on a shared disk, or be copied
into one folder afterwards.

Exit status: 0 done, 1 done, but some samples could not be measured now (their results say why), 2 bad input,
130 interrupted."""


@dataclass(frozen=True, kw_only=True)
class RunArguments(ModelArguments):
    """What ``fim-server eval run`` is asked for."""

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
    unsafe: bool
    limit: int | None
    shard: Shard
    ray: int | None
    retry_failed: bool
    dry_run: bool


@dataclass(frozen=True, kw_only=True)
class EvalArguments(RunArguments):
    """What ``fim-server eval`` without a step is asked for: a run, and the folder of a report on it, if any."""

    report: str | None


@dataclass(frozen=True)
class ReportArguments:
    """What ``fim-server eval report`` is asked for."""

    runs: Sequence[str]
    out: str
    json: bool


@dataclass(frozen=True)
class CompareArguments:
    """What ``fim-server eval compare`` is asked for."""

    a: str
    b: str
    out: str | None
    json: bool


@dataclass(frozen=True)
class TableArguments:
    """What ``fim-server eval table`` is asked for."""

    runs: Sequence[str]
    common: bool
    into: Path | None
    block: str
    json: bool


def add_steps(parser: argparse.ArgumentParser) -> None:
    """The options of ``fim-server eval``: those of ``eval run`` and a report at once, and its steps."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    add_run_arguments(parser, required=False)
    parser.add_argument("--report", metavar="DIR", help="write the report on the run there, as `eval report` does")
    bind(parser, EvalArguments, lambda arguments: run_and_report(parser, arguments))
    steps = parser.add_subparsers(title="steps", metavar="STEP")
    run = steps.add_parser(
        "run",
        help="decode and measure samples",
        description="Decode samples in several modes, on the same prompts and seeds, and measure the texts.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EPILOG,
    )
    add_run_arguments(run, required=True)
    bind(run, RunArguments, run_run)
    reporting = steps.add_parser(
        "report", help="tables, plots and a page of a run", description="Write the report on one or more runs."
    )
    add_report(reporting)
    comparing = steps.add_parser("compare", help="two runs beside each other", description="Compare two runs.")
    add_compare(comparing)
    tabling = steps.add_parser(
        "table", help="models beside each other", description="Print a table for each set, with a row for each model."
    )
    add_table(tabling)


def add_report(parser: argparse.ArgumentParser) -> None:
    """The options of ``fim-server eval report``."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folders that `fim-server eval run` wrote")
    parser.add_argument(
        "--out", required=True, metavar="DIR", help=f"where {REPORT_PAGE}, {REPORT_SUMMARY} and the plots go"
    )
    add_json(parser)
    bind(parser, ReportArguments, run_report)


def add_compare(parser: argparse.ArgumentParser) -> None:
    """The options of ``fim-server eval compare``."""
    parser.add_argument("a", metavar="A", help="a folder that `fim-server eval run` wrote")
    parser.add_argument("b", metavar="B", help="another one, on the same samples; differences are B - A")
    parser.add_argument(
        "--out",
        metavar="DIR",
        help=f"where {COMPARE_PAGE}, {COMPARE_SUMMARY}, {COMPARE_NUMBERS} and the plots go",
    )
    add_json(parser, "print one JSON object instead of Markdown")
    bind(parser, CompareArguments, run_compare)


def add_table(parser: argparse.ArgumentParser) -> None:
    """The options of ``fim-server eval table``."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="[NAME=]RUN",
        help="folders that `fim-server eval run` wrote; those of one name are one row (default: the folder's name)",
    )
    parser.add_argument("--common", action="store_true", help="only the samples that all rows of a table have")
    parser.add_argument("--into", type=Path, metavar="PAGE.md", help="write the tables into a page, between two lines")
    parser.add_argument(
        "--block",
        default="tables",
        metavar="NAME",
        help="which lines: `<!-- NAME -->` and `<!-- end of NAME -->` (default: tables)",
    )
    add_json(parser)
    bind(parser, TableArguments, run_table)


def add_run_arguments(parser: argparse.ArgumentParser, required: bool) -> None:
    """The options of ``fim-server eval run``."""
    parser.add_argument(
        "--data",
        nargs="+",
        required=required,
        metavar="FILE",
        help="samples, as `fim-server dataset build` writes them",
    )
    parser.add_argument("--out", required=required, metavar="RUN", help="the run's folder; made, or gone on with")
    add_model(parser)
    parser.add_argument(
        "--runtime",
        choices=RUNTIMES,
        help="what runs the model: torch and llama.cpp decode the samples of a batch together, onnx one after another "
        "(default: as what is served, onnx where the model has an export)",
    )
    add_prompting(parser)
    add_decoding(parser)
    add_judging(parser)
    add_sharing(parser)


def add_prompting(parser: argparse.ArgumentParser) -> None:
    """What the model reads of a sample."""
    parser.add_argument(
        "--max-prompt-tokens",
        type=at_least(16),
        default=PROMPT_TOKENS,
        metavar="N",
        help=f"longest prompt; longer contexts lose what is farthest from the hole (default: {PROMPT_TOKENS}; the "
        "model's window may be shorter). The engine always sees the whole file",
    )
    parser.add_argument(
        "--contexts",
        type=Reads,
        choices=tuple(Reads),
        default=Reads.BOTH,
        help="what stands in the prompt: both contexts; left, with an empty suffix; left-alone, without the format's "
        "control tokens, for a model that was not trained to fill in (default: both). The engine always sees both",
    )
    parser.add_argument(
        "--no-healing",
        action="store_true",
        help="leave the last token left of the hole in the prompt, instead of having every text begin with it",
    )


def add_decoding(parser: argparse.ArgumentParser) -> None:
    """What is decoded for a sample, and how."""
    parser.add_argument(
        "--modes",
        type=modes,
        default=MODES,
        metavar="LIST",
        help=f"of {', '.join(MODES)}, separated by commas (default: all); checked is made from the unconstrained "
        "tokens, with the parser, and costs no forward pass",
    )
    parser.add_argument(
        "--budget", type=at_least(1), default=BUDGET, metavar="N", help=f"tokens of a text, at most (default: {BUDGET})"
    )
    parser.add_argument(
        "--single-line",
        action="store_true",
        help="in sets whose holes end with a line, end every text there, as where an editor asks for one line; of "
        "HumanEval's single lines the line's break is left right of the hole; constrained texts of all sets end at a "
        "closer that the right context begins with",
    )
    parser.add_argument(
        "--score",
        action="store_true",
        help="measure the bits of the samples' own middles, too: one more reading of them, without the grammar",
    )
    parser.add_argument(
        "--batch",
        type=at_least(1),
        default=BATCH,
        metavar="N",
        help=f"samples decoded together (default: {BATCH}); a batch for which the memory does not suffice is "
        "decoded one by one",
    )
    add_seed(parser)
    parser.add_argument(
        "--temperature",
        type=temperature,
        default=0.0,
        metavar="T",
        help="0 takes the likeliest token (default), more draws; all modes of a sample draw with the same seed",
    )


def add_judging(parser: argparse.ArgumentParser) -> None:
    """What says whether a text parses, and whether it does what it should."""
    parser.add_argument(
        "--judge",
        type=judge,
        action="append",
        default=[],
        metavar="[LANGUAGE=]PROGRAM",
        help="what says what parses: the Python (3.9 or newer) whose ast.parse does so for Python (default: the one "
        "that runs this); for LANGUAGE a judge as of `fim-server language check` (default: the package's own, built "
        f"where the language's tools are), or {ASK_ENGINE}, the engine's own verdict, which the report says; may be "
        "given several times",
    )
    parser.add_argument(
        "--python-version",
        type=python_version,
        metavar="X.Y",
        help=f"of Python, the version whose grammar counts, or {NEWEST} (default: the judge's)",
    )
    parser.add_argument(
        "--language-version",
        type=language_version,
        action="append",
        default=[],
        metavar="LANGUAGE=VERSION",
        help="of another language, the version whose grammar counts (default: the newest that its judge knows); may be "
        "given several times",
    )
    parser.add_argument(
        "--no-landing",
        action="store_true",
        help="let constrained texts run into the budget's end, and cut them back, instead of ending them in time",
    )
    parser.add_argument(
        "--unsafe",
        action="store_true",
        help="where there is no sandbox (bubblewrap), run the samples' own tests all the same: what the model wrote "
        "can then do what you can",
    )


def add_sharing(parser: argparse.ArgumentParser) -> None:
    """Which samples are measured now, and by how many processes."""
    parser.add_argument("--limit", type=at_least(1), metavar="N", help="only the first N samples; may be raised later")
    parser.add_argument(
        "--shard",
        type=shard,
        default=Shard(),
        metavar="I/N",
        help="only the I-th of N parts of the samples, into a file of its own; I from 1 to N",
    )
    parser.add_argument(
        "--ray",
        type=at_least(1),
        metavar="N",
        help="N workers with a model each, on the Ray cluster of RAY_ADDRESS or a local one (extra: cluster); model "
        "and fim-server have to be there on all its machines",
    )
    parser.add_argument("--retry-failed", action="store_true", help="measure the samples again that could not be")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="write nothing; say how many samples there are, how many lose context to the prompt's limit, and about "
        "how long they would take",
    )


def modes(text: str) -> tuple[str, ...]:
    """Modes separated by commas, in the order of tables."""
    named = text.split(",")
    unknown = [name for name in named if name not in MODES]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not a mode: {', '.join(MODES)}")
    return tuple(mode for mode in MODES if mode in named)


def at_least(least: int) -> Callable[[str], int]:
    """An argument type for whole numbers from ``least`` on."""

    def convert(text: str) -> int:
        if not is_whole(text) or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least} on")
        return int(text)

    return convert


def temperature(text: str) -> float:
    """A finite number from 0 on."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return value


def judge(text: str) -> tuple[str, str]:
    """A language and what judges it; the language is Python where none is named."""
    language, equals, program = text.partition("=")
    return (language, program) if equals and language in Language.names() else (PYTHON, text)


def language_version(text: str) -> tuple[str, str]:
    """A language other than Python, and one of its versions."""
    language, equals, version = text.partition("=")
    if not (equals and language in Language.names()) or language == PYTHON:
        raise argparse.ArgumentTypeError(f"{text!r} is not LANGUAGE=VERSION (of {PYTHON} --python-version is)")
    if version not in Language.versions(language):
        known = ", ".join(Language.versions(language)) or "none"
        raise argparse.ArgumentTypeError(f"{version!r} is not a known version of {language}: {known}")
    return language, version


def shard(text: str) -> Shard:
    """``I/N``."""
    try:
        return Shard.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run_run(arguments: RunArguments) -> int:
    """``fim-server eval run``: the exit status. Raises RecordError, DatasetError and ModelError."""
    from fim_server.errors import RunError
    from fim_server.evaluation.running.data import all_samples, read_data
    from fim_server.evaluation.running.run import run
    from fim_server.evaluation.running.settings import Asked
    from fim_server.evaluation.running.unit_tests import require_sandbox
    from fim_server.evaluation.running.worker import Worker

    if arguments.ray is not None and arguments.shard.count > 1:
        raise RunError("--ray and --shard are two ways to share the work: name one of them")
    data = tuple(arguments.data)
    asked = Asked(data, Path(arguments.out), arguments.batch, arguments.limit, arguments.shard, arguments.retry_failed)
    known, ids, languages = read_data(data)  # before the model is loaded: a refusal should not wait for it
    settings = worker_settings(arguments, languages)
    if not arguments.unsafe and arguments.ray is None:  # a cluster's machines say so themselves
        require_sandbox(all_samples(data, arguments.limit))
    if arguments.dry_run:
        with Worker(settings) as worker:
            return dry_run(arguments, ids, worker)
    try:
        if arguments.ray is None:
            with Worker(settings) as worker:
                failures = run(asked, settings, worker, known, ids)
        else:
            from fim_server.evaluation.running.cluster import Cluster

            with Cluster(settings, arguments.ray) as cluster:
                failures = run(asked, settings, cluster, known, ids)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on with it", file=sys.stderr)
        raise
    return NEGATIVE if failures else DONE


def worker_settings(arguments: RunArguments, languages: tuple[str, ...]) -> WorkerSettings:
    """What the workers are told. ``languages``: of the samples."""
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
        unsafe=arguments.unsafe,
        languages=languages,
        judges=judges,
        versions=dict(arguments.language_version),
    )


def run_and_report(parser: argparse.ArgumentParser, arguments: EvalArguments) -> int:
    """``fim-server eval --data ... --out RUN --report DIR``."""
    for name in ("data", "out"):
        if getattr(arguments, name) is None:
            parser.error(f"--{name} is missing, or a step: run, report, compare, table")
    status = run_run(arguments)
    if arguments.report is None or arguments.dry_run:
        return status
    return run_report(ReportArguments([arguments.out], arguments.report, json=False)) or status


def run_report(arguments: ReportArguments) -> int:
    """``fim-server eval report``: the exit status. Raises RecordError."""
    return commands.run_report(arguments.runs, arguments.out, arguments.json)


def run_compare(arguments: CompareArguments) -> int:
    """``fim-server eval compare``: the exit status. Raises RecordError."""
    return commands.run_compare(arguments.a, arguments.b, arguments.out, arguments.json)


def run_table(arguments: TableArguments) -> int:
    """``fim-server eval table``: the exit status. Raises RecordError."""
    return commands.run_table(arguments.runs, arguments.common, arguments.into, arguments.block, arguments.json)


def dry_run(arguments: RunArguments, ids: Sequence[str], worker: Worker) -> int:
    """Say what a run would be, having decoded a few of its samples."""
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
            f"samples decoded just now on {worker.model.device} ({each:.2f} s each, {os.cpu_count()} cores here)"
        )
    return DONE
