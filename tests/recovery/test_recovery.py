"""Recovery: texts that programmers leave broken, the lines that it leaves out, and random breaks of real files.

The table holds the lines that a programmer would leave out. The random breaks are away from the cursor, in files of the
standard library. The returned text has to consist of the document's own lines but the named ones, and CPython has to
accept it with a middle. `-s` prints the figures. The long form (FIM_SERVER_LONG=1) breaks more files; FIM_SERVER_SEED
draws others.
"""

from __future__ import annotations

import os
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from fim_server import Language, Session
from fim_server.recovery.recovery import IgnoredLines, Recovered, Recovery, recover
from fim_server.recovery.texts import insertions
from support.engine.corpus import python, reference, sources
from support.engine.recovered import whole_of

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = int(os.environ.get("FIM_SERVER_SEED", "1"))
BROKEN = 1_500 if LONG else 60  # files with one break; a third as many with three
LARGEST = 16_000  # bytes of a file
CURSOR = "|"


@cache
def json() -> Language:
    return Language.load("json")


def split(text: str) -> tuple[str, str]:
    left, right = text.split(CURSOR)
    return left, right


def lines_of(found: Recovered) -> list[int]:
    """Numbers of the ignored lines, counted from 1."""
    return [group.line + 1 + offset for group in found.ignored for offset in range(group.count)]


