"""Counts and latencies of a server."""

from __future__ import annotations

import json

import pytest

from fim_server.server.constants import SERVER
from fim_server.server.usage import MOST_SENT, Usage, percentile
from fim_server.suggest.job import Costs
from support.editors.answers import suggestion


def test_cached_answers_do_not_count_for_the_models_speed() -> None:
    usage = Usage()
    for _ in range(20):
        usage.count_answer(Costs(total_ms=600, prefill_ms=100, decode_ms=500), from_model=True)
    for _ in range(21):
        usage.count_answer(Costs(total_ms=1), from_model=True)
    assert usage.debounce_ms(100) == SERVER.longest_debounce_ms


def test_suggestions_are_counted_once() -> None:
    usage = Usage()
    for _ in range(3):
        usage.count_sent([suggestion("0123456789", identity="1")])
    usage.count_sent([suggestion("01234", identity="2"), suggestion("an alternative", identity="3")])
    usage.count_acceptance("1")
    usage.count_acceptance("1")
    usage.count_acceptance("another suggestion")
    counts = usage.as_json()
    assert (counts["shown"], counts["accepted"], counts["acceptedCharacters"]) == (2, 1, 10)
    assert counts["savedKeystrokes"] == 9  # accepting took one key
    json.dumps(counts)


def test_the_typed_part_of_a_suggestion_is_not_accepted() -> None:
    usage = Usage()
    usage.count_sent([suggestion("0123456789", identity="1")])
    usage.count_sent([suggestion("456789", identity="1")])
    usage.count_acceptance("1")
    counts = usage.as_json()
    assert (counts["shown"], counts["acceptedCharacters"], counts["savedKeystrokes"]) == (1, 6, 5)


def test_old_suggestions_are_forgotten() -> None:
    usage = Usage()
    for number in range(MOST_SENT + 10):
        usage.count_sent([suggestion("a", identity=str(number))])
    usage.count_acceptance("0")
    assert usage.accepted == 0
    usage.count_acceptance(str(MOST_SENT))
    assert usage.accepted == 1


def test_latencies_without_requests_are_zero() -> None:
    assert Usage().as_json()["latency"] == {"p50Ms": 0.0, "p95Ms": 0.0, "serverP95Ms": 0.0}
    assert percentile([7.0], 95) == 7.0
    assert percentile([float(value) for value in range(101)], 95) == pytest.approx(95)


def test_the_pause_before_automatic_requests_follows_the_model() -> None:
    usage = Usage()
    assert usage.debounce_ms(10) == 0  # nothing is known yet
    usage.count_answer(Costs(total_ms=1, decode_ms=1), from_model=False)
    assert usage.debounce_ms(10) == 0  # memory says nothing of the model
    for _ in range(5):
        usage.count_answer(Costs(total_ms=210, prefill_ms=100, decode_ms=100), from_model=True)
    assert usage.debounce_ms(100) == pytest.approx(50)
    assert usage.debounce_ms(None) == 0
    assert usage.debounce_ms(500) == 0  # the user types slower than the model writes
    for _ in range(200):
        usage.count_answer(Costs(total_ms=9000, decode_ms=9000), from_model=True)
    assert usage.debounce_ms(100) == SERVER.longest_debounce_ms


def test_the_rest_of_the_costs_is_the_servers() -> None:
    costs = Costs(total_ms=100, debounce_ms=1, queue_ms=2, open_ms=3, prefill_ms=40, decode_ms=50, engine_ms=1)
    assert costs.server_ms == pytest.approx(3)
    assert Costs(total_ms=1, decode_ms=5).server_ms == 0
