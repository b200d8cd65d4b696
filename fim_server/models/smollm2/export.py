"""The folder ``onnx`` of a model folder: graph, weights and configuration, for onnxruntime-genai."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fim_server.models.onnx_backend import CONFIGURATION, DIGEST, RECORD
from fim_server.models.smollm2.graph import LlamaGraph, Precisions
from fim_server.models.smollm2.quantizing import Precision

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from fim_server.models.smollm2.shape import LlamaShape

GRAPH_FILE, WEIGHTS_FILE = "model.onnx", "model.onnx.data"

PRECISIONS = Precisions(layers=Precision(bits=8), table=Precision(bits=8))

MOST_WINDOW = 2048
"""Tokens that an export attends to at most. A generator takes memory for keys and values of the whole window at once,
46 kB a token for SmolLM2-135M, and what a person waits for is never that long."""


MAPPED_FROM = 1024
"""Bytes from which a constant is in the file of weights, which is mapped, and not in the graph's."""


def write_export(
    target: Path,
    shape: LlamaShape,
    end_token: int,
    weight: Callable[[str], NDArray[np.float32]],
    digest: str,
    precisions: Precisions = PRECISIONS,
) -> None:
    """Write one into a new folder. ``digest``: of the weights that it is of; ``weight`` gives each by its name."""
    import onnx

    window = min(shape.window, MOST_WINDOW)
    target.mkdir(parents=True)
    model = LlamaGraph(shape, window, precisions).build(weight)
    onnx.save_model(
        model, target / GRAPH_FILE, save_as_external_data=True, location=WEIGHTS_FILE, size_threshold=MAPPED_FROM
    )
    (target / WEIGHTS_FILE).chmod(0o644)
    (target / CONFIGURATION).write_text(json.dumps(configuration(shape, window, end_token), indent=1) + "\n", "utf-8")
    record = {"precision": described(precisions), "builder": "fim-server", DIGEST: digest}
    (target / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def described(precisions: Precisions) -> str:
    """Precisions in a few words."""
    parts = {"layers": precisions.layers, "embedding": precisions.table}
    return ", ".join(
        f"{name} int{part.bits} in blocks of {part.block}{' with zero points' if part.zero_points else ''}"
        for name, part in parts.items()
    )


def configuration(shape: LlamaShape, window: int, end_token: int) -> dict[str, Any]:
    """The ``genai_config.json`` of an export."""
    past, present = "past_key_values.%d.", "present.%d."
    decoder = {
        "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
        "filename": GRAPH_FILE,
        "head_size": shape.head_size,
        "hidden_size": shape.width,
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.kv_heads,
        "inputs": {
            "input_ids": "input_ids",
            "attention_mask": "attention_mask",
            "past_key_names": f"{past}key",
            "past_value_names": f"{past}value",
        },
        "outputs": {
            "logits": "logits",
            "present_key_names": f"{present}key",
            "present_value_names": f"{present}value",
        },
    }
    ends = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), end_token)
    search = {"do_sample": False, "max_length": window, "past_present_share_buffer": True}
    model = {"type": "llama", "vocab_size": shape.vocabulary, "context_length": window, **ends, "decoder": decoder}
    return {"model": model, "search": search}
