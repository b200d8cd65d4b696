"""A fuzzer of sessions: `python -m support.engine.session_fuzzer --minutes 60 --seed 1`.

Real files are cut and spoilt. Sessions on them are opened, moved, checked, stopped and asked from several threads, and
their states and matchers are moved to and fro. Each answer is compared with a plainer one (`session_world`). A seed and
a number name a case. A failing case is made smaller and printed for tests/cases/sessions.json, which the short form
(tests/engine/test_session_fuzzer.py) runs first.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.engine import json_documents
from support.engine.corpus import MUTATIONS, Cut, cuts, mutated
from support.engine.session_world import SHAPES, Difference, Operation, World, vocabulary

KEPT = Path(__file__).parents[2] / "cases" / "sessions.json"
LANGUAGES = ("python", "json")
LIMIT = 8_000  # bytes of a file
OPERATIONS = (8, 24)  # of a case
REPLAYS, SHRINKING = 600, 120.0
"""Worlds in which a failing case is tried smaller, and seconds for it."""

PIECES = {
    "python": (
        *(" ", "    ", "\t", "\n", "\n    ", "\n\n", "\\\n", "\f", "\r\n", "\r", "#", "# c\n", "a", "é", "变", "😀"),
        *("x.y", "if a:", "else:", "def f():", "try:", "except:", "match a:", "case b:", "@a\n", "lambda a: "),
        *("(", ")", "[", "]", "{", "}", ":", ";", "=", ",", "'", '"', '"""', "'''", "f'", "b'", "\\", "1", "0x", "."),
        *("**", "->", ":=", "not ", " in ", " is ", "await ", "async ", "import ", "pass", "\0", "*", "!r", "return "),
    ),
    "json": (
        *(" ", "\n", "\t", "\r", "[", "]", "{", "}", ":", ",", '"', '"a"', "\\", "\\u00", "\\ud83d", "0", "-", "1.5"),
        *("E+1", "true", "fal", "null", "é", "变", "😀", "\0", "NaN", "'", "//", '"a":', "[]", "{}", "\x7f", "\ufeff"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """A case that failed, in its smallest form."""

    name: str
    language: str
    operations: list[Operation]
    problem: str

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.problem}"]
        lines += [f"  {json.dumps(operation, ensure_ascii=True)}" for operation in self.operations]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "language": self.language, "operations": self.operations, "note": self.problem}


# --- what is drawn -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Text:
    """A text that its language takes, cut in three."""

    left: str
    middle: str
    right: str
    cut: Cut | None = None


