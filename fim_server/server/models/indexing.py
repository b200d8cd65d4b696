"""Reading of the workspace's files into the project's memory, within the memory budget."""

from __future__ import annotations

from lsprotocol import types

from fim_server.language import Language
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.status import send_status
from fim_server.workers.budget import MEGABYTE

REPORTED_BYTES = 64 * MEGABYTE
"""Change of the process's memory that is worth a new status while files are read."""


def read_project(ls: FimLanguageServer) -> None:
    """Read changed files of the workspace in the background; without the setting, forget them."""
    if not ls.settings.project_memory:
        if ls.project.is_begun:
            ls.project.clear()
        return
    if ls.settings.enabled:
        languages = [name for name in Language.names() if ls.settings.remembers(name, ls.learnt)]
        suffixes = {suffix: name for name in languages for suffix in Language.suffixes_of(name)}
        ls.project.read(ls.folders, suffixes, ls.settings.secret_files)
        ls.supervisor.begin()


def check_reading(ls: FimLanguageServer, resident: int | None, allowed: int | None) -> None:
    """Log the files that the project's memory leaves out, report growth, and stop reading at the limit.

    ``resident`` and ``allowed``: bytes of the process's memory, and its limit.
    """
    for note in ls.project.take_notes():
        ls.log_once(types.MessageType.Warning, f"reading the project: {note}")
    if not ls.project.is_reading or resident is None:
        return
    if allowed is not None and resident > allowed and not ls.worker.is_loading:
        ls.project.stop_reading()
        had, may = resident // MEGABYTE, allowed // MEGABYTE
        ls.log_once(
            types.MessageType.Warning,
            f"{had:,} MB of memory, {may:,} MB allowed (setting memoryMb): reading files stops until one changes",
        )
    if abs(resident - ls.index.reported_bytes) >= REPORTED_BYTES:
        ls.index.reported_bytes = resident
        send_status(ls)
