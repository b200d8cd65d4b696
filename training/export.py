"""Turn a checkpoint into a folder that `transformers` loads, and measure what it holds."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import GenerationConfig
from transformers.utils.logging import disable_progress_bar

from fim_server.errors import TrainingError
from training.checkpoints import CHECKPOINT_FILE
from training.data.corpus import SOURCES_FILE
from training.model import new_model
from training.plan import Shape
from training.tokenizer import END, PAD, load_tokenizer, token_id, write_tokenizer

# Bound on the exported folder, in bytes: it is committed and installed with the package.
MAX_EXPORT_BYTES = 30_000_000
RECORD_FILE = "training.json"


def export(run: Path, tokenizer_folder: Path, corpus: Path, target: Path) -> int:
    """Write weights (float16), configuration, tokenizer and records; return the bytes written.

    The configuration asks for float32 at load: half precision is slower on a CPU.
    Raises TrainingError if there is no checkpoint or the result passes `MAX_EXPORT_BYTES`.
    """
    path = run / CHECKPOINT_FILE
    if not path.is_file():
        raise TrainingError(f"{path}: not found; run `train` first")
    tokenizer = load_tokenizer(tokenizer_folder)
    record: dict[str, Any] = torch.load(path, weights_only=True)
    shape = Shape(**record["shape"])
    model = new_model(shape, tokenizer, seed=0)
    model.load_state_dict(record["weights"])
    model.half()  # type: ignore[no-untyped-call]
    model.generation_config = GenerationConfig(  # type: ignore[no-untyped-call]
        do_sample=False,
        max_new_tokens=128,
        eos_token_id=token_id(tokenizer, END),
        pad_token_id=token_id(tokenizer, PAD),
    )
    disable_progress_bar()  # type: ignore[no-untyped-call]
    model.save_pretrained(target)
    shutil.rmtree(target / "onnx", ignore_errors=True)  # of other weights: `onnx` makes one of these
    # The library writes weights for their owner alone; an installed package is read by all.
    (target / "model.safetensors").chmod(0o644)
    _set_load_precision(target / "config.json")
    write_tokenizer(tokenizer, target, shape.context)
    shutil.copyfile(corpus / SOURCES_FILE, target / SOURCES_FILE)
    progress = dict(record["progress"])
    history = progress.pop("history")
    progress["train_loss_nats"] = history[-1]["loss"] if history else None
    summary = {"shape": dataclasses.asdict(shape), "plan": record["plan"], "progress": progress}
    (target / RECORD_FILE).write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    size = sum(entry.stat().st_size for entry in target.iterdir() if entry.is_file())
    if size > MAX_EXPORT_BYTES:
        raise TrainingError(f"{target}: {size} bytes, more than {MAX_EXPORT_BYTES}")
    return size


def load_exported(folder: Path) -> tuple[Shape, int, dict[str, Tensor]]:
    """Read shape, tokens seen and weights (float32) of an exported model, to go on from.

    Raises TrainingError if the folder holds none.
    """
    try:
        record = json.loads((folder / RECORD_FILE).read_text(encoding="utf-8"))
        stored = load_file(folder / "model.safetensors")
    except OSError as error:
        raise TrainingError(f"{folder}: no exported model ({error})") from error
    weights = {name: value.float() for name, value in stored.items()}
    weights.setdefault("lm_head.weight", weights["model.embed_tokens.weight"])
    tokens = record["progress"]["tokens"] + record["plan"].get("resumed_tokens", 0)
    return Shape(**record["shape"]), tokens, weights


def _set_load_precision(path: Path) -> None:
    config = json.loads(path.read_text(encoding="utf-8"))
    config.pop("torch_dtype", None)
    config["dtype"] = "float32"
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
