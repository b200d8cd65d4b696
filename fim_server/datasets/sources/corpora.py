"""Corpora: parquet and JSON Lines files with one text a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fim_server.datasets.licences import spdx_of_all
from fim_server.datasets.samples import read_json_lines
from fim_server.datasets.sources.files import LEFT_OUT_FOLDERS, walk
from fim_server.datasets.sources.source import Source, SourceText
from fim_server.errors import DatasetError
from fim_server.language.limited_files import parse_json, read_found

EVAL_EXTRA = "pip install 'fim-server[eval]'"

RECORD_SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz", ".json", ".json.gz")

NO_RECORDS = frozenset({"config.json", "dataset_dict.json", "dataset_infos.json", "sources.json", "state.json"})

_TEXT_COLUMNS = ("content", "text")

_LANGUAGE_COLUMNS = ("lang", "language")

_PACKAGE_COLUMNS = ("package", "repository_name", "repo_name", "max_stars_repo_name")

_PATH_COLUMNS = ("path", "max_stars_repo_path", "file_path")

_LICENCE_COLUMNS = ("licences", "licenses", "license", "licence", "max_stars_repo_licenses")

_COLUMNS = (*_TEXT_COLUMNS, *_LANGUAGE_COLUMNS, *_PACKAGE_COLUMNS, *_PATH_COLUMNS, *_LICENCE_COLUMNS)

_ROWS = 64
"""Rows of a parquet file that are held at once."""


def is_records(path: Path) -> bool:
    return path.is_file() and path.name.endswith(RECORD_SUFFIXES) and path.name not in NO_RECORDS


def holds_records(path: Path, suffixes: tuple[str, ...]) -> bool:
    """Return whether a folder has corpora, and no files of the language itself, which have these suffixes."""
    if not path.is_dir() or next(walk(path, suffixes, LEFT_OUT_FOLDERS), None) is not None:
        return False
    return any(is_records(found) for found, _ in walk(path, RECORD_SUFFIXES, LEFT_OUT_FOLDERS))


@dataclass
class Records(Source):
    """Corpora: parquet or JSON Lines files with one text a row, in ``content`` (else ``text``).

    A row's language, package or repository, path and licences are used as well, under the names of The Stack and of
    this project's own corpus. The ``sources.json`` beside the latter has the versions and licences of its packages.
    """

    paths: list[Path]
    name: str

    def __iter__(self) -> Iterator[SourceText]:
        for path in self.paths:
            files = [path] if path.is_file() else _walk_records(path)
            for file in files:
                yield from texts_of(file)


def _walk_records(folder: Path) -> Iterator[Path]:
    return (path for path, _ in walk(folder, RECORD_SUFFIXES, LEFT_OUT_FOLDERS) if is_records(path))


def texts_of(path: Path) -> Iterator[SourceText]:
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
            None if language is None else str(language).lower(),
        )


def _first(row: Mapping[str, Any], columns: Iterable[str]) -> Any:
    return next((row[column] for column in columns if row.get(column) is not None), None)


def _packages_beside(path: Path) -> dict[str, tuple[str | None, str | None]]:
    """Return version and licence by package from the ``sources.json`` beside a corpus of `training`."""
    try:
        described = parse_json(read_found(path.with_name("sources.json")))
        return {one["package"]: (one.get("version"), one.get("licence")) for one in described["packages"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number (from 1) and fields of each row, a few rows at a time."""
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
