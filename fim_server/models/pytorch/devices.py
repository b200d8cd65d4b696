"""Devices by the names that torch gives them, found without importing torch where possible."""

from __future__ import annotations

import ctypes
import sys
from importlib.util import find_spec
from pathlib import Path

from fim_server.errors import ModelError

CPU = "cpu"

PACKAGES = ("torch", "transformers")
"""Packages of the extra `torch`."""

INSTALL = "pip install 'fim-server[torch]'"

CUDA_DRIVERS = {"linux": "libcuda.so.1", "win32": "nvcuda.dll"}
ROCM_DEVICE = Path("/dev/kfd")


def has_torch() -> bool:
    """Return whether the packages of the extra `torch` are installed."""
    return all(find_spec(package) is not None for package in PACKAGES)


def require_torch(what: str) -> None:
    """Raise :class:`ModelError` naming the extra where torch or transformers are not installed."""
    if not has_torch():
        raise ModelError(f"{what}: needs PyTorch: {INSTALL}")


def is_cpu(device: str) -> bool:
    """Return whether a device's name is the CPU's, as in ``cpu`` and ``cpu:0``."""
    return device.partition(":")[0] == CPU


def named_device(name: str) -> str:
    """Return a device as torch spells it. Raises :class:`ModelError` if it or torch is not there."""
    require_torch(f"device {name}")
    from fim_server.models.pytorch.backend import choose_device

    return str(choose_device(name))


def best_device() -> str:
    """Return a GPU where torch can use one, else the CPU.

    Importing torch takes seconds, so torch is asked only where there is a driver.
    """
    if not has_torch() or not may_have_gpu():
        return CPU
    from fim_server.models.pytorch.backend import choose_device

    return str(choose_device(None))


def may_have_gpu() -> bool:
    """Return whether a CUDA or ROCm driver is there; without one, torch has no GPU."""
    if "torch" in sys.modules or ROCM_DEVICE.exists():  # asking torch is free then, or needed
        return True
    driver = CUDA_DRIVERS.get(sys.platform)
    if driver is None:
        return False
    try:
        ctypes.CDLL(driver)
    except OSError:
        return False
    return True
