"""Limits of the engine's time for one request."""

from __future__ import annotations

ENGINE_SECONDS = 5.0
"""Time for opening a cursor's session, and for the rest of the engine's work. A slower document gets no suggestions."""


def too_long() -> str:
    """Return the message for a document that takes too long to read."""
    return f"the file takes more than {ENGINE_SECONDS:g} s to read"
