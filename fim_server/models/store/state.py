"""State of the catalogue's models in the cache, and their builders."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from fim_server.models.store.catalogue import DEFAULT_NAME, Entry, entry_of
from fim_server.models.store.folders import cached_damage, cached_folder, models_folder


class Builder(Protocol):
    """Module that builds a model: ``fim_server.models.NAME.build``."""

    def build(self, source: Path, folder: Path, say: Callable[[str], None], /, *, keeps_weights: bool) -> None:
        """Build a model from a GGUF file or a transformers folder, and replace an existing one last."""

    def needs_weights(self) -> bool:
        """Return whether torch runs the model on this machine."""

    def drop_weights(self, folder: Path, /) -> int:
        """Remove what only torch reads, and return its bytes; 0 where it stays."""

    def is_current(self, folder: Path, /) -> bool:
        """Return whether a build would give the same folder again."""


def builder_of(name: str) -> Builder:
    """Return the builder of a model of the catalogue."""
    return cast(Builder, import_module(f"fim_server.models.{name}.build"))


class State(StrEnum):
    """State of a model of the catalogue."""

    READY = "ready"
    OUTDATED = "outdated"
    DAMAGED = "damaged"
    MISSING = "missing"


def state_of(entry: Entry, thorough: bool = False) -> State:
    """Return whether a model is in the cache, intact and up to date.

    ``thorough``: hash its files also where their stamps are unchanged.
    """
    if cached_damage(entry.name, thorough) is not None:
        return State.DAMAGED
    folder = cached_folder(entry.name)
    if folder is None:
        return State.MISSING
    is_current = entry.is_file or builder_of(entry.name).is_current(folder)
    return State.READY if is_current else State.OUTDATED


def to_be_got(model: str | None) -> tuple[Entry, State] | None:
    """Return the model that a user of ``model`` should install, with its state; None for none.

    That is the default model where it is missing, damaged or outdated, and there is a cache to put it into. ``model``
    is None for the default.
    """
    if model not in (None, DEFAULT_NAME) or models_folder() is None:
        return None
    entry = entry_of(DEFAULT_NAME)
    state = state_of(entry)
    return None if state is State.READY else (entry, state)
