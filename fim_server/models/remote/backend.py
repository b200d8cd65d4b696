"""Backend of a model behind an endpoint: it reads one stream ahead, and opens a new one where decoding leaves it.

Only tokens are kept here; the endpoint keeps the keys and values of its last prompts. Rows come from the open stream as
long as decoding takes the streamed tokens. The stream has the likeliest text, and decoding never leaves nine of ten
rows of it (docs/results/remote.md). The end of a run closes it.
"""

from __future__ import annotations

import random
import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fim_server.errors import StoppedError
from fim_server.models.backend import LostError, require_crop, require_tokens
from fim_server.models.masking import word_count
from fim_server.models.remote.client import TRIES, SilentError
from fim_server.models.remote.dialects import HeldBack, LlamaCpp
from fim_server.models.remote.rows import RemoteArithmetic, RemoteRow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from fim_server.models.remote.client import Client
    from fim_server.models.remote.dialects import Dialect
    from fim_server.models.remote.rows import Reported
    from fim_server.models.remote.streams import Source

NAME = "remote"

MEASURED_TOKENS = 256

TEXT_SECONDS = 300.0
"""Longest time of all answers for one text, where the text has no deadline."""

STREAMED_TOKENS = 64
"""Most tokens of a stream: a line's, and most of a block's."""


def nothing() -> None:
    """Wait without a limit."""


class RemoteBackend:
    """Model of an endpoint.

    Attributes:
        size: Length of a row, V.
        window: Context window in tokens, as far as the endpoint reports it.
        dialect: Requests and answers.
    """

    name = NAME
    threads = 0
    arithmetic = RemoteArithmetic()

    def __init__(self, client: Client, dialect: Dialect, size: int, window: int) -> None:
        self.client, self.dialect, self.size, self.window = client, dialect, size, window

    @property
    def device(self) -> str:
        return f"{self.client.base} ({self.dialect.name})"

    @property
    def is_exact(self) -> bool:
        return self.dialect.exact

    def new_cache(self, room: int | None = None) -> RemoteCache:
        return RemoteCache(self)

    def forward(self, token_ids: Sequence[int], cache: RemoteCache) -> RemoteRow:
        """Read on; the endpoint is asked when decoding uses the row."""
        return cache.forward(token_ids)

    def reading_speed(self) -> float:
        """Measure the speed with a random prompt, which the endpoint cannot have cached."""
        draw = random.Random()
        count = min(MEASURED_TOKENS, self.window // 2)
        cache = self.new_cache()
        row = cache.forward([draw.randrange(self.size) for _ in range(count)])
        started = time.perf_counter()
        self.arithmetic.likeliest(row)
        seconds = time.perf_counter() - started
        cache.rest()
        return count / max(seconds, 1e-3)

    def mask_words(self, size: int) -> NDArray[np.uint32]:
        return np.zeros(word_count(size), dtype=np.uint32)


class RemoteCache:
    """Tokens that the model is to have read, and the stream behind them. One thread at a time.

    Attributes:
        patience: Raises where the caller no longer needs the row.
    """

    def __init__(self, backend: RemoteBackend) -> None:
        self._backend, self._tokens = backend, list[int]()
        self._source: Source | None = None
        self._known: tuple[Sequence[int], int] = (), 0
        """Prefix of the last row, and the number of tokens reported there."""
        self._until: float | None = None
        """Time limit of the current text; None before its first row."""
        self.patience: Callable[[], None] = nothing

    def forward(self, token_ids: Sequence[int]) -> RemoteRow:
        """Read on. Raises RuntimeError for invalid tokens, and where there is no room in the window."""
        size = self._backend.size
        require_tokens(token_ids, size)
        if len(self._tokens) + len(token_ids) > self._backend.window:
            raise RuntimeError(f"{len(self._tokens) + len(token_ids)} tokens are above the window")
        self._tokens.extend(token_ids)
        prefix = tuple(self._tokens)
        return RemoteRow(size, partial(self._reported, prefix), partial(self._likeliest, prefix))

    def crop(self, length: int) -> None:
        """Take back the last ``-length`` tokens. Raises ValueError where there are fewer."""
        require_crop(length, len(self._tokens))
        del self._tokens[length:]

    def read_now(self) -> bool:
        try:
            self._backend.dialect.read(self._tokens, self._wait)
        except LostError:
            return False
        return True

    def rest(self) -> None:
        """Close the stream, since the text has ended."""
        self._leave()
        self._until = None

    def _wait(self) -> None:
        """Raise where the caller no longer needs a row, or the endpoint has taken too long for this text."""
        self.patience()
        self._check_time()

    def _check_time(self) -> None:
        """Raise SilentError where the endpoint has taken too long for this text."""
        now = time.monotonic()
        if self._until is None:
            self._until = now + TEXT_SECONDS
        if now >= self._until:
            raise SilentError(f"the endpoint has taken more than {TEXT_SECONDS:.0f} s for one text")

    def _leave(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            source.close()

    def _reported(self, prefix: Sequence[int]) -> Reported:
        """Return the row after a prefix. Raises LostError without the key in its message."""
        try:
            self._check_time()
            reported = self._streamed(prefix)
        except LostError as error:
            raise type(error)(self._backend.client.message_of(error)) from None
        self._known = prefix, len(reported)
        return reported

    def _streamed(self, prefix: Sequence[int]) -> Reported:
        """Return the row from the open stream or from a new one."""
        dialect = self._backend.dialect
        for _ in range(TRIES):
            try:
                if self._source is not None:
                    reported = self._source.reported(prefix, self._wait)
                    if reported is not None:
                        return reported
                    self._leave()
                self._source = dialect.open(prefix, self._count(prefix), self._wait)
                reported = self._source.reported(prefix, self._wait)
                if reported is not None:
                    return reported
                self._leave()  # it has ended before its first token
                if isinstance(dialect, LlamaCpp):
                    return dialect.one(prefix, self._wait)
            except HeldBack:
                self._leave()
                assert isinstance(dialect, LlamaCpp), "no other dialect holds tokens back"
                return dialect.one(prefix, self._wait)
            except (LostError, StoppedError):
                self._leave()
                raise
        raise LostError(f"{self._backend.client.base}: its streams end before their first token")

    def _likeliest(self, prefix: Sequence[int], tokens: NDArray[np.intp]) -> tuple[int, float] | None:
        self._leave()
        dialect = self._backend.dialect
        if not dialect.exact and self._known[0] == prefix and self._known[1] > 1:
            return None  # the endpoint reports nothing about other tokens
        try:
            return dialect.likeliest(prefix, tokens.tolist(), self._wait)
        except LostError as error:
            raise type(error)(self._backend.client.message_of(error)) from None

    def _count(self, prefix: Sequence[int]) -> int:
        return max(1, min(STREAMED_TOKENS, self._backend.window - len(prefix)))
