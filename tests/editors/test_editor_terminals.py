"""The configurations for Emacs and Helix, in the editors themselves where they are installed.

None of the test dependencies brings them: FIM_SERVER_EMACS and FIM_SERVER_HELIX name the programs, else the PATH does.
FIM_SERVER_LSP_MODE names the folders of lsp-mode and what it needs, separated as in a PATH.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.editors.terminal import Terminal

EDITORS = Path(__file__).parents[2] / "docs/editors"
SCRIPTED = Path(__file__).parents[1] / "support" / "servers" / "scripted_server.py"
TARGETS = ["print(first,\n    second)\n", "print(third)\n"]
STARTING = 60
"""Seconds that an editor and its libraries may take to start."""


def program(variable: str, name: str, version: str, least: int) -> str | None:
    """An editor at least that new; `version` finds the number in what it says of itself."""
    path = os.environ.get(variable) or shutil.which(name)
    if path is None:
        return None
    said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    found = re.search(version, said)
    return path if found is not None and int(found.group(1)) >= least else None


EMACS = program("FIM_SERVER_EMACS", "emacs", r"GNU Emacs (\d+)", 29)
HELIX = program("FIM_SERVER_HELIX", "hx", r"helix (\d+)", 24)
LSP_MODE = os.environ.get("FIM_SERVER_LSP_MODE")


def server(folder: Path) -> list[str]:
    """A scripted server for the file `a.py` of a folder."""
    (folder / ".git").mkdir()
    (folder / "a.py").write_text("\n", encoding="utf-8")
    (folder / "script.json").write_text(json.dumps({"targets": {"a.py": TARGETS}}), encoding="utf-8")
    return [sys.executable, str(SCRIPTED), str(folder / "script.json"), str(folder / "log")]


def emacs(folder: Path, configuration: str, before: str, load_path: list[str]) -> Terminal:
    assert EMACS is not None
    command = " ".join(json.dumps(part) for part in server(folder))
    init = folder / "init.el"
    init.write_text(
        f"(setq inhibit-startup-screen t make-backup-files nil create-lockfiles nil)\n{before}\n"
        f"(setq fim-server-command '({command}))\n(load {json.dumps(str(EDITORS / 'emacs' / configuration))})\n",
        encoding="utf-8",
    )
    folders = [part for place in load_path for part in ("-L", place)]
    compiler = "(setq native-comp-enable-subr-trampolines nil native-comp-jit-compilation nil)"
    arguments = [EMACS, "-nw", "-Q", "--eval", compiler, *folders, "-l", str(init), "a.py"]
    return Terminal(arguments, {"HOME": str(folder)}, folder, columns=120)


@pytest.mark.skipif(EMACS is None, reason="no Emacs 29 or newer")
def test_eglot_lists_completions(tmp_path: Path) -> None:
    with emacs(tmp_path, "fim-eglot.el", "", []) as editor:
        editor.until(lambda: "[eglot:" in editor.text, "server", STARTING)
        editor.type_slowly("print(t")
        editor.type("\x1b\t")  # C-M-i
        editor.until(lambda: "print(third)" in editor.text, "completion")
        editor.type("\x1bxfim-server-explain\r")
        editor.until(lambda: "Shortest text that fits: x" in editor.text, "explanation")
        editor.type("\x18\x13")  # C-x C-s
        editor.until(lambda: (tmp_path / "a.py").read_text(encoding="utf-8") == TARGETS[1], "file")


@pytest.mark.skipif(EMACS is None or LSP_MODE is None, reason="no Emacs 29 with lsp-mode 10 (FIM_SERVER_LSP_MODE)")
def test_lsp_mode_shows_ghost_text(tmp_path: Path) -> None:
    assert LSP_MODE is not None
    before = f"""(require 'lsp-mode-autoloads nil t)
(setq lsp-auto-guess-root t lsp-session-file "{tmp_path}/session" lsp-enable-suggest-server-download nil)"""
    with emacs(tmp_path, "fim-lsp-mode.el", before, LSP_MODE.split(os.pathsep)) as editor:
        editor.until(lambda: "initialized successfully" in editor.text, "server", STARTING)
        editor.type_slowly("pr")
        editor.until(lambda: "print(first," in editor.text and "    second)" in editor.text, "ghost text")
        editor.type("\x1bxlsp-inline-completion-display\r")
        editor.until(lambda: "Completion 1/2" in editor.text, "alternatives")
        editor.type("\x0e")  # C-n
        editor.until(lambda: "print(third)" in editor.text, "the next one")
        editor.type("\x10")  # C-p
        editor.until(lambda: "print(first," in editor.text, "the previous one")
        editor.type("\x1b[27;5;13~")  # C-RET
        editor.look(0.5)
        editor.type("\x18\x13")
        editor.until(lambda: (tmp_path / "a.py").read_text(encoding="utf-8") == TARGETS[0], "file")
        editor.type("\x1bxfim-server-explain\r")
        editor.until(lambda: "Next tokens of the model:" in editor.text, "explanation")
    log = [json.loads(line) for line in (tmp_path / "log").read_text(encoding="utf-8").splitlines()]
    assert any(message.get("params", {}).get("command") == "fim-server.accepted" for message in log)
    (initialize,) = (message for message in log if message.get("method") == "initialize")
    assert initialize["params"]["capabilities"]["textDocument"]["inlineCompletion"] is not None


@pytest.mark.skipif(HELIX is None, reason="no Helix")
def test_helix_lists_completions(tmp_path: Path) -> None:
    assert HELIX is not None
    command, *arguments = server(tmp_path)
    configured = tmp_path / "helix"
    configured.mkdir()
    languages = (EDITORS / "helix/languages.toml").read_text(encoding="utf-8")
    languages = languages.replace('command = "fim-server"', f"command = {json.dumps(command)}")
    languages = languages.replace('args = ["serve"]', f"args = {json.dumps(arguments)}")
    (configured / "languages.toml").write_text(languages, encoding="utf-8")
    environment = {name: str(tmp_path) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    with Terminal([HELIX, "a.py"], environment, tmp_path) as editor:
        editor.until(lambda: "NOR" in editor.text and (tmp_path / "log").exists(), "Helix", STARTING)
        editor.look(0.5)
        editor.type("i")
        editor.type_slowly("print(", pause=0.1)
        editor.type("\x18")  # C-x: the menu
        editor.until(lambda: "third" in editor.text, "menu")
        editor.type("\t\t\r")  # the second entry
        editor.look(0.3)
        editor.type("\x1b")
        editor.look(0.3)
        editor.type(":w\r")
        editor.until(lambda: "written" in editor.text, "file")
    assert (tmp_path / "a.py").read_text(encoding="utf-8").rstrip() in [target.rstrip() for target in TARGETS]
