"""The engine's token masks on the model's logits.

A mask is packed: bit ``t % 32`` of word ``t // 32`` (little-endian, ``uint32``) is set iff token ``t`` is allowed. It
crosses to the device in that form, 19 kB for 151k tokens, and is unpacked there; so do the masks of a batch, one a row.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import torch

from fim_server.errors import SearchLimitError
from fim_server.tokens.forced import ForcedMatcher, forced_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fim_server.tokens.vocabulary import Vocabulary

WORD_BITS = 32


class Matcher(Protocol):
    """What decoding asks of ``session.matcher(vocabulary)``."""

    def fill_mask(self, words: NDArray[np.uint32], /) -> None: ...
    def allows(self, token_id: int, /) -> bool: ...
    def commit(self, token_id: int, /) -> None: ...
    def is_complete(self) -> bool: ...


def word_count(size: int) -> int:
    """Words of a mask over ``size`` tokens."""
    return -(-size // WORD_BITS)


def contains(words: NDArray[np.uint32], token_id: int) -> bool:
    """Whether a packed mask allows one token; a token beyond the mask is not allowed."""
    word, bit = divmod(token_id, WORD_BITS)
    return word < len(words) and bool(int(words[word]) >> bit & 1)


def mask_buffer(size: int, rows: int | None = None) -> tuple[torch.Tensor, NDArray[np.uint32]]:
    """A zeroed buffer for packed masks over ``size`` tokens: ``rows`` of them, or a single one.

    Returns two views of the same memory: an int32 tensor [rows, W] or [W] for :func:`apply_mask_`, and a uint32 array
    of the same shape for ``fill_mask``; W is ``word_count(size)``. Where CUDA is present the memory is pinned, and
    applying the mask copies it without making the host wait. Before the buffer is filled again that copy has to be
    over, which it is once anything that was computed from the masked logits has been read.
    """
    shape = (word_count(size),) if rows is None else (rows, word_count(size))
    packed = torch.zeros(shape, dtype=torch.int32, pin_memory=torch.cuda.is_available())
    return packed, packed.numpy().view(np.uint32)


def apply_mask(logits: torch.Tensor, words: NDArray[np.uint32] | torch.Tensor) -> torch.Tensor:
    """A copy of logits with those of refused tokens at minus infinity. As :func:`apply_mask_`."""
    return apply_mask_(logits.clone(), words)


def apply_mask_(logits: torch.Tensor, words: NDArray[np.uint32] | torch.Tensor) -> torch.Tensor:
    """Set the logits of refused tokens to minus infinity, in place. Returns the same tensor.

    ``logits``: [V] or [B, V], float16, bfloat16, float32 or float64, any device. ``words``: packed masks [W] or [B, W],
    as a numpy array of uint32 or a torch tensor of int32 (the same bits; torch has no arithmetic on uint32), on any
    device; [W] with logits [B, V] holds for every row. V and W need not match: words beyond the logits are not looked
    at, and logits beyond the words are refused.

    The words are copied to the logits' device as they are, and unpacked there. Raises ValueError for other shapes or
    types.
    """
    packed = _as_tensor(words)
    if logits.ndim not in (1, 2) or not logits.dtype.is_floating_point or logits.dtype not in _AS_INTEGERS:
        raise ValueError(f"logits of shape {tuple(logits.shape)} and type {logits.dtype} take no mask")
    if packed.ndim not in (1, 2) or packed.shape[:-1] not in ((), logits.shape[:-1]):
        raise ValueError(f"masks of shape {tuple(packed.shape)} for logits of shape {tuple(logits.shape)}")
    size = min(logits.shape[-1], packed.shape[-1] * WORD_BITS)
    packed = packed[..., : word_count(size)].to(logits.device, non_blocking=True)
    # A model's logits are made in inference mode, where alone they may be changed.
    with torch.inference_mode(logits.is_inference()):
        logits[..., size:].fill_(float("-inf"))
        known = logits[..., :size]
        if logits.device.type != "cpu" or logits.requires_grad:
            known.masked_fill_(_refused(packed, size), float("-inf"))
        elif known.ndim == 1:
            _mask_row(known, packed)
        else:  # row by row: what one row needs stays in the cache
            for row, mask in zip(known, packed.expand(len(known), -1), strict=True):
                _mask_row(row, mask)
    return logits


_AS_INTEGERS = {
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}


def _as_tensor(words: NDArray[np.uint32] | torch.Tensor) -> torch.Tensor:
    """Packed masks as int32, without a copy where the array allows that."""
    if isinstance(words, torch.Tensor):
        if words.dtype != torch.int32:
            raise ValueError(f"masks of type {words.dtype} instead of torch.int32")
        return words
    if words.dtype != np.uint32:
        raise ValueError(f"masks of type {words.dtype} instead of uint32")
    return torch.from_numpy(np.require(words, requirements=["C", "W"]).view(np.int32))


def _refused(packed: torch.Tensor, size: int) -> torch.Tensor:
    """Packed masks [..., W] as booleans [..., size], true where refused. Temporaries take one byte a token."""
    octets = packed.contiguous().view(torch.uint8)  # [..., 4 W]; every device that torch knows is little-endian
    bits = torch.tensor([1 << bit for bit in range(8)], dtype=torch.uint8, device=packed.device)
    return (octets[..., None] & bits).eq_(0).view(torch.bool).flatten(-2)[..., :size]


def _mask_row(logits: torch.Tensor, packed: torch.Tensor) -> None:
    """Mask logits [V] by words [W] on the CPU.

    By arithmetic on the floats' own bits: x becomes ((x ^ inf) & m) ^ inf, where m is all ones for an allowed token and
    zero for a refused one. That is vectorised, where ``masked_fill_`` branches on every element. In numpy, because work
    this small is only delayed by being shared among torch's threads.
    """
    octets = packed.contiguous().numpy().view(np.uint8)
    bits = logits.view(_AS_INTEGERS[logits.dtype]).numpy()
    allowed = np.unpackbits(octets, count=len(bits), bitorder="little").astype(bits.dtype)
    np.negative(allowed, out=allowed)
    infinity = torch.tensor(float("-inf"), dtype=logits.dtype).view(_AS_INTEGERS[logits.dtype]).numpy()
    bits ^= infinity
    bits &= allowed
    bits ^= infinity


@runtime_checkable
class InsideMatcher(Protocol):
    """A matcher that can go back, and knows what the middle's end is inside of."""

    def commit(self, token_id: int, /) -> None: ...
    def rollback(self, n_tokens: int, /) -> None: ...
    @property
    def inside(self) -> str | None: ...


