"""The library of llama.cpp in the package `xllamacpp`, called through ctypes.

That package's Python interface is a server, but its library exports llama.cpp's C interface (``llama.h``). Functions
take plain numbers and addresses, which stay the same from release to release. Three structures are passed by value, and
their fields move between releases. So loading compares the library's defaults with the declarations here, and refuses a
release whose fields have moved.

A wheel for a GPU (CUDA, ROCm, Metal) has the same name and the same interface.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fim_server.errors import ModelError

PACKAGE, VERSION = "xllamacpp", "2026.10.11549"

HOW_TO_INSTALL = "pip install 'fim-server[gguf]'"

Address = ctypes.c_void_p

LOG_ERROR = 4
"""Level of errors in llama.cpp's log (``ggml_log_level``)."""


class ModelOptions(ctypes.Structure):
    """Structure ``llama_model_params``."""

    _fields_ = (
        ("devices", Address),
        ("tensor_buffers", Address),
        ("gpu_layers", ctypes.c_int32),
        ("split_mode", ctypes.c_int32),
        ("load_mode", ctypes.c_int32),
        ("lazy_mode", ctypes.c_int32),
        ("main_gpu", ctypes.c_int32),
        ("tensor_split", Address),
        ("progress", Address),
        ("progress_data", Address),
        ("overrides", Address),
        ("vocabulary_only", ctypes.c_bool),
        ("check_tensors", ctypes.c_bool),
        ("repack", ctypes.c_bool),
        ("no_host", ctypes.c_bool),
        ("no_alloc", ctypes.c_bool),
        ("load_mtp", ctypes.c_bool),
    )


class ContextOptions(ctypes.Structure):
    """Structure ``llama_context_params``; unused fields have names with an underscore."""

    _fields_ = (
        ("room", ctypes.c_uint32),
        ("batch", ctypes.c_uint32),
        ("pass_tokens", ctypes.c_uint32),
        ("sequences", ctypes.c_uint32),
        ("_recurrent", ctypes.c_uint32),
        ("outputs", ctypes.c_uint32),
        ("_outputs_of_one", ctypes.c_uint32),
        ("threads", ctypes.c_int32),
        ("threads_of_batch", ctypes.c_int32),
        ("_kinds", ctypes.c_int32 * 5),
        ("_rope", ctypes.c_float * 6),
        ("_rope_window", ctypes.c_uint32),
        ("_defragmentation", ctypes.c_float),
        ("_callbacks", Address * 2),
        ("keys", ctypes.c_int32),
        ("values", ctypes.c_int32),
        ("_more_callbacks", Address * 3),
        ("embeddings", ctypes.c_bool),
        ("offload_attention", ctypes.c_bool),
        ("no_timings", ctypes.c_bool),
        ("offload_operations", ctypes.c_bool),
        ("whole_window", ctypes.c_bool),
        ("one_buffer", ctypes.c_bool),
        ("_samplers", Address * 3),
    )


class Batch(ctypes.Structure):
    """Structure ``llama_batch``, the tokens of a pass."""

    _fields_ = (
        ("count", ctypes.c_int32),
        ("tokens", ctypes.POINTER(ctypes.c_int32)),
        ("embeddings", Address),
        ("positions", ctypes.POINTER(ctypes.c_int32)),
        ("sequence_counts", ctypes.POINTER(ctypes.c_int32)),
        ("sequences", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("wanted", ctypes.POINTER(ctypes.c_int8)),
    )


INT, TEXT = ctypes.c_int32, ctypes.c_char_p

FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "ggml_backend_load_all": (None, []),
    "llama_adapter_lora_init": (Address, [Address, TEXT]),
    "llama_backend_init": (None, []),
    "llama_batch_free": (None, [Batch]),
    "llama_batch_init": (Batch, [INT, INT, INT]),
    "llama_context_default_params": (ContextOptions, []),
    "llama_decode": (INT, [Address, Batch]),
    "llama_free": (None, [Address]),
    "llama_get_logits_ith": (ctypes.POINTER(ctypes.c_float), [Address, INT]),
    "llama_get_memory": (Address, [Address]),
    "llama_init_from_model": (Address, [Address, ContextOptions]),
    "llama_log_set": (None, [Address, Address]),
    "llama_memory_clear": (None, [Address, ctypes.c_bool]),
    "llama_memory_seq_cp": (None, [Address, INT, INT, INT, INT]),
    "llama_memory_seq_rm": (ctypes.c_bool, [Address, INT, INT, INT]),
    "llama_model_default_params": (ModelOptions, []),
    "llama_model_desc": (INT, [Address, TEXT, ctypes.c_size_t]),
    "llama_model_free": (None, [Address]),
    "llama_model_get_vocab": (Address, [Address]),
    "llama_model_has_encoder": (ctypes.c_bool, [Address]),
    "llama_model_load_from_file": (Address, [TEXT, ModelOptions]),
    "llama_model_meta_val_str": (INT, [Address, TEXT, TEXT, ctypes.c_size_t]),
    "llama_model_n_ctx_train": (INT, [Address]),
    "llama_set_abort_callback": (None, [Address, Address, Address]),
    "llama_set_adapters_lora": (
        INT,
        [Address, ctypes.POINTER(Address), ctypes.c_size_t, ctypes.POINTER(ctypes.c_float)],
    ),
    "llama_set_n_threads": (None, [Address, INT, INT]),
    "llama_supports_gpu_offload": (ctypes.c_bool, []),
    "llama_token_to_piece": (INT, [Address, INT, ctypes.c_char_p, INT, INT, ctypes.c_bool]),
    "llama_tokenize": (INT, [Address, TEXT, INT, ctypes.POINTER(INT), INT, ctypes.c_bool, ctypes.c_bool]),
    "llama_vocab_bos": (INT, [Address]),
    "llama_vocab_get_add_bos": (ctypes.c_bool, [Address]),
    "llama_vocab_get_attr": (INT, [Address, INT]),
    "llama_vocab_get_text": (TEXT, [Address, INT]),
    "llama_vocab_is_eog": (ctypes.c_bool, [Address, INT]),
    "llama_vocab_n_tokens": (INT, [Address]),
    "llama_vocab_type": (INT, [Address]),
}
"""Functions of the library with the types of their results and arguments."""

