"""Runs over many cases in several processes, and their sums."""

from __future__ import annotations

import json
import os
import random
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

from fim_server.datasets.judging.cutting import KINDS, PER_WINDOW, Files, Looks, cases, text_of
from fim_server.datasets.judging.differences import Differences
from fim_server.datasets.judging.examining import CHECKS, Examiner
from fim_server.datasets.judging.judge import Judge
from fim_server.datasets.judging.sentences import Sentences
from fim_server.errors import LanguageError
from fim_server.language import Language
from fim_server.language.definition.compile import (
    Definition,
    builtin_files,
    builtin_variant,
    has_token_trees,
    lower,
    read,
)
from fim_server.language.definition.sources import read_source

MIDDLES = (1, 5, 20, 60, 200)
"""Characters of middles that are checked without a judge."""

PER_FILE = 3
"""Cuts of one file that are checked without a judge."""

DRAWS = 4
"""Most draws of files for each of these cuts: a file may be refused."""


@dataclass(frozen=True)
class Plan:
    """Plan of a comparison.

    Attributes:
        grammar: The language's grammar file, with the TOML file beside it.
        judge: The judge's command.
        appeal: Command of the judge with the last word; empty for none.
        sources: Folders of files, each a project.
        version: Version of the language; None is the newest.
    """

    grammar: Path
    judge: tuple[str, ...]
    sources: tuple[Path, ...]
    version: str | None
    seed: int
    kinds: tuple[str, ...] = KINDS
    appeal: tuple[str, ...] = ()
    variant: str | None = None

    def definition(self) -> Definition:
        """Read the language's definition.

        Raises:
            LanguageError: It is wrong.
        """
        return read(self.grammar, self.grammar.with_suffix(".toml"), self.version, self.variant)


def files_of(name_or_folder: str) -> Path:
    """Return the path of the grammar of a language of the package, or of the one in a folder.

    No file is there for a language of token trees.

    Raises:
        LanguageError: There is no such language, or a TOML file cannot be read, or is no TOML.
        OSError: The folder has not exactly one grammar.
    """
    if name_or_folder in Language.names():
        return builtin_files(name_or_folder)[0]
    found = sorted(Path(name_or_folder).glob("*.toml"))
    named = [path for path in found if path.with_suffix(".lark").is_file() or has_token_trees(read_source(path))]
    if not named:
        _raise_if_no_toml(found)
    if len(named) != 1:
        raise FileNotFoundError(f"{name_or_folder}: no language, and no folder with one NAME.lark and its NAME.toml")
    return named[0].with_suffix(".lark")


def _raise_if_no_toml(paths: Sequence[Path]) -> None:
    """Raise LanguageError for the first file that is no TOML: its error may hide that it is a definition."""
    for path in paths:
        text = read_source(path)
        try:
            tomllib.loads(text)
        except (RecursionError, ValueError) as error:
            raise LanguageError(f"language definition: {path}: {error}") from error


def variant_of(name_or_folder: str) -> str | None:
    """Return the variant that a language of the package is; None for a folder.

    Raises:
        LanguageError: Two languages have one name.
    """
    return builtin_variant(name_or_folder) if name_or_folder in Language.names() else None


