"""The recipe of how much likelier names that exist are: what it asks, and what it fits."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from benchmarks.suggestions.lines import draw_lines
from benchmarks.suggestions.preferring import ALONE, Candidate, Examples, Step, fit, main, report, steps
from benchmarks.suggestions.projects import open_folder
from fim_server.models.load import load_model
from support.models.tiny_models import write_tiny_model

MODULE = """
def price(book, rate):
    total = book.price * rate
    return total


def fees(loans, rate):
    total = 0
    for loan in loans:
        total += price(loan.book, rate)
    return total


class Shop:
    def __init__(self, loans):
        self.loans = loans

    def total(self, rate):
        return fees(self.loans, rate)
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "shop.py").write_text(MODULE)
    (folder / "till.py").write_text(MODULE.replace("loan", "sale").replace("rate", "tax"))
    return folder


def test_the_fit_finds_what_made_the_answers() -> None:
    """Two tokens of kinds `a` and `b` are right as often as weights of 1.2 and -0.7 predict."""
    draw = np.random.default_rng(5)
    found = []
    for _ in range(8_000):
        share = draw.uniform(0.1, 0.8)
        kinds = [(), ("a",), ("b",), ("a", "b")][draw.integers(4)]
        odds = share * np.exp(1.2 * ("a" in kinds) - 0.7 * ("b" in kinds))
        right = bool(draw.random() < odds / (odds + 1 - share))
        found.append(Step("x", ALONE, True, (Candidate(kinds, share, right), Candidate((), 1 - share, not right))))
    weights = fit(Examples(found, ["a", "b"]))
    assert weights == pytest.approx([1.2, -0.7], abs=0.1)
    table, told = report(found)
    assert told == pytest.approx({"a": weights[0], "b": weights[1]})
    assert table.count("\n") == 2


def test_what_was_not_looked_at_keeps_its_share() -> None:
    examples = Examples([Step("x", ALONE, True, (Candidate(("a",), 0.5, True), Candidate((), 0.1, False)))], ["a"])
    assert examples.weighed(np.zeros(1))[0].tolist() == pytest.approx([0.5, 0.1, 0.4])
    assert examples.weighed(np.array([np.log(2)]))[0].tolist() == pytest.approx([1 / 1.5, 0.1 / 1.5, 0.4 / 1.5])
    assert examples.likelihood(examples.weighed(np.zeros(1))).tolist() == pytest.approx([0.5])
    assert examples.is_right(examples.weighed(np.zeros(1))).tolist() == [1]


def test_tokens_are_asked_with_each_of_the_projects(shop: Path) -> None:
    model = load_model("embedded", "cpu")
    sources = open_folder(str(shop))
    draw_lines(sources, 4, 1)
    found = list(steps(model, sources, 1))
    assert {step.project for step in found} == {ALONE, "whole", "small"}
    for step in found:
        assert any(one.right for one in step.candidates)
        assert sum(one.probability for one in step.candidates) <= 1 + 1e-3
    kinds = {kind for step in found for one in step.candidates for kind in one.kinds}
    assert {"unknown", "local"} <= kinds


def test_the_weights_are_written(shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, output = write_tiny_model(tmp_path / "model", 32, window=1024), tmp_path / "weights.toml"
    assert main([str(shop), "--lines", "3", "--model", str(model), "--output", str(output)]) == 0
    assert "| whole |" in capsys.readouterr().out
    weights = tomllib.loads(output.read_text())
    assert weights
    assert all(isinstance(weight, float) for weight in weights.values())
