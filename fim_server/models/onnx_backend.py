"""Exported models on onnxruntime-genai: on a CPU several times as fast as torch at decoding, and far smaller.

An export is the folder ``onnx`` in a model's own (``python -m fim_server.training onnx`` writes it). Nothing here knows
torch, tokenizers or prompts; rows of logits are numpy arrays. The package has wheels for Linux (x86-64 and ARM64 with
glibc), Windows and macOS on ARM64; elsewhere torch runs the model.
"""

from __future__ import annotations

import hashlib
import json
import os
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from fim_server.errors import ModelError
from fim_server.models.masking import word_count
from fim_server.models.numpy_logits import NumpyArithmetic

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

PACKAGE, MODULE = "onnxruntime-genai", "onnxruntime_genai"

HOW_TO_INSTALL = f"pip install {PACKAGE} brings it where it has a wheel (Linux, Windows, macOS on ARM64)"

EXPORT_FOLDER, CONFIGURATION, RECORD = "onnx", "genai_config.json", "export.json"

DIGEST = "weights_sha256"
"""The record's field that says of which weights the export is; a folder without a record is taken as it is."""

DIGESTED_BYTES = 1 << 20
"""Of either end of a file of weights: training changes all of them, and nobody should wait for gigabytes."""

FATAL = 4
"""The log level of onnxruntime that keeps its errors off the terminal: they come as exceptions, with the same words."""


NO_TELEMETRY = {"ORT_DISABLE_TELEMETRY": "1"}
"""What keeps the libraries from sending usage events to their maker, and from leaving an identifier of the machine in
the user's cache folder: both do so by default, and look at the environment once, when they are loaded."""


def is_installed() -> bool:
    """Whether the package can be imported."""
    return find_spec(MODULE) is not None


def load_library() -> Any:
    """The package, imported with its telemetry off; nothing of the project imports it another way.

    Raises:
        ImportError: It is not installed, or does not fit the system.
    """
    os.environ.update(NO_TELEMETRY)
    return import_module(MODULE)


def export_of(model_folder: Path) -> Path | None:
    """The folder of a model's export, or None where it has none."""
    folder = model_folder / EXPORT_FOLDER
    return folder if (folder / CONFIGURATION).is_file() else None


def is_stale(model_folder: Path) -> bool:
    """Whether a model's export is, by its own record, of other weights than the folder holds."""
    try:
        recorded = json.loads((model_folder / EXPORT_FOLDER / RECORD).read_text(encoding="utf-8"))[DIGEST]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(recorded != weights_digest(model_folder))


def weights_digest(model_folder: Path) -> str:
    """SHA-256 of the sizes and both ends of a folder's files of weights."""
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
    """A loaded export.

    Attributes:
        size: Length of a row of logits, V.
        window: Tokens that the model can attend to.
        threads: Threads within an operator.
    """

    name = "onnx"
    device = "cpu"
    arithmetic = NumpyArithmetic()

    def __init__(self, folder: Path, threads: int, room: int | None = None) -> None:
        """Load an export for a number of threads; ``room``: tokens that a cache holds where nothing else is said.

        Raises:
            ModelError: It cannot be loaded, or the package cannot; one line.
        """
        options = {"intra_op_num_threads": threads, "inter_op_num_threads": 1, "log_severity_level": FATAL}
        self.threads = threads
        try:
            described = json.loads((folder / CONFIGURATION).read_text(encoding="utf-8"))["model"]
            self.size, self.window = int(described["vocab_size"]), int(described["context_length"])
            library = load_library()
            config = library.Config(str(folder))
            config.overlay(json.dumps({"model": {"decoder": {"session_options": options}}}))
            self._model = library.Model(config)
        except Exception as error:  # what the package, JSON and the files raise
            problem = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise ModelError(f"{folder}: the export cannot be loaded ({problem})") from error
        self._library = library
        self._room = self.window if room is None else room

    def new_cache(self, room: int | None = None) -> OnnxCache:
        """An empty KV cache for so many tokens, by default for the backend's own room.

        All of its memory is taken at once: 360 MB for the 8,192 tokens of a model with 30 layers and 3 heads of 64.
        """
        parameters = self._library.GeneratorParams(self._model)
        parameters.set_search_options(max_length=self._room if room is None else min(room, self.window))
        return OnnxCache(self._library.Generator(self._model, parameters))

    def forward(self, token_ids: Sequence[int], cache: OnnxCache) -> NDArray[np.float32]:
        """As :meth:`.backend.Backend.forward`."""
        return cache.forward(token_ids)

    def mask_words(self, size: int) -> NDArray[np.uint32]:
        """As :meth:`.backend.Backend.mask_words`."""
        return np.zeros(word_count(size), dtype=np.uint32)


class OnnxCache:
    """What a model has read: the keys and values are the generator's, who computes too. One thread at a time."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def forward(self, token_ids: Sequence[int]) -> NDArray[np.float32]:
        """Read on. Returns the logits [V] after the last token, in memory of their own.

        Raises:
            RuntimeError: There is no token, one that the model does not know, or no room in the window.
        """
        self._generator.append_tokens(list(token_ids))
        logits: NDArray[np.float32] = self._generator.get_logits()[0, -1]  # of [1, 1, V], which is a copy
        return logits

    def crop(self, length: int) -> None:
        """Take back the last ``-length`` tokens, as transformers' caches do.

        Raises:
            ValueError: ``length`` is not negative, or there are fewer tokens.
        """
        kept = self._generator.token_count() + length
        if length >= 0 or kept < 0:
            raise ValueError(f"cannot take back {-length} of {self._generator.token_count()} tokens")
        self._generator.rewind_to(kept)
