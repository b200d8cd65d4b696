"""docs/editors/neovim/ in a real Neovim: what a user types, and what the terminal shows.

Most tests have a scripted server, so that there is something to offer where they need it; the last ones have the
server and its embedded model.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.editors.neovim import FOUND, LOADING_PATIENCE, PLUGIN, SERVE, TAB, Neovim, needs_neovim

pytestmark = needs_neovim

SCRIPTED = Path(__file__).parents[1] / "support" / "servers" / "scripted_server.py"
WORD, LINE, NEXT, PREVIOUS, DISMISS = "\x1bw", "\x1bl", "\x1bn", "\x1bp", "\x1be"

Start = Callable[..., Neovim]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start Neovim on a file `a.py` with a scripted server."""
    running: list[Neovim] = []

    def starter(
        text: str,
        targets: list[str],
        options: str = "",
        configuration: str = "",
        without_file: str | None = None,
        ready: str = "fim: ready",
        **script: Any,
    ) -> Neovim:
        (tmp_path / "a.py").write_bytes(text.encode())
        (tmp_path / "script.json").write_text(json.dumps({"targets": {"a.py": targets}, **script}), encoding="utf-8")
        server = [sys.executable, "-I", "-S", str(SCRIPTED), str(tmp_path / "script.json"), str(tmp_path / "log")]
        arguments = ", ".join(json.dumps(argument) for argument in server)
        if without_file is None:
            neovim = Neovim(tmp_path, f"cmd = {{ {arguments} }}, keymaps = true, {options}", "a.py", configuration)
            running.append(neovim)
            neovim.until_shown(ready, "status")
        else:
            named = without_file.replace("{ 'fim-server', 'serve' }", f"{{ {arguments} }}")
            neovim = Neovim(tmp_path, None, "a.py", named)
            running.append(neovim)
            neovim.until(lambda: neovim.log("initialized"), "server")
            neovim.look(0.3)
        return neovim

    yield starter
    for neovim in running:
        neovim.__exit__()


# --- ghost text --------------------------------------------------------------------------------------------------


def test_ghost_text_of_many_lines_is_typed_through_and_accepted(start: Start) -> None:
    target = "def f(a):\n    return (\n        a)\n"
    neovim = start("\n", [target])
    neovim.insert("id")
    neovim.until_ghost("ef f(a):", "return (", "a)")
    assert neovim.lines[:3] == ["def f(a):", "    return (", "        a)"]
    asked = len(neovim.log("textDocument/inlineCompletion"))
    neovim.type_slowly("ef f(")
    neovim.until_ghost("a):", "return (", "a)")
    assert len(neovim.log("textDocument/inlineCompletion")) == asked
    neovim.type(TAB)
    neovim.until_ghost()
    neovim.escape()
    assert neovim.saved("a.py") == target
    neovim.until(lambda: neovim.log("workspace/executeCommand"), "acceptance")
    (accepted,) = neovim.log("workspace/executeCommand")
    assert accepted == {"command": "fim-server.accepted", "arguments": [{"id": "0", "guarantee": "exact"}]}


def test_other_text_takes_ghost_text_away(start: Start) -> None:
    neovim = start("\n", ["print(a)\n"])
    neovim.insert("ipr")
    neovim.until_ghost("int(a)")
    neovim.type("x")
    neovim.until_ghost()
    neovim.type("\x08")  # backspace: asked again
    neovim.until_ghost("int(a)")
    neovim.escape()
    neovim.until_ghost()


def test_a_text_may_take_the_place_of_a_closing_bracket(start: Start) -> None:
    neovim = start("f()\n", ["f(left, right)\n"], covers={"a.py": 1})
    neovim.type("f(")
    neovim.insert("a")
    neovim.until_ghost("left, right")
    assert neovim.lines[0] == "f(left, right)"
    neovim.type(TAB)
    neovim.until_ghost()
    neovim.escape()
    assert neovim.saved("a.py") == "f(left, right)\n"


def test_what_stays_moves_to_the_end_of_ghost_text(start: Start) -> None:
    target = "f(\n    left,\n)  # end\n"
    neovim = start("f()  # end\n", [target], covers={"a.py": 1})
    neovim.type("f(")
    neovim.insert("a")
    neovim.until(lambda: neovim.lines[:3] == target.splitlines(), "what it would look like")
    neovim.type(TAB)
    neovim.until_ghost()
    neovim.escape()
    assert neovim.saved("a.py") == target


