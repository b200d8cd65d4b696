"""Options of a model's loading besides its name, device and runtime."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Options of endpoints and GGUF files; other models refuse them.

    Attributes:
        gpu_layers: GGUF file: layers that a GPU computes; -1 for all, None for all where there is a GPU.
        adapter: GGUF file: a low-rank adapter in a GGUF file of its own.
        api_key_env: Endpoint: the environment variable with the key.
        allow_plain_http: Endpoint: whether the server may ask another machine without TLS.
        tokenizer: Endpoint: a folder with its model's tokenizer.json, or its GGUF file.
    """

    gpu_layers: int | None = None
    adapter: str | None = None
    api_key_env: str | None = None
    allow_plain_http: bool = False
    tokenizer: str | None = None


NO_OPTIONS = LoadOptions()
