"""What computes a model, behind one protocol.

That is torch (:mod:`.pytorch.backend`), onnxruntime (:mod:`.onnx.backend`) or llama.cpp (:mod:`.gguf.backend`).

A backend keeps its rows of logits in a form of its own, numpy arrays or tensors on a device, and lends the arithmetic
that decoding does with them (:class:`Arithmetic`). Nothing outside a backend looks into a row, so decoding is one loop
for both, and runs without torch.
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
"""A shorter prompt would hold little but the tokens of its format."""

LEAST_WINDOW = 4 * LEAST_PROMPT_TOKENS
"""Tokens; half of a window is for the prompt."""

PREFILL_CHUNK = 256
"""Prompt tokens in one forward pass at most: a pass is what an interruption waits for. Where somebody waits, passes are
sized by :class:`.pace.Pace`; a fixed size makes a text depend on nothing but its inputs, since logits differ by
rounding with the sizes of the passes."""

Logits: TypeAlias = Any
"""A row of float32 logits [V] as its backend keeps it. Its length is the backend's ``size``; the rest is asked of the
backend's :class:`Arithmetic`."""


class LostError(FimServerError, RuntimeError):
    """A model that was there gives nothing any more: an endpoint does not answer. One line, for people."""


class Cache(Protocol):
    """The keys and values of what a model has read. One thread at a time."""

    def crop(self, length: int, /) -> None:
        """Take back the last ``-length`` tokens.

        Raises RuntimeError or ValueError where that is not possible; what is in the cache is not known then.
        """


@runtime_checkable
class RestingCache(Cache, Protocol):
    """A cache whose model may be at work when nobody is in a pass of it, and is waited for outside of passes."""

    patience: Callable[[], None]
    """Looked at while it is waited for; raises where that is to end."""

    def rest(self) -> None:
        """Have it do nothing more."""


@runtime_checkable
class CheckingBackend(Protocol):
    """A backend whose rows may be less than the model's own."""

    @property
    def is_exact(self) -> bool:
        """Whether what is chosen from its rows is what would be from the model's own."""


@runtime_checkable
class AskedCache(RestingCache, Protocol):
    """A cache whose model reads nothing of what it is given before a row is wanted."""

    def read_now(self) -> bool:
        """Have it read all of it, for nobody; whether it has: what goes wrong is not told. Raises as ``patience``."""


@runtime_checkable
class PacedBackend(Protocol):
    """A backend that finds out by itself how fast it reads: how long a pass takes says nothing of it."""

    def reading_speed(self) -> float:
        """Prompt tokens a second. Raises RuntimeError where it cannot tell."""


class Sampler(Protocol):
    """Draws tokens, by a generator of its own where the temperature is above 0."""

    def draw(self, logits: Logits, /) -> int:
        """A token id: the likeliest, or one by softmax(logits / temperature)."""


class Arithmetic(Protocol):
    """What decoding does with rows of logits."""

    def sampler(self, temperature: float, seed: int, /) -> Sampler:
        """A sampler; temperature 0 takes the likeliest token, and of several the first."""

    def copy(self, logits: Logits, /) -> Logits:
        """The row in memory of its own."""

    def likeliest(self, logits: Logits, /) -> int:
        """The token of the greatest logit; of several the first."""

    def masked(self, logits: Logits, words: NDArray[np.uint32], /) -> Logits:
        """A copy with the tokens that a packed mask [W] refuses at minus infinity, and those beyond the mask."""

    def only(self, logits: Logits, tokens: Sequence[int] | NDArray[np.intp], /) -> Logits:
        """A copy with all tokens but these at minus infinity."""

    def refuse(self, logits: Logits, token: int, /) -> None:
        """Set one token to minus infinity, in place."""

    def mixed(self, logits: Logits, shares: Mapping[int, float], /) -> Logits:
        """The logits of ``(1 - s) * softmax(logits) + shares``, where s < 1 is the sum of the shares, as a copy.

        Those of all other tokens stay as they are.
        """

    def shifted(self, logits: Logits, changes: Mapping[int, float], /) -> Logits:
        """A copy to whose logits of some tokens something is added."""

    def tempered(self, logits: Logits, temperature: float, /) -> Logits:
        """A copy whose softmax is what is drawn from at a temperature above 0."""

    def is_spent(self, logits: Logits, /) -> bool:
        """Whether all tokens are at minus infinity."""

    def shares(self, logits: Logits, /) -> Logits:
        """softmax(logits), [V]."""

    def top(self, shares: Logits, count: int, /) -> list[tuple[int, float]]:
        """The ``count`` tokens of the greatest shares, greatest first, with their shares; fewer if there are fewer."""

    def likely(self, logits: Logits, least: float, /) -> list[tuple[int, float]]:
        """The tokens that have a probability of at least ``least``, with it, in their order."""

    def moved(self, logits: Logits, given: Mapping[int, float], taken: Collection[int], /) -> Logits:
        """A copy in which some tokens have as much more probability, and those that it is ``taken`` from have none.

        What is given is to be what was taken.
        """

    def share_of(self, logits: Logits, tokens: Collection[int], /) -> float:
        """The probability of some tokens together."""


