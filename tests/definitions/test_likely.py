"""First expected texts of `check` and `explain` where a text is refused."""

import random

import pytest

from fim_server.language.state import State, beginning_of
from support.engine.corpus import python


def refused(text: str) -> tuple[State, str, str]:
    state = python().open("", "").start()
    accepted = state.advance(text)
    return state, text.encode()[:accepted].decode(), text.encode()[accepted:].decode()


@pytest.mark.parametrize(
    ("text", "likely"),
    [
        ("if x\n    pass\n", '":"'),
        ("while True\n", '":"'),
        ("class A\n    pass\n", '":"'),
        ("def f(a\n  b = 3\n", '")"'),
        ("print((1, 2)\ny = 3\n", '")"'),
        ("x = [1, 2\ndef f(): pass\n", '"]"'),
        ("x = {1: 2\n", '"}"'),
        ("lambda x\n", '":"'),
        ("for i of x:\n    pass\n", '"in"'),
        ("try:\n    pass\nx = 1\n", '"except"'),
        ("x = 1 if y els\n", '"else"'),
        ("x = 1 2\n", "_NEWLINE"),
        ("x = \n", None),  # a name stands for any
        ("def f():\nx = 1\n", None),
    ],
)
def test_the_likely_one_is_what_is_missing(text: str, likely: str | None) -> None:
    state, before, rest = refused(text)
    explanation = state.explain(rest)
    assert state.likely_next(explanation, before) == likely
    assert likely is None or likely in explanation.expected


def test_a_likely_one_is_always_among_what_may_come() -> None:
    draw = random.Random(7)
    pieces = [
        "if",
        " ",
        "x",
        "(",
        ")",
        "[",
        "]",
        ":",
        "\n",
        "    ",
        "el",
        "in",
        "!",
        "=",
        "lambda",
        "'",
        "f'{",
        "def f",
    ]
    said = 0
    for _ in range(200):
        state, before, rest = refused("".join(draw.choices(pieces, k=draw.randrange(1, 12))))
        explanation = state.explain(rest)
        likely = state.likely_next(explanation, before)
        said += likely is not None
        assert likely is None or likely in explanation.expected
    assert said > 30


def test_words_are_not_cut() -> None:
    assert beginning_of("x ", "integer", ['"in"', "NAME"]) is None
    assert beginning_of("e", "lif x", ['"elif"', '"if"']) == '"elif"'
    assert beginning_of("el", "if x", ['"if"']) is None
    assert beginning_of("a !", "=x", ['"!="', '"="']) == '"!="'