class Writer:
    """Draws the operations of a case, looking at the world in which they are carried out."""

    def __init__(self, language: str, name: str, text: Text) -> None:
        self.language, self.text = language, text
        self.draw = random.Random(name)
        self.rest = text.middle
        self.at = 0

    def first(self) -> Operation:
        left, right = self.text.left, self.text.right
        if self.draw.random() < 0.25:
            left = self.spoilt(left)
        if self.draw.random() < 0.25:
            right = self.spoilt(right)
        return [self.draw.choice(("open", "reuse")), left, right]

    def next(self, world: World) -> Operation:
        """The next operation, whatever the world is like."""
        draw = self.draw
        index, middle = draw.randrange(8), self.middle()
        makers: dict[str, tuple[float, Callable[[], Operation]]] = {
            "move": (2, lambda: ["move", self.moved(world.left)]),
            "reuse": (1, lambda: ["reuse", self.moved(world.left), self.spoilt(world.right)]),
            "back": (1, lambda: ["reuse", self.moved(world.left), world.right]),
            "again": (1, lambda: ["again", index]),
            "check": (4, lambda: ["check", middle]),
            "grammar": (0.3, lambda: ["grammar"]),
            "start": (0.5, lambda: ["start"]),
            "advance": (4, lambda: ["advance", index, self.typed(world, index)]),
            "rollback": (1.5, lambda: ["rollback", index, draw.choice((0, 1, 1, 2, 2, 5, 20, 1 << 40))]),
            "fork": (1, lambda: ["fork", index]),
            "observe": (1.5, lambda: ["observe", index, draw.random() < 0.5]),
            "shortest": (1.5, lambda: ["shortest", index]),
            "explain": (1, lambda: ["explain", index, draw.choice((middle, self.piece()))]),
            "matcher": (0.5, lambda: ["matcher", draw.randrange(len(SHAPES))]),
            "commit": (5, lambda: ["commit", index, self.token(world, index)]),
            "take_back": (1, lambda: ["take_back", index, draw.choice((0, 1, 1, 2, 7, 1 << 40))]),
            "mask": (2, lambda: ["mask", index, draw.randrange(1 << 20)]),
            "plan": (1.5, lambda: ["plan", index, draw.choice((0, 0, 3, 10))]),
            "land": (0.7, lambda: ["land", index, draw.choice((0, 1, 3, 8)), draw.randrange(1 << 20)]),
            "forced": (0.7, lambda: ["forced", index]),
            "stop": (0.5, lambda: ["stop", draw.choice((0.0, 0.05, 0.3, 1, 3)), self.moved(world.left), middle]),
            "threads": (0.3, lambda: ["threads", [self.middle() for _ in range(3)], draw.choice((0.1, 1.0, 5.0))]),
        }  # fmt: skip
        chosen = draw.choices(list(makers), [weight for weight, _ in makers.values()])[0]
        return makers[chosen][1]()

    def piece(self) -> str:
        return self.draw.choice(PIECES[self.language])

    def middle(self) -> str:
        """A middle that may fit: the true one, its beginnings, and what comes of small changes of it."""
        draw, text = self.draw, self.text
        match draw.randrange(6):
            case 0:
                return text.middle
            case 1:
                return text.middle[: draw.randint(0, len(text.middle))]
            case 2 if text.cut is not None:
                return mutated(draw, text.cut, draw.choice(MUTATIONS))
            case 3:
                return "".join(self.piece() for _ in range(draw.randrange(5)))
            case _:
                return self.spoilt(text.middle)

    def spoilt(self, text: str) -> str:
        """A text with something taken out, put in, doubled, or its line breaks and blanks changed."""
        draw = self.draw
        for _ in range(draw.choice((1, 1, 2, 4))):
            start = draw.randint(0, len(text))
            end = min(len(text), start + draw.choice((0, 1, 2, 10, 60)))
            match draw.randrange(7):
                case 0:
                    text = text[:start] + text[end:]
                case 1 | 2:
                    text = text[:start] + self.piece() + text[start:]
                case 3:
                    text = text[:start] + self.piece() + text[end:]
                case 4:
                    text = text[:end] + text[start:]
                case 5:
                    lines = text.split("\n")
                    at = draw.randrange(len(lines))
                    lines[at] = draw.choice(("", " ", "\t", "    ")) + lines[at].lstrip(draw.choice((" ", " \t", "")))
                    text = "\n".join(lines)
                case _:
                    text = text[:start] if draw.random() < 0.5 else text[:start].replace("\n", "\r\n") + text[start:]
        return text

    def moved(self, left: str) -> str:
        """A left context after a keystroke, or after something larger."""
        draw = self.draw
        match draw.randrange(6):
            case 0 | 1:
                self.at = min(self.at + draw.randint(1, 4), len(self.text.middle))
                return self.text.left + self.text.middle[: self.at]
            case 2:
                return left[: len(left) - draw.choice((1, 1, 3, 30))]
            case 3:
                return left + self.piece()
            case 4:
                return self.text.left
            case _:
                return self.spoilt(left)

    def typed(self, world: World, index: int) -> str:
        """Text to append to a state: the continuation of the true middle, or any text; Latin-1 for bytes."""
        draw = self.draw
        if draw.random() < 0.6:
            start = len(world.states[index % len(world.states)].middle) if world.states else 0
            data = self.text.middle.encode()[start : start + draw.randint(1, 20)]
        elif draw.random() < 0.8:
            data = "".join(self.piece() for _ in range(draw.randint(1, 3))).encode()
        else:
            data = bytes(draw.randrange(256) for _ in range(draw.randint(1, 3)))
        return data.decode("latin-1")

    def token(self, world: World, index: int) -> int:
        """A token, mostly one that is allowed."""
        if self.draw.random() < 0.85 and world.matchers:
            allowed = np.flatnonzero(world.matchers[index % len(world.matchers)].matcher.mask()).tolist()
            if allowed:
                return int(self.draw.choice(allowed))
        return self.draw.randrange(vocabulary().size)