class Backend(Protocol):
    """A loaded network."""

    @property
    def name(self) -> str:
        """Its name in :data:`.loaders.LOADERS`."""

    @property
    def device(self) -> str:
        """Where it computes, as torch would spell it: ``cpu``, ``cuda:0``."""

    @property
    def size(self) -> int:
        """Length of a row of logits, V; often padded beyond the tokenizer's own tokens."""

    @property
    def window(self) -> int:
        """Tokens it can attend to, prompt and middle together."""

    @property
    def threads(self) -> int:
        """Threads that one operator may use on a CPU."""

    @property
    def arithmetic(self) -> Arithmetic:
        """What its rows of logits are asked with."""

    def new_cache(self, room: int | None = None, /) -> Any:
        """An empty :class:`Cache` for at least ``room`` tokens; None: for the whole window."""

    def forward(self, token_ids: Sequence[int], cache: Any, /) -> Logits:
        """Append tokens to a cache. Returns the logits after the last of them, in memory of their own.

        Raises RuntimeError where the runtime does; what is in the cache is not known then. A runtime that can leave a
        pass raises StoppedError once what watches the thread (:class:`fim_server.Stop`) is set; the cache is as before.
        """

    def mask_words(self, size: int, /) -> NDArray[np.uint32]:
        """Zeroed memory for a packed mask over ``size`` tokens, such as :meth:`Arithmetic.masked` reads fastest."""


@runtime_checkable
class RowsBackend(Backend, Protocol):
    """A backend that may be able to give the logits after several tokens of a pass."""

    @property
    def gives_rows(self) -> bool:
        """Whether it is; the network may have been made for the last token's alone."""

    def forward_rows(self, token_ids: Sequence[int], cache: Any, rows: int, /) -> Sequence[Logits]:
        """As :meth:`forward`, the logits after each of the last ``rows`` tokens.

        What a backend with ``gives_rows`` gives does not depend on how many tokens its passes have: not in the last bit
        on onnxruntime and of quantised GGUF files on llama.cpp (x86-64, measured), up to float32's rounding on torch
        and a CPU, up to float16's of other GGUF files.
        """


class Store(Protocol):
    """The caches of rows that are read together, which are numbered from 0 without gaps."""

    def read(self, prompt: Sequence[int], /) -> Logits:
        """A row at the end, which reads a prompt. The logits [V] after its last token, valid until the next ones."""

    def copy(self, row: int, /) -> None:
        """A row at the end that is like another one."""

    def remove(self, row: int, /) -> None:
        """Forget a row; the last one takes its place."""

    def rewind(self, row: int, n_tokens: int, /) -> None:
        """Forget the last tokens of a row."""

    def forward(self, tokens: Sequence[int], /) -> Any:
        """Read one token a row. The rows' logits [V] by their numbers, valid until the next ones."""

    def close(self) -> None:
        """No row is wanted any more."""


@runtime_checkable
class BatchBackend(Protocol):
    """A backend that reads a token of many rows in one pass."""

    def batching(self) -> AbstractContextManager[Any]:
        """What all passes of a batch are made in."""

    def store(self, rows: int, positions: int, /) -> Store:
        """Room for so many rows of so many tokens.

        Raises RuntimeError where there is no memory for it, at the latest when the first row is read.
        """
