"""Raise or lower the likeliest tokens by the text that they would write (`DecodeOptions.name_bias`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fim_server.decoding.constants import DECODING

if TYPE_CHECKING:
    from fim_server.decoding.protocols import NameBias
    from fim_server.models.backend import Arithmetic, Logits
    from fim_server.tokens.vocabulary import Vocabulary


def with_name_bias(
    logits: Logits,
    bias: NameBias,
    middle: bytes,
    healing: bytes,
    vocabulary: Vocabulary,
    arithmetic: Arithmetic,
) -> Logits:
    """Return the logits [V] of the next token with those of the likeliest tokens changed.

    If healed text is left and a token changes, only the tokens that write the healed text keep their logits.

    Args:
        logits: Of the next token, [V].
        bias: Rates tokens.
        middle: Text so far.
        healing: Text to be written again first.
        vocabulary: The model's tokens.
        arithmetic: The backend's.
    """
    asked = logits
    if healing:
        asked = arithmetic.only(logits, vocabulary.towards(healing, len(logits)))
        if arithmetic.is_spent(asked):
            return logits
    likeliest = arithmetic.top(arithmetic.shares(asked), DECODING.rated_tokens)
    tokens = [token for token, share in likeliest if share > DECODING.rated_share * likeliest[0][1]]
    texts = [text_of(vocabulary, token) for token in tokens]
    changes = bias(middle.decode(errors="ignore"), healing.decode(errors="ignore"), texts)
    wanted = {token: change for token, change in zip(tokens, changes, strict=True) if change}
    return arithmetic.shifted(asked, wanted) if wanted else logits


def text_of(vocabulary: Vocabulary, token: int) -> str | None:
    """Return a token's text, a line break for an end token; None where its bytes are no whole characters."""
    if token in vocabulary.end_token_ids:
        return "\n"
    try:
        return vocabulary.token_bytes(token).decode() or None
    except UnicodeDecodeError:
        return None
