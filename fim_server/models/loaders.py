"""Registry of the loaders, one for each backend.

To add a backend, say MLX, write a package beside :mod:`.onnx`. Its `backend` module implements
:class:`.backend.Backend`, and its `loader` module implements :class:`Loader`. Add the loader to :data:`LOADERS`; then
`--runtime` and :func:`.load.load_model` know it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fim_server.models.backend import LLAMA_CPP

if TYPE_CHECKING:
    from collections.abc import Callable

    from fim_server.models.model import FimModel
    from fim_server.models.request import LoadRequest


class Loader(Protocol):
    """Loader of the models that one backend computes.

    Its module is imported to ask whether it matches, so it imports the backend's library only in :meth:`load`.
    """

    def matches(self, request: LoadRequest, /) -> bool:
        """Return whether the backend runs the requested model.

        Raises:
            ModelError: The request names this runtime, which cannot run the model; one line.
        """

    def load(self, request: LoadRequest, /) -> FimModel:
        """Load the model that :meth:`matches` has accepted.

        Raises:
            ModelError: The model cannot be loaded or used; one line.
            StoppedError: The caller's stop was set during a download.
        """


def _torch() -> Loader:
    from fim_server.models.pytorch.loader import TorchLoader

    return TorchLoader()


def _onnx() -> Loader:
    from fim_server.models.onnx.loader import OnnxLoader

    return OnnxLoader()


def _llama_cpp() -> Loader:
    from fim_server.models.gguf.loader import GgufLoader

    return GgufLoader()


def _endpoint() -> Loader:
    from fim_server.models.remote.loader import EndpointLoader

    return EndpointLoader()


ENDPOINT = "endpoint"

LOADERS: dict[str, Callable[[], Loader]] = {
    "torch": _torch,
    "onnx": _onnx,
    LLAMA_CPP: _llama_cpp,
    ENDPOINT: _endpoint,
}
"""Constructors of the loaders by runtime, from the most general to the most special. The last that matches loads.

Torch runs any folder, on any device; onnxruntime runs exports on the CPU, and llama.cpp runs GGUF files.
"""

RUNTIMES = tuple(name for name in LOADERS if name != ENDPOINT)
"""Runtimes that a user can choose."""


def loader_for(request: LoadRequest) -> Loader:
    """Return the loader of the backend that runs a requested model. Raises :class:`ModelError` where none can."""
    return next(loader for make in reversed(LOADERS.values()) if (loader := make()).matches(request))
