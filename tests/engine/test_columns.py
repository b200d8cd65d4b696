"""Columns in classes against each column by itself: the same verdicts and distances on random layouts, tabs among them.

The plain way is the language with `column_classes = false` in its `[layout]`.
"""

import os
import random
import re
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from fim_server import Language, Session
from fim_server.errors import SearchLimitError
from fim_server.language.definition import compile as grammar
from support.engine.corpus import python

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = int(os.environ.get("FIM_SERVER_SEED", "1"))
TEXTS = 10_000 if LONG else 400

INDENTATIONS = ("", " ", "  ", "   ", "    ", "     ", " " * 8, " " * 12, "\t", " \t", "\t ", "  \t", "\t\t", " " * 9)
STEPS = (" ", "  ", "   ", "    ", " " * 8, "\t")
HEADERS = ("if a:", "try:", "def f():", "match a:", "while b:", "class A:")
LINES = [
    "b",
    "c = 1",
    "else:",
    "except:",
    "finally:",
    "case a:",
    "# c",
    "",
    "\\",
    "  \\",
    "c = (",
    "d)",
    "\f  e",
    "'''x",
]
MIDDLES = (
    "",
    "\n",
    "\n  ",
    "\n\t",
    "\n    ",
    "x\n\tif a:\n\t\tb\n",
    "\n" + " " * 8,
    "if q:\n  w\n",
    "\\\n",
    "\n \\\n ",
)


@cache
def plain() -> Language:
    definition = grammar.read_builtin("python")
    folder = Path(str(grammar.__file__)).parents[2] / "languages" / "python"
    spec = (folder / "python.toml").read_text(encoding="utf-8")
    changed = spec.replace('rule = "indent"\n', 'rule = "indent"\ncolumn_classes = false\n')
    assert changed != spec
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "python.lark").write_text(definition.grammar, encoding="utf-8")
        (Path(name) / "python.toml").write_text(changed, encoding="utf-8")
        return Language.from_files(Path(name) / "python.lark", Path(name) / "python.toml")


def layout(rng: random.Random) -> str:
    """Lines at any columns, or blocks that open and close as they should, most of the time."""
    if rng.random() < 0.4:
        count = rng.randrange(1, 7)
        return "\n".join(rng.choice(INDENTATIONS) + rng.choice((*HEADERS, *LINES)) for _ in range(count))
    lines: list[str] = []
    stack = [""]
    for _ in range(rng.randrange(2, 9)):
        if rng.random() < 0.45:
            lines.append(stack[-1] + rng.choice(HEADERS))
            stack.append(stack[-1] + rng.choice(STEPS))
            lines.append(stack[-1] + rng.choice(("b", "c", "pass")))
        else:
            for _ in range(min(len(stack) - 1, rng.randrange(3))):
                stack.pop()
            lines.append(stack[-1] + rng.choice(LINES))
    return "\n".join(lines)


def answers(session: Session, middle: str) -> tuple[object, ...]:
    state = session.start()
    state.advance(middle)
    try:
        distance = state.distance() if state.is_viable() else None
    except SearchLimitError:
        distance = -1
    return session.guarantee, session.check(middle), distance


def test_columns_in_classes_give_the_same_answers() -> None:
    rng = random.Random(SEED)
    counts: Counter[str] = Counter()
    wrong = []
    for _ in range(TEXTS):
        text = layout(rng)
        kind = rng.random()
        if kind < 0.3:
            text = text.replace("    ", rng.choice(("\t", "  ", "     ")), rng.randrange(3))
        elif kind < 0.5:
            # Lines of tabs alone, which have a measure of their own.
            text = re.sub("^[ \t]+", lambda blanks: "\t" * min(len(blanks[0]), 4), text, flags=re.MULTILINE)
        start, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        left, middle, right = text[:start], text[start:end], text[end:]
        if rng.random() < 0.4:
            middle = rng.choice(MIDDLES)
        found = answers(python().open(left, right), middle)
        expected = answers(plain().open(left, right), middle)
        counts[str(expected[0])] += 1
        counts["complete"] += getattr(expected[1], "complete", False)
        if found != expected:
            wrong.append((left, middle, right, found, expected))
    print(f"{TEXTS} texts:", dict(counts))
    assert not wrong, wrong[:5]
    assert min(counts["exact"], counts["none"], counts["complete"]) > TEXTS // 100


@pytest.mark.parametrize("column", [64, 128, 400])
def test_a_line_far_to_the_right_is_no_trouble(column: int) -> None:
    """Each column by itself makes some 60,000 places of column 128; classes make two a column."""
    blanks = " " * column
    session = python().open("if x:\n" + blanks + "y\n" + blanks, "x\n" + blanks + "y\nz\n")
    assert session.check("").complete
    assert session._core.sizes()[1] < 6 * column + 100


@pytest.mark.parametrize("tabs", [8, 50, 200])
def test_lines_of_tabs_are_no_trouble_either(tabs: int) -> None:
    """Between two columns of tabs are thousands that blanks can make, and room for as many blocks as there are tabs."""
    blanks = "\t" * tabs
    session = python().open("if x:\n" + blanks + "y\n" + blanks, "x\n" + (blanks + "y\n") * 20 + "z\n")
    assert session.check("").complete
    assert session._core.sizes()[1] < 10 * tabs + 300
