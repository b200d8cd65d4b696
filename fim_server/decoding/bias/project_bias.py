"""What is known besides the model of a middle's next token (`DecodeOptions.project_bias`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from fim_server.decoding.protocols import ProjectBias
    from fim_server.tokens.vocabulary import Vocabulary


def project_bias_tokens(
    advice: ProjectBias,
    middle: bytes,
    healing: bytes,
    vocabulary: Vocabulary,
    size: int,
    counts: Callable[[int, bytes], bool],
) -> dict[int, float]:
    """The tokens that foretold texts begin with, and the sums of their weights.

    Args:
        advice: What foretells.
        middle: The text so far.
        healing: What is to be written again before anything follows it.
        vocabulary: The model's tokens.
        size: How many of them the model knows.
        counts: Whether a token counts that begins with a text; the text is what follows the middle.
    """
    characters = middle.decode(errors="ignore")
    begun = middle[len(characters.encode()) :]  # the bytes of a character that some tokens are parts of
    found: dict[int, float] = {}
    for text, weight in advice(characters):
        known = text.encode()
        if not known.startswith(begun):
            continue
        rest = known[len(begun) :]
        token = first_token(vocabulary, healing + rest, size)
        if token is not None and counts(token, rest):
            found[token] = found.get(token, 0.0) + weight
    return found


def first_token(vocabulary: Vocabulary, text: bytes, size: int) -> int | None:
    """The token that a tokenizer writes first of a text, where the model has ``size`` tokens."""
    tokens = vocabulary.encode(text)
    if not tokens or tokens[0] >= size:
        return None
    written = vocabulary.token_bytes(tokens[0])
    return tokens[0] if written and text.startswith(written) else None
