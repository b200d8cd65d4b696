"""Loading a model: find the backend that runs it, and have its loader put the model together.

The backends are registered in :mod:`.loaders`. Torch, onnxruntime, llama.cpp and the HTTP client are imported only by
the loader of a model that needs them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.errors import DamagedError, ModelError, ScarceMemoryError
from fim_server.models.loaders import RUNTIMES, loader_for
from fim_server.models.options import NO_OPTIONS
from fim_server.models.request import LoadRequest
from fim_server.models.source import EMBEDDED_NAME, name_of
from fim_server.models.store.catalogue import catalogue
from fim_server.models.store.folders import cached_damage, damaged

if TYPE_CHECKING:
    from fim_server.models.model import FimModel
    from fim_server.models.options import LoadOptions
    from fim_server.models.store.transfer import Amount


def load_model(
    name_or_path: str | None = None,
    device: str | None = None,
    runtime: str | None = None,
    options: LoadOptions = NO_OPTIONS,
    tell: Amount | None = None,
) -> FimModel:
    """Load a model for filling in the middle.

    Args:
        name_or_path: A folder in the transformers layout, a GGUF file, an endpoint's address (http, https), a name on
            the hub, `smollm2` or `embedded`. None is `smollm2` where it is installed, else `embedded`.
        device: A torch device; None for a GPU where there is one.
        runtime: One of :data:`.loaders.RUNTIMES`. None is onnx on the CPU where the folder has an export and
            onnxruntime is installed, else torch. A GGUF file runs on `llama.cpp` alone.
        options: Options of endpoints and GGUF files.
        tell: Receives the progress of a download in bytes, on other threads.

    Raises:
        ModelError: The model cannot be found, read or used, or the device or runtime is not there; one line.
        StoppedError: The caller's stop was set during a download.
    """
    if runtime not in (None, *RUNTIMES):
        raise ModelError(f"runtime {runtime}: unknown; there are {', '.join(RUNTIMES[:-1])} and {RUNTIMES[-1]}")
    request = LoadRequest(name_of(name_or_path), device, runtime, options, tell)
    request.refuse_foreign_options()
    try:
        return _load(request)
    except DamagedError:
        if name_or_path is not None:
            raise
        return _load(replace(request, name=EMBEDDED_NAME))


def _load(request: LoadRequest) -> FimModel:
    loader = loader_for(request)
    try:
        return loader.load(request)
    except ScarceMemoryError:
        raise
    except ModelError as error:
        name = request.name
        if name in catalogue() and (problem := cached_damage(name, thorough=True)) is not None:
            raise damaged(catalogue()[name], problem) from error
        raise
