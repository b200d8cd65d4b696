"""Build of the model folder of SmolLM2-135M with its adapter, complete or not at all.

The folder holds configuration, tokenizer, an export for onnxruntime, and where torch runs the model the weights in
float16, with the adapter merged. `--model` takes it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fim_server.errors import ModelError
from fim_server.language.limited_files import parse_json, read_found
from fim_server.models.onnx import backend as onnx_backend
from fim_server.models.onnx.backend import EXPORT_FOLDER, export_of, weights_digest
from fim_server.models.pytorch.devices import best_device, is_cpu
from fim_server.models.smollm2.adapter import read_adapter
from fim_server.models.smollm2.base import CONFIG_FILE, TOKENIZER_FILE, WEIGHTS_FILE, Base, read_base
from fim_server.models.smollm2.export import PRECISIONS, write_export
from fim_server.models.smollm2.merging import merge
from fim_server.models.smollm2.tokens import END_ID, TOKENIZER_CONFIG
from fim_server.models.store.manifest import has_manifest, write_manifest
from fim_server.models.weights import has_weights

if TYPE_CHECKING:
    from collections.abc import Callable

    from fim_server.models.smollm2.adapter import Adapter
    from fim_server.models.smollm2.graph import Precisions

ADAPTER = Path(str(resources.files("fim_server") / "models" / "adapters" / "smollm2.safetensors"))
"""Adapter of the package."""

ADAPTER_DIGEST = "89bdd30424a76228a7e5df65f5b33e311f5cacb87755b7319fad7a46754a8fd6"
"""SHA-256 of the adapter."""

RECORD = "build.json"
"""Record of a folder's ingredients, for :func:`is_current`."""

VERSION = 3
"""Version of the build; raise it when the same base and adapter give another folder."""

FORGOTTEN_AFTER = 3600.0
"""Seconds after which the remains of a killed build are removed."""


