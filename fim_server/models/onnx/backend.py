"""Exported models on onnxruntime: several times as fast as torch at decoding on a CPU, and far smaller.

An export is the folder ``onnx`` in a model's own (``./dev train onnx`` writes it), in the layout of onnxruntime-genai:
a graph and its ``genai_config.json``. That package's own loop holds Python's global lock throughout a pass, 46 to 66
ms, so that the server's other thread could not even take a message. onnxruntime itself releases the lock, and computes
the same logits to the last bit.

This module knows neither torch nor tokenizers nor prompts; rows of logits are numpy arrays. The package has wheels for
Linux (x86-64 and ARM64 with glibc), Windows and macOS on ARM64. Elsewhere torch runs the model.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from fim_server.errors import ModelError, StoppedError
from fim_server.language.limited_files import parse_json, read_found
from fim_server.language.stop import on_stop
from fim_server.models.backend import LEAST_WINDOW, require_crop, require_tokens
from fim_server.models.masking import word_count
from fim_server.models.numpy_logits import NumpyArithmetic
from fim_server.models.weights import has_weights

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

PACKAGE, MODULE = "onnxruntime", "onnxruntime"

HOW_TO_INSTALL = f"pip install {PACKAGE} brings it where it has a wheel (Linux, Windows, macOS on ARM64)"

EXPORT_FOLDER, CONFIGURATION, RECORD = "onnx", "genai_config.json", "export.json"

DIGEST = "weights_sha256"
"""Field of the record with the digest of the exported weights; a folder without a record is taken as it is."""

DIGESTED_BYTES = 1 << 20
"""Bytes to digest at either end of a file of weights, since hashing gigabytes takes long; training changes all of
them.
"""

POSITIONS = "logits_positions"
"""Constant of a graph that a pass may override: the positions whose logits are computed."""

KINDS: dict[str, type[np.generic]] = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
"""Number types of a graph, by the library's names."""

FATAL = 4
"""Log level that keeps onnxruntime's errors off the terminal: they come as exceptions with the same words."""


REST_BETWEEN_PASSES = ("session.force_spinning_stop", "1")
"""Setting that lets threads sleep between passes instead of keeping processors busy."""

NO_TELEMETRY = {"ORT_DISABLE_TELEMETRY": "1"}
"""Environment that keeps the library from sending usage events to its maker, and from writing an identifier of the
machine to the user's cache folder. The library reads it once, when it is loaded.
"""


def is_installed() -> bool:
    return find_spec(MODULE) is not None


def load_library() -> Any:
    """Import the package with its telemetry off; every import of it in this project goes through here.

    Raises:
        ImportError: It is not installed, or does not fit the system.
    """
    os.environ.update(NO_TELEMETRY)
    return import_module(MODULE)


def export_of(model_folder: Path) -> Path | None:
    """Return the folder of a model's export, or None where it has none."""
    folder = model_folder / EXPORT_FOLDER
    return folder if (folder / CONFIGURATION).is_file() else None


def is_stale(model_folder: Path) -> bool:
    """Return whether a model's export records other weights than the folder holds.

    A folder without weights has nothing to compare; the manifest of a model in the cache has its export's checksums.
    """
    try:
        recorded = parse_json(read_found(model_folder / EXPORT_FOLDER / RECORD))[DIGEST]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return has_weights(model_folder) and bool(recorded != weights_digest(model_folder))


def weights_digest(model_folder: Path) -> str:
    """Return SHA-256 of the sizes and both ends of a folder's files of weights."""
    digest = hashlib.sha256()
    for path in sorted(model_folder.glob("*.safetensors")):
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as file:
            digest.update(file.read(DIGESTED_BYTES))
            file.seek(max(0, size - DIGESTED_BYTES))
            digest.update(file.read())
    return digest.hexdigest()