def rebuilt(text: str, ignored: tuple[IgnoredLines, ...]) -> str:
    """A text without its ignored lines, with what stands in their place."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    for group in reversed(ignored):
        lines[group.line : group.line + group.count] = [group.stand_in + "\n"] if group.stand_in else []
    return "".join(lines)


def check(left: str, right: str, found: Recovered, language: Language) -> str | None:
    """Asserts what holds for everything that is returned; gives the whole text with a shortest middle."""
    cursor_line = left.count("\n")
    numbers = lines_of(found)
    assert numbers
    assert numbers == sorted(set(numbers))
    if cursor_line + 1 not in numbers:
        mark = "\N{INVERTED QUESTION MARK}"
        assert found.left + mark + found.right == rebuilt(left + mark + right, found.ignored)
    written = insertions(language.spelling)
    allowed = {"", *written.stand_ins, *written.closings}
    assert all(group.stand_in.strip() in allowed for group in found.ignored)
    return whole_of(left, found, language)


# ---------------------------------------------------------------- what people leave behind

TEXTS = {
    # Half-typed lines.
    "an open call": ("import os\n\nfoo(\n\nx = 1\ny = 2\nz = |\nw = 3\n", [3]),
    "an assignment of nothing": ("import os\nx = \ny = 2\nz = |\nw = 3\n", [2]),
    "imports of nothing": ("import \nfrom x import \nz = |\nw = 3\n", [1, 2]),
    "a dot at the end": ("obj.\nz = |\nw = 3\n", [1]),
    "a dot at the end, below": ("z = |\nw = 3\nobj.\nv = 4\n", [3]),
    "an assignment of nothing, below": ("def f():\n    a = |\n    b = \n    c = 1\n", [3]),
    "the only line of a block": ("def f():\n    x = \n\ndef g():\n    return |\n", [2]),
    "a decorator": ("@\ndef f():\n    return |\n", [1]),
    "a string": ("x = 'abc\ny = |\nz = \"abc\n", [1, 3]),
    "an f-string": ("x = f'{a'\ny = |\n", [1]),
    # Headers.
    "a call's header": ("import os\n\ndef g(\n    x = 1\n    y = 2\n    return 3\n\nz = |\nw = 3\n", [3]),
    "a header below": ("def f():\n    a = |\n    b = 1\n\ndef g(\n    c = 1\n    d = 2\n\nx = 1\n", [5]),
    "a condition": ("if a ==\n    b()\n    c()\nelse:\n    d()\nz = |\nw = 3\n", [1]),
    "a colon missing": ("def f():\n    a = |\n    if x\n        b = 1\n    c = 1\n", [3]),
    "a loop": ("def f():\n    for x in\n        print(x)\n    return |\n", [2]),
    "a class": ("class A(B\n    x = 1\n\n    def f(self):\n        return |\n", [1]),
    "a try": ("try\n    x = 1\nexcept A:\n    pass\nz = |\n", [1]),
    "an except": ("try:\n    x = 1\nexcept A(:\n    pass\nz = |\n", [3]),
    "a case": ("match x:\n    case 1:\n        y\n    case [2:\n        z\nw = |\n", [4]),
    "under a decorator": ("@foo\ndef g(x:\n    return 1\n\nz = |\n", [2]),
    "without its block": ("def f():\n    if x:\n    y = 1\n    z = 2\n    return |\n", [2]),
    "without its block, below": ("def f():\n    return |\n\ndef g():\n    if x:\n    y = 1\n    z = 2\n", [5]),
    # Brackets and strings that are found broken far below.
    "a call above a function": ("x = foo(1,\n\ndef g():\n    retu|\n\nclass A:\n    pass\n", [1]),
    "a call down to the end": ("def f():\n    return |\n\nx = foo(1,\ny = 2\nz = 3\n", [4]),
    "stray closers": ("x = foo(1))\nz = |\ny = bar]\n", [1, 3]),
    "a call's last line": ("def f():\n    g(\n        a=1,\n        b=[2)\n\ndef h():\n    return |\n", [4]),
    "a sum without its end": ("x = (a +\n     b +\n     c\n\nif y == 1:\n    z = |\n", [3]),
    "the wrong closer": ("x = [\n    1,\n    (2,\n    3,\n]\ny = 1\nz = |\n", [3]),
    "a row of a table": ("D = {\n    'a': 1,\n    'b' 2,\n    'c': |,\n    'd' 4,\n    'e': 5,\n}\n", [3, 5]),
    "triple quotes": ("x = '''abc\n\ndef f():\n    '''Says.'''\n    return 1\n\ndef g():\n    return |\n", [1]),
    "triple quotes below": ("def g():\n    return |\n\nx = '''abc\n\ndef f():\n    '''Says.'''\n    return 1\n", [4]),
    "triple quotes to the end": ("def g():\n    return |\n\nx = '''abc\n\ndef f():\n    return 1\n", [4]),
    # Indentation.
    "a line too far left": ("def f():\n    a = 1\nb = 2\n    c = 3\n    d = 1\n    return |\n", [3]),
    "a line too far right": ("def f():\n    a = 1\n      b = 2\n    c = 3\n    return |\n", [3]),
    "a line between": ("def f():\n    a = 1\n  b = 2\n    c = 3\n    return |\n", [3]),
    "a pasted method": ("class A:\n    x = 1\n\n      def f(self):\n        return 1\n\n    y = |\n", [4]),
    "a method too far left": (
        (
            "class A:\n    def f(self):\n        a\n\ndef g(self):\n        b\n\n"
            + "".join("    def h(self):\n" + "        c\n" * 9 for _ in range(9))
            + "x = |\n"
        ),
        [5],
    ),
    # What is no Python.
    "a conflict": ("x = 1\n<<<<<<< HEAD\ny = 1\n=======\ny = 2\n>>>>>>> b\nz = |\n", [2, 4, 6]),
    "a conflict below": ("z = |\nx = 1\n<<<<<<< HEAD\ny = 1\n=======\ny = 2\n>>>>>>> b\n", [3, 5, 7]),
    "a conflict around": ("x = 1\n<<<<<<< HEAD\ny = |\n=======\ny = 2\n>>>>>>> b\nz = 3\n", [2, 4, 6]),
    "magics": ("%matplotlib inline\nimport os\n!ls\nx = |\n!pwd\n", [1, 3, 5]),
    "a template": ("x = 1\n{% if x %}\ny = {{ x }}\n{% endif %}\nz = |\n", [2, 4]),
    "Python 2": ("def f():\n    print 'x'\n\ndef g():\n    return |\n\ndef h():\n    print 'y', z\n", [2, 8]),
    "prose": ("x = 1\nthis is no code\ny = |\n", [2]),
    "a lone surrogate": ("x = 1\ny = '\ud800'\nz = |\n", [2]),
    # Several.
    "a method's two": (
        (
            "class A:\n    def f(self):\n        x = [1, 2\n        y = 3\n        return |\n\n    def g(self):\n"
            "        if self.x = 1:\n            return 2\n        return 3\n"
        ),
        [3, 8],
    ),
    "five": (
        (
            "x =\ny = 1\nz = 2\nif a\n    b\n    c\nd = 1\nimport\ne = 1\nf = 2\n"
            "g = |\nh = (\n\ndef i():\n    return 1\n\n\nj 2\nk = 1\n"
        ),
        [1, 4, 8, 12, 18],
    ),
}


@pytest.mark.parametrize(("text", "expected"), TEXTS.values(), ids=TEXTS)
def test_known_breaks_are_repaired_as_a_person_would(text: str, expected: list[int]) -> None:
    left, right = split(text)
    assert python().open(left, right).guarantee == "none"
    found = recover(python().open, left, right)
    assert found is not None
    assert lines_of(found) == expected
    whole = check(left, right, found, python())
    assert whole is not None
    assert reference(whole)


OBJECTS = {
    "a member": ('{\n  "a": 1,\n  "b": ,\n  "c": |\n}\n', [3]),
    "a member below": ('{\n  "a": |,\n  "b": ,\n  "c": 3\n}\n', [3]),
    "a comma missing": ('{\n  "a": 1\n  "b": 2,\n  "c": |\n}\n', [2]),
    "a comment": ('{\n  // a\n  "a": 1,\n  "c": |\n}\n', [2]),
    "a string": ('[\n  "a,\n  "b",\n  |\n]\n', [2]),
}


@pytest.mark.parametrize(("text", "expected"), OBJECTS.values(), ids=OBJECTS)
def test_json_has_lines_too(text: str, expected: list[int]) -> None:
    left, right = split(text)
    found = recover(json().open, left, right)
    assert found is not None
    assert len(lines_of(found)) == len(expected)
    check(left, right, found, json())


@pytest.mark.parametrize("text", ["x = 1\ny = = |\nz = 1\n", "%matplotlib in|\n", ")|", "\n\n)|("])
def test_the_cursors_own_line_is_not_left_out(text: str) -> None:
    assert recover(python().open, *split(text)) is None


def test_a_text_that_parses_is_left_alone() -> None:
    assert recover(python().open, "x = ", "\n") is None
    session = Recovery(python().open).open("x = ", "\n")
    assert isinstance(session, Session)
    assert session.guarantee == "exact"


@pytest.mark.parametrize("right", ["} ]\n", "x\n", "x"])
def test_what_is_right_of_the_cursor_goes_last(right: str) -> None:
    left = '{"a": '
    found = recover(json().open, left, right)
    assert found is not None
    assert found.left == left
    assert found.ignored == (IgnoredLines(0, 1),)
    check(left, right, found, json())


def test_diagnostics_count_from_one() -> None:
    found = recover(python().open, *split("import \nfrom x import \ny = 1\n)\nz = |\n"))
    assert found is not None
    assert found.guarantee == "partial"
    assert found.diagnostics == ["lines 1 to 2 do not parse and are left out", "line 4 does not parse and is left out"]


@pytest.mark.parametrize("budget", range(12))
def test_the_budget_is_kept(budget: int) -> None:
    opened = Counter[str]()

    def open_session(left: str, right: str) -> Session:
        opened["all"] += 1
        return python().open(left, right)

    left, right = split(TEXTS["five"][0])
    found = recover(open_session, left, right, budget=budget)
    assert opened["all"] <= budget
    assert found is None or found.openings == opened["all"]


# ---------------------------------------------------------------- memory


class Counted:
    """Opens sessions and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, left: str, right: str) -> Session:
        self.count += 1
        return python().open(left, right)


