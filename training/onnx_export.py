"""Export a model folder for onnxruntime-genai: int8 weights, of which embedding and output layer share one table.

The package's own builder writes the graph. It keeps the embedding as float32 besides the output layer's int8 table;
here the embedding is looked up in that table instead, which leaves a third of the size.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from fim_server.errors import TrainingError
from fim_server.models.onnx.backend import CONFIGURATION, DIGEST, NO_TELEMETRY, RECORD, weights_digest
from fim_server.models.weights import has_weights

PACKAGES = {"onnxruntime_genai": "onnxruntime-genai", "onnx": "onnx", "onnx_ir": "onnx-ir"}
"""Modules that the export imports, with their packages."""

BUILDER = "onnxruntime_genai.models.builder"

GRAPH_FILE = "model.onnx"

PRECISION = "int8"

EMBEDDING_NODE, EMBEDDING = "/model/embed_tokens/Gather", "model.embed_tokens.weight"
HEAD_NODE = "/lm_head/MatMul_Q8"
"""Names that the builder gives."""

ZERO_POINT = 128.0
"""Zero point of unsigned 8-bit weights without zero points of their own (MatMulNBits)."""


def export_onnx(model: Path, target: Path) -> int:
    """Write graph and configuration of a model folder; returns the bytes written.

    What ``target`` held of an export before is replaced. Raises TrainingError where a package is missing, the folder
    holds no model that the builder knows, or its embedding and output layer are not tied.
    """
    missing = [name for module, name in PACKAGES.items() if find_spec(module) is None]
    if missing:
        raise TrainingError(f"the export needs packages that are not installed: pip install {' '.join(missing)}")
    if not (model / "config.json").is_file():
        raise TrainingError(f"{model}: not a model folder (no config.json in it)")
    if not has_weights(model):
        raise TrainingError(f"{model}: its folder has no weights to export")
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "built"
        build(model, built, Path(folder) / "cache")
        graph = share_embedding(built / GRAPH_FILE)
        target.mkdir(parents=True, exist_ok=True)
        (target / GRAPH_FILE).write_bytes(graph)
        shutil.copyfile(built / CONFIGURATION, target / CONFIGURATION)
    builder = f"onnxruntime-genai {version('onnxruntime-genai')}"
    record = {"precision": PRECISION, "builder": builder, DIGEST: weights_digest(model)}
    (target / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return sum((target / name).stat().st_size for name in (GRAPH_FILE, CONFIGURATION, RECORD))


def build(model: Path, target: Path, cache: Path) -> None:
    """Run the builder. Raises TrainingError with the last line of what it says where it fails."""
    command = [sys.executable, "-m", BUILDER, "-i", str(model), "-o", str(target), "-p", PRECISION, "-e", "cpu"]
    # prune_lm_head: a chunk of the prompt has one row of logits, not one a token.
    command += ["-c", str(cache), "--extra_options", "prune_lm_head=true"]
    quiet = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", **NO_TELEMETRY}
    done = subprocess.run(
        command, env={**os.environ, **quiet}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode or not (target / GRAPH_FILE).is_file():
        lines = done.stdout.strip().splitlines() or [f"exit status {done.returncode}"]
        raise TrainingError(f"{model}: the builder of onnxruntime-genai failed ({lines[-1].strip()})")


def share_embedding(path: Path) -> bytes:
    """The graph, its weights inside, with the embedding read from the output layer's int8 table.

    Raises TrainingError where the graph is not one of an int8 export, or the two tables differ.
    """
    import onnx

    graph = onnx.load(path)
    nodes: dict[str, Any] = {node.name: node for node in graph.graph.node}
    tables: dict[str, Any] = {table.name: table for table in graph.graph.initializer}
    if EMBEDDING_NODE not in nodes or HEAD_NODE not in nodes or EMBEDDING not in tables:
        raise TrainingError(f"{path.name}: not a graph whose embedding can be shared with its output layer")
    lookup, head = nodes[EMBEDDING_NODE], nodes[HEAD_NODE]
    _, weights, scales = head.input  # [V, blocks, block] uint8, [V, blocks] float32
    embedding = onnx.numpy_helper.to_array(tables[EMBEDDING])  # [V, width]
    levels = onnx.numpy_helper.to_array(tables[weights]).astype("float32") - ZERO_POINT
    steps = onnx.numpy_helper.to_array(tables[scales])
    width = embedding.shape[1]
    restored = (levels * steps.reshape(*levels.shape[:2], 1)).reshape(len(embedding), -1)
    if restored.shape != embedding.shape or abs(restored - embedding).max() > 2 * abs(steps).max():
        raise TrainingError(f"{path.name}: the embedding and the output layer are not tied, or their rows are padded")

    def constant(name: str, value: Any) -> str:
        graph.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
        return name

    tokens, looked_up = lookup.input[1], lookup.output[0]
    shape = constant("embed_tokens.shape", np.array([0, 0, width], dtype=np.int64))  # 0 keeps a dimension
    parts = ("levels", "signed_levels", "centred", "steps", "steps_by_block", "blocks")
    stored, numbers, centred, row_steps, block_steps, blocks = (f"embed_tokens.{part}" for part in parts)
    node = onnx.helper.make_node
    lookups = [
        node("Gather", [weights, tokens], [stored]),  # [B, T, blocks, block]
        node("Cast", [stored], [numbers], to=onnx.TensorProto.FLOAT),
        node("Sub", [numbers, constant("embed_tokens.zero_point", np.array(ZERO_POINT, dtype=np.float32))], [centred]),
        node("Gather", [scales, tokens], [row_steps]),  # [B, T, blocks]
        node(
            "Unsqueeze", [row_steps, constant("embed_tokens.last_axis", np.array([-1], dtype=np.int64))], [block_steps]
        ),
        node("Mul", [centred, block_steps], [blocks]),
        node("Reshape", [blocks, shape], [looked_up]),  # [B, T, width]
    ]
    place = list(graph.graph.node).index(lookup)
    graph.graph.node.remove(lookup)
    for number, made in enumerate(lookups):
        graph.graph.node.insert(place + number, made)
    graph.graph.initializer.remove(tables[EMBEDDING])
    serialized: bytes = graph.SerializeToString()
    return serialized
