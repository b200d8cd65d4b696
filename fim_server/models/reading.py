"""What a model has read, kept from one request to the next."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeVar

from fim_server.errors import StoppedError
from fim_server.language.stop import heed
from fim_server.models.backend import PREFILL_CHUNK, AskedCache, RestingCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fim_server.models.backend import Logits
    from fim_server.models.model import FimModel

T = TypeVar("T")

ROOM_STEP = 64
"""Tokens in steps of which a cache's room is sized, so that one that is a little longer is none of its own."""

MOST_READINGS, KEPT_TOKENS = 4, 2048
"""How many readings are kept, and for how many tokens together: a runtime takes the memory of a reading's whole room at
once (46 kB a token for SmolLM2-135M, so 94 MB at most). Two are kept in any case."""

LEAST_SHARED = 16
"""Tokens of a prompt's beginning for which a reading is gone on from, whatever it loses: its rest is then most often
what the same place was before an edit."""


class Reading:
    """What a model has read so far: its KV cache and the tokens in it, kept from one request to the next.

    While someone types, a suffix-first prompt changes at its end only (design, section 12), so most of what was read
    for the last keystroke holds for this one. A prompt whose reading was interrupted between two passes is kept as far
    as it was read. Logits after a reused cache differ from those of a fresh one by rounding alone (of activations to 8
    bits where the weights have 8), if at all (:attr:`.backend.RowsBackend.gives_rows`). One thread at a time.
    """

    def __init__(self, model: FimModel, room: int | None = None) -> None:
        """``room``: the tokens that it will hold at most; None is the model's window."""
        self._model = model
        self.room = room
        self._tokens: list[int] = []
        self._cache: Any = None
        self.crops = True
        """Whether the cache could be cropped whenever that was tried."""
        self.patience: Callable[[], None] = heed

    def __len__(self) -> int:
        """The number of tokens read."""
        return len(self._tokens)

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
        return self._pass(token_ids, lambda cache: self._model.forward(token_ids, cache))

    def forward_rows(self, token_ids: Sequence[int], rows: int) -> Sequence[Logits]:
        """:meth:`FimModel.forward_rows` on what was read so far."""
        return self._pass(token_ids, lambda cache: self._model.forward_rows(token_ids, cache, rows))

    def _pass(self, token_ids: Sequence[int], forward: Callable[[Any], T]) -> T:
        if self._cache is None:
            self._cache = self._model.new_cache(self.room)
            self.wait_with(self.patience)
        try:
            logits = forward(self._cache)
        except StoppedError:
            raise  # the cache is as it was
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
            self.crops = False
            self.forget()
            for part in passes(kept, 0, PREFILL_CHUNK):
                self.forward(part)

    def wait_with(self, patience: Callable[[], None]) -> None:
        """Have a model that is waited for look by ``patience`` whether it still is: that raises where it is not."""
        self.patience = patience
        if isinstance(self._cache, RestingCache):
            self._cache.patience = patience

    def rest(self) -> None:
        """Have the model do nothing more ahead."""
        if isinstance(self._cache, RestingCache):
            self._cache.rest()

    @property
    def reads_late(self) -> bool:
        """Whether its model reads when a row is wanted, so that nothing of what it was given may have been read."""
        return isinstance(self._cache, AskedCache)

    def read_now(self) -> bool:
        """Have a model that reads when a row is wanted read now, for nobody; whether it has, as any other model.

        Raises what is waited with. What was not read is forgotten.
        """
        if not isinstance(self._cache, AskedCache):
            return True
        has_read = False
        try:
            has_read = self._cache.read_now()
        finally:
            if not has_read:
                self.forget()
        return has_read

    def forget(self) -> None:
        """Start again with nothing read."""
        self.rest()
        self._tokens, self._cache = [], None