def test_the_next_keystroke_searches_no_more() -> None:
    counted = Counted()
    recovery = Recovery(counted)
    left, right = split(TEXTS["a method's two"][0])
    first = recovery.open(left, right)
    assert isinstance(first, Recovered)
    for typed in ("r", "re", "re["):
        counted.count = 0
        again = recovery.open(left + typed, right)
        assert isinstance(again, Recovered)
        assert again.ignored == first.ignored
        assert counted.count == 2


def test_lines_are_known_again_after_edits_above_and_below() -> None:
    counted = Counted()
    recovery = Recovery(counted)
    left, right = split(TEXTS["a method's two"][0])
    first = recovery.open(left, right)
    assert isinstance(first, Recovered)
    counted.count = 0
    again = recovery.open("import os\n\n\n" + left, right + "\nx = 1\n")
    assert isinstance(again, Recovered)
    assert lines_of(again) == [number + 3 for number in lines_of(first)]
    assert counted.count == 4  # each of the two is looked at alone


def test_repaired_lines_come_back() -> None:
    recovery = Recovery(python().open)
    assert isinstance(recovery.open("x = \ny = )\nz = ", "\n"), Recovered)
    half = recovery.open("x = 1\ny = )\nz = ", "\n")
    assert isinstance(half, Recovered)
    assert lines_of(half) == [2]
    whole = recovery.open("x = 1\ny = 2\nz = ", "\n")
    assert isinstance(whole, Session)
    assert whole.guarantee == "exact"


