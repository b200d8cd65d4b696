"""``./dev bench runtimes``: costs and gains of a model's runtime and precision, on one CPU thread and more.

Each variant works like the server's decoding loop. It reads a prompt in chunks, then takes one token at a time and
hands over the whole row of logits for a grammar's mask. It also takes tokens back and reads a few others, as after a
keystroke. Variants take turns within every repeat and meet the same load: compare the figures of one run, not those of
two.

onnxruntime is measured where it is installed and a folder with an export is named. The builder of onnxruntime-genai
(which needs the packages ``onnx`` and ``onnx-ir``) makes one from a model folder::

    python -m onnxruntime_genai.models.builder -i MODEL -o FOLDER -p int4 -e cpu -c CACHE --extra_options \\
        prune_lm_head=true

``-p`` is ``fp32``, ``int8`` or ``int4``; with ``prune_lm_head`` a chunk of the prompt has one row of logits, not one a
token. GGUF files (``fim-server models gguf`` writes them) are measured where the extra `gguf` is installed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.options import add_json, positive_count, positive_counts
from benchmarks.processes import Clock, clock_of, timed
from benchmarks.report import DONE, kind_of_time, machine, progress_for, publish, setting_lines, shown
from benchmarks.server import played_editor
from fim_server.errors import BenchError, LimitError, first_line
from fim_server.language.limited_files import read_limited
from fim_server.models.backend import LLAMA_CPP, PREFILL_CHUNK
from fim_server.models.gguf import library
from fim_server.models.gguf.backend import GgufBackend
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.onnx import backend as onnx_backend
from fim_server.models.onnx.backend import OnnxBackend
from fim_server.models.pytorch.devices import require_torch
from fim_server.models.source import expanded, locate
from fim_server.text.terminal import Progress, Table

if TYPE_CHECKING:
    from fim_server.models.backend import Backend, Cache

TORCH_PRECISIONS = ("fp32", "bf16", "int8-weights")
"""Torch variants: int8-weights multiplies bf16 activations."""

REFERENCE = "fp32"
"""The precision of torch that others are compared with."""

KEYSTROKE_TOKENS = (2, 3, 4)
"""Tokens that are taken back, and others read in their place, after a keystroke."""

KEYSTROKES = 7
"""Keystrokes of each kind in a round."""

MOST_TOKENS = 1_000_000
MOST_THREADS = 1024

SETTLING = 0.05
"""Seconds between two variants: threads of onnxruntime spin on for a moment, and would take another one's time."""

DEFAULT_TEXT = Path(played_editor.__file__)

ONNX = onnx_backend.PACKAGE


