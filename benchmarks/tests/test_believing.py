"""The recipe of how far the memory is believed: where it asks, what is right there, and what it fits."""

from __future__ import annotations

import random
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest

from benchmarks.suggestions.believing import (
    KINDS,
    Examples,
    Foretold,
    Step,
    around,
    cut,
    fit,
    main,
    report,
    steps,
    writes_right,
)
from benchmarks.suggestions.lines import draw_lines
from benchmarks.suggestions.projects import Task, open_folder
from fim_server.memory.belief import Belief
from fim_server.models.load import load_model
from fim_server.text.document import Split
from support.models.tiny_models import write_tiny_model


def step(right: float, foretold: tuple[Foretold, ...], **others: object) -> Step:
    given = {"folder": "a", "kind": "whole", "place": "a 0", "characters": 30_000, "first": True, "certainty": 0.5}
    return Step(**{**given, "others": (), **others}, right=right, foretold=foretold)  # type: ignore[arg-type]


def test_a_cut_is_in_a_word_or_before_a_lexeme() -> None:
    task = Task("a", "a.py", 2, "def f(a):\n    ", "return g(a, [1])", "\n\n\nf(1)\n")
    for seed in range(20):
        split, rest = cut(task, random.Random(seed))
        assert split.left + rest + split.right == task.before + task.wanted + task.after
        assert rest[0] not in " \n"


def test_around_a_cursor_are_whole_lines() -> None:
    split = Split("one\ntwo\nthr", "ee\nfour\nfive")
    assert around(split, 0, 0) == Split("thr", "ee")
    assert around(split, 1, 1) == Split("two\nthr", "ee\nfour")
    assert around(split, 9, 9) == split


def test_what_is_written_is_what_is_likeliest_with_its_share() -> None:
    others = ((0.5, False), (0.2, True))
    one = step(0.3, (Foretold(0.9, 0.1, True),), others=others)
    assert not writes_right(one, np.array([0.0]))
    assert not writes_right(one, np.array([0.25]))  # 0.325 against 0.375
    assert writes_right(one, np.array([0.35]))
    assert not writes_right(step(0.3, (), others=others), np.zeros(0))


def test_the_fit_finds_what_made_the_answers() -> None:
    draw = np.random.default_rng(1)
    belief = Belief(0.5, 0.6, 0.8, -0.5, 0.3)
    found = []
    for _ in range(30_000):
        characters, weight = int(10 ** draw.uniform(3.2, 6)), draw.uniform(0.1, 0.95)
        certainty, probability = draw.uniform(0.05, 0.95), 10 ** draw.uniform(-5, -0.5)
        share = belief.share(weight, characters, weight, certainty, probability)
        right = bool(draw.random() < share + (1 - share) * probability)
        foretold = (Foretold(weight, probability, right),)
        said = probability if right else 1 - probability
        found.append(step(said, foretold, characters=characters, certainty=certainty))
    examples = Examples(found)
    assert fit(examples) == pytest.approx(np.array(astuple(belief)), abs=0.15)
    shares = examples.shares(np.array(astuple(belief)))
    one, share = found[0], float(shares[0, 0])
    known = one.foretold[0]
    assert share == pytest.approx(
        belief.share(known.weight, one.characters, known.weight, one.certainty, known.probability)
    )
    assert examples.likelihood(shares)[0] == pytest.approx((1 - share) * one.right + share * known.right)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    project = tmp_path / "shop"
    project.mkdir()
    for name in ("one", "two", "three", "four", "five"):
        lines = "".join(f"    total_{n} = entries_of(account_{n}, year)\n" for n in range(9))
        (project / f"{name}.py").write_text(f"def {name}(year):\n{lines}    return total_1\n")
    return project


def test_what_stands_elsewhere_is_foretold_and_right(shop: Path, tmp_path: Path) -> None:
    model = load_model(str(write_tiny_model(tmp_path / "model", 32, window=1024)), None, None)
    sources = open_folder(str(shop))
    draw_lines(sources, 4, 1)
    found = list(steps(model, sources, 1))
    assert {one.kind for one in found} == set(KINDS)
    assert all(0 <= one.right <= 1 + 1e-6 and sum(known.weight for known in one.foretold) < 1 for one in found)
    whole = [one for one in found if one.kind == "whole"]
    assert sum(any(known.right for known in one.foretold) for one in whole) > len(whole) / 2
    assert max(one.characters for one in found if one.kind == "file") < min(one.characters for one in whole)
    # As many tokens for each project of a place, of which the model says the same.
    by_project = {one.place for one in found}
    assert len(by_project) % sum(KINDS.values()) == 0
    assert len(found) == len(whole) * sum(KINDS.values())
    assert report(found).count("\n| ") == 1 + 3 * len(KINDS)


def test_the_numbers_are_printed(shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = write_tiny_model(tmp_path / "model", 32, window=1024)
    assert main([str(shop), "--lines", "3", "--model", str(model)]) == 0
    out = capsys.readouterr().out
    assert "FITTED = Belief(bias=" in out
    assert "| file | fitted to other folders |" in out
