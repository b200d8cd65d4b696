"""Forward pass of a Llama in numpy, to measure activations, and as a plain twin of the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fim_server.models.smollm2.shape import EMBEDDING, FINAL_NORM, weight_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from fim_server.models.smollm2.shape import LlamaShape, Weights

    Array = NDArray[np.float32]


def forward(
    shape: LlamaShape,
    weight: Weights,
    tokens: Sequence[int],
    observe: Callable[[int, str, Array], None] = lambda layer, part, values: None,
) -> Array:
    """Return the input [T, width] of the output layer for T tokens.

    ``observe`` receives the input [T, K] of each layer's matrices, by the parts of an adapter.
    """
    turns = rotations(shape, len(tokens))
    unseen = np.where(np.tri(len(tokens), dtype=bool), np.float32(0), np.float32(-np.inf))
    stream = weight(EMBEDDING)[list(tokens)]
    for layer in range(shape.layers):

        def multiply(values: Array, name: str, number: int = layer) -> Array:
            product: Array = values @ weight(weight_name(number, name)).T
            return product

        normed = norm(stream, weight(weight_name(layer, "input_layernorm")), shape.epsilon)
        observe(layer, "qkv", normed)
        queries, keys, values = (multiply(normed, f"self_attn.{part}_proj") for part in "qkv")
        heads = attend(shape, rotate(shape, queries, turns), rotate(shape, keys, turns), values, unseen)
        observe(layer, "o", heads)
        stream = stream + multiply(heads, "self_attn.o_proj")
        normed = norm(stream, weight(weight_name(layer, "post_attention_layernorm")), shape.epsilon)
        observe(layer, "gate_up", normed)
        gate, up = multiply(normed, "mlp.gate_proj"), multiply(normed, "mlp.up_proj")
        inner = gate / (1 + np.exp(-gate)) * up
        observe(layer, "down", inner)
        stream = stream + multiply(inner, "mlp.down_proj")
    return norm(stream, weight(FINAL_NORM), shape.epsilon)


def norm(stream: Array, gain: Array, epsilon: float) -> Array:
    """Normalise a stream [T, width] by its root mean square."""
    mean = np.square(stream).mean(1, keepdims=True)
    normed: Array = stream / np.sqrt(mean + np.float32(epsilon)) * gain
    return normed


def rotations(shape: LlamaShape, count: int) -> tuple[Array, Array]:
    """Return cosines and sines [count, 1, head size / 2] of Su et al., *RoFormer* (arXiv 2104.09864), section 3.2.2."""
    size = shape.head_size
    frequencies = shape.theta ** (-np.arange(0, size, 2, dtype=np.float64) / size)
    angles = np.outer(np.arange(count), frequencies)[:, None]
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def rotate(shape: LlamaShape, projected: Array, turns: tuple[Array, Array]) -> Array:
    """Rotate queries or keys [T, heads * head size] by their positions, into [T, heads, head size]."""
    cosines, sines = turns
    one, other = np.split(projected.reshape(len(projected), -1, shape.head_size), 2, axis=2)
    return np.concatenate([one * cosines - other * sines, other * cosines + one * sines], axis=2)


def attend(shape: LlamaShape, queries: Array, keys: Array, values: Array, unseen: Array) -> Array:
    """Return the causal attention [T, heads * head size] of queries and keys [T, heads, head size] over values.

    ``unseen`` [T, T] is minus infinity where a token does not see another.
    """
    count, group = len(queries), shape.heads // shape.kv_heads
    read = values.reshape(count, shape.kv_heads, shape.head_size)
    scale = np.float32(shape.head_size**-0.5)
    heads = []
    for head in range(shape.heads):
        scores = queries[:, head] @ keys[:, head // group].T * scale + unseen
        shares = np.exp(scores - scores.max(1, keepdims=True))
        heads.append(shares / shares.sum(1, keepdims=True) @ read[:, head // group])
    return np.concatenate(heads, axis=1)
