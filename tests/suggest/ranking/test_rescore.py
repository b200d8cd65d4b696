"""Confidence of recalled suggestions after the model has written at the same place."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import accumulate

import pytest

from fim_server.decoding.results import Written
from fim_server.suggest.answer_cache import moved
from fim_server.suggest.ranking.confidence import confidence, first_confidence
from fim_server.suggest.ranking.red_flags import RedFlag
from fim_server.suggest.ranking.rescore import given_written
from fim_server.suggest.suggestion import Suggestion
from support.editors.answers import answered, changed, suggestion


def recalled(*tokens: tuple[str, float], lexemes: tuple[int, ...]) -> Suggestion:
    """Return a recalled suggestion with the probabilities of its tokens."""
    text = "".join(text for text, _ in tokens)
    ends = accumulate(len(text) for text, _ in tokens)
    written = tuple(Written(end, share) for end, (_, share) in zip(ends, tokens, strict=True))
    return changed(
        suggestion(text), lexemes=lexemes, cuts=lexemes, tokens=written, is_recalled=True, is_calibrated=True
    )


def model(*tokens: tuple[str, float], lexemes: tuple[int, ...]) -> Suggestion:
    return changed(recalled(*tokens, lexemes=lexemes), is_recalled=False, is_calibrated=False)


CALL = recalled(("lo", 0.8), ("an", 0.75), (".due", 0.5), ("()", 0.9), lexemes=(4, 5, 8, 9, 10))


def test_the_models_confidence_counts_where_both_begin_alike() -> None:
    for share in (0.05, 0.6, 0.99):
        written = model(("loan", share), (".book", 0.9), lexemes=(4, 5, 9))
        assert first_confidence(given_written(CALL, [written])) == pytest.approx(first_confidence(written))


def test_different_beginnings_share_the_probability() -> None:
    written = model(("book", 0.7), lexemes=(4,))
    found = first_confidence(given_written(CALL, [written]))
    assert found == pytest.approx(0.6 * (1 - first_confidence(written)))


def test_the_text_after_a_flagged_one_counts() -> None:
    flagged = changed(model(("loan", 0.9), (".late", 0.9), lexemes=(4, 5, 9)), flag=RedFlag(1, 0.05, cause=9))
    for second in (model(("loan", 0.5), lexemes=(4,)), model(("book", 0.5), lexemes=(4,))):
        assert given_written(CALL, [flagged, second]) == given_written(CALL, [second])


def test_a_flag_behind_the_first_lexeme_does_not_count() -> None:
    written = model(("loan", 0.9), (".late", 0.9), lexemes=(4, 5, 9))
    flagged = changed(written, flag=RedFlag(1, 0.05, cause=9))
    assert given_written(CALL, [flagged]) == given_written(CALL, [written])
    of_lexeme = changed(written, flag=RedFlag(1, 0.05, cause=4))
    assert first_confidence(given_written(CALL, [of_lexeme])) == pytest.approx(0.05)


def test_leading_blanks_are_ignored_in_the_first_lexeme() -> None:
    written = changed(model((" loan", 0.9), lexemes=(5,)))
    assert first_confidence(given_written(CALL, [written])) == pytest.approx(first_confidence(written))


def test_a_model_without_probabilities_changes_nothing() -> None:
    for shares in ((1.0, 1.0), (0.0, 1.0)):
        written = model(("bo", shares[0]), ("ok", shares[1]), lexemes=(4,))
        assert given_written(CALL, [written]) == CALL
    assert given_written(CALL, [changed(model(("book", 0.5), lexemes=(4,)), tokens=())]) == CALL


def test_typing_other_text_restores_the_memorys_confidence() -> None:
    """The model's text then says nothing about the recalled one."""
    written = changed(model(("book", 0.9), lexemes=(4,)), identity="2")
    beside = given_written(CALL, [written])
    assert first_confidence(beside) < 0.1
    for typed in ("l", "lo", "loan"):
        found, wanted = (
            moved(answered("x = ", "\n", *suggestions), f"x = {typed}", "\n", True)
            for suggestions in ((written, beside), (CALL,))
        )
        assert found is not None
        assert wanted is not None
        assert found.suggestions == wanted.suggestions
    typed_along = moved(answered("x = ", "\n", replace(written, text="loans"), beside), "x = lo", "\n", True)
    assert typed_along is not None
    assert typed_along.suggestions[1].tokens != typed_along.suggestions[1].likelihoods.recalled != ()


def test_a_longer_lexeme_is_a_different_one() -> None:
    written = model(("loans", 0.7), lexemes=(5,))
    assert first_confidence(given_written(CALL, [written])) == pytest.approx(0.6 * (1 - first_confidence(written)))


def test_later_lexemes_keep_their_relative_confidence() -> None:
    draw = random.Random(1)
    for _ in range(200):
        shares = [draw.uniform(0.01, 0.99) for _ in range(4)]
        texts = draw.choice([("loan", ".", "due", "()"), ("lo", "an.", "due", "()"), ("l", "o", "an.du", "e()")])
        given = recalled(*zip(texts, shares, strict=True), lexemes=(4, 5, 8, 9, 10))
        other = draw.choice(["loan", "book"])
        now = given_written(given, [model((other, draw.uniform(0.01, 0.99)), lexemes=(4,))])
        assert now.text == given.text
        for end in given.ends.lexemes:
            before = confidence(given, end) / first_confidence(given)
            assert confidence(now, end) / first_confidence(now) == pytest.approx(before)
        assert all(0 < token.probability <= 1 for token in now.tokens)


def test_certainty_is_lowered() -> None:
    certain = recalled(("lo", 1.0), ("an", 0.999999999), (".due", 0.5), lexemes=(4, 5, 8))
    written = model(("book", 0.9), lexemes=(4,))
    found = first_confidence(given_written(certain, [written]))
    assert found == pytest.approx(1 - first_confidence(written), rel=0.01)


def test_without_lexemes_the_whole_text_is_one() -> None:
    given, written = recalled(("loan.due", 0.6), lexemes=()), model(("loan.due", 0.9), lexemes=())
    assert first_confidence(given_written(given, [written])) == pytest.approx(first_confidence(written))


def test_without_text_or_tokens_nothing_changes() -> None:
    assert given_written(CALL, []) == CALL
    sure = changed(CALL, tokens=())
    assert given_written(sure, [model(("book", 0.7), lexemes=(4,))]) == sure


def test_a_flag_on_the_first_lexeme_stays() -> None:
    flagged = changed(CALL, flag=RedFlag(4, 0.05))
    assert given_written(flagged, [model(("loan", 0.9), lexemes=(4,))]) == flagged
    later = changed(CALL, flag=RedFlag(8, 0.05))
    now = given_written(later, [model(("loan", 0.9), lexemes=(4,))])
    assert confidence(now, 8) == 0.05
    assert first_confidence(now) > 0.6
