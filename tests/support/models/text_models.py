"""Models that write given texts: the embedded tokenizer, and logits that are a function of the text so far.

The engine judges what they propose as it judges any model's tokens. Where it refuses a given text, noise decides.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fim_server.models.masking import word_count
from fim_server.models.model import FimModel, assemble
from fim_server.models.numpy_logits import NumpyArithmetic
from fim_server.models.prompt import find_format
from fim_server.models.source import locate
from fim_server.models.tokenizer import read_tokenizer
from fim_server.tokens.formats import Slot

Row = NDArray[np.float32]
Wanted = Sequence[tuple[bytes, bytes]]
"""Texts, the likeliest first, each with what stands before it."""

WINDOW = 4096
LOOKED_AT = 400
"""Bytes before the cursor that a model knows of."""
HEALED = re.compile(rb"(?: ?\w+| ?[^\w\s]+|\s+)\Z")
"""The end of the text before the cursor that token healing may have the model write again."""
LIKELY, PER_RANK = 30.0, 2.0
"""Logits of a text's next token, and by how much less likely each text is than the one before it that goes on there."""
PART, PER_BYTE = 12.0, 0.1
"""Logits of parts of that token, for where the engine refuses it, and how they grow with their length."""
END = 4.0
"""The end token's logit where no wanted text goes on: as high as that of the likeliest token of noise."""
ODD, ODD_MORE = (b"\t", b"\n", b"\r", b" ", b"(", b")", b"]", b"}", b'"', b"'", b":", b";", b","), 2.5
"""Tokens that begin with these bytes are likelier in noise: they break texts most often."""
ROWS = 64


def rest_of(written: bytes, before: bytes, text: bytes) -> bytes | None:
    """Return the rest of ``text``, which stands after ``before``; None where ``written`` does not end on the way there.

    >>> rest_of(b"x = sum(n fo", b"x = sum(n ", b"for n in ns")
    b'r n in ns'
    """
    whole = before + text
    healed = HEALED.search(before)
    least = healed.start() if healed else 0
    for length in range(len(whole), max(least, 1) - 1, -1):
        if written.endswith(whole[:length]):
            return whole[length:]
    return None


@dataclass
class Written:
    """Texts that a model is to write, and the seed of what it writes elsewhere. May be changed between requests.

    Attributes:
        wanted: The texts.
        seed: The noise's; None for none: the model ends where no text goes on.
    """

    wanted: Wanted = ()
    seed: int | None = None

    def rests(self, written: bytes) -> list[bytes | None]:
        """Return the rest of each text."""
        return [rest_of(written, before, text) for before, text in self.wanted]


class TextCache(list[int]):
    """The tokens that were read."""

    def crop(self, length: int, /) -> None:
        """Forget the last ``-length`` tokens."""
        del self[length:]


class TextBackend:
    """A backend (:class:`fim_server.models.backend.Backend`) that computes nothing."""

    name, device, window, threads = "onnx", "cpu", WINDOW, 1
    arithmetic = NumpyArithmetic()

    def __init__(self, size: int, texts: Written) -> None:
        self.size, self.texts = size, texts
        self.bytes_of: Callable[[int], bytes] = lambda token: b""
        self.prefix_token = self.end_token = 0
        self._ids: dict[bytes, int] = {}
        self._longest = 0
        self._noise: NDArray[np.float32] = np.zeros((ROWS, size), dtype=np.float32)

    def learn(self, model: FimModel) -> None:
        """Take over the model's tokens."""
        vocabulary = model.vocabulary
        self.bytes_of = vocabulary.token_bytes
        pieces = model.format.pieces
        before = pieces[pieces.index(Slot.PREFIX) - 1]
        assert isinstance(before, int)
        assert pieces.index(Slot.PREFIX) > pieces.index(Slot.SUFFIX), "the prefix is read last"
        self.prefix_token, self.end_token = before, vocabulary.end_token_ids[0]
        self._ids = {text: token for token in range(self.size) if (text := vocabulary.token_bytes(token))}
        self._longest = max(map(len, self._ids))
        self._noise = np.random.default_rng(0).normal(size=(ROWS, self.size)).astype(np.float32)
        odd = [token for text, token in self._ids.items() if text.startswith(ODD)]
        self._noise[:, odd] += ODD_MORE * np.random.default_rng(1).random((ROWS, len(odd)), dtype=np.float32)

    def new_cache(self, room: int | None = None, /) -> TextCache:
        """An empty cache."""
        return TextCache()

    def forward(self, token_ids: Sequence[int], cache: TextCache, /) -> Row:
        """The logits after the text so far."""
        cache.extend(token_ids)
        start = len(cache) - cache[::-1].index(self.prefix_token) if self.prefix_token in cache else 0
        written = b"".join(map(self.bytes_of, cache[max(start, len(cache) - LOOKED_AT) :]))
        return self._row(written)

    def _row(self, written: bytes) -> Row:
        seed = self.texts.seed
        if seed is None:
            row = np.zeros(self.size, dtype=np.float32)
        else:
            row = self._noise[zlib.crc32(written[-32:], seed) % ROWS].copy()
        row[self.end_token] = END
        going_on = [rest for rest in self.texts.rests(written) if rest is not None]
        for rank, rest in reversed(list(enumerate(going_on))):
            level = LIKELY - PER_RANK * rank
            if not rest:
                row[self.end_token] = level
            starts = (self._ids.get(rest[:length]) for length in range(1, min(len(rest), self._longest) + 1))
            tokens = [token for token in starts if token is not None]
            for length, token in enumerate(tokens, 1):
                row[token] = max(row[token], PART + PER_BYTE * length)
            if tokens:
                row[tokens[-1]] = max(row[tokens[-1]], level)
        return row

    def mask_words(self, size: int, /) -> NDArray[np.uint32]:
        """Return the words of a mask, as :meth:`fim_server.models.backend.Backend.mask_words`."""
        return np.zeros(word_count(size), dtype=np.uint32)


def text_model(texts: Written, name: str = "texts") -> FimModel:
    """A model that writes some texts, in every language."""
    tokenizer: Any = read_tokenizer(Path(locate("embedded")), name)
    bound = replace(find_format(tokenizer, name), languages=None)
    backend = TextBackend(1 + max(tokenizer.get_vocab().values()), texts)
    model = assemble(name, backend, tokenizer, bound)
    backend.learn(model)
    return model
