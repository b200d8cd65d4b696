"""Notebooks over the real protocol: the cells are one program, and what the editor gets stays in the cell."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from support.editors.editor import PATIENCE, SETTINGS, Wire, parses, wired
from support.editors.notebooks import SYNCHRONIZES, NotebookEditor, covered, guarantee, notebook_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/fim-server-notebooks/a.ipynb"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def wire() -> AsyncIterator[Wire]:
    async with notebook_server() as wire:
        yield wire


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def strict() -> AsyncIterator[Wire]:
    """A server that offers no name that nothing binds."""
    async with notebook_server(names="require") as wire:
        yield wire


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def names_off() -> AsyncIterator[Wire]:
    """A server whose texts do not depend on names, nor on what was asked before."""
    async with notebook_server(names="off", prefetch=False) as wire:
        yield wire


async def opened(wire: Wire, *cells: str | tuple[str, str], path: str = PATH) -> NotebookEditor:
    editor = NotebookEditor(wire, path)
    await editor.open(*cells)
    return editor


async def test_the_server_asks_for_cells_of_all_notebooks(wire: Wire) -> None:
    (selector,) = wire.answers["capabilities"]["notebookDocumentSync"]["notebookSelector"]
    assert selector["notebook"] == "*"
    assert {"language": "python"} in selector["cells"]


def words(items: list[dict[str, Any]]) -> set[str]:
    """The letters that items add to the word at the cursor."""
    found = (re.match(r"\w+", item["insertText"]) for item in items)
    return {word[0] for word in found if word is not None}


async def test_names_of_other_cells_are_bound(strict: Wire) -> None:
    cells = "rows_of_table = [1, 2]", ("markdown", "# Sums"), "x = rows_of_tab", "def sum_of_rows(x): pass"
    editor = await opened(strict, *cells)
    assert words(await editor.ask(2, "rows_of_tab")) == {"le"}
    await editor.edit(2, 0, len("x = rows_of_tab"), "x = sum_of_r")
    assert words(await editor.ask(2, "sum_of_r")) == {"ows"}
    await editor.edit(2, 0, len("x = sum_of_r"), "x = none_of_r")
    assert words(await editor.ask(2, "none_of_r")) == set()
    await editor.close()


async def test_ranges_and_the_guarantee_are_the_cells(wire: Wire) -> None:
    editor = await opened(wire, "import os\n" * 20, "x = 1\nprint(x", "y = 2")
    items = await editor.ask(1, "print(x")
    assert items
    for item in items:
        assert item["range"]["start"] == item["range"]["end"] == {"line": 1, "character": 7}
        assert guarantee(item) == "exact"
        assert parses(editor.cells[1].applied(item))
    assert editor.last["uri"] == editor.cells[1].uri
    await editor.close()


@pytest.mark.parametrize(
    "command", ["%matplotlib inline", "!ls 'a", "rows = !ls", "len?", "?len", "x = %who", "!!ls (", "%cd ../"]
)
async def test_commands_are_statements(wire: Wire, command: str) -> None:
    for cells, at in ((("print(len", command), 0), ((f"{command}\nprint(len",), 0), ((command, "", "print(len"), 2)):
        editor = await opened(wire, *cells)
        items = await editor.ask(at, "print(len")
        assert {guarantee(item) for item in items} == {"exact"}
        await editor.close()


@pytest.mark.parametrize(
    ("cell", "mark"),
    [
        ("%timeit len(", "("),
        ("%timeit -n 10 -r3 sum(len(x) for x in ", "in "),
        ("for x in range(3):\n    %time print(x", "print(x"),
        ("best = %timeit -o len(", "("),
        ("%%timeit\nlen(", "("),
        ("%%timeit rows = len(\nrows", "("),
        ("%%capture out\n%%time\nprint(", "("),
        ("%prun -l 5 len(", "("),
    ],
)
async def test_magics_with_python_are_completed(wire: Wire, cell: str, mark: str) -> None:
    editor = await opened(wire, "rows = [1]", cell)
    items = await editor.ask(1, mark)
    assert items, editor.last["reason"]
    assert {guarantee(item) for item in items} == {"exact"}
    line = editor.cells[1].position(cell.index(mark) + len(mark))["line"]
    for item in items:
        assert item["range"]["start"]["line"] == item["range"]["end"]["line"] == line
        assert cell.startswith("%%") or "\n" not in item["insertText"]
    await editor.close()


@pytest.mark.parametrize("magic", ["%%bash", "%%sql", "%%html", "%%writefile a.py", "%%javascript", "%%unknown", "%%"])
async def test_cells_of_other_languages_get_nothing_and_break_nothing(wire: Wire, magic: str) -> None:
    editor = await opened(wire, f"{magic}\nselect ( from", "print(len")
    assert await editor.ask(0, "select") == []
    assert "magic" in editor.last["reason"]
    assert {guarantee(item) for item in await editor.ask(1, "print(len")} == {"exact"}
    await editor.close()


@pytest.mark.parametrize("cell", ["!ls", "%cd", "x = !l", "le?", "%timeit -n ", "?le"])
async def test_no_suggestions_inside_commands(wire: Wire, cell: str) -> None:
    editor = await opened(wire, "y = 1", cell)
    for invoked in (True, False):
        assert await editor.ask_at(1, len(cell), invoked) == []
        assert "command" in editor.last["reason"]
    await editor.close()


async def test_a_broken_cell_elsewhere_leaves_the_guarantee_for_the_cursors(wire: Wire) -> None:
    editor = await opened(wire, "ok = 1", "first = 1\nbroken = (\n", "a = 1\nb = 2\nprint(len")
    for item in await editor.ask(2, "print(len"):
        assert guarantee(item) == "partial"
        assert covered(item) == [(0, 3)]
        assert parses(editor.cells[2].applied(item))
    told = (await editor.explain(2, len("a = 1\nb = 2\nprint(len")))["result"]
    assert told["guarantee"] == "partial"
    assert told["diagnostics"] == ["code cell 2, line 3: left out, since it does not parse"]
    assert told["openLeft"][0]["line"] == 2
    await editor.edit(1, len("first = 1\nbroken = ("), len("first = 1\nbroken = ("), ")")
    assert {guarantee(item) for item in await editor.ask(2, "print(len")} == {"exact"}
    await editor.close()


async def test_a_broken_line_is_reported_by_the_cells_lines(wire: Wire) -> None:
    editor = await opened(wire, "ok = 1\nok = 2\nok = 3", "def (:\nx = 1\nprint(len")
    items = await editor.ask(1, "print(len")
    assert items
    for item in items:
        assert guarantee(item) == "partial"
        assert covered(item) == [(1, 2)]
    await editor.close()


async def test_a_broken_magic_of_the_cursors_cell_is_not_covered(wire: Wire) -> None:
    editor = await opened(wire, "ok = 1\nok = 2", "x = 1\n%time f((\ny = 2\nprint(len")
    items = await editor.ask(1, "print(len")
    assert items
    assert {guarantee(item) for item in items} == {"partial"}
    assert [covered(item) for item in items] == [[(0, 1), (2, 2)]] * len(items)
    told = (await editor.explain(1, len("x = 1\n%time f((\ny = 2\nprint(len")))["result"]
    assert told["diagnostics"] == ["line 2: left out, since it does not parse"]
    await editor.close()


async def test_covered_lines_move_with_what_is_typed(wire: Wire) -> None:
    """They are the cell's, also where an answer is remembered, however many cells stand above."""
    editor = await opened(wire, "broken = (\n" * 7, "if len:\n    pri", "broken = (")
    (first, *_) = await editor.ask(1, "pri")
    assert covered(first) == [(0, 2)]
    await editor.edit(1, len("if len:\n    pri"), len("if len:\n    pri"), first["insertText"][:1])
    for item in await editor.ask(1, f"pri{first['insertText'][:1]}"):
        assert covered(item) == [(0, 2)]
    assert editor.last["origin"] == "cache"
    await editor.close()


