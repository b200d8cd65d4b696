"""KV caches that requests share: each keeps the prompt that it has read."""

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
"""Step of a cache's size in tokens, so that a slightly longer prompt does not need a cache of its own."""

MOST_READINGS, KEPT_TOKENS = 4, 2048
"""Most readings kept, and the tokens of all of them together; two are kept in any case. A runtime takes the memory of a
cache's whole size at once: 46 kB a token for SmolLM2-135M, so 94 MB at most.
"""

LEAST_SHARED = 16
"""Shared tokens from which on a reading is reused, whatever it loses: the rest is then most often the same place before
an edit.
"""


class Reading:
    """KV cache of a model with the tokens in it, kept from one request to the next.

    While the user types, a suffix-first prompt changes only at its end (design, section 12), so most of the last
    keystroke's tokens stay valid. A prompt whose prefill was interrupted between two passes is kept as far as it was
    read. Reusing a cache changes logits by rounding at most (:attr:`.backend.RowsBackend.gives_rows`). One thread at a
    time.
    """

    def __init__(self, model: FimModel, room: int | None = None) -> None:
        """Make an empty reading. ``room``: most tokens that it will hold; None is the model's window."""
        self._model = model
        self.room = room
        self._tokens: list[int] = []
        self._cache: Any = None
        self.crops = True
        """False once the cache has refused to be cropped."""
        self.patience: Callable[[], None] = heed

    def __len__(self) -> int:
        return len(self._tokens)

    def shared(self, tokens: Sequence[int]) -> int:
        """Return the length of the common prefix with ``tokens``, without the last token, whose logits are needed."""
        count = min(len(self._tokens), len(tokens) - 1)
        return next((i for i in range(count) if self._tokens[i] != tokens[i]), count)

    def resume(self, tokens: Sequence[int]) -> int:
        """Crop the cache to the common prefix with ``tokens``, and return its length."""
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
        """Run :meth:`FimModel.forward` on the cache."""
        return self._pass(token_ids, lambda cache: self._model.forward(token_ids, cache))

    def forward_rows(self, token_ids: Sequence[int], rows: int) -> Sequence[Logits]:
        """Run :meth:`FimModel.forward_rows` on the cache."""
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
            self.forget()  # the cache may hold a part of it
            raise
        self._tokens.extend(token_ids)
        return logits

    def rewind(self, n_tokens: int) -> None:
        """Take back the last tokens. The rest is read again where the cache cannot be cropped."""
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
        """Have a resting cache call ``patience`` while it waits for its model; an exception ends the wait."""
        self.patience = patience
        if isinstance(self._cache, RestingCache):
            self._cache.patience = patience

    def rest(self) -> None:
        if isinstance(self._cache, RestingCache):
            self._cache.rest()

    @property
    def reads_late(self) -> bool:
        """True if the model reads only when a row is needed, so that it may not have read its tokens yet."""
        return isinstance(self._cache, AskedCache)

    def read_now(self) -> bool:
        """Have a model that reads late read now, and return whether it has; other models have.

        Unread tokens are forgotten. Raises the exceptions of ``patience``.
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
        self.rest()
        self._tokens, self._cache = [], None


class Readings:
    """Readings of several prompts, because typing a bracket changes the suffix and thus a prompt's beginning.

    Threads may share it: each takes a reading, uses it alone and gives it back (:class:`Lent`).
    """

    def __init__(self, model: FimModel, most: int = MOST_READINGS) -> None:
        self._model = model
        self._most = max(1, most)
        self._lock = threading.Lock()
        self._known: list[Reading] = []
        """Readings that no thread uses, from the least to the most recently used."""
        self.room = 0
        """Least size of a new reading, so that a longer request can reuse it later."""

    def shared(self, tokens: Sequence[int]) -> int:
        """Return the longest common prefix of ``tokens`` with a reading."""
        with self._lock:
            return max((reading.shared(tokens) for reading in self._known), default=0)

    def nearest(self, tokens: Sequence[int], room: int | None = None) -> Reading:
        """Return the reading that :meth:`take` finds, for callers on one thread."""
        reading = self.take(tokens, room)
        self.give_back(reading)
        return reading

    def take(self, tokens: Sequence[int], room: int | None = None) -> Reading:
        """Take the reading with the longest common prefix with a prompt, for the caller alone.

        A new reading replaces the least recently used one where reuse would lose a long reading for little. So a look
        at another file loses none, and a prefill that was interrupted early is still resumed.

        Args:
            tokens: The prompt.
            room: Tokens that the cache has to hold, the prompt's and the generated ones; None is the model's window.
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
        """Let other threads use a reading that was taken."""
        with self._lock:
            self._known.append(reading)
            self._keep(self._most_with(self._model.window if reading.room is None else reading.room))

    def clear(self) -> None:
        with self._lock:
            self._known.clear()

    def _most_with(self, room: int) -> int:
        """Return how many readings are kept if one of them has so many tokens of room."""
        return min(self._most, max(2, KEPT_TOKENS // max(1, room)))

    def _keep(self, most: int) -> None:
        """Forget all but the ``most`` most recently used readings."""
        del self._known[: max(0, len(self._known) - most)]


class Lent:
    """View of shared readings for one thread, which holds at most one of them at a time."""

    def __init__(self, readings: Readings) -> None:
        self._readings = readings
        self._taken: Reading | None = None

    @property
    def room(self) -> int:
        """Least size of a new reading; see :attr:`Readings.room`."""
        return self._readings.room

    @room.setter
    def room(self, tokens: int) -> None:
        self._readings.room = tokens

    def shared(self, tokens: Sequence[int]) -> int:
        """Return the longest common prefix of ``tokens`` with a reading."""
        mine = 0 if self._taken is None else self._taken.shared(tokens)
        return max(mine, self._readings.shared(tokens))

    def nearest(self, tokens: Sequence[int], room: int | None = None) -> Reading:
        """Take the best reading, as :meth:`Readings.take`, until the next call or :meth:`give_back`."""
        self.give_back()
        taken = self._taken = self._readings.take(tokens, room)
        return taken

    def give_back(self) -> None:
        """Give back the reading that was taken, if any."""
        taken, self._taken = self._taken, None
        if taken is not None:
            self._readings.give_back(taken)


def fits(reading: Reading, needed: int, window: int) -> bool:
    """Return whether a reading has room for ``needed`` tokens of a model's window."""
    return reading.room is None or reading.room >= min(needed, window)


def is_worth_it(reading: Reading, tokens: Sequence[int]) -> bool:
    """Return whether the common prefix with a prompt is worth the tokens that reuse would lose."""
    shared = reading.shared(tokens)
    return shared >= LEAST_SHARED or 2 * shared >= len(tokens) or 0 < shared == len(reading)


def steps_of_room(tokens: int) -> int:
    return -(-tokens // ROOM_STEP) * ROOM_STEP


def passes(tokens: Sequence[int], start: int, size: int) -> Iterator[Sequence[int]]:
    """Split the tokens from ``start`` on into forward passes of at most ``size`` tokens."""
    for begin in range(start, len(tokens), size):
        yield tokens[begin : begin + size]
