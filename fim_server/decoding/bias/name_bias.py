"""The likeliest tokens, made likelier or less likely by what they would write (`DecodeOptions.name_bias`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fim_server.decoding.protocols import NameBias
    from fim_server.models.backend import Arithmetic, Logits
    from fim_server.tokens.vocabulary import Vocabulary

LOOKED_AT, LEAST_SHARE = 32, 1e-4
"""Tokens that are asked about, the likeliest, if they have so much of the likeliest one's probability: what comes of
the others is not changed. The fitted weights of two tokens differ by a factor of 200 at most, so that none of them
would be chosen; a doubt (`suggest/ranking/regenerate`) may make the likeliest a thousand times less likely."""


def with_name_bias(
    logits: Logits,
    preference: NameBias,
    middle: bytes,
    healing: bytes,
    vocabulary: Vocabulary,
    arithmetic: Arithmetic,
) -> Logits:
    """The logits [V] of the next token, those of the likeliest changed.

    While something is written again, only tokens that do are left, where any is changed.

    Args:
        logits: Of the next token, [V].
        preference: What is thought of tokens.
        middle: The text so far.
        healing: What is to be written again before anything follows it.
        vocabulary: The model's tokens.
        arithmetic: The backend's.
    """
    asked = logits
    if healing:
        asked = arithmetic.only(logits, vocabulary.towards(healing, len(logits)))
        if arithmetic.is_spent(asked):
            return logits
    likeliest = arithmetic.top(arithmetic.shares(asked), LOOKED_AT)
    tokens = [token for token, share in likeliest if share > LEAST_SHARE * likeliest[0][1]]
    texts = [text_of(vocabulary, token) for token in tokens]
    changes = preference(middle.decode(errors="ignore"), healing.decode(errors="ignore"), texts)
    wanted = {token: change for token, change in zip(tokens, changes, strict=True) if change}
    return arithmetic.shifted(asked, wanted) if wanted else logits


def text_of(vocabulary: Vocabulary, token: int) -> str | None:
    """A token's text; None where its bytes are none, or a part of one only. What ends the middle ends a line."""
    if token in vocabulary.end_token_ids:
        return "\n"
    try:
        return vocabulary.token_bytes(token).decode() or None
    except UnicodeDecodeError:
        return None
