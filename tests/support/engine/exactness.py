"""The engine against CPython on cuts of real files: `python -m support.engine.exactness --cuts 1000 --seed 1`.

A case is a left, a middle and a right that together are a text which CPython takes. Checked of each:

- refused middle: the middle is viable after every character and complete at its end;
- complete: of its prefixes, of longer texts and of mutated ones, `complete` is CPython's verdict;
- refused prefix: what the engine refuses is completed by none of the texts tried, which CPython judges;
- shortest completion: it exists wherever the middle is viable, and CPython takes the text with it;
- inconsistent: `check` says what advancing says;
- crash: the engine does not panic.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import random
import re
import shlex
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO
from unicodedata import normalize

from fim_server import Language, Session
from fim_server.datasets.judging.examining import OVER, Examination, completion, put
from fim_server.datasets.judging.running import finished, tables
from support.engine.corpus import MUTATIONS, Cut, Reproduction, Source, mutated, shrunk
from support.engine.judge import NEWEST, VERSIONS, Judge, Unavailable
from support.engine.windows import F_STRING, KINDS, PER_FILE, Case, Drawer, Folder, counted, fingerprint, folders

MUTANTS = 5
EXTENSIONS = 4
SHORTEST_STEP = 10  # characters between two shortest completions
MOST_SHORTEST = 4
SEARCHES = 3  # refused prefixes for which a completing text is looked for
SMALLEST_SHOWN = 3  # failures of each check that are shrunk for the summary

PIECES = (
    " ", "\n", "\n    ", "\n\n", "\\\n", "\t", "\r\n", "\x0c", "x", "0", ".5", "é", "_", "'", '"', '"""', "f'", "#",
    "\\", "(", ")", "[", "]", "{", "}", ":", ",", ";", "=", ":=", "==", "!", "!r", ".", "...", "@", "*", "**", "->",
    "-", "~", " if x else y", " for x in y", " in x", " is not x", " as y", " = 1", ": int", "()", "[0]", ".a", "  # c",
    "\n    pass", "\nelse:\n    pass", "lambda: ", "await ", "yield ", "not ", "async ", "match ", "case ", "type ",
    "and", "or", "if", "else", "import", "from", "return", "del", "pass", "None", "print", "except", "finally", "lazy ",
    "lazy import x", "lazy from ", "__future__", "+", "+1", "+ 2j", "[*x for x in y]", "{**x for x in y}", "(*",
)  # fmt: skip
CLOSERS = (
    ")", "]", "}", "'", '"', "'''", '"""', ":", "\n", " x", "x", ": x", ":\n pass\n", "\n    pass\n", "\n  pass\n", "#",
    " pass", "()", "=0", " = 0\n", "0", " x: pass\n", ")\n", "):\n    pass\n", "]\n", "}'", '}"', "}'\n", '}"""\n',
    " else x", " in x", " in x:\n    pass\n", " import x\n", "import x", "except: pass\n", "\nexcept: pass\n", "_",
)  # fmt: skip
CHARACTERS = (
    *map(chr, range(32, 127)),
    "\n",
    "\t",
    "\r",
    "\f",
    "\0",
    "é",
    "·",
    "\u3000",
    "\u00a0",
    "😀",
    "ª",
    "\u200b",
)
IN_F_STRINGS = (
    "{", "}", "{{", "}}", "!r", "!s", "!a", "!x", "!", "!=", ":", ":=", ":>3", ":{w}", "::", "=", "==", "= ", "=!r:",
    "'", '"', "'''", '"""', "\\", "\\n", "\\N{DIGIT ONE}", "\\N", "\n", "#", "# c\n", "f'{x}'", 'f"{x}"', "{x}",
    "{x!r}", "lambda x: 1", "(lambda x: 1)", "x, ", "*x", "**x", "yield", "yield x", "await x", " if x else y", "x:=1",
    "(x:=1)", "{}", "{ }", "{1: 2}", "[1]", "a.b", "'a' 'b'", "x for x in y", "->", "$", "\r\n", " ", "t'{x}'", "b''",
    "not ", ";",
)  # fmt: skip
PREFIXES = ("", "f", "F", "rf", "fr", "Rf", "t", "T", "rt", "tr", "b", "br", "u", "ft", "bf", "uf")
BLANKS = (
    " ",
    "  ",
    "\t",
    "\n",
    "\r",
    "\r\n",
    "\f",
    "\\\n",
    "\\\r\n",
    "\n\n",
    "\n ",
    "\n\t",
    "    ",
    "\u00a0",
    "\v",
    "#\n",
)
OWN_MUTATIONS = ("token", "blank", "character")
NAME = re.compile(r"[^\W\d][\w\ufe33\ufe34\ufe4d-\ufe4f\uff3f]*")
NAMED = re.compile(r"\\N\{[^{}\r\n]*\}")


