"""Shared parts of this folder's recipes: the command line, folders as projects, and the end of the process.

A recipe is a module that is run by itself and prints numbers fitted to or measured on lines of packages.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from benchmarks.options import positive_count
from benchmarks.suggestions.lines import draw_lines
from benchmarks.suggestions.projects import Project as Sources
from benchmarks.suggestions.projects import open_folder
from benchmarks.suggestions.suggesting import written
from fim_server.decoding.options import DecodeOptions
from fim_server.errors import FimServerError
from fim_server.models.backend import LEAST_PROMPT_TOKENS
from fim_server.suggest.sources.project import Project

BAD_INPUT = 2

PROMPT_TOKENS = 384
"""The longest prompt where nothing else is said, so that texts do not depend on how fast the machine is."""


def command_line(
    description: str, drawn: str, what: str, count: int, seed: int, folders: str = "+"
) -> argparse.ArgumentParser:
    """The options of every recipe: folders, how much of each is drawn, and the model.

    ``drawn``: the option that says how much, ``count`` of ``what`` where nothing is said. ``folders``: how many there
    may be.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", nargs=folders, help="a package's folder")
    parser.add_argument(
        drawn,
        type=positive_count,
        metavar="N",
        default=count,
        help=f"{what} each folder (default: {count})",
        dest="drawn",
    )
    parser.add_argument("--seed", type=int, default=seed, help=f"of what is drawn (default: {seed})")
    parser.add_argument("--model", help="a model folder, hub name, smollm2 or embedded")
    return parser


def prompt_length(text: str) -> int:
    """An argument that is a number of tokens which every format's prompt fits into."""
    tokens = positive_count(text)
    if tokens < LEAST_PROMPT_TOKENS:
        raise argparse.ArgumentTypeError(f"{text!r} is less than {LEAST_PROMPT_TOKENS}")
    return tokens


def add_prompt_tokens(parser: argparse.ArgumentParser) -> None:
    """Add the option of those whose model reads prompts."""
    parser.add_argument(
        "--prompt-tokens", type=prompt_length, default=PROMPT_TOKENS, help=f"longest prompt (default: {PROMPT_TOKENS})"
    )


def options_of(prompt_tokens: int, most_tokens: int, **more: bool) -> DecodeOptions:
    """Return the server's decoding options for ``most_tokens`` after a prompt of such a length, with ``more``."""
    return DecodeOptions(
        max_new_tokens=most_tokens,
        max_prompt_tokens=prompt_tokens,
        no_comments=True,
        stop_repetition=True,
        **more,  # type: ignore[arg-type]  # options that are switched on
    )


def drawn_of(folders: Sequence[str], drawn: int, seed: int, tell: Callable[[], str]) -> Iterator[Sources]:
    """Each folder with so many lines drawn of it; what ``tell`` says is printed to standard error after each."""
    for folder in folders:
        sources = open_folder(folder)
        draw_lines(sources, drawn, seed)
        yield sources
        print(f"{folder}: {tell()}", file=sys.stderr)


@contextmanager
def remembered(sources: Sources) -> Iterator[tuple[Path, Project]]:
    """A project's files on the disk, without those that lines are drawn from, and a memory that has read them."""
    with tempfile.TemporaryDirectory(prefix="fim-recipe-") as made:
        root = written(sources, made)
        project = Project()
        project.read([root.as_uri()], dict.fromkeys(sources.language.suffixes, sources.language.name))
        project.memory.settle()
        yield root, project
        project.close()


def end_with(main: Callable[[], int]) -> NoReturn:
    """Run a recipe, and end the process with its status: 2, with one line, where it cannot use what it was given."""
    try:
        status = main()
    except FimServerError as error:
        print(error, file=sys.stderr, flush=True)
        status = BAD_INPUT
    sys.stdout.flush()
    os._exit(status)  # threads of the model's runtime need not be waited for
