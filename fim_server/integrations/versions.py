"""Versions of other engines that the plug-ins know, and checks of an engine's form."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING

from fim_server.errors import VersionError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

UNTESTED = "FIM_SERVER_UNTESTED_VERSIONS"
"""Environment variable that lets a plug-in try a version it was not tested with, if its form is the same."""


def check_version(engine: str, version: str, known: Collection[str]) -> None:
    """Raise VersionError unless the version is known, or any may be tried.

    Args:
        engine: The engine's name.
        version: Its version, as it reports it.
        known: Versions of two numbers, as `0.32`.
    """
    if ".".join(version.split(".")[:2]) in known or os.environ.get(UNTESTED) == "1":
        return
    raise VersionError(
        f"fim-server's plug-in does not know {engine} {version}, only {', '.join(known)}; {UNTESTED}=1 tries it"
    )


def check_form(engine: str, version: str, form: Iterable[tuple[type, str, tuple[str, ...]]]) -> None:
    """Raise VersionError unless methods have the parameters by which the plug-in calls or replaces them.

    ``form``: classes, names of their methods, and parameters.
    """
    for owner, name, expected in form:
        method = getattr(owner, name, None)
        found = None if method is None else tuple(inspect.signature(method).parameters)
        if found != expected:
            has = "is not there" if found is None else f"has the parameters {', '.join(found)}"
            raise VersionError(f"fim-server's plug-in does not fit {engine} {version}: {owner.__name__}.{name} {has}")
