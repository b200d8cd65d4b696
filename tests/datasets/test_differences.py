"""Documented differences hold for the place that a message names, and for no other one in the text."""

from __future__ import annotations

from pathlib import Path

import pytest

from fim_server import Language
from fim_server.datasets.judging.differences import FILE, Differences, place_of, refused_at

ROWS = r"""
[[difference]]
name = "a word at the place"
said = 'odd: .*'
where = '\bword ‸='

[[difference]]
name = "a word anywhere"
said = 'rare'
anywhere = '\bword\b'

[[difference]]
name = "a sign that the engine refuses"
text = '‸%'
"""


@pytest.fixture
def differences(tmp_path: Path) -> Differences:
    (tmp_path / FILE).write_text(ROWS, encoding="utf-8")
    return Differences.of(tmp_path)


@pytest.mark.parametrize(
    ("text", "said", "place"),
    [
        ("a = (", "Unexpected token (1:4)", 4),
        ("a\nbc", "Unexpected token (2:1)", 3),
        ("a\r\nb\rc\u2028d", "Unexpected token (4:0)", 7),
        ("a", "Unexpected token (9:9)", 1),
        ("a", "Unexpected token", None),
    ],
)
def test_a_message_names_a_place(text: str, said: str, place: int | None) -> None:
    assert place_of(said, text) == place


def test_a_pattern_counts_at_the_place_alone(differences: Differences) -> None:
    assert differences.name("word = 1; other", True, "odd: sign (1:5)") == "a word at the place"
    assert differences.name("word = 1; other", True, "odd: sign (1:10)") is None
    assert differences.name("word = 1; other", True, "odder: sign (1:5)") is None


def test_a_pattern_of_the_whole_text_counts_anywhere(differences: Differences) -> None:
    text = "word\n" + "x = 1\n" * 100
    assert differences.name(text, True, "rare (99:0)") == "a word anywhere"
    assert differences.name("x = 1", True, "rare (1:0)") is None


def test_a_refusal_counts_where_the_engine_refuses(differences: Differences) -> None:
    text = "x = 'é' % 2 %% 3\n"
    at = refused_at(Language.load("python"), text)
    assert text[at:] == "% 3\n"
    assert differences.name(text, False, "", at) == "a sign that the engine refuses"
    assert differences.name(text, False, "", text.index("2")) is None
    assert refused_at(Language.load("python"), "x = (") == len("x = (")
