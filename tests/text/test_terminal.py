"""Output of commands: plain lines elsewhere, drawn lines and tables on a terminal, and no leftovers."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pyte
import pytest

from fim_server.text import terminal
from fim_server.text.terminal import Progress, Table, paint, show, wants_colour

TABLE = Table(("name", "n", "note"), [("one", "1", "[bold]a|b[/]"), ("three", "1,000", "")], numbers=[1])


class Screen(io.StringIO):
    """A terminal's stream, and what is to be seen there."""

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        """The screen's lines, up to the last that is not empty."""
        screen = pyte.Screen(80, 24)
        pyte.Stream(screen).feed(self.getvalue().replace("\n", "\r\n"))
        return "\n".join(line.rstrip() for line in screen.display).rstrip("\n").split("\n")


def on_terminal(monkeypatch: pytest.MonkeyPatch, name: str) -> Screen:
    """A screen in place of a stream; to be called in the test itself, because pytest sets the streams before it."""
    screen = Screen()
    monkeypatch.setattr(sys, name, screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return screen


def wait_for(seen: Callable[[], bool]) -> None:
    for _ in range(500):
        if seen():
            return
        threading.Event().wait(0.01)
    pytest.fail("it never came")


# --- colours ------------------------------------------------------------------------------------------------------


def test_paint_is_ansi_and_leaves_the_text() -> None:
    assert paint("a\tb[red]", "bold bright_green") == "\x1b[1;92ma\tb[red]\x1b[0m"
    assert paint(" ", "bold reverse green") == "\x1b[1;7;32m \x1b[0m"
    assert paint("a", "green", colour=False) == "a"


def test_colour_is_wanted_on_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not wants_colour()
    assert wants_colour("always")
    on_terminal(monkeypatch, "stdout")
    assert wants_colour()
    assert not wants_colour("never")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour()
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour()


# --- tables -------------------------------------------------------------------------------------------------------


def test_tables_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    show(["before", "", TABLE])
    assert capsys.readouterr().out == ("before\n\nname       n  note\none        1  [bold]a|b[/]\nthree  1,000\n")


def test_tables_in_markdown() -> None:
    assert list(TABLE.markdown()) == [
        "| name | n | note |",
        "|---|---:|---|",
        "| one | 1 | [bold]a\\|b[/] |",
        "| three | 1,000 |  |",
    ]


def test_tables_are_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_terminal(monkeypatch, "stdout")
    show(["before [x]", TABLE])
    title, header, rule, *rows = screen.lines()
    assert title == "before [x]"
    assert header.split() == ["name", "n", "note"]
    assert set(rule) <= set(" ─")
    assert [row.split() for row in rows] == [["one", "1", "[bold]a|b[/]"], ["three", "1,000"]]


# --- progress, elsewhere ------------------------------------------------------------------------------------------


def test_stages_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        assert list(progress.count("opening", "ab")) == ["a", "b"]
        progress.say("closing")
    assert capsys.readouterr().err == "opening ...\nclosing ...\n"


def test_progress_is_silent_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(plain=False) as progress:
        progress.say("opening")
        progress.update("half")
        progress.log("remark")
    with Progress(plain=False, after=0.001, keeps=True) as progress:
        progress.say("opening")
        time.sleep(0.02)
    assert capsys.readouterr() == ("", "")


def test_updates_come_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(every=60, keeps=True) as progress:
        progress.update("1 of 2", 1, 2)
        assert not progress.is_due()
        progress.update("2 of 2", 2, 2)
    assert capsys.readouterr().err == "2 of 2\n"
    with Progress() as progress:
        progress.update("1 of 2", 1, 2)
        progress.log("a remark")
        progress.update("2 of 2", 2, 2)
    assert capsys.readouterr().err == "1 of 2\na remark\n2 of 2\n"


def test_quick_work_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(after=60) as progress:
        progress.say("working")
    assert capsys.readouterr().err == ""


def test_long_work_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress(after=0.01) as progress:
        progress.say("working")
        wait_for(lambda: "working" in stream.getvalue())
        progress.say("still working")
    assert stream.getvalue() == "working ...\n"


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = on_terminal(monkeypatch, "stderr")
    monkeypatch.setenv("TERM", "dumb")
    with Progress() as progress:
        progress.say("working")
    assert errors.getvalue() == "working ...\n"


# --- progress, on a terminal --------------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [True, False])
def test_the_line_vanishes(monkeypatch: pytest.MonkeyPatch, plain: bool) -> None:
    errors = on_terminal(monkeypatch, "stderr")
    with Progress(plain, ticks=False) as progress:
        progress.say("first [x]")
        assert errors.lines()[0].endswith("first [x] 0:00:00")
        progress.say("second")
        assert len(errors.lines()) == 1
        assert errors.lines()[0].endswith("second 0:00:00")
        progress.log("a remark [x]")
        assert errors.lines()[0] == "a remark [x]"
    assert errors.lines() == ["a remark [x]"]


def test_quick_work_is_silent_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = on_terminal(monkeypatch, "stderr")
    with Progress(after=60) as progress:
        progress.say("working")
    assert errors.getvalue() == ""


def test_long_work_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = on_terminal(monkeypatch, "stderr")
    with Progress(after=0.01) as progress:
        progress.say("working")
        wait_for(lambda: "working" in errors.getvalue())
    assert errors.lines() == [""]


def test_known_work_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = on_terminal(monkeypatch, "stderr")
    with Progress(ticks=False, keeps=True) as progress:
        progress.say("opening")
        time.sleep(terminal.LEAST_SECONDS)
        progress.update("samples", 1, 2)
        assert "1/2" in errors.lines()[0]
        progress.update("samples", 2, 2)
    assert "2/2" in errors.lines()[0]
    assert "samples" in errors.lines()[0]


def test_no_color_means_none(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = on_terminal(monkeypatch, "stderr")
    monkeypatch.setenv("NO_COLOR", "1")
    with Progress(ticks=False) as progress:
        progress.say("working")
    coloured = [f"\x1b[{code}" for code in ("3", "1;3", "9")]
    assert "working" in errors.getvalue()
    assert not [code for code in coloured if code in errors.getvalue()]


def test_results_in_a_file_are_not_touched(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    errors = on_terminal(monkeypatch, "stderr")
    with Progress(ticks=False) as progress:
        progress.say("working")
        print("result")
    assert capsys.readouterr().out == "result\n"
    assert "result" not in errors.getvalue()


def test_rich_is_imported_only_to_draw() -> None:
    code = (
        "import sys; from fim_server.text.terminal import *\n"
        "show([Table(['a'], [['b']])])\n"
        "with Progress() as progress: progress.say('x')\n"
        "print('rich' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert ended.stdout == "a\nb\nFalse\n"
