"""What a model has read, kept from one request to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fim_server.models.backend import PREFILL_CHUNK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.models.backend import Logits
    from fim_server.models.model import FimModel


class Reading:
    """What a model has read so far: its KV cache and the tokens in it, kept from one request to the next.

    While someone types, a suffix-first prompt changes at its end only (design, section 12), so most of what was read
    for the last keystroke holds for this one. Logits after a reused cache differ from those of a fresh one by rounding
    alone (of activations to 8 bits where the weights have 8). One thread at a time.
    """

    def __init__(self, model: FimModel) -> None:
        self._model = model
        self._tokens: list[int] = []
        self._cache: Any = None

    def shared(self, tokens: Sequence[int]) -> int:
        """How many of the first ``tokens`` were read; never all, since the last one's logits are wanted."""
        count = min(len(self._tokens), len(tokens) - 1)
        return next((i for i in range(count) if self._tokens[i] != tokens[i]), count)

    def resume(self, tokens: Sequence[int]) -> int:
        """Keep what was read of the beginning of ``tokens``, forget the rest; returns how many tokens that is."""
        kept = self.shared(tokens)
        surplus = len(self._tokens) - kept
        if self._cache is None or kept == 0:
            self.forget()
            return 0
        if surplus:
            try:
                self._cache.crop(-surplus)
            except (RuntimeError, ValueError):  # a sliding window does not remember what it has left behind
                self.forget()
                return 0
            del self._tokens[kept:]
        return kept

    def forward(self, token_ids: Sequence[int]) -> Logits:
        """:meth:`FimModel.forward` on what was read so far."""
        if self._cache is None:
            self._cache = self._model.new_cache()
        try:
            logits = self._model.forward(token_ids, self._cache)
        except BaseException:
            self.forget()  # nobody knows how much of it the cache has taken in
            raise
        self._tokens.extend(token_ids)
        return logits

    def rewind(self, n_tokens: int) -> None:
        """Take back the last tokens that were read; they are read again where the cache cannot be cropped."""
        if n_tokens == 0:
            return
        kept = self._tokens[: len(self._tokens) - n_tokens]
        try:
            self._cache.crop(-n_tokens)
            self._tokens = kept
        except (RuntimeError, ValueError):  # as in resume
            self.forget()
            for begin in range(0, len(kept), PREFILL_CHUNK):
                self.forward(kept[begin : begin + PREFILL_CHUNK])

    def forget(self) -> None:
        """Start again with nothing read."""
        self._tokens, self._cache = [], None


class Readings:
    """What a model has read lately: several beginnings, because a bracket typed or overtyped changes the suffix.

    As :class:`Reading`; one thread at a time.
    """

    def __init__(self, model: FimModel, most: int = 4) -> None:
        self._model = model
        self._most = max(1, most)
        self._known: list[Reading] = []

    def nearest(self, tokens: Sequence[int]) -> Reading:
        """The reading that shares the longest beginning with a prompt.

        Where that is less than half of the prompt, a new one takes the place of the one that was used least recently,
        so that none is lost to a look at another file.
        """
        best = max(self._known, key=lambda reading: reading.shared(tokens), default=None)
        if best is None or 2 * best.shared(tokens) < len(tokens):
            if len(self._known) >= self._most:
                self._known.pop(0)
            best = Reading(self._model)
        else:
            self._known.remove(best)
        self._known.append(best)
        return best
