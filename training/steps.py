"""The steps of the recipe, as the command line runs them. What a step needs is imported when it runs."""

from __future__ import annotations

import os
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fim_server.errors import TrainingError
from training.data.corpus import (
    HELD_OUT_FILE,
    SOURCES_FILE,
    TRAIN_FILE,
    CollectLimits,
    read_corpus,
    write_corpus,
)
from training.data.overlap import read_evaluation_texts
from training.data.packages import Package, read_folder, read_installed, read_standard_library, read_wheel
from training.options import (
    CollectOptions,
    EvaluateOptions,
    ExportOptions,
    OnnxOptions,
    TokenizerOptions,
    TrainOptions,
)

if TYPE_CHECKING:
    from training.plan import Plan


def say(text: str) -> None:
    """A line on standard error."""
    print(text, file=sys.stderr, flush=True)


def collect(options: CollectOptions) -> None:
    """Read, filter and write the corpus; packages without a permissive licence are named."""
    if options.wheels is not None and not options.wheels.is_dir():
        raise TrainingError(f"{options.wheels}: no such folder")
    excluded = read_evaluation_texts(options.exclude)  # what cannot be read is said before the wheels take minutes
    packages: list[Package] = []
    wheels = sorted(options.wheels.glob("*.whl")) if options.wheels is not None else []
    limits = CollectLimits(options.package_bytes, options.held_out_bytes)
    with ProcessPoolExecutor(options.processes) as pool:
        reading = [pool.submit(read_wheel, wheel, limits.read_bytes) for wheel in wheels]
        for index, (wheel, package) in enumerate(zip(wheels, reading, strict=True), 1):
            say(f"reading {index}/{len(wheels)} {wheel.name}")
            try:
                packages.append(package.result())
            except TrainingError as error:
                say(f"left out: {error}")
    packages += [read_installed(name) for name in options.installed]
    packages += [read_folder(Path(path), name, version, licence) for path, name, version, licence in options.folder]
    if not options.no_standard_library:
        say("reading the standard library")
        packages.append(read_standard_library())
    names = [package.name for package in packages]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise TrainingError(f"given twice: {', '.join(repeated)}")
    say(f"removing near-duplicates from {len(packages)} packages")
    write_corpus(
        packages,
        frozenset(options.hold_out),
        excluded,
        limits,
        options.work / "corpus",
    )
    trained = read_corpus(options.work / "corpus" / TRAIN_FILE)
    size = sum(len(file.text.encode()) for file in trained)
    say(f"{len(trained)} files, {size / 1e6:.1f} MB, to train on; see {SOURCES_FILE}")


def learn_tokenizer(options: TokenizerOptions) -> None:
    """Learn merges from a half of the trained files."""
    from training.plan import Shape
    from training.tokenizer import train_tokenizer, write_tokenizer

    texts = [file.text for file in read_corpus(options.work / "corpus" / TRAIN_FILE)]
    random.Random(0).shuffle(texts)
    say("learning the tokenizer")
    tokenizer = train_tokenizer(texts[: (len(texts) + 1) // 2], options.vocabulary)
    write_tokenizer(tokenizer, options.work / "model", Shape().context)
    say(f"{tokenizer.get_vocab_size()} tokens")


def run_training(options: TrainOptions) -> None:
    """Train; at the end a checkpoint lies in `run/`."""
    # Read by the libraries when they load, which the imports below do.
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    import torch

    from training.checkpoints import load_checkpoint
    from training.export import load_exported
    from training.plan import Shape
    from training.tokenizer import load_tokenizer, write_tokenizer
    from training.train import train

    torch.set_num_threads(options.threads)
    texts = [file.text for file in read_corpus(options.work / "corpus" / TRAIN_FILE)]
    shape = Shape()
    shape = replace(shape, layers=options.layers or shape.layers, width=options.width or shape.width)
    plan = planned(options)
    weights = None
    if options.resume:
        shape, seen, weights = load_checkpoint(options.work / "run")
        plan = replace(plan, resumed_tokens=seen)
    elif options.start_from is not None:
        shape, seen, weights = load_exported(options.start_from)
        plan = replace(plan, resumed_tokens=seen)
        write_tokenizer(load_tokenizer(options.start_from), options.work / "model", shape.context)
    tokenizer = load_tokenizer(options.work / "model")
    train(texts, tokenizer, shape, plan, options.work / "run", say, weights)


def planned(options: TrainOptions) -> Plan:
    """The plan that the arguments ask for. Raises TrainingError where they leave no time."""
    from training.plan import Plan

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
    plan = replace(plan, matrix_rate=plan.matrix_rate * factor, other_rate=plan.other_rate * factor)
    return plan if options.batch is None else replace(plan, batch_tokens=options.batch)


def run_export(options: ExportOptions) -> None:
    """Export the latest checkpoint, also while training goes on."""
    from training.export import export

    size = export(options.work / "run", options.work / "model", options.work / "corpus", options.out)
    say(f"{options.out}: {size / 1e6:.1f} MB")


def run_onnx_export(options: OnnxOptions) -> None:
    """Export a folder for onnxruntime-genai; what serves it looks for it in the model's folder `onnx`."""
    from training.onnx_export import export_onnx

    target = options.out if options.out is not None else options.model / "onnx"
    say(f"exporting {options.model}")
    say(f"{target}: {export_onnx(options.model, target) / 1e6:.1f} MB")


def run_evaluation(options: EvaluateOptions) -> None:
    """Print the loss per held-out package, and per kind of hole."""
    import torch

    from training.data.cutting import Order
    from training.evaluate import HOLES, holes_of, load, measure_holes, measure_plain

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
            say(f"filling {len(holes)} holes: {kind}, {order.value}")
            found = measure_holes(model, tokenizer, holes, kind, order)
            print(
                f"{kind:<13} {order.value:<6} {found.holes:>5} {found.bits_a_byte:>20.3f} {100 * found.exact:>5.1f} %"
            )
