"""Loading a model: the embedded one, a local folder, or a name on the hub.

Nothing here knows grammars or editors. A loaded model is its network, on torch or onnxruntime, its tokenizer, the FIM
format its tokenizer was found to have, and the vocabulary the engine needs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from fim_server.errors import ModelError, VocabularyError
from fim_server.models import onnx_runtime
from fim_server.models.onnx_runtime import RUNTIMES, OnnxModel
from fim_server.tokens.formats import BoundFormat, find_format
from fim_server.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import PreTrainedTokenizerBase

__all__ = ["FimModel", "ModelError", "Reading", "Readings", "load_model"]

EMBEDDED_NAME = "embedded"

DEFAULT_WINDOW = 2048
"""Tokens of context taken for a model whose configuration names none."""

HUB_SECONDS = 10.0
"""How long the hub may take to answer whether it is there."""

HUB_FILES = ["*.json", "*.safetensors", "*.model", "*.txt"]
"""What is downloaded of a hub model: configuration, tokenizer, and weights that hold no code."""

PREFILL_CHUNK = 256
"""Prompt tokens in one forward pass. Cancelling waits for at most one of them: about 25 ms for a 6M model on one CPU
thread, at no measurable cost in throughput."""


@dataclass(frozen=True)
class FimModel:
    """A model ready to fill in middles."""

    name: str
    network: Any
    """A causal language model of transformers, in evaluation mode, on ``device``; None where ``onnx`` is there."""
    tokenizer: PreTrainedTokenizerBase
    format: BoundFormat
    vocabulary: Vocabulary
    device: torch.device
    window: int
    """Tokens the model can attend to, prompt and middle together."""
    onnx: OnnxModel | None = None
    """The model's export, where it runs on onnxruntime."""

    @property
    def runtime(self) -> str:
        """What computes, by its name in :func:`load_model`."""
        return "torch" if self.onnx is None else "onnx"

    @property
    def size(self) -> int:
        """Length of a row of logits; often padded beyond the tokenizer's own tokens."""
        if self.onnx is not None:
            return self.onnx.size
        return int(self.network.get_output_embeddings().weight.shape[0])

    def new_cache(self) -> Any:
        """An empty KV cache."""
        if self.onnx is not None:
            return self.onnx.new_cache()
        from transformers import DynamicCache

        return DynamicCache(config=self.network.config)

    @torch.inference_mode()
    def forward(self, token_ids: Sequence[int], cache: Any) -> torch.Tensor:
        """Append tokens to the cache. Returns the float32 logits [V] after the last of them, on the device.

        Raises RuntimeError where the runtime does; what is in the cache is not known then.
        """
        if self.onnx is not None:
            return torch.from_numpy(cache.forward(token_ids))
        inputs = torch.tensor([token_ids], device=self.device)  # [1, T]
        output = self.network(input_ids=inputs, past_key_values=cache, use_cache=True, logits_to_keep=1)
        logits: torch.Tensor = output.logits[0, -1].float()
        if self.device.type == "cuda":
            torch.cuda.current_stream().synchronize()
        return logits


class Reading:
    """What a model has read so far: its KV cache and the tokens in it, kept from one request to the next.

    While someone types, a suffix-first prompt changes at its end only (design, section 12), so most of what was read
    for the last keystroke holds for this one. Logits after a reused cache differ from those of a fresh one by rounding
    alone (of activations to 8 bits where the weights have 8). One thread at a time.
    """

    def __init__(self, model: FimModel) -> None:
        self._model = model
        self._tokens: list[int] = []
        self._cache: Any = None

    def shared(self, tokens: Sequence[int]) -> int:
        """How many of the first ``tokens`` were read; never all, since the last one's logits are wanted."""
        count = min(len(self._tokens), len(tokens) - 1)
        return next((i for i in range(count) if self._tokens[i] != tokens[i]), count)

    def resume(self, tokens: Sequence[int]) -> int:
        """Keep what was read of the beginning of ``tokens``, forget the rest; returns how many tokens that is."""
        kept = self.shared(tokens)
        surplus = len(self._tokens) - kept
        if self._cache is None or kept == 0:
            self.forget()
            return 0
        if surplus:
            try:
                self._cache.crop(-surplus)
            except (RuntimeError, ValueError):  # a sliding window does not remember what it has left behind
                self.forget()
                return 0
            del self._tokens[kept:]
        return kept

    def forward(self, token_ids: Sequence[int]) -> torch.Tensor:
        """:meth:`FimModel.forward` on what was read so far."""
        if self._cache is None:
            self._cache = self._model.new_cache()
        try:
            logits = self._model.forward(token_ids, self._cache)
        except BaseException:
            self.forget()  # nobody knows how much of it the cache has taken in
            raise
        self._tokens.extend(token_ids)
        return logits

    def rewind(self, n_tokens: int) -> None:
        """Take back the last tokens that were read; they are read again where the cache cannot be cropped."""
        if n_tokens == 0:
            return
        kept = self._tokens[: len(self._tokens) - n_tokens]
        try:
            self._cache.crop(-n_tokens)
            self._tokens = kept
        except (RuntimeError, ValueError):  # as in resume
            self.forget()
            for begin in range(0, len(kept), PREFILL_CHUNK):
                self.forward(kept[begin : begin + PREFILL_CHUNK])

    def forget(self) -> None:
        """Start again with nothing read."""
        self._tokens, self._cache = [], None