def test_acceptance_by_word_and_by_line(start: Start) -> None:
    neovim = start("\n", ["first(second, third)\nfourth(fifth)\nsixth\n"])
    neovim.insert("if")
    neovim.until_ghost("irst(second, third)", "fourth(fifth)", "sixth")
    neovim.type(WORD)
    neovim.until_ghost("(second, third)", "fourth(fifth)", "sixth")
    neovim.type(WORD + WORD)
    neovim.until_ghost(", third)", "fourth(fifth)", "sixth")
    neovim.type(LINE)
    neovim.until_ghost("fourth(fifth)", "sixth")
    neovim.type(LINE)
    neovim.until_ghost("sixth")
    assert neovim.log("workspace/executeCommand") == []
    neovim.type(WORD)
    neovim.until_ghost()
    neovim.escape()
    assert neovim.saved("a.py") == "first(second, third)\nfourth(fifth)\nsixth\n"
    neovim.until(lambda: len(neovim.log("workspace/executeCommand")) == 1, "one acceptance")


def test_the_last_word_before_a_closing_bracket_accepts_the_rest(start: Start) -> None:
    neovim = start("f()\n", ["f(left)\n"], covers={"a.py": 1})
    neovim.type("f(")
    neovim.insert("a")
    neovim.until_ghost("left")
    neovim.type(WORD)
    neovim.until_ghost()
    neovim.escape()
    assert neovim.saved("a.py") == "f(left)\n"
    neovim.until(lambda: len(neovim.log("workspace/executeCommand")) == 1, "one acceptance")


def test_undo_takes_back_an_acceptance_alone(start: Start) -> None:
    neovim = start("\n", ["first = 1\nsecond = 2\n"])
    neovim.insert("ifir")
    neovim.until_ghost("st = 1", "second = 2")
    neovim.type(TAB)
    neovim.until_ghost()
    neovim.escape()
    neovim.type("u")
    neovim.until(lambda: neovim.lines[0] == "fir", "what was typed")
    assert neovim.saved("a.py") == "fir\n"


def test_alternatives(start: Start) -> None:
    neovim = start("\n", ["print(a)\n", "print(b,\n      c)\n"])
    neovim.insert("ip")
    neovim.until_ghost("rint(a)")
    assert [request["context"]["triggerKind"] for request in neovim.log("textDocument/inlineCompletion")] == [2]
    neovim.type(NEXT)
    neovim.until_ghost("rint(b,", "c)")
    assert "(2/2)" in neovim.lines[0]
    assert neovim.log("textDocument/inlineCompletion")[-1]["context"]["triggerKind"] == 1
    neovim.type(NEXT)
    neovim.until_ghost("rint(a)")
    neovim.type(PREVIOUS)
    neovim.until_ghost("rint(b,", "c)")
    assert len(neovim.log("textDocument/inlineCompletion")) == 2
    neovim.type(TAB)
    neovim.until_ghost()
    neovim.escape()
    assert neovim.saved("a.py") == "print(b,\n      c)\n"


def test_asking_where_there_is_nothing_says_why(start: Start) -> None:
    neovim = start("\n", ["print(a)\n"])
    neovim.insert("ix")
    neovim.type(NEXT)
    neovim.until_shown("no target begins like this")
    neovim.type("y")
    neovim.until(lambda: neovim.lines[0] == "xy", "what was typed alone")


def test_dismissed_until_something_changes(start: Start) -> None:
    neovim = start("\n", ["print(a)\n"])
    neovim.insert("ip")
    neovim.until_ghost("rint(a)")
    neovim.type(DISMISS)
    neovim.until_ghost()
    neovim.look(0.3)
    assert neovim.ghost == []
    neovim.last_sent(
        "workspace/executeCommand",
        lambda sent: sent == {"command": "fim-server.dismissed", "arguments": [{"id": "0", "guarantee": "exact"}]},
    )
    neovim.type("r")
    neovim.until_ghost("int(a)")


def test_typing_cancels_the_request_before(start: Start) -> None:
    neovim = start("\n", ["print(abc, defg)\n"], delayMs=400)
    neovim.insert("i")
    neovim.type_slowly("print(", pause=0.1)
    neovim.until_ghost("abc, defg)")
    asked, cancelled = len(neovim.log("textDocument/inlineCompletion")), len(neovim.log("$/cancelRequest"))
    assert asked >= 3
    assert cancelled == asked - 1