@runtime_checkable
class LandingMatcher(Protocol):
    """A matcher that knows how the middle can end in a few tokens."""

    def plan(self, enough: int = 0, /) -> list[int] | None: ...
    def lands(self, token_id: int, left: int, /) -> bool | None: ...
    def rollback(self, n_tokens: int, /) -> None: ...


class Constraint:
    """A matcher, its mask buffer and its clock.

    The mask of the next step may be computed on a worker thread while the model runs (:meth:`prefetch`); every other
    method waits for that to end, because a matcher is used by one thread at a time.
    """

    def __init__(
        self, make_matcher: Callable[[], Matcher], size: int, worker: ThreadPoolExecutor, budget: int | None = None
    ) -> None:
        """``make_matcher`` is called on the worker: the first matcher of a shape reads the whole file once more.

        ``budget``: the tokens that the middle will have to end within, so that how it can is found out there as well.
        """
        self._worker = worker
        self._budget = budget
        _, self._words = mask_buffer(size)
        self._filling: Future[None] | None = None
        self._filled = False
        self._mask_seconds = 0.0
        self.engine_seconds = 0.0
        """Time spent in the engine, hidden behind the model or not."""
        self.waited_seconds = 0.0
        """The part of it that decoding had to wait for."""
        self._opening: Future[None] | None = worker.submit(self._open, make_matcher)

    def prefetch(self, hidden_seconds: float) -> None:
        """Start computing this step's mask, if it should fit behind ``hidden_seconds`` of the model's work.

        Most steps need no mask, so one that takes longer than the model would only delay them. The last mask's time
        is the forecast; the first mask has none and hides behind the prefill.
        """
        if not self._filled and self._filling is None and self._mask_seconds <= hidden_seconds:
            self._filling = self._worker.submit(self._fill)

    def allows(self, token_id: int) -> bool:
        """Whether one token may come next, without paying for a mask that is not there already."""
        started = time.perf_counter()
        self._join()
        allowed = contains(self._words, token_id) if self._filled else self._matcher.allows(token_id)
        self._account(started)
        return allowed

    def mask(self) -> NDArray[np.uint32] | None:
        """The packed mask of this step, valid until the next commit, or None if nothing at all may come next."""
        started = time.perf_counter()
        self._join()
        if not self._filled:
            self._fill(timed=False)
        self._account(started)
        return self._words if self._words.any() else None

    def is_complete(self) -> bool:
        """Whether the middle may end here."""
        started = time.perf_counter()
        self._join()
        complete = self._matcher.is_complete()
        self._account(started)
        return complete

    def begins_comment(self, token_id: int) -> bool:
        """Whether the middle would end inside a comment after a token, which is allowed and text.

        False where the matcher cannot tell.
        """
        started = time.perf_counter()
        self._join()
        matcher = self._inside_matcher
        if matcher is None:
            return False
        matcher.commit(token_id)
        begins = matcher.inside == "comment"
        matcher.rollback(1)
        self._account(started)
        return begins

    def commit(self, token_id: int) -> None:
        """Append a token. Raises ValueError if it is not allowed."""
        started = time.perf_counter()
        self._join()
        self._matcher.commit(token_id)
        self._filled = False
        self._account(started)

    def can_land(self) -> bool:
        """Whether the matcher knows how the middle can end."""
        started = time.perf_counter()
        self._join()
        self._account(started)
        return self._landing_matcher is not None

    def distance(self, enough: int) -> int | None:
        """Tokens in which the middle can end: of one way that needs at most ``enough``, or of a shortest.

        None if there is no way. Raises SearchLimitError if that is not known. This and the next three need
        :meth:`can_land`.
        """
        started = time.perf_counter()
        self._join()
        try:
            plan = self._lander.plan(enough)
        finally:
            self._account(started)
        return None if plan is None else len(plan)

    def lands(self, token_id: int, left: int) -> bool:
        """Whether the middle is known to end within ``left`` tokens after an allowed one."""
        started = time.perf_counter()
        self._join()
        lands = self._lander.lands(token_id, left) is True
        self._account(started)
        return lands

    def landing_token(self, left: int) -> int | None:
        """A token after which the middle can end within ``left``; None if none is known, or if it is complete."""
        started = time.perf_counter()
        self._join()
        try:
            plan = self._lander.plan(left + 1)
        except SearchLimitError:
            plan = None
        self._account(started)
        return plan[0] if plan and len(plan) <= left + 1 else None

    def rollback(self, n_tokens: int) -> None:
        """Take back the last tokens."""
        started = time.perf_counter()
        self._join()
        self._lander.rollback(n_tokens)
        self._filled = False
        self._account(started)

    @property
    def _lander(self) -> LandingMatcher:
        assert self._landing_matcher is not None, "asked before"
        return self._landing_matcher

    def forced(self, vocabulary: Vocabulary) -> list[int]:
        """The tokens that every continuation begins with; none if the matcher cannot tell."""
        started = time.perf_counter()
        self._join()
        if not isinstance(self._matcher, ForcedMatcher):
            return []
        tokens = forced_tokens(self._matcher, vocabulary)
        self._account(started)
        return tokens

    def close(self) -> None:
        """Wait for the worker to leave the matcher."""
        started = time.perf_counter()
        self._join()
        self._account(started)

    def _open(self, make_matcher: Callable[[], Matcher]) -> None:
        started = time.perf_counter()
        matcher = make_matcher()
        self._matcher = matcher
        self._inside_matcher = matcher if isinstance(matcher, InsideMatcher) else None
        self._landing_matcher = matcher if isinstance(matcher, LandingMatcher) else None
        if self._landing_matcher is not None and self._budget is not None:
            with suppress(SearchLimitError):
                self._landing_matcher.plan(self._budget)  # kept by the matcher
        self.engine_seconds += time.perf_counter() - started

    def _fill(self, timed: bool = True) -> None:
        started = time.perf_counter()
        self._matcher.fill_mask(self._words)
        self._filled = True
        self._mask_seconds = time.perf_counter() - started
        if timed:
            self.engine_seconds += self._mask_seconds

    def _join(self) -> None:
        if self._opening is not None:
            opening, self._opening = self._opening, None
            started = time.perf_counter()
            opening.result()
            self.engine_seconds -= time.perf_counter() - started
        if self._filling is not None:
            filling, self._filling = self._filling, None
            started = time.perf_counter()
            filling.result()
            self.engine_seconds -= time.perf_counter() - started  # the worker's clock and the caller's both count it

    def _account(self, started: float) -> None:
        elapsed = time.perf_counter() - started
        self.engine_seconds += elapsed
        self.waited_seconds += elapsed
