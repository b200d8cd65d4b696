"""Constants of requests, read from ``constants.toml``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fim_server.constants import read_constants


@dataclass(frozen=True, slots=True)
class ServerConstants:
    """Debounce, typing along and prefetch."""

    debounce_share: float
    longest_debounce_ms: float
    typed_ms: float
    unclaimed_seconds: float
    prefetch_characters: int


SERVER = read_constants(ServerConstants, Path(__file__).parent / "constants.toml")
