"""Address of the hub, or of a mirror that the environment names (``HF_ENDPOINT``), and what its failures mean."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from fim_server.errors import first_line

WRONG_ANSWERS = ValueError, TypeError, LookupError, AttributeError
"""Errors of the hub's library with an answer that it cannot read."""


def endpoint() -> str:
    """Return the address of the hub or its mirror."""
    from huggingface_hub.constants import ENDPOINT

    return (os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")


def host() -> str:
    return urlsplit(endpoint()).hostname or endpoint()


def problem_of(error: Exception) -> str:
    """Return why the hub did not answer a request, in a line without the model's name."""
    from huggingface_hub.errors import FileMetadataError, HfHubHTTPError, OfflineModeIsEnabled

    if isinstance(error, OfflineModeIsEnabled):
        return f"{host()} is not asked, since HF_HUB_OFFLINE is set"
    if isinstance(error, (HfHubHTTPError, FileMetadataError, *WRONG_ANSWERS)):
        return f"{host()} does not answer as the hub does ({first_line(error)})"
    return f"{host()} cannot be reached ({first_line(error)})"
