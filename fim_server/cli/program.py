"""Command line: ``fim-server COMMAND ...``.

Exit status: 0 done, 1 a negative verdict (no completion, a file that does not parse), 2 bad input or an answer that
could not be written, 130 interrupted. Results go to standard output, messages to standard error. Only the command that
runs is imported, and its libraries when it runs, so that ``check`` and ``languages`` start soon and without torch.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from fim_server.cli.arguments import Parser, ShowVersion
from fim_server.cli.output import BAD_INPUT, INTERRUPTED, PROGRAM, complain, one_line
from fim_server.errors import FimServerError, is_exhaustion


def main(argv: Sequence[str] | None = None, build: Callable[[Sequence[str]], Parser] | None = None) -> int:
    """Run one command of the parser that ``build`` makes, and return the exit status.

    Bad usage exits with status 2 by SystemExit, as argparse does.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    if sys.stdout is None:
        sys.stdout = ClosedOutput()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A console's encoding may lack characters of source code; surrogates in samples are in no encoding.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        return run((build or build_parser)(argv), argv)
    except KeyboardInterrupt:
        return INTERRUPTED
    except FimServerError as error:
        complain(one_line(str(error)))
        return BAD_INPUT
    except OSError as error:  # commands report errors of their files: this one is of the output
        drop_output()
        complain(one_line(f"{error.filename or 'standard output'}: {(error.strerror or str(error)).lower()}"))
        return BAD_INPUT
    except (MemoryError, RuntimeError, ImportError) as error:
        if not is_exhaustion(error):
            raise
        complain("too little memory, or no thread available")
        return BAD_INPUT


def run(parser: Parser, argv: Sequence[str]) -> int:
    """Run one command, flush its output, and return the exit status."""
    try:
        arguments = parser.parse_args(argv)
        status: int = arguments.run(arguments)
    except SystemExit:  # --help was printed
        flush()
        raise
    flush()
    return status


def flush() -> None:
    """Write buffered output here, where it may fail."""
    sys.stdout.flush()


def drop_output() -> None:
    """Redirect standard output to nowhere: Python flushes it again at exit, which must not fail once more."""
    with contextlib.suppress(io.UnsupportedOperation):  # a substitute has nothing to flush at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class ClosedOutput(io.TextIOBase):
    """Substitute for a closed standard output, for which Python has None and print says nothing."""

    def write(self, text: str, /) -> NoReturn:
        """Raise OSError: the answer is lost."""
        raise OSError(errno.EBADF, "closed")


COMMANDS = ("complete", "check", "explain", "languages", "language", "models", "serve", "dataset", "eval")


def build_parser(argv: Sequence[str]) -> Parser:
    """Return the parser of the command that ``argv`` names; of all commands, if it names none."""
    parser = Parser(prog=PROGRAM, description="Code completions that always parse.")
    parser.add_argument("--version", action=ShowVersion, nargs=0, help="show program's version number and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    wanted = argv[0] if argv else None
    for name in COMMANDS:
        if name == wanted or wanted not in COMMANDS:
            add_command(commands, name, name == wanted)
    return parser


def add_command(commands: Any, name: str, is_wanted: bool) -> None:
    """Add a command. ``is_wanted``: whether it runs; else those with commands of their own need only their help."""
    match name:
        case "complete":
            from fim_server.cli.complete import add_complete

            add_complete(commands)
        case "check":
            from fim_server.cli.check import add_check

            add_check(commands)
        case "explain":
            from fim_server.cli.explain import add_explain

            add_explain(commands)
        case "languages":
            from fim_server.cli.languages import add_languages

            add_languages(commands)
        case "language":
            from fim_server.cli.language import add_language

            add_language(commands)
        case "models":
            from fim_server.cli.models import add_models

            add_models(commands)
        case "serve":
            from fim_server.cli.serve import add_serve

            add_serve(commands)
        case "dataset":
            dataset = commands.add_parser(
                "dataset",
                help="build sets of samples",
                description="Build sets of samples, which are holes in real files, and show them.",
            )
            if is_wanted:
                from fim_server.cli.dataset import add_commands

                add_commands(dataset)
        case _:
            evaluation = commands.add_parser(
                "eval",
                help="evaluate a model, with the grammar and without",
                description="Evaluate a model on a set of samples in several modes, and write a report.",
            )
            if is_wanted:
                from fim_server.cli.evaluate import add_steps

                add_steps(evaluation)
