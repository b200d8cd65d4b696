"""``fim_server.memory``: updates in the background, and the confidence of continuations."""

from __future__ import annotations

import random
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks.index import weights as memory_weights
from benchmarks.index.cursors import cursor_in, draw, first_of, inside
from benchmarks.index.trial import asked
from fim_server.memory.background import Background
from fim_server.memory.features import NAMES, features
from fim_server.memory.memory import Memory
from fim_server.memory.weights import fitted_weights

CODE = """import os


def listed(path):
    for name in sorted(os.listdir(path)):
        yield os.path.join(path, name)


def counted(path):
    return sum(1 for name in sorted(os.listdir(path)))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "one.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "two.py").write_text(CODE.replace("listed", "all_listed"), encoding="utf-8")
    return tmp_path


def test_it_is_told_in_the_background_and_asked_at_once(project: Path) -> None:
    with Memory() as memory:
        memory.index(project, (".py",))
        assert memory.settle()
        assert memory.sizes()["files"] == 2
        left = "def names(path):\n    for name in so"
        best = memory.recall_best(str(project / "new.py"), left, "\n", most_lines=2)
        assert best is not None
        assert best.text == "rted(os.listdir(path)):\n        yield os.path.join(path, name)"
        assert 0.5 < best.first <= 1
        assert 0 < best.whole <= best.beginnings[-1][1] <= best.first
        assert memory.recall_best(str(project / "new.py"), left, "\n", confidence=1.0) is None
        assert memory.recall_best(str(project / "new.py"), "qqq.zzzz", "") is None
        assert memory.predict("new.py", left)[0][0] == "rted"
        key, loop = str(project / "one.py"), "def x(path):\n    for name in "
        memory.changed(key, "for name in something_else(1):\n", "")
        memory.removed(str(project / "two.py"))
        assert memory.settle()
        assert memory.recall_best(key, loop, "").text == "something_else(1):"  # type: ignore[union-attr]
        memory.closed(key)
        assert memory.settle()
        assert memory.recall_best(key, loop, "").text == "sorted(os.listdir(path)):"  # type: ignore[union-attr]


def test_a_continuation_ends_where_it_becomes_unsure(project: Path) -> None:
    with Memory() as memory:
        memory.changed("a.py", "x = call(one, two)\nx = call(one, three)\nx = call(one, four)\n", "")
        assert memory.settle()
        best = memory.recall("a.py", "x = call(one, two)\nx = call(one, three)\nx = call(one, four)\nx = ", "")[0]
        assert best.text.startswith("call(one, ")
        sure = dict(best.beginnings)
        assert sure[len("call(one,")] > sure[len(best.text) - 1]
        assert best.until(sure[len("call(one,")]) in {"call(one,", "call(one"}
        assert best.until(0.0) == best.text
        assert best.until(1.1) == ""


def test_it_closes_while_it_reads_and_can_be_closed_again(project: Path) -> None:
    memory = Memory()
    for number in range(300):
        (project / f"{number}.py").write_text(CODE * 20, encoding="utf-8")
    memory.index(project, (".py",))
    assert memory.close()
    assert memory.close()
    memory.index(project, (".py",))
    memory.changed("a.py", CODE, "")
    assert memory.settle(0)
    assert memory.sizes()["open"] == 0
    assert Memory().close()


def test_only_the_latest_task_of_a_name_runs(caplog: pytest.LogCaptureFixture) -> None:
    background = Background("a test")
    done: list[int] = []
    go = threading.Event()
    background.do("first", go.wait)
    for number in range(5):
        background.do("same", partial(done.append, number))
    background.do("broken", lambda: 1 // 0)
    background.do("other", lambda: done.append(10))
    assert not background.settle(0)
    go.set()
    assert background.settle(10)
    assert done == [4, 10]
    assert "a test: a task failed" in caplog.text
    assert background.close()
    background.do("late", lambda: done.append(11))
    assert done == [4, 10]


def test_there_is_a_weight_for_each_feature(project: Path) -> None:
    weights = fitted_weights()
    assert len(weights.beginning) == len(weights.whole) == len(NAMES)
    rows = [
        features(one, one.share, len(one.text), len(one.shares))
        for _, found in asked(project, 20, 0, 4)
        for one in found
    ]
    assert rows
    assert {len(row) for row in rows} == {len(NAMES)}
    assert all(np.isfinite(row).all() for row in rows)


def test_cursors_are_drawn_in_lines_and_brackets(project: Path) -> None:
    drawn = list(draw(project, (".py",), 300, 0))
    assert drawn == list(draw(project, (".py",), 300, 0))
    assert len(drawn) == 300
    texts = {str(path): path.read_text(encoding="utf-8") for path in project.glob("*.py")}
    for cursor in drawn:
        whole = cursor.left + cursor.truth
        assert texts[cursor.key].startswith(whole)
        assert cursor.closer or texts[cursor.key][len(whole) :].startswith("\n")
        assert texts[cursor.key].endswith(cursor.after)
    closed = [cursor for cursor in drawn if cursor.closer]
    assert closed
    assert all(cursor.left[-1] in "([{" for cursor in closed)
    assert inside("f(a[b], c) + (d", 2) == "a[b], c"
    assert inside("f(a", 2) is None
    assert inside("f(a]", 2) is None
    assert [first_of(text) for text in (" name(x)", "(x)", "", "  ")] == [" name", "(", "", "  "]
    assert cursor_in("a", "\n\n", random.Random(0)) is None


def test_weights_are_fitted(project: Path, tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    inputs = np.hstack([np.ones((20_000, 1)), chance.normal(size=(20_000, 2))])
    likely = 1 / (1 + np.exp(-(inputs @ [0.5, 2.0, -1.0])))
    weights = memory_weights.fit(inputs, (chance.random(20_000) < likely).astype(float))
    assert weights == pytest.approx([0.5, 2.0, -1.0], abs=0.1)
    out = tmp_path / "weights.toml"
    assert memory_weights.main([str(project), "--cursors", "40", "--out", str(out)]) == 0
    page = out.read_text(encoding="utf-8")
    assert page.count("matched = ") == 3 + page.count("_matched = ")
    assert memory_weights.main([str(project), "--cursors", "40", "--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8") == page
