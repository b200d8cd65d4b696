"""Where files come from: folders, the standard library, installed packages, corpora and the hub.

A source is a stream: its files come one at a time, always in the same order (that of their names), and nothing of it is
kept. What stands in it is not looked at here; `fim_server.datasets.build` leaves out what is no Python.
"""

from __future__ import annotations

import json
import os
import re
import sysconfig
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from platform import python_version
from typing import Any, NamedTuple

from fim_server.datasets.licences import licence_of, spdx_of_all
from fim_server.datasets.samples import read_json_lines
from fim_server.errors import DatasetError

EVAL_EXTRA = "pip install 'fim-server[eval]'"

STANDARD_LIBRARY = "python-standard-library"
STANDARD_LIBRARY_LICENCE = "PSF-2.0"

_LEFT_OUT_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages", "dist-packages"})
_TEST_FOLDERS = frozenset({"test", "tests", "idle_test"})
_RECORD_SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz", ".json", ".json.gz")
_NO_RECORDS = frozenset({"config.json", "dataset_dict.json", "dataset_infos.json", "sources.json", "state.json"})
_TEXT_COLUMNS = ("content", "text")
_LANGUAGE_COLUMNS = ("lang", "language")
_PACKAGE_COLUMNS = ("package", "repository_name", "repo_name", "max_stars_repo_name")
_PATH_COLUMNS = ("path", "max_stars_repo_path", "file_path")
_LICENCE_COLUMNS = ("licences", "licenses", "license", "licence", "max_stars_repo_licenses")
_COLUMNS = (*_TEXT_COLUMNS, *_LANGUAGE_COLUMNS, *_PACKAGE_COLUMNS, *_PATH_COLUMNS, *_LICENCE_COLUMNS)
_ROWS = 64
"""Rows of a parquet file held at once."""


class SourceText(NamedTuple):
    """A file of a source: its bytes, or its text where the source keeps texts, or None where it cannot be read."""

    content: bytes | str | None
    path: str
    package: str | None = None
    version: str | None = None
    licence: str | None = None
    is_python: bool = True
    """False where the source says that it is in another language."""


class Source(ABC):
    """A stream of files."""

    name: str
    """For samples' origin: what was named on the command line, less what is only true of one machine."""

    @abstractmethod
    def __iter__(self) -> Iterator[SourceText]:
        """The files, in the same order each time.

        Raises DatasetError where the source as a whole cannot be read on.
        """

    def pinned(self) -> dict[str, Any]:
        """What of it has to stay the same while a build goes on, and is worth recording: a revision, versions."""
        return {}


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
        return _open_hub(named, pinned or {})
    path = Path(named)
    if not path.exists():
        raise DatasetError(f"{named}: no such file or folder (nor is it stdlib, packages:NAME,... or hub:OWNER/NAME)")
    name = Path(os.path.abspath(path)).name or "/"  # noqa: PTH100  # as named: links are not followed
    return Records([path], name) if _is_records(path) or _holds_records(path) else Tree(path, name)


# --- files ---------------------------------------------------------------------------------------------------------


@dataclass
class Tree(Source):
    """A Python file, or all below a folder: not hidden folders, installed packages, or links to folders."""

    path: Path
    name: str
    without_tests: bool = False
    package: str | None = None
    version: str | None = None
    licence: str | None = None

    def __iter__(self) -> Iterator[SourceText]:
        left_out = _LEFT_OUT_FOLDERS | (_TEST_FOLDERS if self.without_tests else frozenset())
        for path, relative in [(self.path, self.name)] if self.path.is_file() else _walk(self.path, ".py", left_out):
            yield SourceText(_read(path), relative, self.package, self.version, self.licence)


class StandardLibrary(Tree):
    """The running interpreter's standard library, without its tests and what is installed beside it."""

    def __init__(self) -> None:
        super().__init__(
            Path(sysconfig.get_paths()["stdlib"]),
            "stdlib",
            without_tests=True,
            package=STANDARD_LIBRARY,
            version=python_version(),
            licence=STANDARD_LIBRARY_LICENCE,
        )

    def pinned(self) -> dict[str, Any]:
        return {STANDARD_LIBRARY: self.version}


