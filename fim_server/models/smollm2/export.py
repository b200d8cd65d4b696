"""The folder ``onnx`` of a model folder: graph, weights and configuration, for onnxruntime."""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING, Any

from fim_server.models.onnx.backend import CONFIGURATION, DIGEST, RECORD
from fim_server.models.smollm2.graph import LlamaGraph, Precisions
from fim_server.models.smollm2.messages import save
from fim_server.models.smollm2.quantizing import Precision
from fim_server.models.smollm2.smoothing import smooth
from fim_server.models.smollm2.tokens import CONTROL_TOKENS, END_ID

if TYPE_CHECKING:
    from pathlib import Path

    from tokenizers import Tokenizer

    from fim_server.models.smollm2.base import Base
    from fim_server.models.smollm2.shape import LlamaShape

GRAPH_FILE, WEIGHTS_FILE = "model.onnx", "model.onnx.data"

PRECISIONS = Precisions(layers=None, table=Precision(bits=8))

LAYERS = {
    "channels": None,
    "int8": Precision(bits=8),
    "int4": Precision(bits=4),
    "int4-zero-points": Precision(bits=4, zero_points=True),
}
"""Precisions of layers by the names under which they are measured."""

MOST_WINDOW = 2048
"""Longest context window of an export. A cache takes the memory of the whole window at once, 46 kB a token for
SmolLM2-135M, and no prompt that a user waits for is that long.
"""

MAPPED_FROM = 1024
"""Least bytes of a constant that goes to the memory-mapped file of weights instead of the graph's file."""

SAMPLE_FILE, SAMPLE_TOKENS = "document.py", 512
"""Module of fim_server's package of texts, and the number of its tokens that serve to measure activations."""


def write_export(target: Path, model: Base, digest: str | None, precisions: Precisions = PRECISIONS) -> None:
    """Write an export into a new folder. ``digest``: that of the weights beside it; None where none stay there."""
    window = min(model.shape.window, MOST_WINDOW)
    target.mkdir(parents=True)
    weight = model.weight
    if precisions.layers is None:
        weight = smooth(model.shape, weight, sample(model.tokenizer))
    graph = LlamaGraph(model.shape, window, precisions).build(weight)
    save(graph, target / GRAPH_FILE, WEIGHTS_FILE, MAPPED_FROM)
    (target / WEIGHTS_FILE).chmod(0o644)
    (target / CONFIGURATION).write_text(json.dumps(configuration(model.shape, window), indent=1) + "\n", "utf-8")
    record = {"precision": described(precisions), "builder": "fim-server"}
    if digest is not None:
        record[DIGEST] = digest
    (target / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def sample(tokenizer: Tokenizer) -> list[int]:
    """Return the ids of a module as a prompt with its middle: the module's end comes first."""
    path = resources.files("fim_server") / "text" / SAMPLE_FILE
    text = tokenizer.encode(path.read_text(encoding="utf-8"), add_special_tokens=False).ids[: SAMPLE_TOKENS - 2]
    third = len(text) // 3
    prefix, suffix, _ = CONTROL_TOKENS
    return [suffix, *text[-third:], prefix, *text[:-third]]


def described(precisions: Precisions) -> str:
    parts = {"layers": precisions.layers, "embedding": precisions.table}
    return ", ".join(f"{name} {in_words(part)}" for name, part in parts.items())


def in_words(precision: Precision | None) -> str:
    if precision is None:
        return "int8 by channels"
    return f"int{precision.bits} in blocks of {precision.block}{' with zero points' if precision.zero_points else ''}"


def configuration(shape: LlamaShape, window: int) -> dict[str, Any]:
    """Return the ``genai_config.json`` of an export."""
    past, present = "past_key_values.%d.", "present.%d."
    decoder = {
        "session_options": {"log_id": "onnxruntime", "provider_options": []},
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
    ends = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), END_ID)
    search = {"do_sample": False, "max_length": window, "past_present_share_buffer": True}
    model = {"type": "llama", "vocab_size": shape.vocabulary, "context_length": window, **ends, "decoder": decoder}
    return {"model": model, "search": search}
