"""``fim-server language``: start a language, and check one against real files and its own parser."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fim_server.cli.arguments import add_json, bind, positive
from fim_server.cli.output import DONE, NEGATIVE, complain, print_json, progress, version
from fim_server.errors import DocumentError

if TYPE_CHECKING:
    from fim_server.datasets.judging.running import Plan, Totals, Worker

PLACE = ("check", "number", "path")
FACTS = (*PLACE, "engine", "judge", "said", "note")
"""Fields shown of a failure besides its texts; the first ones say where it is."""

SHOWN = 5
"""Most refused files, ambiguous texts and failures of each check that are shown."""


@dataclass(frozen=True)
class NewArguments:
    """Arguments of ``fim-server language new``."""

    name: str
    folder: str
    suffix: list[str] | None
    token_trees: bool
    own: bool


@dataclass(frozen=True)
class CheckLanguageArguments:
    """Arguments of ``fim-server language check``."""

    language: str
    source: list[str]
    judge: str | None
    language_version: str | None
    variant: str | None
    files: int | None
    cuts: int
    sentences: int
    kind: list[str] | None
    seed: int
    jobs: int
    out: str | None
    report: str | None
    json: bool


def add_language(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "language",
        help="start a language, or check one against its parser",
        description="Start the definition of a language, or check one against real files, and against the language's "
        "own parser on cuts of them.",
    )
    steps = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    beginning = steps.add_parser(
        "new",
        help="write the files of a language, and a folder with its tests",
        description="Write NAME/NAME.lark, NAME/NAME.toml and NAME/tests: a small language that works, as a start.",
    )
    beginning.add_argument("name", metavar="NAME", help="the language's name: small letters, digits and -")
    beginning.add_argument("--folder", metavar="FOLDER", default=".", help="where to create its folder (default: here)")
    beginning.add_argument("--suffix", action="append", metavar=".SUFFIX", help="suffix of its files (default: .NAME)")
    beginning.add_argument(
        "--token-trees",
        action="store_true",
        help="define its brackets, strings and comments alone, by NAME/NAME.toml without a grammar",
    )
    beginning.add_argument("--own", action="store_true", help="write it although the package has one of this name")
    bind(beginning, NewArguments, run_new)
    checking = steps.add_parser(
        "check",
        help="find real files that a language refuses, and differences from its own parser",
        description="Show the size and speed of a language, its ambiguous lexemes, which files it refuses, and where, "
        "and cuts of files whose own middle it refuses. With a judge, the language's own parser, compare both on cuts.",
        epilog="A judge reads, for each text, its length in bytes (four bytes, big-endian) and the text in UTF-8, and "
        "writes a line: ok, no WHY, or ? if it cannot tell. Exit status: 0 no problem found, 1 problems found, 2 bad "
        "input.",
    )
    checking.add_argument("language", metavar="DIR", help="folder of a language, or name of a built-in one")
    checking.add_argument(
        "--source",
        action="append",
        required=True,
        metavar="FILES",
        help="folder of files, or a file; may be repeated",
    )
    checking.add_argument("--judge", metavar="COMMAND", help="the language's parser (default: the built-in one)")
    checking.add_argument("--language-version", metavar="VERSION", help="version of the language (default: the newest)")
    checking.add_argument("--variant", metavar="NAME", help="variant of the language, if its folder has several")
    checking.add_argument("--files", type=positive(int), metavar="N", help="most whole files (default: all)")
    checking.add_argument(
        "--cuts",
        type=positive(int, zero=True),
        default=200,
        metavar="N",
        help="number of cuts; without a judge, of accepted files, whose true middles must fit (default: 200)",
    )
    checking.add_argument(
        "--sentences",
        type=positive(int, zero=True),
        default=0,
        metavar="N",
        help="number of sentences of the grammar to judge too (default: 0; not for languages with layout or modes)",
    )
    checking.add_argument(
        "--kind", action="append", metavar="KIND", help="kind of cuts (default: all); may be repeated"
    )
    checking.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the random numbers (default: 1)")
    checking.add_argument("--jobs", type=positive(int), default=1, metavar="N", help="processes (default: 1)")
    checking.add_argument("--out", metavar="FILE", help="write a line for each cut; cuts in it are not repeated")
    checking.add_argument("--report", metavar="FILE", help="write the result of the cuts in Markdown")
    add_json(checking)
    bind(checking, CheckLanguageArguments, run_check_language)


def run_new(arguments: NewArguments) -> int:
    """Run the command; return the exit status. Raises LanguageError."""
    from fim_server.datasets.judging.beginning import begin

    folder = Path(arguments.folder)
    for path in begin(arguments.name, folder, arguments.suffix, arguments.token_trees, arguments.own):
        print(path)
    return DONE


def run_check_language(arguments: CheckLanguageArguments) -> int:
    """Run the command; return the exit status. Raises LanguageError, JudgeError and DocumentError."""
    from fim_server.datasets.judging.cutting import KINDS
    from fim_server.datasets.judging.running import Plan, files_of, variant_of

    unknown = sorted({*(arguments.kind or ())} - {*KINDS})
    if unknown:
        raise DocumentError(f"no kind of cut {', '.join(unknown)}; known: {', '.join(KINDS)}")
    try:
        grammar = files_of(arguments.language)
    except OSError as error:
        raise DocumentError(str(error)) from error
    chosen = _judging(arguments)
    plan = Plan(
        grammar,
        chosen.judge,
        tuple(map(Path, arguments.source)),
        chosen.version,
        arguments.seed,
        tuple(arguments.kind or KINDS),
        chosen.appeal,
        arguments.variant or variant_of(arguments.language),
    )
    return _checked(arguments, plan, chosen.lacking)


@dataclass(frozen=True)
class Judging:
    """Commands that judge a check, empty for none, the version that they judge, and a line on what is lacking."""

    judge: tuple[str, ...]
    appeal: tuple[str, ...]
    version: str | None
    lacking: str = ""


def _judging(arguments: CheckLanguageArguments) -> Judging:
    """Return the judge of a check, and a line for the user if there is none, or none of the newest version.

    Raises JudgeError if the built-in judge does not know the version that the user names.
    """
    from fim_server.datasets.judging import programs
    from fim_server.language import Language

    wanted = arguments.language_version
    if arguments.judge is not None:
        return Judging(tuple(shlex.split(arguments.judge)), (), wanted)
    name = _judged(arguments)
    reason = programs.unavailable(name)
    if reason is not None:
        return Judging((), (), wanted, f"{reason}; only whole files and their own middles are checked")
    judged, lacking = wanted, ""
    if {name, arguments.language}.issubset(Language.names()):
        judged = programs.judged_version(name, wanted)
        newest = next(reversed(Language.versions(name)), None)
        if wanted is None and judged != newest:
            lacking = f"the judge here does not know {name} {newest}; {name} {judged} is checked"
    return Judging(tuple(programs.command(name, judged)), tuple(programs.appeal(name, judged)), judged, lacking)


def _judged(arguments: CheckLanguageArguments) -> str:
    """Return the name by which a built-in judge knows the language."""
    return arguments.variant or Path(arguments.language).name


def _checked(arguments: CheckLanguageArguments, plan: Plan, lacking: str) -> int:
    from fim_server.datasets.judging.running import Worker, report, run
    from fim_server.datasets.judging.sizes import measured

    with progress(arguments.json) as shown:
        shown.say(f"compiling {plan.grammar.stem}")
        try:
            worker = Worker(plan)
        except OSError as error:
            raise DocumentError(str(error)) from error
        # An error of the definition is one line, without this one.
        if lacking:
            complain(lacking)
        # Fail for a grammar without sentences before hours of cuts.
        drawn = worker.drawn() if plan.judge and arguments.sentences else None
        answer: dict[str, Any] = {
            "language": worker.language.name,
            **measured(plan.definition(), worker.language, worker.files),
        }
        answer["files"] = _files(worker, arguments.files, shown)
        if plan.judge and arguments.cuts:
            last = [0.0]

            def show(totals: Totals, rate: float) -> None:
                if time.monotonic() > last[0] + 1:
                    last[0] = time.monotonic()
                    shown.say(f"{totals.cases} cuts, {len(totals.failures)} failures, {rate:.1f} a second")

            totals = run(plan, arguments.cuts, arguments.jobs, Path(arguments.out) if arguments.out else None, show)
            answer["cuts"] = {
                "cases": totals.cases,
                "judged": totals.counts["texts judged"],
                "failures": dict(totals.checks),
                "documented": {name: n for name, n in totals.counts.items() if name.startswith("documented")},
                "shown": _failures(worker, totals.failures),
            }
            if arguments.report:
                command = shlex.join(["fim-server", *sys.argv[1:]])
                versions = f"fim-server {version()}, judged by {Path(plan.judge[0]).name}"
                Path(arguments.report).write_text(report(totals, command, versions), encoding="utf-8")
        elif arguments.cuts:
            shown.say(f"{arguments.cuts} cuts")
            cut, refused = worker.true_middles(arguments.cuts)
            answer["middles"] = {"cuts": cut, "refused": len(refused), "shown": refused[:SHOWN]}
        if drawn is not None:
            shown.say(f"{arguments.sentences} sentences")
            counts, failures = worker.sentences(drawn, arguments.sentences)
            answer["sentences"] = {**counts, "failures": counts["failures"], "shown": _failures(worker, failures)}
    if arguments.json:
        print_json(answer)
    else:
        _print(answer)
    wrong = (
        answer["files"]["refused"]
        or answer["files"]["taken wrongly"]
        or answer.get("middles", {}).get("refused", 0)
        or sum(answer.get("cuts", {}).get("failures", {}).values())
        or answer.get("sentences", {}).get("failures", 0)
    )
    return NEGATIVE if wrong else DONE


def _files(worker: Worker, most: int | None, shown: Any) -> dict[str, Any]:
    """Count the whole files that the engine and the judge accept."""
    counts = {"read": 0, "taken": 0, "refused": 0, "taken wrongly": 0, "no texts": 0}
    examples: list[dict[str, Any]] = []
    for number, (project, path) in enumerate(worker.files.all()):
        if most is not None and number >= most:
            break
        if number % 20 == 0:
            shown.say(f"{number} files")
        found = worker.whole(path)
        if found is None:
            counts["no texts"] += 1
            continue
        taken, truth, at, said = found
        counts["read"] += 1
        counts["taken"] += taken
        # Without a judge each file counts as correct.
        kind = "refused" if not taken and truth is not False else "taken wrongly" if taken and truth is False else ""
        if kind:
            counts[kind] += 1
            if len(examples) < SHOWN:
                examples.append({"file": str(path), "project": project, "kind": kind, "byte": at, "judge": said})
    return {**counts, "shown": examples}


def _failures(worker: Worker, failures: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    from fim_server.datasets.judging.shrinking import smaller

    judge = worker.judge
    assert judge is not None
    shown: list[dict[str, Any]] = []
    for failure in failures:
        if sum(other["check"] == failure["check"] for other in shown) < SHOWN:
            parts = (failure["left"], failure["middle"] + failure.get("added", ""), failure["right"])
            left, middle, right = smaller(worker.language, judge, worker.differences, parts)
            facts: dict[str, Any] = {key: failure[key] for key in FACTS if key in failure}
            shown.append({**facts, "left": left, "middle": middle, "right": right})
    return shown


def _print(answer: dict[str, Any]) -> None:
    print(
        f"{answer['language']}: {answer['rules']} rules, {answer['lexemes']} lexemes, {answer['states']} lexer states"
    )
    for one, other, text in answer["ambiguous"]:
        print(f"ambiguous: {text!r} is {one} and {other}")
    if "open_ms" in answer:
        print(f"a text of 10,000 characters opens in {answer['open_ms']} ms")
    files = answer["files"]
    print(
        f"{files['taken']} of {files['read']} files taken, {files['refused']} refused, "
        f"{files['taken wrongly']} taken wrongly"
    )
    for example in files["shown"]:
        print(f"  {example['file']}: {example['kind']}, byte {example['byte']} {example['judge']}".rstrip())
    if (middles := answer.get("middles")) and middles["cuts"]:
        print(f"{middles['cuts']} cuts, {middles['refused']} true middles refused")
        for cut in middles["shown"]:
            print(f"  {cut['file']}: refused, characters {cut['start']} to {cut['end']}")
    if (cuts := answer.get("cuts")) is not None:
        print(f"{cuts['cases']} cuts, {cuts['judged']} texts judged, {sum(cuts['failures'].values())} failures")
        for name, number in {**cuts["failures"], **cuts["documented"]}.items():
            print(f"  {name}: {number}")
        _print_failures(cuts["shown"])
    if (sentences := answer.get("sentences")) is not None:
        print(f"{sentences['sentences']} sentences, {sentences['failures']} failures")
        for name, number in sentences.items():
            if name not in ("sentences", "failures", "shown"):
                print(f"  {name}: {number}")
        _print_failures(sentences["shown"])


def _print_failures(failures: Sequence[dict[str, Any]]) -> None:
    for failure in failures:
        facts = ", ".join(f"{key} {failure[key]!r}" for key in FACTS[len(PLACE) :] if key in failure)
        print("  {}, number {} ({}): ".format(*(failure[key] for key in PLACE)) + facts)
        print(f"    {failure['left']!r} + {failure['middle']!r} + {failure['right']!r}")
