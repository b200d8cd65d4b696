"""What an endpoint says of its models."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fim_server.errors import ModelError

if TYPE_CHECKING:
    from fim_server.models.remote.client import Client

USUAL_WINDOW = 4096
"""Tokens, where an endpoint does not say how many it reads."""


def choose_model(client: Client, names: list[str], wanted: str | None) -> str:
    """The model to ask for. Raises ModelError where it is not there, or several are and none was named."""
    if wanted is not None:
        if wanted not in names and f"{wanted}:latest" not in names:
            raise ModelError(f"{client.base}: has no model {wanted}; there is {', '.join(names) or 'none'}")
        return wanted
    if len(names) != 1:
        what = f"has {len(names)} models: name one, {client.base}#{names[0]}" if names else "has no model"
        raise ModelError(f"{client.base}: {what}")
    return names[0]


def vllm_models(answer: Any) -> list[dict[str, Any]]:
    """The models that `/v1/models` lists. Raises ModelError where that is no list."""
    try:
        return [dict(entry) for entry in answer["data"]]
    except (LookupError, TypeError, ValueError):
        raise ModelError(f"lists no models: {json.dumps(answer)[:100]}") from None
