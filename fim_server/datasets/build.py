"""Build of a set: from a stream of files to a file of samples, with a journal from which a killed build goes on.

A build keeps two files beside its output: ``FILE.part`` has the samples so far, and ``FILE.journal`` has a record of
each source file, written after its samples. At the end it writes ``FILE.manifest.json``.

A build that goes on reads the journal and cuts ``FILE.part`` back to the last record. Then it reads the recorded files
again and compares their digests. So the result equals that of an uninterrupted build to the byte, or the build refuses
because the source has changed.
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
"""Outcomes of a file; a record of the journal has the index."""

_ID_DIGITS = 16
"""Hexadecimal digits of a file's SHA-256 in the ids of its samples: 64 bits, so that ids of a million files differ."""

_SEEN_BYTES = 16
"""Bytes of a file's SHA-256 that a build keeps to find duplicates."""


@dataclass(frozen=True)
class Request:
    """Request for a set: everything that its bytes depend on, besides the source's contents.

    Attributes:
        set: The construction.
        source: The source, as the user names it.
        seed: Seed of all draws.
        per_file: Most holes of a file.
        share: Share of the files, drawn by their contents and the seed, so that every set has the same files.
        limit: Most samples; such a build is the beginning of the build without a limit.
        language: Language of the files.
        language_version: Version of the language; None for the newest that its parser here knows.
        judge: Command of another parser than the package's.
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
        """Return the manifest's arguments, without defaults that older sets do not have."""
        unsaid = {"language": PYTHON, "language_version": None, "judge": None}
        return {name: value for name, value in asdict(self).items() if name not in unsaid or value != unsaid[name]}


@dataclass
class Counts:
    """Progress of a build."""

    files: int = 0
    samples: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: str, samples: int) -> None:
        self.files += 1
        self.samples += samples
        self.outcomes[outcome] += 1

    def to_json(self) -> dict[str, Any]:
        return {
            "files": self.files,
            "kept": self.outcomes[KEPT],
            "duplicates": self.outcomes[DUPLICATE],
            "left_out": {name: self.outcomes[name] for name in OUTCOMES[2:] if self.outcomes[name]},
            "samples": self.samples,
        }


def build(request: Request, out: Path, progress: Callable[[Counts], None] = lambda counts: None) -> dict[str, Any]:
    """Build a set, or go on building it, and return its manifest.

    Nothing is done if ``out`` exists and its manifest names this request.

    Args:
        request: The set.
        out: The file of samples.
        progress: Called after every file.

    Raises:
        DatasetError: The source cannot be read or has changed, or the set is not for the language. Or ``out`` is
            another set, is being built by another process, or cannot be written.
        LanguageError: There is no such language.
        JudgeError: The language's own parser is not there.
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
    """Return the SHA-256 of a file's text in UTF-8, or of its marked bytes where it is no text."""
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
    """Return the outcome of a file, and its samples."""
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
