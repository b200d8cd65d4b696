"""Crates of Rust, downloaded by cargo."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fim_server.datasets.cutters import suffixes
from fim_server.datasets.licences import spdx
from fim_server.datasets.sources.files import LEFT_OUT_FOLDERS, Tree
from fim_server.datasets.sources.source import Source, SourceText
from fim_server.datasets.sources.tools import fetched, parts_of
from fim_server.errors import DatasetError

LANGUAGE = "rust"

_NAME = re.compile(r"(?P<name>[\w-]+)@(?P<version>\d+\.\d+\.\d+[\w.+-]*)")

_MANIFEST = """\
[package]
name = "sources"
version = "0.0.0"
edition = "2021"

[lib]
path = "lib.rs"

[dependencies]
"""


class Crates(Source):
    """Crates at exact versions, in the order of their names as given."""

    name = "crates"

    def __init__(self, named: Sequence[str]) -> None:
        matches = parts_of(named, _NAME, "NAME@VERSION")
        with TemporaryDirectory(prefix="fim-server-") as folder:
            manifest = Path(folder) / "Cargo.toml"
            # Under names of their own, so that there may be two versions of one crate.
            lines = [
                f'crate-{number} = {{ package = "{match["name"]}", version = "={match["version"]}", '
                "default-features = false }\n"
                for number, match in enumerate(matches)
            ]
            manifest.write_text(_MANIFEST + "".join(lines), encoding="utf-8")
            manifest.with_name("lib.rs").touch()
            command = ["cargo", "metadata", "--format-version", "1", "--manifest-path", str(manifest)]
            told = json.loads(fetched(command, "crates", Path(folder)))
            locked = tomllib.loads(manifest.with_name("Cargo.lock").read_text(encoding="utf-8"))
        by_name = {(one["name"], one["version"]): one for one in told["packages"]}
        sums = {(one["name"], one["version"]): one.get("checksum", "") for one in locked["package"]}
        self._crates = []
        for match in matches:
            key = match["name"], match["version"].partition("+")[0]
            key = next((one for one in by_name if (one[0], one[1].partition("+")[0]) == key), key)
            if key not in by_name:
                raise DatasetError(f"{match[0]}: no crate of this name and version came")
            self._crates.append({**by_name[key], "checksum": sums[key]})

    def __iter__(self) -> Iterator[SourceText]:
        for crate, folder in zip(self._crates, self.folders(), strict=True):
            yield from Tree(
                folder,
                self.name,
                package=crate["name"],
                version=crate["version"],
                licence=spdx((crate["license"] or "").replace("/", " OR ")),
                suffixes=suffixes(LANGUAGE),
                left_out=LEFT_OUT_FOLDERS,
            )

    def folders(self) -> list[Path]:
        """Return the folders of the crates' sources, in the order of the names."""
        return [Path(crate["manifest_path"]).parent for crate in self._crates]

    def pinned(self) -> dict[str, Any]:
        return {f"{crate['name']}@{crate['version']}": f"sha256:{crate['checksum']}" for crate in self._crates}
