"""Other programs of a notebook: verdicts, each made once, and the remaining guarantee."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fim_server.language import Language, Session
from fim_server.language_support.python import cells as reader
from fim_server.suggest.context import other_cells
from fim_server.suggest.context.other_cells import OtherCells
from fim_server.suggest.context.sessions import DocumentSessions, Opened
from fim_server.text.document import Split
from fim_server.text.notebook import Cell, CellContexts, Notebook, cut

PYTHON = Language.load("python")
CELLS = ["x = 1", "y = f(\n", "print(x)\n%time f((\nz = 2\n", "a = 1\nb = = 2", "w = 3"]


def at(texts: list[str], cell: int, offset: int) -> tuple[Opened, CellContexts]:
    notebook = Notebook("n", tuple(Cell(f"{number}", "python", text) for number, text in enumerate(texts)))
    text = texts[cell]
    found = cut(notebook, f"{cell}", Split(text[:offset], text[offset:]), reader)
    assert not isinstance(found, str)
    _, contexts = found
    return DocumentSessions().open("n", PYTHON, Split(contexts.left, contexts.right)), contexts


def test_broken_cells_are_named_by_number_and_line() -> None:
    opened, cell = at(CELLS, 0, 5)
    assert opened.guarantee == "exact"
    judged = OtherCells().judged(opened, cell, PYTHON)
    assert (judged.guarantee, judged.covered_lines, judged.unread) == ("partial", (range(1),), False)
    assert judged.diagnostics == (
        "code cell 2, line 2: left out, since it does not parse",
        "code cell 3, line 2: left out, since it does not parse",
        "code cell 4, line 2: left out, since it does not parse",
    )


def test_a_broken_magic_of_the_cursors_cell_is_not_covered() -> None:
    opened, cell = at([CELLS[2]], 0, 0)
    judged = OtherCells().judged(opened, cell, PYTHON)
    assert judged.covered_lines == (range(1), range(2, 4))
    assert judged.diagnostics == ("line 2: left out, since it does not parse",)


def test_in_a_magic_the_rest_of_a_broken_cell_is_not_covered() -> None:
    text = "x = = 1\n%time f()\ny = 2"
    opened, cell = at([text], 0, text.index(")"))
    judged = OtherCells().judged(opened, cell, PYTHON)
    assert judged.covered_lines == (range(1, 2),)


def test_cells_that_parse_change_nothing() -> None:
    opened, cell = at(["x = 1", "%timeit f(x)\n!ls", "await x"], 0, 5)
    assert OtherCells().judged(opened, cell, PYTHON) is opened


def test_each_cell_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    broken_at = other_cells.broken_at

    def noted(empty: Session, text: str) -> int | None:
        parsed.append(text)
        return broken_at(empty, text)

    monkeypatch.setattr(other_cells, "broken_at", noted)
    known = OtherCells()
    for offset in range(5):
        known.judged(*at(CELLS, 0, offset), PYTHON)
    known.judged(*at(["x = 12", *CELLS[1:]], 0, 6), PYTHON)
    assert sorted(parsed) == sorted(set(parsed))
    assert len(parsed) == 5  # the programs of the other cells, one of which holds two


def test_slow_cells_are_read_for_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_cells, "SECONDS", -1)
    known = OtherCells()
    opened, cell = at(["x = 1", "y = 2"], 0, 5)
    judged = known.judged(opened, cell, PYTHON)
    assert (judged.guarantee, judged.unread, judged.is_unfinished) == ("partial", True, True)
    assert judged.diagnostics == ("not all cells of the notebook are read yet",)
    monkeypatch.setattr(other_cells, "SECONDS", 60)
    assert known.judged(opened, cell, PYTHON) is opened


def test_the_kept_verdicts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_cells, "MOST_CHARACTERS", 20)
    known = OtherCells()
    texts = ["x", *(f"y{number} = 'a'" for number in range(30))]
    opened, cell = at(texts, 0, 1)
    assert known.judged(opened, cell, PYTHON) is opened
    assert known.judged(opened, replace(cell, units=(tuple(cell.units[2]),)), PYTHON) is opened
    assert len(known._known) <= 3


def test_without_a_guarantee_cells_are_not_read() -> None:
    opened, cell = at(CELLS, 0, 5)
    nothing = replace(opened, guarantee="none")
    assert OtherCells().judged(nothing, cell, PYTHON) is nothing
