"""Samples, each a hole in a file, and the JSON Lines that hold them (docs/evaluation.md has the fields)."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from fim_server.errors import DatasetError, LimitError
from fim_server.language.limited_files import lines_of

SET_NAMES = (
    "stack-boundary",
    "stack-randspan",
    "line",
    "line-rest",
    "expression",
    "block",
    "mid-indentation",
    "f-string",
    "call-arguments",
    "human-eval-infilling",
    "safim",
)
"""Names of all sets."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a file.

    Attributes:
        source: The value of ``--source``, without parts that only hold for one machine.
        package: The package; None where the source has none.
        version: The package's version; None where the source has none.
        path: Path relative to the package or the source.
        licence: SPDX expression; None where it is unknown.
        sha256: SHA-256 of the whole file's UTF-8, with "\\n" as line ends.
    """

    source: str
    package: str | None
    version: str | None
    path: str
    licence: str | None
    sha256: str


@dataclass(frozen=True, slots=True)
class UnitTest:
    """Test in HumanEval's form: the file runs, then ``test``, which defines ``check``, and then ``check(entry_point)``.

    ``prompt`` is the task's description, which ``left`` contains.
    """

    task_id: str
    prompt: str
    test: str
    entry_point: str


@dataclass(frozen=True, slots=True)
class Case:
    """Standard input of a program, and the outputs that are right."""

    input: str
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProgramTest:
    """Test of a whole program: it runs once on each input, and writes one of the case's outputs."""

    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class MatchTest:
    """Comparison with the true middle in place of a run."""

    match: str
    """The rule; ``call`` is the only one (:mod:`.calls`)."""


Test = UnitTest | ProgramTest | MatchTest


@dataclass(frozen=True, slots=True)
class Sample:
    """Hole in a file: ``left + middle + right`` is the file. Line ends are "\\n"."""

    id: str
    set: str
    kind: str
    left: str
    middle: str
    right: str
    language: str
    origin: Origin
    test: Test | None = None

    @property
    def text(self) -> str:
        return self.left + self.middle + self.right

    def filled(self, middle: str) -> str:
        return self.left + middle + self.right

    def to_json(self) -> dict[str, Any]:
        """Return the fields of docs/evaluation.md in their order; ``test`` only where there is one."""
        fields = asdict(self)
        if self.test is None:
            del fields["test"]
        return fields

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Sample:
        """Return the sample with the fields of `to_json`, ignoring unknown ones.

        Raises DatasetError if one is missing.
        """
        try:
            origin = fields["origin"]
            test = fields.get("test")
            sample = cls(
                id=fields["id"],
                set=fields["set"],
                kind=fields["kind"],
                left=fields["left"],
                middle=fields["middle"],
                right=fields["right"],
                language=fields["language"],
                origin=Origin(**{name: origin[name] for name in Origin.__dataclass_fields__}),
                test=None if test is None else _test(test),
            )
        except (KeyError, TypeError) as error:
            missing = error.args[0] if isinstance(error, KeyError) else "an object"
            raise DatasetError(f"not a sample: {missing!r} is missing") from None
        named = (sample.id, sample.set, sample.kind, sample.left, sample.middle, sample.right, sample.language)
        if not all(isinstance(part, str) for part in named):
            raise DatasetError("not a sample: id, set, kind, left, middle, right and language have to be strings")
        if sample.test is not None and not _are_strings(astuple(sample.test)):
            raise DatasetError("not a sample: all of its test has to be strings")
        if not all(part is None or isinstance(part, str) for part in astuple(sample.origin)):
            raise DatasetError("not a sample: all of its origin has to be strings, or null")
        return sample


def _test(fields: Mapping[str, Any]) -> Test:
    """Return the test with these fields, which tell the kind of it. Raises KeyError and TypeError."""
    if "cases" in fields:
        return ProgramTest(tuple(Case(one["input"], tuple(one["outputs"])) for one in fields["cases"]))
    if "match" in fields:
        return MatchTest(fields["match"])
    return UnitTest(**{name: fields[name] for name in UnitTest.__dataclass_fields__})


def _are_strings(part: object) -> bool:
    return isinstance(part, str) or (isinstance(part, tuple) and all(map(_are_strings, part)))


def encode_sample(sample: Sample) -> bytes:
    """Return a sample's line of UTF-8 with its "\\n". Equal samples give equal bytes.

    The line is ASCII, so that lone surrogates and the line separators that some readers split at survive.
    """
    return (json.dumps(sample.to_json(), ensure_ascii=True, separators=(",", ":")) + "\n").encode("ascii")


def read_samples(path: str | Path) -> Iterator[Sample]:
    """Read a file of samples, gzipped or not, one at a time.

    Raises DatasetError, naming the line, if the file cannot be read or a line is no sample.
    """
    path = Path(path)
    for number, record in read_json_lines(path):
        try:
            yield Sample.from_json(record)
        except DatasetError as error:
            raise DatasetError(f"{path}:{number}: {error}") from None


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number (from 1) and object of each line that is not blank, unpacked where the suffix says so.

    Raises DatasetError, naming the line, if the file cannot be read or a line is no JSON object.
    """
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DatasetError(f"{path}:{number}: not JSON: {error}") from None
        if not isinstance(record, dict):
            raise DatasetError(f"{path}:{number}: not a JSON object")
        yield number, record


def opened(path: Path) -> BinaryIO:
    """Open a file of lines, unpacked where its suffix says so. Raises OSError."""
    return cast("BinaryIO", gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with opened(path) as lines:
            yield from enumerate(lines_of(lines), start=1)
    except (OSError, EOFError, zlib.error, LimitError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DatasetError(f"{path}: {reason}") from None


def write_samples(path: str | Path, samples: Iterable[Sample]) -> str:
    """Write samples, one a line, and return the file's SHA-256 (hexadecimal).

    The file gets its name when it is complete. `fim_server.datasets.build` can go on after a kill instead. Raises
    DatasetError if it cannot be written.
    """
    path = Path(path)
    part = path.with_name(path.name + ".part")
    digest = hashlib.sha256()
    try:
        with part.open("wb") as output:
            for sample in samples:
                line = encode_sample(sample)
                digest.update(line)
                output.write(line)
        part.replace(path)
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror or error}") from None
    return digest.hexdigest()
