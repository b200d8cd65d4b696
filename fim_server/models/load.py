"""Loading a model: which backend runs it, and what it is put together from.

Nothing here knows grammars or editors. Torch and transformers are imported only where they are needed: for a model
without an export, a device other than the CPU, or where torch was asked for. The rest runs on onnxruntime, and a GGUF
file on llama.cpp.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import nullcontext
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fim_server.errors import DamagedError, ModelError, VocabularyError
from fim_server.models import onnx_backend
from fim_server.models.attempts import attempt
from fim_server.models.backend import LLAMA_CPP, RUNTIMES
from fim_server.models.model import FimModel
from fim_server.models.onnx_backend import OnnxBackend
from fim_server.models.options import LoadOptions
from fim_server.models.prompt import find_format
from fim_server.models.remote.address import is_remote
from fim_server.models.room import bytes_of, require_room
from fim_server.models.source import EMBEDDED_NAME, expanded, is_gguf, locate, name_of, parts_of
from fim_server.models.store.catalogue import catalogue
from fim_server.models.store.folders import cached_damage, damaged
from fim_server.models.threads import free_cores, usual_threads
from fim_server.models.tokenizer import TOKENIZER_FILE, read_tokenizer
from fim_server.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from fim_server.models.backend import Backend
    from fim_server.models.prompt import BoundFormat
    from fim_server.models.store.transfer import Amount

CPU = "cpu"

TORCH_PACKAGES = ("torch", "transformers")
"""What the extra `torch` brings."""

INSTALL_TORCH = "pip install 'fim-server[torch]'"

CUDA_DRIVERS = {"linux": "libcuda.so.1", "win32": "nvcuda.dll"}
ROCM_DEVICE = Path("/dev/kfd")


NO_OPTIONS = LoadOptions()


def load_model(
    name_or_path: str | None = None,
    device: str | None = None,
    runtime: str | None = None,
    options: LoadOptions = NO_OPTIONS,
    tell: Amount | None = None,
) -> FimModel:
    """Load a model for filling in the middle.

    ``name_or_path``: a folder in the transformers layout, a GGUF file, an endpoint's address (http, https), a name on
    the hub, `smollm2`, `embedded`, or None for the first of these two that is there.
    ``device``: a torch device, or None for a GPU where there is one. ``runtime``: `torch` or `onnx`, or None for onnx
    where the device is the CPU, the folder has an export of its weights and onnxruntime is installed; torch is
    not even imported then. A GGUF file runs on `llama.cpp` alone. ``tell``: told how many bytes of how many have come,
    on other threads, where the model is downloaded. Raises :class:`ModelError` for a model that cannot be found, read
    or used, or a device or runtime that is not there; its message is one line. And StoppedError where what watches this
    thread is set during a download.
    """
    if runtime not in (None, *RUNTIMES):
        raise ModelError(f"runtime {runtime}: unknown; there are {', '.join(RUNTIMES[:-1])} and {RUNTIMES[-1]}")
    if name_or_path is not None and is_remote(name_or_path):
        return load_endpoint(name_or_path, device, runtime, options)
    if (options.api_key_env, options.tokenizer, options.allow_plain_http) != (None, None, False):
        raise ModelError(f"keys, plain HTTP and tokenizers are for endpoints, and {name_of(name_or_path)} is none")
    if name_or_path is not None and is_gguf(name_or_path):
        return load_gguf_file(name_or_path, device, runtime, options)
    if runtime == LLAMA_CPP:
        raise ModelError(f"runtime {LLAMA_CPP}: runs GGUF files, and {name_of(name_or_path)} is none")
    if options != NO_OPTIONS:
        raise ModelError(f"layers on a GPU and adapters are for GGUF files, and {name_of(name_or_path)} is none")
    if runtime == "onnx" and device is not None and not is_cpu(device):
        raise ModelError(f"runtime onnx: runs on the CPU, not on {device}")
    if runtime == "onnx":
        device = CPU
    elif device is None:
        device = best_device()
    elif not is_cpu(device):
        device = named_device(device)
    name = name_of(name_or_path)
    try:
        return _load_folder(name, device, runtime, tell)
    except DamagedError:
        if name_or_path is not None:
            raise
        return _load_folder(EMBEDDED_NAME, device, runtime, tell)


def _load_folder(name: str, device: str, runtime: str | None, tell: Amount | None) -> FimModel:
    source = locate(name, tell)
    export = choose_export(runtime, device, Path(source), name)
    if export is not None:
        require_room(name, bytes_of(export))
    is_own = name == EMBEDDED_NAME or name in catalogue()  # models that the package brings or builds
    try:
        with nullcontext() if is_own else attempt(name, Path(source)):
            if export is None:
                return _load_on_torch(source, name, device)
            return _load_on_onnx(Path(source), name, export)
    except ModelError as error:
        if name in catalogue() and (problem := cached_damage(name, thorough=True)) is not None:
            raise damaged(catalogue()[name], problem) from error
        raise


def choose_export(runtime: str | None, device: str, source: Path, name: str) -> Path | None:
    """The folder that onnxruntime is to load, or None for torch.

    Raises :class:`ModelError` where the runtime that was asked for cannot run the model, or nothing here can.
    """
    export = None if runtime == "torch" else onnx_backend.export_of(source)
    if runtime == "onnx":
        if export is None:
            wanted = f"{onnx_backend.EXPORT_FOLDER}/{onnx_backend.CONFIGURATION}"
            raise ModelError(f"runtime onnx: {name} has no export (no {wanted} in its folder)")
        if onnx_backend.is_stale(source):
            raise ModelError(f"runtime onnx: the export of {name} is of other weights; export it again")
        if not onnx_backend.is_installed():
            raise ModelError(f"runtime onnx: {onnx_backend.PACKAGE} is not installed; {onnx_backend.HOW_TO_INSTALL}")
        return export
    usable = export is not None and is_cpu(device) and not onnx_backend.is_stale(source)
    if usable and onnx_backend.is_installed():
        return export
    if not has_torch():
        missing = f" (or {onnx_backend.PACKAGE}, where it has a wheel)" if usable else ""
        raise ModelError(f"{name}: needs PyTorch{missing}: {INSTALL_TORCH}")
    return None


def assemble(name: str, backend: Backend, tokenizer: Any, bound: BoundFormat) -> FimModel:
    """Put a model together from loaded parts.

    Raises :class:`ModelError` where its tokens' bytes cannot be told.
    """
    # A tokenizer's ids may have holes, and a model fewer logits than there are ids: what it lacks is never its choice.
    size = max(backend.size, 1 + max(tokenizer.get_vocab().values(), default=0))
    try:
        vocabulary = Vocabulary.from_tokenizer(tokenizer, size=size, end_token_ids=bound.stop_ids)
    except VocabularyError as error:
        raise ModelError(f"{name}: {error}") from error
    return FimModel(name, backend, replace(bound, plain=vocabulary.encode), vocabulary)


def load_endpoint(name: str, device: str | None, runtime: str | None, options: LoadOptions) -> FimModel:
    """The model behind an address. Raises :class:`ModelError`, as :func:`load_model`."""
    from fim_server.models.remote.load import load_remote

    if device is not None or runtime is not None:
        raise ModelError("an endpoint computes where and with what it does: --device and --runtime are for models here")
    if options.gpu_layers is not None or options.adapter is not None:
        raise ModelError("layers on a GPU and adapters are for GGUF files; an endpoint has its own")
    return load_remote(name, options)


def load_gguf_file(name: str, device: str | None, runtime: str | None, options: LoadOptions) -> FimModel:
    """Load a GGUF file. Raises :class:`ModelError`, as :func:`load_model`."""
    from fim_server.models.gguf.load import load_gguf

    if runtime not in (None, LLAMA_CPP):
        raise ModelError(f"runtime {runtime}: runs no GGUF files, {LLAMA_CPP} does")
    layers = options.gpu_layers
    if device is not None:
        if is_cpu(device) and layers:
            raise ModelError(f"device {device}: {layers} layers on a GPU were asked for as well")
        layers = 0 if is_cpu(device) else (-1 if layers is None else layers)
    path = Path(locate(name))
    adapter = None if options.adapter is None else expanded(options.adapter)
    if adapter is not None and not adapter.is_file():
        raise ModelError(f"{options.adapter}: no such file")
    require_room(name, sum(part.stat().st_size for part in parts_of(path)))
    with attempt(name, path):
        return load_gguf(path, free_cores(usual_threads()), layers, adapter)


def _load_on_onnx(folder: Path, name: str, export: Path) -> FimModel:
    if (folder / TOKENIZER_FILE).is_file():
        tokenizer: Any = read_tokenizer(folder, name)
    elif has_torch():  # an older layout, which transformers converts
        from fim_server.models import torch_backend

        torch_backend.quieten()
        tokenizer = torch_backend.load_tokenizer(str(folder), name)
    else:
        raise ModelError(
            f"{name}: has no {TOKENIZER_FILE}, and to read another tokenizer needs PyTorch: {INSTALL_TORCH}"
        )
    bound = find_format(tokenizer, name)  # before the weights: a refusal should not wait for them
    return assemble(name, OnnxBackend(export, free_cores(usual_threads())), tokenizer, bound)


def _load_on_torch(source: str, name: str, device: str) -> FimModel:
    from fim_server.models import torch_backend

    torch_backend.quieten()
    place = torch_backend.choose_device(device)
    tokenizer = torch_backend.load_tokenizer(source, name)
    bound = find_format(tokenizer, name)  # as above
    backend = torch_backend.TorchBackend(torch_backend.load_network(source, name, place), place)
    return assemble(name, backend, tokenizer, bound)


def has_torch() -> bool:
    """Whether what the extra `torch` brings can be imported."""
    return all(find_spec(package) is not None for package in TORCH_PACKAGES)


def require_torch(what: str) -> None:
    """Raises :class:`ModelError` naming the extra where torch or transformers are not installed."""
    if not has_torch():
        raise ModelError(f"{what}: needs PyTorch: {INSTALL_TORCH}")


def is_cpu(device: str) -> bool:
    """Whether a device's name, as torch spells it, is the CPU's."""
    return device.partition(":")[0] == CPU


def named_device(name: str) -> str:
    """A device of torch's, as torch spells it. Raises :class:`ModelError` if it is not there, or torch is not."""
    require_torch(f"device {name}")
    from fim_server.models import torch_backend

    return str(torch_backend.choose_device(name))


def best_device() -> str:
    """A GPU where torch can use one, else the CPU.

    Importing torch to ask takes seconds, so the driver is asked first.
    """
    if not has_torch() or not may_have_gpu():
        return CPU
    from fim_server.models import torch_backend

    return str(torch_backend.choose_device(None))


def may_have_gpu() -> bool:
    """Whether a driver is there without which torch has no GPU (it counts those of CUDA and ROCm)."""
    if "torch" in sys.modules or ROCM_DEVICE.exists():  # it costs nothing to ask torch then, or it has to be asked
        return True
    driver = CUDA_DRIVERS.get(sys.platform)
    if driver is None:
        return False
    try:
        ctypes.CDLL(driver)
    except OSError:
        return False
    return True
