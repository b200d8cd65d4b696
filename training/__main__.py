"""`./dev train`: each step of the recipe is a subcommand; `all` runs them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, NoReturn, TypeVar

from fim_server.errors import FimServerError
from training import options, steps
from training.corpora.options import CorpusOptions, add_corpus
from training.corpora.step import run_corpus
from training.fim.options import FimOptions, add_fim
from training.fim.step import run_fim

Given = TypeVar("Given", bound=options.Options)

NEEDED = frozenset({"tokenizers", "torch", "transformers"})
"""Libraries that the steps need and the small installation has not."""


@dataclass(frozen=True)
class Step(Generic[Given]):
    """A step of the recipe, with its arguments and what they become."""

    name: str
    summary: str
    add: Callable[[argparse.ArgumentParser], None]
    kind: type[Given]
    run: Callable[[Given], None]

    def start(self, parsed: argparse.Namespace) -> None:
        """Run it with its part of what was parsed."""
        self.run(self.kind(**{field.name: getattr(parsed, field.name) for field in fields(self.kind)}))


COLLECT = Step(
    "collect", "gather permissively licensed Python", options.add_collect, options.CollectOptions, steps.collect
)
CORPUS = Step("corpus", "gather permissively licensed code of many languages", add_corpus, CorpusOptions, run_corpus)
TOKENIZER = Step(
    "tokenizer",
    "learn the 16k byte-level BPE",
    options.add_tokenizer,
    options.TokenizerOptions,
    steps.learn_tokenizer,
)
TRAIN = Step(
    "train",
    "train by wall clock; checkpoints can be exported",
    options.add_train,
    options.TrainOptions,
    steps.run_training,
)
EXPORT = Step(
    "export",
    "write a checkpoint as a loadable folder",
    options.add_export,
    options.ExportOptions,
    steps.run_export,
)
EVALUATE = Step(
    "evaluate",
    "held-out loss and holes filled greedily",
    options.add_evaluate,
    options.EvaluateOptions,
    steps.run_evaluation,
)
ONNX = Step(
    "onnx",
    "export a model folder for onnxruntime-genai, in int8",
    options.add_onnx,
    options.OnnxOptions,
    steps.run_onnx_export,
)

FIM = Step("fim", "train the adapter that teaches SmolLM2 to fill in the middle", add_fim, FimOptions, run_fim)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one step; return 0, or 2 after one line on standard error for bad input."""
    parsed = _parser().parse_args(arguments)
    try:
        for step in parsed.steps_to_run:
            step.start(parsed)
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        return complain(f"this needs {error.name}, which is not installed: pip install 'fim-server[torch]' brings it")
    except (FimServerError, OSError) as error:
        return complain(str(error))
    return 0


def complain(message: str) -> int:
    """Say in one line what is wrong; returns the exit status."""
    print(f"training: {message}", file=sys.stderr)
    return 2


class Parser(argparse.ArgumentParser):
    """An argument parser that complains in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="./dev train", description="Train the models.")
    commands = parser.add_subparsers(required=True, metavar="STEP")

    def add(name: str, summary: str, *run: Step[Any]) -> None:
        command = commands.add_parser(name, help=summary, description=summary)
        options.add_work(command)
        for step in run:
            step.add(command)
        command.set_defaults(steps_to_run=run)

    for step in (COLLECT, CORPUS, TOKENIZER, TRAIN, EXPORT, EVALUATE, ONNX, FIM):
        add(step.name, step.summary, step)
    add("all", "collect, tokenizer, train, export", COLLECT, TOKENIZER, TRAIN, EXPORT)
    return parser


if __name__ == "__main__":
    sys.exit(main())
