"""A run: samples are decoded batch by batch, and each batch is written down when it is done.

What is on the disk is the only state. A run that goes on reads which samples have their results, forms the batches that
it would have formed (:mod:`.shards`), decodes again those of which a result is missing, and writes what is missing. So
a kill at any point costs at most the work on one batch, and the results are those of a run that was not killed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Protocol

from fim_server.datasets.samples import Sample, read_samples
from fim_server.errors import DatasetError, RunError
from fim_server.evaluation.records import RUN_FILE, Data, Record, RunInfo, encode_record, read_records, record_files
from fim_server.evaluation.running.judge import Judge
from fim_server.evaluation.running.measures import (
    TAIL_CHARACTERS,
    edit_similarity,
    exact_match,
    one_line,
    similarity_function,
    suffix_overlap,
)
from fim_server.evaluation.running.shards import Shard, form_batches
from fim_server.language.session import Language
from fim_server.recovery.recovery import Recovery

if TYPE_CHECKING:
    from fim_server.decoding.loop import Session
    from fim_server.evaluation.running.modes import Decoder, Offer, Offers, Prepared
    from fim_server.models.load import FimModel

FAILURES_IN_A_ROW = 200
"""So many samples failing one after the other end the run: the device is gone, or the disk of the model. What was
recorded for them is taken back, so that the run can go on from there."""

HASHED_WHOLE = 1 << 28
"""Files of a model up to this size are hashed whole (bytes); of larger ones both ends and the size."""
HASHED_ENDS = 1 << 24


# --- measuring ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a worker needs, in a form that can be sent to another machine."""

    model: str | None
    device: str | None
    modes: tuple[str, ...]
    budget: int
    max_prompt_tokens: int
    seed: int
    temperature: float
    judge: str | None
    """The Python whose ``ast.parse`` says what parses; None is the one that runs the worker."""
    language_version: str | None
    """None is the judge's own version, or the newest where the judge is newer."""
    landing: bool = True


class Measuring(Protocol):
    """What measures batches: a :class:`Worker`, or many."""

    def about(self) -> Mapping[str, Any]:
        """What run.json holds and the settings do not say.

        ``format``, ``device``, ``model_sha256``, ``judge``, ``language_version``, ``versions``, ``machine``.
        """

    def measure_all(self, batches: Iterable[Sequence[Sample]], /) -> Iterator[list[Record]]:
        """The results of each batch, in whatever order the batches are done."""


