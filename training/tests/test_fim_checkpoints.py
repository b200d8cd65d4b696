"""Checkpoints of the FIM training: the best one, some others, and a log that names the best."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from fim_server.errors import ModelError
from fim_server.models.smollm2.adapter import Adapter, read_adapter, write_adapter
from training.fim.checkpoints import (
    ADAPTER_FILE,
    BEST_FILE,
    BOTH,
    LEFT_ONLY,
    LOG_FILE,
    Checkpoints,
    HeldOut,
    kept_file,
    kept_tokens,
)


def add(checkpoints: Checkpoints, folder: Path, tokens: int, nats: float, middles: int = 40) -> bool:
    """Write an adapter and add it."""
    adapter = Adapter(1, 1.0, tokens, {}, np.zeros((1, 4)), np.zeros(1, np.int64))
    write_adapter(folder / ADAPTER_FILE, adapter)
    figures = {BOTH: HeldOut(nats, 0.1, middles), LEFT_ONLY: HeldOut(nats + 1, 0.1, middles)}
    return checkpoints.add({"step": 1, "tokens": tokens}, 2.0, figures)


def best(folder: Path) -> int:
    return read_adapter(folder / BEST_FILE).tokens


def test_the_best_is_the_one_of_the_fewest_nats(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, resumed=False)
    nats = {100: 2.0, 110: 1.5, 120: 1.7, 130: 1.5, 140: math.nan, 150: 1.6}
    found = {tokens: add(checkpoints, tmp_path, tokens, one) for tokens, one in nats.items()}
    assert [tokens for tokens, is_best in found.items() if is_best] == [100, 110, 130]
    assert best(tmp_path) == 130
    assert checkpoints.best is not None
    assert checkpoints.best.tokens == 130
    assert read_adapter(tmp_path / ADAPTER_FILE).tokens == 150
    assert [json.loads(line)["tokens"] for line in (tmp_path / LOG_FILE).read_text().splitlines()] == [*nats]


def test_figures_that_are_no_numbers_do_not_stay_the_best(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, resumed=False)
    assert add(checkpoints, tmp_path, 100, math.nan)
    assert add(checkpoints, tmp_path, 110, 9.0)
    assert best(tmp_path) == 110


def test_the_others_are_kept_a_fifth_apart(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, resumed=False)
    for tokens in range(100, 180, 5):
        add(checkpoints, tmp_path, tokens, 2.0)
    assert sorted(kept_tokens(tmp_path, 1000)) == [100, 120, 145, 175]
    for tokens in (180, 210):
        add(Checkpoints(tmp_path, resumed=True), tmp_path, tokens, 2.0)
    assert sorted(kept_tokens(tmp_path, 1000)) == [100, 120, 145, 175, 210]
    assert {path.name for path in tmp_path.iterdir()} == {
        *(kept_file(tokens) for tokens in (100, 120, 145, 175, 210)),
        *(ADAPTER_FILE, BEST_FILE, LOG_FILE),
    }


def test_a_resumed_run_knows_the_best_of_its_log(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, resumed=False)
    for tokens, nats in ((100, 1.5), (110, 1.4), (120, 1.6)):
        add(checkpoints, tmp_path, tokens, nats)
    with (tmp_path / LOG_FILE).open("a") as log:
        log.write('{"step": 1, "tok\n')  # as the machine left it when it stopped
    resumed = Checkpoints(tmp_path, resumed=True)
    assert resumed.best == checkpoints.best
    assert not add(resumed, tmp_path, 130, 1.45)
    assert best(tmp_path) == 110
    assert add(resumed, tmp_path, 140, 1.3)
    assert best(tmp_path) == 140


def test_a_run_that_kept_all_and_no_best_is_gone_on_with(tmp_path: Path) -> None:
    """Logs of earlier runs have no file of the best checkpoint."""
    checkpoints = Checkpoints(tmp_path, resumed=False)
    for tokens, nats in ((100, 1.2), (200, 1.5), (300, 1.4), (400, 1.45)):
        add(checkpoints, tmp_path, tokens, nats)
    (tmp_path / BEST_FILE).unlink()
    (tmp_path / kept_file(100)).unlink()
    resumed = Checkpoints(tmp_path, resumed=True)
    assert resumed.best is not None
    assert resumed.best.tokens == best(tmp_path) == 300
    assert not add(resumed, tmp_path, 500, 1.42)


def test_figures_of_other_middles_are_not_compared(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, resumed=False)
    add(checkpoints, tmp_path, 100, 1.5)
    add(checkpoints, tmp_path, 110, 1.0)
    assert add(checkpoints, tmp_path, 120, 1.8, middles=50)
    assert best(tmp_path) == 120
    assert (tmp_path / kept_file(110)).exists()  # what was the best is not lost


def test_another_run_in_the_folder_has_a_best_of_its_own(tmp_path: Path) -> None:
    first = Checkpoints(tmp_path, resumed=False)
    add(first, tmp_path, 100, 1.5)
    add(first, tmp_path, 110, 1.4)
    second = Checkpoints(tmp_path, resumed=False)
    assert second.best is None
    assert add(second, tmp_path, 90, 2.5)
    assert best(tmp_path) == 90
    assert read_adapter(tmp_path / kept_file(110)).tokens == 110
    resumed = Checkpoints(tmp_path, resumed=True)
    assert resumed.best == second.best


def test_a_best_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / BEST_FILE).write_bytes(b"nothing")
    with pytest.raises(ModelError, match=BEST_FILE):
        Checkpoints(tmp_path, resumed=True)
