"""Languages that families of models count as knowing."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

import pytest

from fim_server.tokens.formats import known_formats, known_languages

TABLE = tomllib.loads(resources.files("fim_server.tokens").joinpath("formats.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("row", "known"),
    [
        ({}, None),
        ({"languages": []}, set()),
        ({"languages": ["a"]}, {"a"}),
        ({"measured": {"b": {"first_lexeme": 50}, "c": {"first_lexeme": 49.9}}}, {"b"}),
        ({"languages": ["a"], "measured": {"b": {"first_lexeme": 90, "names": ["bee"]}}}, {"a", "b", "bee"}),
        ({"measured": {"b": {"first_lexeme": 10, "names": ["bee"]}}}, set()),
    ],
)
def test_languages_are_known_by_their_figures(row: dict[str, Any], known: set[str] | None) -> None:
    assert known_languages(row, 50) == known


def test_figures_are_shares_of_the_same_holes() -> None:
    measured = [figures for row in TABLE["format"] for figures in row.get("measured", {}).values()]
    assert measured
    for figures in measured:
        assert set(figures) <= {"exact", "first_lexeme", "names"}
        assert 0 <= figures["exact"] <= figures["first_lexeme"] <= 100


def test_no_language_is_both_measured_and_listed() -> None:
    for row in TABLE["format"]:
        names = list(row.get("languages", ())) + list(row.get("measured", {}))
        names += [name for figures in row.get("measured", {}).values() for name in figures.get("names", ())]
        assert len(names) == len(set(names))


def test_the_default_model_knows_the_languages_that_it_is_measured_in() -> None:
    (smollm2,) = [row for row in known_formats() if row.family == "SmolLM2"]
    assert smollm2.languages is not None
    assert {"python", "javascript", "c", "css", "ruby", "rb"} <= smollm2.languages
    assert not {"json", "markdown"} & smollm2.languages
