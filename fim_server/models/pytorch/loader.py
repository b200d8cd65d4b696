"""Loading a folder in the transformers layout on torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fim_server.errors import ModelError
from fim_server.models.kind import kind_of_folder
from fim_server.models.model import assemble
from fim_server.models.onnx.backend import PACKAGE
from fim_server.models.onnx.loader import usable_export
from fim_server.models.prompt import find_format
from fim_server.models.pytorch.devices import INSTALL, has_torch
from fim_server.models.weights import require_weights

if TYPE_CHECKING:
    from fim_server.models.model import FimModel
    from fim_server.models.request import LoadRequest


class TorchLoader:
    """Loader of any folder in the transformers layout."""

    def matches(self, request: LoadRequest) -> bool:
        """Return True. Raises :class:`ModelError` where torch is not installed."""
        _ = request.place, request.path  # an unknown device or model is the better message
        if not has_torch():
            missing = f" (or {PACKAGE}, where it has a wheel)" if usable_export(request) else ""
            raise ModelError(f"{request.name}: needs PyTorch{missing}: {INSTALL}")
        return True

    def load(self, request: LoadRequest) -> FimModel:
        from fim_server.models.pytorch import backend as torch_backend

        name, source = request.name, str(request.path)
        with request.attempt():
            torch_backend.quieten()
            place = torch_backend.choose_device(request.place)
            tokenizer = torch_backend.load_tokenizer(source, name)
            kind = kind_of_folder(request.path, name)
            bound = find_format(tokenizer, name, kind)  # before the weights: a refusal should not wait for them
            require_weights(request.path, name)
            backend = torch_backend.TorchBackend(torch_backend.load_network(source, name, place), place)
            return assemble(name, backend, tokenizer, bound)