class OnnxBackend:
    """Loaded export.

    Attributes:
        size: Length of a row of logits, V.
        window: Tokens of the context window.
        threads: Threads within an operator.
        gives_rows: Whether the graph has :data:`POSITIONS`.
    """

    name = "onnx"
    device = "cpu"
    arithmetic = NumpyArithmetic()

    def __init__(self, folder: Path, threads: int, room: int | None = None) -> None:
        """Load an export for a number of threads. ``room``: a cache's default size in tokens.

        Raises:
            ModelError: The export or the package cannot be loaded; one line.
        """
        self.threads = threads
        try:
            configuration = parse_json(read_found(folder / CONFIGURATION))
            described = configuration["model"]
            self.size, self.window = int(described["vocab_size"]), int(described["context_length"])
            if not configuration["search"].get("past_present_share_buffer"):
                # Written over in place, such a graph's keys and values would be wrong, and nothing would say so.
                raise ValueError("its keys and values are not kept in place (past_present_share_buffer)")
            self._library = load_library()
            options = self._library.SessionOptions()
            options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
            options.log_severity_level = FATAL
            options.add_session_config_entry(*REST_BETWEEN_PASSES)
            graph = folder / described["decoder"]["filename"]
            if not graph.is_file():  # the library would wait for a pipe's other end
                raise ValueError(f"{graph.name}: no such file")
            self._session = self._library.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
            self._ends = Ends.of(self._session, described["decoder"])
            self.gives_rows = any(one.name == POSITIONS for one in self._session.get_overridable_initializers())
            given = next(one for one in self._session.get_outputs() if one.name == self._ends.logits).shape[-1]
            if self.size != given and (isinstance(given, int) or self.size < 1):
                raise ValueError(f"logits of {given} tokens, and the configuration says {self.size}")
            if self.window < LEAST_WINDOW:
                raise ValueError(f"a window of {self.window} tokens")
        except Exception as error:  # errors of the package, JSON and files
            problem = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise ModelError(f"{folder}: the export cannot be loaded ({problem})") from error
        self._room = self.window if room is None else room

    def new_cache(self, room: int | None = None) -> OnnxCache:
        """Make an empty KV cache for ``room`` tokens, by default for the backend's own size.

        Its address space is claimed at once, and its memory as it is filled. The 8,192 tokens of a model with 30 layers
        and 3 heads of 64 take 360 MB.
        """
        room = self._room if room is None else min(room, self.window)
        return OnnxCache(self._library, self._session, self._ends, self.size, room, self.gives_rows)

    def forward(self, token_ids: Sequence[int], cache: OnnxCache) -> NDArray[np.float32]:
        return cache.forward(token_ids)

    def forward_rows(self, token_ids: Sequence[int], cache: OnnxCache, rows: int) -> list[NDArray[np.float32]]:
        return cache.forward_rows(token_ids, rows)

    def mask_words(self, size: int) -> NDArray[np.uint32]:
        return np.zeros(word_count(size), dtype=np.uint32)


@dataclass(frozen=True)
class Ends:
    """Inputs and outputs of a graph, by its configuration.

    Attributes:
        ids: Input of token ids.
        mask: Input of the attention mask.
        positions: Input of the positions, if there is one.
        logits: Output of the logits.
        kept: Input and output of each layer's keys, and of its values.
        shape: Heads and head width of a layer's keys.
        kind: Number type of keys and values.
    """

    ids: str
    mask: str
    positions: str | None
    logits: str
    kept: tuple[tuple[str, str], ...]
    shape: tuple[int, int]
    kind: type[np.generic]

    @classmethod
    def of(cls, session: Any, decoder: Any) -> Ends:
        """Read a graph's inputs and outputs.

        Raises ValueError for an unknown input, and KeyError for a missing field.
        """
        inputs, outputs = decoder["inputs"], decoder["outputs"]
        layers = range(int(decoder["num_hidden_layers"]))
        kept = tuple(
            (inputs[f"past_{part}_names"] % layer, outputs[f"present_{part}_names"] % layer)
            for layer in layers
            for part in ("key", "value")
        )
        taken = {one.name: one for one in session.get_inputs()}
        known = {inputs["input_ids"], inputs["attention_mask"], inputs.get("position_ids"), *(past for past, _ in kept)}
        if unknown := sorted(set(taken) - known):
            raise ValueError(f"nothing is known of the input {unknown[0]}")
        shape = int(decoder["num_key_value_heads"]), int(decoder["head_size"])
        for past, _ in kept:
            sizes = taken[past].shape[1::2]
            if any(isinstance(size, int) and size != wanted for size, wanted in zip(sizes, shape, strict=True)):
                raise ValueError(f"{past} has other sizes than the configuration says")
        kind = KINDS.get(taken[kept[0][0]].type)
        if kind is None:
            raise ValueError("keys and values are neither float32 nor float16")
        positions = inputs.get("position_ids")
        return cls(
            inputs["input_ids"],
            inputs["attention_mask"],
            positions if positions in taken else None,
            outputs["logits"],
            kept,
            shape,
            kind,
        )