class Readings:
    """What a model has read lately: several beginnings, because a bracket typed or overtyped changes the suffix.

    As :class:`Reading`. Safe to use from several threads, where each uses a reading that it has taken until it gives it
    back (:class:`Lent`).
    """

    def __init__(self, model: FimModel, most: int = MOST_READINGS) -> None:
        self._model = model
        self._most = max(1, most)
        self._lock = threading.Lock()
        self._known: list[Reading] = []
        """Those that nobody uses."""
        self.room = 0
        """The tokens for which a reading is made at least, so that a longer request later can go on from it."""

    def shared(self, tokens: Sequence[int]) -> int:
        """How many of the first ``tokens`` the reading has that has most of them."""
        with self._lock:
            return max((reading.shared(tokens) for reading in self._known), default=0)

    def nearest(self, tokens: Sequence[int], room: int | None = None) -> Reading:
        """The reading to go on from with a prompt, where one thread uses them all; see :meth:`take`."""
        reading = self.take(tokens, room)
        self.give_back(reading)
        return reading

    def take(self, tokens: Sequence[int], room: int | None = None) -> Reading:
        """The reading to go on from with a prompt, which shares the longest beginning with it, for the caller alone.

        ``room``: the tokens that it has to hold, the prompt's and what is written after it; None is the model's window.
        Where a reading would be lost for little, a new one takes the place of the one that was used least recently:
        so none is lost to a look at another file, and one that was interrupted early is gone on from all the same.
        """
        window = self._model.window
        with self._lock:
            wanted = window if room is None else min(window, steps_of_room(max(room, self.room)))
            self._known = [known for known in self._known if fits(known, window if room is None else room, window)]
            best = max(self._known, key=lambda reading: reading.shared(tokens), default=None)
            if best is None or not is_worth_it(best, tokens):
                self._keep(self._most_with(wanted) - 1)
                best = Reading(self._model, wanted)
            else:
                self._known.remove(best)
        return best

    def give_back(self, reading: Reading) -> None:
        """Let others use a reading that was taken."""
        with self._lock:
            self._known.append(reading)
            self._keep(self._most_with(self._model.window if reading.room is None else reading.room))

    def clear(self) -> None:
        """Forget what nobody uses."""
        with self._lock:
            self._known.clear()

    def _most_with(self, room: int) -> int:
        """How many readings are kept, one with room for so many tokens among them."""
        return min(self._most, max(2, KEPT_TOKENS // max(1, room)))

    def _keep(self, most: int) -> None:
        """Forget those used least recently but for so many."""
        del self._known[: max(0, len(self._known) - most)]


class Lent:
    """Readings that several threads share, as one of them sees them: it has at most one of them at a time."""

    def __init__(self, readings: Readings) -> None:
        self._readings = readings
        self._taken: Reading | None = None

    @property
    def room(self) -> int:
        """:attr:`Readings.room`."""
        return self._readings.room

    @room.setter
    def room(self, tokens: int) -> None:
        self._readings.room = tokens

    def shared(self, tokens: Sequence[int]) -> int:
        """How many of the first ``tokens`` the reading has that has most of them."""
        mine = 0 if self._taken is None else self._taken.shared(tokens)
        return max(mine, self._readings.shared(tokens))

    def nearest(self, tokens: Sequence[int], room: int | None = None) -> Reading:
        """The reading to go on from with a prompt, which nobody else uses until the next one, or :meth:`give_back`."""
        self.give_back()
        taken = self._taken = self._readings.take(tokens, room)
        return taken

    def give_back(self) -> None:
        """Use none any more."""
        taken, self._taken = self._taken, None
        if taken is not None:
            self._readings.give_back(taken)


def fits(reading: Reading, needed: int, window: int) -> bool:
    """Whether a reading has room for ``needed`` tokens of a model's window."""
    return reading.room is None or reading.room >= min(needed, window)


def is_worth_it(reading: Reading, tokens: Sequence[int]) -> bool:
    """Whether what a reading has in common with a prompt is worth what it has besides."""
    shared = reading.shared(tokens)
    return shared >= LEAST_SHARED or 2 * shared >= len(tokens) or 0 < shared == len(reading)


def steps_of_room(tokens: int) -> int:
    """Room for so many tokens, rounded up."""
    return -(-tokens // ROOM_STEP) * ROOM_STEP


def passes(tokens: Sequence[int], start: int, size: int) -> Iterator[Sequence[int]]:
    """The tokens from ``start`` on in parts for one forward pass each, of at most ``size`` tokens."""
    for begin in range(start, len(tokens), size):
        yield tokens[begin : begin + size]
