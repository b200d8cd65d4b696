"""Holes as other engines' requests describe them: what is read, and what is refused with which words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fim_server.errors import HoleError
from fim_server.integrations.holes import PREFIX, Hole, hole_of, is_hole
from fim_server.language.shapes import SINGLE_LINE, Shape

WRONG: dict[str, tuple[Any, str]] = {
    "no object": ([1, 2], r"^the hole is a JSON object with left, right, .*, not list$"),
    "no left": ({"right": ""}, r"^left: missing$"),
    "left no text": ({"left": 1}, r"^left: a string expected, not int$"),
    "an unknown key": ({"left": "", "rigth": ""}, r"^rigth: no key of a hole; there are left, right, "),
    "an unknown language": ({"left": "", "language": "cobol"}, r"cobol"),
    "an unknown version": ({"left": "", "version": "2.7"}, r"python has no version '2.7'"),
    "a version of another type": ({"left": "", "version": 3}, r"^version: a string expected, not int$"),
    "a floor that there is not": ({"left": "", "floor": "cellar"}, r"^floor: one of off, brackets, block "),
    "a shape that is none": ({"left": "", "shape": {"lines": 0}}, r"^shape: "),
    "a shape of two": ({"left": "", "shape": {"lines": 1, "regex": "a"}}, r"^shape: "),
    "a shape that cannot be read": ({"left": "", "shape": {"regex": "("}}, r"^shape: "),
    "a shape that no text here has": (
        {"left": "if x:\n", "right": "y", "shape": {"regex": "[0-9]"}},
        r"^shape: no text",
    ),
    "texts that nothing fits between": ({"left": "x = )", "right": ""}, r"^nothing fits between left and right: "),
}


@pytest.mark.parametrize("name", WRONG)
def test_holes_that_cannot_be_filled_are_refused_in_one_line(name: str) -> None:
    value, said = WRONG[name]
    with pytest.raises(HoleError, match=said) as refusal:
        hole_of(PREFIX + json.dumps(value)).open()
    assert "\n" not in str(refusal.value)


def test_holes_that_are_no_json_are_refused() -> None:
    with pytest.raises(HoleError, match=r"^the hole is no JSON: "):
        hole_of(PREFIX + "{")
    with pytest.raises(HoleError, match=r"^the hole is no JSON: "):
        hole_of(PREFIX + "[" * 100_000)


def test_a_hole_has_its_keys_and_defaults() -> None:
    assert hole_of(PREFIX + '{"left": "a"}') == Hole("a", "", "python", None, None, "off")
    given = {"left": "[", "right": "]", "language": "json", "shape": {"lines": 1}, "floor": "brackets"}
    assert Hole.of(given) == Hole("[", "]", "json", None, SINGLE_LINE, "brackets")
    assert Hole.of(("a", "b")) == Hole("a", "b")
    assert Hole.of({"left": "a", "shape": {"regex": "[a-z]+"}}).shape == Shape.regex("[a-z]+")
    with pytest.raises(HoleError, match="not str"):
        Hole.of("ab")


def test_grammars_of_other_engines_are_left_alone() -> None:
    assert is_hole('fim-server:{"left": ""}')
    assert not is_hole('root ::= "fim-server:"')
    assert not is_hole(None)


def test_a_text_that_takes_too_long_is_refused() -> None:
    with pytest.raises(HoleError, match=r"took over 0\.001 s"):
        Hole("x = [\n", "1,\n" * 200_000 + "]\n").open(seconds=0.001)


def test_the_session_keeps_floor_and_version() -> None:
    assert Hole("f(", ")\n", floor="brackets").open().floor == "brackets"
    with pytest.raises(HoleError, match="nothing fits"):
        Hole("match x:\n    case 1:\n        ", "\n", version="3.9").open()
