"""Recommendation of a model of the catalogue for this machine: measured if it is installed, else estimated.

Estimates compare with a measured model. Reading a prompt is arithmetic, whose time grows with the parameters. Writing a
token reads all weights once, so its time grows with their bytes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fim_server.errors import ModelError
from fim_server.evaluation.model_check.known import Here, Kept, known_speeds
from fim_server.evaluation.model_check.speed import READ_TOKENS, WRITTEN_TOKENS, Speed, measure_speed
from fim_server.models.gguf import library
from fim_server.models.gguf.header import count_parameters
from fim_server.models.pytorch.devices import CPU, best_device
from fim_server.models.resources.room import bytes_of
from fim_server.models.resources.threads import cores, free_cores, usual_threads
from fim_server.models.source import EMBEDDED_NAME, parts_of
from fim_server.models.store.catalogue import BITS, DEFAULT_NAME, Entry, catalogue
from fim_server.system.process import available_bytes

LINE_MS = 300.0
"""Most milliseconds for a line, so that a suggestion seems to come at once: the budget that an editor publishes."""

MEMORY_PER_BYTE, MEMORY_BESIDES = 1.2, 300_000_000
"""Memory that a model takes: bytes for each byte of weights, and those of its caches and of the program."""

TWIN, TWIN_PRECISION = f"{DEFAULT_NAME} on llama.cpp", "Q8_0"
"""Name and precision of the default model as a GGUF file, measured since GGUF files are best compared with another."""

EMBEDDED_PARAMETERS = 7_000_000


@dataclass(frozen=True)
class Machine:
    """Means of this machine.

    Attributes:
        memory: Bytes of memory that are free; None: unknown.
        gpu: Name of a GPU for torch; None for none.
        gpu_runs_gguf: Whether the installed llama.cpp computes on a GPU.
        load: Processes that want a core, of the last minute; None: unknown.
    """

    cores: int
    memory: int | None
    gpu: str | None
    gpu_runs_gguf: bool
    load: float | None = None

    @property
    def is_busy(self) -> bool:
        """Tell whether other programs may have slowed a measurement."""
        return self.load is not None and self.load > self.cores


@dataclass(frozen=True)
class Measured:
    """Model whose speed on this machine is known.

    Attributes:
        weights: Their bytes.
        is_gguf: Whether it runs on llama.cpp.
    """

    name: str
    parameters: int
    weights: int
    speed: Kept
    is_gguf: bool


@dataclass(frozen=True)
class Candidate:
    """Model of the catalogue with its speed here.

    Attributes:
        speed: Measured, or estimated; None: no model is measured.
        reference: The measured model of an estimate; None: measured itself.
        memory: Bytes of memory that it takes.
        fits: Whether that much is free.
    """

    entry: Entry
    speed: Kept | None
    reference: str | None
    memory: int
    fits: bool

    @property
    def is_fast(self) -> bool:
        return self.speed is not None and self.speed.line_ms <= LINE_MS


@dataclass(frozen=True)
class Recommendation:
    """All candidates and the best.

    Attributes:
        name: The recommended model; None where none is fast enough and fits.
        reason: In words.
    """

    machine: Machine
    candidates: list[Candidate]
    name: str | None
    reason: str


def this_machine() -> Machine:
    """Return this machine's means."""
    try:
        device = best_device()
    except ModelError:
        device = CPU
    offloads = library.is_installed() and offload()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return Machine(cores(), available_bytes(), None if device == CPU else device, offloads, load)


def offload() -> bool:
    """Return whether llama.cpp has a GPU; False where its library cannot be used."""
    try:
        return bool(library.load_library().llama_supports_gpu_offload())
    except ModelError:
        return False


def to_measure(here: Iterable[Here]) -> list[Here]:
    """Return the installed models that tell the speed of others; the embedded one only if there is no other."""
    listed = list(here)
    known = [one for one in listed if one.name in catalogue()]
    return known or [one for one in listed if one.name == EMBEDDED_NAME]


def twin_of(here: Iterable[Here]) -> Here | None:
    """Return the default model as a GGUF file that is to be written; None where it or llama.cpp is not here."""
    default = next((one for one in here if one.name == DEFAULT_NAME), None)
    if default is None or not library.is_installed():
        return None
    return Here(TWIN, default.place, default.size)


