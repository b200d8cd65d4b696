"""Writer of a model of this package as a GGUF file, for llama.cpp here and for servers elsewhere (llama.cpp, Ollama).

It writes Llamas with a tied embedding, which the models of this package are. It refuses a tokenizer whose splitter
llama.cpp does not know, since llama.cpp would encode texts as the model has never seen them. The format is ggml's
(``docs/gguf.md``); the package `gguf` rounds as llama.cpp does.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from fim_server.errors import ModelError, first_line
from fim_server.models.smollm2.base import CONFIG_FILE, TOKENIZER_FILE, WEIGHTS_FILE, gguf_name
from fim_server.models.smollm2.shape import EMBEDDING, LlamaShape, shape_of
from fim_server.models.smollm2.tokens import CONTROL, SPLITTER, USER_DEFINED
from fim_server.models.weights import require_weights

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

PRECISIONS = ("f32", "f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")
"""Precisions of the weights, largest file first."""

EMBEDDING_PRECISION = "q8_0"
"""Least precision of the embedding, because it is also the output layer, which decides between tokens."""

SPLITTERS = {
    SPLITTER: [
        {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    ],
}
"""Splitters of texts before byte-pair encoding, in the words of a tokenizer.json, by llama.cpp's names."""

NORMAL = 1
"""Kind of tokens that are found by merging; see :mod:`..smollm2.tokens`."""

FILL_IN_NAMES = {"fim_pre": "<|fim_prefix|>", "fim_suf": "<|fim_suffix|>", "fim_mid": "<|fim_middle|>"}
"""Tokens of prompts that llama.cpp's server looks for in a file, by the metadata's names."""

END_NAME = "<|endoftext|>"


def write_gguf(folder: Path, path: Path, precision: str, splitter: str | None = None) -> None:
    """Write a model folder as a GGUF file.

    Args:
        folder: A folder in the transformers layout, with its weights in one file.
        path: The file to write; an existing one is replaced once the new one is complete.
        precision: One of :data:`PRECISIONS`.
        splitter: llama.cpp's name of the splitter; None: the tokenizer's.

    Raises:
        ModelError: The model or the file cannot be written; one line.
    """
    try:
        config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        described = json.loads((folder / TOKENIZER_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder}: no model folder that can be read ({first_line(error)})") from error
    shape = shape_of(config)
    splitter = splitter_of(described, folder) if splitter is None else splitter
    require_weights(folder, folder.name)
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        write(shape, described, splitter, folder / WEIGHTS_FILE, unfinished, precision)
        unfinished.replace(path)
    except OSError as error:
        raise ModelError(f"{path}: cannot be written ({error.strerror or error})") from error
    finally:
        unfinished.unlink(missing_ok=True)


def splitter_of(described: Any, folder: Path) -> str:
    """Return llama.cpp's name of a tokenizer's splitter. Raises ModelError for an unknown one."""
    split = described.get("pre_tokenizer") or {}
    for name, parts in SPLITTERS.items():
        if split.get("pretokenizers") == parts and not described.get("normalizer"):
            return name
    raise ModelError(f"{folder}: cannot be a GGUF file: llama.cpp has no name for how its tokenizer splits texts")


def write(shape: LlamaShape, described: Any, splitter: str, weights: Path, path: Path, precision: str) -> None:
    import gguf
    from safetensors import safe_open

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(shape.window)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_size)
    writer.add_value_length(shape.head_size)
    writer.add_rope_dimension_count(shape.head_size)
    writer.add_layer_norm_rms_eps(shape.epsilon)
    writer.add_rope_freq_base(shape.theta)
    writer.add_vocab_size(shape.vocabulary)
    add_tokenizer(writer, described, splitter, shape.vocabulary)
    file: Any = safe_open(weights, framework="numpy")
    for name, size in shape.sizes():
        tensor: NDArray[np.float32] = file.get_tensor(name).astype(np.float32)
        if tensor.shape != size:
            raise ModelError(f"{weights}: {name} is of shape {tensor.shape}, not {size}")
        for part, heads in (("q_proj", shape.heads), ("k_proj", shape.kv_heads)):
            if name.endswith(f"{part}.weight"):
                tensor = neighbouring(tensor, heads)
        kind = kind_of(name, tensor, precision)
        if kind in ("f32", "f16"):
            writer.add_tensor(gguf_name(name), tensor.astype(np.float16 if kind == "f16" else np.float32))
        else:
            quantisation = gguf.GGMLQuantizationType[kind.upper()]
            packed = gguf.quantize(tensor, quantisation)
            writer.add_tensor(gguf_name(name), packed, raw_dtype=quantisation)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def kind_of(name: str, tensor: NDArray[np.float32], precision: str) -> str:
    """Return a tensor's precision: vectors stay float32, and rows that are no multiple of a block become float16."""
    if tensor.ndim == 1:
        return "f32"
    if precision.startswith("q") and tensor.shape[-1] % 32:
        return "f16"
    return EMBEDDING_PRECISION if name == EMBEDDING and precision.startswith("q") else precision


def add_tokenizer(writer: Any, described: Any, splitter: str, size: int) -> None:
    """Add the tokens, their kinds and their merges; ids beyond the tokenizer's get names of their own."""
    vocabulary = described["model"]["vocab"]
    names = {number: token for token, number in vocabulary.items()}
    kinds = dict.fromkeys(names, NORMAL)
    for added in described["added_tokens"]:
        names[added["id"]] = added["content"]
        kinds[added["id"]] = CONTROL if added["special"] else USER_DEFINED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(splitter)
    writer.add_token_list([names.get(number, f"[unused {number}]") for number in range(size)])
    writer.add_token_types([kinds.get(number, CONTROL) for number in range(size)])
    merges = described["model"]["merges"]
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in merges])
    ids = {name: number for number, name in names.items()}
    if END_NAME in ids:
        writer.add_eos_token_id(ids[END_NAME])
        writer.add_bos_token_id(ids[END_NAME])
    writer.add_add_bos_token(False)
    for key, name in FILL_IN_NAMES.items():
        if name in ids:
            writer.add_uint32(f"tokenizer.ggml.{key}_token_id", ids[name])


def neighbouring(matrix: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Return a projection's rows in llama.cpp's order, which rotates neighbouring numbers of a head."""
    halves = matrix.reshape(heads, 2, -1, matrix.shape[1])
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(matrix.shape))