def test_a_change_elsewhere_takes_ghost_text_away(start: Start) -> None:
    script = "vim.keymap.set('i', '<F2>', function() vim.api.nvim_buf_set_lines(0, 2, 3, false, { 'z = 2' }) end)"
    neovim = start("\n\nz = 1\n", ["print(a)\n\nz = 1\n"], configuration=script)
    neovim.insert("ip")
    neovim.until_ghost("rint(a)")
    neovim.type("\x1bOQ")
    neovim.until_ghost()


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 12), ("utf-16", 9), ("utf-32", 8)])
def test_columns_in_every_encoding(start: Start, encoding: str, column: int) -> None:
    target = "f('😀é', b('ß😀'))  # 😀\n"
    neovim = start("f('😀é', )  # 😀\n", [target], encoding=encoding, covers={"a.py": 1})
    neovim.type("f)")
    neovim.last_sent("fim-server/cursor", lambda told: told["position"] == {"line": 0, "character": column})
    neovim.insert("i")
    neovim.until_ghost("b('ß😀')")
    neovim.type(TAB)
    neovim.until_ghost()
    neovim.escape()
    assert neovim.saved("a.py") == target


def test_tabs_and_carriage_returns(start: Start) -> None:
    target = "if a:\r\n\tif b:\r\n\t\tc\r\n"
    neovim = start("\r\n", [target])
    neovim.insert("ii")
    neovim.until_ghost("f a:", "if b:", "c")
    assert "^M" not in neovim.text
    assert neovim.lines[2] == " " * 8 + "c"  # the file type's tabs have four columns
    neovim.type(TAB)
    neovim.until_ghost()
    neovim.escape()
    assert neovim.saved("a.py") == target


def test_no_ghost_text_beside_the_completion_menu(start: Start) -> None:
    neovim = start("print\nprinter\n\n", ["print\nprinter\nprints()\n"])
    neovim.type("G")
    neovim.insert("ipr")
    neovim.until_ghost("ints()")
    neovim.type("\x0e")  # Ctrl-N: words of this file
    neovim.until(lambda: neovim.ghost == [] and "match 1 of" in neovim.text, "menu alone")
    neovim.type("\x19")  # Ctrl-Y: the first entry, "print"
    neovim.until_ghost("s()")


def test_keys_do_what_they_did_where_nothing_is_shown(start: Start) -> None:
    before = "vim.keymap.set('i', '<M-w>', 'plain'); vim.keymap.set('i', '<M-l>', function() return 'expr' end, "
    neovim = start("\n", [], configuration=before + "{ expr = true })")
    neovim.insert("i")
    neovim.type_slowly("a")
    for key in (TAB, WORD, LINE):
        neovim.type(key)
        neovim.look(0.1)
    neovim.escape()
    assert neovim.saved("a.py").replace("\t", " ").split() == ["a", "plainexpr"]


def test_no_key_is_taken_unasked(start: Start) -> None:
    neovim = start("\n", ["print(a)\n"], options="keymaps = { accept = '<C-l>' }")
    neovim.insert("ip")
    neovim.until_ghost("rint(a)")
    neovim.type(TAB)
    neovim.until_ghost()
    neovim.type("\x15p")  # Ctrl-U: the line anew
    neovim.until_ghost("rint(a)")
    neovim.type("\x0c")
    neovim.until_ghost()
    neovim.escape()
    assert neovim.saved("a.py") == "print(a)\n"


# --- next edits --------------------------------------------------------------------------------------------------

NEXT_EDIT = "textDocument/copilotInlineEdit"


def test_next_edits_wait_for_the_end_of_ghost_text(start: Start) -> None:
    neovim = start("\n", ["print(a)\n"])
    neovim.insert("ip")
    neovim.until_ghost("rint(a)")
    neovim.look(0.5)
    assert neovim.log(NEXT_EDIT) == []
    neovim.escape()
    neovim.until(lambda: neovim.log(NEXT_EDIT), "request")
    neovim.insert("ax")
    neovim.look(0.5)
    assert len(neovim.log(NEXT_EDIT)) == 1  # the server has none
    neovim.escape()
    assert neovim.saved("a.py") == "px\n"