class Packages(Source):
    """Installed distributions, in the order of their names as given."""

    name = "packages"

    def __init__(self, names: Iterable[str]) -> None:
        self._distributions = []
        for name in names:
            try:
                self._distributions.append(metadata.distribution(name))
            except (metadata.PackageNotFoundError, ValueError):
                raise DatasetError(f"{name or 'packages:'}: not installed") from None
            if not any(file.suffix == ".py" for file in self._distributions[-1].files or []):
                raise DatasetError(f"{name}: its metadata list no Python files (an editable install is named as PATH)")

    def __iter__(self) -> Iterator[SourceText]:
        for distribution in self._distributions:
            licence = licence_of(distribution.metadata)
            for file in sorted(distribution.files or []):
                if file.suffix == ".py" and ".." not in file.parts:
                    content = _read(Path(str(distribution.locate_file(file))))
                    yield SourceText(content, file.as_posix(), distribution.name, distribution.version, licence)

    def pinned(self) -> dict[str, Any]:
        return {distribution.name: distribution.version for distribution in self._distributions}


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None


def _walk(folder: Path, suffix: str | tuple[str, ...], left_out: frozenset[str]) -> Iterator[tuple[Path, str]]:
    """Files below a folder and their names relative to it, sorted; of no more than one folder's entries at a time."""

    def below(here: Path, prefix: str) -> Iterator[tuple[Path, str]]:
        try:
            with os.scandir(here) as entries:
                found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        except OSError as error:
            raise DatasetError(f"{here}: {error.strerror}") from None
        for name, is_folder in found:
            if is_folder:
                if not name.startswith(".") and name not in left_out:
                    yield from below(here / name, f"{prefix}{name}/")
            elif name.endswith(suffix):
                yield here / name, prefix + name

    return below(folder, "")


# --- corpora -------------------------------------------------------------------------------------------------------


def _is_records(path: Path) -> bool:
    return path.is_file() and path.name.endswith(_RECORD_SUFFIXES) and path.name not in _NO_RECORDS


def _holds_records(path: Path) -> bool:
    """A folder of corpora is one without Python files."""
    if not path.is_dir() or next(_walk(path, ".py", _LEFT_OUT_FOLDERS), None) is not None:
        return False
    return any(_is_records(found) for found, _ in _walk(path, _RECORD_SUFFIXES, _LEFT_OUT_FOLDERS))


@dataclass
class Records(Source):
    """Corpora: parquet or JSON Lines files with one text a row, in ``content`` (else ``text``).

    Of a row's other fields the language, the package or repository, the path and the licences are used, under the names
    that The Stack and this project's own corpus give them. Versions and licences of the latter's packages are in the
    ``sources.json`` beside it.
    """

    paths: list[Path]
    name: str

    def __iter__(self) -> Iterator[SourceText]:
        for path in self.paths:
            files = [path] if path.is_file() else _walk_records(path)
            for file in files:
                yield from _texts_of(file)


def _walk_records(folder: Path) -> Iterator[Path]:
    return (path for path, _ in _walk(folder, _RECORD_SUFFIXES, _LEFT_OUT_FOLDERS) if _is_records(path))


def _texts_of(path: Path) -> Iterator[SourceText]:
    described = _packages_beside(path)
    rows = _parquet_rows(path) if path.suffix == ".parquet" else read_json_lines(path)
    for number, row in rows:
        content = _first(row, _TEXT_COLUMNS)
        if not isinstance(content, str | bytes):
            raise DatasetError(f"{path}:{number}: no text in {' or '.join(_TEXT_COLUMNS)}")
        language = _first(row, _LANGUAGE_COLUMNS)
        package = _first(row, _PACKAGE_COLUMNS)
        version, licence = described.get(str(package), (None, None))
        stated = _first(row, _LICENCE_COLUMNS)
        if licence is None and stated is not None:
            licence = spdx_of_all([stated] if isinstance(stated, str) else [str(one) for one in stated])
        yield SourceText(
            content,
            str(_first(row, _PATH_COLUMNS) or f"{path.name}:{number}"),
            None if package is None else str(package),
            version,
            licence,
            is_python=language is None or str(language).lower() == "python",
        )


