"""``fim-server complete`` on files of token trees that are broken elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fim_server import Language
from fim_server.cli import main
from fim_server.recovery.recovery import NO_WINDOW

BROKEN = "int f() {\n    if (a) {\n        b();\n}\n\nint g() {\n    int alpha = h(\n    return alpha;\n}\n"


def completed(file: Path, cursor: str, capfd: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert main(["complete", str(file), cursor, "--model", "embedded", "--json", *options]) in (0, 1)
    answer: dict[str, Any] = json.loads(capfd.readouterr().out)
    return answer


def test_it_completes_a_window(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.c"
    file.write_text(BROKEN)
    answer = completed(file, "7:19", capfd)
    assert answer["guarantee"] == "partial"
    assert answer["diagnostics"] == [
        "lines 1 to 5 are left out: brackets or quotes somewhere do not fit the indentation"
    ]
    window = BROKEN.partition("\n\n")[2].replace("h(", f"h({answer['text']}")
    assert Language.load("c").open(window, "").check("").complete


def test_without_a_window_it_completes_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.c"
    file.write_text("int f() {\n  a(;\n  alpha(\n  alpha);\n  d(;\n")
    answer = completed(file, "3:9", capfd)
    assert (answer["guarantee"], answer["diagnostics"]) == ("none", [NO_WINDOW])
    assert answer["reason"] or "\n" not in answer["text"]
    free = completed(file, "3:9", capfd, "--unconstrained")
    assert free["guarantee"] == "none"
    assert free["text"].startswith(answer["text"] or "")
