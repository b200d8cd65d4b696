"""``./dev bench gpu`` dry-run on the CPU: every figure is there, what fails is a row, and no time is judged."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.engine.cursors import Choice, choose
from benchmarks.engine.vocabularies import EMBEDDED_TOKENIZER, Tokens, read_tokens
from benchmarks.gpu import choices, command, measuring, replays, shapes
from benchmarks.gpu.replays import Contestant, Ours
from fim_server.language import Language
from fim_server.models.pytorch import masks
from support.bench_command import printed

SMALL = ("--device", "cpu", "--shape", "tiny", "--context", "24", "--seconds", "1")
FIGURES = ("step_ms", "step_p99_ms", "share", "masks_us_a_row", "commits_us_a_row", "mask_p50_us", "mask_p99_us")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "BLOCK", 4)
    monkeypatch.setattr(measuring, "MOST_TIMES", 1_000)  # a machine with other work takes its time
    monkeypatch.setattr(measuring, "TYPED", 3)
    monkeypatch.setattr(replays, "ALONE_MASKS", 20)


@pytest.fixture(scope="module")
def tokens() -> Tokens:
    return read_tokens("embedded", EMBEDDED_TOKENIZER)


def broken(tokens: Any, rows: Any) -> Any:
    raise RuntimeError("no such grammar\nin two lines")


@pytest.mark.usefixtures("short")
def test_every_figure_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = Contestant("other", "JSON", ("json",), broken)
    skipped = Contestant("slow", "flat JSON", ("json",), broken)
    monkeypatch.setattr(replays, "PEERS", {"no_such_package_1": (), "json": (failing, skipped)})
    written = tmp_path / "gpu.json"
    threads = torch.get_num_threads()
    try:
        status, output, _ = printed(
            "gpu", *SMALL, "--batch", "1,3", "--without", "flat", "--json", "--output", str(written)
        )
    finally:
        torch.set_num_threads(threads)
    assert status == 0
    report = json.loads(output)
    assert report == json.loads(written.read_text())
    assert "dry run" in report["setting"]
    assert any("no_such_package_1" in each for each in report["left_out"])
    assert "slow flat JSON" in report["left_out"]
    assert [(row["batch"], row["microseconds"] is None) for row in report["choices"]] == [
        (batch, missing) for batch in (1, 3) for missing in (False, False, True, True)
    ]
    *rows, growing, static = report["steps"]
    assert [row["batch"] for row in rows] == [1] * 7 + [3] * 7
    for row, what in (growing, "grows"), (static, "static"):
        assert what in row["what"]
        assert row["step_ms"] > 0
    for row in rows:
        assert not row["graphs"]
        assert row["goal"] == (0.003 if row["batch"] == 1 and row["engine"] != "none" else None)
        if row["engine"] == "other":
            assert row["note"] == "no such grammar"
            assert all(row[name] is None for name in FIGURES)
        elif row["engine"] == "none":
            assert row["steps"] > 0
            assert row["step_ms"] > 0
            assert row["share"] is None
        else:
            free = next(each for each in report["steps"] if each["batch"] == row["batch"])
            assert row["note"] == ""
            assert row["refused"] == 0
            assert all(row[name] is not None for name in FIGURES)
            assert row["share"] == pytest.approx(row["step_ms"] / free["step_ms"] - 1)
    orders = {row["order"]: row for row in report["keystrokes"]}
    assert orders["suffix first"]["tokens_p50"] < orders["prefix first"]["tokens_p50"]
    assert orders["prefix first"]["tokens_p50"] < orders["suffix first, nothing kept"]["tokens_p50"]


def test_choices_of_kernels_are_checked_before_they_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_(logits: torch.Tensor, packed: torch.Tensor) -> None:
        masks.apply_by_torch_(logits, packed)

    def choose(logits: torch.Tensor, packed: torch.Tensor, chosen: torch.Tensor) -> None:
        torch.argmax(masks.apply_by_torch_(logits.clone(), packed), dim=-1, out=chosen)
        chosen += wrong

    kernels = SimpleNamespace(refuse_=refuse_, choose=choose)
    monkeypatch.setattr(sys.modules["fim_server.models.pytorch"], "kernels", kernels, raising=False)
    monkeypatch.setitem(sys.modules, "fim_server.models.pytorch.kernels", kernels)
    monkeypatch.setattr(masks.KERNELS, "devices", {"cpu"})
    monkeypatch.setattr(choices, "SECONDS", 0)
    place = torch.device("cpu")
    wrong = 0
    found = choices.measure_choices(place, 300, 3, seed=0)
    assert [row.note for row in found] == [""] * 4
    assert all(row.microseconds for row in found)
    wrong = 1
    *others, fused = choices.measure_choices(place, 300, 3, seed=0)
    assert all(row.microseconds for row in others)
    assert (fused.microseconds, fused.note) == (None, "differs from torch")
    monkeypatch.setattr(choices, "masked_argmax", broken)
    assert choices.measure_choices(place, 300, 3, seed=0)[-1].note
    [row] = choices.measure_choices(torch.device("meta"), 300, 3, seed=0)
    assert row.note
    assert row.microseconds is None


@pytest.mark.usefixtures("short")
def test_what_cannot_be_made_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*given: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(shapes, "network_of", too_large)
    status, output, _ = printed("gpu", *SMALL, "--no-peers")
    assert status == 0
    assert "left out: tiny: CUDA out of memory" in output


@pytest.mark.usefixtures("short")
def test_rows_that_do_not_fit_are_told(tokens: Tokens) -> None:
    def network(**given: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    entries = measuring.opened(replays.OURS[:1], tokens, 2, 0)
    size = tokens.vocabulary.size
    rows = measuring.measure_steps(network, torch.device("cpu"), "tiny", entries, size, 2, 8, 0.1, graphs=True)
    assert [bool(row.note) for row in rows] == [True, True]


@pytest.mark.usefixtures("short")
def test_what_there_is_no_time_for_is_told(tokens: Tokens) -> None:
    size = tokens.vocabulary.size
    threads = torch.get_num_threads()
    network = shapes.network_of(shapes.SHAPES["tiny"], size, torch.device("cpu"))
    torch.set_num_threads(threads)
    entries = measuring.opened(replays.OURS[:1], tokens, 1, 0)
    entries[1].note = "failed before"
    rows = measuring.measure_steps(network, torch.device("cpu"), "tiny", entries, size, 1, 8, 0.0, graphs=True)
    assert [row.note for row in rows] == ["no time was left", "failed before"]


def test_bad_input_is_refused(tmp_path: Path) -> None:
    assert printed("gpu", "--shape", "13b")[0] == 2
    assert printed("gpu", "--graphs", "maybe")[0] == 2
    assert printed("gpu", *SMALL, "--without", "no such words")[0] == 2
    assert printed("gpu", *SMALL, "--without", "")[0] == 2
    assert printed("gpu", *SMALL, "--vocabulary", str(tmp_path / "none.json"))[0] == 2
    assert command.switches_named("off") == (False,)


def test_rows_replay_the_true_middles(tokens: Tokens) -> None:
    contestant = Contestant("fim-server", "", ("python", "json"), replays.with_right)
    replay = contestant.replay(tokens, 6, seed=1)
    words = np.zeros((6, -(-tokens.vocabulary.size // 32)), dtype=np.uint32)
    starts = list(replay.at)
    longest = max(map(len, replay.ids))
    assert replay.work(None, words)
    for step in range(longest + 2):
        before = list(replay.at)
        assert replay.work(np.zeros(6, dtype=np.int64), words)
        wanted = [0 if at == len(ids) else at + 1 for at, ids in zip(before, replay.ids, strict=True)]
        assert replay.at == wanted, step
    assert starts != replay.at
    assert replay.refused == 0
    assert replay.alone(words[0])
    assert replay.refused == 0, "masks allow what comes next"


def test_a_token_that_is_refused_ends_a_middle(tokens: Tokens) -> None:
    [cursor, *_], _ = choose("json", tokens.vocabulary, Choice(None, 1, 1, 8, 0))
    replay = replays.Replay(Ours(tokens, [("json", cursor)], right=True), [list(cursor.ids)], [0])
    [wrong] = tokens.vocabulary.encode("\x01")
    assert Language.load("json").open(cursor.left, cursor.right).check(cursor.middle).complete
    replay.ids[0][1] = wrong
    for at in (1, 1, 0, 1, 0):
        replay.advance()
        assert replay.at == [at]
    assert replay.refused == 1
