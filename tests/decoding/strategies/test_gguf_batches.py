"""Rows of a GGUF file that llama.cpp reads together, against each read by itself; skipped without the extra `gguf`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fim_server import Language
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.strategies.alternatives import complete_session
from fim_server.errors import StoppedError
from fim_server.language.stop import Stop
from fim_server.models.backend import PREFILL_CHUNK
from fim_server.models.gguf import library
from fim_server.models.gguf.backend import GgufBackend
from fim_server.models.gguf.context import Context
from fim_server.models.gguf.writing import SPLITTERS, write_gguf
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.source import locate
from support.models.batched_runs import CUTS, together

ROUNDING = 0.5
"""Tolerance of logits: keys and values are in float16, computed in passes of other sizes."""

pytestmark = pytest.mark.skipif(not library.is_installed(), reason="xllamacpp is not installed (the extra `gguf`)")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> FimModel:
    path = tmp_path_factory.mktemp("gguf") / "embedded.gguf"
    write_gguf(Path(locate("embedded")), path, "f32", next(iter(SPLITTERS)))
    return load_model(str(path))


@pytest.fixture(scope="module")
def text(model: FimModel) -> list[int]:
    return model.vocabulary.encode(Path(random.__file__).read_text(encoding="utf-8")[:20_000])


def backend_of(model: FimModel) -> GgufBackend:
    assert isinstance(model.backend, GgufBackend)
    return model.backend


def alone(model: FimModel, tokens: Sequence[int]) -> NDArray[np.float32]:
    cache = model.new_cache(512)
    model.forward(tokens[:-1], cache)
    found: NDArray[np.float32] = model.forward(tokens[-1:], cache)
    return found


def test_rows_read_what_they_would_read_alone(model: FimModel, text: list[int]) -> None:
    choose = random.Random(5)
    rows = [text[start : start + choose.randrange(40, PREFILL_CHUNK + 40)] for start in (0, 700, 1500, 2200)]
    store = backend_of(model).store(8, 400)
    for row in rows:
        assert np.abs(store.read(row) - alone(model, row)).max() < ROUNDING
    seen = set()
    for step in range(30):
        change = choose.choice(["", "copy", "remove", "rewind"])
        at = choose.randrange(len(rows))
        if change == "copy" and len(rows) < 8:
            store.copy(at)
            rows.append(list(rows[at]))
        elif change == "remove" and len(rows) > 2:
            store.remove(at)
            rows[at] = rows[-1]
            rows.pop()
        elif change == "rewind":
            store.rewind(at, 3)
            del rows[at][-3:]
        tokens = [text[3000 + 31 * step + 7 * number] for number in range(len(rows))]
        for own, token in zip(rows, tokens, strict=True):
            own.append(token)
        found = store.forward(tokens)
        wanted = [alone(model, own) for own in rows]
        for number, logits in enumerate(found):
            assert np.abs(logits - wanted[number]).max() < ROUNDING, (step, change, number)
        if rows[0] != rows[1]:
            assert np.abs(found[0] - wanted[1]).max() > ROUNDING
        seen.add(change)
    assert len(seen) == 4


def test_a_batch_gives_the_texts_of_single_runs(model: FimModel) -> None:
    language = Language.load("python")
    options = DecodeOptions(max_new_tokens=24)
    found = together(model, CUTS, lambda split: [None, language.open(split.left, split.right)], options)
    same = 0
    for split, (free, bound) in zip(CUTS, found, strict=True):
        for (text, reason, _), constrained in ((free, False), (bound, True)):
            session = language.open(split.left, split.right)
            single = complete_session(model, session, split, DecodeOptions(max_new_tokens=24, constrained=constrained))
            same += (text, reason) == (single.text, single.stop_reason)
            if constrained:
                assert text is not None
                assert session.check(text).complete
    assert same >= 2 * len(CUTS) - 1  # logits may differ by rounding, and texts where two tokens are as likely


def test_a_store_that_was_closed_is_empty(model: FimModel, text: list[int]) -> None:
    store = backend_of(model).store(2, 300)
    store.read(text[:50])
    store.read(text[50:90])
    store.close()
    again = store.read(text[:50])
    assert np.abs(again - alone(model, text[:50])).max() < ROUNDING


def test_a_row_without_room_is_refused_and_the_others_go_on(model: FimModel, text: list[int]) -> None:
    store = backend_of(model).store(2, 100)
    room = 256  # the library's step
    store.read(text[: room - 1])
    for wrong in ([], [-1], [model.size]):
        with pytest.raises(RuntimeError, match="not tokens of"):
            store.read(wrong)
    with pytest.raises(RuntimeError, match="above its room"):
        store.read(text[: room + 1])
    store.copy(0)
    with pytest.raises(RuntimeError, match="more than 2 rows"):
        store.read(text[:5])
    with pytest.raises(RuntimeError, match="1 tokens for 2 rows"):
        store.forward([5])
    store.remove(1)
    assert np.abs(store.forward([text[5]])[0] - alone(model, [*text[: room - 1], text[5]])).max() < ROUNDING
    with pytest.raises(RuntimeError, match="above its room"):
        store.forward([5])


def test_an_abandoned_pass_leaves_no_trace(model: FimModel, text: list[int]) -> None:
    store = backend_of(model).store(2, 200)
    rows = [text[:100], text[200:290]]
    for row in rows:
        store.read(row)
    stop = Stop()
    stop.set()
    with stop, pytest.raises(StoppedError):
        store.forward([5, 6])
    found = store.forward([7, 8])
    for row, token, logits in zip(rows, (7, 8), found, strict=True):
        assert np.abs(logits - alone(model, [*row, token])).max() < ROUNDING


def test_rows_of_a_network_that_takes_nothing_back_are_read_again(
    model: FimModel, text: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = backend_of(model).store(2, 300)
    keep, tried = Context.keep, list[int]()

    def keeps_nothing(context: Context, length: int, sequence: int = 0) -> bool:
        tried.append(length)
        return keep(context, length, sequence) if length == 0 else False

    monkeypatch.setattr(Context, "keep", keeps_nothing)
    rows = [text[:150], text[200:290]]
    for row in rows:
        store.read(row)
    store.rewind(0, 20)
    assert 130 in tried
    found = store.forward([7, 8])
    for row, token, logits in zip((rows[0][:130], rows[1]), (7, 8), found, strict=True):
        assert np.abs(logits - alone(model, [*row, token])).max() < ROUNDING