def test_lines_repaired_elsewhere_come_back() -> None:
    recovery = Recovery(python().open)
    found = recovery.open("x = foo(\n\ndef f():\n    return )\nz = ", "\n")
    assert isinstance(found, Recovered)
    assert lines_of(found) == [1, 4]
    found = recovery.open("x = foo(\n)\ndef f():\n    return )\nz = ", "\n")
    assert isinstance(found, Recovered)
    assert lines_of(found) == [4]


def test_a_new_break_is_found_beside_those_that_are_known() -> None:
    recovery = Recovery(python().open)
    recovery.open("x = \ny = 2\nz = ", "\n")
    found = recovery.open("x = \ny = )\nz = ", "\n")
    assert isinstance(found, Recovered)
    assert lines_of(found) == [1, 2]


def test_a_search_for_nothing_is_not_repeated() -> None:
    counted = Counted()
    recovery = Recovery(counted, budget=6)
    left, right = split(TEXTS["five"][0])
    assert recovery.open(left, right).guarantee == "none"
    assert counted.count > 1
    counted.count = 0
    assert recovery.open(left + "d", right).guarantee == "none"
    assert counted.count == 1


# ---------------------------------------------------------------- random breaks

STRAY = (")", "]", "}", "=", ":", "'", '"', '"""', "if", "==", "def ", "%", "(", "[", "{", ", ,", "lambda")
HALF = (
    *("foo(", "x = ", "obj.", "if a ==", "import ", "for x in", "def g(", "class A(", "return (", "x = [1, 2", "'''"),
    *("with open(x) as", "else", "%matplotlib inline", "!ls", "print 'x'", "from . import", "d['a'", "@", "try:"),
    *("while True:", "{% if x %}"),
)
KINDS = ("bracket", "stray", "cut", "dedent", "indent", "conflict", "half", "colon", "body")
CONFLICT = 3  # lines of a conflict that are no Python: it is as many errors
MARK = "\0"  # where the cursor is


@dataclass(frozen=True)
class Broken:
    name: str
    left: str
    right: str
    errors: int


def broken_files(rng: random.Random, breaks: int) -> Iterator[Broken]:
    """Files with breaks away from the cursor, without end."""
    for source in sources(rng, LARGEST):
        lines = re.findall(r"[^\n]*\n|[^\n]+", source.text)
        if "\r" in source.text or len(lines) < 20:
            continue
        number = rng.randrange(len(lines))
        cut = rng.randrange(len(lines[number]))
        lines[number] = lines[number][:cut] + MARK + (lines[number][cut:] if rng.random() < 0.5 else "\n")
        kinds: list[str] = []
        while len(kinds) < breaks:
            kind = rng.choice(KINDS)
            made = broken(rng, lines, kind)
            if made is not None and sum(line.count(MARK) for line in made) == 1:
                lines = made
                kinds.append(kind)
        left, right = "".join(lines).split(MARK)
        errors = sum(CONFLICT if kind == "conflict" else 1 for kind in kinds)
        yield Broken(f"{source.path} {'+'.join(kinds)} {len(left)}", left, right, errors)