def measure_twin(twin: Here) -> Speed:
    """Write the default model as a GGUF file, and return its speed. Raises ModelError."""
    from fim_server.models.gguf.load import load_gguf
    from fim_server.models.gguf.writing import write_gguf

    with tempfile.TemporaryDirectory(prefix="fim-server-") as folder:
        file = Path(folder) / f"{DEFAULT_NAME}.gguf"
        write_gguf(twin.place, file, TWIN_PRECISION.lower())
        return measure_speed(load_gguf(file, free_cores(usual_threads())))


def measured_models(here: Sequence[Here]) -> list[Measured]:
    """Return the models whose speed is known and whose size can be told."""
    twin = twin_of(here)
    listed = [*here, *([] if twin is None else [twin])]
    speeds = known_speeds(listed)
    found = [measured(one, speeds[one.name]) for one in listed if one.name in speeds]
    return [one for one in found if one is not None]


def measured(one: Here, speed: Kept) -> Measured | None:
    """Return a measured model with its size; None where the size is unknown."""
    entry = catalogue().get(one.name)
    if entry is not None:
        return Measured(one.name, entry.parameters, one.size if entry.is_file else entry.weights, speed, entry.is_file)
    if one.name == TWIN:
        parameters = catalogue()[DEFAULT_NAME].parameters
        return Measured(one.name, parameters, round(parameters * BITS[TWIN_PRECISION] / 8), speed, True)
    if one.name == EMBEDDED_NAME:
        export = one.place / "onnx"
        weights = bytes_of(export) if export.is_dir() else one.size
        return Measured(one.name, EMBEDDED_PARAMETERS, weights, speed, False)
    if one.place.is_file() and len(parts_of(one.place)) == 1:
        try:
            return Measured(one.name, count_parameters(one.place), one.size, speed, True)
        except ModelError:
            return None
    return None


def reference_for(entry: Entry, known: Sequence[Measured]) -> Measured | None:
    """Return the measured model that an entry is compared with: the largest of its runtime, else the largest."""
    return max(known, key=lambda one: (one.is_gguf == entry.is_file, one.weights), default=None)


def estimated(entry: Entry, reference: Measured) -> Kept:
    """Return the speed of a model that is not here, by its size against a measured one's."""
    read = reference.speed.read * reference.parameters / entry.parameters
    written = reference.speed.written * reference.weights / entry.weights
    return Kept(read, written, 1000 * (READ_TOKENS / read + WRITTEN_TOKENS / written))


def candidate(entry: Entry, known: Sequence[Measured], machine: Machine) -> Candidate:
    memory = round(MEMORY_PER_BYTE * entry.weights) + MEMORY_BESIDES
    fits = machine.memory is None or memory <= machine.memory
    own = next((one for one in known if one.name == entry.name), None)
    if own is not None:
        return Candidate(entry, own.speed, None, memory, fits)
    reference = reference_for(entry, known)
    if reference is None:
        return Candidate(entry, None, None, memory, fits)
    return Candidate(entry, estimated(entry, reference), reference.name, memory, fits)


def recommend(here: Sequence[Here], machine: Machine) -> Recommendation:
    """Recommend the largest model with an open licence that fits and writes a line in time.

    It measures nothing: speeds are those that are known.
    """
    known = measured_models(here)
    listed = [candidate(entry, known, machine) for entry in catalogue().values()]
    able = [one for one in listed if one.fits and one.entry.open and one.speed is not None]
    fast = [one for one in able if one.is_fast]
    if fast:
        best = max(fast, key=lambda one: one.entry.parameters)
        return Recommendation(machine, listed, best.entry.name, f"the largest that writes a line in {LINE_MS:.0f} ms")
    if not able:
        return Recommendation(machine, listed, None, "no model with an open licence fits, or none is measured")
    least = min(able, key=lambda one: one.speed.line_ms if one.speed else 0.0)
    assert least.speed is not None
    closest = f"{least.entry.name} comes closest, with {least.speed.line_ms:.0f} ms"
    return Recommendation(machine, listed, None, f"none that fits writes a line in {LINE_MS:.0f} ms; {closest}")
