"""Next edits in a real Neovim, with the server and its embedded model."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from support.editors.neovim import ESCAPE, LOADING_PATIENCE, SERVE, TAB, Neovim, needs_neovim

pytestmark = needs_neovim

FAR = 31
BETWEEN = "    print(0)\n" * (FAR - 5)
TEXT = f"""def total(values):  # 😀

    for one in "😀", values:
        print(one)
{BETWEEN}    return len(values)
"""
"""A function with uses of its parameter in line 3 and, below the window, in line 31."""
LONG = "".join(f"x{number} = load({number}, None)\n" for number in range(5))
SHAPES = "def area(width):\n    return width\n"
USES = "import {name}\n\n\nprint({name}.area(1))\nprint({name}.area(2))\n"
NAMES = ("walked", "dismissed", "undone", "left", "plain", "mapped", "stopped")
OLD, NEW = "blue", "green"
CONFIGURATION = """
vim.cmd('highlight FimEditRemoved ctermfg=4 | highlight FimEditAdded ctermfg=2')
vim.api.nvim_create_autocmd('BufRead', {
  pattern = 'mapped.py',
  callback = function()
    vim.keymap.set('n', '<Tab>', [[<Cmd>echo 'mapped' 'tab'<CR>]], { buffer = true })
    vim.keymap.set('i', '<Tab>', 'mapped', { buffer = true })
  end,
})
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neovim]:
    """Neovim without automatic ghost text."""
    folder = tmp_path_factory.mktemp("served")
    for name in NAMES:
        (folder / f"{name}.py").write_text(TEXT, encoding="utf-8")
    (folder / "lines.py").write_text(LONG, encoding="utf-8")
    for name in ("shapes", "circles"):
        (folder / f"{name}.py").write_text(SHAPES, encoding="utf-8")
        (folder / f"use_{name}.py").write_text(USES.format(name=name), encoding="utf-8")
    server = ", ".join(json.dumps(argument) for argument in [*SERVE, "--model=embedded"])
    options = f"cmd = {{ {server} }}, keymaps = true, settings = {{ trigger = 'manual' }}"
    with Neovim(folder, options, "walked.py", CONFIGURATION) as neovim:
        neovim.until(lambda: "fim: ready" in neovim.text, "model", LOADING_PATIENCE)
        yield neovim


def edit(neovim: Neovim, name: str) -> None:
    """Open a file, and wait until the server knows it."""
    neovim.command(f"edit {name} | lua vim.wait(20000, function() return vim.lsp.get_clients({{ bufnr = 0 }})[1] end)")
    neovim.until(lambda: name in neovim.lines[-2], "file")


def rename(neovim: Neovim, name: str) -> None:
    """Rename the parameter in a file, which leaves Neovim in insert mode with the first use shown."""
    edit(neovim, name)
    neovim.type("ggfvcw")
    neovim.until_shown("-- INSERT --")
    neovim.type_slowly("items")
    until_edit(neovim, "values", "items")


def until_edit(neovim: Neovim, old: str, *new: str) -> None:
    """Wait for a visible edit."""
    neovim.until(
        lambda: "".join(neovim.coloured(OLD)).strip() == old and neovim.coloured(NEW) == list(new), f"edit {new}"
    )


def until_none(neovim: Neovim) -> None:
    neovim.until(lambda: not neovim.coloured(OLD) and not neovim.coloured(NEW), "text without an edit")


def test_tab_walks_the_uses_of_a_renamed_parameter(served: Neovim) -> None:
    rename(served, "walked.py")
    assert served.lines[2].endswith(", valuesitems:")
    served.type(TAB)
    served.look(0.1)
    assert served.coloured(NEW) == ["items"]
    served.type(TAB)
    served.until_shown(f"→ line {FAR}")
    until_none(served)
    served.escape()
    served.type(TAB)
    until_edit(served, "values", "items")
    assert "→ line" not in served.text
    served.type(TAB)
    until_none(served)
    assert served.saved("walked.py") == TEXT.replace("values", "items")


def test_a_dismissed_edit_stays_away(served: Neovim) -> None:
    rename(served, "dismissed.py")
    served.escape()
    served.type(ESCAPE)
    until_none(served)
    served.type("i")
    served.until_shown("-- INSERT --")
    served.escape()
    served.look(0.4)
    until_none(served)
    served.type("u")
    served.until_shown("def total(values)")
    served.type("\x12")  # Ctrl-R: renamed again
    served.until_shown(f"→ line {FAR}")  # the other use
    assert not served.coloured(NEW)


