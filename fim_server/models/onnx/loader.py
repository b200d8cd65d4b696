"""Loading a folder with an export of its weights on onnxruntime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fim_server.errors import ModelError
from fim_server.models.kind import kind_of_folder
from fim_server.models.model import assemble
from fim_server.models.onnx.backend import (
    CONFIGURATION,
    EXPORT_FOLDER,
    HOW_TO_INSTALL,
    PACKAGE,
    OnnxBackend,
    export_of,
    is_installed,
    is_stale,
)
from fim_server.models.prompt import find_format
from fim_server.models.pytorch.devices import INSTALL, has_torch, is_cpu
from fim_server.models.resources.room import bytes_of, require_room
from fim_server.models.resources.threads import free_cores, usual_threads
from fim_server.models.tokenizer import TOKENIZER_FILE, read_tokenizer
from fim_server.models.weights import has_weights
from fim_server.system.blocking_pool import BLOCKING_POOL

if TYPE_CHECKING:
    from pathlib import Path

    from fim_server.models.model import FimModel
    from fim_server.models.request import LoadRequest

RUNTIME = "onnx"


def usable_export(request: LoadRequest) -> Path | None:
    """Return the export that onnxruntime may run without being asked for; None where there is none.

    Without weights for a GPU, a request that names no device runs on the CPU.
    """
    if request.runtime is not None:
        return None
    is_for_cpu = is_cpu(request.place) or (request.device is None and not has_weights(request.path))
    export = export_of(request.path)
    return export if is_for_cpu and export is not None and not is_stale(request.path) else None


class OnnxLoader:
    """Loader of folders with an export, on the CPU."""

    def matches(self, request: LoadRequest) -> bool:
        """Return whether the request allows onnxruntime, and the folder has a usable export."""
        if request.runtime == RUNTIME:
            require_export(request)
            return True
        return usable_export(request) is not None and is_installed()

    def load(self, request: LoadRequest) -> FimModel:
        name, folder = request.name, request.path
        export = folder / EXPORT_FOLDER
        require_room(name, bytes_of(export))
        with request.attempt():
            threads = free_cores(usual_threads())
            # The library works without the interpreter's lock, while this thread reads the tokens.
            begun = BLOCKING_POOL.begin(object(), lambda: OnnxBackend(export, threads)) if request.is_own else None
            tokenizer = tokenizer_of(folder, name)
            kind = kind_of_folder(folder, name)
            bound = find_format(tokenizer, name, kind)  # before foreign weights: a refusal should not wait for them
            return assemble(name, begun.result() if begun else OnnxBackend(export, threads), tokenizer, bound)


def require_export(request: LoadRequest) -> None:
    """Raise :class:`ModelError` where onnxruntime, asked for by name, cannot run the model."""
    if request.device is not None and not is_cpu(request.device):
        raise ModelError(f"runtime onnx: runs on the CPU, not on {request.device}")
    if export_of(request.path) is None:
        raise ModelError(
            f"runtime onnx: {request.name} has no export (no {EXPORT_FOLDER}/{CONFIGURATION} in its folder)"
        )
    if is_stale(request.path):
        raise ModelError(f"runtime onnx: the export of {request.name} is of other weights; export it again")
    if not is_installed():
        raise ModelError(f"runtime onnx: {PACKAGE} is not installed; {HOW_TO_INSTALL}")


def tokenizer_of(folder: Path, name: str) -> Any:
    """Return a model's tokenizer, which transformers has to convert from an older layout."""
    if (folder / TOKENIZER_FILE).is_file():
        return read_tokenizer(folder, name)
    if not has_torch():
        raise ModelError(f"{name}: has no {TOKENIZER_FILE}, and to read another tokenizer needs PyTorch: {INSTALL}")
    from fim_server.models.pytorch import backend as torch_backend

    torch_backend.quieten()
    return torch_backend.load_tokenizer(str(folder), name)
