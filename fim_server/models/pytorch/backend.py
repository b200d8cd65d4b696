"""Networks of transformers on torch, on any device.

The libraries are the extra ``torch``; :mod:`.loader` imports this module only for a model that needs it.
"""

from __future__ import annotations

import platform
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch

from fim_server.errors import ModelError, first_line
from fim_server.models.backend import LEAST_PROMPT_TOKENS
from fim_server.models.pytorch.masks import apply_mask, mask_buffer
from fim_server.models.pytorch.rows import RowCache
from fim_server.models.resources.threads import free_cores
from fim_server.models.source import SHOWN_OF_NAME

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerBase

    from fim_server.models.backend import Backend, Store
    from fim_server.models.pytorch.rows import StaticRows

DEFAULT_WINDOW = 2048
"""Context window of a model whose configuration names none."""

MOST_LAYERS = 4096
"""Most layers of a network that is loaded; the deepest published ones have some hundred."""


# --- logits ---------------------------------------------------------------------------------------------------------


class TorchSampler:
    """Sampler on logits [V]: the likeliest token at temperature 0, else draws by a seeded generator of its own."""

    def __init__(self, temperature: float, seed: int, device: torch.device) -> None:
        self._temperature = temperature
        # Torch takes seeds of 64 bits, with a sign or without, and raises for longer ones.
        self._generator = torch.Generator(device).manual_seed(seed % (1 << 64))

    def draw(self, logits: torch.Tensor) -> int:
        if self._temperature <= 0:
            return int(logits.argmax())
        probabilities = torch.softmax(logits / self._temperature, dim=-1)
        return int(torch.multinomial(probabilities, 1, generator=self._generator))


