"""``./dev bench broken``: a run on small files of two languages, and holes in a text."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from benchmarks.__main__ import run as main
from benchmarks.engine.broken import AWAY, KINDS, Hole
from fim_server import Language

C = """int add%d(int first, int second)
{
    int total = first + (second);
    if (total > 10) {
        return print("large", total);
    }
    return total;
}

"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(2):
        (tmp_path / f"{number}.c").write_text("".join(C % each for each in range(30)), encoding="utf-8")
    (tmp_path / "a.go").write_text("package p\n\n" + 'func f() {\n\tg(1, "a")\n}\n' * 200, encoding="utf-8")
    return tmp_path


def test_a_run(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    sources = ["--source", f"c={folder}", "--source", f"go={folder}"]
    assert main(["broken", *sources, "--holes", "8", "--json", "--output", str(page)]) == 0
    for found, files in zip(json.loads(capsys.readouterr().out)["languages"], (2, 1), strict=True):
        assert found["files"] == files
        assert list(found["counts"]) == list(KINDS)
        intact = found["counts"]["intact"]
        assert (intact["holes"], intact["judged_before"], intact["refused_before"]) == (8, 8, 0)
        for count in found["counts"].values():
            assert count["refused"] <= count["judged"] <= count["holes"] == len(count["seconds"])
    assert "| c | intact | 8 | 0 of 8 |" in page.read_text(encoding="utf-8")


def test_what_is_broken_is_far_from_the_hole() -> None:
    language, text = Language.load("c"), "".join(C % each for each in range(30))
    for seed in range(10):
        draw = random.Random(seed)
        hole = Hole.drawn(language, text, draw)
        assert hole is not None
        contexts = dict(hole.contexts(draw))
        assert list(contexts) == list(KINDS)
        near = slice(-AWAY - 1, None), slice(0, AWAY + 1)
        left, right = contexts["intact"]
        assert left + hole.middle + right == text
        for kind, (broken_left, broken_right) in contexts.items():
            whole = broken_left + hole.middle + broken_right
            assert len(whole) - len(text) == {"intact": 0, "bracket inserted": 1}.get(kind, -1)
            assert language.open(whole, "").check("").complete is (kind == "intact")
            assert broken_left.split("\n")[near[0]] == left.split("\n")[near[0]]
            assert broken_right.split("\n")[near[1]] == right.split("\n")[near[1]]
