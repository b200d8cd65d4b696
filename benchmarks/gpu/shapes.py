"""Networks of known shapes with random weights: the time of a step depends on the shape alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoModelForCausalLM, Qwen2Config

from fim_server.models.resources.threads import free_cores

WINDOW = 32_768


@dataclass(frozen=True)
class Shape:
    """The sizes of a network, as those of Qwen2.5-Coder, whose architecture it has."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    key_value_heads: int
    tied: bool
    padded: int
    """Rows of the output layer are a multiple of this."""


SHAPES = {
    "tiny": Shape(64, 128, 2, 4, 2, True, 32),
    "0.5b": Shape(896, 4864, 24, 14, 2, True, 128),
    "1.5b": Shape(1536, 8960, 28, 12, 2, True, 128),
    "3b": Shape(2048, 11008, 36, 16, 2, True, 128),
    "7b": Shape(3584, 18944, 28, 28, 4, False, 128),
}
"""By name; all but the smallest are those of Qwen2.5-Coder."""


def network_of(shape: Shape, vocabulary: int, place: torch.device) -> Any:
    """A network in evaluation mode on a device; bfloat16 on a GPU, float32 on a CPU. Raises what torch raises."""
    config = Qwen2Config(
        vocab_size=-(-vocabulary // shape.padded) * shape.padded,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads,
        tie_word_embeddings=shape.tied,
        max_position_embeddings=WINDOW,
    )
    torch.manual_seed(0)
    if place.type == "cpu":
        torch.set_num_threads(free_cores(torch.get_num_threads()))
    dtype = torch.float32 if place.type == "cpu" else torch.bfloat16
    with place:  # or a large one would be drawn on the CPU, which takes minutes
        network = AutoModelForCausalLM.from_config(config, dtype=dtype)  # type: ignore[no-untyped-call]
    return network.eval()


def described(place: torch.device) -> str:
    """A device in words."""
    if place.type != "cuda":
        return str(place)
    return f"{torch.cuda.get_device_name(place)}, CUDA {torch.version.cuda}"


def parameters_of(network: Any) -> int:
    """Numbers that a network has learned, or would have."""
    return sum(parameter.numel() for parameter in network.parameters())