def text_of(language: str, name: str, files: Iterator[Cut]) -> Text:
    draw = random.Random(f"text {name}")
    if language == "python":
        cut = next(files)
        return Text(cut.left, cut.middle, cut.right, cut)
    text = json_documents.document(name)[:LIMIT]
    start = draw.randrange(len(text) + 1)
    end = min(len(text), start + draw.randrange(60))
    return Text(text[:start], text[start:end], text[end:])


# --- cases ---------------------------------------------------------------------------------------------------------


def problem_of(language: str, operations: Sequence[Operation]) -> str | None:
    """Return the problem when operations run in a new world."""
    world = World(language)
    for operation in operations:
        problem = problem_in(world, operation)
        if problem is not None:
            return problem
    return None


def problem_in(world: World, operation: Operation) -> str | None:
    try:
        world.do(operation)
    except (KeyboardInterrupt, SystemExit):
        raise
    except Difference as difference:
        return f"{operation[0]}: {difference}"
    except BaseException as error:  # noqa: BLE001, a panic of the engine is no Exception
        return f"{operation[0]}: {type(error).__name__}: {error}"
    return None


def kind_of(problem: str) -> str:
    """Return the part of a problem that stays the same while its case is made smaller."""
    return " ".join(problem.split("(")[0].split("'")[0].split()[:4])


@dataclass
class Fuzzer:
    """Cases of one seed, one after the other."""

    seed: int
    languages: Sequence[str] = LANGUAGES
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    slowest: dict[str, tuple[float, str]] = field(default_factory=dict)
    """By operation, the seconds of the slowest one and its case."""
    number: int = 0

    def __post_init__(self) -> None:
        self._files = cuts(random.Random(f"files {self.seed}"), LIMIT, 1)

    def case(self) -> Finding | None:
        """The next case."""
        language = self.languages[self.number % len(self.languages)]
        name = f"{language} {self.seed}:{self.number}"
        self.number += 1
        text = text_of(language, name, self._files)
        writer, world = Writer(language, name, text), World(language)
        operations: list[Operation] = []
        self.counts["cases"] += 1
        for index in range(writer.draw.randint(*OPERATIONS)):
            operation = writer.first() if index == 0 else writer.next(world)
            operations.append(operation)
            started = time.perf_counter()
            problem = problem_in(world, operation)
            spent = time.perf_counter() - started
            if spent > self.slowest.get(operation[0], (0.0, ""))[0]:
                self.slowest[operation[0]] = spent, name
            if problem is not None:
                finding = smallest(Finding(name, language, operations, problem))
                self.findings.append(finding)
                return finding
        self.counts.update(world.counts)
        return None


def smallest(finding: Finding) -> Finding:
    """Return the same failure with fewer operations on shorter texts, or the original where it does not come again."""
    kind = kind_of(finding.problem)
    ends = time.monotonic() + SHRINKING
    replays = 0

    def problem(operations: Sequence[Operation]) -> str | None:
        nonlocal replays
        replays += 1
        if replays > REPLAYS or time.monotonic() > ends:
            return None
        found = problem_of(finding.language, operations)
        return found if found is not None and kind_of(found) == kind else None

    if problem(finding.operations) is None:
        return Finding(finding.name, finding.language, finding.operations, f"{finding.problem} (did not come again)")
    operations = without_parts(list(finding.operations), lambda shorter: problem(shorter) is not None)
    for at, operation in enumerate(operations):
        for place in range(1, len(operation)):
            if isinstance(operation[place], str):
                operations = with_shorter_text(operations, at, place, lambda shorter: problem(shorter) is not None)
    said = problem_of(finding.language, operations)
    return Finding(finding.name, finding.language, operations, said or finding.problem)


