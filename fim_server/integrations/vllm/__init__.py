"""Masks in vLLM, by structured outputs or, where these are not available, by a logits processor.

`register` is the entry point of the group `vllm.general_plugins`: vLLM calls it in each of its processes at their
start. `--logits-processors fim_server.integrations.vllm:FimLogitsProcessor` loads the processor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fim_server.errors import VersionError

if TYPE_CHECKING:
    from fim_server.integrations.vllm.processors import FimLogitsProcessor

__all__ = ["FimLogitsProcessor", "register"]


def register() -> None:
    """Install the plug-in; in an unknown vLLM, a refusal of its requests. Calling it again does nothing.

    Raises VersionError if not even that can be installed; vLLM does not start then, unless its environment variable
    VLLM_PLUGINS leaves the plug-in out.
    """
    try:
        from fim_server.integrations.vllm import plugin
    except ImportError as error:
        raise VersionError(f"fim-server's plug-in does not fit this vLLM: {error}") from error
    plugin.install()


def __getattr__(name: str) -> object:
    """Import the processor at its first use: it needs both of vLLM's interfaces."""
    if name == "FimLogitsProcessor":
        from fim_server.integrations.vllm.processors import FimLogitsProcessor

        return FimLogitsProcessor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
