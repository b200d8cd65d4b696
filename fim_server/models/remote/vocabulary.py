"""Tokens of an endpoint's model over HTTP: their bytes, and texts as it encodes them."""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import TYPE_CHECKING

from fim_server.errors import ModelError, VocabularyError
from fim_server.models.backend import LostError
from fim_server.models.remote.client import MOST_VOCABULARY_BYTES
from fim_server.models.remote.dialects import octets
from fim_server.tokens.formats import known_formats
from fim_server.tokens.tokenizer_file import check_lengths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.models.remote.client import Client

KNOWN_TEXTS = 4096
"""Texts whose tokens are cached: prompts are encoded in pieces, and nearly all of them stay the same."""

MOST_TOKENS = 1 << 20

LOOKS_SPECIAL = re.compile(rb"\A(?:<[^<>\s]{1,60}>|\[[A-Z_/]{2,40}\]|\xef\xbd\x9c.{0,60})\Z", re.DOTALL)
"""Pattern of possible control tokens; the endpoint is asked about each of them."""

MOST_ASKED = 1024

ASKING_SECONDS = 60.0
"""Longest time for an endpoint to answer about all tokens."""

TOKENS_BESIDES = 16
"""Most tokens of a text beyond one for each of its bytes."""

ENDS = ("<|endoftext|>", "</s>", "<eos>", "<|end_of_text|>", "<|im_end|>", "<EOT>")
"""Names of tokens that end a text, where the endpoint does not report them."""


class LlamaCppTokenizer:
    """Tokenizer of llama.cpp's server, asked over HTTP, where its model's file cannot be read here.

    One answer has the bytes of all tokens: the log probabilities of the whole vocabulary after one token.
    """

    def __init__(self, client: Client) -> None:
        """Ask for the vocabulary. Raises ModelError where the endpoint does not report it."""
        self._client = client
        answer = client.post(
            "/completion",
            {"prompt": "a", "n_predict": 1, "n_probs": MOST_TOKENS, "temperature": 0, "stream": False},
            most=MOST_VOCABULARY_BYTES,
        )
        try:
            entries = answer["completion_probabilities"][0]["top_logprobs"]
            found = {int(entry["id"]): octets(entry.get("bytes")) for entry in entries}
        except (LookupError, TypeError, ValueError, ArithmeticError):
            raise ModelError(
                f"{client.base}: does not report its vocabulary; --tokenizer names a file with it"
            ) from None
        if not found or min(found) < 0 or max(found) >= MOST_TOKENS:
            raise ModelError(f"{client.base}: reports no vocabulary")
        try:
            check_lengths([len(text) for text in found.values()])
        except VocabularyError as error:
            raise ModelError(f"{client.base}: its vocabulary is too large ({error})") from None
        self.size = max(found) + 1
        self._bytes = [found.get(number) for number in range(self.size)]
        self._encode = lru_cache(KNOWN_TEXTS)(self._ask)
        self._names = self._control_names()
        self._numbers = {name: number for number, name in self._names.items()}

    def _control_names(self) -> dict[int, str]:
        """Return control tokens by id: names that encode as one token only if the endpoint looks for special tokens."""
        known = dict.fromkeys([*(name for row in known_formats() for name in row.tokens), *ENDS])
        looks = (text.decode(errors="replace") for text in self._bytes if text and LOOKS_SPECIAL.match(text))
        names = {}
        until = time.monotonic() + ASKING_SECONDS
        for name in list(dict.fromkeys([*known, *looks]))[:MOST_ASKED]:
            if time.monotonic() > until:
                raise ModelError(
                    f"{self._client.base}: encodes texts too slowly; --tokenizer names a file with its tokens"
                )
            ids = self._ask(name, parse_special=True)
            if len(ids) == 1 and (name in known or len(self._ask(name)) > 1):
                names[ids[0]] = name
        return names

    def _ask(self, text: str, parse_special: bool = False) -> tuple[int, ...]:
        answer = self._client.post("/tokenize", {"content": text, "add_special": False, "parse_special": parse_special})
        try:
            ids = tuple(int(number) for number in answer["tokens"])
        except (LookupError, TypeError, ValueError, ArithmeticError):
            raise LostError(f"{self._client.base}: does not encode texts") from None
        if len(ids) > len(text.encode()) + TOKENS_BESIDES or not all(0 <= number < self.size for number in ids):
            raise LostError(f"{self._client.base}: encodes a text as tokens unknown to its model")
        return ids

    def tokens(self) -> list[bytes | None]:
        """Return each token's bytes; None for control tokens."""
        return [None if number in self._names else text or None for number, text in enumerate(self._bytes)]

    def convert_tokens_to_ids(self, token: str) -> int | None:
        """Return the id of a control token; None for other names."""
        return self._numbers.get(token)

    def convert_ids_to_tokens(self, number: int) -> str | None:
        """Return the control token of an id; None for other ids."""
        return self._names.get(number)

    def encode(self, text: str, *, add_special_tokens: bool, split_special_tokens: bool) -> list[int]:
        return list(self._encode(text) if split_special_tokens else self._ask(text, parse_special=True))

    def ids(self, data: bytes) -> Sequence[int]:
        return self._encode(data.decode())