def test_next_edits_are_switched_off(start: Start) -> None:
    neovim = start("\n", [], options="next_edits = false, settings = { alternatives = 2 }")
    (initialize,) = neovim.log("initialize")
    assert initialize["initializationOptions"] == {"alternatives": 2, "nextEdits": False}
    neovim.insert("ip")
    neovim.look(0.5)
    neovim.escape()
    assert neovim.log(NEXT_EDIT) == []


# --- commands ----------------------------------------------------------------------------------------------------


def test_explanation_statistics_and_switching_off(start: Start) -> None:
    neovim = start("f()\n", ["f(left)\n"])
    neovim.type("f(")
    neovim.command("FimExplain ]")
    neovim.until_shown("shortest text that connects both sides: `x`")
    neovim.until_shown('most likely `")"`; all of it:')
    assert "the text is refused at byte 1" in neovim.text
    neovim.command("wincmd o")
    neovim.until_shown('20 % `]` refused: "]" cannot come here')
    (explain,) = neovim.log("workspace/executeCommand")
    assert explain["arguments"][0]["position"] == {"line": 0, "character": 1}
    neovim.command("buffer a.py")
    neovim.command("FimStatistics")
    neovim.until_shown("latency.p50Ms            12.5")
    neovim.command("FimExplain")  # of the window before, as a page has no source
    neovim.until_shown("fim-server: line 1, column 2")
    neovim.type("q")
    neovim.command("wincmd o")
    neovim.command("FimExplain")
    neovim.until_shown("fim-server: no source buffer to explain here")
    neovim.command("buffer a.py")
    neovim.command("FimToggle")
    neovim.until_shown("fim: off")
    neovim.insert("a")
    neovim.look(0.3)
    assert neovim.ghost == []
    neovim.escape()
    neovim.command("FimToggle")
    neovim.until_shown("fim: ready")
    neovim.insert("a")
    neovim.until_ghost("left")


def test_snoozed_for_some_minutes(start: Start) -> None:
    neovim = start("\n", ["print(a)\n"])
    neovim.command("FimSnooze 30")
    neovim.until_shown("fim: snoozed, 30 min")
    neovim.insert("ip")
    neovim.look(0.3)
    assert neovim.ghost == []
    neovim.escape()
    neovim.command("FimSnooze nonsense")
    neovim.until_shown("enter a number of minutes")
    neovim.command("FimSnooze 0.03")  # what was begun before ends nothing
    neovim.until_shown("fim: snoozed, 1 min")
    neovim.until_shown("fim: ready")
    neovim.insert("ar")
    neovim.until_ghost("int(a)")
    neovim.escape()
    neovim.command("FimSnooze")
    neovim.until_shown("fim: snoozed, 10 min")
    neovim.command("FimEnable")
    neovim.until_shown("fim: ready")
    neovim.last_sent("workspace/didChangeConfiguration", lambda sent: sent["settings"]["fim-server"]["enabled"])
    sent = [message["settings"]["fim-server"]["enabled"] for message in neovim.log("workspace/didChangeConfiguration")]
    assert False in sent


def test_a_language_that_the_model_has_not_learnt_says_so_until_it_is_switched_on(start: Start) -> None:
    neovim = start("\n", ["print(a)\n"], ready="fim: only on request", model={"languages": ["go"]})
    neovim.command("FimEnable!")
    neovim.until_shown("fim: ready")
    neovim.command("FimDisable!")
    off = {"python": "off"}
    changed = "workspace/didChangeConfiguration"
    neovim.last_sent(changed, lambda sent: sent["settings"]["fim-server"]["languages"] == off)
    neovim.until_shown("fim: ready")  # off is said where it is switched


def test_a_language_is_switched_off_and_on(start: Start) -> None:
    neovim = start("\n", ["print(a)\n"], options="settings = { alternatives = 2 }")
    neovim.command("FimDisable!")
    neovim.until_shown("fim-server: off in python")
    neovim.insert("ip")
    neovim.look(0.3)
    assert neovim.ghost == []
    neovim.escape()
    off = {"enabled": True, "alternatives": 2, "languages": {"python": "off"}}
    neovim.last_sent("workspace/didChangeConfiguration", lambda sent: sent["settings"]["fim-server"] == off)
    neovim.command("FimEnable!")
    neovim.until_shown("fim-server: on in python")
    neovim.insert("ar")
    neovim.until_ghost("int(a)")
    neovim.escape()
    neovim.command("FimDisable")
    neovim.until_shown("fim: off")
    neovim.insert("ai")
    neovim.look(0.3)
    assert neovim.ghost == []
    neovim.escape()
    neovim.command("FimEnable")
    neovim.until_shown("fim: ready")


