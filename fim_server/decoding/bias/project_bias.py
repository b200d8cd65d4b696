"""Mix foretold texts into a middle's next token (`DecodeOptions.project_bias`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from fim_server.decoding.protocols import ProjectBias
    from fim_server.models.backend import Arithmetic, Logits
    from fim_server.tokens.vocabulary import Vocabulary


def with_project_bias(
    logits: Logits,
    bias: ProjectBias,
    middle: bytes,
    healing: bytes,
    vocabulary: Vocabulary,
    arithmetic: Arithmetic,
    counts: Callable[[int, bytes], bool],
) -> Logits:
    """Return the logits [V] of the next token with foretold texts mixed in.

    If healed text is left and a text is foretold, only the tokens that write the healed text keep their logits.

    Args:
        logits: Of the next token, [V].
        bias: Foretells texts.
        middle: Text so far.
        healing: Text to be written again first.
        vocabulary: The model's tokens.
        arithmetic: The backend's.
        counts: As in :func:`project_bias_tokens`.
    """
    weights = project_bias_tokens(bias, middle, healing, vocabulary, len(logits), counts)
    if not weights:
        return logits
    if healing:
        logits = arithmetic.only(logits, vocabulary.towards(healing, len(logits)))
        if arithmetic.is_spent(logits):
            return logits
    probabilities = arithmetic.shares(logits)
    certainty, heaviest = float(probabilities[arithmetic.likeliest(logits)]), max(weights.values())
    shares = {
        token: bias.share(weight, heaviest, certainty, float(probabilities[token])) for token, weight in weights.items()
    }
    return arithmetic.mixed(logits, shares)


def project_bias_tokens(
    bias: ProjectBias,
    middle: bytes,
    healing: bytes,
    vocabulary: Vocabulary,
    size: int,
    counts: Callable[[int, bytes], bool],
) -> dict[int, float]:
    """Return the first tokens of foretold texts, each with the sum of its texts' weights.

    Args:
        bias: Foretells texts.
        middle: Text so far.
        healing: Text to be written again first.
        vocabulary: The model's tokens.
        size: Number of tokens that the model has.
        counts: Whether to count a first token of a text; the text is what follows the middle.
    """
    characters = middle.decode(errors="ignore")
    begun = middle[len(characters.encode()) :]  # bytes of a character of which some tokens are parts
    found: dict[int, float] = {}
    for text, weight in bias(characters):
        known = text.encode()
        if not known.startswith(begun):
            continue
        rest = known[len(begun) :]
        token = first_token(vocabulary, healing + rest, size)
        if token is not None and counts(token, rest):
            found[token] = found.get(token, 0.0) + weight
    return found


def first_token(vocabulary: Vocabulary, text: bytes, size: int) -> int | None:
    """Return the first token that a tokenizer makes of a text; None if it is not one of the model's ``size`` tokens."""
    tokens = vocabulary.encode(text)
    if not tokens or tokens[0] >= size:
        return None
    written = vocabulary.token_bytes(tokens[0])
    return tokens[0] if written and text.startswith(written) else None
