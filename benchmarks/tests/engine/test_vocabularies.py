"""Vocabularies to measure with."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.engine.corpus import Library
from benchmarks.engine.vocabularies import synthetic_tokens


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(Path(ast.__file__).parent)


def test_a_synthetic_vocabulary_is_determined_by_its_text(library: Library) -> None:
    text = library.text(50_000)
    assert len(text) == 50_000
    first, again = synthetic_tokens(text, 3_000), synthetic_tokens(text, 3_000)
    assert first.tokens == again.tokens
    assert first.vocabulary.size == len(first.tokens) == 3_000
    assert (first.name, first.label) == ("synthetic", "synthetic 3k")
    assert b"return" in first.ids
    assert all(bytes([byte]) in first.ids for byte in range(256))


@pytest.mark.parametrize("text", ["", "    return self.café\n", "\x00\ufffd𝒳"])
def test_tokens_of_a_text_are_the_text(text: str) -> None:
    tokens = synthetic_tokens("return self", 300)
    ids = tokens.tokenise(text)
    assert b"".join(tokens.vocabulary.token_bytes(index) for index in ids) == text.encode()
