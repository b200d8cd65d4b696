"""What a model is loaded with besides its name, its device and its runtime."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Options of some kinds of models; the others refuse those that are not theirs.

    Attributes:
        gpu_layers: Of a GGUF file, how many layers a GPU computes; -1 for all, None for all where there is one.
        adapter: For a GGUF file, a low-rank adapter in a GGUF file of its own.
        api_key_env: For an endpoint, the environment variable with the key.
        allow_plain_http: Whether an endpoint beyond this machine may be asked without TLS.
        tokenizer: For an endpoint, a folder with its model's tokenizer.json, or its GGUF file.
    """

    gpu_layers: int | None = None
    adapter: str | None = None
    api_key_env: str | None = None
    allow_plain_http: bool = False
    tokenizer: str | None = None
