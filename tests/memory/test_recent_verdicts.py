"""Verdicts are kept for a while, and few of them."""

from __future__ import annotations

import pytest

from fim_server.memory import recent_verdicts
from fim_server.memory.recent_verdicts import MOST_KNOWN, RecentVerdicts


def test_a_verdict_is_kept_until_it_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = RecentVerdicts[str]()
    assert verdicts.get("a") is None
    assert verdicts.keep("a", False) is False
    assert verdicts.keep("b", True) is True
    assert (verdicts.get("a"), verdicts.get("b"), verdicts.get("c")) == (False, True, None)
    monkeypatch.setattr(recent_verdicts, "LOOK_AGAIN_SECONDS", -1.0)
    assert (verdicts.get("a"), verdicts.get("b")) == (None, None)


def test_few_verdicts_are_kept() -> None:
    verdicts = RecentVerdicts[int]()
    for key in range(3 * MOST_KNOWN):
        verdicts.keep(key, True)
    assert 0 < sum(verdicts.get(key) is not None for key in range(3 * MOST_KNOWN)) <= MOST_KNOWN
