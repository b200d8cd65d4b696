"""Cells in Python: what IPython makes of their commands, and what this does."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path

import pytest

from fim_server.language_support.python import cells
from support.editors.editor import parses

CASES = tomllib.loads(Path(__file__).with_name("python_cells.toml").read_text(encoding="utf-8"))["cells"]
MARK = "‸"


@pytest.mark.parametrize("case", CASES, ids=[case["text"] for case in CASES])
def test_a_cell_parses_where_ipython_takes_it(case: dict[str, object]) -> None:
    """The first of its programs is the cell's own; the others are arguments, which IPython reads when it runs them."""
    cell = cells.read(str(case["text"]))
    assert not cell.is_foreign
    assert parses(cell.units[0]) is case["parses"]
    if case["parses"]:
        assert parses(cell.program)


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("x = 1\n%timeit -n10 -r 3 f(x)\n", ["x = 1\npass\n", "\nf(x)"]),
        ("%timeit for i in x: f(i)", ["pass", "for i in x: f(i)"]),
        ("%timeit -x", ["pass", "-x"]),
        ("%time", ["pass"]),
        ("%timeit -n 10", ["pass"]),
        ("best = %timeit -o f(x)", ["best = 0", "f(x)"]),
        ("if x:\n    %time f(x)", ["if x:\n    pass", "\nf(x)"]),
        ("%%time\nx = 1\n!ls", ["\nx = 1\npass"]),
        ("%%timeit -n 3 x = 1\nx + 1", ["\nx + 1", "x = 1"]),
        ("%%prun -l 3 f(x)\ng()", ["f(x)\ng()"]),
        ("\n%%capture out\n%%time\nx", ["\n\n\nx"]),
        ("!echo \\\n  a\nx", ["pass\n\nx"]),
        ("%memit f(x)\n%lprun -f f f(x)", ["pass\npass", "f(x)", "\nf(x)"]),
        ("  x = 1\n  y = 2", ["x = 1\ny = 2"]),
        (">>> for x in y:\n...     f(x)\n>>> x", ["for x in y:\n    f(x)\nx"]),
        ("In [1]: for x in y:\n   ...:     f(x)\nIn [2]: !ls", ["for x in y:\n    f(x)\npass"]),
        ("x\n>>> for x in y:\n...     f(x)", ["x\nfor x in y:\n    f(x)"]),
        ("    >>> x\n    >>> y", ["x\ny"]),
        ("    In [1]: x\n    In [2]: y", ["x\ny"]),
        ("[ins] In [1]: x\n         ...: y", ["x\ny"]),
        ("x\nIn [2]: y", ["x\ny"]),
        ("x = 1\n...\n", ["x = 1\n...\n"]),
        ("  x = 1\n  %time f(x)", ["x = 1\npass", "\nf(x)"]),
    ],
)
def test_the_programs_of_a_cell(text: str, units: list[str]) -> None:
    assert list(cells.read(text).units) == units


@pytest.mark.parametrize(
    "text",
    [
        "%%bash\nls",
        "%%sql\nselect",
        "%%html",
        "\n%%writefile a.py\nx",
        "%%",
        "%%time\n%%js\nx",
        "%%!\nls",
        "  %%bash\nls ",
        "\n\n\t%%sql\nselect",
        "  %%bash\n  ls",
        "    %%html\n  <b>",
        "  %%bash",
        "\f%%bash\nls",
        "%%bash\ncat <<E\n>>> x",
    ],
)
def test_cells_that_are_not_python(text: str) -> None:
    assert cells.read(text).is_foreign
    assert cells.at(text, "") == cells.FOREIGN


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("%matplotlib inline\nx", "# %matplotlib inline\nx"),
        ("files = !ls", "files = None  # !ls"),
        ("if x:\n    !ls", "if x:\n    pass  # !ls"),
        ("%run setup.py", "from builtins import *  # %run setup.py"),
        ("%time x = f()", "x = f()"),
        ("%%capture out\nx", "out = None  # %%capture out\nx"),
        ("%%bash --out a --err b\nls", "a = b = None  # %%bash --out a --err b"),
        ("%%sql rows <<\nselect", "rows = None  # %%sql rows <<"),
        ("%sql rows << select 1", "rows = None  # %sql rows << select 1"),
        ("%%bash\nls", "# %%bash"),
    ],
)
def test_what_stands_for_commands_in_a_file(text: str, program: str) -> None:
    assert cells.read(text).program == program