MODEL_DEFAULTS = {"gpu_layers": -1, "split_mode": 1, "main_gpu": 0, "vocabulary_only": False, "repack": True}
CONTEXT_DEFAULTS = {
    "room": 512,
    "batch": 2048,
    "pass_tokens": 512,
    "sequences": 1,
    "threads": 4,
    "threads_of_batch": 4,
    "keys": 1,
    "values": 1,
    "embeddings": False,
    "offload_attention": True,
    "no_timings": True,
    "offload_operations": True,
    "whole_window": True,
    "one_buffer": False,
}
"""Default values of fields, in releases with the structures above."""

Log = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, Address)


class FirstError:
    """First error of a call, which the library writes to its log alone.

    Attributes:
        first: The first message since :meth:`begin`; it is the cause of later ones.
    """

    def __init__(self) -> None:
        self.first = ""
        self.callback = Log(self._log)
        """Callback of the library; the reference keeps it alive."""

    def begin(self) -> None:
        self.first = ""

    @property
    def reason(self) -> str:
        return self.first or "no reason given"

    def _log(self, level: int, text: bytes | None, data: object) -> None:
        line = (text or b"").decode(errors="replace").strip()
        if level == LOG_ERROR and line and not self.first:
            self.first = line.split(": ", 1)[-1]


first_error = FirstError()


def is_installed() -> bool:
    return find_spec(PACKAGE) is not None


def library_file() -> Path:
    """Return the path of the library, found without importing it. Raises :class:`ModelError` where it is not there."""
    found = find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise ModelError(f"a GGUF file needs llama.cpp: {HOW_TO_INSTALL}")
    names = ("*.pyd", "*.dll") if sys.platform == "win32" else ("*.so", "*.dylib")
    for folder in found.submodule_search_locations:
        for name in names:
            for path in sorted(Path(folder).glob(f"{PACKAGE}{name}")):
                return path
    raise ModelError(f"the package {PACKAGE} has no library in it: {HOW_TO_INSTALL}")


@cache
def load_library() -> Any:
    """Load the library and declare its functions.

    Raises:
        ModelError: The package is not installed, or of a release with other structures.
    """
    path = library_file()
    try:
        library = ctypes.CDLL(str(path))
        for name, (returned, taken) in FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = returned, taken
    except (OSError, AttributeError) as error:
        raise ModelError(f"{path.name}: not the llama.cpp that is known ({error}): {HOW_TO_INSTALL}") from error
    check(library.llama_model_default_params(), MODEL_DEFAULTS)
    check(library.llama_context_default_params(), CONTEXT_DEFAULTS)
    library.llama_log_set(ctypes.cast(first_error.callback, Address), None)
    library.llama_backend_init()
    return library


def check(given: ctypes.Structure, wanted: dict[str, Any]) -> None:
    """Raise ModelError where a structure has other defaults than the declared ones."""
    for name, value in wanted.items():
        if getattr(given, name) != value:
            what = type(given).__name__
            raise ModelError(f"{PACKAGE} is of another release than {VERSION} ({what}.{name}): {HOW_TO_INSTALL}")
