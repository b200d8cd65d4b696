"""Equivalent weights whose activations round better.

Activations of a token share one scale when they are rounded to 8 bits, so one large channel takes the others'
precision. Each input channel of a matrix is divided by a factor, and the matrix's column multiplied by it. The division
is folded into the weights before: a norm's gain, or the rows of the value or up projection. See Xiao et al.,
*SmoothQuant* (arXiv 2211.10438), equation 4.

The largest activations, a few channels of a text's first token, count like all others: all tokens attend to that token,
so it has to be precise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fim_server.models.smollm2.forward import forward
from fim_server.models.smollm2.shape import weight_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fim_server.models.smollm2.shape import LlamaShape, Weights

STRENGTH = 0.5
"""Share of the channels' spread that moves from activations to weights: half, in the geometric mean."""

SMALLEST = 1e-5
"""Least magnitude, so that no channel that was always zero is divided by zero."""

READERS = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "o": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}
"""Matrices that read each of the activations."""

BEFORE = {
    "input_layernorm": "qkv",
    "self_attn.v_proj": "o",
    "post_attention_layernorm": "gate_up",
    "mlp.up_proj": "down",
}
"""Weights into which the division of each of the activations is folded."""


def smooth(shape: LlamaShape, weight: Weights, tokens: Sequence[int]) -> Weights:
    """Return weights of the same network whose activations round better on a text like ``tokens``."""
    seen: dict[tuple[int, str], NDArray[np.float32]] = {}

    def observe(layer: int, part: str, values: NDArray[np.float32]) -> None:
        seen[layer, part] = np.abs(values).max(0)

    forward(shape, weight, tokens, observe)
    factors = {}
    for (layer, part), sizes in seen.items():
        columns = [np.abs(weight(weight_name(layer, name))).max(0) for name in READERS[part]]
        factors[layer, part] = factor(shape, part, sizes, np.max(columns, axis=0))
    changes: dict[str, list[NDArray[np.float32]]] = {}
    for (layer, part), by in factors.items():
        for name in READERS[part]:
            changes.setdefault(weight_name(layer, name), []).append(by[None, :])
        for name, divided in BEFORE.items():
            if divided == part:
                own = np.reciprocal(of_values(shape, by) if part == "o" else by)
                changes.setdefault(weight_name(layer, name), []).append(own if "norm" in name else own[:, None])

    def smoothed(name: str) -> NDArray[np.float32]:
        values = weight(name)
        for change in changes.get(name, ()):
            values = values * change
        return values

    return smoothed


def factor(
    shape: LlamaShape, part: str, sizes: NDArray[np.float32], columns: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the factor of each column [K]; heads that read the same values have the same factors."""
    if part == "o":
        group = (shape.kv_heads, shape.heads // shape.kv_heads, shape.head_size)
        sizes, columns = (
            np.repeat(each.reshape(group).max(1, keepdims=True), group[1], axis=1).reshape(-1)
            for each in (sizes, columns)
        )
    sizes, columns = (np.maximum(each, np.float32(SMALLEST)) for each in (sizes, columns))
    found = sizes**STRENGTH / columns ** (1 - STRENGTH)
    by: NDArray[np.float32] = (found / np.exp(np.log(found).mean())).astype(np.float32)
    return by


def of_values(shape: LlamaShape, by: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the factors [heads * head size] of all query heads, once for each head of values."""
    own: NDArray[np.float32] = by.reshape(shape.kv_heads, -1, shape.head_size)[:, 0].reshape(-1)
    return own
