"""The files of a run: one JSON line for each sample and mode, and ``run.json``, what the run was asked for.

docs/evaluation.md has the fields. Lines are appended and never changed. A line torn by a kill is not read, and is cut
off when the run goes on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from fim_server.errors import LimitError, RecordError
from fim_server.language.limited_files import lines_of, parse_json, read_limited

MODES = ("unconstrained", "checked", "constrained")
"""Every mode, in the order of tables."""

WON = ("end_token", "point", "landed", "prefix", "truncated", "budget")
"""Values of :attr:`Record.won`."""

RUN_FILE = "run.json"
LINES = "samples*.jsonl"


@dataclass(frozen=True, slots=True)
class Record:
    """The result of one mode on one sample. Texts have ``"\\n"``, lengths are characters, times milliseconds.

    Where ``error`` is set, the sample could not be measured, and every field with a default is as by default. Where it
    is not, those that may be null are so for the reasons named.
    """

    sample: str
    """The sample's id."""
    set: str
    kind: str
    mode: str
    """One of :data:`MODES`."""
    reference: str
    """The sample's own middle."""
    left_tail: str
    """Up to 2,000 characters left of the middle."""
    right_head: str
    """Up to 2,000 characters right of it."""
    hole_characters: int
    hole_lines: int
    left_characters: int
    right_characters: int
    prompt_hash: str | None = None
    """SHA-256 of the prompt's token ids, first 16 hexadecimal digits."""
    prompt_tokens: int | None = None
    text: str | None = None
    """The middle offered, or null if there is none."""
    parses: bool | None = None
    """The judge of the sample's language takes left + text + right; false where there is no text."""
    complete: bool | None = None
    """The engine's verdict on the same."""
    guarantee: str | None = None
    """The session's: ``exact``, ``partial``, ``none``."""
    stop_reason: str | None = None
    """A :class:`fim_server.decoding.results.StopReason`."""
    won: str | None = None
    """Origin of the text, null where there is none.

    ``end_token``: the model ended it. ``point``: the best complete point before the budget's end. ``landed``: the
    text that the budget's end forced. ``prefix``: a prefix of a checked text. ``budget``: unconstrained, cut off.
    """
    tokens: int | None = None
    """Generated in all."""
    text_tokens: int | None = None
    """Those of them in ``text``."""
    refused: int | None = None
    """Steps whose first choice the grammar refused."""
    forced: int | None = None
    """Tokens that the constraint forced without asking the model."""
    landing: int | None = None
    """Steps at which the budget's end ruled tokens out."""
    complete_at: tuple[tuple[int, int], ...] | None = None
    """Numbers of tokens after which left + middle so far + right was in the language, as runs (first, last)."""
    open_ms: float | None = None
    """Opening the session on the whole file; the same for all modes of a sample, which share it."""
    model_ms: float | None = None
    """The prefill, and this text's share of the forward passes that it was in."""
    engine_ms: float | None = None
    """Checks, masks and commits."""
    engine_wait_ms: float | None = None
    """The part of it that decoding waited for."""
    total_ms: float | None = None
    """``open_ms + model_ms + engine_wait_ms`` and what choosing tokens took."""
    exact_match: bool | None = None
    """The texts are equal with blanks stripped from both ends."""
    edit_similarity: float | None = None
    """``1 - levenshtein(a, b) / max(len(a), len(b))`` of the stripped texts; 1 for two empty ones, 0 for no text."""
    suffix_overlap: int | None = None
    """Length of the longest end of the stripped text that the stripped right context begins with."""
    passed: bool | None = None
    """Result of the sample's own test; null where it has none."""
    failure: str | None = None
    """Reason why the test did not pass: ``timeout``, ``memory``, ``error``, ``wrong``."""
    healed: int | None = None
    """Characters left of the hole that token healing took from the prompt.

    ``tokens`` and ``text_tokens`` spell them first; ``text`` does not contain them.
    """
    reference_bits: float | None = None
    """Bits of the sample's own middle under the model, without the grammar, given what was healed; null where the run
    did not score. The same for all modes."""
    end_bits: float | None = None
    """Bits of ending there."""
    error: str | None = None
    """Reason why the sample could not be measured, in one line; else null."""
    path: str | None = None
    """The sample's file, with package and version before it where there is one; null in records from before it was
    said."""
    line: int | None = None
    """Line of the file in which the hole begins, from 1."""
    language: str = "python"
    """The sample's; in records from before it was said, the only one there was."""

    @property
    def place(self) -> str:
        """``path:line``; "" where they are not said."""
        return "" if self.path is None or self.line is None else f"{self.path}:{self.line}"

    @property
    def key(self) -> tuple[str, str]:
        """Return the unique key within a run: sample and mode."""
        return self.sample, self.mode

    def to_json(self) -> dict[str, Any]:
        """All fields, in their order; times to the microsecond."""
        values = asdict(self)
        return {name: round(value, 6) if isinstance(value, float) else value for name, value in values.items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Record:
        """The inverse of :meth:`to_json`. Unknown fields are ignored. Raises RecordError where one is missing."""
        try:
            known = {name: values[name] for name in _FIELDS if name in values}
            if known.get("complete_at") is not None:
                known["complete_at"] = tuple((int(first), int(last)) for first, last in known["complete_at"])
            return cls(**known)
        except (TypeError, ValueError) as error:
            raise RecordError(f"not a result: {error}") from None


_FIELDS = tuple(one.name for one in fields(Record))


def encode_record(record: Record) -> bytes:
    """One line of ASCII, its ``"\\n"`` included, so that lone surrogates survive. Equal records give equal bytes."""
    return (json.dumps(record.to_json(), separators=(",", ":"), allow_nan=False) + "\n").encode("ascii")


def read_records(path: str | Path) -> Iterator[Record]:
    """The results in one file, in order; a last line without its end is not read.

    Raises RecordError, naming the line, if the file cannot be read or another line is no result.
    """
    path, number = Path(path), 0
    try:
        with path.open("rb") as lines:
            for line in lines_of(lines):
                number += 1
                if line.endswith(b"\n"):
                    yield Record.from_json(parse_json(line))
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror or error}") from None
    except LimitError as error:
        raise RecordError(f"{path}:{number + 1}: {error}") from None
    except RecordError as error:
        raise RecordError(f"{path}:{number}: {error}") from None
    except ValueError as error:
        raise RecordError(f"{path}:{number}: not a result ({error})") from None