def test_a_change_withdraws_an_edit(served: Neovim) -> None:
    rename(served, "undone.py")
    served.escape()
    served.type("u")
    until_none(served)
    served.look(0.4)
    until_none(served)
    assert served.saved("undone.py") == TEXT


def test_leaving_the_buffer_withdraws_an_edit_and_entering_asks_again(served: Neovim) -> None:
    rename(served, "left.py")
    served.escape()
    served.command("set hidden | edit undone.py")
    served.until(lambda: "undone.py" in served.lines[-2], "other file")
    until_none(served)
    edit(served, "left.py")
    until_edit(served, "values", "items")


def test_tab_without_an_edit_is_what_it_was(served: Neovim) -> None:
    rename(served, "plain.py")
    served.escape()
    served.type(ESCAPE)
    until_none(served)
    served.type("Ggg\x0f")  # Ctrl-O
    served.until_shown("return len(values)")
    served.type(TAB)
    served.until_shown("def total(items)")
    served.type("O")
    served.until_shown("-- INSERT --")
    served.type(TAB + "x")
    served.escape()
    assert served.saved("plain.py").startswith("    x\n")


def test_earlier_mappings_come_back(served: Neovim) -> None:
    rename(served, "mapped.py")
    served.escape()
    served.type(TAB + TAB)
    served.until_shown(f"→ line {FAR}")
    assert "mapped tab" not in served.text
    served.type(ESCAPE + TAB)
    served.until_shown("mapped tab")
    served.type("O" + TAB)
    served.until_shown("mapped", "mapping")
    served.escape()
    assert "mapped\n" in served.saved("mapped.py")


def rename_area(neovim: Neovim, name: str) -> None:
    """Rename the function of one file, whose uses are in another open one."""
    edit(neovim, f"use_{name}.py")
    edit(neovim, f"{name}.py")
    neovim.type("gg0wcw")
    neovim.until_shown("-- INSERT --")
    neovim.type_slowly("size")
    neovim.escape()
    neovim.until_shown(f"→ use_{name}.py, line 4")


def until_no_hint(neovim: Neovim) -> None:
    neovim.until(lambda: "→" not in neovim.text, "text without a hint")


def test_tab_walks_into_another_file(served: Neovim) -> None:
    served.command("set hidden")
    rename_area(served, "shapes")
    served.type("u")
    until_no_hint(served)
    served.type("\x12")  # Ctrl-R: renamed again
    served.until_shown("→ use_shapes.py, line 4")
    served.type(TAB)
    until_edit(served, "area", "size")
    assert "use_shapes.py" in served.lines[-2]
    until_no_hint(served)
    served.type(TAB)
    served.until_shown("shapes.size(1)")
    served.until_shown("shapes.areasize(2)")
    served.command("buffer shapes.py")
    served.until_shown("→ use_shapes.py, line 5")
    served.type(TAB)
    until_edit(served, "area", "size")
    served.type(TAB)
    until_none(served)
    assert served.saved("use_shapes.py") == USES.format(name="shapes").replace("area", "size")
    assert served.saved("shapes.py") == SHAPES.replace("area", "size")


def test_an_edit_of_another_file_is_dismissed_where_it_is_named(served: Neovim) -> None:
    rename_area(served, "circles")
    served.type(ESCAPE)
    until_no_hint(served)
    served.command("buffer use_circles.py")
    until_edit(served, "area", "size")
    served.command("buffer circles.py")
    served.until(lambda: served.lines[-2].startswith("circles.py"), "file")
    served.look(0.6)
    until_no_hint(served)


def test_an_edit_of_several_lines_is_drawn_below(served: Neovim) -> None:
    edit(served, "lines.py")
    for line in (1, 3, 5, 7):
        served.command(f"{line}substitute/ None/\\r  70/")
    until_edit(served, "None", "x4 = load(4,", "  70)")


def test_a_stopped_server_withdraws_its_edit(served: Neovim) -> None:
    rename(served, "stopped.py")
    served.escape()
    served.command("lua vim.lsp.stop_client(vim.lsp.get_clients())")
    until_none(served)