class Readings:
    """What a model has read lately: several beginnings, because a bracket typed or overtyped changes the suffix.

    As :class:`Reading`; one thread at a time.
    """

    def __init__(self, model: FimModel, most: int = 4) -> None:
        self._model = model
        self._most = max(1, most)
        self._known: list[Reading] = []

    def nearest(self, tokens: Sequence[int]) -> Reading:
        """The reading that shares the longest beginning with a prompt.

        Where that is less than half of the prompt, a new one takes the place of the one that was used least recently,
        so that none is lost to a look at another file.
        """
        best = max(self._known, key=lambda reading: reading.shared(tokens), default=None)
        if best is None or 2 * best.shared(tokens) < len(tokens):
            if len(self._known) >= self._most:
                self._known.pop(0)
            best = Reading(self._model)
        else:
            self._known.remove(best)
        self._known.append(best)
        return best


def load_model(name_or_path: str | None = None, device: str | None = None, runtime: str | None = None) -> FimModel:
    """Load a model for filling in the middle.

    ``name_or_path``: a folder in the transformers layout, a name on the hub, or None for the embedded model.
    ``device``: a torch device, or None for a GPU where there is one. ``runtime``: `torch` or `onnx`, or None for onnx
    where the device is the CPU, the folder has an export of its weights and onnxruntime-genai is installed; torch's
    weights are not loaded then. Raises :class:`ModelError` for a model that cannot be found, read or used, or a device
    or runtime that is not there; its message is one line.
    """
    _quieten()
    chosen = choose_device("cpu" if device is None and runtime == "onnx" else device)
    source = locate(name_or_path)
    name = name_or_path or EMBEDDED_NAME
    export = choose_export(runtime, chosen, Path(source), name)
    tokenizer = _load_tokenizer(source, name)
    bound = find_format(tokenizer, name)  # before the weights: a refusal should not wait for them
    if export is None:
        return assemble(name, _load_network(source, name, chosen), tokenizer, bound, chosen)
    _choose_threads()
    return assemble(name, None, tokenizer, bound, chosen, OnnxModel(export, torch.get_num_threads()))


def choose_export(runtime: str | None, device: torch.device, source: Path, name: str) -> Path | None:
    """The folder that onnxruntime-genai is to load, or None for torch.

    Raises :class:`ModelError` for a runtime that is unknown, or that was asked for and cannot run the model.
    """
    if runtime not in (None, *RUNTIMES):
        raise ModelError(f"runtime {runtime}: unknown; there are {' and '.join(RUNTIMES)}")
    export = None if runtime == "torch" else onnx_runtime.export_of(source)
    if runtime is None:
        usable = device.type == "cpu" and onnx_runtime.is_installed() and not onnx_runtime.is_stale(source)
        return export if usable else None
    if runtime == "onnx":
        if device.type != "cpu":
            raise ModelError(f"runtime onnx: runs on the CPU, not on {device}")
        if export is None:
            wanted = f"{onnx_runtime.EXPORT_FOLDER}/{onnx_runtime.CONFIGURATION}"
            raise ModelError(f"runtime onnx: {name} has no export (no {wanted} in its folder)")
        if onnx_runtime.is_stale(source):
            raise ModelError(f"runtime onnx: the export of {name} is of other weights; export it again")
        if not onnx_runtime.is_installed():
            raise ModelError(f"runtime onnx: {onnx_runtime.PACKAGE} is not installed; the extra `onnx` has it")
    return export


