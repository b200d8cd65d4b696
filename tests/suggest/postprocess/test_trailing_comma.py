"""Trailing commas of lists, if the document has that habit."""

from __future__ import annotations

import pytest

from fim_server.language import Language
from fim_server.suggest.postprocess.trailing_comma import with_last_comma
from fim_server.text.document import Split

HABIT = """\
a = f(
    b,
    c,
)
d = [
    e,
    f
    + g,
]


def g(
    h
):
    if (
        h
    ):
        return (
            h[
                0
            ]
        )
"""
"""Two lists with a trailing comma, one with a single entry, and brackets of no list."""


def ended(left: str, text: str, right: str, name: str = "python") -> str:
    session = Language.load(name).open(left, right)
    return with_last_comma(text, Split(left, right), session.spelling, lambda it: session.check(it).complete)


@pytest.mark.parametrize(
    ("left", "text", "right", "comma"),
    [
        ("x = f(\n    a,\n    ", "b=1", "\n)\n", True),
        ("x = f(\n    y,\n    a\n    if b\n    else ", "c.d", "\n)\n", True),
        ("x = f(\n    a,\n    ", "g(b)", "  \n)\n", True),
        ("x = f()(\n    a,\n\n    ", "'b'", "\n)\n", True),
        ("x = [\n    a,\n    ", "b", "\n]\n", True),
        ("x = {\n    a: b,\n    ", "b: c", "\n}\n", True),
        ("x = f(\n    ", "b", "\n)\n", False),
        ("x = {\n    a: b,\n    ", "b: c,", "\n}\n", False),
        ("x = f(\n    a,\n    ", "b +", "\n)\n", False),
        ("x = (\n    f(a,\n      b)\n    + ", "b", "\n)\n", False),  # it would be a tuple
        ("x = y[\n    a,\n    ", "b", "\n]\n", False),
        ("x = f(\n    ", "b for b in c", "\n)\n", False),  # it would be wrong
        ("x = f(\n    ", "b", "\n    , c\n)\n", False),
        ("x = f(\n    ", "b", ")\n", False),
        ("x = f(\n    a,\n    ", "b,\n    c", "\n)\n", False),
        ("x = ", "b", "\n", False),
    ],
)
def test_the_last_entry_gets_a_comma_if_it_is_the_habit(left: str, text: str, right: str, comma: bool) -> None:
    expected = text + "," * comma
    assert ended(HABIT + left, text, right) == expected
    assert ended(left, text, right + HABIT) == expected
    assert ended(left, text, right) == text  # nothing says that it is the habit here
    without = HABIT.replace("+ g,", "+ g")
    assert ended(without + left, text, right) == text
    assert ended(HABIT + without + left, text, right) == text


def test_incomplete_texts_get_no_comma() -> None:
    left, right = '{"a": [\n  1,\n  ', "\n]}\n"
    assert ended(left, "2", right, "json") == "2"