@dataclass(frozen=True)
class RuntimesOptions:
    """Options of ``./dev bench runtimes``."""

    model: str | None
    onnx: list[str]
    gguf: list[str]
    torch: tuple[str, ...]
    threads: tuple[int, ...]
    text: str | None
    prompt: int
    steps: int
    repeats: int
    cpu_time: bool
    json: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``./dev bench runtimes``."""
    parser.epilog = (
        "Exit status: 0 measured, 2 bad input. Figures are medians. prefill: the whole prompt in chunks; decode: one "
        "token a step, with the logits of each; keystroke: 2 to 4 tokens after as many were taken back; nats: mean "
        "loss of the prompt's own text, read token by token; same: share of its places where the likeliest token is "
        "that of torch fp32. A folder for --onnx is made by: python -m onnxruntime_genai.models.builder -i MODEL "
        "-o FOLDER -p int4 -e cpu -c CACHE --extra_options prune_lm_head=true (or -p int8, -p fp32; it needs onnx and "
        "onnx-ir)."
    )
    parser.add_argument("--model", metavar="MODEL", help="a local model folder (default: the embedded model)")
    parser.add_argument(
        "--onnx",
        action="append",
        default=[],
        metavar="DIR",
        help="the same model exported for onnxruntime; may be given several times",
    )
    parser.add_argument(
        "--gguf",
        action="append",
        default=[],
        metavar="FILE",
        help="the same model as a GGUF file; may be given several times",
    )
    parser.add_argument(
        "--torch",
        type=torch_precisions_named,
        default=TORCH_PRECISIONS,
        metavar="PRECISION,...",
        help=f"precisions of torch (default: {','.join(TORCH_PRECISIONS)}); {REFERENCE}, with which all others are "
        "compared, is always measured",
    )
    parser.add_argument(
        "--threads", type=thread_counts, default=(1, 2), metavar="N,N,...", help="numbers of threads (default: 1,2)"
    )
    parser.add_argument("--text", metavar="FILE", help="Python code to read (default: a module of fim-server)")
    parser.add_argument(
        "--prompt", type=count, default=880, metavar="N", help="tokens of the prompt at most (default: 880)"
    )
    parser.add_argument("--steps", type=count, default=128, metavar="N", help="tokens decoded after it (default: 128)")
    parser.add_argument("--repeats", type=count, default=5, metavar="N", help="rounds of all variants (default: 5)")
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="count the processor time of this process, all its threads, instead of the clock's, where the machine "
        "has other work",
    )
    add_json(parser)


def count(text: str) -> int:
    """An argument that is a number above 0, within reason."""
    number = positive_count(text)
    if number > MOST_TOKENS:
        raise argparse.ArgumentTypeError(f"{text} is more than {MOST_TOKENS:,}")
    return number


def torch_precisions_named(text: str) -> tuple[str, ...]:
    """Precisions of torch with commas between them, and the reference's."""
    named = {REFERENCE, *text.split(",")}
    if not named <= set(TORCH_PRECISIONS):
        raise argparse.ArgumentTypeError(f"there are {', '.join(TORCH_PRECISIONS)}")
    return tuple(precision for precision in TORCH_PRECISIONS if precision in named)


def thread_counts(text: str) -> tuple[int, ...]:
    """Different numbers above 0 with commas between them."""
    found = tuple(dict.fromkeys(positive_counts(text)))
    if max(found) > MOST_THREADS:
        raise argparse.ArgumentTypeError(f"{max(found)} threads are more than {MOST_THREADS:,}")
    return found


def run(options: RuntimesOptions) -> int:
    """Measure, and print a table or JSON; returns the exit status.

    Raises:
        BenchError: The model, the text or an exported folder cannot be read or used.
        ModelError: The model cannot be loaded, or torch is not installed.
    """
    require_torch("bench runtimes")
    from benchmarks.models.torch_precisions import threads_restored

    with progress_for(options.json) as progress, threads_restored():
        report = measure(options, progress)
    publish(report, options.json)
    return DONE


# --- runtimes -----------------------------------------------------------------------------------------------------


