"""Shapes that are too large are refused while their automaton is built, whatever it would come to.

What is bounded is counted: bytes of the expression, of the automaton that is not deterministic yet, states and steps of
the deterministic one (`SHAPE` in `rust_core/src/limits.rs`). With these limits each of the patterns here is refused
within 50 ms on a machine of 2023; before, they took up to minutes.
"""

from __future__ import annotations

from functools import cache

import pytest

from fim_server import Language

LIMITS = "over the limit of|states between characters, more than|it has over 1000 states"

TOO_LARGE = {
    "a{100000}": "bytes of an automaton",
    "(.*a){12}.{12}": "states of an automaton",
    "(?:[a-z]{1000}){1000}": "bytes of an automaton",
    "(((a?){30}){30}){30}": "bytes of an automaton",
    "(?:a|b)*a(?:a|b){40}": "states of an automaton",
    "[ab]*a[ab]{11}": "states of an automaton",
    ".{0,500}": "states of an automaton",
    r"\w{1,300}": "bytes of an automaton",
    r"\w{20}": "steps to an automaton",
    r"(\w+ ){5}": "steps to an automaton",
    r"(?u:\PM\pM*){30}": "steps to an automaton",
    r"(\pL|\pN)*z(\pL|\pN){3}": "steps to an automaton",
    r"(?i)(\w\W){400}": "bytes of an automaton",
    r"(?:\w|\d|\s)*x(?:\w|\d|\s){6}": "steps to an automaton",
    "a" * 5000: "bytes of regular expressions",
    "a" * 3900: LIMITS,
    "|".join(f"a{i}.*b{i}" for i in range(250)): "states of an automaton",
    "(?:a?){500}a{500}": LIMITS,
    "[a-z]{1,900}": LIMITS,
    "(a*)*b{900}": LIMITS,
    "(x{0,30}y{0,30}){3}": LIMITS,
    "".join(chr(0x4E00 + i) for i in range(900)): "steps to an automaton",
}


@cache
def json() -> Language:
    return Language.load("json")


@pytest.mark.parametrize(("pattern", "what"), TOO_LARGE.items(), ids=[pattern[:30] for pattern in TOO_LARGE])
def test_what_is_too_large_is_named(pattern: str, what: str) -> None:
    with pytest.raises(ValueError, match=rf"^[^\n]*(?:{what})[^\n]*$") as error:
        json().core.matching(pattern)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    ("head", "tail"),
    [("(?:", "){%d}"), ("(?:", "){0,%d}"), ("(?s:.{0,3}", "){%d}"), ("(?i:é", "|ß){%d}"), ("", "*x.{%d}")],
)
@pytest.mark.parametrize("item", ["a", "[a-z]", r"\w", r"\pL?", ".*a", "(?:a|bc)", "(?:x{9}|y)"])
def test_whatever_is_repeated(head: str, tail: str, item: str) -> None:
    """More copies are no more work once they are too many: refused by a limit, never accepted again."""
    refused = False
    for count in (2, 30, 1_000, 100_000, 10_000_000):
        try:
            json().core.matching(head + item + tail % count)
        except ValueError as error:
            refused = True
            assert "over" in str(error) or "more than" in str(error)  # noqa: PT017
        else:
            assert not refused, count
    assert refused or item == ".*a"


def test_shapes_as_large_as_they_may_be_are_none_too_large() -> None:
    for pattern in (r"\w{2}", r"(?i)\w{3}", r"(\w+ ){2}", ".{0,20}", "(a|b|c|d)*x.{10}", "(.*a){12}", "(?s:.*)"):
        json().core.matching(pattern)
