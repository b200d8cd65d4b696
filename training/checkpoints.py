"""Checkpoints of a run, and its history."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor
from transformers import LlamaForCausalLM

from fim_server.errors import TrainingError
from training.plan import Plan, Shape

CHECKPOINT_FILE = "checkpoint.pt"

HISTORY_FILE = "history.jsonl"


@dataclass
class Progress:
    """Progress of a run; `tokens` counts positions trained on, padding included."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)


def load_checkpoint(folder: Path) -> tuple[Shape, int, dict[str, Tensor]]:
    """Read shape, tokens seen and weights of the latest checkpoint.

    Raises TrainingError if there is none.
    """
    path = folder / CHECKPOINT_FILE
    if not path.is_file():
        raise TrainingError(f"{path}: no checkpoint to go on from")
    record = torch.load(path, map_location="cpu", weights_only=True)
    tokens = record["progress"]["tokens"] + record["plan"].get("resumed_tokens", 0)
    return Shape(**record["shape"]), tokens, record["weights"]


def save_checkpoint(model: LlamaForCausalLM, shape: Shape, plan: Plan, progress: Progress, folder: Path) -> None:
    """Write weights and record so that a reader never sees half a file."""
    record = {
        "shape": dataclasses.asdict(shape),
        "plan": dataclasses.asdict(plan),
        "progress": dataclasses.asdict(progress),
        "weights": {name: value.clone() for name, value in model.state_dict().items()},
    }
    unfinished = folder / (CHECKPOINT_FILE + ".unfinished")
    torch.save(record, unfinished)
    unfinished.replace(folder / CHECKPOINT_FILE)
    with (folder / HISTORY_FILE).open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(entry) + "\n" for entry in progress.history)
