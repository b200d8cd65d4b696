"""YAML against PyYAML, one-sidedly: what that takes, the definition takes, but for one kind of line."""

from __future__ import annotations

import os
import random
import re

import pytest

from fim_server import Language

yaml = pytest.importorskip("yaml")

ROUNDS = 60_000 if os.environ.get("FIM_SERVER_LONG") == "1" else 6_000

PIECES = (
    *("a", "b: ", "- ", "\n", "\n  ", "\n    ", "'c'", '"d"', "[", "]", "{", "}", ", ", ": ", "#e", " #f", "---\n"),
    *("|\n   g", "it's", "!t ", "&h ", "*h", "? ", "'", '"', ">-\n     i\n   j", " ", "k", "http://x:1/?a#b", '"a\nb"'),
)

GOES_ON = re.compile(r"\n[-? ]*[\"'\[\]{}&*!]")
"""A line that may go on with a scalar without quotes, and begins with a quote, a bracket or a property."""


def test_what_pyyaml_takes_is_taken() -> None:
    draw = random.Random(47)
    empty = Language.load("yaml").open("", "")
    taken = 0
    for _ in range(ROUNDS):
        text = "".join(draw.choice(PIECES) for _ in range(draw.randint(1, 7)))
        if GOES_ON.search(text):
            continue
        try:
            list(yaml.parse(text))
        except yaml.YAMLError:
            continue
        taken += 1
        assert empty.check(text).complete, text
    assert taken > ROUNDS / 5


def test_a_cut_changes_no_verdict() -> None:
    draw = random.Random(48)
    language = Language.load("yaml")
    counts = {True: 0, False: 0}
    for _ in range(ROUNDS // 2):
        text = "".join(draw.choice(PIECES) for _ in range(draw.randint(1, 7)))
        whole = language.open("", "").check(text).complete
        start, end = sorted(draw.choices(range(len(text) + 1), k=2))
        assert language.open(text[:start], text[end:]).check(text[start:end]).complete == whole, (text, start, end)
        counts[whole] += 1
    assert min(counts.values()) > ROUNDS / 20
