"""The fuzzer of sessions in its short form, what it has found before, and that it finds what is planted.

The long form (FIM_SERVER_LONG=1) takes FIM_SERVER_MINUTES (60); FIM_SERVER_SEED draws others. Alone:
`python -m support.engine.session_fuzzer --minutes 60`.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fim_server import Matcher, Session, State
from support.engine import session_fuzzer
from support.engine.session_fuzzer import Finding, Fuzzer, kept, problem_of, summary, without_parts

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = int(os.environ.get("FIM_SERVER_SEED", "1"))
MINUTES = float(os.environ.get("FIM_SERVER_MINUTES", "60"))
CASES = 100


@pytest.mark.parametrize("case", kept(), ids=lambda case: str(case["name"]))
def test_what_was_found_stays_mended(case: dict[str, Any]) -> None:
    assert problem_of(case["language"], case["operations"]) is None


def test_sessions_answer_as_the_plainer_ways_do() -> None:
    fuzzer, started = Fuzzer(SEED), time.monotonic()
    while fuzzer.number < CASES or (LONG and time.monotonic() < started + 60 * MINUTES):
        fuzzer.case()
    print(summary(fuzzer, time.monotonic() - started))
    assert not fuzzer.findings, "\n".join(map(str, fuzzer.findings))
    for operation in ("check", "moved", "advance", "rollback", "mask", "plan", "stopped", "threads", "complete"):
        assert fuzzer.counts[operation] > 0, operation


def found(cases: int) -> Finding:
    """The first finding of a few cases."""
    fuzzer = Fuzzer(1)
    for _ in range(cases):
        finding = fuzzer.case()
        if finding is not None:
            print(finding)
            return finding
    pytest.fail(f"nothing was found in {cases} cases")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_fuzzer, "SHRINKING", 10.0)


def test_a_session_that_forgets_a_move_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "moved", lambda session, left: session)
    finding = found(20)
    assert [operation[0] for operation in finding.operations][-1] in ("move", "reuse", "check", "stop", "threads")
    assert len(finding.operations) <= 3
    assert all(len(text) < 40 for operation in finding.operations for text in operation if isinstance(text, str))


def test_a_rollback_that_takes_too_little_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rollback = State.rollback
    monkeypatch.setattr(State, "rollback", lambda state, count: rollback(state, count - (0 < count <= len(state))))
    finding = found(60)
    assert "rollback" in [operation[0] for operation in finding.operations]
    assert len(finding.operations) <= 5


def test_a_mask_with_one_token_too_many_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = Matcher.mask

    def planted(matcher: Matcher) -> NDArray[np.bool_]:
        found = mask(matcher)
        found[97] = True
        return found

    monkeypatch.setattr(Matcher, "mask", planted)
    finding = found(40)
    assert "mask" in finding.problem
    assert len(finding.operations) <= 3


def test_a_panic_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        """Panic of the engine, which is no Exception."""

    def panic(session: Session, middle: str) -> None:
        raise PanicException("index out of bounds")

    monkeypatch.setattr(Session, "check", panic)
    assert "PanicException: index out of bounds" in found(20).problem


def test_the_same_seed_is_the_same_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(State, "is_viable", lambda state: True)
    assert found(60) == found(60)


def test_parts_are_left_out() -> None:
    assert without_parts(list("abcdefgh"), lambda parts: {"b", "g"} <= set(parts)) == ["b", "g"]
    assert without_parts([], lambda parts: True) == []
