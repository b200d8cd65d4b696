"""Building a set: a stream of files in, a file of samples out, and a journal that lets a killed build go on.

Three files stand beside each other while a build runs: ``FILE.part`` (the samples so far), ``FILE.journal`` (one record
for every file of the source that was dealt with, written after its samples) and, at the end, ``FILE.manifest.json``. A
build that goes on reads the journal, cuts ``FILE.part`` back to the last record, and reads over the files that the
journal has, comparing their digests: so the result is that of a build that was never interrupted, to the byte, or a
refusal because the source has changed.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fim_server.datasets.cutters import PYTHON, Cutter, cutter
from fim_server.datasets.holes import PER_FILE, VERSION, Refused
from fim_server.datasets.journal import Journal, Record
from fim_server.datasets.manifest import beside, finished, interpreter, write_manifest
from fim_server.datasets.samples import Origin, Sample, encode_sample
from fim_server.datasets.sources.named import open_source
from fim_server.datasets.sources.source import Source, SourceText
from fim_server.errors import DatasetError

KEPT, DUPLICATE = "kept", "duplicate"

NOT_READ = ("not decodable", "unreadable", "another language")

OUTCOMES = (
    KEPT,
    DUPLICATE,
    "not drawn",
    "no hole",
    "refused by ast.parse",
    "refused by tokenize",
    "too long",
    *NOT_READ,
    "refused by the judge",
)
"""What becomes of a file. A record of the journal has the index."""

_ID_DIGITS = 16
"""Hexadecimal digits of a file's SHA-256 in the ids of its samples: 64 bits, so that ids of a million files differ."""

_SEEN_BYTES = 16
"""Bytes of a file's SHA-256 that are kept to know duplicates by: all that a build keeps of a file."""


@dataclass(frozen=True)
class Request:
    """What a set is built from: everything that its bytes depend on, besides the source's contents.

    ``share``: of the files, drawn by their contents and the seed, so that it is the same files for every set.
    ``limit``: of samples; a build with one is the beginning of the build without.
    ``language_version``: None is the newest that the language's own parser here knows.
    ``judge``: the command of another parser than the package's.
    """

    set: str
    source: str
    seed: int = 0
    per_file: int = PER_FILE
    share: float = 1.0
    limit: int | None = None
    language: str = PYTHON
    language_version: str | None = None
    judge: str | None = None

    def arguments(self) -> dict[str, Any]:
        """For the manifest; of Python no more is said than before there were others, so that old sets stay valid."""
        unsaid = {"language": PYTHON, "language_version": None, "judge": None}
        return {name: value for name, value in asdict(self).items() if name not in unsaid or value != unsaid[name]}


@dataclass
class Counts:
    """How far a build has come."""

    files: int = 0
    samples: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: str, samples: int) -> None:
        """Count a file of the source."""
        self.files += 1
        self.samples += samples
        self.outcomes[outcome] += 1

    def to_json(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "files": self.files,
            "kept": self.outcomes[KEPT],
            "duplicates": self.outcomes[DUPLICATE],
            "left_out": {name: self.outcomes[name] for name in OUTCOMES[2:] if self.outcomes[name]},
            "samples": self.samples,
        }


def build(request: Request, out: Path, progress: Callable[[Counts], None] = lambda counts: None) -> dict[str, Any]:
    """Build a set, or go on building it; returns its manifest.

    ``progress`` is called after every file. If ``out`` is there already and its manifest says that it is this request's
    set, nothing is done.

    Raises:
        DatasetError: the source cannot be read or has changed since the build began, ``out`` is another set or another
            build's, is being built by another process, or cannot be written; or the set is not for the language.
        LanguageError: there is no such language.
        JudgeError: the language's own parser, which says what is a file, is not there.
    """
    arguments = request.arguments()
    construction = {"name": request.set, "version": VERSION}
    done = finished(out, arguments, construction)
    try:
        if done is None:
            out.parent.mkdir(parents=True, exist_ok=True)
            with Journal(beside(out, ".journal")) as journal:
                done = finished(out, arguments, construction)  # by a process that held the journal until now
                if done is None:
                    asked = {"arguments": arguments, "construction": construction}
                    with cutter(request.language, request.set, request.language_version, request.judge) as of_language:
                        done = _build(request, asked, of_language, out, journal, progress)
        beside(out, ".journal").unlink(missing_ok=True)
    except OSError as error:
        raise DatasetError(f"{error.filename or out}: {error.strerror or error}") from None
    return done


