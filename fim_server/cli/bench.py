"""``fim-server bench``: its subjects, each a module of :mod:`fim_server.bench`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from fim_server.cli.arguments import bind


def add_bench(commands: Any, argv: Sequence[str]) -> None:
    """Add the command, and the options of that subject alone which ``argv`` names: they load what is measured."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "bench", help="measure", description="Measure on this machine."
    )
    subjects = parser.add_subparsers(title="subjects", metavar="SUBJECT", required=True)
    engine = subjects.add_parser("engine", help="sessions, checks and masks", description="Measure the engine.")
    masks = subjects.add_parser(
        "masks",
        help="token masks along real files, beside other engines",
        description="Measure token masks along real files, with a model's vocabulary.",
    )
    server = subjects.add_parser(
        "server",
        help="the language server while somebody types",
        description="Measure the language server through the protocol, while code of real files is typed again.",
    )
    suggestions = subjects.add_parser(
        "suggestions",
        help="whether offers are what somebody was about to write",
        description="Type real lines again key by key through the language server protocol, and judge what is offered: "
        "whether there is an offer, its first lexeme and the whole line are right, and how many keystrokes somebody "
        "saves who accepts what is right. The rule that copies what followed the longest earlier match in the same "
        "file is judged beside it.",
    )
    soak = subjects.add_parser(
        "soak",
        help="the language server's memory over many keystrokes",
        description="Type in many files for long, and see whether the language server's memory stays.",
    )
    languages = subjects.add_parser(
        "languages",
        help="all languages side by side",
        description="Measure languages side by side, each on files of its own: opening, keys, checks, masks, plans, "
        "and files that are broken elsewhere.",
    )
    memory = subjects.add_parser(
        "memory",
        help="the memory of a project: speed, and how often it is right",
        description="Measure the memory of a project's text on real packages, without a server and without a model.",
    )
    runtimes = subjects.add_parser(
        "runtimes",
        help="the model in several runtimes and precisions",
        description="Measure what a model's runtime and precision cost and gain on the CPU.",
    )
    gpu = subjects.add_parser(
        "gpu",
        help="what the grammar takes of a token on a GPU",
        description="Measure what constraints take of a token where many rows are decoded on a GPU, beside other "
        "engines.",
    )
    compare = subjects.add_parser(
        "compare",
        help="two versions, by what their benchmarks printed",
        description="Compare two versions of the program by what their benchmarks printed with --json, in runs that "
        "took turns.",
    )
    match argv[:2]:
        case ["bench", "engine"]:
            from fim_server.bench import engine as engine_bench

            engine_bench.add_arguments(engine)
            bind(engine, engine_bench.EngineOptions, engine_bench.run)
        case ["bench", "masks"]:
            from fim_server.bench import masks as masks_bench

            masks_bench.add_arguments(masks)
            bind(masks, masks_bench.MasksOptions, masks_bench.run)
        case ["bench", "languages"]:
            from fim_server.bench import languages as languages_bench

            languages_bench.add_arguments(languages)
            bind(languages, languages_bench.LanguagesOptions, languages_bench.run)
        case ["bench", "server"]:
            from fim_server.bench import server as server_bench

            server_bench.add_arguments(server)
            bind(server, server_bench.ServerOptions, server_bench.run)
        case ["bench", "suggestions"]:
            from fim_server.bench.suggestions import command as suggestions_bench

            suggestions_bench.add_arguments(suggestions)
            bind(suggestions, suggestions_bench.SuggestionsOptions, suggestions_bench.run)
        case ["bench", "soak"]:
            from fim_server.bench import soak as soak_bench

            soak_bench.add_arguments(soak)
            bind(soak, soak_bench.SoakOptions, soak_bench.run)
        case ["bench", "memory"]:
            from fim_server.bench import memory as memory_bench

            memory_bench.add_arguments(memory)
            bind(memory, memory_bench.MemoryOptions, memory_bench.run)
        case ["bench", "runtimes"]:
            from fim_server.bench import runtimes as runtimes_bench

            runtimes_bench.add_arguments(runtimes)
            bind(runtimes, runtimes_bench.RuntimesOptions, runtimes_bench.run)
        case ["bench", "gpu"]:
            from fim_server.bench.gpu import command as gpu_bench

            gpu_bench.add_arguments(gpu)
            bind(gpu, gpu_bench.GpuOptions, gpu_bench.run)
        case ["bench", "compare"]:
            from fim_server.bench import compare as comparison

            comparison.add_arguments(compare)
            bind(compare, comparison.CompareOptions, comparison.run)