class Runtime:
    """A backend that reads one text.

    Attributes:
        size: Bytes of its weights as they are stored in this precision.
    """

    def __init__(self, backend: Backend, size: int, room: int | None = None) -> None:
        """``room``: tokens that are read of one text; None: as many as the window has."""
        self._backend, self._room = backend, room
        self._cache: Cache = backend.new_cache(room)
        self.size = size

    def begin(self) -> None:
        """Start again with nothing read."""
        self._cache = self._backend.new_cache(self._room)

    def forward(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Read on; returns the logits [V] after the last token."""
        return np.asarray(self._backend.forward(tokens, self._cache))

    def rewind(self, n_tokens: int) -> None:
        """Take back the last tokens."""
        self._cache.crop(-n_tokens)


def export_name(folder: Path) -> str:
    """Return the name of an exported model's row: its folder, or the model's whose `onnx` it is."""
    path = folder.resolve()
    return path.parent.name if path.name == onnx_backend.EXPORT_FOLDER else path.name


def onnx_size(folder: Path) -> int:
    """Bytes of an exported model's graph and weights."""
    return sum(path.stat().st_size for path in folder.glob("*.onnx*"))


def check_onnx(folder: Path, model: FimModel, length: int) -> None:
    """Check that a folder can be measured beside a model, on ``length`` tokens; its window may be the shorter one.

    Raises:
        BenchError: It is no exported folder, another model's, or the package is not installed.
    """
    try:
        config = json.loads((folder / "genai_config.json").read_text(encoding="utf-8"))
        vocabulary, window = int(config["model"]["vocab_size"]), int(config["model"]["context_length"])
    except (OSError, ValueError, KeyError, TypeError):
        raise BenchError(f"{folder}: no folder with an export (no genai_config.json that can be read)") from None
    if vocabulary != model.size:
        raise BenchError(f"{folder}: another model's export ({vocabulary} tokens)")
    if length > window:
        raise BenchError(f"{folder}: {length} tokens of prompt and steps are more than its window, {window}")
    if not onnx_backend.is_installed():
        raise BenchError("--onnx needs the package onnxruntime, which is not installed")


def check_gguf(file: Path) -> None:
    """Check that a GGUF file can be measured.

    Raises:
        BenchError: It is not there, or llama.cpp is not installed.
    """
    if not file.is_file():
        raise BenchError(f"{file}: no such file")
    if not library.is_installed():
        raise BenchError(f"--gguf needs llama.cpp: {library.HOW_TO_INSTALL}")


# --- the report ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """The figures of a variant on a number of threads; None where it could not be measured.

    Attributes:
        prefill_ms: Milliseconds of the prompt.
        decode_ms: Milliseconds of a step.
        decode_tokens_per_second: Steps of that length in a second.
        keystroke_ms: Milliseconds to read a few tokens in place of others.
        load_ms: Milliseconds to load it, with the files in memory.
        megabytes: Stored weights.
        nats: Mean loss of a token of the text.
        same: Share of the places where its likeliest token is torch fp32's.
        note: Why there are no figures.
    """

    runtime: str
    precision: str
    threads: int
    prefill_ms: float | None = None
    decode_ms: float | None = None
    decode_tokens_per_second: float | None = None
    keystroke_ms: float | None = None
    load_ms: float | None = None
    megabytes: float | None = None
    nats: float | None = None
    same: float | None = None
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        """A line of the table."""
        figures = (self.prefill_ms, self.decode_ms, self.decode_tokens_per_second, self.keystroke_ms, self.load_ms)
        nats = "-" if self.nats is None else f"{self.nats:.4f}"
        same = "-" if self.same is None else f"{self.same:.1%}"
        return (
            *(self.runtime, self.precision, str(self.threads)),
            *map(shown, (*figures, self.megabytes)),
            *(nats, same, self.note),
        )


HEADER = (
    *("runtime", "precision", "threads", "prefill ms", "decode ms", "decode tok/s", "keystroke ms", "load ms", "MB"),
    *("nats", "same", ""),
)


@dataclass
class Report:
    """Report: settings and figures."""

    setting: dict[str, str]
    rows: list[Row] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        return asdict(self)

    def parts(self) -> Iterator[str | Table]:
        """The report as lines of text and a table."""
        yield from setting_lines(self.setting)
        yield ""
        yield Table(HEADER, [row.cells() for row in self.rows], numbers=range(2, 11))


# --- measuring ----------------------------------------------------------------------------------------------------


@dataclass
class Variant:
    """A runtime in a precision on a number of threads, and the seconds it took; a failure is noted, and ends it."""

    name: str
    precision: str
    threads: int
    folder: Path | None = None
    """Folder from which onnxruntime loads, or the file that llama.cpp loads; None for torch."""
    runtime: Runtime | None = None
    load: float = 0.0
    prefill: list[float] = field(default_factory=list)
    decode: list[float] = field(default_factory=list)
    keystroke: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    choices: list[int] = field(default_factory=list)
    note: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.precision}, threads: {self.threads}"

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Work of this variant on its number of threads; nothing is done once it has failed."""
        from benchmarks.models import torch_precisions

        torch_precisions.set_threads(self.threads)
        try:
            yield
        except Exception as error:  # noqa: BLE001  # each library raises its own; the others can still be measured
            self.note = self.note or first_line(error)

    def started(self) -> Runtime:
        """Its runtime, with nothing read.

        Raises:
            ValueError: It failed before.
        """
        if self.runtime is None or self.note:
            raise ValueError(self.note)
        self.runtime.begin()
        return self.runtime

    def row(self, reference: Variant) -> Row:
        """Its figures; ``reference`` is the variant whose choices count as right."""
        row = Row(self.name, self.precision, self.threads, note=self.note)
        if self.runtime is None or self.note:
            return row
        step = float(np.median(self.decode))
        agreed = [mine == other for mine, other in zip(self.choices, reference.choices, strict=False)]
        return replace(
            row,
            prefill_ms=1e3 * float(np.median(self.prefill)),
            decode_ms=1e3 * step,
            decode_tokens_per_second=1 / step if step else None,
            keystroke_ms=1e3 * float(np.median(self.keystroke)),
            load_ms=1e3 * self.load,
            megabytes=self.runtime.size / 1e6,
            nats=float(np.mean(self.losses)),
            same=float(np.mean(agreed)) if agreed else None,
        )


def measure(options: RuntimesOptions, progress: Progress) -> Report:
    """Every variant on every number of threads.

    Raises:
        BenchError: As :func:`run`.
    """
    if options.model is not None and not expanded(options.model).is_dir():
        raise BenchError(f"{options.model}: no such model folder")
    folders = [expanded(given) for given in options.onnx]
    text = read_text(expanded(options.text) if options.text is not None else DEFAULT_TEXT)
    progress.say("loading the model")
    model = load_model(options.model, device="cpu", runtime="torch")
    prompt = prompt_tokens(model, text, options.prompt)
    length = len(prompt) + options.steps
    for folder in folders:
        check_onnx(folder, model, length)
    if length > model.window:
        raise BenchError(f"{length} tokens of prompt and steps are more than the model's window, {model.window}")
    files = [expanded(given) for given in options.gguf]
    for file in files:
        check_gguf(file)
    clock = clock_of(options.cpu_time)
    source = locate(options.model)
    variants = [
        Variant(name, precision, threads, folder)
        for threads in options.threads
        for name, precision, folder in (
            *(("torch", precision, None) for precision in options.torch),
            *((ONNX, export_name(folder), folder) for folder in folders),
            *((LLAMA_CPP, file.stem, file) for file in files),
        )
    ]
    for variant in variants:
        progress.say(f"loading {variant}")
        with variant.attempt():
            variant.runtime, variant.load = timed(clock, load, variant, source, length, model.size)
    for number in range(options.repeats + 1):
        for variant in variants:
            progress.say(f"{f'round {number} of {options.repeats}' if number else 'warming up'}: {variant}")
            with variant.attempt():
                replay(variant, prompt, options.steps, clock, record=number > 0)
    for variant in variants:
        progress.say(f"reading the text: {variant}")
        with variant.attempt():
            score(variant, prompt, model)
    references = {each.threads: each for each in variants if (each.name, each.precision) == ("torch", REFERENCE)}
    rows = [variant.row(references[variant.threads]) for variant in variants]
    return Report(setting(options, model, len(prompt)), rows)


def load(variant: Variant, source: str, length: int, size: int) -> Runtime:
    """Load what a variant measures, of a model with ``size`` tokens. Raises whatever its library raises."""
    if variant.name == LLAMA_CPP and variant.folder is not None:
        loaded = GgufBackend(variant.folder, variant.threads)
        if loaded.size != size:
            raise BenchError(f"another model's file ({loaded.size} tokens)")
        return Runtime(loaded, variant.folder.stat().st_size, length)
    if variant.folder is not None:
        return Runtime(OnnxBackend(variant.folder, variant.threads, length), onnx_size(variant.folder))
    from benchmarks.models import torch_precisions

    backend = torch_precisions.load_torch(source, variant.precision)
    return Runtime(backend, torch_precisions.stored_size(backend))


def replay(variant: Variant, prompt: Sequence[int], steps: int, clock: Clock, record: bool) -> None:
    """One round: prompt, steps with the likeliest token each, and keystrokes."""
    runtime = variant.started()
    time.sleep(SETTLING)
    chunks = [prompt[start : start + PREFILL_CHUNK] for start in range(0, len(prompt), PREFILL_CHUNK)]
    spent = [timed(clock, runtime.forward, chunk) for chunk in chunks]
    logits = spent[-1][0]
    decode: list[float] = []
    for _ in range(steps):
        logits, seconds = timed(clock, runtime.forward, [int(logits.argmax())])
        decode.append(seconds)
    keystrokes: list[float] = []
    for tokens in KEYSTROKE_TOKENS * KEYSTROKES:
        again = min(tokens, len(prompt))
        _, seconds = timed(clock, reread, runtime, prompt[:again])
        keystrokes.append(seconds)
    if record:
        variant.prefill.append(math.fsum(seconds for _, seconds in spent))
        variant.decode += decode
        variant.keystroke += keystrokes


def reread(runtime: Runtime, tokens: Sequence[int]) -> None:
    """Take back as many tokens as these, and read these."""
    runtime.rewind(len(tokens))
    runtime.forward(tokens)


def score(variant: Variant, prompt: Sequence[int], model: FimModel) -> None:
    """Read the prompt token by token, as decoding does, and note the loss of each token of the text."""
    runtime = variant.started()
    for token, target in itertools.pairwise(prompt):
        logits = runtime.forward([token]).astype(np.float64)
        if target not in model.format.control_ids:
            highest = logits.max()
            variant.losses.append(float(highest + np.log(np.exp(logits - highest).sum()) - logits[target]))
            variant.choices.append(int(logits.argmax()))


def read_text(path: Path) -> str:
    """A file's text.

    Raises:
        BenchError: It cannot be read.
    """
    try:
        return read_limited(path).decode().replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from error
    except LimitError as error:
        raise BenchError(f"{path}: {error}") from None
    except UnicodeDecodeError:
        raise BenchError(f"{path}: not a text in UTF-8") from None


def prompt_tokens(model: FimModel, text: str, most: int) -> list[int]:
    """A prompt in the model's FIM format, with the cursor in the middle of a text.

    Raises:
        BenchError: There is too little room or text for one.
    """
    half = len(text) // 2
    try:
        prompt = model.format.encode(text[:half], text[half:], most)
    except ValueError as error:
        raise BenchError(str(error)) from error
    if sum(token not in model.format.control_ids for token in prompt[1:]) < 1:
        raise BenchError("the prompt has no token of the text: give more text, or a longer prompt")
    return prompt


def setting(options: RuntimesOptions, model: FimModel, length: int) -> dict[str, str]:
    """The machine and the work, in words."""
    from benchmarks.models import torch_precisions

    libraries = [f"torch {torch_precisions.version()}"]
    optional = (*((ONNX,) if options.onnx else ()), *((library.PACKAGE,) if options.gguf else ()))
    for name in ("transformers", *optional):
        with suppress(PackageNotFoundError):
            libraries.append(f"{name} {version(name)}")
    text = Path(options.text) if options.text is not None else DEFAULT_TEXT
    weights = torch_precisions.parameter_count(model)
    return {
        "machine": machine(),
        "libraries": ", ".join(libraries),
        "model": f"{Path(model.name).name}, {weights / 1e6:.2f} M parameters",
        "work": f"{length} tokens of prompt from {text.name}, {options.steps} steps, {options.repeats} rounds",
        "time": kind_of_time(options.cpu_time),
    }
