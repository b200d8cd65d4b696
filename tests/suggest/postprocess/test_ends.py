"""Ends of texts in languages whose definition does not say where an expression may end."""

from __future__ import annotations

import pytest

from fim_server.suggest.postprocess.ends import boundaries, finished_cuts
from fim_server.suggest.suggestion import Ends


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("$t += $x;", ["$t", "$t += $x", "$t += $x;"]),
        ("i++ - 1", ["i", "i++", "i++ - 1"]),
        ("a & b | c", ["a", "a & b", "a & b | c"]),
        ("p -> q", ["p", "p ->", "p -> q"]),
        ("w: 50% b", ["w", "w:", "w: 50", "w: 50%", "w: 50% b"]),
        ("a % b * c", ["a", "a % b", "a % b * c"]),
        ("f(x).y", ["f", "f(", "f(x", "f(x)", "f(x).y"]),
        ("b --", ["b", "b --"]),
        ("do |x|", ["do", "do |x", "do |x|"]),
        ("npm -", ["npm"]),
        ("=", ["="]),
    ],
)
def test_no_text_ends_behind_a_sign_that_wants_an_operand(text: str, ends: list[str]) -> None:
    cuts = tuple(end for end in (*boundaries(text), len(text)) if text[:end] not in ("$", "i+", "b -"))
    found = finished_cuts(Ends(cuts, ()), text, takes_dots=False)
    assert [text[:end] for end in found.cuts] == ends


def test_a_sentence_ends_with_a_dot() -> None:
    ends = Ends((4, 5), ())
    assert finished_cuts(ends, "Done.", takes_dots=True).cuts == (4, 5)
    assert finished_cuts(ends, "Done.", takes_dots=False).cuts == (4,)
