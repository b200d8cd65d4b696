"""docs/tutorial.md: its files are written and its commands run, in order, and what comes is what it shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.markdown_pages import blocks

PAGE = "docs/tutorial.md"
TOOLS = {"fim-server": [sys.executable, "-m", "fim_server"], "python": [sys.executable], "sed": ["sed"]}


def steps(text: str) -> list[tuple[str, str]]:
    """The commands of a block, each with the output that is shown after it."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def pattern(shown: str) -> re.Pattern[str]:
    """Pattern of an output: a line of `…` stands for any lines, and `…` within a line for any text in it."""
    lines = (
        r"(?:.*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
        for line in shown.splitlines()
    )
    return re.compile("".join(lines))


@pytest.mark.skipif(sys.platform == "win32", reason="its commands are a Unix shell's")
def test_the_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = 0
    monkeypatch.chdir(tmp_path)
    (tmp_path / "python").symlink_to(sys.executable)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)  # where the package is
    for block in blocks(PAGE):
        if block.title:
            path = tmp_path / block.title
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for command, shown in steps(block.text):
                words = shlex.split(command)
                done = subprocess.run(
                    [*TOOLS[words[0]], *words[1:]], capture_output=True, text=True, env=environment, check=False
                )
                assert pattern(shown).fullmatch(done.stdout), (command, done.stdout, done.stderr)
                ran += 1
        else:
            exec(block.text, {})
            ran += 1
    assert ran == 7
    assert len(blocks(PAGE)) == 12
