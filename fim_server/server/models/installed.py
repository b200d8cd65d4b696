"""Commands that list the models of this machine and remove one of them.

Both read disks, so they run on blocking threads.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from typing import Any, TypeVar

from lsprotocol import types

from fim_server.errors import ModelError
from fim_server.models.remote.address import is_remote
from fim_server.models.source import EMBEDDED_NAME, expanded, name_of
from fim_server.models.store.catalogue import catalogue
from fim_server.models.store.folders import cached_folder
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.status import MOST_OF_NAME
from fim_server.system.blocking_pool import BLOCKING_POOL
from fim_server.text.hidden import on_one_line
from fim_server.workers.shared_models import SharedModels

T = TypeVar("T")

DISK_SECONDS = 20.0
"""Longest wait for the disk."""

LET_GO_SECONDS, LOOK_SECONDS = 1.0, 0.25
"""Longest wait for a model to be released after another was chosen, and time between two looks, each of which collects
garbage, for which all threads wait."""

LONGEST_NAME = 4096
"""Most characters of a model's name; no system takes longer paths."""

SILENT_DISK = f"the disk has not answered within {DISK_SECONDS:.0f} s"


async def list_models(ls: FimLanguageServer) -> list[dict[str, Any]]:
    """Return the models of this machine, the command's answer. Raises ModelError if the disk does not answer."""
    chosen, models = ls.settings.model, ls.worker.models

    def look() -> list[dict[str, Any]]:
        from fim_server.evaluation.model_check.known import models_here
        from fim_server.evaluation.model_check.listing import list_models as rows_of

        used = {identity(one) for one in (chosen, *models.names())}
        return [{**row, "inUse": identity(row["name"]) in used} for row in rows_of(models_here()).rows]

    return await on_disk(("models", chosen, id(models)), look)


async def remove_model(ls: FimLanguageServer, name: str) -> dict[str, Any]:
    """Delete a model of ours that is not in use; return the command's answer."""
    chosen, models = ls.settings.model, ls.worker.models

    def delete() -> int:
        from fim_server.models.store.get import remove

        if len(name) > LONGEST_NAME:
            raise ModelError(f"no model has a name of {len(name):,} characters")
        if is_in_use(name, chosen, models):
            raise ModelError(f"{name} is in use: choose another model first")
        return remove(name)

    freed, problem = 0, None
    try:
        freed = await on_disk(("remove", name, chosen, id(models)), delete)
    except ModelError as error:
        problem = on_one_line(str(error))
        ls.log(types.MessageType.Error, f"removing {on_one_line(name, MOST_OF_NAME)}: {problem}")
    else:
        ls.log(types.MessageType.Info, f"{on_one_line(name, MOST_OF_NAME)} is removed")
    return {"name": name, "done": problem is None, "freedBytes": freed, "problem": problem}


async def on_disk(key: tuple[object, ...], work: Callable[[], T]) -> T:
    """Return the result of blocking work. Raises what it raises, and ModelError if the disk does not answer."""
    begun = BLOCKING_POOL.begin(key, work)
    if begun is None:
        raise ModelError(SILENT_DISK)
    try:
        return await asyncio.wait_for(asyncio.wrap_future(begun), DISK_SECONDS)
    except TimeoutError:
        raise ModelError(SILENT_DISK) from None


def is_in_use(name: str, chosen: str | None, models: SharedModels) -> bool:
    """Return whether a model is the chosen one, or a client of the process has it loaded."""
    wanted = identity(name)
    if wanted == identity(chosen):
        return True
    until = time.monotonic() + LET_GO_SECONDS
    while wanted in map(identity, models.names()):
        gc.collect()  # a model that was just released may wait for collection
        if wanted not in map(identity, models.names()):
            return False
        if time.monotonic() >= until:
            return True
        time.sleep(LOOK_SECONDS)  # or for the end of a thread
    return False


def identity(name: str | None) -> str:
    """Return the same text for all names of a model: the place of its files, or its name if it has none here."""
    if name is not None and is_remote(name):
        return name
    name = name_of(name)
    if name == EMBEDDED_NAME:
        return name
    place = cached_folder(name) if name in catalogue() else expanded(name)
    try:
        return name if place is None or not place.exists() else str(place.resolve())
    except (OSError, ValueError):  # a name that no file can have, or a folder that may not be read
        return name
