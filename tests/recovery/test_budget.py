"""Opening within a budget: a session that claims the whole text has it, and any other names each left-out line.

No test looks at a clock. The budget is memory, since a text's size is the same everywhere. Time is none at all, or more
than any machine needs. The long form (FIM_SERVER_LONG=1) opens more files; FIM_SERVER_SEED draws others.
"""

from __future__ import annotations

import gc
import os
import random
import re
import weakref
from dataclasses import replace

import pytest

from fim_server import Language, Session, Stop, StoppedError
from fim_server.recovery import budget as budgets
from fim_server.recovery.budget import Budget, Budgeted, open_within
from fim_server.recovery.documents import Document
from fim_server.recovery.near import above, closing_candidates
from fim_server.recovery.recovery import IgnoredLines, Recovered, covered
from fim_server.text.reuse import Sessions
from support.engine.corpus import cuts, python, reference
from support.engine.recovered import whole_of

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = int(os.environ.get("FIM_SERVER_SEED", "1"))
FILES = 600 if LONG else 10
LARGEST = 30_000
CURSOR = "|"

PATIENT = 3_600.0
"""Seconds: time is no limit."""
LITTLE = Budget(PATIENT, 3_000_000)
"""Two or three thousand characters of a dense table, and some twenty thousand of code."""