def assemble(
    name: str,
    network: Any,
    tokenizer: PreTrainedTokenizerBase,
    bound: BoundFormat,
    device: torch.device,
    onnx: OnnxModel | None = None,
) -> FimModel:
    """Put a model together from loaded parts, of network and ``onnx`` the one that computes.

    Raises :class:`ModelError` where its tokens' bytes cannot be told.
    """
    if onnx is not None:
        rows, window = onnx.size, onnx.window
    else:
        rows = int(network.get_output_embeddings().weight.shape[0])
        window = int(getattr(network.config, "max_position_embeddings", None) or DEFAULT_WINDOW)
    # A tokenizer's ids may have holes, and a model fewer logits than there are ids: what it lacks is never its choice.
    size = max(rows, 1 + max(tokenizer.get_vocab().values(), default=0))
    try:
        vocabulary = Vocabulary.from_tokenizer(tokenizer, size=size, end_token_ids=bound.stop_ids)
    except VocabularyError as error:
        raise ModelError(f"{name}: {error}") from error
    return FimModel(
        name=name,
        network=network,
        tokenizer=tokenizer,
        format=replace(bound, plain=vocabulary.encode),
        vocabulary=vocabulary,
        device=device,
        window=window,
        onnx=onnx,
    )


def locate(name_or_path: str | None) -> str:
    """The folder to load from. Raises :class:`ModelError` where there is none, or no model in it."""
    if name_or_path is None:
        folder = Path(str(resources.files("fim_server") / "models" / EMBEDDED_NAME))
        if not (folder / "config.json").is_file():
            raise ModelError("this installation has no embedded model; name one with --model")
        return str(folder)
    folder = Path(name_or_path).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ModelError(f"{name_or_path}: not a model folder (no config.json in it)")
        return str(folder)
    if folder.exists():
        raise ModelError(f"{name_or_path}: not a model folder")
    if looks_like_path(name_or_path):
        raise ModelError(f"{name_or_path}: no such model folder")
    return fetch(name_or_path)


def fetch(name: str) -> str:
    """The local folder of a hub model, downloaded or completed as far as the hub can be reached.

    One request that is not retried asks whether it can; the download itself would try for a minute. Raises
    :class:`ModelError` for a name the hub does not know, and for one it cannot be asked about and is not cached.
    """
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        HfApi().model_info(name, timeout=HUB_SECONDS)
        return str(snapshot_download(name, allow_patterns=HUB_FILES))
    except (RepositoryNotFoundError, HFValidationError):
        raise ModelError(f"{name}: no such model, neither a folder here nor on the hub") from None
    except Exception as error:  # noqa: BLE001  # whatever the hub's HTTP library raises
        problem = first_line(error)
    try:
        return str(snapshot_download(name, allow_patterns=HUB_FILES, local_files_only=True))
    except LocalEntryNotFoundError:
        raise ModelError(f"{name}: no such model, neither a folder here nor in the hub's cache ({problem})") from None


def looks_like_path(name: str) -> bool:
    """Whether a name cannot be a hub name, which is ``name`` or ``owner/name``."""
    return name[:1] in ("", ".", "/", "~") or name.count("/") > 1 or "\\" in name or " " in name


def choose_device(name: str | None) -> torch.device:
    """The torch device of that name, or the best there is. Raises :class:`ModelError` if it is not there."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ModelError(f"device {name}: {first_line(error)}") from None
    return device


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its class where it has none; not every library keeps to one line."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(" :.") if lines else type(error).__name__


def _load_tokenizer(source: str, name: str) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    except Exception as error:  # transformers raises whatever its file formats and its network raise
        raise ModelError(f"{name}: its tokenizer cannot be loaded ({first_line(error)})") from error
    return tokenizer


def _load_network(source: str, name: str, device: torch.device) -> Any:
    from transformers import AutoModelForCausalLM

    # bf16 is slower than fp32 on a CPU (serving.md, measured); a GPU takes the weights as they are stored.
    dtype = torch.float32 if device.type == "cpu" else "auto"
    if device.type == "cpu":
        _choose_threads()
    try:
        network: Any = AutoModelForCausalLM.from_pretrained(source, dtype=dtype, trust_remote_code=False)
        return network.to(device)
    except Exception as error:  # as above
        raise ModelError(f"{name}: its weights cannot be loaded ({first_line(error)})") from error


def _quieten() -> None:
    """Keep the libraries' own progress bars and advice off the user's terminal."""
    for library in ("transformers", "huggingface_hub"):
        import_module(f"{library}.utils.logging").set_verbosity_error()
    import_module("transformers.utils.logging").disable_progress_bar()
    import_module("huggingface_hub.utils").disable_progress_bars()


def _choose_threads() -> None:
    """Use the cores that are free, unless the user has chosen.

    Two torch threads on two cores collapse (392 ms a token instead of 3) when another process holds one of them.
    """
    if "OMP_NUM_THREADS" in os.environ:
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    torch.set_num_threads(max(1, min(torch.get_num_threads(), cores - round(load))))
