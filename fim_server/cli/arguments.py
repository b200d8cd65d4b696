"""Shared arguments of commands: types and options.

A command declares its options on a parser, and its arguments as a frozen dataclass with a field for each option.
:func:`bind` joins the two, so that no other module uses argparse's Namespace.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NoReturn, TypeVar

from fim_server.cli.output import BAD_INPUT, PROGRAM, one_line, version
from fim_server.language import Language
from fim_server.language.definition.versions import NEWEST
from fim_server.models.backend import LEAST_PROMPT_TOKENS
from fim_server.models.loaders import RUNTIMES
from fim_server.models.options import LoadOptions

if TYPE_CHECKING:
    from _typeshed import DataclassInstance, SupportsWrite

Number = TypeVar("Number", int, float)
Arguments = TypeVar("Arguments", bound="DataclassInstance")


class Parser(argparse.ArgumentParser):
    """Parser that reports errors in one line, and fails if its help cannot be written."""

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help. Raises OSError, which argparse would suppress, if that fails."""
        print(self.format_help(), end="", file=file)

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {one_line(message)} (see {self.prog} --help)\n")


class ShowVersion(argparse.Action):
    """Action that looks up the version and prints it."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print the version and exit."""
        print(f"{PROGRAM} {version()}")
        parser.exit()


def bind(parser: argparse.ArgumentParser, kind: type[Arguments], run: Callable[[Arguments], int]) -> None:
    """Have ``parser`` call ``run`` with its options as the dataclass ``kind``.

    Each field of ``kind`` is the option of that name, with dashes as underscores.
    """

    def run_typed(namespace: argparse.Namespace) -> int:
        return run(typed(kind, namespace))

    parser.set_defaults(run=run_typed)


def typed(kind: type[Arguments], namespace: argparse.Namespace) -> Arguments:
    """Return the parsed options as the dataclass ``kind``."""
    return kind(**{field.name: getattr(namespace, field.name) for field in fields(kind)})


@dataclass(frozen=True)
class ModelArguments:
    """Arguments of commands that load a model; subclasses add their own."""

    model: str | None
    device: str | None
    runtime: str | None
    gpu_layers: int | None
    adapter: str | None
    api_key_env: str | None
    allow_plain_http: bool
    tokenizer: str | None


# --- options ------------------------------------------------------------------------------------------------------


def add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a source file in UTF-8, or - for standard input")
    parser.add_argument("--language", metavar="NAME", help="the file's language (default: by its suffix)")
    parser.add_argument(
        "--any-file", action="store_true", help="read the file even if it is a file of secrets, by name or ignore file"
    )


def add_cursor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "cursor", type=cursor, metavar="LINE:COLUMN", help="cursor; both numbers start at 1, columns count characters"
    )


def add_python_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--python-version",
        type=python_version,
        metavar="X.Y",
        help=f"grammar's version for Python files, or {NEWEST} (default: the oldest one that the nearest "
        "pyproject.toml allows, else the newest)",
    )


def add_versions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--language-version",
        metavar="VERSION",
        help=f"grammar's version for the file's language, or {NEWEST} (default: the one that its project asks for, "
        "else the newest)",
    )
    add_python_version(parser)


def add_model(parser: argparse.ArgumentParser, default: str = "") -> None:
    """Add ``--model`` and the options of :func:`add_loading`; ``default``: what comes before the usual default."""
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="a model folder, GGUF file, http(s)://HOST:PORT of an endpoint, name in `fim-server models list`, or "
        f"name on the Hugging Face hub (default: {default}smollm2 if it is installed, else embedded)",
    )
    add_loading(parser)


def add_loading(parser: argparse.ArgumentParser) -> None:
    """Add ``--device`` and the other options that load a model."""
    parser.add_argument("--device", metavar="DEVICE", help="cpu, cuda, ... (default: a GPU if there is one)")
    parser.add_argument(
        "--gpu-layers",
        type=layers,
        metavar="N",
        help="GGUF files: layers on the GPU; -1: all (default if llama.cpp has a GPU)",
    )
    parser.add_argument("--adapter", metavar="FILE", help="GGUF files: low-rank adapter, a GGUF file too")
    parser.add_argument("--api-key-env", metavar="VAR", help="endpoints: environment variable with the API key")
    parser.add_argument("--allow-plain-http", action="store_true", help="endpoints: allow another machine without TLS")
    parser.add_argument(
        "--tokenizer",
        metavar="PATH|NAME",
        help="endpoints: the model's tokenizer: a folder with tokenizer.json, a GGUF file, or a name on the hub",
    )


