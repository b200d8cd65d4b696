"""Models of a few words: after each text, the probabilities of the tokens that may come next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from fim_server import Language, Vocabulary
from fim_server.decoding.ending.rest_of_line import RestOfLine
from fim_server.decoding.ending.right_closer import RightCloser
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import Completion
from fim_server.decoding.strategies.alternatives import alternatives
from fim_server.text.document import Split
from support.models.scripted_models import network

Rule = Callable[[bytes], dict[str, float]]
Steps = dict[bytes, dict[str, float]]


def texts_of(
    language: Language,
    vocabulary: Vocabulary,
    steps: Steps | Rule,
    split: tuple[str, str],
    count: int = 1,
    **options: Any,
) -> list[Completion]:
    """Return the completions of a model with listed probabilities of tokens after each text.

    The empty token is the end.
    """
    shares = (lambda so_far: steps.get(so_far, {"#": 1.0})) if isinstance(steps, dict) else steps

    def script(tokens: list[int]) -> torch.Tensor:
        so_far = b"".join(vocabulary.token_bytes(token) for token in tokens)
        logits = torch.full((vocabulary.size,), -60.0)
        for text, share in shares(so_far).items():
            logits[token_of(vocabulary, text)] = torch.tensor(share).log()
        return logits

    left, right = split
    session = language.open(left, right)
    given = {"max_new_tokens": 8, "single_line": True, "scored": True, **options}
    healing = given.pop("healing", "")
    ends = {"right_closer": RightCloser.of(session, left, right), "rest_of_line": RestOfLine.of(session, right)}
    asked = DecodeOptions(**{**ends, **given})
    return list(alternatives(network(vocabulary, script), session, Split(*split), count, asked, healing=healing))


def token_of(vocabulary: Vocabulary, text: str) -> int:
    token = vocabulary.token_at(text.encode()) if text else vocabulary.end_token_ids[0]
    assert token is not None
    return token