class TorchArithmetic:
    """Implementation of :class:`.backend.Arithmetic` on float32 tensors [V]."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def sampler(self, temperature: float, seed: int) -> TorchSampler:
        return TorchSampler(temperature, seed, self._device)

    def copy(self, logits: torch.Tensor) -> torch.Tensor:
        return logits.clone()

    def likeliest(self, logits: torch.Tensor) -> int:
        return int(logits.argmax())

    def masked(self, logits: torch.Tensor, words: NDArray[np.uint32]) -> torch.Tensor:
        return apply_mask(logits, words)

    def only(self, logits: torch.Tensor, tokens: Sequence[int] | NDArray[np.intp]) -> torch.Tensor:
        found = torch.full_like(logits, float("-inf"))
        ids = torch.as_tensor(tokens, device=logits.device)
        found[ids] = logits[ids]
        return found

    def refuse(self, logits: torch.Tensor, token: int) -> None:
        logits[token] = float("-inf")

    def mixed(self, logits: torch.Tensor, shares: Mapping[int, float]) -> torch.Tensor:
        ids = torch.tensor(list(shares), device=logits.device)
        given = torch.tensor(list(shares.values()), device=logits.device, dtype=logits.dtype)
        found = logits.clone()
        found[ids] = torch.logaddexp(logits[ids], logits.logsumexp(0) + (given / (1 - given.sum())).log())
        return found

    def shifted(self, logits: torch.Tensor, changes: Mapping[int, float]) -> torch.Tensor:
        found = logits.clone()
        ids = torch.tensor(list(changes), device=logits.device)
        found[ids] += torch.tensor(list(changes.values()), device=logits.device, dtype=logits.dtype)
        return found

    def tempered(self, logits: torch.Tensor, temperature: float) -> torch.Tensor:
        return logits / temperature

    def is_spent(self, logits: torch.Tensor) -> bool:
        return bool(torch.isinf(logits.max()))

    def shares(self, logits: torch.Tensor) -> torch.Tensor:
        return torch.softmax(logits, dim=-1)

    def top(self, shares: torch.Tensor, count: int) -> list[tuple[int, float]]:
        probabilities, ids = shares.topk(min(count, len(shares)))
        return list(zip(ids.tolist(), probabilities.tolist(), strict=True))

    def likely(self, logits: torch.Tensor, least: float) -> list[tuple[int, float]]:
        shares = torch.softmax(logits, dim=-1)
        near = (shares >= least).nonzero()[:, 0]
        return list(zip(near.tolist(), shares[near].tolist(), strict=True))

    def moved(self, logits: torch.Tensor, given: Mapping[int, float], taken: Collection[int]) -> torch.Tensor:
        ids = torch.tensor(list(given), device=logits.device)
        more = torch.tensor(list(given.values()), device=logits.device, dtype=logits.dtype)
        found = logits.clone()
        found[ids] = torch.logaddexp(logits[ids], logits.logsumexp(0) + more.log())
        found[torch.tensor(list(taken), device=logits.device)] = float("-inf")
        return found

    def share_of(self, logits: torch.Tensor, tokens: Collection[int]) -> float:
        ids = torch.tensor(sorted(tokens), device=logits.device)
        return float((logits[ids].logsumexp(0) - logits.logsumexp(0)).exp())


# --- the network ----------------------------------------------------------------------------------------------------


def without_cudnn_attention() -> None:
    """Disable cuDNN's attention in this process.

    It plans each new length, which first takes half a second and then three times as long as the step.
    """
    torch.backends.cuda.enable_cudnn_sdp(False)


class TorchBackend:
    """Causal language model of transformers in evaluation mode.

    Attributes:
        network: The model.
        place: Its device.
        window: Tokens of its context window.
    """

    name = "torch"
    gives_rows = True

    def __init__(
        self, network: Any, place: torch.device, window: int | None = None, static_cache: bool | None = None
    ) -> None:
        """Wrap a network.

        Args:
            network: The model.
            place: Its device.
            window: By default the window in the network's configuration.
            static_cache: Whether caches of a known size stay at fixed addresses, with steps as CUDA graphs, where the
                network allows it. By default on a GPU, where a row's step then takes a quarter to half of the time
                (docs/results/gpu.md).
        """
        if place.type == "cuda":
            without_cudnn_attention()
        self.network = network
        self.place = place
        self.window = window_of(network) if window is None else window
        self.arithmetic = TorchArithmetic(place)
        wanted = place.type == "cuda" if static_cache is None else static_cache
        self._static_cache = wanted and RowCache.can_serve(network)
        self.kept_rows: StaticRows | None = None
        """Rows of the last batch, for the next batch to reuse with their captured steps."""

    @property
    def device(self) -> str:
        return str(self.place)

    @property
    def size(self) -> int:
        return int(self.network.get_output_embeddings().weight.shape[0])

    @property
    def threads(self) -> int:
        """Torch's number of threads, of the whole process."""
        return torch.get_num_threads()

    def new_cache(self, room: int | None = None) -> Any:
        """Make an empty KV cache, which grows as it is filled."""
        if self._static_cache and room is not None:
            return RowCache(self.network, self.place, room)
        from transformers import DynamicCache

        return DynamicCache(config=self.network.config)

    def forward(self, token_ids: Sequence[int], cache: Any) -> torch.Tensor:
        return self.forward_rows(token_ids, cache, 1)[-1]

    @torch.inference_mode()
    def forward_rows(self, token_ids: Sequence[int], cache: Any, rows: int) -> list[torch.Tensor]:
        if isinstance(cache, RowCache):
            logits = cache.read(token_ids, rows)
        else:
            inputs = torch.tensor([token_ids], device=self.place)  # [1, T]
            output = self.network(input_ids=inputs, past_key_values=cache, use_cache=True, logits_to_keep=rows)
            logits = output.logits[0, -rows:].float()  # [rows, V]
        if self.place.type == "cuda":
            torch.cuda.current_stream().synchronize()
        return list(logits)

    def batching(self) -> AbstractContextManager[Any]:
        return torch.inference_mode()

    def store(self, rows: int, positions: int) -> Store:
        from fim_server.models.pytorch.batches import TorchRows

        return TorchRows(self, rows, positions)

    def mask_words(self, size: int) -> NDArray[np.uint32]:
        """Return zeroed memory for a mask, pinned where CUDA is present."""
        return mask_buffer(size)[1]


