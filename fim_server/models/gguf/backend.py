"""Backend of networks in GGUF files on llama.cpp, with its caches.

Rows of logits are numpy arrays, copied once from the library's memory, which the next pass overwrites. Each cache is a
context of the library: attention goes over everything in a context, so a shared one would slow down all its readings.
Rows that are read together (:mod:`.rows`) are sequences of one context, each in a buffer of its own.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING

import numpy as np

from fim_server.errors import ModelError, StoppedError
from fim_server.models.backend import LEAST_WINDOW, LLAMA_CPP, require_crop, require_tokens
from fim_server.models.gguf.context import ABORTED, MOST_ROWS, Context, Network
from fim_server.models.gguf.library import first_error, load_library
from fim_server.models.gguf.rows import Sequences
from fim_server.models.gguf.tokenizer import GgufTokenizer
from fim_server.models.masking import word_count
from fim_server.models.numpy_logits import NumpyArithmetic

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

MOST_WINDOW = 1 << 15
"""Most tokens of a cache, whatever the model says: making a context takes its memory at once."""

STEP_OF_ROOM = 256
"""Multiple to which the library rounds up a context's size."""

MOST_SPARE = 2
"""Contexts that are kept for the next cache, since making one takes as long as some tokens."""


class GgufBackend:
    """Loaded GGUF file.

    Attributes:
        size: Length of a row of logits, V.
        window: Context window in tokens, at most :data:`MOST_WINDOW`.
        threads: Threads of a pass.
        tokenizer: The file's own.
        about: The library's description of the file.
    """

    name = LLAMA_CPP
    arithmetic = NumpyArithmetic()
    gives_rows = True

    def __init__(self, path: Path, threads: int, gpu_layers: int = 0, adapter: Path | None = None) -> None:
        """Load a file.

        Args:
            path: The file.
            threads: Threads of a pass.
            gpu_layers: Layers that a GPU computes, where the library has one; -1 for all of them.
            adapter: A low-rank adapter in a GGUF file of its own, added to the weights in each pass.

        Raises:
            ModelError: It cannot be loaded; one line.
        """
        self._library = library = load_library()
        self.threads = threads
        if gpu_layers and not library.llama_supports_gpu_offload():
            raise ModelError(f"{path}: no layers on a GPU: the llama.cpp that is installed computes on the CPU alone")
        self.device = "gpu" if gpu_layers else "cpu"
        options = library.llama_model_default_params()
        options.gpu_layers = gpu_layers if gpu_layers >= 0 else 1 << 16
        first_error.begin()
        model = library.llama_model_load_from_file(os.fsencode(path), options)
        if not model:
            raise ModelError(f"{path}: llama.cpp cannot load it ({first_error.reason})")
        self._network = Network(library, model)
        if library.llama_model_has_encoder(model):
            raise ModelError(f"{path}: has an encoder: no model that completes texts")
        self.tokenizer = GgufTokenizer(library, library.llama_model_get_vocab(model), self._network)
        self.size = self.tokenizer.size
        self.window = min(int(library.llama_model_n_ctx_train(model)), MOST_WINDOW)
        if self.window < LEAST_WINDOW:
            raise ModelError(f"{path}: a window of {self.window} tokens")
        if adapter is not None:
            self._network.adapter = library.llama_adapter_lora_init(model, os.fsencode(adapter))
            if not self._network.adapter:
                raise ModelError(f"{adapter}: llama.cpp cannot load the adapter ({first_error.reason})")
        described = ctypes.create_string_buffer(128)
        library.llama_model_desc(model, described, len(described))
        self.about = described.value.decode(errors="replace")
        self._spare: list[Context] = []
        self._lock = threading.RLock()
        """Reentrant, since garbage collection may end a cache, and give its context back, while this thread holds the
        lock.
        """

    def new_cache(self, room: int | None = None) -> GgufCache:
        """Make an empty KV cache for ``room`` tokens; None: for the whole window.

        Raises RuntimeError where there is not enough memory for it.
        """
        room = self.window if room is None else min(room, self.window)
        return GgufCache(self, self.take(room))

    def forward(self, token_ids: Sequence[int], cache: GgufCache) -> NDArray[np.float32]:
        return cache.forward(token_ids)

    def forward_rows(self, token_ids: Sequence[int], cache: GgufCache, rows: int) -> list[NDArray[np.float32]]:
        """Read on; at most :data:`MOST_ROWS` rows."""
        return cache.forward_rows(token_ids, rows)

    def batching(self) -> AbstractContextManager[None]:
        return nullcontext()

    def store(self, rows: int, positions: int) -> Sequences:
        room = -(-min(positions, self.window) // STEP_OF_ROOM) * STEP_OF_ROOM
        return Sequences(Context(self._network, room, self.threads, rows), self.size)

    def mask_words(self, size: int) -> NDArray[np.uint32]:
        return np.zeros(word_count(size), dtype=np.uint32)

    def take(self, room: int) -> Context:
        """Return an empty context for ``room`` tokens: a spare one that fits, or a new one."""
        room = -(-room // STEP_OF_ROOM) * STEP_OF_ROOM
        with self._lock:
            for spare in sorted(self._spare, key=lambda spare: spare.room):
                if room <= spare.room <= 2 * room:
                    with suppress(ValueError):  # one that came back meanwhile has taken its place
                        self._spare.remove(spare)
                        return spare
        return Context(self._network, room, self.threads)

    def give_back(self, context: Context) -> None:
        """Keep an unused context for the next cache."""
        context.clear()
        with self._lock:
            self._spare.append(context)
            del self._spare[:-MOST_SPARE]


class GgufCache:
    """KV cache in a context of its own. One thread at a time.

    Attributes:
        context: The library's context.
    """

    def __init__(self, backend: GgufBackend, context: Context) -> None:
        self.context, self._size, self._length = context, backend.size, 0
        weakref.finalize(self, give_back_to, weakref.ref(backend), context).atexit = False

    def forward(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        """Read on, and return the logits [V] after the last token. Raises as :meth:`forward_rows`."""
        return self.forward_rows(token_ids, 1)[-1]

    def forward_rows(self, token_ids: Sequence[int], rows: int) -> list[NDArray[np.float32]]:
        """Read on, and return the logits [V] after each of the last ``rows`` tokens, in memory of their own.

        Raises:
            RuntimeError: There is no token, an unknown one, or no room in the window; there are more rows than tokens
                or :data:`MOST_ROWS`; or the library has failed.
            StoppedError: The caller's stop was set; nothing was read.
        """
        count, context = len(token_ids), self.context
        require_tokens(token_ids, self._size)
        if not 0 < rows <= min(count, MOST_ROWS):
            raise RuntimeError(f"{rows} rows of {count} tokens; at most {MOST_ROWS}")
        if self._length + count > context.room:
            raise RuntimeError(f"{self._length + count} tokens are above the cache's room, {context.room}")
        last = max(0, count - context.most)  # where the last pass begins, which has all the rows
        for start in (*range(0, last, context.most), last):
            part = token_ids[start : min(start + context.most, last) if start < last else count]
            done = context.decode(part, self._length + start, rows if start == last else 0)
            if done:
                is_clean = context.keep(self._length)
                if done == ABORTED and is_clean:
                    raise StoppedError("the model's pass was left")
                raise RuntimeError(f"llama.cpp's pass failed with {done} ({first_error.reason})")
        self._length += count
        return [context.logits(self._size, back).copy() for back in range(rows, 0, -1)]

    def crop(self, length: int) -> None:
        """Take back the last ``-length`` tokens, as transformers' caches do.

        Raises:
            ValueError: ``length`` is not negative, or there are fewer tokens.
            RuntimeError: The network cannot (a recurrent one keeps no tokens).
        """
        require_crop(length, self._length)
        if not self.context.keep(self._length + length):
            raise RuntimeError("the network cannot take tokens back")
        self._length += length


def read_tokenizer(path: Path) -> GgufTokenizer:
    """Read the tokenizer of a GGUF file, without its network. Raises ModelError, one line, where it cannot be read."""
    library = load_library()
    options = library.llama_model_default_params()
    options.vocabulary_only = True
    first_error.begin()
    model = library.llama_model_load_from_file(os.fsencode(path), options)
    if not model:
        raise ModelError(f"{path}: llama.cpp cannot read it ({first_error.reason})")
    return GgufTokenizer(library, library.llama_model_get_vocab(model), Network(library, model))


def give_back_to(backend: weakref.ref[GgufBackend], context: Context) -> None:
    """Keep the context of a dead cache, if its backend is alive."""
    known = backend()
    if known is not None:
        known.give_back(context)
