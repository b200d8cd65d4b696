"""Progress: silent where work is quick or a program reads, one line where it takes long."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from fim_server.cli import output


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_silent_when_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with output.Progress(json=False) as progress:
        progress.say("working")
    assert screen.getvalue() == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_says_what_takes_long(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    screen = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(output, "QUIET_SECONDS", 0.01)
    with output.Progress(json=False) as progress:
        progress.say("working")
        for _ in range(500):
            if "working" in screen.getvalue():
                break
            threading.Event().wait(0.01)
    if terminal:
        assert screen.getvalue().startswith("\r\x1b[Kworking (0 s)")
        assert screen.getvalue().endswith("\r\x1b[K")
    else:
        assert screen.getvalue() == "working ...\n"
