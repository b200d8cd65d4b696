"""Texts that a language takes, cut anywhere: what stood there can be written again, character by character."""

from __future__ import annotations

import random

from fim_server import Language


def write_again(language: Language, text: str, cuts: int) -> None:
    """Asserts of some random cuts of a text that its middle is viable after each character, and complete at its end."""
    rng = random.Random(text)
    for _ in range(cuts):
        start, end = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        session = language.open(text[:start], text[end:])
        assert session.guarantee == "exact", (text[:start], text[end:])
        state = session.start()
        for character in text[start:end]:
            assert state.advance(character) == len(character.encode()), (text, start, end)
        assert state.is_complete()