# ---------------------------------------------------------------- one case


class PythonExamination(Examination[Case]):
    """Examination of cuts in Python files, with CPython as the judge."""

    gave_up = "CPython gave up"
    most_prefixes, incomplete_prefixes = 12, 2
    most_tails = 14
    large = 6_000

    def __init__(self, language: Language, judge: Judge) -> None:
        super().__init__(language)
        self.judge = judge

    def verdicts(self, texts: Sequence[str], claimed: Sequence[bool]) -> Iterator[tuple[bool | None, dict[str, Any]]]:
        for truth in self.judge.verdicts(texts):
            yield truth, {"oracle": truth}

    def difference(self, text: str, engine: bool, facts: dict[str, Any]) -> str | None:
        return documented(self.judge, text, engine)

    def searches(
        self, rng: random.Random, session: Session, refused: Sequence[tuple[str, int]], viable: str
    ) -> list[tuple[str, int]]:
        found = rng.sample(refused, min(len(refused), SEARCHES - 1))
        return found + _refused_character(rng, session, viable)

    def shortest_places(self, rng: random.Random, viable: int, few: int) -> list[int]:
        places = [*range(rng.randrange(SHORTEST_STEP), viable + 1, SHORTEST_STEP)] or [rng.randint(0, viable)]
        return rng.sample(places, min(len(places), max(1, MOST_SHORTEST // few)))

    def extensions(self, rng: random.Random, case: Case) -> Iterator[tuple[str, str]]:
        for _ in range(EXTENSIONS):
            match rng.randrange(4):
                case 0:
                    added = case.right[: rng.randint(1, 12)] or rng.choice(PIECES)
                case 1:
                    added = self.some_token(rng, case)
                case _:
                    added = rng.choice(PIECES)
            yield "extensions", case.middle + added

    def some_token(self, rng: random.Random, case: Case) -> str:
        if not case.tokens:
            return rng.choice(PIECES)
        start, end = rng.choice(case.tokens)
        return rng.choice(("", "", " ")) + case.text[start:end][:40]

    def mutants(self, rng: random.Random, case: Case) -> Iterator[tuple[str, str]]:
        kinds = [*MUTATIONS, *OWN_MUTATIONS]
        chosen = rng.sample(kinds, MUTANTS)
        if F_STRING.search(case.text):
            chosen[: 3 if case.kind == "field" else 1] = ["f-string"] * (3 if case.kind == "field" else 1)
        cut = Cut(Source(case.window.path, case.text, case.tokens), case.start, case.end)
        for kind in chosen:
            yield f"mutants: {kind}", mutated(rng, cut, kind) if kind in MUTATIONS else self._mutated(rng, case, kind)

    def _mutated(self, rng: random.Random, case: Case, kind: str) -> str:
        middle = case.middle
        match kind:
            case "token":
                return self.mutated_tokens(rng, case)
            case "blank":
                places = [at for at, character in enumerate(middle) if character.isspace()]
                return put(rng, middle, places, rng.choice(BLANKS))
            case "f-string":
                prefixes = [found.span() for found in F_STRING.finditer(middle)]
                if prefixes and rng.random() < 0.3:
                    start, end = rng.choice(prefixes)
                    return middle[:start] + rng.choice(PREFIXES) + middle[end:]
                places = [at for at, character in enumerate(middle) if character in "{}:!='\"\\"]
                return put(rng, middle, places, rng.choice(IN_F_STRINGS))
            case _:
                return put(rng, middle, [*range(len(middle))], rng.choice(CHARACTERS))

    def tails(self, rng: random.Random, session: Session, text: str, at: int, middle: str) -> list[str]:
        unused: Counter[str] = Counter()
        found = [text[at + 1 :], "", middle[at + 1 :], middle[at:], middle[at + 2 :]]
        before = completion(session, text[:at], unused)
        if before is not None:
            found += [before, before[1:]]
        if rng.random() < 0.5:
            earlier = completion(session, text[: max(0, at - rng.randint(1, 4))], unused)
            found += [earlier, earlier[1:]] if earlier is not None else []
        else:
            near = text[:at] + rng.choice(("x", " ", "\n", ")", "0", ":", "(", "'", "}"))
            if session.check(near).viable:
                after = completion(session, near, unused)
                found += [after, near[at:] + after] if after is not None else []
        found += rng.sample(CLOSERS, 5)
        found.append(middle[rng.randint(0, len(middle)) :])
        return [tail for tail in dict.fromkeys(found) if OVER not in tail]


def documented(judge: Judge, text: str, engine: bool) -> str | None:
    """The name of the documented difference that alone makes CPython refuse a text which the engine takes."""
    if not engine:
        return None
    message = judge.message(text)
    if "unknown Unicode character name" in message and judge.verdict(NAMED.sub(r"\\N{SPACE}", text)):
        return "name of a character"
    if "limit (4300 digits)" in message and judge.verdict(re.sub(r"(?<![\w.])[\d_]{4301,}(?![\w.])", "1", text)):
        return "digits"
    renamed = NAME.sub(lambda found: "__features__" if normalize("NFKC", found[0]) == "__future__" else found[0], text)
    if re.search("future feature .* is not defined|not a chance", message) and judge.verdict(renamed):
        return "future feature"
    return None


def _refused_character(rng: random.Random, session: Session, viable: str) -> list[tuple[str, int]]:
    """A character that is refused at some viable place."""
    at = rng.randint(0, len(viable))
    state = session.start()
    state.advance(viable[:at])
    for character in rng.sample(CHARACTERS, 12):
        if state.fork().advance(character) < len(character.encode()):
            return [(viable[:at] + character, at)]
    return []


# ---------------------------------------------------------------- smaller failures


def smaller(language: Language, judge: Judge, failure: dict[str, Any]) -> dict[str, Any]:
    """Return the same failure with less text around it."""
    added = failure.get("added", "")

    def fails(case: Reproduction) -> bool:
        return _still(language, judge, failure["check"], case, added) is not None

    case = Reproduction(failure["left"], failure["middle"], failure["right"])
    if not fails(case):
        return failure
    case = shrunk(case, fails, steps=1500)
    again = _still(language, judge, failure["check"], case, added)
    return {**failure, "left": case.left, "middle": case.middle, "right": case.right, **(again or {})}


def _still(language: Language, judge: Judge, check: str, case: Reproduction, added: str) -> dict[str, Any] | None:
    """Return the failure, or None."""
    left, middle, right = case.left, case.middle, case.right
    session = language.open(left, right)
    verdict = session.check(middle)
    text = left + middle + right
    match check:
        case "refused middle" | "complete" | "inconsistent":
            truth = judge.verdict(text)
            differs = (
                truth is not None and truth != verdict.complete and documented(judge, text, verdict.complete) is None
            )
            if differs and (check != "refused middle" or truth):
                return {"engine": verdict.complete, "oracle": truth}
        case "refused prefix":
            if session.guarantee == "exact" and not verdict.viable and judge.verdict(left + middle + added + right):
                return {"engine": False, "oracle": True}
        case "shortest completion" if verdict.viable:
            found = completion(session, middle, Counter())
            if found is None:
                return {"engine": True, "oracle": None, "added": ""}
            text = left + middle + found + right
            if found != OVER and judge.verdict(text) is False and documented(judge, text, True) is None:
                return {"engine": True, "oracle": False, "added": found}
    return None


# ---------------------------------------------------------------- many cases


Share = tuple[list[dict[str, Any]], dict[str, float], dict[tuple[str, str], str]]


class Run:
    """Input of one process for its share of the cases."""

    def __init__(
        self,
        seed: int,
        sources: Sequence[Folder],
        kinds: Sequence[str] = KINDS,
        deadline: float | None = None,
        python: str = NEWEST,
    ) -> None:
        self._seed = seed
        self._deadline = deadline
        self.language = Language.load("python", python)
        self.judge = Judge(python)
        self._examination = PythonExamination(self.language, self.judge)
        self.drawer = Drawer(seed, sources, self.judge, kinds)

    def group(self, indices: Sequence[int]) -> Share:
        """The records of some cases, where the time went, and the files that were read for them."""
        records: list[dict[str, Any]] = []
        seconds: defaultdict[str, float] = defaultdict(float)
        self.drawer.files.clear()
        for index in indices:
            if self._deadline is not None and time.time() > self._deadline:
                break
            started = time.perf_counter()
            case = self.drawer.case(index)
            seconds["drawing"] += time.perf_counter() - started
            if case is None:
                records.append({"index": index, "seed": self._seed, "kind": "none", "counts": {}, "failures": []})
                continue
            result = self._examination.examine(case, random.Random(f"{self._seed}/{index}/checks"))
            for part, spent in result.seconds.items():
                seconds[part] += spent
            records.append({
                "index": index,
                "seed": self._seed,
                "source": case.window.source,
                "path": case.window.path,
                "spans": case.window.spans,
                "kind": case.kind,
                "start": case.start,
                "end": case.end,
                "counts": dict(result.counts),
                "failures": result.failures,
            })  # fmt: skip
        return records, seconds, dict(self.drawer.files)


_run: Run


def _begin(seed: int, sources: Sequence[Folder], kinds: Sequence[str], deadline: float | None, python: str) -> None:
    global _run
    _run = Run(seed, sources, kinds, deadline, python)


def _group(indices: Sequence[int]) -> Share:
    return _run.group(indices)


class Totals:
    """Totals of the records."""

    def __init__(self) -> None:
        self.cases = 0
        self.counts: Counter[str] = Counter()
        self.kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.sources: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.checks: Counter[str] = Counter()
        self.failures: list[dict[str, Any]] = []
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.files: dict[tuple[str, str], str] = {}

    def add(self, record: dict[str, Any]) -> None:
        if record["kind"] == "none":
            self.counts["no window found"] += 1
            return
        self.cases += 1
        self.counts.update(record["counts"])
        for table, name in ((self.kinds, record["kind"]), (self.sources, record["source"])):
            table[name]["cases"] += 1
            table[name]["characters"] += record["counts"].get("characters", 0)
            table[name]["failing"] += bool(record["failures"])
        for failure in record["failures"]:
            self.checks[failure["check"]] += 1
            self.failures.append({"case": record["index"], "kind": record["kind"], **failure})


def summary(totals: Totals, command: str, versions: str, shown: Sequence[dict[str, Any]]) -> str:
    """Return the run's result in Markdown."""
    worked = totals.seconds["engine"] + totals.seconds["oracle"] + totals.seconds["drawing"]
    apart = ("CPython gave up", "over the search's limit", "no window found")
    lines = ["# Exactness", "", f"    {command}", "", versions, ""]
    lines += tables(totals, apart, {"cut": totals.kinds, "source": totals.sources})
    files = ", ".join(f"{number} {state}" for state, number in sorted(counted(totals.files).items()))
    shares = ", ".join(
        f"{totals.seconds[part] / worked:.0%} {part}" for part in ("engine", "oracle", "drawing") if worked
    )
    if totals.seconds["wall"]:
        rate = totals.seconds["cases"] / totals.seconds["wall"]
        lines += ["", f"Files looked at: {files}."]
        lines += [f"{totals.seconds['wall'] / 60:.1f} minutes, {rate:.1f} cases a second, the time: {shares}."]
    for failure in shown:
        lines += ["", *_described(failure)]
    return "\n".join(lines) + "\n"


def _described(failure: dict[str, Any]) -> list[str]:
    names = ("left", "middle", "added", "right", "engine", "oracle", "note")
    facts = [f"    {name} = {failure[name]!r}" for name in names if name in failure and failure[name] != ""]
    return [f"{failure['check']}, case {failure['case']} ({failure['kind']}):", "", *facts]


def _chosen(failures: Iterable[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    taken: Counter[str] = Counter()
    found = []
    for failure in failures:
        taken[failure["check"]] += 1
        if taken[failure["check"]] <= most:
            found.append(failure)
    return found


def run(
    cuts: int,
    seed: int,
    sources: Sequence[Folder],
    kinds: Sequence[str] = KINDS,
    jobs: int = 1,
    deadline: float | None = None,
    out: TextIO | None = None,
    earlier: Iterable[dict[str, Any]] = (),
    python: str = NEWEST,
) -> Totals:
    """Checks cases 0 to `cuts`, apart from those that were checked earlier."""
    totals = Totals()
    done = set()
    for record in earlier:
        totals.add(record)
        done.add(record["index"])
    groups = [
        [index for index in range(at, min(at + PER_FILE, cuts)) if index not in done] for at in range(0, cuts, PER_FILE)
    ]
    started = shown = time.time()
    with ExitStack() as stack:
        if jobs == 1:
            single = Run(seed, sources, kinds, deadline, python)
            stack.callback(single.judge.close)
            results = map(single.group, filter(None, groups))
        else:
            context = multiprocessing.get_context("spawn")
            pool = stack.enter_context(
                ProcessPoolExecutor(jobs, context, _begin, (seed, sources, kinds, deadline, python))
            )
            results = pool.map(_group, filter(None, groups))  # type: ignore[assignment]
        for records, seconds, files in results:
            for record in records:
                totals.add(record)
                if out is not None:
                    out.write(json.dumps(record) + "\n")
            if out is not None:
                out.flush()
            for part, spent in seconds.items():
                totals.seconds[part] += spent
            totals.seconds["cases"] += len(records)
            totals.seconds["wall"] = time.time() - started
            totals.files.update(files)
            if time.time() > shown + 30:
                shown = time.time()
                rate = totals.seconds["cases"] / totals.seconds["wall"]
                print(
                    f"{totals.cases} cases, {len(totals.failures)} failures, {rate:.1f} a second",
                    file=sys.stderr,
                    flush=True,
                )
    return totals


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="exactness.py", description="Compares the engine with CPython on cuts.")
    parser.add_argument("--cuts", type=int, default=1000, help="how many cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--python-version", choices=VERSIONS, default=NEWEST, help="grammar and judge")
    parser.add_argument("--source", action="append", help="stdlib, packages, or a folder; may be repeated")
    parser.add_argument("--kind", action="append", choices=KINDS, help="kind of cut, all by default; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, help="file that gets one JSON line a case")
    parser.add_argument("--report", type=Path, help="file that gets the result in Markdown")
    parser.add_argument("--time-limit", type=float, metavar="MINUTES")
    parser.add_argument("--resume", action="store_true", help="leave out the cases that --out has already")
    options = parser.parse_args(arguments)
    if options.resume and options.out is None:
        parser.error("--resume needs --out")
    try:
        sources = folders(options.source or ["stdlib"])
        earlier = finished(options.out) if options.resume else []
    except OSError as error:
        print(f"exactness: {error}", file=sys.stderr)
        return 2
    deadline = time.time() + 60 * options.time_limit if options.time_limit else None
    try:
        judge = Judge(options.python_version)
    except Unavailable as error:
        print(f"exactness: {error}", file=sys.stderr)
        return 2
    with ExitStack() as stack:
        stack.enter_context(judge)
        out = stack.enter_context(options.out.open("a" if options.resume else "w")) if options.out else None
        kinds, python = options.kind or KINDS, options.python_version
        totals = run(options.cuts, options.seed, sources, kinds, options.jobs, deadline, out, earlier, python)
        language = Language.load("python", python)
        shown = [smaller(language, judge, failure) for failure in _chosen(totals.failures, SMALLEST_SHOWN)]
        versions = (
            f"fim-server {version('fim-server')} on Python {platform.python_version()}; CPython {judge.version} as the "
            f"oracle. Files: {fingerprint(sources)}."
        )
        command = shlex.join(
            ["python", "-m", "support.engine.exactness", *(sys.argv[1:] if arguments is None else arguments)]
        )
        text = summary(totals, command, versions, shown)
    print(text)
    if options.report is not None:
        options.report.write_text(text, encoding="utf-8")
    return 1 if totals.failures else 0


if __name__ == "__main__":
    sys.exit(main())