async def test_a_placeholder_is_reported_by_the_cells_line(wire: Wire) -> None:
    editor = await opened(wire, "x = 1\n" * 30, "try:\n    pri\n\ny = 2")
    told = (await editor.explain(1, len("try:\n    pri")))["result"]
    assert told["standIn"]["line"] == 1
    for item in await editor.ask(1, "pri", invoked=False):
        assert item["command"]["arguments"][0]["standIn"] == told["standIn"]
    await editor.close()


async def test_await_at_top_level_and_a_last_semicolon_are_legal(wire: Wire) -> None:
    editor = await opened(
        wire, "import asyncio\nawait asyncio.sleep(0)", "len([1]);", "print(len", "async with x as y:\n    pass"
    )
    assert {guarantee(item) for item in await editor.ask(2, "print(len")} == {"exact"}
    await editor.close()


async def test_cells_come_go_and_move(strict: Wire) -> None:
    editor = await opened(strict, "x = value_of_r", "y = 1")
    assert words(await editor.ask(0, "value_of_r")) == set()
    await editor.splice(1, 0, [editor.cell("value_of_rows = 2")])
    assert words(await editor.ask(0, "value_of_r")) == {"ows"}
    await editor.splice(0, 2, [editor.cells[1], editor.cells[0]])  # moved: the texts are not told again
    assert words(await editor.ask(1, "value_of_r")) == {"ows"}
    await editor.splice(0, 1)
    assert words(await editor.ask(0, "value_of_r")) == set()
    await editor.close()


