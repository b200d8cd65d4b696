"""Answers on time while an endpoint is silent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fim_server.models.remote.address import is_remote
from fim_server.text.hidden import on_one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from fim_server.suggest.job import Request, Work

GRACE_SECONDS = 1.0
"""Time beyond a request's deadline for the work that keeps the deadline itself, but for its last step."""


class LateAnswerError(Exception):
    """A request that has no answer at its deadline; the message is the reason."""


async def on_time(
    request: Request, waiting: asyncio.Future[Work | None], is_loading: Callable[[], bool]
) -> Work | None:
    """Wait for a request's work, with an endpoint no longer than to the request's deadline; leave it uncancelled.

    A model of this machine is waited for until it is loaded. An endpoint may never answer. Raises LateAnswerError, and
    whatever the work raises.
    """
    settings = request.settings
    name, deadline_ms = settings.model or "", settings.invoked_deadline_ms if request.invoked else settings.deadline_ms
    if not is_remote(name) or not deadline_ms:
        return await asyncio.shield(waiting)
    await asyncio.wait((waiting,), timeout=deadline_ms / 1000)
    if not waiting.done() and not is_loading():
        await asyncio.wait((waiting,), timeout=GRACE_SECONDS)
    if waiting.done():
        return waiting.result()
    state = "its model is still being loaded" if is_loading() else "it has not answered in time"
    raise LateAnswerError(f"{on_one_line(name)}: {state}")
