"""``./dev bench languages``: a run on small files of two languages, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import run as main

GO = """package p

func add%d(first, second int) int {
	total := first + second
	if total > 10 {
		return total // large
	}
	return []int{total, 2}[0]
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(2):
        name = f"{number}.go"
        functions = (GO.removeprefix("package p\n") % each for each in range(30))
        (tmp_path / name).write_text("package p\n" + "".join(functions), encoding="utf-8")
    (tmp_path / "a.json").write_text(json.dumps({str(number): [number, "text"] for number in range(400)}))
    return tmp_path


def test_a_run(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    command = ["languages", "--source", f"go={folder}", "--source", f"json={folder}", "--cursors", "6"]
    assert main([*command, "--steps", "5", "--json", "--output", str(page)]) == 0
    report = json.loads(capsys.readouterr().out)
    go, json_ = report["languages"]
    assert (go["name"], go["files"], go["cursors"], go["shared"], go["refused"]) == ("go", 2, 6, 6, 0)
    assert (json_["files"], json_["cursors"], json_["shared"], json_["inexact"]) == (1, 6, 0, 0)
    for found in report["languages"]:
        assert len(found["keys"]) == 6 * 8
        assert len(found["plans"]) + found["unplanned"] == 6
        assert len(found["first"]) == len(found["again"]) >= 6
        assert found["mended"] <= found["broken"]
    assert "| plan found | 6 of 6 |" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("source", ["go", "cobol=.", "go=nowhere", "json={empty}"])
def test_what_is_no_source_is_named(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text("1")
    assert main(["languages", "--source", source.format(empty=tmp_path)]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert any(part in error for part in source.split("="))