def rebuilt(text: str, ignored: tuple[IgnoredLines, ...]) -> str:
    """A text without its ignored lines, with what stands in their place."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    for group in reversed(ignored):
        end = "\n" if lines[group.line + group.count - 1].endswith("\n") else ""
        lines[group.line : group.line + group.count] = [group.stand_in + end] if group.stand_in else []
    return "".join(lines)


def check(left: str, right: str, found: Recovered, language: Language) -> str | None:
    """Asserts what holds for all that is opened in part; gives the kept text with a shortest middle."""
    assert found.guarantee == "partial"
    assert any(group.beyond for group in found.ignored)
    lines = (left + right).count("\n") + (0 if right.endswith("\n") or not right else 1)
    lines = max(lines, left.count("\n") + 1)
    left_out = {line for group in found.ignored for line in range(group.line, group.line + group.count)}
    assert {line for stretch in found.covered for line in stretch} == set(range(lines)) - left_out
    assert found.lines == lines
    cursor_line = left.count("\n")
    mark = "\N{INVERTED QUESTION MARK}"
    if cursor_line not in left_out:
        assert found.left + mark + found.right == rebuilt(left + mark + right, found.ignored)
    else:  # what stands for it stands right of the cursor
        moved = tuple(
            replace(group, stand_in=left.rpartition("\n")[2] + mark + group.stand_in)
            if group.line == cursor_line
            else group
            for group in found.ignored
        )
        assert found.left + mark + found.right == rebuilt(left + mark + right, moved)
    return whole_of(left, found, language)


ENTRIES = "".join(f'    "name {number}": ({number}, [{number}], "value"),\n' for number in range(4_000))
METHODS = "".join(f"    def method_{number}(self, a):\n        return a + {number}\n\n" for number in range(3_000))
RECORDS = "".join(f'  {{\n    "a": {number},\n    "b": [\n      1,\n      2\n    ]\n  }},\n' for number in range(3_000))

INDENTED = "  1, 2, 3,\n" * 9_000
FLUSH = "1, 2, 3,\n" * 9_000
COMMENTED = "# a\n  1, 2,\n" * 9_000
NUMBERS = "  1,\n" * 20_000
CODE = "y = f(a, [1, 2])\n" * 9_000

TEXTS = {
    # Name: language, text, a middle that makes it whole, one that does not.
    "a table": ("python", f"T = {{\n    |\n{ENTRIES}}}\nprint(T)\n", '"a": 1,', '"a": 1]'),
    "in the midst of a table": ("python", f"x = 1\nT = {{\n{ENTRIES}    |\n{ENTRIES}}}\n", '"a": 1,', "}"),
    "a table that ends in its last line": ("python", f"f(a, |\n{INDENTED}  4)\ng()\n", "0,", "0)"),
    "a table at the left": ("python", f"T = [|\n{FLUSH}]\ng()\n", "0,", "0]"),
    "a table with comments at the left": ("python", f"T = [|\n{COMMENTED}]\ng()\n", "0,", "0]"),
    "a table in a call in a method": (
        "python",
        f"class A:\n  def f(self):\n    g(x, {{|\n{ENTRIES}  }})\n\n  def h(self):\n    pass\n",
        "1: 2,",
        ")",
    ),
    "one line": ("python", f"x = [|{'1,' * 50_000}]\n", "0,", "0]"),
    "one line below": ("python", f"x = |\ny = [{'1,' * 50_000}]\n", "0", "0]"),
    "a class": ("python", f"class A:\n    def f(self):\n        return |\n\n{METHODS}", "1", "1)"),
    "at the top": ("python", f"import os\nx = |\n{CODE}", "os", "os)"),
    "a header": ("python", f"def f(a|\n    return a\n\n{CODE}", ", b):", "b"),
    "a word cut": ("python", f"def f():\n    ret|urn 1\n\n{CODE}", "", "("),
    "a broken line far away": ("python", f"x = |\n{3 * CODE}def (:\n", "1", "1)"),
    "records": ("json", f'[\n{RECORDS}  {{\n    "a": |\n  }},\n{RECORDS}  {{}}\n]\n', "1", "1,"),
    "a long list": ("json", f"[\n  |\n{NUMBERS}  2\n]\n", "0,", "0"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_beyond_the_budget_is_opened_in_part(name: str) -> None:
    of, text, good, bad = TEXTS[name]
    language = Language.load(of)
    left, right = text.split(CURSOR)
    found = open_within(language, left, right, LITTLE)
    assert isinstance(found, Recovered)
    whole = check(left, right, found, language)
    assert found.check(good).complete
    assert not found.check(bad).complete
    if of == "python":
        assert reference(found.left + good + found.right)
        assert whole is None or reference(whole)
    assert all(group.beyond for group in found.ignored)
    assert left.count("\n") in {line for stretch in found.covered for line in stretch} or name == "one line"
    assert len(found.right) < len(right)
    assert len(found.right) > 1_000 or name == "one line below"  # and it is not nothing that is kept
    assert 0 < found.session.held < 2 * LITTLE.memory


def test_broken_lines_near_the_cursor_are_left_out_too() -> None:
    left, right = f"x = |\ndef (:\nz = 1\n{3 * CODE}".split(CURSOR)
    found = open_within(python(), left, right, LITTLE)
    assert isinstance(found, Recovered)
    whole = check(left, right, found, python())
    assert whole is not None
    assert reference(whole)
    assert found.diagnostics[0] == "line 2 does not parse and is left out"
    assert found.diagnostics[-1].endswith("are too far away to be read in time and are left out")


def test_random_cuts_of_files_say_what_holds_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is called whole parses with CPython, and what is not does without what is named."""
    monkeypatch.setattr(budgets, "FIRST", 500)
    rng = random.Random(SEED)
    seen = {"whole": 0, "none": 0, "part": 0, "broken": 0, "nothing": 0}
    drawn = (cut for cut in cuts(rng, LARGEST, 1) if len(cut.right) > 8_000)
    for _ in range(FILES):
        cut = next(drawn)
        left, right = cut.left, cut.right
        # Opening needs somewhat more than is held in the end.
        memory = int(python().open(left, right).held * rng.uniform(0.4, 1.6))
        found = open_within(python(), left, right, Budget(PATIENT, memory))
        if found is None:
            seen["nothing"] += 1
        elif isinstance(found, Session):
            assert found.guarantee == python().open(left, right).guarantee
            seen["whole" if found.guarantee == "exact" else "none"] += 1
            if found.guarantee == "exact":
                assert found.check(cut.middle).complete
        else:
            whole = check(left, right, found, python())
            assert whole is None or reference(whole), (cut.source.path, cut.start, found.ignored)
            assert found.check(cut.middle).complete == reference(found.left + cut.middle + found.right)
            seen["part" if all(group.beyond for group in found.ignored) else "broken"] += 1
    print(seen)
    assert seen["whole"] > 0
    assert seen["part"] > FILES // 5


def test_without_time_there_is_no_session_and_small_texts_are_whole() -> None:
    assert open_within(python(), "x = ", "\n", Budget(seconds=0.0, small=0)) is None
    assert isinstance(open_within(python(), "x = ", "\n", Budget(seconds=0.0)), Session)
    small = Budgeted(Sessions(), Budget(seconds=0.0)).open(python(), "x = ", "\n", whole=False)
    assert isinstance(small, Session), "what another thread opens is opened all the same where it is small"
    found = open_within(python(), "x = ", "\n", Budget(PATIENT))
    assert isinstance(found, Session)
    assert found.guarantee == "exact"
    broken = open_within(python(), "x = )", "\n", Budget(PATIENT))
    assert isinstance(broken, Session)
    assert broken.guarantee == "none"