def broken(rng: random.Random, lines: list[str], kind: str) -> list[str] | None:
    """Lines with one break more, not in the cursor's; None where there is no place for it."""
    made = list(lines)
    code = [i for i, line in enumerate(lines) if line.strip() and line.lstrip()[0] != "#" and MARK not in line]
    headers = [i for i in code if lines[i].rstrip().endswith(":")]
    brackets = [(i, found.start()) for i in code for found in re.finditer(r"[()\[\]{}]", lines[i])]
    if not code or (kind in ("colon", "body") and not headers) or (kind == "bracket" and not brackets):
        return None
    at = rng.choice(headers if kind in ("colon", "body") else code)
    line = lines[at].rstrip("\n")
    indentation = _column(line)
    match kind:
        case "bracket":
            at, column = rng.choice(brackets)
            made[at] = lines[at][:column] + lines[at][column + 1 :]
        case "stray":
            column = rng.randrange(len(line) + 1)
            made[at] = line[:column] + rng.choice(STRAY) + line[column:] + "\n"
        case "cut":
            made[at] = line[: rng.randrange(indentation + 1, len(line) + 1)] + "\n"
        case "dedent":
            made[at] = " " * rng.randrange(max(indentation, 1)) + line.lstrip() + "\n"
        case "indent":
            made[at] = " " * rng.randint(1, 4) + line + "\n"
        case "conflict":
            block = lines[at : at + rng.randint(1, 4)]
            made[at : at + len(block)] = ["<<<<<<< HEAD\n", *block, "=======\n", *block, ">>>>>>> branch\n"]
        case "half":
            made.insert(at, line[:indentation] + rng.choice(HALF) + "\n")
        case "colon":
            made[at] = line.rstrip()[:-1] + "\n"
        case "body":
            end = at + 1
            while end < len(lines) and (
                not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > indentation
            ):
                end += 1
            if end - at > 12:
                return None
            del made[at + 1 : end]
    return made


def _column(line: str) -> int:
    return len(line) - len(line.lstrip())


@pytest.mark.parametrize(("breaks", "count", "share"), [(1, BROKEN, 0.97), (3, BROKEN // 3, 0.9)], ids=["one", "three"])
def test_random_breaks_of_real_files(breaks: int, count: int, share: float) -> None:
    rng = random.Random(f"{SEED}/{breaks}")
    files = broken_files(rng, breaks)
    ignored, openings, milliseconds, errors, unanswered = list[int](), list[int](), list[float](), 0, 0
    missed: list[str] = []
    while len(milliseconds) < count:
        file = next(files)
        if python().open(file.left, file.right).guarantee == "exact":
            continue
        started = time.process_time()
        found = recover(python().open, file.left, file.right)
        milliseconds.append((time.process_time() - started) * 1e3)
        if found is None:
            missed.append(file.name)
            continue
        whole = check(file.left, file.right, found, python())
        if whole is None:
            unanswered += 1
        else:
            assert reference(whole), file.name
        errors += file.errors
        ignored.append(len(lines_of(found)))
        openings.append(found.openings)
    print(
        f"\n{breaks} break(s) a file: {len(ignored)} of {count} recovered; ignored lines an error "
        f"{sum(ignored) / errors:.2f}, a file {statistics.mean(ignored):.2f} (median {statistics.median(ignored):.0f}, "
        f"most {max(ignored)}); openings {statistics.mean(openings):.1f} (most {max(openings)}); ms of processor "
        f"{statistics.mean(milliseconds):.1f} (median {statistics.median(milliseconds):.1f}, most "
        f"{max(milliseconds):.1f}); {unanswered} without a shortest middle; not recovered: {missed}"
    )
    assert len(ignored) >= share * count
    assert sum(ignored) <= 2 * errors
