"""An adapter merged into a base model's weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fim_server.errors import ModelError
from fim_server.models.smollm2.shape import EMBEDDING, LlamaShape, weight_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fim_server.models.smollm2.adapter import Adapter
    from fim_server.models.smollm2.shape import Weights

LIKENESS = {8: (3,), 9: (5,), 10: (3, 4)}
"""Tokens whose mean starts a control token before training: names of repositories and separators of files stand where a
prompt's parts begin.
"""


def merge(shape: LlamaShape, weight: Weights, adapter: Adapter | None) -> Weights:
    """Return weights with an adapter merged, or with untrained control tokens.

    Raises ModelError where the adapter is of another shape.
    """
    places = stacked_places(shape)
    if adapter is not None:
        check_fits(shape, adapter, places)

    def merged(name: str) -> NDArray[np.float32]:
        values = weight(name)
        if name == EMBEDDING:
            values = values.copy()
            if adapter is None:
                for number, like in LIKENESS.items():
                    values[number] = values[list(like)].mean(0)
            else:
                values[adapter.row_ids] = adapter.rows.astype(np.float32)
        elif adapter is not None and name in places:
            layer, part, rows = places[name]
            change = adapter.change(layer, part)
            if change is not None:
                values = values + change[rows]
        return values

    return merged


def stacked_places(shape: LlamaShape) -> dict[str, tuple[int, str, slice]]:
    """Return the place of each weight in an adapter: layer, part and rows."""
    queries, keys = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
    parts = {
        "self_attn.q_proj": ("qkv", 0, queries),
        "self_attn.k_proj": ("qkv", queries, keys),
        "self_attn.v_proj": ("qkv", queries + keys, keys),
        "self_attn.o_proj": ("o", 0, shape.width),
        "mlp.gate_proj": ("gate_up", 0, shape.inner),
        "mlp.up_proj": ("gate_up", shape.inner, shape.inner),
        "mlp.down_proj": ("down", 0, shape.width),
    }
    return {
        weight_name(layer, name): (layer, part, slice(start, start + count))
        for layer in range(shape.layers)
        for name, (part, start, count) in parts.items()
    }


def check_fits(shape: LlamaShape, adapter: Adapter, places: dict[str, tuple[int, str, slice]]) -> None:
    """Raise ModelError where an adapter belongs to a network of another shape."""
    columns = dict(shape.sizes())
    sizes: dict[str, tuple[int, int]] = {}
    for name, (layer, part, rows) in places.items():
        key = f"layers.{layer}.{part}"
        sizes[key] = (max(rows.stop, sizes.get(key, (0, 0))[0]), columns[name][1])
    for key, (down, up) in adapter.matrices.items():
        if sizes.get(key) != (up.shape[0], down.shape[1]):
            raise ModelError(f"the adapter's {key} is {(up.shape[0], down.shape[1])}, the base's {sizes.get(key)}")
    ids = adapter.row_ids
    if adapter.rows.shape[1] != shape.width or (len(ids) and not 0 <= ids.min() <= ids.max() < shape.vocabulary):
        raise ModelError(f"the adapter's rows are of another embedding than {(shape.vocabulary, shape.width)}")