async def test_a_cell_that_becomes_markdown_leaves_the_program(wire: Wire) -> None:
    editor = await opened(wire, "broken = (", "print(len")
    assert {guarantee(item) for item in await editor.ask(1, "print(len")} == {"partial"}
    cell = {**editor.cells[0].in_notebook, "kind": 1, "metadata": {"tags": []}}
    await editor.change(data=[cell])
    assert {guarantee(item) for item in await editor.ask(1, "print(len")} == {"exact"}
    await editor.close()


async def test_executing_a_cell_changes_nothing(wire: Wire) -> None:
    editor = await opened(wire, "x = 1", "print(len")
    before = await editor.ask(1, "print(len")
    summary = {**editor.cells[0].in_notebook, "executionSummary": {"executionOrder": 3, "success": True}}
    await editor.change(data=[summary])
    after = await editor.ask(1, "print(len")
    assert [item["insertText"] for item in after] == [item["insertText"] for item in before]
    assert editor.last["origin"] == "cache"
    await editor.close()


async def test_odd_changes_of_notebooks_leave_a_living_server(wire: Wire) -> None:
    editor = await opened(wire, "x = 1", "print(len")
    await editor.note("didChange", {"notebookDocument": {"uri": "file:///none.ipynb", "version": 2}, "change": {}})
    other = editor.cell("lost")
    await editor.change(textContent=[editor.changed(other, 0, 0, "a")])
    await editor.change(data=[other.in_notebook])
    await editor.change(structure={"array": {"start": 99, "deleteCount": 99}})
    await editor.note("didSave", {"notebookDocument": {"uri": editor.uri}})
    assert await editor.ask(1, "print(len")
    await editor.close()
    await editor.note("didClose", {"notebookDocument": {"uri": editor.uri}, "cellTextDocuments": []})
    assert await editor.ask(1, "print(len") == []
    assert editor.last["reason"] == "the document is not open"


async def test_cells_opened_one_by_one_are_a_notebook(strict: Wire) -> None:
    editor = NotebookEditor(strict, "/fim-server-notebooks/single.ipynb")
    editor.cells = [editor.cell(text) for text in ("x = rows_of_tab", "%time\nrows_of_table = 1")]
    for cell in editor.cells:
        await strict.open(cell.uri, cell.text)
    assert words(await editor.ask(0, "rows_of_tab")) == {"le"}
    for cell in editor.cells:
        await strict.send(Wire.note("textDocument/didClose", {"textDocument": {"uri": cell.uri}}))


async def test_in_a_single_cell_any_name_may_be_bound(strict: Wire) -> None:
    uri = "vscode-notebook-cell:/fim-server-notebooks/lone.ipynb#W0sZmlsZQ%3D%3D"
    text = "frame.head()\nprint(frame"
    await strict.open(uri, text)
    answer = await strict.ask("lone", "textDocument/inlineCompletion", Wire.completion(uri, 1, 11))
    assert answer["result"]["items"]
    await strict.send(Wire.note("textDocument/didClose", {"textDocument": {"uri": uri}}))


async def test_all_cells_in_one_text_are_a_notebook_but_json_is_not(wire: Wire) -> None:
    uri = "file:///fim-server-notebooks/lab.ipynb"
    await wire.open(uri, "%matplotlib inline\nfiles = !ls\nprint(len")
    answer = await wire.ask("lab", "textDocument/inlineCompletion", Wire.completion(uri, 2, 9))
    assert {guarantee(item) for item in answer["result"]["items"]} == {"exact"}
    await wire.send(Wire.note("textDocument/didClose", {"textDocument": {"uri": uri}}))
    await wire.open(uri, '{"cells": [\n  %a', "json")
    answer = await wire.ask("json", "textDocument/inlineCompletion", Wire.completion(uri, 1, 4))
    assert answer["result"]["items"] == []
    await wire.send(Wire.note("textDocument/didClose", {"textDocument": {"uri": uri}}))


