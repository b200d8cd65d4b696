"""Modules of Go, downloaded by `go mod download`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fim_server.datasets.cutters import suffixes
from fim_server.datasets.licences import licence_of_folder
from fim_server.datasets.sources.files import LEFT_OUT_FOLDERS, Tree
from fim_server.datasets.sources.source import Source, SourceText
from fim_server.datasets.sources.tools import fetched, parts_of
from fim_server.errors import DatasetError

LANGUAGE = "go"

_NAME = re.compile(r"(?P<path>[\w.~/-]+)@(?P<version>v[\w.+-]+)")

LEFT_OUT = LEFT_OUT_FOLDERS | {"testdata", "vendor"}
"""Folders that are no part of the module's own code."""


class GoModules(Source):
    """Modules at exact versions, in the order of their names as given."""

    name = LANGUAGE

    def __init__(self, named: Sequence[str]) -> None:
        matches = parts_of(named, _NAME, "MODULE@vVERSION")
        told = fetched(["go", "mod", "download", "-json", *(match[0] for match in matches)], "modules of Go", Path("/"))
        self._modules = [_described(match, told) for match in matches]

    def __iter__(self) -> Iterator[SourceText]:
        for module in self._modules:
            folder = Path(module["Dir"])
            yield from Tree(
                folder,
                self.name,
                package=module["Path"],
                version=module["Version"],
                licence=licence_of_folder(folder),
                suffixes=suffixes(LANGUAGE),
                left_out=LEFT_OUT,
            )

    def pinned(self) -> dict[str, Any]:
        return {f"{module['Path']}@{module['Version']}": module["Sum"] for module in self._modules}


def _described(match: re.Match[str], told: str) -> dict[str, str]:
    """Return the description of a module from a series of objects."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(told):
        described, at = decoder.raw_decode(told, at)
        if (described["Path"], described["Version"]) == (match["path"], match["version"]):
            if "Dir" in described:
                found: dict[str, str] = described
                return found
            break
        at += len(told[at:]) - len(told[at:].lstrip())
    raise DatasetError(f"{match[0]}: no module of this name and version came")