class Worker:
    """Language, judge and files of one process."""

    def __init__(self, plan: Plan) -> None:
        definition = plan.definition()
        self.plan = plan
        self.language = Language(definition)
        self.looks = Looks.of(definition)
        self.judge = Judge(plan.judge, plan.appeal) if plan.judge else None
        self.differences = Differences.of(plan.grammar.parent)
        self.files = Files(plan.sources, definition.suffixes, definition.longer_suffixes)

    def group(self, first: int) -> list[dict[str, Any]]:
        """Return the records of the cases of one text. There has to be a judge."""
        assert self.judge is not None
        examiner = Examiner(self.language, self.looks, self.judge, self.differences)
        rng = random.Random(f"{self.plan.seed}/{first}")
        records = []
        for case in cases(rng, self.looks, self.judge, self.files, first, self.plan.kinds):
            result = examiner.examine(case, random.Random(f"{self.plan.seed}/{case.index}/checks"))
            records.append({
                "index": case.index, "kind": case.kind, "path": case.path, "counts": dict(result.counts),
                "failures": result.failures,
            })  # fmt: skip
        return records

    def drawn(self) -> Sentences:
        """Return the drawer of the grammar's sentences.

        Raises:
            LanguageError: The grammar has a layout or modes.
        """
        rng = random.Random(f"{self.plan.seed}/sentences")
        return Sentences(lower(self.plan.definition()), self.language, rng)

    def sentences(self, drawn: Sentences, count: int) -> tuple[Counter[str], list[dict[str, Any]]]:
        """Draw sentences of the grammar; return counts, and those that the judge refuses. There has to be a judge."""
        assert self.judge is not None
        counts: Counter[str] = Counter()
        failures = []
        for number, text in enumerate(drawn.drawn(count)):
            counts["sentences"] += 1
            # Where lexemes that touch nowhere else are read otherwise, a text is none of the language's.
            if not self.language.open("", "").check(text).complete:
                counts["not read as drawn"] += 1
                continue
            truth, said = self.judge.decided(text, claimed=True)
            if truth is not False:
                continue
            name = self.differences.name(text, engine=True, said=said)
            counts["failures" if name is None else f"documented: {name}"] += 1
            if name is None:
                failures.append({
                    "check": "sentence", "number": number, "path": "", "left": "", "middle": text, "right": "",
                    "engine": True, "judge": False, "said": said,
                })  # fmt: skip
        return counts, failures

    def close(self) -> None:
        if self.judge is not None:
            self.judge.close()

    def whole(self, path: Path) -> tuple[bool, bool | None, int, str] | None:
        """Return the verdicts of engine and judge on a file, the bytes that the engine takes, and a message."""
        text = text_of(path)
        if text is None:
            return None
        state = self.language.open("", "").start()
        encoded = text.encode()
        at = state.advance(text)
        taken = at == len(encoded) and state.is_complete()
        if self.judge is None:
            return taken, None, at, ""
        truth, said = self.judge.decided(text, taken)
        return taken, truth, at, said

    def true_middles(self, count: int) -> tuple[int, list[dict[str, Any]]]:
        """Cut accepted files at random, without a judge; return the number of cuts, and the refused true middles.

        Args:
            count: Most cuts.
        """
        rng = random.Random(f"{self.plan.seed}/true middles")
        cuts, refused = 0, []
        for _ in range(DRAWS * count):
            drawn = self.files.drawn(rng)
            if cuts == count:
                break
            if drawn is None or not drawn[2] or not self.language.open("", "").check(drawn[2]).complete:
                continue
            _, path, text = drawn
            for _ in range(min(PER_FILE, count - cuts)):
                start = rng.randrange(len(text))
                end = min(start + rng.choice(MIDDLES), len(text))
                cuts += 1
                if not self.language.open(text[:start], text[end:]).check(text[start:end]).complete:
                    refused.append({"file": str(path), "start": start, "end": end})
        return cuts, refused


@dataclass
class Totals:
    """Sums of a run's records."""

    cases: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    kinds: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    projects: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    failures: list[dict[str, Any]] = field(default_factory=list)

    def add(self, record: dict[str, Any]) -> None:
        self.cases += 1
        self.counts.update(record["counts"])
        for table, name in ((self.kinds, record["kind"]), (self.projects, record["path"].split("/")[0])):
            table[name]["cases"] += 1
            table[name]["characters"] += record["counts"].get("characters", 0)
            table[name]["failing"] += bool(record["failures"])
        for failure in record["failures"]:
            self.checks[failure["check"]] += 1
            self.failures.append({"number": record["index"], "kind": record["kind"], "path": record["path"], **failure})


