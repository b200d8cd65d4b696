"""Protocols of a backend: the network that computes a model, its caches, and arithmetic on its logits.

Torch (:mod:`.pytorch.backend`), onnxruntime (:mod:`.onnx.backend`), llama.cpp (:mod:`.gguf.backend`) and endpoints
(:mod:`.remote.backend`) are backends.

A backend keeps rows of logits in a form of its own, numpy arrays or tensors on a device, with the arithmetic that
decoding needs (:class:`Arithmetic`). Nothing outside a backend looks into a row, so decoding is one loop for all of
them and runs without torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from fim_server.errors import FimServerError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

LLAMA_CPP = "llama.cpp"

LEAST_PROMPT_TOKENS = 16
"""Least tokens of a prompt; a shorter one would hold little but the tokens of its format."""

LEAST_WINDOW = 4 * LEAST_PROMPT_TOKENS
"""Least context window; half of a window is for the prompt."""

PREFILL_CHUNK = 256
"""Most prompt tokens of a forward pass, since a cancelled request waits for the end of a pass.

:class:`.pace.Pace` sizes the passes of requests that wait. A fixed size makes a text depend on nothing but its inputs,
since logits differ by rounding with the sizes of the passes.
"""

Logits: TypeAlias = Any
"""Row of float32 logits [V] in its backend's form, for the backend's :class:`Arithmetic`."""


class LostError(FimServerError, RuntimeError):
    """Error of a model that no longer answers, such as an endpoint; its message is one line for users."""


def require_tokens(token_ids: Sequence[int], size: int) -> None:
    """Raise RuntimeError unless there are tokens, all of a vocabulary of ``size``."""
    if not token_ids or min(token_ids) < 0 or max(token_ids) >= size:
        raise RuntimeError(f"not tokens of {size}: {'ids beyond them' if token_ids else 'none'}")


def require_crop(length: int, read: int) -> None:
    """Raise ValueError unless the last ``-length`` of ``read`` tokens can be taken back."""
    if length >= 0 or read + length < 0:
        raise ValueError(f"cannot take back {-length} of {read} tokens")


class Cache(Protocol):
    """Keys and values of the tokens that a model has read. One thread at a time."""

    def crop(self, length: int, /) -> None:
        """Take back the last ``-length`` tokens.

        Raises RuntimeError or ValueError where that is not possible; the cache's content is then undefined.
        """


@runtime_checkable
class RestingCache(Cache, Protocol):
    """Cache whose model may work outside of passes, so that the caller waits for it there."""

    patience: Callable[[], None]
    """Called during a wait; an exception ends it."""

    def rest(self) -> None:
        """Stop the work."""


@runtime_checkable
class CheckingBackend(Protocol):
    """Backend whose rows may hold less than the model's own."""

    @property
    def is_exact(self) -> bool:
        """True if its rows lead to the same choices as the model's own."""


@runtime_checkable
class AskedCache(RestingCache, Protocol):
    """Cache whose model reads its tokens only when a row of logits is needed."""

    def read_now(self) -> bool:
        """Read all tokens and return whether that succeeded; errors are not raised, except those of ``patience``."""


@runtime_checkable
class PacedBackend(Protocol):
    """Backend that measures its own reading speed, since the time of a pass does not show it."""

    def reading_speed(self) -> float:
        """Return the prompt tokens read in a second. Raises RuntimeError where they are unknown."""


class Sampler(Protocol):
    """Sampler of tokens, with a generator of its own where the temperature is above 0."""

    def draw(self, logits: Logits, /) -> int:
        """Return the likeliest token, or a draw from softmax(logits / temperature)."""