def with_shorter_text(
    operations: list[Operation], at: int, place: int, fails: Callable[[list[Operation]], bool]
) -> list[Operation]:
    """Operations with less of one text, lines first, then characters, as long as it still fails."""

    def having(parts: Sequence[str]) -> list[Operation]:
        changed = [list(operation) for operation in operations]
        changed[at][place] = "".join(parts)
        return changed

    lines = without_parts(operations[at][place].splitlines(keepends=True), lambda parts: fails(having(parts)))
    return having(without_parts(list("".join(lines)), lambda parts: fails(having(parts))))


def without_parts(parts: list[Any], fails: Callable[[list[Any]], bool]) -> list[Any]:
    """Return a list without the parts, large ones first, that its failure does not need."""
    size = len(parts)
    while size:
        at = 0
        while at < len(parts):
            shorter = parts[:at] + parts[at + size :]
            if shorter != parts and fails(shorter):
                parts = shorter
            else:
                at += size
        size //= 2
    return parts


def kept() -> list[dict[str, Any]]:
    """The cases that were found and kept."""
    found: list[dict[str, Any]] = json.loads(KEPT.read_text(encoding="utf-8"))
    return found


def summary(fuzzer: Fuzzer, seconds: float) -> str:
    slow = sorted(((seconds, name, case) for name, (seconds, case) in fuzzer.slowest.items()), reverse=True)[:4]
    return (
        f"seed {fuzzer.seed}, {seconds / 60:.1f} minutes: {len(fuzzer.findings)} findings; "
        + ", ".join(f"{count:,} {name}" for name, count in fuzzer.counts.most_common())
        + "; slowest: "
        + ", ".join(f"{name} {seconds:.2f} s ({case})" for seconds, name, case in slow)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="session_fuzzer.py", description="Fuzzes sessions against plainer ways.")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--language", action="append", choices=LANGUAGES)
    parser.add_argument("--from-case", type=int, default=0, metavar="N", help="leave out the cases before this one")
    parser.add_argument("--cases", type=int, metavar="N", help="how many at most")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="only carry out the cases of a file")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write what is found there, as JSON")
    options = parser.parse_args(arguments)
    if options.replay is not None:
        return replay(options.replay)
    fuzzer = Fuzzer(options.seed, options.language or LANGUAGES)
    while fuzzer.number < options.from_case:
        language = fuzzer.languages[fuzzer.number % len(fuzzer.languages)]
        text_of(language, "", fuzzer._files)
        fuzzer.number += 1
    started = said = time.monotonic()
    last = None if options.cases is None else options.from_case + options.cases
    while time.monotonic() < started + 60 * options.minutes and (last is None or fuzzer.number < last):
        finding = fuzzer.case()
        if finding is not None:
            print(finding, flush=True)
            if options.keep is not None:
                shown = [finding.as_json() for finding in fuzzer.findings]
                options.keep.write_text(json.dumps(shown, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")
        if time.monotonic() > said + 60:
            said = time.monotonic()
            print(summary(fuzzer, said - started), file=sys.stderr, flush=True)
    print(summary(fuzzer, time.monotonic() - started))
    return 1 if fuzzer.findings else 0


def replay(path: Path) -> int:
    failed = 0
    for case in json.loads(path.read_text(encoding="utf-8")):
        problem = problem_of(case["language"], case["operations"])
        print(f"{case['name']}: {problem or 'as it should be'}")
        failed += problem is not None
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