def build(
    source: Path,
    folder: Path,
    say: Callable[[str], None],
    adapter: Path = ADAPTER,
    precisions: Precisions = PRECISIONS,
    *,
    keeps_weights: bool = True,
) -> None:
    """Build the model folder, and replace an existing one once it is complete.

    Args:
        source: The base: a GGUF file, or a folder in the transformers layout.
        folder: The folder to build.
        say: Receives the progress, a line each.
        adapter: The adapter's file. If it does not exist, the control tokens begin untrained, which tests need.
        precisions: Precisions of the export; others than the default serve to measure.
        keeps_weights: Whether the weights in float16 stay beside the export; without onnxruntime they always do.

    Raises:
        ModelError: The base or the adapter cannot be used, or the folder not written; one line.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    try:
        with tempfile.TemporaryDirectory(prefix=beside(folder), dir=folder.parent) as room:
            made = Path(room) / "new"
            made.mkdir()
            fill(source, made, say, adapter, precisions, keeps_weights or needs_weights())
            write_manifest(made)
            for path in (*made.rglob("*"), made):
                sync(path)
            if os.path.lexists(folder):
                if folder.is_dir() and not folder.is_symlink():
                    folder.chmod(0o700)  # moving a folder needs the right to write it
                folder.rename(Path(room) / "old")
            made.rename(folder)
            sync(folder.parent)
    except OSError as error:
        raise ModelError(f"{folder}: cannot be built ({error.strerror or error})") from error


def built_of(folder: Path) -> tuple[Any, Any]:
    """Return the version that built a folder and the digest of its adapter; None for each that is unknown."""
    try:
        record = parse_json(read_found(folder / RECORD))
        return record["version"], record["adapter_sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return None, None


def is_current(folder: Path, adapter: Path = ADAPTER) -> bool:
    """Return whether this version built a folder, with checksums, the current adapter and what a runtime here needs."""
    runs = has_weights(folder) if not onnx_backend.is_installed() else export_of(folder) is not None
    return runs and built_of(folder) == (VERSION, digest_of(adapter)) and has_manifest(folder)


def needs_weights() -> bool:
    """Return whether torch runs the model here: on a GPU, or for lack of onnxruntime."""
    return not onnx_backend.is_installed() or not is_cpu(best_device())


def drop_weights(folder: Path) -> int:
    """Remove the weights in float16 from a folder with an export, and return their bytes; 0 where they stay."""
    path = folder / WEIGHTS_FILE
    if export_of(folder) is None or not path.is_file():
        return 0
    try:
        freed = path.stat().st_size
        write_manifest(folder, without=[WEIGHTS_FILE])  # first: a missing file that it lists would be damage
        path.unlink()
    except OSError:  # a full disk, or on Windows a process that maps the file: the next call tries again
        return 0
    return freed


def fill(
    source: Path,
    folder: Path,
    say: Callable[[str], None],
    adapter_file: Path,
    precisions: Precisions,
    keeps_weights: bool,
) -> None:
    say(f"reading {source.name}")
    base = read_base(source)
    if adapter_file == ADAPTER and adapter_file.is_file() and digest_of(adapter_file) != ADAPTER_DIGEST:
        raise ModelError(f"{adapter_file} is damaged: run `pip install --force-reinstall --no-deps fim-server`")
    adapter = read_adapter(adapter_file) if adapter_file.is_file() else None
    if adapter is not None and built_of(source)[1]:
        raise ModelError(f"{source}: has an adapter in its weights already; give what it was built of")
    described = f"the adapter of {adapter.tokens:,} tokens" if adapter is not None else "no adapter"
    say(f"{'writing' if keeps_weights else 'computing'} the weights, with {described}")
    weights = merged_weights(base, adapter)
    if keeps_weights:
        write_weights(folder / WEIGHTS_FILE, weights)
    write_json(folder / CONFIG_FILE, base.shape.config(bos_token_id=END_ID, eos_token_id=END_ID))
    window = {"model_max_length": base.shape.window}
    write_json(folder / "tokenizer_config.json", {**TOKENIZER_CONFIG, **window})
    base.tokenizer.save(str(folder / TOKENIZER_FILE))
    if not onnx_backend.is_installed():
        say("no export for the CPU, since onnxruntime is not installed: torch runs the model")
    else:
        say("rounding the weights for the CPU")
        merged = replace(base, weight=lambda name: weights[name].astype(np.float32))
        digest = weights_digest(folder) if keeps_weights else None
        write_export(folder / EXPORT_FOLDER, merged, digest, precisions)
    record = {"version": VERSION, "source": source.name, "adapter_sha256": digest_of(adapter_file)}
    write_json(folder / RECORD, record)


def merged_weights(base: Base, adapter: Adapter | None) -> dict[str, np.ndarray[Any, np.dtype[np.float16]]]:
    """Return all weights in float16 by name. Raises ModelError where one is too large for it."""
    weight = merge(base.shape, base.weight, adapter)
    weights = {}
    for name, _ in base.shape.sizes():
        with np.errstate(over="ignore"):
            weights[name] = weight(name).astype(np.float16)
        if not np.isfinite(weights[name]).all():
            raise ModelError(f"{name}: not finite in float16")
    return weights


def write_weights(path: Path, weights: dict[str, np.ndarray[Any, np.dtype[np.float16]]]) -> None:
    """Write a file of weights that transformers reads."""
    from safetensors.numpy import save_file

    save_file(weights, path, metadata={"format": "pt"})
    path.chmod(0o644)


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def digest_of(path: Path) -> str | None:
    """Return the SHA-256 of a file; None where there is none."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Flush a file, or on POSIX a folder's list of names, to the disk."""
    if path.is_dir() and os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def beside(folder: Path) -> str:
    """Return the prefix of the names of unfinished folders."""
    return f".{folder.name}.building-"


def remove_leftovers(folder: Path) -> None:
    """Remove the remains of builds that were killed some time ago."""
    for path in folder.parent.glob(f"{beside(folder)}*"):
        try:
            forgotten = time.time() - path.stat().st_mtime > FORGOTTEN_AFTER
        except OSError:  # another process has taken it away
            continue
        if forgotten:
            shutil.rmtree(path, ignore_errors=True)