def read_run(path: str | Path) -> Iterator[Record]:
    """All results of a run's folder: of every ``samples*.jsonl`` in it, by file name, then in order.

    Raises RecordError if the folder is no run, or a file in it cannot be read.
    """
    folder = Path(path)
    RunInfo.read(folder)
    for file in record_files(folder):
        yield from read_records(file)


def record_files(folder: Path) -> list[Path]:
    """The files of results in a run's folder."""
    return sorted(folder.glob(LINES))


@dataclass(frozen=True, slots=True)
class Data:
    """One file of samples that a run is on."""

    path: str
    """Path, as the user gave it."""
    sha256: str
    """SHA-256 of the file."""
    samples: int


@dataclass(frozen=True, slots=True)
class RunInfo:
    """``run.json``: what a run was asked for, and with what it was made."""

    data: tuple[Data, ...]
    model: str
    """``embedded``, a folder or a hub name, as it was given."""
    model_sha256: str
    """SHA-256 of the model's configuration, tokenizer and weights."""
    format: str
    """The prompt format's family."""
    modes: tuple[str, ...]
    budget: int
    """Tokens of a middle, at most."""
    max_prompt_tokens: int
    seed: int
    temperature: float
    batch: int
    """Samples decoded together."""
    device: str
    language_version: str | None
    """The version of Python that its grammar and the engine's verdicts are of; null is the newest."""
    judge: str = ""
    """The version of the Python whose ``ast.parse`` says what parses of Python; empty where none does."""
    landing: bool = True
    """True if the constrained mode had to end within the budget (:mod:`fim_server.decoding.loop.landing`)."""
    runtime: str = "torch"
    """Runtime of the model; older records lack the field and get these defaults."""
    export_sha256: str | None = None
    """SHA-256 of the files that onnxruntime loaded; null on torch."""
    contexts: str = "both"
    """Contexts in the prompt: ``both``, ``left`` (an empty suffix), ``left-alone`` (no control token either)."""
    healing: bool = False
    """True if cuts were moved back to the start of a token (:mod:`fim_server.decoding.loop.healing`)."""
    single_line: bool = False
    """True if texts in sets of lines ended with their line."""
    score: bool = False
    """True if the true middles were scored."""
    truncation: bool = True
    """True if unconstrained texts of SAFIM were cut as the benchmark cuts them."""
    tested: bool = True
    """True if the samples' own tests were run."""
    languages: tuple[str, ...] = ("python",)
    """Languages of the samples, without those that the package does not define."""
    judges: Mapping[str, str] = field(default_factory=dict)
    """By language, what says what parses, with its version: of all but Python, and of Python where it is no Python.
    :data:`ENGINE` is the engine's own verdict."""
    language_versions: Mapping[str, str] = field(default_factory=dict)
    """By language other than Python, the version of its grammar, where it has versions."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of fim-server, Python, torch and transformers."""
    machine: Mapping[str, Any] = field(default_factory=dict)
    """Machine on which the run began: ``system``, ``processor``, ``cores``, ``threads``, ``device`` (its name)."""
    limit: int | None = None
    """The first so many samples of the data, or null for all; a run may go on with more."""
    started: str = ""
    """Time of the run's start, in UTC, ISO 8601."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def samples(self) -> int:
        """Return the number of samples."""
        known = sum(one.samples for one in self.data)
        return known if self.limit is None else min(known, self.limit)

    @classmethod
    def read(cls, folder: str | Path) -> RunInfo:
        """The folder's ``run.json``. Raises RecordError if there is none, or it is none."""
        path = Path(folder) / RUN_FILE
        try:
            values = parse_json(read_limited(path))
            values["data"] = tuple(Data(**one) for one in values["data"])
            values["modes"] = tuple(values["modes"])
            values["languages"] = tuple(values.get("languages", ("python",)))
            return cls(**values)
        except FileNotFoundError:
            raise RecordError(f"{folder}: not a run (it has no {RUN_FILE})") from None
        except OSError as error:
            raise RecordError(f"{path}: {error.strerror or error}") from None
        except LimitError as error:
            raise RecordError(f"{path}: {error}") from None
        except (ValueError, TypeError, KeyError) as error:
            raise RecordError(f"{path}: not a run ({error})") from None

    def write(self, folder: str | Path) -> None:
        """Write ``run.json``, whole or not at all. Raises RecordError where that cannot be done."""
        path = Path(folder) / RUN_FILE
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            part.write_text(json.dumps(self.to_json(), indent=2) + "\n", encoding="utf-8")
            part.replace(path)
        except OSError as error:
            raise RecordError(f"{path}: {error.strerror or error}") from None
