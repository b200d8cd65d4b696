"""Random models of one layer with the embedded model's tokenizer: fast, and as wild as a model can be."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.onnx import backend as onnx_backend
from fim_server.models.source import locate


def write_tiny_model(folder: Path, width: int, window: int = 256, **settings: Any) -> Path:
    """Write one into a new folder, with no export. ``settings``: of its configuration, besides."""
    folder.mkdir(exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(Path(locate(None)) / name, folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=16384,
        hidden_size=width,
        intermediate_size=width,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=window,
        tie_word_embeddings=True,
        initializer_range=0.3,
        **settings,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def small_model(runtime: str, folder: Path) -> FimModel:
    """The embedded model on onnxruntime, or one of 32 numbers on torch, made in a folder that is not there yet."""
    if runtime == "onnx":
        if not onnx_backend.is_installed():
            pytest.skip("onnxruntime is not installed")
        return load_model(None, "cpu", "onnx")
    return load_model(str(write_tiny_model(folder, 32)), "cpu", "torch")