@pytest.mark.parametrize(
    "text",
    [
        "import os\n\n\ndef names(path, count):\n    return ‸\n",
        "total = sum(n for ‸)",
        "rows = [1, 2]\nfor row in rows:\n    print(‸)\n",
        "class A:\n    def f(self):\n        ‸\n\n    def g(self):\n        return 1\n",
        "try:\n    x = int(‸\n",
    ],
)
async def test_a_cell_by_itself_gets_what_a_file_gets(names_off: Wire, text: str) -> None:
    left, right = text.split("‸")
    editor = await opened(names_off, left + right)
    uri = "file:///fim-server-notebooks/same.py"
    await names_off.open(uri, left + right)
    place = editor.cells[0].position(len(left))
    for invoked in (True, False):
        params = Wire.completion(uri, place["line"], place["character"], invoked)
        answer = await names_off.ask(f"file {invoked}", "textDocument/inlineCompletion", params)
        in_file = [(item["insertText"], item["range"], guarantee(item)) for item in answer["result"]["items"]]
        in_cell = await editor.ask_at(0, len(left), invoked)
        assert [(item["insertText"], item["range"], guarantee(item)) for item in in_cell] == in_file
    await names_off.send(Wire.note("textDocument/didClose", {"textDocument": {"uri": uri}}))
    await editor.close()


async def test_the_suggestion_list_gets_cells_too() -> None:
    """A client without inline completion, which synchronizes notebooks."""
    async with wired("--model=embedded") as (_, wire):
        offered = {
            "textDocument": {"completion": {"completionItem": {"snippetSupport": True}}},
            "notebookDocument": SYNCHRONIZES,
        }
        params = {"processId": os.getpid(), "capabilities": offered, "rootUri": None, "initializationOptions": SETTINGS}
        await wire.ask("begin", "initialize", params)
        await wire.send(Wire.note("initialized", {}))
        await wire.is_ready()
        editor = await opened(wire, "!ls\nx = 1", "y = 2\n%timeit len(x", "%%bash\nls")
        place = {"textDocument": {"uri": editor.cells[1].uri}, "position": {"line": 1, "character": 13}}
        items = (await wire.ask("list", "textDocument/completion", place))["result"]["items"]
        assert items
        for item in items:
            assert item["textEdit"]["range"]["start"] == {"line": 1, "character": 12}
            assert item["textEdit"]["newText"].startswith("x")
        place["textDocument"] = {"uri": editor.cells[2].uri}
        place["position"] = {"line": 1, "character": 2}
        assert (await wire.ask("foreign", "textDocument/completion", place))["result"]["items"] == []


async def test_the_notebooks_folder_decides_the_version(wire: Wire, tmp_path: Path) -> None:
    project = '[project]\nname = "a"\nversion = "1"\nrequires-python = "==3.9.*"\n'
    (tmp_path / "pyproject.toml").write_text(project, encoding="utf-8")
    settings = {"settings": {"fim-server": {**SETTINGS, "pythonVersion": None}}}
    await wire.send(Wire.note("workspace/didChangeConfiguration", settings))
    editor = await opened(wire, "x = 1", "match x:\n    case 1:\n        pass", path=f"{tmp_path}/a.ipynb")
    told = (await editor.explain(0, 5))["result"]
    assert told["language"] == "python 3.9"
    assert told["diagnostics"] == ["code cell 2, line 1: left out, since it does not parse"]
    await editor.close()
    cell = editor.cells[0]  # the same where cells are told of one by one
    await wire.open(cell.uri, cell.text)
    assert (await editor.explain(0, 5))["result"]["language"] == "python 3.9"
    await wire.send(Wire.note("textDocument/didClose", {"textDocument": {"uri": cell.uri}}))
    restored = {"settings": {"fim-server": dict(SETTINGS)}}
    await wire.send(Wire.note("workspace/didChangeConfiguration", restored))


async def test_a_notebook_that_is_too_large_is_declined_as_a_file_is(wire: Wire) -> None:
    editor = await opened(wire, "x = 1\n" * 100_000, "y = 2\n" * 100_000, "print(len")
    assert await editor.ask(2, "print(len") == []
    assert "maxFileCharacters" in editor.last["reason"]
    await editor.close()


async def test_text_of_other_cells_is_recalled() -> None:
    """The project's memory gets the notebook as one document, without the cursor's line."""
    async with notebook_server(projectMemory=True, askModel=False) as wire:
        line = "figure.savefig(folder / 'overview_of_rows.png', dpi=300)"
        editor = await opened(wire, f"folder = 1\n{line}\n", f"folder = 2\n{line}\n", "folder = 3\nfigure.savefig(")
        items: list[dict[str, Any]] = []
        for _ in range(20 * PATIENCE):  # what is told is taken in aside
            items = items or await editor.ask(2, "figure.savefig(")
            await asyncio.sleep(0 if items else 0.05)
        assert items[0]["insertText"] == line.removeprefix("figure.savefig(")
        assert editor.last["origin"] == "memory"
