"""Loading a GGUF file on llama.cpp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fim_server.errors import ModelError
from fim_server.models.backend import LLAMA_CPP
from fim_server.models.pytorch.devices import is_cpu
from fim_server.models.resources.room import require_room
from fim_server.models.resources.threads import free_cores, usual_threads
from fim_server.models.source import expanded, is_gguf_model, parts_of

if TYPE_CHECKING:
    from fim_server.models.model import FimModel
    from fim_server.models.request import LoadRequest


class GgufLoader:
    """Loader of GGUF files."""

    def matches(self, request: LoadRequest) -> bool:
        """Return whether the model is a GGUF file."""
        if is_gguf_model(request.name):
            return True
        if request.runtime == LLAMA_CPP:
            raise ModelError(f"runtime {LLAMA_CPP}: runs GGUF files, and {request.name} is none")
        return False

    def load(self, request: LoadRequest) -> FimModel:
        """Load the file, on a GPU where the library and the request have one."""
        from fim_server.models.gguf.load import load_gguf

        options = request.options
        if request.runtime not in (None, LLAMA_CPP):
            raise ModelError(f"runtime {request.runtime}: runs no GGUF files, {LLAMA_CPP} does")
        layers = gpu_layers(request.device, options.gpu_layers)
        path = request.path
        adapter = None if options.adapter is None else expanded(options.adapter)
        if adapter is not None and not adapter.is_file():
            raise ModelError(f"{options.adapter}: no such file")
        require_room(request.name, sum(part.stat().st_size for part in parts_of(path)))
        with request.attempt():
            return load_gguf(path, free_cores(usual_threads()), layers, adapter)


def gpu_layers(device: str | None, layers: int | None) -> int | None:
    """Return the layers that a GPU computes: -1 for all, None for the library's choice.

    Raises:
        ModelError: The request asks for the CPU, and for layers on a GPU.
    """
    if device is None:
        return layers
    if not is_cpu(device):
        return -1 if layers is None else layers
    if layers:
        raise ModelError(f"device {device}: {layers} layers on a GPU were asked for as well")
    return 0
