"""What the server can be told, and its limits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Settings of one server process."""

    model: str | None = None
    """A model folder or hub name; None is the embedded model."""
    device: str | None = None
    """A torch device; None is a GPU where there is one."""
    max_new_tokens: int = 128
    """Longest completion, in tokens."""
    temperature: float = 0.0
    """0 takes the likeliest token."""
    deadline_ms: float | None = None
    """Milliseconds after which the best text so far is offered; None waits for the model."""
    max_file_characters: int = 1_000_000
    """Larger documents get no completions: the engine reads all of a file at each request."""
    python_version: str | None = None
    """The Python whose grammar counts, or `newest`; None is what each file's project asks for, else the newest."""
    log_level: str = "warning"
    """Level of the log on standard error."""
