"""The source that a user names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fim_server.datasets.sources.corpora import Records, holds_records, is_records
from fim_server.datasets.sources.files import Packages, StandardLibrary, Tree
from fim_server.datasets.sources.hub import open_hub
from fim_server.datasets.sources.source import Source
from fim_server.errors import DatasetError


def open_source(named: str, pinned: Mapping[str, Any] | None = None) -> Source:
    """The source that a user names: PATH, ``stdlib``, ``packages:NAME,...`` or ``hub:OWNER/NAME[@REVISION][=PATH]``.

    ``pinned`` is what `Source.pinned` gave when a build began that now goes on.
    Raises DatasetError if there is no such source.
    """
    if named == "stdlib":
        return StandardLibrary()
    if named.startswith("packages:"):
        return Packages([name.strip() for name in named.removeprefix("packages:").split(",")])
    if named.startswith("hub:"):
        return open_hub(named, pinned or {})
    path = Path(named)
    if not path.exists():
        raise DatasetError(f"{named}: no such file or folder (nor is it stdlib, packages:NAME,... or hub:OWNER/NAME)")
    name = Path(os.path.abspath(path)).name or "/"  # noqa: PTH100  # as named: links are not followed
    return Records([path], name) if is_records(path) or holds_records(path) else Tree(path, name)
