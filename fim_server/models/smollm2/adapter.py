"""Low-rank adapters of a Llama: trained changes of a base model's weights, small enough to ship.

A file is in the safetensors format. Its tensors are float16: ``layers.{i}.{part}.A`` [rank, in] and ``.B`` [out, rank]
for the parts of :data:`PARTS`. A merged weight is W + alpha / rank * B @ A. ``rows`` [n, width] replace the tied
embedding's rows at ``row_ids`` [n], int64.

In a file of half the size A and B are int8, and their factors are ``.A.scale`` [rank, 1] and ``.B.scale`` [1, rank],
float32. The metadata are strings: ``rank``, ``alpha``, ``tokens`` (of training), ``base`` and ``recipe``. See Hu et
al., *LoRA: Low-Rank Adaptation of Large Language Models* (arXiv 2106.09685), section 4.1.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fim_server.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

PARTS = ("qkv", "o", "gate_up", "down")
"""Matrices of a layer that an adapter changes. The rows of q, k and v are stacked in one, those of gate and up in
another.
"""

ROWS, ROW_IDS = "rows", "row_ids"

LARGEST_SCALE = 1e4
"""Bound of the scales of a matrix in 8 bits; float16 has about as large numbers."""


@dataclass(frozen=True)
class Adapter:
    """Changes of a base model's weights.

    Attributes:
        rank: Rank of every pair of matrices.
        alpha: Scale of all of them, as alpha / rank.
        tokens: Tokens that it was trained on.
        matrices: A [rank, in] and B [out, rank] of ``layers.{i}.{part}``.
        rows: Rows of the embedding [n, width].
        row_ids: The tokens of the rows [n].
        base: The base model.
        recipe: The training run.
    """

    rank: int
    alpha: float
    tokens: int
    matrices: Mapping[str, tuple[NDArray[Any], NDArray[Any]]]
    rows: NDArray[Any]
    row_ids: NDArray[np.int64]
    base: str = ""
    recipe: str = ""

    def change(self, layer: int, part: str) -> NDArray[np.float32] | None:
        """Return the term added to a matrix [out, in]; None for an unchanged one."""
        pair = self.matrices.get(f"layers.{layer}.{part}")
        if pair is None:
            return None
        down, up = (matrix.astype(np.float32) for matrix in pair)
        added: NDArray[np.float32] = np.float32(self.alpha / self.rank) * (up @ down)
        return added


def read_adapter(path: Path) -> Adapter:
    """Read a file. Raises ModelError, in one line, where it cannot be read or its tensors do not fit together."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            found = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no mapping
        rank, alpha, tokens = int(found["rank"]), float(found["alpha"]), int(found["tokens"])
        rows, row_ids = tensors.pop(ROWS), tensors.pop(ROW_IDS)
        names = sorted({name.removesuffix(".scale").rpartition(".")[0] for name in tensors})
        matrices = {name: (_taken(tensors, f"{name}.A"), _taken(tensors, f"{name}.B")) for name in names}
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise ModelError(f"{path}: not a readable adapter ({str(error).splitlines()[0]})") from error
    adapter = Adapter(rank, alpha, tokens, matrices, rows, row_ids, found.get("base", ""), found.get("recipe", ""))
    problem = misfit(adapter, tensors)
    if problem is not None:
        raise ModelError(f"{path}: not a usable adapter ({problem})")
    return adapter


def _taken(tensors: dict[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """Take a matrix out of a file's tensors. Raises KeyError or ValueError where a part is missing or unusable."""
    matrix = tensors.pop(name)
    if matrix.dtype != np.int8:
        return matrix
    if matrix.ndim != 2:
        raise ValueError(f"{name} is no matrix")
    scale = tensors.pop(f"{name}.scale")
    wanted = (len(matrix), 1) if name.endswith(".A") else (1, matrix.shape[1])
    if scale.dtype != np.float32 or scale.shape != wanted or not ((scale >= 0) & (scale < LARGEST_SCALE)).all():
        raise ValueError(f"{name}.scale is not {wanted[0]} by {wanted[-1]} scales")
    found: NDArray[np.float32] = matrix * scale
    return found


def misfit(adapter: Adapter, left_over: Mapping[str, object]) -> str | None:
    """Return the first error in an adapter's shapes; None for none."""
    if left_over:
        return f"{min(left_over)} is nothing of an adapter's"
    if adapter.rank < 1:
        return f"rank {adapter.rank}"
    if not 0 < adapter.alpha < np.inf:
        return f"alpha {adapter.alpha}"
    for name, (down, up) in adapter.matrices.items():
        if name.rpartition(".")[2] not in PARTS:
            return f"{name} is no part of a layer"
        if down.ndim != 2 or up.ndim != 2 or len(down) != adapter.rank or up.shape[1] != adapter.rank:
            return f"{name} is of shapes {down.shape} and {up.shape}, at rank {adapter.rank}"
        if not (np.isfinite(down).all() and np.isfinite(up).all()):
            return f"{name} is not finite"
    if adapter.rows.ndim != 2 or adapter.row_ids.shape != adapter.rows.shape[:1]:
        return f"rows of shape {adapter.rows.shape} for {adapter.row_ids.shape} ids"
    return None if np.isfinite(adapter.rows).all() else "its rows are not finite"


def write_adapter(path: Path, adapter: Adapter, small: bool = False) -> None:
    """Write a file atomically, in float16 or, if `small`, in 8 bits. Raises OSError."""
    from safetensors.numpy import save_file

    tensors = {ROWS: adapter.rows.astype(np.float16), ROW_IDS: adapter.row_ids.astype(np.int64)}
    for name, (down, up) in adapter.matrices.items():
        # Each of the rank's products has a size of its own, and so scales.
        for part, matrix, axis in (("A", down, 1), ("B", up, 0)):
            if not small:
                tensors[f"{name}.{part}"] = matrix.astype(np.float16)
                continue
            largest = np.abs(matrix.astype(np.float32)).max(axis, keepdims=True)
            scale = np.maximum(largest / 127, np.finfo(np.float32).tiny)
            rounded = np.rint(matrix / scale).clip(-127, 127)
            tensors[f"{name}.{part}"], tensors[f"{name}.{part}.scale"] = rounded.astype(np.int8), scale
    numbers = {"rank": str(adapter.rank), "alpha": str(adapter.alpha), "tokens": str(adapter.tokens)}
    metadata = {**numbers, "base": adapter.base, "recipe": adapter.recipe}
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, beside, metadata=metadata)
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
