"""Prompts for endpoints that take texts, and the tokens of the texts that they report.

If the model's own tokens are known, its prompt is put together here, in the format of its training, and a reported
text is exactly one token. If not, the endpoint's template puts the prompt together, and a reported text stands for the
longest token of another vocabulary that it begins with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fim_server.models.backend import LostError
from fim_server.models.remote.rows import MOST_LOG_PROBABILITY
from fim_server.tokens.formats import known_formats
from fim_server.tokens.tokenizer_file import END_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fim_server.models.prompt import BoundFormat
    from fim_server.tokens.vocabulary import Vocabulary

LOST = "\N{REPLACEMENT CHARACTER}".encode()
"""Replacement that an endpoint reports for bytes that are no characters by themselves."""


class Prompts(Protocol):
    """Form of a request to continue some tokens."""

    def fields(self, prefix: Sequence[int]) -> dict[str, str | bool]:
        """Return the request's fields for a prefix."""


class Sides:
    """Texts on both sides of the cursor, or the left one alone, for the endpoint's template."""

    def __init__(self, bound: BoundFormat, vocabulary: Vocabulary, sees_suffix: bool) -> None:
        """Make the form. ``bound``: a format whose prompts are cut apart again at its control tokens."""
        self._bound, self._vocabulary, self.sees_suffix = bound, vocabulary, sees_suffix

    def fields(self, prefix: Sequence[int]) -> dict[str, str | bool]:
        left, right = self.texts(prefix)
        return {"prompt": left, "suffix": right} if self.sees_suffix else {"prompt": left}

    def texts(self, prefix: Sequence[int]) -> tuple[str, str]:
        """Return the texts left and right of the end of a prompt and its middle so far."""
        prefix_mark, suffix_mark = self._bound.token("<|fim_prefix|>"), self._bound.token("<|fim_suffix|>")
        parts: dict[int, list[int]] = {prefix_mark: [], suffix_mark: []}
        part: list[int] = []
        for token in prefix:
            if token in parts:
                part = parts[token]
            elif token in self._bound.control_ids:
                part = parts[prefix_mark]  # behind the prompt, what was written goes on with the prefix
            else:
                part.append(token)
        left, right = (
            b"".join(self._vocabulary.token_bytes(token) for token in parts[mark]).decode(errors="ignore")
            for mark in (prefix_mark, suffix_mark)
        )
        return left, right


class Whole:
    """Prompt as the model reads it, with the names of its control tokens, which the endpoint encodes as these tokens.

    The endpoint also does so for such names in a user's code; a text cannot tell them apart.
    """

    def __init__(self, bound: BoundFormat, vocabulary: Vocabulary, begin: int | None, raw: bool) -> None:
        """Make the form.

        ``begin``: token that the endpoint puts before every prompt; ``raw``: whether to set Ollama's field.
        """
        self._vocabulary, self._begin, self._raw = vocabulary, begin, raw
        self._names = {
            number: str(bound.tokenizer.convert_ids_to_tokens(number)).encode() for number in bound.control_ids
        }

    def fields(self, prefix: Sequence[int]) -> dict[str, str | bool]:
        if prefix and prefix[0] == self._begin:
            prefix = prefix[1:]
        text = b"".join(self._names.get(token) or self._vocabulary.token_bytes(token) for token in prefix)
        asked: dict[str, str | bool] = {"prompt": text.decode(errors="ignore")}
        return {**asked, "raw": True} if self._raw else asked


class Pieces:
    """Map of reported texts to tokens.

    Attributes:
        end: The token that ends a middle.
    """

    def __init__(self, vocabulary: Vocabulary, bound: BoundFormat, own: bool) -> None:
        """Make the map. ``own``: whether vocabulary and format are the model's own."""
        self._vocabulary, self._own = vocabulary, own
        self.end = min(vocabulary.end_token_ids)
        self._controls: dict[bytes, int | None] = {}
        if own:  # a text that is no other token is none
            for number in vocabulary.end_token_ids:
                self._enter([bound.tokenizer.convert_ids_to_tokens(number)], number)
        else:
            for row in known_formats():
                others = row.repository.tokens if row.repository else []
                self._enter((*row.tokens, *others), None)
            self._enter((name for row in known_formats() for name in row.stop), self.end)
            self._enter(END_NAMES, self.end)

    def _enter(self, names: Iterable[str | None], token: int | None) -> None:
        self._controls.update((name.encode(), token) for name in names if name)

    def token(self, text: bytes) -> int | None:
        """Return the token of a reported text; None for an unknown one, and for one that a middle cannot contain."""
        if not text:
            return self.end
        if text in self._controls:
            return self._controls[text]
        found = self.first(text)
        if not self._own:
            return found
        return found if found is not None and self._vocabulary.token_bytes(found) == text else None

    def first(self, text: bytes) -> int | None:
        """Return the longest token that a text begins with."""
        return self._vocabulary.token_at(text)

    def tokens(self, reported: Mapping[bytes, float]) -> dict[int, float]:
        """Return log probabilities by token, without those of incomplete characters. Raises LostError."""
        from math import exp, log

        if not all(share <= MOST_LOG_PROBABILITY for share in reported.values()):  # NaN is invalid too
            raise LostError("the endpoint sent an invalid log probability")
        shares: dict[int, float] = {}
        for text, share in reported.items():
            token = None if LOST in text else self.token(text)
            if token is not None:
                shares[token] = shares.get(token, 0.0) + exp(share)
        return {token: log(min(1.0, share)) if share > 0 else -1e3 for token, share in shares.items()}
