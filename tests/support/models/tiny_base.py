"""A small random Llama as a GGUF file, with a tokenizer of the same kind as SmolLM2's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray
from tokenizers import pre_tokenizers

from fim_server.models.smollm2.base import gguf_name
from fim_server.models.smollm2.shape import EMBEDDING, LlamaShape

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>", "<file_sep>", "<filename>")
UNUSED = ("<gh_stars>", "<issue_start>", "<issue_comment>", "<issue_closed>")
MERGES = ("Ġ Ġ", "e t", "r et", "d e", "de f", "ĠĠ ĠĠ")

SHAPE = LlamaShape(
    vocabulary=len(SPECIAL) + len(UNUSED) + 256 + len(MERGES),
    width=64,
    inner=96,
    layers=2,
    heads=4,
    kv_heads=2,
    head_size=32,
    window=512,
    epsilon=1e-5,
    theta=100_000.0,
)


def tiny_weights(seed: int = 0, shape: LlamaShape = SHAPE) -> dict[str, NDArray[np.float32]]:
    """Random weights by their names in a transformers folder, of numbers that float16 has."""
    numbers = np.random.default_rng(seed)
    weights = {}
    for name, size in shape.sizes():
        spread = 0.6 / np.sqrt(size[-1]) if name != EMBEDDING else 1.0
        values = 1 + 0.2 * numbers.normal(size=size) if "norm" in name else spread * numbers.normal(size=size)
        weights[name] = values.astype(np.float16).astype(np.float32)
    return weights


def neighbours_together(matrix: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rows of a projection as llama.cpp's converter orders them (``LlamaModel.permute``)."""
    return matrix.reshape(heads, 2, -1, matrix.shape[1]).swapaxes(1, 2).reshape(matrix.shape)


def token_names() -> list[str]:
    """Return the names of all tokens by id."""
    bytes_ = sorted(pre_tokenizers.ByteLevel.alphabet())
    return [*SPECIAL, *UNUSED, *bytes_, *(merge.replace(" ", "") for merge in MERGES)]


def write_renamed_base(path: Path, names: dict[str, str], **changes: Any) -> Path:
    """Write the file with other names of some special tokens; it ends texts with the first token."""
    assert set(names) <= set(SPECIAL + UNUSED)
    tokens = [names.get(name, name) for name in token_names()]
    told = {"add_token_list": tokens, "add_eos_token_id": 0, "add_key_length": 32, "add_value_length": 32}
    return write_tiny_base(path, tiny_weights(), **told, **changes)


def write_tiny_base(path: Path, weights: dict[str, NDArray[np.float32]], **changes: Any) -> Path:
    """Write the file; ``changes``: of its metadata, arguments by the names of the writer's methods."""
    writer = gguf.GGUFWriter(path, "llama")
    bytes_ = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = token_names()
    kinds = [3] * len(SPECIAL + UNUSED) + [1] * (len(bytes_) + len(MERGES))
    told: dict[str, Any] = {
        "add_block_count": SHAPE.layers,
        "add_context_length": SHAPE.window,
        "add_embedding_length": SHAPE.width,
        "add_feed_forward_length": SHAPE.inner,
        "add_head_count": SHAPE.heads,
        "add_head_count_kv": SHAPE.kv_heads,
        "add_rope_dimension_count": SHAPE.head_size,
        "add_rope_freq_base": SHAPE.theta,
        "add_layer_norm_rms_eps": SHAPE.epsilon,
        "add_tokenizer_model": "gpt2",
        "add_tokenizer_pre": "smollm",
        "add_token_list": tokens,
        "add_token_types": kinds,
        "add_token_merges": list(MERGES),
        **changes,
    }
    for method, value in told.items():
        if value is not None:
            getattr(writer, method)(value)
    for name, values in weights.items():
        heads = {"q_proj": SHAPE.heads, "k_proj": SHAPE.kv_heads}.get(name.split(".")[-2])
        stored = values if heads is None else neighbours_together(values, heads)
        kept = stored if values.ndim == 1 else stored.astype(np.float16)
        writer.add_tensor(gguf_name(name), np.ascontiguousarray(kept))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
