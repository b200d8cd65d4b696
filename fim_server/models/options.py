"""What a model is loaded with besides its name, its device and its runtime."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Options of some kinds of models; the others refuse those that are not theirs.

    Attributes:
        gpu_layers: Of a GGUF file, how many layers a GPU computes; -1 for all, None for all where there is one.
        adapter: For a GGUF file, a low-rank adapter in a GGUF file of its own.
    """

    gpu_layers: int | None = None
    adapter: str | None = None