_worker: Worker


def _begin(plan: Plan) -> None:
    global _worker
    _worker = Worker(plan)


def _group(first: int) -> list[dict[str, Any]]:
    return _worker.group(first)


def run(
    plan: Plan, cuts: int, jobs: int, out: Path | None = None, told: Callable[[Totals, float], None] = lambda *_: None
) -> Totals:
    """Check cases 0 to `cuts`, except those in an earlier file of records.

    Args:
        plan: The comparison.
        cuts: Number of cases.
        jobs: Processes.
        out: The file that gets a JSON line a case.
        told: Called now and then with the sums and the cases a second.
    """
    totals = Totals()
    done = set()
    for record in finished(out) if out else ():
        totals.add(record)
        done.add(record["index"])
    firsts = [first for first in range(0, cuts, PER_WINDOW) if first not in done]
    started, earlier = time.monotonic(), totals.cases
    with out.open("a", encoding="utf-8") if out else open(os.devnull, "w") as file:  # noqa: PTH123
        for records in _results(plan, firsts, jobs):
            for record in records:
                totals.add(record)
                file.write(json.dumps(record) + "\n")
            file.flush()
            told(totals, (totals.cases - earlier) / (time.monotonic() - started))
    return totals


def _results(plan: Plan, firsts: Sequence[int], jobs: int) -> Iterator[list[dict[str, Any]]]:
    if jobs == 1:
        worker = Worker(plan)
        try:
            yield from map(worker.group, firsts)
        finally:
            worker.close()
    else:
        with ProcessPoolExecutor(jobs, get_context("spawn"), _begin, (plan,)) as pool:
            yield from pool.map(_group, firsts)


def finished(path: Path) -> list[dict[str, Any]]:
    """Return the records of an earlier run, and drop an incomplete last line from their file."""
    if not path.exists():
        return []
    records, whole = [], 0
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            records.append(json.loads(line))
            whole += len(line)
    os.truncate(path, whole)
    return records


class Summed(Protocol):
    """Sums of a run's records."""

    cases: int
    counts: Counter[str]
    checks: Counter[str]
    failures: list[dict[str, Any]]


def tables(totals: Summed, apart: Sequence[str], rows: Mapping[str, Mapping[str, Counter[str]]]) -> list[str]:
    """Return the tables of a run's result in Markdown, as lines.

    Args:
        totals: The sums.
        apart: Counts that stand apart, besides those of documented differences.
        rows: Sums by kind of cut, project and so on, under the title of their table.
    """
    counts, checks = totals.counts, totals.checks
    listed = {name: number for name, number in sorted(counts.items()) if name.startswith("documented")}
    listed |= {name: counts[name] for name in apart}
    lines = [f"**{totals.cases} cases, {len(totals.failures)} failures.**", "", "| check | failures |", "|---|---:|"]
    lines += [f"| {check} | {checks[check]} |" for check in (*CHECKS, *(name for name in checks if name not in CHECKS))]
    lines += ["", "| counted apart | texts |", "|---|---:|"]
    lines += [f"| {name} | {number} |" for name, number in listed.items()]
    lines += ["", "| what was done | number |", "|---|---:|"]
    lines += [f"| {name} | {number} |" for name, number in sorted(counts.items()) if name not in listed]
    for title, table in rows.items():
        lines += ["", f"| {title} | cases | characters | failing cases |", "|---|---:|---:|---:|"]
        for name, row in sorted(table.items()):
            lines.append(f"| {name} | {row['cases']} | {row['characters']} | {row['failing']} |")
    return lines


def report(totals: Totals, command: str, versions: str) -> str:
    apart = ("the judge gave up", "over the search's limit")
    lines = [f"    {command}", "", versions, ""]
    lines += tables(totals, apart, {"cut": totals.kinds, "project": totals.projects})
    return "\n".join(lines) + "\n"
