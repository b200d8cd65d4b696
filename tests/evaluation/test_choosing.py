"""``fim-server models check``: what is right with the embedded model, and each way in which a model can be wrong."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from fim_server import Language
from fim_server.errors import ModelError
from fim_server.evaluation.model_check.findings import Aspect, findings
from fim_server.evaluation.model_check.holes import holes
from fim_server.evaluation.model_check.speed import Speed
from fim_server.evaluation.model_check.trial import Trial, mean_loss, other_losses, try_out
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.onnx import backend as onnx_backend
from fim_server.models.prompt import bind
from fim_server.tokens.formats import Slot, known_formats, other_order
from support.command_line import run_command

needs_onnx = pytest.mark.skipif(not onnx_backend.is_installed(), reason="onnxruntime is not installed")
pytestmark = needs_onnx


class Clock:
    """Goes on by as much at each look."""

    def __init__(self, seconds: float) -> None:
        self._ticks: Iterator[int] = itertools.count()
        self._seconds = seconds

    def __call__(self) -> float:
        return self._seconds * next(self._ticks)


@cache
def embedded() -> FimModel:
    return load_model("embedded", "cpu", "onnx")


@cache
def trial() -> Trial:
    """Trial of the embedded model, by a clock on which a line takes 14 ms."""
    return try_out(embedded(), clock=Clock(0.001))


def wrong(found: Trial) -> set[Aspect]:
    return {finding.aspect for finding in findings(found) if not finding.good}


def test_the_holes_are_ten_files_that_parse() -> None:
    assert len(holes()) == 10
    assert {hole.language for hole in holes()} == {"python", "json"}
    for hole in holes():
        assert Language.load(hole.language).open("", "").check(hole.left + hole.middle + hole.right).complete
        assert hole.other != hole.right


def test_nothing_is_wrong_with_the_embedded_model() -> None:
    assert wrong(trial()) == set()
    assert len(trial().tried) == 10


def test_a_model_that_is_not_shown_the_suffix() -> None:
    model = embedded()
    pieces = tuple(piece for piece in model.format.pieces if piece is not Slot.SUFFIX)
    found = try_out(replace(model, format=replace(model.format, pieces=pieces)), clock=Clock(0.001))
    assert {Aspect.TOKENS, Aspect.SUFFIX} <= wrong(found)
    assert all(one.loss == one.without == one.swapped for one in found.tried)


def test_a_prompt_of_the_wrong_form_is_told_with_the_right_one() -> None:
    model = embedded()
    pieces = tuple(reversed(model.format.pieces))
    found = try_out(replace(model, format=replace(model.format, pieces=pieces)), clock=Clock(0.001))
    assert Aspect.FORMAT in wrong(found)
    words = next(finding.words for finding in findings(found) if finding.aspect is Aspect.FORMAT)
    assert words.startswith("the fim-server format would be better")


def test_a_prompt_in_the_wrong_order_is_told_with_the_right_one() -> None:
    """The texts stand behind each other's tokens, as where two families share tokens and not their order."""
    model = embedded()
    turned = {Slot.PREFIX: Slot.SUFFIX, Slot.SUFFIX: Slot.PREFIX}
    pieces = tuple(turned[piece] if isinstance(piece, Slot) else piece for piece in model.format.pieces)
    found = try_out(replace(model, format=replace(model.format, pieces=pieces)), clock=Clock(0.001))
    assert Aspect.FORMAT in wrong(found)
    words = next(finding.words for finding in findings(found) if finding.aspect is Aspect.FORMAT)
    assert words.startswith("the fim-server format would be better")


def test_formats_are_tried_in_both_orders() -> None:
    model = embedded()
    formats = known_formats()
    orders = {
        bound.pieces for row in (*formats, *map(other_order, formats)) if (bound := bind(row, model.format.tokenizer))
    }
    losses = other_losses(model, Clock(0.0), 1.0)
    assert "fim-server (other order)" in losses
    assert len(losses) == len(orders) - 1, "each other order once"


def test_a_model_that_does_not_end_its_middles() -> None:
    model = embedded()
    rare = model.vocabulary.encode("\t\t\t\t")[-1]
    found = try_out(replace(model, format=replace(model.format, stop_ids=(rare,))), clock=Clock(0.001))
    assert Aspect.END in wrong(found)


def test_a_text_with_which_the_file_does_not_parse() -> None:
    first, *rest = trial().tried
    broken = replace(trial(), tried=(replace(first, text=" )", parses=False), *rest))
    assert wrong(broken) == {Aspect.PARSES}
    none = replace(trial(), tried=(replace(first, text=None, parses=False, reason="a dead end"), *rest))
    assert wrong(none) == {Aspect.PARSES}
    late = replace(trial(), tried=(replace(first, text=None, parses=None, reason="no time"), *rest))
    assert wrong(late) == set()


def test_a_model_that_is_too_slow_for_typing() -> None:
    assert wrong(replace(trial(), speed=Speed(read=100.0, written=20.0, memory=None))) == {Aspect.SPEED}
    assert wrong(replace(trial(), speed=Speed(read=400.0, written=20.0, memory=None))) == set()


def test_it_ends_when_its_time_is_over() -> None:
    found = try_out(embedded(), seconds=100.0, clock=Clock(1.0))
    assert len(found.tried) < 10
    assert Aspect.TIME in wrong(found)


def test_a_model_that_cannot_compute_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: FimModel, *_: object) -> None:
        raise RuntimeError("no room\nat all")

    monkeypatch.setattr(FimModel, "forward", fail)
    with pytest.raises(ModelError, match=r"cannot compute \(no room\)$"):
        try_out(embedded())


def test_a_loss_is_the_mean_of_the_tokens_own() -> None:
    """Against one forward pass for each token, from the beginning."""
    import math

    model = embedded()
    prompt = model.format.encode("x = ", "\n", 64)
    tokens = model.vocabulary.encode("first + 1")
    nats = 0.0
    for count, token in enumerate(tokens):
        logits = model.forward([*prompt, *tokens[:count]], model.new_cache(128))
        nats -= math.log(model.backend.arithmetic.share_of(logits, [token]))
    found, _, _ = mean_loss(model, prompt, "first + 1", Clock(0.0), 1.0)
    assert found == pytest.approx(nats / len(tokens), rel=0.02)  # passes of other sizes round otherwise


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    status, output, _ = run_command(capsys, "models", "check", "embedded", "--device", "cpu", "--json")
    said = json.loads(output)
    assert status == (0 if said["good"] else 1)
    assert {one["aspect"] for one in said["findings"] if not one["good"]} <= {"speed"}  # the machine may be busy
    assert len(said["holes"]) == 10
    assert all(one["parses"] for one in said["holes"])


def test_a_model_without_the_tokens_of_any_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fim_server.models.prompt import find_format

    def load(*_: object) -> None:
        find_format(embedded().format.tokenizer, "some", formats=[])

    monkeypatch.setattr("fim_server.models.load.load_model", load)
    status, output, _ = run_command(capsys, "models", "check", "some")
    assert status == 1
    assert "not a fill-in-the-middle model" in " ".join(output.split())


def test_bad_input_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, output, errors = run_command(capsys, "models", "check", str(tmp_path / "none"))
    assert (status, output) == (2, "")
    assert errors.count("\n") == 1
