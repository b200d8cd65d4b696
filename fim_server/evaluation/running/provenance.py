"""With what a run is made: the model's files and the versions of what its results may depend on."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from fim_server.models.backend import LLAMA_CPP
from fim_server.models.onnx.backend import EXPORT_FOLDER
from fim_server.models.remote.address import is_remote
from fim_server.models.store.manifest import MANIFEST, STAMPS
from fim_server.models.weights import has_weights

HASHED_WHOLE = 1 << 28
"""Files of a model up to this size are hashed whole (bytes); of larger ones both ends and the size."""

HASHED_ENDS = 1 << 24

EXPORT_SUFFIXES = (".json", ".onnx", ".data")


def model_hash(name: str | None, adapter: str | None = None) -> str:
    """One SHA-256 of the files of a model: their names, sizes and contents (of large ones, both ends)."""
    from fim_server.models.source import expanded, locate

    if name is not None and is_remote(name):
        return hashlib.sha256(name.encode()).hexdigest()  # the model behind an address is unknown
    source = Path(locate(name))
    if source.is_dir():
        return hash_of(identity_of(source))
    return hash_of([source] if adapter is None else [source, expanded(adapter)])


def identity_of(folder: Path) -> list[Path]:
    """Return the files that tell a model from others: those of its export where the folder has no weights.

    Checksums and their stamps differ between folders of the same model.
    """
    files = files_in(folder, (".json", ".safetensors", ".bin", ".model", ".txt"))
    own = [path for path in files if path.name not in (MANIFEST, STAMPS)]
    return own if has_weights(folder) else [*own, *files_in(folder / EXPORT_FOLDER, EXPORT_SUFFIXES)]


def export_hash(name: str | None) -> str:
    """Return the digest of a model's export for onnxruntime; exports of other precision differ."""
    from fim_server.models.source import locate

    return hash_of(files_in(Path(locate(name)) / EXPORT_FOLDER, EXPORT_SUFFIXES))


def files_in(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Return the files of a folder with some suffixes, sorted; none where there is no folder."""
    return [path for path in sorted(folder.glob("*")) if path.is_file() and path.suffix in suffixes]


def hash_of(files: Sequence[Path]) -> str:
    """One SHA-256 of some files."""
    digest = hashlib.sha256()
    for path in files:
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as file:
            if size <= HASHED_WHOLE:
                digest.update(hashlib.file_digest(file, "sha256").digest())
            else:
                digest.update(file.read(HASHED_ENDS))
                file.seek(-HASHED_ENDS, os.SEEK_END)
                digest.update(file.read(HASHED_ENDS))
    return digest.hexdigest()


def versions(runtime: str) -> dict[str, str]:
    """Return the versions that a model's results on some runtime may depend on."""
    found = {"python": platform.python_version()}
    also = ("xllamacpp",) if runtime == LLAMA_CPP else ()
    for name in ("fim-server", "torch", "transformers", "onnxruntime", *also):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "(not installed)"
    return found