class OnnxCache:
    """KV cache of an export, updated in place. One thread at a time."""

    def __init__(self, library: Any, session: Any, ends: Ends, size: int, room: int, gives_rows: bool = False) -> None:
        """Make a cache for ``room`` tokens. ``size``: length of a row of logits; ``gives_rows``: as of the backend."""
        self._library, self._session, self._ends, self._size, self._room = library, session, ends, size, room
        self._gives_rows = gives_rows
        self._length = 0
        self._binding = session.io_binding()
        heads, width = ends.shape
        for past, present in ends.kept:
            # One buffer is input and output: the attention (GroupQueryAttention) writes behind what is there.
            buffer = library.OrtValue.ortvalue_from_shape_and_type(
                [1, heads, room + gives_rows, width], ends.kind, "cpu"
            )
            self._binding.bind_ortvalue_input(past, buffer)
            self._binding.bind_ortvalue_output(present, buffer)

    def forward(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        """Read on, and return the logits [V] after the last token, in memory of their own.

        Raises:
            RuntimeError: There is no token, an unknown one, or no room in the window.
            StoppedError: The caller's stop was set; nothing was read.
        """
        return self.forward_rows(token_ids, 1)[-1]

    def forward_rows(self, token_ids: Sequence[int], rows: int) -> list[NDArray[np.float32]]:
        """Read on, and return the logits after the last token, or after each of ``rows`` where the graph gives them.

        A graph that gives rows reads another token after a single one, and forgets it. With one row, the attention uses
        another matrix kernel, whose sums differ in the last bits; where activations are rounded to 8 bits, logits then
        differ by 1. From two rows on, each row is the same to the last bit (docs/results/drafts.md).
        """
        count = len(token_ids)
        require_tokens(token_ids, self._size)
        if self._length + count > self._room:
            raise RuntimeError(f"{self._length + count} tokens are above the cache's max length, {self._room}")
        padded = [*token_ids, 0] if count == 1 and self._gives_rows else token_ids
        logits = self._run(padded, range(count - rows, count))
        self._length += count
        return list(np.array(logits[-rows:], dtype=np.float32))

    def _run(self, token_ids: Sequence[int], positions: Sequence[int]) -> NDArray[np.generic]:
        """Run a pass and return the logits [rows, V] at positions in it; its tokens do not count yet.

        The logits are in the runtime's memory. A graph that takes no positions gives those of the last token, or of
        all.
        """
        ids = np.array([token_ids], dtype=np.int64)
        total = self._length + ids.size
        ends, value = self._ends, self._library.OrtValue.ortvalue_from_numpy
        self._binding.bind_ortvalue_input(ends.ids, value(ids))
        self._binding.bind_ortvalue_input(ends.mask, value(np.ones((1, total), dtype=np.int64)))
        if ends.positions is not None:
            self._binding.bind_ortvalue_input(ends.positions, value(np.arange(self._length, total)[None]))
        if self._gives_rows:
            self._binding.bind_ortvalue_input(POSITIONS, value(np.array(positions, dtype=np.int64)))
        self._binding.bind_output(ends.logits, "cpu")
        options = self._library.RunOptions()
        options.log_severity_level = FATAL

        def leave() -> None:
            options.terminate = True  # looked at before each operator, of which a pass has hundreds

        try:
            with on_stop(leave):
                self._session.run_with_iobinding(self._binding, options)
        except Exception as error:  # the package's own kinds, which have no common base but this
            if options.terminate:  # the written part does not count as read
                raise StoppedError("the model's pass was left") from error
            raise RuntimeError(str(error)) from error
        logits: NDArray[np.generic] = self._binding.get_outputs()[-1].numpy()[0]  # [1, T or rows, V]; bound last
        return logits

    def crop(self, length: int) -> None:
        """Take back the last ``-length`` tokens, as transformers' caches do.

        Raises:
            ValueError: ``length`` is not negative, or there are fewer tokens.
        """
        require_crop(length, self._length)
        self._length += length