@pytest.mark.parametrize(
    ("text", "left", "right", "one_line"),
    [
        ("%timeit f(‸)", "f(", ")", True),
        ("%timeit ‸", "", "", True),
        ("x = 1\n%timeit -n 10 f(‸)\ny", "\nf(", ")", True),
        ("t = %timeit -o f(‸", "f(", "", True),
        ("%%timeit x = ‸\ny", "x = ", "", True),
        ("%%prun f(‸)\ny", "f(", ")\ny", True),
        ("%%time\nx = ‸\n!ls", "\nx = ", "\npass", False),
        ("f(‸\n%timeit g()\nx = 1", "f(", "\npass\nx = 1", False),
        ("f(a,‸\n  % b)\n%timeit g()", "f(a,", "\n  % b)\npass", False),
        ("s = '''‸\n%time x", "s = '''", "\npass", False),
        ("s = '''\n‸\n%a'''\n%time x", "s = '''\n", "\n%a'''\npass", False),
        ("  x = 1\n  y = f(‸)\n", "x = 1\ny = f(", ")\n", True),
        ("‸", "", "", False),
        ("x = a %‸ b", "x = a %", " b", False),
    ],
)
def test_a_cursor_in_a_cell(text: str, left: str, right: str, one_line: bool) -> None:
    cursor = cells.at(*text.split(MARK))
    assert not isinstance(cursor, str)
    assert (cursor.left, cursor.right, cursor.one_line) == (left, right, one_line)


@pytest.mark.parametrize(
    "text",
    [
        "%tim‸",
        "%timeit‸",
        "%timeit -n ‸",
        "!ls‸",
        "‸!ls",
        "  ‸%who",
        "x = !l‸s",
        "x = ‸!ls",
        "foo?‸",
        "fo‸o?",
        "!a \\\n‸b",
        "%%time‸",
        "‸%%time\nx",
        "x = %‸time",
    ],
)
def test_no_suggestion_inside_a_command(text: str) -> None:
    assert cells.at(*text.split(MARK)) == cells.INSIDE


def test_prompts_hand_a_cell_over_to_a_magic() -> None:
    assert cells.read(">>> %%bash\n... ls").is_foreign
    assert cells.read("In [1]: %%bash\n   ...: ls").is_foreign


@pytest.mark.parametrize(
    "text",
    [
        ">>> x = 1\n>>> ‸",
        "In [3]: ‸",
        "\n  >>> x\n‸",
        "x = 1\n>>> ‸",
        "x = f(1)\ny\n>>> g(‸)\nz",
        'x = """\n"""\n    >>> ‸',
        "x\nIn [2]: y = ‸",
        "[nav] In [3]: ‸",
        "  In [3]: x\n   ...: ‸",
        "   ...: ‸",
    ],
)
def test_no_suggestion_in_a_copied_console_session(text: str) -> None:
    assert cells.at(*text.split(MARK)) == cells.CONSOLE


def test_prompts_in_a_text_are_no_console() -> None:
    cursor = cells.at("def f():\n    '''\n    >>> f()\n    '''\n    return ", "")
    assert not isinstance(cursor, str)
    assert not isinstance(cells.at('x = ["""\n>>> f\n...: """, ', "]"), str)
    assert cells.read("x = '''\n>>> f\n'''").units == ("x = '''\n>>> f\n'''",)


LINES = (
    "x = 1", "%matplotlib inline", "!ls '''", "x = !ls", "y=%timeit -o f(x)", "foo?", "?foo", "if x:", "    %time f()",
    "    z = !ls", "    pass", "s = '''", "'''", "f(a,", "  % b)", "# c", "", "x = 5 # a?", "d[0]?", "a: int = %who",
    "!echo \\", "f'{x!r}'", "f'''{x", "}'''", "%%time", "%%timeit x", '"%d" % 2', "await x", "x = [", "]", "r'\\'",
    "x != y", "%timeit", "f\"{x['a']}\"", "{", "}", "x = \\",
)  # fmt: skip


def test_with_and_without_a_cursor_a_cell_is_read_the_same() -> None:
    """Compare cells in which nothing is open at the cursor, or in which the right side closes it."""
    draw = random.Random("cursors in cells")
    compared = 0
    for _ in range(4000):
        text = "\n".join(draw.choice(LINES) for _ in range(draw.randint(1, 6)))
        offset = draw.randint(0, len(text))
        cursor, cell = cells.at(text[:offset], text[offset:]), cells.read(text)
        if isinstance(cursor, str) or not all(map(parses, cell.units)):
            continue
        compared += 1
        assert sorted((cursor.left + cursor.right, *cursor.units)) == sorted(cell.units), text
        assert cells.keeps(cursor.left, cursor.right, cursor.units, text[:offset], "", text[offset:])
        assert cursor.above + cursor.below == cell.program
    assert compared > 400
