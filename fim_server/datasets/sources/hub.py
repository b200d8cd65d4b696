"""Data sets of the hub."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fim_server.datasets.cutters import suffixes
from fim_server.datasets.sources.corpora import (
    NO_RECORDS,
    RECORD_SUFFIXES,
    Records,
    holds_records,
    is_records,
    texts_of,
)
from fim_server.datasets.sources.source import Source, SourceText
from fim_server.errors import DatasetError

_HUB = re.compile(r"(?P<dataset>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?(=(?P<path>.+))?")


def open_hub(named: str, pinned: Mapping[str, Any], language: str) -> Source:
    match = _HUB.fullmatch(named.removeprefix("hub:"))
    if match is None:
        raise DatasetError(f"{named}: hub:OWNER/NAME[@REVISION][=PATH] expected")
    if match["path"] is not None:
        path = Path(match["path"])
        if not (is_records(path) or holds_records(path, suffixes(language))):
            raise DatasetError(f"{path}: no parquet or JSON Lines file, nor a folder of such")
        return Records([path], f"hub:{match['dataset']}")
    return Hub(match["dataset"], pinned.get("revision", match["revision"]), language)


class Hub(Source):
    """Data set of the hub at one revision, downloaded a file at a time.

    Of a data set with files for several languages, those with a folder of the language's name in their path are read.
    """

    def __init__(self, dataset: str, revision: str | None, language: str) -> None:
        from huggingface_hub import HfApi

        self.name = f"hub:{dataset}"
        self._dataset = dataset
        with _HubErrors(dataset):
            information = HfApi().dataset_info(dataset, revision=revision)
        self._revision = information.sha
        found = sorted(
            file.rfilename
            for file in information.siblings or []
            if file.rfilename.endswith(RECORD_SUFFIXES) and Path(file.rfilename).name not in NO_RECORDS
        )
        own = [name for name in found if language in Path(name.lower()).parts[:-1]]
        self._files = own or found
        if not self._files:
            raise DatasetError(f"{dataset}: the data set has no parquet or JSON Lines files")

    def pinned(self) -> dict[str, Any]:
        return {"revision": self._revision}

    def __iter__(self) -> Iterator[SourceText]:
        from huggingface_hub import hf_hub_download

        for name in self._files:
            with _HubErrors(self._dataset):
                path = hf_hub_download(self._dataset, name, repo_type="dataset", revision=self._revision)
            yield from texts_of(Path(path))


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
