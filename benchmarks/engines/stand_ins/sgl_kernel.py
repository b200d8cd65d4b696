"""In the place of SGLang's kernels, whose packages are for GPUs: what its model runner needs of them on a processor.

Everything else may be imported, and fails when it is called; SGLang falls back to torch where it finds none of them.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.4.10"


def assign_req_to_token_pool_cpu(rows: Any, pool: Any, starts: Any, ends: Any, places: Any, width: int) -> None:
    """Write the places of requests' new tokens into their rows of the pool [R, width]; all are tensors."""
    at = 0
    for row, start, end in zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True):
        pool[row, start:end] = places[at : at + end - start]
        at += end - start


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*_: object, **__: object) -> None:
        raise NotImplementedError(f"{name}: a kernel for GPUs")

    return missing