class Arithmetic(Protocol):
    """Operations of decoding on rows of logits."""

    def sampler(self, temperature: float, seed: int, /) -> Sampler:
        """Return a sampler; temperature 0 takes the likeliest token, the first of equal ones."""

    def copy(self, logits: Logits, /) -> Logits:
        """Copy a row."""

    def likeliest(self, logits: Logits, /) -> int:
        """Return the token of the greatest logit, the first of equal ones."""

    def masked(self, logits: Logits, words: NDArray[np.uint32], /) -> Logits:
        """Return a copy with the tokens that a packed mask [W] refuses, and those beyond it, at minus infinity."""

    def only(self, logits: Logits, tokens: Sequence[int] | NDArray[np.intp], /) -> Logits:
        """Return a copy with all tokens but these at minus infinity."""

    def refuse(self, logits: Logits, token: int, /) -> None:
        """Set one token to minus infinity, in place."""

    def mixed(self, logits: Logits, shares: Mapping[int, float], /) -> Logits:
        """Return the logits of ``(1 - s) * softmax(logits) + shares``, where s < 1 is the sum of the shares.

        The logits of all other tokens stay as they are.
        """

    def shifted(self, logits: Logits, changes: Mapping[int, float], /) -> Logits:
        """Return a copy with changes added to the logits of some tokens."""

    def tempered(self, logits: Logits, temperature: float, /) -> Logits:
        """Return a copy whose softmax is the distribution at a temperature above 0."""

    def is_spent(self, logits: Logits, /) -> bool:
        """Return whether all tokens are at minus infinity."""

    def shares(self, logits: Logits, /) -> Logits:
        """Return softmax(logits), [V]."""

    def top(self, shares: Logits, count: int, /) -> list[tuple[int, float]]:
        """Return the ``count`` tokens of the greatest shares and these, greatest first; fewer if there are fewer."""

    def likely(self, logits: Logits, least: float, /) -> list[tuple[int, float]]:
        """Return the tokens with a probability of at least ``least``, and these, in the order of the ids."""

    def moved(self, logits: Logits, given: Mapping[int, float], taken: Collection[int], /) -> Logits:
        """Return a copy with the probability of the tokens in ``taken`` moved to those in ``given``.

        The sum of ``given`` has to be the probability of ``taken``.
        """

    def share_of(self, logits: Logits, tokens: Collection[int], /) -> float:
        """Return the joint probability of some tokens."""


class Backend(Protocol):
    """Loaded network."""

    @property
    def name(self) -> str:
        """Name in :data:`.loaders.LOADERS`."""

    @property
    def device(self) -> str:
        """Device as torch would spell it: ``cpu``, ``cuda:0``."""

    @property
    def size(self) -> int:
        """Length of a row of logits, V; often padded beyond the tokenizer's tokens."""

    @property
    def window(self) -> int:
        """Context window in tokens, for prompt and middle together."""

    @property
    def threads(self) -> int:
        """Threads of an operator on a CPU."""

    @property
    def arithmetic(self) -> Arithmetic:
        """Operations on the backend's rows of logits."""

    def new_cache(self, room: int | None = None, /) -> Any:
        """Make an empty :class:`Cache` for at least ``room`` tokens; None: for the whole window."""

    def forward(self, token_ids: Sequence[int], cache: Any, /) -> Logits:
        """Append tokens to a cache, and return the logits after the last of them, in memory of their own.

        Raises the runtime's RuntimeError; the cache's content is then undefined. A runtime that can leave a pass raises
        StoppedError once a stop of the thread (:class:`fim_server.Stop`) is set; the cache is as before.
        """

    def mask_words(self, size: int, /) -> NDArray[np.uint32]:
        """Return zeroed memory for a packed mask over ``size`` tokens, laid out for :meth:`Arithmetic.masked`."""


@runtime_checkable
class RowsBackend(Backend, Protocol):
    """Backend that may give the logits after several tokens of a pass."""

    @property
    def gives_rows(self) -> bool:
        """False if the network was made for the last token's logits alone."""

    def forward_rows(self, token_ids: Sequence[int], cache: Any, rows: int, /) -> Sequence[Logits]:
        """Append tokens like :meth:`forward`, and return the logits after each of the last ``rows`` tokens.

        If ``gives_rows``, the logits do not depend on the sizes of passes. They are equal to the last bit on
        onnxruntime and for quantised GGUF files (measured on x86-64). On torch and a CPU they agree up to float32's
        rounding, for other GGUF files up to float16's.
        """


class Store(Protocol):
    """Caches of rows that are read together, numbered from 0 without gaps."""

    def read(self, prompt: Sequence[int], /) -> Logits:
        """Append a row that reads a prompt. Returns the logits [V] after its last token, valid until the next call."""

    def copy(self, row: int, /) -> None:
        """Append a copy of a row."""

    def remove(self, row: int, /) -> None:
        """Forget a row; the last one takes its place."""

    def rewind(self, row: int, n_tokens: int, /) -> None:
        """Forget the last tokens of a row."""

    def forward(self, tokens: Sequence[int], /) -> Any:
        """Read one token in each row. Returns the rows' logits [V] by number, valid until the next call."""

    def close(self) -> None:
        """End the use of all rows."""


@runtime_checkable
class BatchBackend(Protocol):
    """Backend that reads a token of many rows in one pass."""

    def batching(self) -> AbstractContextManager[Any]:
        """Return the context in which all passes of a batch run."""

    def store(self, rows: int, positions: int, /) -> Store:
        """Make room for ``rows`` rows of ``positions`` tokens.

        Raises RuntimeError where there is no memory for it, at the latest when the first row is read.
        """
