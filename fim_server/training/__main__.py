"""`python -m fim_server.training`: each step of the recipe is a subcommand; `all` runs them."""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from fim_server.errors import TrainingError
from fim_server.training.corpus import (
    HELD_OUT_FILE,
    SOURCES_FILE,
    TRAIN_FILE,
    CollectLimits,
    Package,
    read_corpus,
    read_evaluation_texts,
    read_folder,
    read_installed,
    read_standard_library,
    read_wheel,
    write_corpus,
)

STANDARD_LIBRARY = "python-standard-library"
# Held out by default: the evaluation cuts its holes in the standard library.
HELD_OUT = (
    *(STANDARD_LIBRARY, "flask", "httpx", "marshmallow", "toolz"),
    *("bandit", "cattrs", "falcon", "httpie", "huey", "lifelines", "mesa", "nibabel", "peewee", "pypdf", "structlog"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one step; return 0, or 2 after one line on standard error for bad input."""
    options = _parser().parse_args(arguments)
    try:
        for run in options.runs:
            run(options)
    except (TrainingError, OSError) as error:
        print(f"fim_server.training: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fim_server.training", description="Train the embedded FIM model.")
    commands = parser.add_subparsers(required=True, metavar="STEP")

    def add(name: str, summary: str, *steps: object) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=summary, description=summary)
        command.add_argument(
            "--work",
            type=Path,
            default=Path(".work/training"),
            help="folder of corpus, tokenizer and checkpoints (default: %(default)s)",
        )
        command.set_defaults(runs=steps)
        return command

    _collect_options(add("collect", "gather permissively licensed Python", collect))
    _tokenizer_options(add("tokenizer", "learn the 16k byte-level BPE", learn_tokenizer))
    _train_options(add("train", "train by wall clock; checkpoints can be exported", run_training))
    _export_options(add("export", "write a checkpoint as a loadable folder", run_export))
    evaluation = add("evaluate", "held-out loss and holes filled greedily", run_evaluation)
    _export_options(evaluation)
    evaluation.add_argument("--holes", type=_positive, default=100, help="per kind and order")
    evaluation.add_argument("--threads", type=_positive, default=1, help="CPU threads")
    _onnx_options(add("onnx", "export a model folder for onnxruntime-genai, in int8", run_onnx_export))
    whole = add("all", "collect, tokenizer, train, export", collect, learn_tokenizer,
                run_training, run_export)  # fmt: skip
    for options in (_collect_options, _tokenizer_options, _train_options, _export_options):
        options(whole)
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not positive")
    return value


# --- collect ------------------------------------------------------------------------------


def _collect_options(command: argparse.ArgumentParser) -> None:
    limits = CollectLimits()
    command.add_argument("--wheels", type=Path, help="folder of downloaded wheels")
    command.add_argument("--installed", nargs="+", default=[], metavar="NAME", help="packages installed here")
    command.add_argument(
        "--folder",
        nargs=4,
        action="append",
        default=[],
        metavar=("PATH", "NAME", "VERSION", "SPDX"),
        help="a source tree whose licence you vouch for (repeatable)",
    )
    command.add_argument(
        "--hold-out",
        nargs="*",
        default=list(HELD_OUT),
        metavar="NAME",
        help="packages kept for evaluation (default: %(default)s)",
    )
    command.add_argument(
        "--exclude",
        nargs="+",
        type=Path,
        default=[],
        metavar="JSONL",
        help="infilling sets whose solutions must not be trained on",
    )
    command.add_argument("--no-standard-library", action="store_true", help="leave it out of both sides")
    command.add_argument("--package-bytes", type=_positive, default=limits.package_bytes)
    command.add_argument("--held-out-bytes", type=_positive, default=limits.held_out_bytes)
    command.add_argument("--processes", type=_positive, default=os.cpu_count() or 1, help="that read wheels")


def collect(options: argparse.Namespace) -> None:
    """Read, filter and write the corpus; packages without a permissive licence are named."""
    if options.wheels is not None and not options.wheels.is_dir():
        raise TrainingError(f"{options.wheels}: no such folder")
    packages: list[Package] = []
    wheels = sorted(options.wheels.glob("*.whl")) if options.wheels is not None else []
    limits = CollectLimits(options.package_bytes, options.held_out_bytes)
    with ProcessPoolExecutor(options.processes) as pool:
        reading = [pool.submit(read_wheel, wheel, limits.read_bytes) for wheel in wheels]
        for index, (wheel, package) in enumerate(zip(wheels, reading, strict=True), 1):
            _progress(f"reading {index}/{len(wheels)} {wheel.name}")
            try:
                packages.append(package.result())
            except TrainingError as error:
                _progress(f"left out: {error}")
    packages += [read_installed(name) for name in options.installed]
    packages += [read_folder(Path(path), name, version, licence) for path, name, version, licence in options.folder]
    if not options.no_standard_library:
        _progress("reading the standard library")
        packages.append(read_standard_library())
    names = [package.name for package in packages]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise TrainingError(f"given twice: {', '.join(repeated)}")
    _progress(f"removing near-duplicates from {len(packages)} packages")
    write_corpus(
        packages,
        frozenset(options.hold_out),
        read_evaluation_texts(options.exclude),
        limits,
        options.work / "corpus",
    )
    trained = read_corpus(options.work / "corpus" / TRAIN_FILE)
    size = sum(len(file.text.encode()) for file in trained)
    _progress(f"{len(trained)} files, {size / 1e6:.1f} MB, to train on; see {SOURCES_FILE}")


# --- tokenizer ----------------------------------------------------------------------------


def _tokenizer_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--vocabulary", type=_positive, default=16_384, help="tokens")


def learn_tokenizer(options: argparse.Namespace) -> None:
    """Learn merges from a half of the trained files."""
    from fim_server.training.tokenizer import train_tokenizer, write_tokenizer
    from fim_server.training.train import Shape

    texts = [file.text for file in read_corpus(options.work / "corpus" / TRAIN_FILE)]
    random.Random(0).shuffle(texts)
    _progress("learning the tokenizer")
    tokenizer = train_tokenizer(texts[: (len(texts) + 1) // 2], options.vocabulary)
    write_tokenizer(tokenizer, options.work / "model", Shape().context)
    _progress(f"{tokenizer.get_vocab_size()} tokens")


# --- train --------------------------------------------------------------------------------


def _train_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--minutes", type=float, default=70.0, help="wall clock, decay included")
    command.add_argument("--steps", type=_positive, help="a number of steps instead of a time")
    command.add_argument("--threads", type=_positive, default=1, help="CPU threads")
    command.add_argument("--layers", type=_positive, help="depth of the model")
    command.add_argument("--width", type=_positive, help="width of the model")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--eager", action="store_true", help="do without torch.compile")
    command.add_argument("--half", action="store_true", help="multiply in bfloat16: faster where the processor can")
    command.add_argument(
        "--hold",
        type=float,
        default=0.35,
        help="share of the time before rates decay to zero (default: %(default)s)",
    )
    command.add_argument("--long-from", type=float, default=0.6, help="share before windows of the whole context")
    command.add_argument("--full-from", type=float, default=0.7, help="share before the whole softmax")
    command.add_argument("--rate", type=float, help="factor of the rates (default: 1, with --resume 0.5)")
    command.add_argument("--batch", type=_positive, help="tokens a step")
    start = command.add_mutually_exclusive_group()
    start.add_argument("--resume", action="store_true", help="go on from the latest checkpoint")
    start.add_argument(
        "--start-from", type=Path, metavar="FOLDER", help="go on from an exported model and its tokenizer"
    )


def run_training(options: argparse.Namespace) -> None:
    """Train; at the end a checkpoint lies in `run/`."""
    # Read by the libraries when they load, which the imports below do.
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    import dataclasses

    import torch

    from fim_server.training.export import load_exported
    from fim_server.training.tokenizer import load_tokenizer, write_tokenizer
    from fim_server.training.train import Plan, Shape, load_checkpoint, train

    torch.set_num_threads(options.threads)
    texts = [file.text for file in read_corpus(options.work / "corpus" / TRAIN_FILE)]
    shape = Shape()
    shape = dataclasses.replace(shape, layers=options.layers or shape.layers, width=options.width or shape.width)
    if options.minutes <= 0:
        raise TrainingError(f"--minutes {options.minutes}: not positive")
    plan = Plan(
        seconds=60 * options.minutes,
        steps=options.steps,
        seed=options.seed,
        compiled=not options.eager,
        half=options.half,
        hold=options.hold,
        long_from=options.long_from,
        full_from=options.full_from,
    )
    factor = options.rate or (0.5 if options.resume else 1.0)
    plan = dataclasses.replace(plan, matrix_rate=plan.matrix_rate * factor, other_rate=plan.other_rate * factor)
    if options.batch is not None:
        plan = dataclasses.replace(plan, batch_tokens=options.batch)
    weights = None
    if options.resume:
        shape, seen, weights = load_checkpoint(options.work / "run")
        plan = dataclasses.replace(plan, resumed_tokens=seen)
    elif options.start_from is not None:
        shape, seen, weights = load_exported(options.start_from)
        plan = dataclasses.replace(plan, resumed_tokens=seen)
        write_tokenizer(load_tokenizer(options.start_from), options.work / "model", shape.context)
    tokenizer = load_tokenizer(options.work / "model")
    train(texts, tokenizer, shape, plan, options.work / "run", _progress, weights)


# --- export and evaluate ------------------------------------------------------------------


def _export_options(command: argparse.ArgumentParser) -> None:
    default = Path(__file__).parent.parent / "models" / "embedded"
    command.add_argument("--out", type=Path, default=default, help="folder of the model (default: the embedded one)")


def run_export(options: argparse.Namespace) -> None:
    """Export the latest checkpoint, also while training goes on."""
    from fim_server.training.export import export

    size = export(options.work / "run", options.work / "model", options.work / "corpus", options.out)
    _progress(f"{options.out}: {size / 1e6:.1f} MB")


def _onnx_options(command: argparse.ArgumentParser) -> None:
    embedded = Path(__file__).parent.parent / "models" / "embedded"
    command.add_argument("--model", type=Path, default=embedded, help="model folder (default: the embedded one)")
    command.add_argument("--out", type=Path, help="folder of the export (default: onnx in the model's)")


def run_onnx_export(options: argparse.Namespace) -> None:
    """Export a folder for onnxruntime-genai; what serves it looks for it in the model's folder `onnx`."""
    from fim_server.training.onnx_export import export_onnx

    target = options.out if options.out is not None else options.model / "onnx"
    _progress(f"exporting {options.model}")
    _progress(f"{target}: {export_onnx(options.model, target) / 1e6:.1f} MB")


def run_evaluation(options: argparse.Namespace) -> None:
    """Print the loss per held-out package, and per kind of hole."""
    import torch

    from fim_server.training.evaluate import HOLES, holes_of, load, measure_holes, measure_plain
    from fim_server.training.fim import Order

    torch.set_num_threads(options.threads)
    model, tokenizer = load(options.out)
    files = read_corpus(options.work / "corpus" / HELD_OUT_FILE)
    if not files:
        raise TrainingError("nothing was held out")
    print("held-out package            nats/token  bits/byte")
    for name in sorted({file.package for file in files}):
        chosen = [file for file in files if file.package == name]
        nats, bits = measure_plain(model, tokenizer, chosen, min(40, len(chosen)))
        print(f"{name:<27} {nats:>10.3f} {bits:>10.3f}")
    print("\nhole          order  holes  bits/byte of middle  exact")
    for kind, mixture in HOLES.items():
        holes = holes_of(files, mixture, options.holes, random.Random(1))
        for order in (Order.SUFFIX_FIRST, Order.PREFIX_FIRST):
            _progress(f"filling {len(holes)} holes: {kind}, {order.value}")
            found = measure_holes(model, tokenizer, holes, kind, order)
            print(
                f"{kind:<13} {order.value:<6} {found.holes:>5} {found.bits_a_byte:>20.3f} {100 * found.exact:>5.1f} %"
            )


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