def add_runtime(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runtime",
        choices=RUNTIMES,
        help="library that runs the model; onnx: onnxruntime, on the CPU (default: onnx if the model has an export and "
        "onnxruntime is installed, else torch; llama.cpp for GGUF files)",
    )


def add_decoding(parser: argparse.ArgumentParser) -> None:
    """Add ``--runtime`` and the limits of a completion."""
    add_runtime(parser)
    parser.add_argument(
        "--max-new-tokens",
        type=positive(int),
        default=128,
        metavar="N",
        help="longest completion, in tokens (default: 128)",
    )
    parser.add_argument(
        "--temperature",
        type=positive(float, zero=True),
        default=0.0,
        metavar="T",
        help="0: always the likeliest token (default); above 0: sample",
    )
    parser.add_argument(
        "--deadline-ms", type=positive(float), metavar="MS", help="return the best text so far after this time"
    )


def add_prompt_tokens(parser: argparse.ArgumentParser, default: int | None, otherwise: str) -> None:
    """Add ``--max-prompt-tokens``; ``otherwise``: the default in words."""
    parser.add_argument(
        "--max-prompt-tokens",
        type=prompt_tokens,
        default=default,
        metavar="N",
        help=f"longest prompt, in tokens around the cursor (default: {otherwise})",
    )


def add_seed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=integer, default=0, metavar="N", help="seed of the random numbers (default: 0)")


def add_json(parser: argparse.ArgumentParser, help_: str = "print one JSON object") -> None:
    parser.add_argument("--json", action="store_true", help=help_)


def add_color(parser: argparse.ArgumentParser, of: str) -> None:
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help=f"when to colour {of}")


# --- types --------------------------------------------------------------------------------------------------------


PLAIN = re.compile("[0-9A-Za-z.+-]*")
"""Characters of a number as users type it, words for infinity included."""

MOST_DIGITS = 4000
"""Most digits of a number; Python converts no more of them."""


def is_whole(text: str) -> bool:
    """Return whether a text is a whole number in the digits 0 to 9, as users type numbers."""
    return text.isascii() and text.isdecimal() and len(text) < MOST_DIGITS


def integer(text: str) -> int:
    """Parse a whole number, with a sign or without. Raises ValueError."""
    if not is_whole(text.removeprefix("-")):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def layers(text: str) -> int:
    """Parse a number of layers, or -1."""
    count = int(text) if is_whole(text.removeprefix("-")) else -2
    if count < -1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of layers: -1 or more expected")
    return count


def load_options(arguments: ModelArguments) -> LoadOptions:
    """Return the options of a load besides name, device and runtime."""
    return LoadOptions(
        arguments.gpu_layers,
        arguments.adapter,
        arguments.api_key_env,
        arguments.allow_plain_http,
        arguments.tokenizer,
    )


def cursor(text: str) -> tuple[int, int]:
    """Parse ``LINE:COLUMN``."""
    try:
        line, column = (integer(part) for part in text.split(":"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a cursor: LINE:COLUMN expected, as in 12:5") from None
    return line, column


def python_version(text: str) -> str:
    """Parse a known version of Python, or the word for the newest."""
    known = Language.versions("python")
    if text not in (*known, NEWEST):
        raise argparse.ArgumentTypeError(f"{text!r} is not a known version: {', '.join(known)} or {NEWEST} expected")
    return text


def address(text: str) -> tuple[str | None, int]:
    """Parse ``HOST:PORT``, or a port."""
    host, colon, port = text.rpartition(":")
    if bool(host) != bool(colon) or not is_whole(port) or len(port) > 5 or int(port) > 65535:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an address: HOST:PORT or PORT expected, as in 127.0.0.1:8765"
        )
    return host.strip("[]") or None, int(port)


def prompt_tokens(text: str) -> int:
    """Parse a number of tokens with room for more than a prompt's control tokens."""
    if not is_whole(text) or int(text) < LEAST_PROMPT_TOKENS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {LEAST_PROMPT_TOKENS}")
    return int(text)


def positive(number: Callable[[str], Number], zero: bool = False) -> Callable[[str], Number]:
    """Return an argument type for finite numbers above (or from) 0."""

    def convert(text: str) -> Number:
        try:
            value = number(text if PLAIN.fullmatch(text) else "")
        except ValueError:
            value = number("-1")
        if not (0 < value < math.inf or (zero and value == 0)):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number {'from' if zero else 'above'} 0")
        return value

    return convert