class Worker:
    """A model, loaded, that measures samples in one process."""

    def __init__(self, settings: WorkerSettings, model: FimModel | None = None) -> None:
        """Loads the settings' model, or takes one that is loaded.

        Raises ModelError and LanguageError as their modules say, JudgeError, and MissingLibrary without rapidfuzz.
        """
        similarity_function()
        from fim_server.evaluation.running.modes import Decoder, Decoding
        from fim_server.models.load import load_model
        from fim_server.tokens.masks import prepare

        self._settings = settings
        self._judge = Judge(settings.judge)
        self._language = Language.load("python", settings.language_version or version_of(self._judge))
        self._recovery = Recovery(self._language.open)
        self._loaded = model is None
        # Its figures are of one runtime, and torch's networks alone read many rows at once.
        self.model = load_model(settings.model, settings.device, "torch") if model is None else model
        if self._loaded:
            prepare(self._language, self.model.vocabulary)
        decoding = Decoding(
            settings.modes,
            settings.budget,
            settings.max_prompt_tokens,
            settings.seed,
            settings.temperature,
            settings.landing,
        )
        self.decoder: Decoder = Decoder(self.model, self._open, decoding)

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._judge.close()

    def _open(self, sample: Sample) -> Session:
        return self._recovery.open(sample.left, sample.right)

    def about(self) -> Mapping[str, Any]:
        """As :meth:`Measuring.about`."""
        from fim_server.decoding.batches import describe_machine

        return {
            "format": self.model.format.family,
            "device": str(self.model.device),
            "model_sha256": model_hash(self._settings.model) if self._loaded else self.model.name,
            "judge": self._judge.version,
            "language_version": self._language.version,
            "versions": versions(),
            "machine": {"system": platform.platform(), "cores": os.cpu_count(), **describe_machine(self.model)},
        }

    def measure_all(self, batches: Iterable[Sequence[Sample]]) -> Iterator[list[Record]]:
        """As :meth:`Measuring.measure_all`."""
        return map(self.measure, batches)

    def measure(self, samples: Sequence[Sample]) -> list[Record]:
        """The results of samples that are decoded together, in their order; for each, all modes."""
        found: dict[int, Offers] = {}
        prepared: dict[int, Prepared] = {}
        for number, sample in enumerate(samples):
            try:
                if sample.language != "python":
                    raise ValueError(f"no parser for {sample.language} to judge by")
                prepared[number] = self.decoder.prepare(sample)
            except Exception as error:  # noqa: BLE001  # recorded as the sample's own
                found[number] = error
        found |= zip(prepared, self._decode(list(prepared.values())), strict=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            tests = start_tests(pool, {number: one.sample for number, one in prepared.items()}, found)
            records: list[Record] = []
            for number, sample in enumerate(samples):
                offers = found[number]
                if not isinstance(offers, Exception):
                    try:
                        records += self._results(prepared[number], offers, tests[number])
                        continue
                    except Exception as error:  # noqa: BLE001  # as above
                        offers = error
                records += [failed(sample, mode, offers) for mode in self._settings.modes]
        return records

    def _decode(self, samples: Sequence[Prepared]) -> list[Offers]:
        """Decode together; where that fails as a whole (out of memory), one by one."""
        from fim_server.decoding.batches import free_memory

        try:
            return self.decoder.decode(samples)
        except Exception as error:  # noqa: BLE001  # whatever a model and its device raise
            if len(samples) == 1:
                return [error]
        free_memory()
        return [offers for one in samples for offers in self._decode([one])]

    def _results(self, one: Prepared, offers: Mapping[str, Offer], tests: Mapping[str, Future[Test]]) -> list[Record]:
        """The results of a sample that was decoded. Equal texts are judged once."""
        sample = one.sample
        verdicts: dict[str, dict[str, Any]] = {}
        records: list[Record] = []
        session = None
        for mode, offer in offers.items():
            verdict = None if offer.text is None else verdicts.get(offer.text)
            if verdict is None:
                verdict = {
                    "exact_match": exact_match(offer.text, sample.middle),
                    "edit_similarity": edit_similarity(offer.text, sample.middle),
                    "suffix_overlap": suffix_overlap(offer.text, sample.right),
                    "parses": False,
                    "complete": False,
                    "passed": None if sample.test is None else False,
                    "failure": None,
                }
                if offer.text is not None:
                    session = session or self._language.open(sample.left, sample.right)
                    verdict["parses"] = self._judge.parses(sample.filled(offer.text))
                    verdict["complete"] = session.check(offer.text).complete
                    if offer.text in tests:
                        verdict["passed"], verdict["failure"] = tests[offer.text].result()
                    verdicts[offer.text] = verdict
            measured = {"prompt_hash": one.prompt_hash, "prompt_tokens": len(one.prompt), **asdict(offer), **verdict}
            records.append(Record(**described(sample, mode), **measured))
        return records


def version_of(judge: Judge) -> str | None:
    """The version of Python's grammar that a judge has; None, the newest, where it is newer than all that are known."""
    version = ".".join(judge.version.split(".")[:2])
    return version if version in Language.versions("python") else None


Test = tuple[bool, str | None]
"""Whether a test passed, and why not."""


def start_tests(
    pool: ThreadPoolExecutor, samples: Mapping[int, Sample], found: Mapping[int, Offers]
) -> dict[int, dict[str, Future[Test]]]:
    """Start the tests of those samples that have one, for each different text; by the samples' numbers."""
    started: dict[int, dict[str, Future[Test]]] = {}
    for number, sample in samples.items():
        offers = found[number]
        texts = set() if isinstance(offers, Exception) or sample.test is None else {o.text for o in offers.values()}
        started[number] = {text: pool.submit(run_test, sample, text) for text in texts if text is not None}
    return started


def run_test(sample: Sample, text: str) -> Test:
    """Whether the sample's own test passes with a text, and why not. Raises DatasetError if it cannot be run."""
    from fim_server.datasets.python.sandbox import run_sample

    outcome = run_sample(sample, text)
    return outcome.passed, None if outcome.passed else str(outcome.verdict)


def described(sample: Sample, mode: str) -> dict[str, Any]:
    """The fields of a result that are the sample's."""
    return {
        "sample": sample.id,
        "set": sample.set,
        "kind": sample.kind,
        "mode": mode,
        "reference": sample.middle,
        "left_tail": sample.left[-TAIL_CHARACTERS:],
        "right_head": sample.right[:TAIL_CHARACTERS],
        "hole_characters": len(sample.middle),
        "hole_lines": sample.middle.count("\n") + 1,
        "left_characters": len(sample.left),
        "right_characters": len(sample.right),
    }


def failed(sample: Sample, mode: str, error: Exception) -> Record:
    """The result of a sample that could not be measured."""
    return Record(**described(sample, mode), error=one_line(error))


# --- what a run is asked for ----------------------------------------------------------------------------------------


def read_data(paths: Sequence[str]) -> tuple[tuple[Data, ...], list[str]]:
    """Hash and count files of samples; their ids in order.

    Raises DatasetError where one cannot be read, or an id comes twice.
    """
    ids: dict[str, None] = {}
    found: list[Data] = []
    for path in paths:
        before = len(ids)
        number = 0
        for sample in read_samples(path):
            number += 1
            ids[sample.id] = None
            if len(ids) < before + number:
                raise DatasetError(f"{path}: the id {sample.id!r} comes twice in what is to be measured")
        with Path(path).open("rb") as file:
            found.append(Data(path, hashlib.file_digest(file, "sha256").hexdigest(), number))
    if not ids:
        raise DatasetError(f"{', '.join(paths)}: no samples")
    return tuple(found), list(ids)


def all_samples(paths: Sequence[str], limit: int | None) -> Iterator[Sample]:
    """The samples of all files, in order, up to a limit."""
    return islice((sample for path in paths for sample in read_samples(path)), limit)


def model_hash(name: str | None) -> str:
    """One SHA-256 of the files of a model's folder: their names, sizes and contents (of large ones, both ends)."""
    from fim_server.models.load import locate

    digest = hashlib.sha256()
    for path in sorted(Path(locate(name)).iterdir()):
        if path.is_file() and path.suffix in (".json", ".safetensors", ".bin", ".model", ".txt"):
            size = path.stat().st_size
            digest.update(f"{path.name}\0{size}\0".encode())
            with path.open("rb") as file:
                if size <= HASHED_WHOLE:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
                else:
                    digest.update(file.read(HASHED_ENDS))
                    file.seek(-HASHED_ENDS, os.SEEK_END)
                    digest.update(file.read(HASHED_ENDS))
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """What the results may depend on."""
    found = {"python": platform.python_version()}
    for name in ("fim-server", "torch", "transformers"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "(not installed)"
    return found


OPTIONS = {
    "model_sha256": "--model",
    "modes": "--modes",
    "budget": "--budget",
    "max_prompt_tokens": "--max-prompt-tokens",
    "seed": "--seed",
    "temperature": "--temperature",
    "batch": "--batch",
    "device": "--device",
    "judge": "--judge",
    "language_version": "--python-version",
    "landing": "landing",
    "format": "the prompt format",
    "versions": "versions",
}
"""What a run cannot go on with if it has changed, and what the user calls it; the data is compared by its hash."""


def differing(known: RunInfo, asked: RunInfo) -> str | None:
    """The first setting in which two runs differ, in words, or None."""
    if [one.sha256 for one in known.data] != [one.sha256 for one in asked.data]:
        return "other --data: " + ", ".join(f"{one.path} with {one.samples} samples" for one in known.data)
    for name, called in OPTIONS.items():
        before, now = getattr(known, name), getattr(asked, name)
        if before != now:
            if name == "model_sha256":
                before, now = f"{known.model} ({before[:12]})", f"{asked.model} ({now[:12]})"
            return f"{called} {shown(before)}, not {shown(now)}"
    return None


def shown(value: object) -> str:
    """A setting as its option spells it."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, Mapping):
        return " ".join(f"{name} {version}" for name, version in value.items())
    return "newest" if value is None else str(value)


def settle(folder: Path, asked: RunInfo) -> None:
    """Begin a run in a folder, or see that the one in it can be gone on with. Raises RunError where it cannot."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder}: {error.strerror or error}") from None
    if (folder / RUN_FILE).exists():
        known = RunInfo.read(folder)
        difference = differing(known, asked)
        if difference is not None:
            raise RunError(f"{folder} was begun with {difference}: name another --out, or go on as it was begun")
        if known.limit is not None and (asked.limit is None or asked.limit > known.limit):
            replace(known, limit=asked.limit).write(folder)
    elif record_files(folder):
        raise RunError(f"{folder}: has results, but no {RUN_FILE} that says what of; name another --out")
    else:
        asked.write(folder)


# --- the file of results --------------------------------------------------------------------------------------------


class Journal:
    """The file that this process writes results to: opened by nobody else, cut after its last whole line."""

    def __init__(self, folder: Path, shard: Shard) -> None:
        """Opens or makes the file. Raises RunError where it cannot, or another process is writing it."""
        self.path = folder / shard.file
        try:
            self._file: IO[bytes] = self.path.open("ab+")
        except OSError as error:
            raise RunError(f"{self.path}: {error.strerror or error}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise RunError(f"{self.path}: another process is writing it") from None
        self._cut_torn_line()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def _cut_torn_line(self) -> None:
        """Cut off what follows the last line break."""
        end = self._file.seek(0, os.SEEK_END)
        keep = end
        while keep > 0:
            begin = max(0, keep - (1 << 16))
            self._file.seek(begin)
            found = self._file.read(keep - begin).rfind(b"\n")
            if found >= 0:
                keep = begin + found + 1
                break
            keep = begin
        if keep < end:
            self._file.truncate(keep)

    def write(self, records: Iterable[Record]) -> None:
        """Append results, and hand them to the system. Raises RunError where the disk refuses."""
        try:
            self._file.write(b"".join(map(encode_record, records)))
            self._file.flush()
        except OSError as error:
            raise RunError(f"{self.path}: {error.strerror or error}") from None

    def size(self) -> int:
        """Where the next result begins, in bytes."""
        return self._file.seek(0, os.SEEK_END)

    def cut(self, size: int) -> None:
        """Forget what was written from there on."""
        self._file.truncate(size)

    def drop_failed(self) -> int:
        """Forget the results that are errors, so that they are measured again; returns how many there were.

        What is kept takes the file's place as a whole, so that a kill loses nothing.
        """
        kept = [record for record in read_records(self.path) if record.error is None]
        dropped = sum(1 for _ in read_records(self.path)) - len(kept)
        if dropped:
            part = self.path.with_name(f"{self.path.name}.part")
            with part.open("wb") as output:
                output.writelines(map(encode_record, kept))
                output.flush()
                os.fsync(output.fileno())
            replacement = part.open("ab+")
            fcntl.flock(replacement, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.replace(self.path)
            self._file.close()
            self._file = replacement
        return dropped


def done_in(folder: Path) -> set[tuple[str, str]]:
    """The samples and modes that have their results, in whatever shard's file."""
    return {record.key for file in record_files(folder) for record in read_records(file)}


# --- running --------------------------------------------------------------------------------------------------------


class Progress:
    """Says on standard error how far a run is: on a terminal in one line, elsewhere every half a minute."""

    INTERVAL_S = 30.0

    def __init__(self, total: int, done: int) -> None:
        self._total, self._done, self._begun_with = total, done, done
        self._failed = 0
        self._terminal = sys.stderr.isatty()
        self._started = time.monotonic()
        self._said = self._started if not self._terminal else 0.0

    def add(self, samples: int, failed_samples: int) -> None:
        """Count samples that were done, those among them that failed, and say so if it is time."""
        self._done += samples
        self._failed += failed_samples
        now = time.monotonic()
        if self._terminal or now - self._said >= self.INTERVAL_S:
            self._said = now
            self._say("" if self._terminal else "\n")

    def finish(self) -> None:
        """Say the last of it."""
        self._say("\n")

    def _say(self, end: str) -> None:
        print(f"\r\x1b[K{self}" if self._terminal else str(self), end=end, file=sys.stderr, flush=True)

    def __str__(self) -> str:
        elapsed = time.monotonic() - self._started
        rate = (self._done - self._begun_with) / elapsed if elapsed > 0 else 0.0
        said = f"{self._done} of {self._total} samples"
        if self._failed:
            said += f", {self._failed} failed"
        if rate > 0:
            said += f", {3600 * rate:.0f} samples/h"
            if self._done < self._total:
                said += f", {duration((self._total - self._done) / rate)} to go"
        return said


def duration(seconds: float) -> str:
    """A time in words: hours and minutes, or minutes and seconds.

    >>> duration(9.6), duration(125), duration(7300)
    ('10 s', '2 min 05 s', '2 h 01 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60:02} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60:02} min"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run is asked for, besides what its workers are told."""

    data: tuple[str, ...]
    out: Path
    batch: int
    limit: int | None = None
    shard: Shard = field(default_factory=Shard)
    retry_failed: bool = False


def run_info(asked: Asked, settings: WorkerSettings, about: Mapping[str, Any], data: tuple[Data, ...]) -> RunInfo:
    """``run.json`` of a run that begins."""
    return RunInfo(
        data=data,
        model=settings.model or "embedded",
        model_sha256=about["model_sha256"],
        format=about["format"],
        modes=settings.modes,
        budget=settings.budget,
        max_prompt_tokens=settings.max_prompt_tokens,
        seed=settings.seed,
        temperature=settings.temperature,
        batch=asked.batch,
        device=about["device"],
        language_version=about["language_version"],
        judge=about["judge"],
        landing=settings.landing,
        versions=about["versions"],
        machine=about["machine"],
        limit=asked.limit,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def run(
    asked: Asked, settings: WorkerSettings, measuring: Measuring, data: tuple[Data, ...], ids: Sequence[str]
) -> int:
    """Run, or go on; returns how many of the samples measured now failed. ``data``, ``ids``: of :func:`read_data`.

    Raises RunError for a run that cannot be begun or gone on with, and RecordError for results that cannot be read.
    """
    settle(asked.out, run_info(asked, settings, measuring.about(), data))
    with Journal(asked.out, asked.shard) as journal:
        if asked.retry_failed:
            journal.drop_failed()
        done = done_in(asked.out)

        def lacks_results(names: Iterable[str]) -> bool:
            return any((name, mode) not in done for name in names for mode in settings.modes)

        own = list(asked.shard.of(ids[: asked.limit]))
        progress = Progress(len(own), sum(not lacks_results([name]) for name in own))
        samples = asked.shard.of(all_samples(asked.data, asked.limit))
        batches = (
            batch
            for batch in form_batches(samples, asked.batch, settings.max_prompt_tokens)
            if lacks_results(sample.id for sample in batch)
        )
        failures = Failures(journal)
        for records in measuring.measure_all(batches):
            wanted = [record for record in records if record.key not in done]
            failures.watch(wanted)
            journal.write(wanted)
            done.update(record.key for record in wanted)
            progress.add(len({r.sample for r in wanted}), len({r.sample for r in wanted if r.error is not None}))
        progress.finish()
    return failures.count


class Failures:
    """Ends a run in which nothing succeeds any more (:data:`FAILURES_IN_A_ROW`)."""

    def __init__(self, journal: Journal) -> None:
        self.count = 0
        """Samples that failed, in all."""
        self._journal = journal
        self._in_a_row: list[str] = []
        self._since = 0

    def watch(self, records: Sequence[Record]) -> None:
        """Look at results before they are written. Raises RunError when there have been too many errors in a row."""
        for record in records:
            if record.error is None:
                self._in_a_row = []
            elif record.sample not in self._in_a_row[-1:]:
                self._since = self._since if self._in_a_row else self._journal.size()
                self._in_a_row.append(record.sample)
                self.count += 1
        if len(self._in_a_row) >= FAILURES_IN_A_ROW:
            self._journal.cut(self._since)
            raise RunError(f"the last {len(self._in_a_row)} samples failed, the last with {records[-1].error}")
