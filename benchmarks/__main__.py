"""``./dev bench SUBJECT``: run one benchmark."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from fim_server.cli.arguments import Parser, bind
from fim_server.cli.program import main


@dataclass(frozen=True)
class Subject:
    """A benchmark: a module with ``add_arguments``, an options class and ``run``."""

    module: str
    options: str
    help: str
    description: str


SUBJECTS = {
    "engine": Subject("engine.command", "EngineOptions", "sessions, checks and masks", "Measure the engine."),
    "masks": Subject(
        "engine.masks",
        "MasksOptions",
        "token masks along real files, beside other engines",
        "Measure token masks along real files, with a model's vocabulary.",
    ),
    "server": Subject(
        "server.command",
        "ServerOptions",
        "the language server while a user types",
        "Measure the language server through the protocol, while code of real files is typed again.",
    ),
    "start": Subject(
        "server.start",
        "StartOptions",
        "the start of the server and of short commands",
        "Measure the time until the server answers and is ready, and that of two short commands.",
    ),
    "suggestions": Subject(
        "suggestions.command",
        "SuggestionsOptions",
        "correctness of suggestions on real lines",
        "Type real lines again key by key through the language server protocol, and judge the suggestions: whether "
        "there is one, its first lexeme and the whole line are right, and how many keystrokes a user saves who accepts "
        "the right ones. A rule that copies the text after the longest earlier match in the same file is judged beside "
        "them.",
    ),
    "next-edits": Subject(
        "next_edits.command",
        "NextEditsOptions",
        "next edits in replayed releases",
        "Replay the edits between releases of projects, and judge the next edits that the server proposes after each.",
    ),
    "resolve": Subject(
        "suggestions.resolving",
        "ResolveOptions",
        "suggestions that the language's checker refuses",
        "Count the suggestions in which the language's checker has findings, and what hiding them changes.",
    ),
    "soak": Subject(
        "server.soak",
        "SoakOptions",
        "the language server's memory over many keystrokes",
        "Type in many files for long, and see whether the language server's memory grows.",
    ),
    "languages": Subject(
        "engine.languages",
        "LanguagesOptions",
        "all languages side by side",
        "Measure languages side by side, each on files of its own: opening, keys, checks, masks, plans, and files that "
        "are broken elsewhere.",
    ),
    "broken": Subject(
        "engine.broken",
        "BrokenOptions",
        "true middles in files that are broken elsewhere",
        "Break files far from a hole, and count the true middles that are refused there.",
    ),
    "memory": Subject(
        "index.command",
        "MemoryOptions",
        "the project index: speed and accuracy",
        "Measure the index of a project's text on real packages, without a server and without a model.",
    ),
    "runtimes": Subject(
        "models.runtimes",
        "RuntimesOptions",
        "the model in several runtimes and precisions",
        "Measure what a model's runtime and precision cost and gain on the CPU.",
    ),
    "gpu": Subject(
        "gpu.command",
        "GpuOptions",
        "the constraint's share of a token on a GPU",
        "Measure what constraints take of a token where many rows are decoded on a GPU, beside other engines.",
    ),
    "compare": Subject(
        "compare",
        "CompareOptions",
        "two versions, by what their benchmarks printed",
        "Compare two versions of the program by what their benchmarks printed with --json, in runs that took turns.",
    ),
}
"""Benchmarks by the name that the command line gives them."""


def build_parser(argv: Sequence[str]) -> Parser:
    """Build the parser, with the options of the benchmark alone that ``argv`` names: they load what is measured."""
    parser = Parser(prog="./dev bench", description="Measure on this machine.")
    subjects = parser.add_subparsers(title="subjects", metavar="SUBJECT", required=True)
    for name, subject in SUBJECTS.items():
        own = subjects.add_parser(name, help=subject.help, description=subject.description)
        if argv[:1] == [name]:
            module = importlib.import_module(f"benchmarks.{subject.module}")
            module.add_arguments(own)
            bind(own, getattr(module, subject.options), module.run)
    return parser


def run(argv: Sequence[str]) -> int:
    """Run one benchmark, and return the exit status."""
    return main(argv, build_parser)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