def test_the_left_side_is_shortened_where_it_does_not_fit() -> None:
    class Slow(Sessions):
        def open(self, language: Language, left: str, right: str) -> Session:
            if len(left) > 50_000:
                raise StoppedError
            return super().open(language, left, right)

    text = f"class A:\n{METHODS}    def f(self):\n        return g(\n            |\n        )\n\n{METHODS}"
    left, right = text.split(CURSOR)
    found = Budgeted(Slow(), Budget(PATIENT)).open(python(), left, right)
    assert isinstance(found, Recovered)
    whole = check(left, right, found, python())
    assert whole is not None
    assert reference(whole)
    assert found.ignored[0].line == 1
    assert found.left.startswith("class A:\n    def method_")
    assert 30_000 < len(found.left) <= 40_100


def test_headers_above_what_is_kept_are_kept() -> None:
    document = Document("import os\nclass A:\n    x = 1\n    def f(self):\n        a\n        b\n        c", "\n")
    side = above(document, 20)
    assert side.text == "class A:\n    def f(self):\n        b\n        c"
    assert (list(side.numbers), side.stands) == ([1, 3, 5], "class A:\n    def f(self):\n")
    assert "".join(document.above)[side.dropped :] == "        b\n"
    assert above(document, 1_000).dropped == 0


def test_lines_that_may_close_stand_further_left() -> None:
    lines = "      a,\n      b\n    ],\n    c,\n    d)\n\nx = 1\n".splitlines(keepends=True)
    assert list(closing_candidates(lines, 0, ("]", ")"))) == [1, 2, 4, 6]
    assert list(closing_candidates(["1,\n", "2,\n", "]\n", "x\n"], 0, ("]",))) == [1, 2, 3]


def test_lines_that_are_covered() -> None:
    groups = (IgnoredLines(0, 2), IgnoredLines(5, 1), IgnoredLines(8, 2))
    assert covered(groups, 10) == (range(2, 5), range(6, 8))
    assert covered((), 3) == (range(3),)
    assert covered((IgnoredLines(0, 3),), 3) == ()


class Counted(Sessions):
    """Notes what is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[tuple[str, str]] = []

    def open(self, language: Language, left: str, right: str) -> Session:
        self.opened.append((left, right))
        return super().open(language, left, right)


def test_a_keystroke_goes_on_from_what_fitted() -> None:
    sessions = Counted()
    budgeted = Budgeted(sessions, LITTLE)
    left, right = f"x = 1\nT = {{\n    |\n{ENTRIES}}}\nprint(T)\n".split(CURSOR)
    first = budgeted.open(python(), left, right)
    assert isinstance(first, Recovered)
    for typed in ('"', '"a"', '"a": 1,', '"a": 1,\n    '):
        sessions.opened.clear()
        found = budgeted.open(python(), left + typed, right)
        assert isinstance(found, Recovered)
        assert found.right == first.right
        assert len(sessions.opened) == 1
        check(left + typed, right, found, python())
    # Another thread has opened the whole text meanwhile.
    sessions.open(python(), left, right)
    found = budgeted.open(python(), left + '"a": 1,', right)
    assert isinstance(found, Session)
    assert found.guarantee == "exact"


def test_a_stop_from_outside_is_raised() -> None:
    left, right = f"T = {{\n    |\n{ENTRIES}}}\n".split(CURSOR)
    stop = Stop()
    stop.set()
    with stop, pytest.raises(StoppedError):
        open_within(python(), left, right, LITTLE)


def test_an_unused_part_takes_no_memory() -> None:
    """The lines that fit are remembered for the next keystroke; the session is kept or dropped by its owner."""
    sessions = Sessions(1)
    budgeted = Budgeted(sessions, Budget(PATIENT, 1_000_000))
    opened = []
    for number in range(3):
        found = budgeted.open(python(), "x = [\n", f"{number},\n" + "    1, 2,\n" * 30_000 + "]\n")
        assert isinstance(found, Recovered)
        opened.append(weakref.ref(found.session))
        del found
    gc.collect()
    assert [session() is None for session in opened] == [True, True, False]
