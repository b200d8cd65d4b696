"""Weights of a model folder in the transformers layout; one that onnxruntime serves may have its export alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fim_server.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path

PATTERNS = ("*.safetensors", "*.bin")
"""Names of the files that torch reads."""


def has_weights(folder: Path) -> bool:
    """Return whether a folder has a file of weights that torch reads, intact or not."""
    return any(True for pattern in PATTERNS for _ in folder.glob(pattern))


def require_weights(folder: Path, name: str) -> None:
    """Raise :class:`ModelError` where a folder has no weights besides an export; ``name``: the model's, for users."""
    if has_weights(folder):
        return
    from fim_server.models.source import cached_name
    from fim_server.models.store.catalogue import catalogue

    own = cached_name(folder)
    if own is None:
        raise ModelError(f"{name}: its folder has no weights ({PATTERNS[0]})")
    raise ModelError(f"{name}: only its export for the CPU is here; `{catalogue()[own].how} --torch` gets its weights")
