"""Notebooks as one program, and cursors in their cells."""

from __future__ import annotations

import random

import pytest

from fim_server.language_support.python import cells as reader
from fim_server.text.document import Split
from fim_server.text.notebook import Cell, CellContexts, Notebook, cut, healable

CELLS = ("import os\n%matplotlib inline\n", "", "def f(a):\n    return a", "f(os)\n!ls", "%%bash\nls", "y = 1")


def notebook(*texts: str, is_whole: bool = True) -> Notebook:
    return Notebook(
        "file:///a.ipynb", tuple(Cell(f"cell:{at}", "python", text) for at, text in enumerate(texts)), is_whole
    )


def cut_in(book: Notebook, at: int, offset: int) -> tuple[Split, CellContexts]:
    text = book.cells[at].text
    found = cut(book, book.cells[at].uri, Split(text[:offset], text[offset:]), reader)
    assert not isinstance(found, str), found
    return found


def test_the_program_around_a_cursor_is_the_cells_in_their_order() -> None:
    split, cell = cut_in(notebook(*CELLS), 2, 13)
    assert split.left == "import os\n# %matplotlib inline\n\n\ndef f(a):\n   "
    assert split.right == " return a\n\nf(os)\n# !ls\n\n# %%bash\n\ny = 1"
    assert (cell.left, cell.right) == ("def f(a):\n   ", " return a")
    assert (cell.before, cell.after) == ("def f(a):\n   ", " return a")
    assert [(unit.cell, unit.text) for units in cell.units for unit in units] == [
        (1, "import os\npass\n"),
        (2, ""),
        (4, "f(os)\npass"),
        (6, "y = 1"),
    ]


def test_the_program_is_the_same_whether_or_not_a_cursor_is_in_it() -> None:
    book = notebook(*CELLS)
    for at, one in enumerate(book.cells):
        for offset in range(len(one.text) + 1):
            found = cut(book, one.uri, Split(one.text[:offset], one.text[offset:]), reader)
            if not isinstance(found, str) and one.text:
                assert found[0].joined("") == book.program("python", reader), (at, offset)


def test_cells_of_other_languages_are_left_out() -> None:
    book = Notebook(
        "file:///a.ipynb", (Cell("a", "r", "x <- 1"), Cell("b", "python", "y = 1"), Cell("c", "python", "z = 2"))
    )
    split, cell = cut_in(book, 1, 5)
    assert split.joined("") == "y = 1\n\nz = 2"
    assert [unit.cell for units in cell.units for unit in units] == [3]


def test_any_name_may_be_bound_where_not_all_cells_are_known() -> None:
    assert not cut_in(notebook("x"), 0, 1)[1].takes_all
    cell = cut_in(notebook("x", is_whole=False), 0, 1)[1]
    assert cell.takes_all
    assert "import *" in cell.given


def test_what_is_written_moves_the_cursor_in_all_texts() -> None:
    _, cell = cut_in(notebook("a = 1\n", "%%time\nf(g())", "b"), 1, 11)
    moved = cell.with_text("x)", 1)
    assert (moved.left, moved.right, moved.before, moved.after) == ("\nf(g(x)", ")", "%%time\nf(g(x)", ")")
    back = moved.one_back()
    assert (back.left, back.right, back.before, back.after) == ("\nf(g(x", "))", "%%time\nf(g(x", "))")
    assert cell.lines == 2


def test_a_text_that_changes_another_lines_command_is_not_suggested() -> None:
    _, cell = cut_in(notebook("s = \n!echo '''\nx = 1"), 0, 4)
    assert cell.keeps("1", 0)
    assert not cell.keeps("'''", 0)  # the command would be a string's text, and the string would end in it


@pytest.mark.parametrize(
    ("some", "other", "count"), [("ab\nc", "xb\nc", 3), ("", "a", 0), ("\n\n", "", 0), ("ab", "ab", 2)]
)
def test_how_much_of_two_ends_is_the_same(some: str, other: str, count: int) -> None:
    assert healable(some, other) == count


def test_names_of_cells_differ_in_where_they_begin_and_end() -> None:
    before = cut_in(notebook("a\n\nb"), 0, 4)
    after = cut_in(notebook("a", "b"), 1, 1)
    assert before[0].joined("") == after[0].joined("")
    assert before[1].key != after[1].key


def test_texts_of_many_cells_keep_their_order() -> None:
    draw = random.Random("cells")
    texts = [f"x{at} = {draw.random()}" for at in range(300)]
    split, cell = cut_in(notebook(*texts), 150, 0)
    assert split.joined("") == "\n\n".join(texts)
    assert sum(map(len, cell.units)) == 299
