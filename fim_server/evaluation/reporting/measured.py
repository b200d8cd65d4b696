"""Records of one or more runs as columns, the input of tables, plots and tests.

A sample's key is its set and its id. Modes are compared on the samples that have a record of each, and the report
states how many lack one.

A record whose sample could not be measured counts as no success, no match and a similarity of 0, and has no times.
The paper does the same (arXiv 2402.17988: a failed generation is not a program that parses).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fim_server.datasets import read_samples
from fim_server.errors import DatasetError, RecordError
from fim_server.evaluation.records import MODES, Record, RunInfo, read_run
from fim_server.language.texts import is_word

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Integers: TypeAlias = NDArray[np.int64]

FIRST_LEXEME = re.compile(r"(\s*)(\w+|[^\w\s])")
"""Blanks, and a word or another character."""

HOLE_EDGES = (1, 11, 21, 41, 81, 161, 321)
"""Lengths at which buckets of hole lengths begin, in characters; one more lies before the first."""
LINE_EDGES = (2, 3, 6, 11)
CONTEXT_EDGES = (500, 2_000, 8_000, 32_000)

FEW_FILES = 30
"""Below, the cluster bootstrap is known to be too sure of itself (Cameron, Gelbach and Miller 2008, section VI)."""

Key: TypeAlias = tuple[str, str]
"""Set and id of a sample."""

PYTHON = "python"
"""The language whose sets have names without it, as long as they are alone."""


@dataclass(frozen=True)
class ModeColumns:
    """One mode's results, an entry a sample; ``present`` says where there is a record, and elsewhere they mean nothing.

    Numbers are NaN where the record has none.
    """

    records: tuple[Record | None, ...]
    present: Bools
    success: Bools
    """A text was offered, and the whole program parses."""
    offered: Bools
    exact: Bools
    """True if the text equals the true middle but for blanks at its ends, and the program parses.

    A text that lacks the true middle's line break or indentation does not match.
    """
    edit: Floats
    error: Bools

    def numbers(self, read: Callable[[Record], float | int | None]) -> Floats:
        """A column of numbers."""
        values = (math.nan if record is None else read(record) for record in self.records)
        return np.array([math.nan if value is None else float(value) for value in values], dtype=np.float64)

    def chosen(self, mask: Bools | None = None) -> list[Record]:
        """The records there are, of the samples in ``mask``."""
        kept = self.present if mask is None else self.present & mask
        return [self.records[index] for index in np.flatnonzero(kept)]  # type: ignore[misc] # present: not None


@dataclass(frozen=True)
class Measured:
    """All results, samples in the order of their first record."""

    infos: tuple[RunInfo, ...]
    keys: tuple[Key, ...]
    kinds: tuple[str, ...]
    languages: tuple[str, ...]
    """The language of each sample."""
    modes: Mapping[str, ModeColumns]
    """In the order of :data:`~fim_server.evaluation.records.MODES`, or another that was asked for."""
    clusters: Integers | None
    """A number a sample, equal for samples of one file; None where the files are not known."""
    cluster_reason: str
    """Unit of resampling and the reason for it, in a sentence."""
    repeated: int
    """Records left out because another of the same sample and mode follows."""

    @property
    def count(self) -> int:
        """Number of samples."""
        return len(self.keys)

    @property
    def only_python(self) -> bool:
        """Return whether all samples are Python."""
        return set(self.languages) <= {PYTHON}

    @cached_property
    def named(self) -> tuple[str, ...]:
        """The set of each sample as it is told: after its language, where there are others than Python."""
        names = (name for name, _ in self.keys)
        if self.only_python:
            return tuple(names)
        return tuple(f"{language}, {name}" for language, name in zip(self.languages, names, strict=True))

    @property
    def sets(self) -> tuple[str, ...]:
        """Names of the sets as they are told, in the order of their first sample."""
        return tuple(dict.fromkeys(self.named))

    @property
    def parser(self) -> str:
        """Return the judges of programs, in words."""
        return "`ast.parse`" if self.only_python else "the judge of its language, which the run's settings name"

    def everything(self) -> Bools:
        """The mask of all samples."""
        return np.ones(self.count, dtype=bool)

    def in_set(self, name: str) -> Bools:
        """The mask of a set's samples."""
        return np.array([named == name for named in self.named], dtype=bool)

    def in_language(self, name: str) -> Bools:
        """The mask of a language's samples."""
        return np.array([language == name for language in self.languages], dtype=bool)

    def of_kind(self, name: str) -> Bools:
        """The mask of a kind's samples."""
        return np.array([kind == name for kind in self.kinds], dtype=bool)

    def groups(self) -> list[tuple[str, Bools]]:
        """Each set with its mask; before them ``all`` where there are several, and each language that has several."""
        found = [(name, self.in_set(name)) for name in self.sets]
        if len(found) == 1:
            return found
        languages = dict.fromkeys(self.languages)
        several = [
            (name, self.in_language(name))
            for name in languages
            if len(languages) > 1 and sum(one.startswith(f"{name}, ") for one in self.sets) > 1
        ]
        return [("all", self.everything()), *several, *found]

    def pairs(self, modes: Sequence[str], mask: Bools | None = None) -> tuple[Bools, int]:
        """The samples with a record of every one of ``modes``, and how many of ``mask`` lack one."""
        kept = self.everything() if mask is None else mask.copy()
        asked = int(kept.sum())
        for mode in modes:
            kept &= self.modes[mode].present
        return kept, asked - int(kept.sum())

    def clusters_of(self, mask: Bools) -> Integers | None:
        """The files of the samples in ``mask``."""
        return None if self.clusters is None else self.clusters[mask]

    def about(self, read: Callable[[Record], Any]) -> list[Any]:
        """Something of each sample that is the same for all modes."""
        firsts = (
            next(filter(None, (columns.records[i] for columns in self.modes.values()))) for i in range(self.count)
        )
        return [read(record) for record in firsts]

    def buckets(self, read: Callable[[Record], int], edges: Sequence[int]) -> list[tuple[str, Bools]]:
        """Samples by a length: the name and the mask of each bucket that is not empty."""
        lengths = np.array(self.about(read), dtype=np.int64)
        numbers = np.searchsorted(np.array(edges), lengths, side="right")
        named = [(bucket_name(number, edges), numbers == number) for number in range(len(edges) + 1)]
        return [(name, mask) for name, mask in named if mask.any()]


