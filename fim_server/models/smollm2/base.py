"""The base model, read without torch from a GGUF file or a folder in the transformers layout.

ggml's docs/gguf.md describes GGUF. llama.cpp rotates neighbouring numbers of a head, transformers those half a head
apart, so llama.cpp's converter reorders the rows of the query and key projections. Reading a file undoes that.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fim_server.errors import ModelError, first_line
from fim_server.models.smollm2.shape import EMBEDDING, FINAL_NORM, LlamaShape, shape_of
from fim_server.models.smollm2.tokens import gguf_tokenizer, named_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from fim_server.models.smollm2.shape import Weights

ARCHITECTURE = "llama"

LAYER_TENSORS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
"""GGUF's names of a layer's weights, by their names in a transformers folder."""

WEIGHTS_FILE, CONFIG_FILE, TOKENIZER_FILE = "model.safetensors", "config.json", "tokenizer.json"


@dataclass(frozen=True)
class Base:
    """Base model.

    Attributes:
        shape: Shape of its network.
        tokenizer: Its tokenizer, with the names of the control tokens.
        weight: Returns each weight by its name in a transformers folder, float32.
    """

    shape: LlamaShape
    tokenizer: Tokenizer
    weight: Weights


def read_base(source: Path) -> Base:
    """Read a GGUF file or a transformers folder. Raises ModelError, in one line, where it is incomplete."""
    try:
        base = read_folder(source) if source.is_dir() else read_gguf(source)
    except ModelError as error:
        raise ModelError(f"{source}: {error}") from error
    except Exception as error:  # the libraries raise what comes up, down to IndexError
        raise ModelError(f"{source}: no model that can be read ({first_line(error)})") from error
    return base


def read_folder(folder: Path) -> Base:
    """Read a transformers folder with its weights in one file."""
    from safetensors import safe_open
    from tokenizers import Tokenizer

    shape = shape_of(json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8")))
    file: Any = safe_open(folder / WEIGHTS_FILE, framework="numpy")
    check_sizes(shape, {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()})  # noqa: SIM118
    tokenizer = named_tokenizer(Tokenizer.from_file(str(folder / TOKENIZER_FILE)))

    def weight(name: str) -> NDArray[np.float32]:
        values: NDArray[np.float32] = file.get_tensor(name).astype(np.float32)
        return values

    return Base(shape, tokenizer, weight)


def read_gguf(path: Path) -> Base:
    """Read a GGUF file of a Llama in any of the format's precisions."""
    import gguf

    reader = gguf.GGUFReader(path)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    shape = gguf_shape(fields)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    names = {name: gguf_name(name) for name, _ in shape.sizes()}
    present = {name: tensors[stored].shape[::-1] for name, stored in names.items() if stored in tensors}
    check_sizes(shape, {name: tuple(int(size) for size in sizes) for name, sizes in present.items()})

    def weight(name: str) -> NDArray[np.float32]:
        tensor = tensors[names[name]]
        values: NDArray[np.float32] = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        for part, heads in (("q_proj", shape.heads), ("k_proj", shape.kv_heads)):
            if name.endswith(f"{part}.weight"):
                values = halves_apart(values, heads)
        return values

    return Base(shape, gguf_tokenizer(fields), weight)


def gguf_shape(fields: dict[str, Any]) -> LlamaShape:
    """Return the shape in a GGUF file's metadata. Raises ModelError where it is no Llama."""
    architecture = fields.get("general.architecture")
    if architecture != ARCHITECTURE:
        raise ModelError(f"architecture {architecture}, not {ARCHITECTURE}")
    try:
        own = {name.removeprefix(f"{ARCHITECTURE}."): value for name, value in fields.items()}
        width, heads = int(own["embedding_length"]), int(own["attention.head_count"])
        return LlamaShape(
            vocabulary=len(fields["tokenizer.ggml.tokens"]),
            width=width,
            inner=int(own["feed_forward_length"]),
            layers=int(own["block_count"]),
            heads=heads,
            kv_heads=int(own["attention.head_count_kv"]),
            head_size=int(own.get("rope.dimension_count", width // heads)),
            window=int(own["context_length"]),
            epsilon=round_trip(own["attention.layer_norm_rms_epsilon"]),
            theta=float(own["rope.freq_base"]),
        )
    except KeyError as error:
        raise ModelError(f"its metadata lack {error.args[0]}") from error


def round_trip(number: float) -> float:
    """Return the shortest decimal number that is equal in float32, GGUF's precision."""
    return float(str(np.float32(number)))


def gguf_name(name: str) -> str:
    if name == EMBEDDING:
        return "token_embd.weight"
    if name == FINAL_NORM:
        return "output_norm.weight"
    _, _, layer, part = name.removesuffix(".weight").split(".", 3)
    return f"blk.{layer}.{LAYER_TENSORS[part]}.weight"


def halves_apart(matrix: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Return a projection's rows in transformers' order: each head's even ones, then its odd ones."""
    paired = matrix.reshape(heads, -1, 2, matrix.shape[1])
    return np.ascontiguousarray(paired.swapaxes(1, 2).reshape(matrix.shape))


def check_sizes(shape: LlamaShape, found: dict[str, tuple[int, ...]]) -> None:
    """Raise ModelError where a weight is missing, or of another size."""
    for name, wanted in shape.sizes():
        if found.get(name) != wanted:
            raise ModelError(f"{name} is of shape {found.get(name)}, not {wanted}")
