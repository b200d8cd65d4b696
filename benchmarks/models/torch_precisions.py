"""The precisions of torch that ``./dev bench runtimes`` measures, and torch's threads."""

from __future__ import annotations

import io
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from fim_server.models.pytorch.backend import TorchBackend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fim_server.models.model import FimModel


class WeightOnlyLinear(torch.nn.Module):
    """A linear layer without bias that keeps int8 weights, with one scale a row, and multiplies bf16 activations."""

    def __init__(self, linear: torch.nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach().float()  # [out, in]
        scales = weight.abs().amax(dim=1).clamp(min=1e-12) / 127
        self.register_buffer("weight", (weight / scales[:, None]).round().to(torch.int8))
        self.register_buffer("scales", scales.to(torch.bfloat16))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Inputs [..., in] in bf16; returns [..., out]."""
        rows = inputs.reshape(-1, inputs.shape[-1])
        product: torch.Tensor = torch.ops.aten._weight_int8pack_mm(rows, self.weight, self.scales)  # noqa: SLF001
        return product.view(*inputs.shape[:-1], -1)


def load_torch(folder: str, precision: str) -> TorchBackend:
    """The weights of a folder in one of ``runtimes.TORCH_PRECISIONS``.

    Raises:
        Exception: Whatever torch raises where it lacks the precision.
    """
    from transformers import AutoModelForCausalLM

    dtype = torch.bfloat16 if precision in ("bf16", "int8-weights") else torch.float32
    network: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, trust_remote_code=False)
    if precision == "int8-weights":
        plain = [name for name, layer in network.named_modules() if type(layer) is torch.nn.Linear]
        for name in plain:
            parent, _, own = name.rpartition(".")
            layer = network.get_submodule(name)
            if layer.bias is None:
                setattr(network.get_submodule(parent), own, WeightOnlyLinear(layer))
    return TorchBackend(network, torch.device("cpu"))


def stored_size(backend: TorchBackend) -> int:
    """Bytes of its weights as they are stored: tied weights once, and packed ones as they are."""
    stored = io.BytesIO()
    torch.save(backend.network.state_dict(), stored)
    return stored.tell()


def parameter_count(model: FimModel) -> int:
    """Numbers in the weights of a model that torch runs."""
    backend = model.backend
    assert isinstance(backend, TorchBackend), "loaded for torch"
    return sum(parameter.numel() for parameter in backend.network.parameters())


@contextmanager
def threads_restored() -> Iterator[None]:
    """Leaves torch with the threads it had."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def set_threads(count: int) -> None:
    """Use so many threads within an operator, in the whole process."""
    torch.set_num_threads(count)


def version() -> str:
    """Torch's own."""
    return str(torch.__version__)