def bucket_name(number: int, edges: Sequence[int]) -> str:
    """``0``, ``1–10``, ``11 and more``: the lengths in a bucket."""
    first = 0 if number == 0 else edges[number - 1]
    if number == len(edges):
        return f"{first:,} and more"
    last = edges[number] - 1
    return f"{first:,}" if first == last else f"{first:,}–{last:,}"


def measured(
    infos: Sequence[RunInfo],
    records: Iterable[Record],
    files: Mapping[Key, str] | str = "",
    order: Sequence[str] = MODES,
) -> Measured:
    """Records as columns.

    Args:
        infos: What the runs were asked for.
        records: In any order. Of several of one sample and mode the last counts.
        files: The file that each sample is from; or why that is not known, in words.
        order: Of the modes; others follow by name.
    """
    by_mode: dict[str, dict[Key, Record]] = {}
    kinds: dict[Key, tuple[str, str]] = {}
    seen = 0
    for record in records:
        key = (record.set, record.sample)
        seen += 1
        kinds.setdefault(key, (record.kind, record.language))
        by_mode.setdefault(record.mode, {})[key] = record
    keys = tuple(kinds)
    ordered = [mode for mode in order if mode in by_mode] + sorted(set(by_mode) - set(order))
    modes = {mode: _columns([by_mode[mode].get(key) for key in keys]) for mode in ordered}
    clusters, reason = _clusters(keys, files)
    kept = sum(map(len, by_mode.values()))
    own_kinds, languages = (tuple(one[place] for one in kinds.values()) for place in (0, 1))
    return Measured(tuple(infos), keys, own_kinds, languages, modes, clusters, reason, seen - kept)


