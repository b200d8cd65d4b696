"""Search of lines of a shape, of equal lines and of the nearest places: each equals the plain way."""

from __future__ import annotations

import random

import pytest

from fim_server.next_edit.analogies import WINDOW, found_at, nearest
from fim_server.next_edit.line_tokens import LONGEST_LINE, Lines, shape_of

PIECES = ["a", "b1", " ", "\t", "1.5", ".", "(", ")", "return", "=", "é", "名", "'", "_", "\x0c", "2x"]


def drawn_lines(pieces: list[str], seed: int) -> list[str]:
    draw = random.Random(seed)
    short = ["".join(draw.choices(pieces, k=draw.randrange(5))) for _ in range(400)]
    return [*short, "a = 1" * LONGEST_LINE, "a = 1", "b = 1.5"]


@pytest.mark.parametrize("pieces", [PIECES, [piece for piece in PIECES if piece.isascii()]], ids=["any", "ASCII"])
def test_lines_of_a_shape_are_found(pieces: list[str]) -> None:
    texts = drawn_lines(pieces, 1)
    lines = Lines("\n".join(texts))
    for shape in {shape_of(text) for text in texts} - {""}:
        assert lines.of_shape(shape) == [number for number, text in enumerate(texts) if shape_of(text) == shape]


def test_equal_lines_are_found() -> None:
    texts = drawn_lines(PIECES, 2)
    lines = Lines("\n".join(texts))
    for text in [*texts, "no such line"]:
        assert lines.same_as(text) == [number for number, other in enumerate(texts) if other == text]


@pytest.mark.parametrize("gap", [1, 500, WINDOW])
def test_the_nearest_places_are_found(gap: int) -> None:
    draw = random.Random(gap)
    text = "".join(draw.choice(["n", "no", " n "]) + "." * draw.randrange(gap) for _ in range(60))
    everywhere = list(found_at(text, "n"))
    for near in (0, len(text) // 3, len(text)):
        for most in (1, 20, 64):
            assert nearest(text, "n", near, most) == sorted(everywhere, key=lambda at: abs(at - near))[:most]
