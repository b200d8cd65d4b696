"""What is there of the models in the catalogue, what builds them, and what there is to be got."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from fim_server.models.store.catalogue import DEFAULT_NAME, Entry, entry_of
from fim_server.models.store.folders import cached_damage, cached_folder, models_folder


class Builder(Protocol):
    """The module that builds a model: ``fim_server.models.NAME.build``."""

    def build(self, source: Path, folder: Path, say: Callable[[str], None], /) -> None:
        """Make a model of a GGUF file, or of a folder in the transformers layout; what stood there is replaced last."""

    def is_current(self, folder: Path, /) -> bool:
        """Whether a folder holds what would be built now: by this builder, with the adapter as it is."""


def builder_of(name: str) -> Builder:
    """What builds a model of the catalogue."""
    return cast(Builder, import_module(f"fim_server.models.{name}.build"))


class State(StrEnum):
    """Of a model in the catalogue."""

    READY = "ready"
    OUTDATED = "outdated"
    DAMAGED = "damaged"
    MISSING = "missing"


def state_of(entry: Entry, thorough: bool = False) -> State:
    """Return whether a model is in the cache, whole, and as a build would make it now.

    ``thorough``: hash its files also where their stamps are unchanged.
    """
    if cached_damage(entry.name, thorough) is not None:
        return State.DAMAGED
    folder = cached_folder(entry.name)
    if folder is None:
        return State.MISSING
    return State.READY if builder_of(entry.name).is_current(folder) else State.OUTDATED


def to_be_got(model: str | None) -> tuple[Entry, State] | None:
    """The model that somebody should get who has asked for ``model``, None being the default; None for none.

    That is the default where it is missing, damaged or outdated; nothing where there is no cache to put it into.
    """
    if model not in (None, DEFAULT_NAME) or models_folder() is None:
        return None
    entry = entry_of(DEFAULT_NAME)
    state = state_of(entry)
    return None if state is State.READY else (entry, state)