def window_of(network: Any) -> int:
    """Return the context window in a network's configuration."""
    return int(getattr(network.config, "max_position_embeddings", None) or DEFAULT_WINDOW)


def choose_device(name: str | None) -> torch.device:
    """Return the torch device of a name, or the best one. Raises :class:`ModelError` if it is not there."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
        if device.type == "meta":
            raise RuntimeError("it computes nothing")
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ModelError(f"device {name[:SHOWN_OF_NAME]}: {first_line(error)[:SHOWN_OF_NAME]}") from None
    return device


def load_tokenizer(source: str, name: str) -> PreTrainedTokenizerBase:
    """Load a tokenizer with transformers. Raises :class:`ModelError` where it cannot be loaded."""
    from transformers import AutoTokenizer

    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    except Exception as error:  # transformers raises whatever its file formats and its network raise
        raise ModelError(f"{name}: its tokenizer cannot be loaded ({first_line(error)})") from error
    return tokenizer


def load_network(source: str, name: str, device: torch.device) -> Any:
    """Load a network on a device. Raises :class:`ModelError` where its weights cannot be loaded."""
    from transformers import AutoConfig, AutoModelForCausalLM

    # bf16 is slower than fp32 on a CPU (serving.md, measured); a GPU takes the weights as they are stored.
    dtype = torch.float32 if device.type == "cpu" else "auto"
    if device.type == "cpu":
        torch.set_num_threads(free_cores(torch.get_num_threads()))
    try:
        with warnings.catch_warnings(action="ignore"):  # of libraries, on sizes that make no sense, before they raise
            check_sizes(AutoConfig.from_pretrained(source, trust_remote_code=False))
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                source, dtype=dtype, trust_remote_code=False, output_loading_info=True
            )
        network, info = loaded
        # Transformers makes them up, and warns.
        if missing := sorted(info["missing_keys"]):
            raise ValueError(f"{len(missing)} of its tensors are missing, as {missing[0]}")
        return network.to(device)
    except Exception as error:  # as above
        raise ModelError(f"{name}: its weights cannot be loaded ({first_line(error)})") from error


def check_sizes(config: Any) -> None:
    """Raise ValueError for sizes that would keep the libraries busy forever, or leave no room for a prompt."""
    layers = getattr(config, "num_hidden_layers", None)
    if isinstance(layers, int) and layers > MOST_LAYERS:
        raise ValueError(f"{layers} layers are more than {MOST_LAYERS}")
    window = getattr(config, "max_position_embeddings", None)
    if isinstance(window, int) and 0 != window < LEAST_PROMPT_TOKENS:
        raise ValueError(f"a window of {window} tokens")


def quieten() -> None:
    """Keep the libraries' progress bars and advice off the user's terminal."""
    for library in ("transformers", "huggingface_hub"):
        import_module(f"{library}.utils.logging").set_verbosity_error()
    import_module("transformers.utils.logging").disable_progress_bar()
    import_module("huggingface_hub.utils").disable_progress_bars()


def free_memory() -> None:
    """Release unused device memory after a batch was too large."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def describe_machine(backend: Backend) -> dict[str, str | int]:
    """Describe a model's machine: the device's name, the numbers' type and torch's threads."""
    assert isinstance(backend, TorchBackend), "only torch is described"
    cuda = backend.place.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(backend.place) if cuda else platform.processor() or platform.machine(),
        "dtype": str(getattr(backend.network, "dtype", "unknown")).removeprefix("torch."),
        "threads": torch.get_num_threads(),
    }
