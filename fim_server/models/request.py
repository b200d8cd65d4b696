"""A request to load a model."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from fim_server.errors import ModelError
from fim_server.models.options import NO_OPTIONS, LoadOptions
from fim_server.models.pytorch.devices import best_device, is_cpu, named_device
from fim_server.models.remote.address import is_remote
from fim_server.models.resources.attempts import attempt
from fim_server.models.source import EMBEDDED_NAME, is_gguf_model, locate
from fim_server.models.store.catalogue import catalogue

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from fim_server.models.store.transfer import Amount


@dataclass(frozen=True)
class LoadRequest:
    """A request to load a model.

    Attributes:
        name: The model's name, path or address.
        device: The device as torch spells it; None for a GPU where there is one.
        runtime: The runtime's name in :data:`.loaders.RUNTIMES`; None for the most special one that runs the model.
        options: Options of endpoints and GGUF files.
        tell: Receives the progress of a download in bytes, on other threads.
    """

    name: str
    device: str | None = None
    runtime: str | None = None
    options: LoadOptions = NO_OPTIONS
    tell: Amount | None = None

    @cached_property
    def place(self) -> str:
        """Device that computes the model. Raises :class:`ModelError` if the requested one is not there."""
        if self.device is None:
            return best_device()
        return self.device if is_cpu(self.device) else named_device(self.device)

    @cached_property
    def path(self) -> Path:
        """File or folder of the model, which the first use may download. Raises as :func:`.source.locate`."""
        return Path(locate(self.name, self.tell))

    @property
    def is_own(self) -> bool:
        """True for a model that is brought or built here."""
        known = catalogue().get(self.name)
        return self.name == EMBEDDED_NAME or (known is not None and not known.is_file)

    def attempt(self) -> AbstractContextManager[None]:
        """Return a context that counts crashes of native libraries over foreign files; see :mod:`.attempts`."""
        return nullcontext() if self.is_own else attempt(self.name, self.path)

    def refuse_foreign_options(self) -> None:
        """Raise :class:`ModelError` for an option that models of this kind do not have.

        The loader of endpoints refuses options itself: an unchecked address may hold a password, which no message may
        quote.
        """
        if is_remote(self.name):
            return
        of_endpoints = replace(self.options, gpu_layers=None, adapter=None)
        if of_endpoints != NO_OPTIONS:
            raise ModelError(f"keys, plain HTTP and tokenizers are for endpoints, and {self.name} is none")
        if of_endpoints != self.options and not is_gguf_model(self.name):
            raise ModelError(f"layers on a GPU and adapters are for GGUF files, and {self.name} is none")
