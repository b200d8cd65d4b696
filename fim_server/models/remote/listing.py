"""Listing of an endpoint's models."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fim_server.errors import ModelError
from fim_server.models.backend import LEAST_WINDOW

if TYPE_CHECKING:
    from fim_server.models.remote.client import Client

USUAL_WINDOW = 4096
"""Context window in tokens, where an endpoint does not report it."""

MOST_NAMED, LONGEST_NAME = 10, 80
"""Most models that a message names, and characters of each."""

LONGEST_ASKED = 512
"""Most characters of a model's name, which every request and the status contain."""


def reported_window(value: Any) -> int:
    """Return the context window that an endpoint reports, or the usual one for an impossible value."""
    return value if type(value) is int and value >= LEAST_WINDOW else USUAL_WINDOW


def choose_model(client: Client, names: list[str], wanted: str | None) -> str:
    """Return the model to ask for.

    Raises ModelError where it is missing, or there are several and the user names none.
    """
    if wanted is not None:
        if wanted not in names and f"{wanted}:latest" not in names:
            known = [name for name in names if name.isprintable()]
            there = ", ".join(name[:LONGEST_NAME] for name in known[:MOST_NAMED]) or "none"
            raise ModelError(f"{client.base}: has no model {wanted}; there is {there}")
        return wanted
    if len(names) == 1 and (len(names[0]) > LONGEST_ASKED or not names[0].isprintable()):
        raise ModelError(f"{client.base}: the name of its model is invalid ({len(names[0])} characters)")
    if len(names) != 1:
        first = next((name[:LONGEST_NAME] for name in names if name.isprintable()), "NAME")
        what = f"has {len(names)} models: name one, {client.base}#{first}" if names else "has no model"
        raise ModelError(f"{client.base}: {what}")
    return names[0]


def vllm_models(answer: Any) -> list[dict[str, Any]]:
    """Return the models in an answer of `/v1/models`. Raises ModelError where it is no list."""
    try:
        return [dict(entry) for entry in answer["data"]]
    except (LookupError, TypeError, ValueError):
        raise ModelError(f"lists no models: {json.dumps(answer)[:100]}") from None
