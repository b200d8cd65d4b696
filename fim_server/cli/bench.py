"""``fim-server bench``: its subjects, each a module of :mod:`fim_server.bench`."""

from __future__ import annotations

import argparse
from typing import Any

from fim_server.cli.arguments import bind


def add_bench(commands: Any, wanted: bool) -> None:
    """Add the command, with the options of its subjects where it is ``wanted``: they load what is measured."""
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
    runtimes = subjects.add_parser(
        "runtimes",
        help="the model in several runtimes and precisions",
        description="Measure what a model's runtime and precision cost and gain on the CPU.",
    )
    compare = subjects.add_parser(
        "compare",
        help="two versions, by what their benchmarks printed",
        description="Compare two versions of the program by what their benchmarks printed with --json, in runs that "
        "took turns.",
    )
    if wanted:
        from fim_server.bench import compare as comparison
        from fim_server.bench import engine as engine_bench
        from fim_server.bench import masks as masks_bench
        from fim_server.bench import runtimes as runtimes_bench
        from fim_server.bench import server as server_bench

        engine_bench.add_arguments(engine)
        bind(engine, engine_bench.EngineOptions, engine_bench.run)
        masks_bench.add_arguments(masks)
        bind(masks, masks_bench.MasksOptions, masks_bench.run)
        server_bench.add_arguments(server)
        bind(server, server_bench.ServerOptions, server_bench.run)
        runtimes_bench.add_arguments(runtimes)
        bind(runtimes, runtimes_bench.RuntimesOptions, runtimes_bench.run)
        comparison.add_arguments(compare)
        bind(compare, comparison.CompareOptions, comparison.run)