def _first(row: Mapping[str, Any], columns: Iterable[str]) -> Any:
    return next((row[column] for column in columns if row.get(column) is not None), None)


def _packages_beside(path: Path) -> dict[str, tuple[str | None, str | None]]:
    """Version and licence by package, of the ``sources.json`` beside a corpus of `fim_server.training`."""
    try:
        described = json.loads(path.with_name("sources.json").read_text(encoding="utf-8"))
        return {one["package"]: (one.get("version"), one.get("licence")) for one in described["packages"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number (from 1) and fields of each row, a few rows at a time."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise DatasetError(f"{path}: reading parquet needs pyarrow: {EVAL_EXTRA}") from None
    number = 0
    try:
        with ParquetFile(path) as file:
            columns = [name for name in file.schema_arrow.names if name in _COLUMNS]
            for batch in file.iter_batches(batch_size=_ROWS, columns=columns):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except (OSError, ArrowException) as error:
        raise DatasetError(f"{path}: {error}") from None


# --- the hub -------------------------------------------------------------------------------------------------------

_HUB = re.compile(r"(?P<dataset>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?(=(?P<path>.+))?")


def _open_hub(named: str, pinned: Mapping[str, Any]) -> Source:
    match = _HUB.fullmatch(named.removeprefix("hub:"))
    if match is None:
        raise DatasetError(f"{named}: hub:OWNER/NAME[@REVISION][=PATH] expected")
    if match["path"] is not None:
        path = Path(match["path"])
        if not (_is_records(path) or _holds_records(path)):
            raise DatasetError(f"{path}: no parquet or JSON Lines file, nor a folder of such")
        return Records([path], f"hub:{match['dataset']}")
    return Hub(match["dataset"], pinned.get("revision", match["revision"]))


class Hub(Source):
    """A data set of the hub, downloaded a file at a time, at one revision.

    Of a data set with files for several languages, those with a folder named ``python`` in their path are read.
    """

    def __init__(self, dataset: str, revision: str | None) -> None:
        from huggingface_hub import HfApi

        self.name = f"hub:{dataset}"
        self._dataset = dataset
        with _HubErrors(dataset):
            information = HfApi().dataset_info(dataset, revision=revision)
        self._revision = information.sha
        found = sorted(
            file.rfilename
            for file in information.siblings or []
            if file.rfilename.endswith(_RECORD_SUFFIXES) and Path(file.rfilename).name not in _NO_RECORDS
        )
        python = [name for name in found if "python" in Path(name.lower()).parts[:-1]]
        self._files = python or found
        if not self._files:
            raise DatasetError(f"{dataset}: the data set has no parquet or JSON Lines files")

    def pinned(self) -> dict[str, Any]:
        return {"revision": self._revision}

    def __iter__(self) -> Iterator[SourceText]:
        from huggingface_hub import hf_hub_download

        for name in self._files:
            with _HubErrors(self._dataset):
                path = hf_hub_download(self._dataset, name, repo_type="dataset", revision=self._revision)
            yield from _texts_of(Path(path))


class _HubErrors:
    """Turns what the hub's client raises into DatasetError."""

    def __init__(self, dataset: str) -> None:
        self._dataset = dataset

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        # The client's errors are OSErrors or of its HTTP library, which changed between its versions.
        if isinstance(error, Exception):
            reason = " ".join(str(error).split()) or type(error).__name__
            raise DatasetError(f"{self._dataset}: cannot be read from the hub: {reason[:300]}") from error
