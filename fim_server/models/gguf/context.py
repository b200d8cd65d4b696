"""Contexts of llama.cpp: each keeps what a model has read, and passes run in it."""

from __future__ import annotations

import ctypes
import sys
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from fim_server.language.stop import on_stop
from fim_server.models.backend import PREFILL_CHUNK
from fim_server.models.gguf.library import first_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MOST_ROWS = 16
"""Most rows of logits of a pass: a draft's tokens and the one before them. The library keeps memory for them."""

MOST_OF_FIELD = 256
"""Most bytes that are read of a text in a file's metadata."""

ABORTED = 2
"""Status of a pass that was left."""


class Network:
    """The library's model (``llama_model``), freed once neither a backend nor a context holds it."""

    def __init__(self, library: Any, address: int) -> None:
        self.library, self.address = library, address
        self.adapter: int | None = None
        weakref.finalize(self, library.llama_model_free, address)

    def said(self, field: str) -> str:
        """Return the beginning of a field of the file; "" for a missing one."""
        buffer = ctypes.create_string_buffer(MOST_OF_FIELD)
        self.library.llama_model_meta_val_str(self.address, field.encode(), buffer, len(buffer))
        return buffer.value.decode(errors="replace")


class Context:
    """Context of the library (``llama_context``) with one sequence, or several of equal size."""

    def __init__(self, network: Network, room: int, threads: int, sequences: int = 1) -> None:
        """Make a context. ``room``: tokens of a sequence. Raises RuntimeError where there is not enough memory."""
        self.room, self._network = room, network
        self._library = library = network.library
        options = library.llama_context_default_params()
        options.room, options.sequences = room * sequences, sequences
        options.batch = options.pass_tokens = max(sequences, min(room, PREFILL_CHUNK))
        options.threads = options.threads_of_batch = threads
        options.outputs = max(sequences, min(MOST_ROWS, int(options.batch)))
        first_error.begin()
        self._context = library.llama_init_from_model(network.address, options)
        if not self._context:
            raise RuntimeError(f"llama.cpp has no room for {room * sequences} tokens ({first_error.reason})")
        weakref.finalize(self, library.llama_free, self._context)
        self._memory = library.llama_get_memory(self._context)
        # The library asks before each operator whether to leave the pass, by a function of one argument. One in Python
        # would wait for the interpreter's lock hundreds of times a pass; strlen of a text of no or one byte will do.
        self._flag = ctypes.create_string_buffer(2)
        library.llama_set_abort_callback(self._context, strlen(), ctypes.cast(self._flag, ctypes.c_void_p))
        if network.adapter is not None:
            one, whole = (ctypes.c_void_p * 1)(network.adapter), (ctypes.c_float * 1)(1.0)
            library.llama_set_adapters_lora(self._context, one, 1, whole)
        self._batch = library.llama_batch_init(int(options.batch), 0, 1)
        weakref.finalize(self, library.llama_batch_free, self._batch)
        self.most, self.sequences = int(options.batch), sequences
        array = np.ctypeslib.as_array
        self._tokens = array(self._batch.tokens, (self.most,))
        self._positions = array(self._batch.positions, (self.most,))
        self._wanted = array(self._batch.wanted, (self.most,))
        array(self._batch.sequence_counts, (self.most,))[:] = 1
        for number in range(self.most):
            self._batch.sequences[number][0] = 0

    def clear(self) -> None:
        self._library.llama_memory_clear(self._memory, False)

    def keep(self, length: int, sequence: int = 0) -> bool:
        """Forget a sequence's tokens after the first ``length``; return False where the network cannot."""
        return bool(self._library.llama_memory_seq_rm(self._memory, sequence, length, -1))

    def copy(self, sequence: int, to: int) -> None:
        """Replace a sequence by a copy of another one."""
        self._library.llama_memory_seq_rm(self._memory, to, -1, -1)
        self._library.llama_memory_seq_cp(self._memory, sequence, to, -1, -1)

    def decode(self, token_ids: Sequence[int], start: int, rows: int) -> int:
        """Run a pass over tokens from position ``start`` on, and return the library's status.

        ``rows``: number of the last tokens whose logits are kept.
        """
        return self.decode_at(token_ids, np.arange(start, start + len(token_ids)), None, rows)

    def decode_at(
        self,
        token_ids: Sequence[int],
        positions: NDArray[np.intp] | Sequence[int],
        sequences: Sequence[int] | None,
        rows: int,
    ) -> int:
        """Run a pass over tokens at given positions, of given sequences where there are several."""
        batch, count = self._batch, len(token_ids)
        batch.count = count
        if sequences is not None:
            for number, sequence in enumerate(sequences):
                batch.sequences[number][0] = sequence
        self._tokens[:count] = token_ids
        self._positions[:count] = positions
        self._wanted[:count] = 0
        self._wanted[count - rows : count] = 1
        self._flag[0] = b"\0"

        def leave() -> None:
            self._flag[0] = b"\1"

        with on_stop(leave):
            return int(self._library.llama_decode(self._context, batch))

    def logits(self, size: int, back: int = 1) -> NDArray[np.float32]:
        """Return the logits [V] after the ``back``-th last token of the pass, in the library's memory."""
        address = self._library.llama_get_logits_ith(self._context, -back)
        if not address:
            raise RuntimeError("llama.cpp gives no logits")
        return np.ctypeslib.as_array(address, (size,))


def strlen() -> ctypes.c_void_p:
    library = ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)
    return ctypes.cast(library.strlen, ctypes.c_void_p)
