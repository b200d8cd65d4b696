"""Downloads of packages by the programs of their registries: kept, so that a later run fetches what is missing."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.utils import canonicalize_name

from fim_server.datasets.sources.crates import Crates
from fim_server.datasets.sources.maven import Coordinates, copy_files, licences_of
from fim_server.datasets.sources.tools import fetched
from fim_server.errors import DatasetError
from training.corpora.lists import Named

BATCH, SINGLE = 12, frozenset({"debian"})
"""Packages that a program is asked for at once, and registries where that is one, because it brings all or nothing.

From a batch that fails, the packages that the program names are taken; if it names none, the batch is halved.
"""

LICENCE_FILE = "licence.txt"
"""Licence that the registry states beside the archive."""

LEFT_OUT_FILE = "left-out.txt"
"""Reason for leaving a package out that another download does not change."""

Download = Callable[[Sequence[Named], Path, Path], None]
"""Download of packages: into their folders below the second path, with the first for the program's own files."""


def download(packages: Sequence[Named], folder: Path, most_bytes: int, say: Callable[[str], None]) -> dict[Named, str]:
    """Download the packages that are not there; return the reasons for those that are left out.

    A package of more than `most_bytes` is left out.
    """
    missing = [one for one in packages if not (folder / one.folder).is_dir()]
    by_kind = {kind: [one for one in missing if one.kind == kind] for kind in DOWNLOADS}
    failed: dict[Named, str] = {}

    def run(kind: str) -> None:
        wanted = by_kind[kind]
        size = 1 if kind in SINGLE else BATCH
        for at in range(0, len(wanted), size):
            _attempt(wanted[at : at + size], folder, most_bytes, failed)
            say(f"{kind}: fetched {min(at + size, len(wanted))}/{len(wanted)}")

    with ThreadPoolExecutor(len(DOWNLOADS)) as pool:
        list(pool.map(run, by_kind))
    for one in packages:
        reason = folder / one.folder / LEFT_OUT_FILE
        if one not in failed and reason.is_file():
            failed[one] = reason.read_text(encoding="utf-8")
    return failed


def _attempt(packages: Sequence[Named], folder: Path, most_bytes: int, failed: dict[Named, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".new-", dir=folder) as name:
        own, into = Path(name) / "own", Path(name) / "packages"
        own.mkdir()
        for one in packages:
            (into / one.folder).mkdir(parents=True)
        try:
            DOWNLOADS[packages[0].kind](packages, own, into)
        except (DatasetError, OSError, ValueError, LookupError) as error:
            named = _named_in(str(error), packages)
            for one in named:
                failed[one] = " ".join(str(error).split())[:200] or type(error).__name__
        else:
            for one in packages:
                _keep(into / one.folder, folder / one.folder, most_bytes, failed, one)
            return
    rest = [one for one in packages if one not in failed]
    half = 0 if named else len(rest) // 2
    for part in (rest[:half], rest[half:]):
        if part:
            _attempt(part, folder, most_bytes, failed)


def _named_in(error: str, packages: Sequence[Named]) -> list[Named]:
    """Return the packages that an error names; the only one is meant in any case."""
    if len(packages) == 1:
        return list(packages)
    return [one for one in packages if re.search(rf"(?<![\w./-]){re.escape(one.name)}(?![\w./-])", error)]


def _keep(new: Path, to: Path, most_bytes: int, failed: dict[Named, str], package: Named) -> None:
    size = sum(path.stat().st_size for path in new.iterdir())
    if not size:
        failed[package] = "no files came"
        return
    if size > most_bytes:
        for path in new.iterdir():
            path.unlink()
        (new / LEFT_OUT_FILE).write_text(f"larger than {most_bytes} bytes", encoding="utf-8")
    to.parent.mkdir(parents=True, exist_ok=True)
    new.rename(to)


def _npm(packages: Sequence[Named], own: Path, into: Path) -> None:
    command = ["npm", "pack", "--json", "--ignore-scripts", "--pack-destination", str(own), "--"]
    told = fetched([*command, *(f"{one.name}@{one.version}" for one in packages)], "packages of npm", own)
    packed = {(one["name"], one["version"]): one["filename"] for one in json.loads(told)}
    for one in packages:
        shutil.move(own / packed[one.name, one.version], into / one.folder)


def _go(packages: Sequence[Named], own: Path, into: Path) -> None:
    environment = {"GOMODCACHE": str(own), "GOFLAGS": "-modcacherw"}
    command = ["go", "mod", "download", "-json", *(f"{one.name}@{one.version}" for one in packages)]
    told = fetched(command, "modules of Go", Path("/"), environment)
    decoder, at = json.JSONDecoder(), 0
    archives: dict[tuple[str, str], str] = {}
    while at < len(told.rstrip()):
        described, at = decoder.raw_decode(told, at)
        archives[described["Path"], described["Version"]] = described["Zip"]
        at += len(told[at:]) - len(told[at:].lstrip())
    for one in packages:
        shutil.move(archives[one.name, one.version], into / one.folder)


def _crates(packages: Sequence[Named], own: Path, into: Path) -> None:
    for one, folder in zip(packages, Crates([f"{one.name}@{one.version}" for one in packages]).folders(), strict=True):
        # Cargo keeps the archive beside the unpacked sources.
        archive = folder.parents[2] / "cache" / folder.parent.name / f"{folder.name}.crate"
        shutil.copy(archive, into / one.folder)


def _maven(packages: Sequence[Named], own: Path, into: Path) -> None:
    found = [Coordinates(one.name.partition(":")[0], one.name.partition(":")[2], one.version) for one in packages]
    copy_files(own, [item for one in found for item in (one.item("jar"), one.item("pom"))])
    licences = licences_of(own, found)
    for one, coordinates in zip(packages, found, strict=True):
        shutil.move(own / coordinates.file("jar"), into / one.folder)
        (into / one.folder / LICENCE_FILE).write_text(licences[coordinates] or "", encoding="utf-8")


def _wheels(packages: Sequence[Named], own: Path, into: Path) -> None:
    # Pip runs the build of a source distribution that it downloads, so wheels stand for it.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--python-version=3.12"]
    fetched([*command, "-q", "-d", str(own), *(f"{one.name}=={one.version}" for one in packages)], "wheels", own)
    wheels = {canonicalize_name(path.name.partition("-")[0]): path for path in own.glob("*.whl")}
    for one in packages:
        shutil.move(wheels[canonicalize_name(one.name)], into / one.folder)


def _debian(packages: Sequence[Named], own: Path, into: Path) -> None:
    command = ["apt-get", "-o", "APT::Sandbox::User=root", "source", "--download-only", "-qq"]
    fetched([*command, *(f"{one.name}={one.version}" for one in packages)], "source packages of Debian", own)
    for one in packages:
        for path in own.glob(f"{one.name}_*"):
            shutil.move(path, into / one.folder)


DOWNLOADS: Mapping[str, Download] = {
    "crates": _crates,
    "debian": _debian,
    "go": _go,
    "maven": _maven,
    "npm": _npm,
    "wheels": _wheels,
}
"""Downloads by registry."""