def _build(
    request: Request,
    asked: dict[str, Any],
    of_language: Cutter,
    out: Path,
    journal: Journal,
    progress: Callable[[Counts], None],
) -> dict[str, Any]:
    part = beside(out, ".part")
    header = {**asked, "interpreter": interpreter()}
    if of_language.judged_by is not None:
        header["judge"] = of_language.judged_by
    begun = journal.header()
    if begun is not None and {name: begun.get(name) for name in header} != header:
        raise DatasetError(
            f"{part} was begun with other arguments or another interpreter: {_BEGIN_AGAIN} {out}.journal"
        )
    source = open_source(request.source, None if begun is None else begun["pinned"], request.language)
    if begun is None:
        begun = {**header, "pinned": source.pinned()}
        journal.begin(begun)
    changed = DatasetError(f"{request.source} has changed since {part} was begun: {_BEGIN_AGAIN} {out}.journal")
    if begun["pinned"] != source.pinned():
        raise changed

    counts = Counts()
    seen: set[bytes] = set()
    with part.open("r+b" if part.exists() else "w+b") as output:
        size = os.fstat(output.fileno()).st_size
        files = iter(source)
        end = 0
        for record in journal.records():
            if record.end > size:
                break  # the machine went down, and not all that was written came to the disk
            file = next(files, None)
            if file is None or _digest(file, of_language.decode(file.content)) != record.digest:
                raise changed
            _count(counts, seen, record)
            end = record.end
            journal.keep()
            progress(counts)
        journal.cut()
        output.truncate(end)
        output.seek(end)
        for file in files:
            if request.limit is not None and counts.samples >= request.limit:
                break
            text = of_language.decode(file.content)
            digest = _digest(file, text)
            outcome, samples = _cut(request, of_language, source, file, text, digest, seen)
            if request.limit is not None:
                samples = samples[: request.limit - counts.samples]
            encoded = b"".join(map(encode_sample, samples))
            output.write(encoded)
            output.flush()  # before its record, so that the samples of every record are there
            end += len(encoded)
            record = Record(digest, OUTCOMES.index(outcome), len(samples), end)
            journal.add(record)
            _count(counts, seen, record)
            progress(counts)
    return write_manifest(out, part, {**begun, "counts": counts.to_json()})


_BEGIN_AGAIN = "to begin again, remove"


def _count(counts: Counts, seen: set[bytes], record: Record) -> None:
    outcome = OUTCOMES[record.outcome]
    counts.add(outcome, record.samples)
    if outcome not in NOT_READ:
        seen.add(record.digest[:_SEEN_BYTES])


def _digest(file: SourceText, text: str | None) -> bytes:
    """SHA-256 of a file's text in UTF-8; where it is no text, of what it is."""
    if text is not None:
        return hashlib.sha256(text.encode()).digest()
    content = file.content if isinstance(file.content, bytes) else str(file.content).encode(errors="surrogatepass")
    return hashlib.sha256(b"\0not a text\0" + content).digest()


def _cut(
    request: Request,
    of_language: Cutter,
    source: Source,
    file: SourceText,
    text: str | None,
    digest: bytes,
    seen: set[bytes],
) -> tuple[str, list[Sample]]:
    """What becomes of a file, and its samples."""
    if file.content is None:
        return "unreadable", []
    if text is None:
        return "not decodable", []
    if file.language not in (None, request.language):
        return "another language", []
    if digest[:_SEEN_BYTES] in seen:
        return DUPLICATE, []
    sha256 = digest.hex()
    if not _is_drawn(request, sha256):
        return "not drawn", []
    try:
        holes = list(of_language.cuts(text, request.seed, sha256, request.per_file))
    except Refused as refusal:
        return str(refusal), []
    prefix = f"{request.set}.{VERSION}/{request.seed}/{sha256[:_ID_DIGITS]}"
    origin = Origin(source.name, file.package, file.version, file.path, file.licence, sha256)
    samples = [
        Sample(
            id=f"{prefix}/{number}",
            set=request.set,
            kind=hole.kind,
            left=text[: hole.start],
            middle=text[hole.start : hole.end],
            right=text[hole.end :],
            language=request.language,
            origin=origin,
        )
        for number, hole in enumerate(holes)
    ]
    return KEPT if samples else "no hole", samples


def _is_drawn(request: Request, sha256: str) -> bool:
    key = f"share/{request.seed}/{sha256}".encode()
    return int.from_bytes(hashlib.sha256(key).digest()[:8], "big") < request.share * 2**64