# --- servers that are not there ----------------------------------------------------------------------------------


def test_a_missing_server_is_said_once(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("a = 1\n", encoding="utf-8")
    with Neovim(tmp_path, "cmd = { 'no-such-fim-server' }", "a.py") as neovim:
        neovim.until_shown("fim-server: no such program: no-such-fim-server")
        neovim.command("edit b.py")
        neovim.until(lambda: "b.py" in neovim.lines[-2], "the other file")
        neovim.look(0.3)
        neovim.type("o")
        neovim.type_slowly("b = 2")
        neovim.escape()
        assert "no such program" not in neovim.text
        assert neovim.saved("b.py") == "a = 1\nb = 2\n"


def test_a_crashed_server_leaves_the_editor_working(start: Start) -> None:
    neovim = start("\n", ["print(a)\n"], exits=True)
    neovim.type("i")
    neovim.until_shown("quit with exit code 3")
    if "Press ENTER" in neovim.text:  # Neovim's own message, longer than the line
        neovim.type("\r")
    neovim.type_slowly("pass")
    neovim.escape()
    assert neovim.saved("a.py") == "pass\n"
    script = neovim.folder / "script.json"
    script.write_text(json.dumps({"targets": {"a.py": ["pass  # again\n"]}}), encoding="utf-8")
    neovim.command("FimRestart")
    neovim.until_shown("fim: ready")
    neovim.type("A")
    neovim.until_ghost("# again")


# --- Neovim's own completion -------------------------------------------------------------------------------------


def test_the_built_in_menu(start: Start) -> None:
    neovim = start("\n", ["print(a)\n"], options="display = 'menu'", configuration="vim.o.completeopt = 'menuone'")
    (initialize,) = neovim.log("initialize")
    assert initialize["capabilities"]["textDocument"].get("inlineCompletion") is None
    neovim.insert("ip")
    neovim.type("\x18\x0f")  # Ctrl-X Ctrl-O
    neovim.until(lambda: neovim.lines[0] == "print(a)", "completion")
    neovim.type("\x19")
    neovim.escape()
    assert neovim.saved("a.py") == "print(a)\n"


def test_the_configuration_without_the_file(start: Start) -> None:
    page = PLUGIN.parents[3].joinpath("editors.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"### Without the plug-in.*?```lua\n(.*?)```", page, re.DOTALL)
    neovim = start("\n", ["print(a,\n      b)\n"], without_file=snippet)
    neovim.insert("ip")
    if FOUND is not None and FOUND[1] < (0, 12):
        neovim.type("\x18\x0f")  # Ctrl-X Ctrl-O
        neovim.until(lambda: neovim.lines[0].startswith("print(a,"), "completion")
        neovim.type("\x19")
    else:
        neovim.until_shown("      b)", "ghost text")
        neovim.type("\x0c")
    neovim.until_shown("      b)")
    neovim.escape()
    assert neovim.saved("a.py") == "print(a,\n      b)\n"


@pytest.mark.skipif(FOUND is None or FOUND[1] < (0, 12), reason="vim.lsp.inline_completion came with Neovim 0.12")
def test_built_in_ghost_text_typed_through(start: Start) -> None:
    highlight = "vim.cmd('highlight ComplHint ctermfg=1')"
    neovim = start("\n", ["print(abc)\n"], options="display = 'builtin'", configuration=highlight)
    neovim.insert("ip")
    neovim.until_ghost("rint(abc)")
    neovim.type("r" + TAB)  # before the next answer: Neovim's own `get` would write "prrint(abc)"
    neovim.until(lambda: neovim.lines[0] == "print(abc)", "acceptance")
    neovim.escape()
    assert neovim.saved("a.py") == "print(abc)\n"


# --- the server itself -------------------------------------------------------------------------------------------

STORE = """import os


class Store:
    def __init__(self, path):
        self.path = path
        self.entries = {}

    def load(self):
        with open(self.path) as file:
            for line in file:
                key, value = line.split("=")
                self.entries[key] = value

    def save(self):


def main(paths):
    stores = [Store(path) for path in paths]
    return os.path.join(stores)
"""
TYPED = [
    "with open(self.path",
    ', "w") as file:\n',
    "for key, value in ",
    "self.entries.items():\n",
    "file.write(key)\n",
]
"""The body of `save`, in the pieces after which a user may stop to look."""
CALLS = ["self.path.join()", "print(self.entries, )", "os.path.join(self.path, )", "self.entries.get()"]
"""Statements for the same body, to be completed before their last bracket."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neovim]:
    """Neovim with the server and its embedded model."""
    folder = tmp_path_factory.mktemp("served")
    for name in ("typed.py", "calls.py", "explained.py"):
        (folder / name).write_text(STORE, encoding="utf-8")
    with_its_number = ["sh", "-c", 'echo $$ >server; exec "$@"', "sh", *SERVE]
    arguments = ", ".join(json.dumps(argument) for argument in with_its_number)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    options = (
        f"cmd = {{ {arguments} }}, keymaps = true, settings = {{ pythonVersion = '{version}', deadlineMs = 5000 }}"
    )
    with Neovim(folder, options, "typed.py") as neovim:
        neovim.until(lambda: "fim: ready" in neovim.text, "model", LOADING_PATIENCE)
        yield neovim


def wait_for_offer(neovim: Neovim) -> bool:
    """Wait until ghost text is shown, or until the server has nothing to offer."""
    idle_since = time.monotonic()
    while time.monotonic() - idle_since < 1:
        if neovim.ghost:
            return True
        neovim.look(0.05)
        if "busy" in neovim.text:
            idle_since = time.monotonic()
    return False


def test_a_user_types_and_accepts_what_the_model_writes(served: Neovim) -> None:
    served.command("edit typed.py")
    served.type("15G")
    served.insert("o")
    offers = 0
    for piece in TYPED:
        served.type_slowly(piece)
        if not wait_for_offer(served):
            continue
        offers += 1
        typed = piece.rstrip("\n").rsplit("\n", 1)[-1]
        assert any(typed in line for line in served.lines)  # the ghost text is behind what was typed, and hides nothing
        print(served.text)
    assert offers, f"the model has offered nothing:\n{served.text}"
    served.type("pass\r")
    wait_for_offer(served)
    served.type(TAB if served.ghost else "pass")
    served.escape()
    ast.parse(served.saved("typed.py"))


def is_balanced(line: str) -> bool:
    """Return whether a line has a closing parenthesis for each opening one, and some."""
    return 0 < line.count("(") == line.count(")")


def test_what_closes_a_call_is_not_lost(served: Neovim) -> None:
    served.command("edit calls.py")
    accepted = 0
    for call in CALLS:
        served.type("15G")
        served.insert("o")
        served.type_slowly(call + "\x1b[D")  # and one step to the left
        if not wait_for_offer(served):
            served.type(NEXT)
        if wait_for_offer(served):
            # The text may bring the bracket that was typed, and go on behind it: it never leaves the call open. (The
            # screen may be looked at while it is being drawn.)
            served.until(lambda: is_balanced(served.line_with(call[:-1])), "line with all its brackets")  # noqa: B023
            served.type(TAB)  # after which another text may be offered at once
            accepted += 1
        served.escape()
        ast.parse(served.saved("calls.py"))
    assert accepted, f"the model has offered nothing:\n{served.text}"


def test_a_cursor_is_explained(served: Neovim) -> None:
    served.command("edit explained.py")
    served.type("15G")
    served.insert("oprint()")
    served.escape()  # which leaves the cursor between the brackets
    served.command("FimExplain ]")
    served.until_shown("the text is refused at byte 0")
    served.command("wincmd o")
    served.until_shown("Open on the left")
    served.type("q")


def test_quitting_ends_the_server(served: Neovim) -> None:
    process = int((served.folder / "server").read_text(encoding="utf-8"))
    served.escape()
    served.command("qall!")
    end = time.monotonic() + 20
    while (is_running(process) or served.has_ended() is None) and time.monotonic() < end:
        served.look(0.1)
    assert not is_running(process)
    assert served.has_ended() == 0


def is_running(process: int) -> bool:
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
    ).stdout
    return state.strip() != "" and not state.startswith("Z")
