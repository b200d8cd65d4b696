"""``fim-server bench``: its subjects, each a module of :mod:`fim_server.bench`."""

from __future__ import annotations

import argparse
from typing import Any


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
    if wanted:
        from fim_server.bench import engine as bench
        from fim_server.bench import masks as masks_bench
        from fim_server.bench import runtimes as runtime_bench
        from fim_server.bench import scaling
        from fim_server.bench import server as server_bench

        bench.add_arguments(engine)
        scaling.add_arguments(engine)
        engine.set_defaults(run=run_bench_engine)
        masks_bench.add_arguments(masks)
        masks.set_defaults(run=masks_bench.run)
        server_bench.add_arguments(server)
        server.set_defaults(run=server_bench.run)
        runtime_bench.add_arguments(runtimes)
        runtimes.set_defaults(run=runtime_bench.run)


def run_bench_engine(arguments: argparse.Namespace) -> int:
    """Run ``fim-server bench engine``, or its part that grows texts; returns the exit status."""
    from fim_server.bench import engine as bench
    from fim_server.bench import scaling

    return scaling.run(arguments) if arguments.scaling or arguments.plot else bench.run_engine_benchmark(arguments)
