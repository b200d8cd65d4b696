"""Loading the model behind an address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fim_server.errors import ModelError
from fim_server.models.remote.address import is_remote

if TYPE_CHECKING:
    from fim_server.models.model import FimModel
    from fim_server.models.request import LoadRequest


class EndpointLoader:
    """Loader of models that an HTTP endpoint computes."""

    def matches(self, request: LoadRequest) -> bool:
        """Return whether the model's name is an address."""
        return is_remote(request.name)

    def load(self, request: LoadRequest) -> FimModel:
        """Ask the endpoint for its model and tokens."""
        from fim_server.models.remote.load import load_remote

        if request.device is not None or request.runtime is not None:
            raise ModelError("--device and --runtime are for models here; an endpoint has its own")
        if request.options.gpu_layers is not None or request.options.adapter is not None:
            raise ModelError("layers on a GPU and adapters are for GGUF files; an endpoint has its own")
        return load_remote(request.name, request.options)
