"""Checks of verdicts against brute force, in languages with modes and without layout."""

from __future__ import annotations

import random
from collections import Counter

from fim_server import _core
from fim_server.errors import LimitError
from support.languages.united_modes import Oracle


def shortest(state: _core.State) -> str | None:
    try:
        completion = state.shortest_completion()
    except LimitError:
        return None
    return None if completion is None else completion.decode()


def check_cut(
    language: _core.Language, oracle: Oracle, cut: tuple[str, str, str], counts: Counter[str], rng: random.Random
) -> None:
    left, middle, right = cut
    where = (oracle.moded, cut)
    session = language.open(left, right)
    viable, complete, rejected_at = session.check(middle)
    assert complete == oracle.member(left + middle + right), where
    if rng.random() < 0.25 and (moved := language.open(left[:-1], right).moved(left)) is not None:
        assert moved.check(middle) == (viable, complete, rejected_at), where
    counts["complete"] += complete
    endings = oracle.texts(1) + rng.sample(oracle.texts(3), 4)
    if not viable:
        counts["refused"] += 1
        refused = middle[: (rejected_at or 0) + 1]
        hit = next((text for text in endings if oracle.member(left + refused + text + right)), None)
        assert hit is None, (where, hit)
        return
    counts["viable"] += 1
    state = session.start()
    assert state.advance(middle.encode()) == len(middle), where
    completion = shortest(state)
    assert completion is not None, where
    assert oracle.member(left + middle + completion + right), (where, completion)
    shorter = [text for text in endings if len(text) < len(completion)]
    assert not any(oracle.member(left + middle + text + right) for text in shorter), (where, completion)