def read_measured(folders: Sequence[str | Path]) -> Measured:
    """The results of one or more runs, as one.

    Raises:
        RecordError: A folder is no run, or cannot be read, or two folders have results of the same sample and mode.
    """
    infos = [RunInfo.read(folder) for folder in folders]
    records: list[Record] = []
    owner: dict[tuple[str, str, str], str | Path] = {}
    for folder in folders:
        for record in read_run(folder):
            first = owner.setdefault((record.set, record.sample, record.mode), folder)
            if first != folder:
                raise RecordError(
                    f"{first} and {folder} both have {record.mode} results of sample {record.sample}: "
                    "two runs on the same samples are for `fim-server eval compare`"
                )
            records.append(record)
    return measured(infos, records, files_of(infos))


def files_of(infos: Sequence[RunInfo]) -> dict[Key, str] | str:
    """The file (SHA-256) that each sample is from, read from the runs' data; or why that is not known."""
    found: dict[Key, str] = {}
    for data in dict.fromkeys(one for info in infos for one in info.data):
        try:
            with Path(data.path).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != data.sha256:
                return f"{Path(data.path).name} is no longer the file that was measured on"
            found |= {(sample.set, sample.id): sample.origin.sha256 for sample in read_samples(data.path)}
        except (OSError, DatasetError):
            return f"{Path(data.path).name} is not where it was measured on"
    return found or "the runs name no data"


def _columns(records: list[Record | None]) -> ModeColumns:
    def column(read: Callable[[Record], bool]) -> Bools:
        return np.array([record is not None and read(record) for record in records], dtype=bool)

    return ModeColumns(
        tuple(records),
        column(lambda _: True),
        column(is_success),
        column(lambda record: record.text is not None),
        column(is_exact),
        np.array([0.0 if record is None else record.edit_similarity or 0.0 for record in records], dtype=np.float64),
        column(lambda record: record.error is not None),
    )


def is_success(record: Record) -> bool:
    """Tell whether the program parses with the text."""
    return record.error is None and record.text is not None and bool(record.parses)


def is_exact(record: Record) -> bool:
    """Tell whether the text is the true middle, in a program that parses."""
    return bool(record.exact_match) and is_success(record)


def is_first_right(record: Record) -> bool:
    """Tell whether the text begins with the first lexeme of the true middle.

    A lexeme is the rest of the word at the hole's begin, a word, or another character that is no blank.
    """
    in_word = is_word(record.left_tail[-1:])
    return record.text is not None and first_lexeme(record.text, in_word) == first_lexeme(record.reference, in_word)


def first_lexeme(text: str, in_word: bool) -> tuple[bool, str]:
    """Return a text's first lexeme, and whether it goes on with a word that stands before the text."""
    found = FIRST_LEXEME.match(text)
    if found is None:
        return False, ""
    return in_word and not found[1] and is_word(found[2][:1]), found[2]


def _clusters(keys: Sequence[Key], files: Mapping[Key, str] | str) -> tuple[Integers | None, str]:
    if isinstance(files, str):
        why = files or "which file a sample is from is not known"
        return None, f"Intervals of differences resample samples, not files: {why}."
    missing = sum(key not in files for key in keys)
    if missing:
        return None, f"Intervals of differences resample samples, not files: the data lack {missing:,} of them."
    numbers: dict[str, int] = {}
    clusters = np.array([numbers.setdefault(files[key], len(numbers)) for key in keys], dtype=np.int64)
    few = (
        "; so few say little of how files differ, and the intervals are too narrow" if len(numbers) < FEW_FILES else ""
    )
    return clusters, f"Intervals of differences resample whole files ({len(numbers):,} of them{few})."
