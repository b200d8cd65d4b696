"""Options that several benchmarks share, and the types of their arguments."""

from __future__ import annotations

import argparse


def positive_count(text: str) -> int:
    """Parse a number above 0."""
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return int(text)


def positive_counts(text: str) -> tuple[int, ...]:
    """Parse numbers above 0 with commas between them."""
    return tuple(positive_count(part) for part in text.split(","))


def add_seed(parser: argparse.ArgumentParser, of: str) -> None:
    """Add ``--seed``. ``of``: the random choices, in words."""
    parser.add_argument("--seed", type=int, default=0, metavar="N", help=f"seed of {of} (default: 0)")


def add_json(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Add ``--json``. ``more``: a remark for its help."""
    parser.add_argument(
        "--json", action="store_true", help=f"print one JSON object, {more}" if more else "print one JSON object"
    )


def add_typing_arguments(parser: argparse.ArgumentParser, files: int, keystrokes: int, each: str) -> None:
    """Add the options of benchmarks that type in files: ``--path``, ``--files``, ``--keystrokes`` and ``--seed``.

    Args:
        parser: The command's parser.
        files: Default number of files.
        keystrokes: Default number of keystrokes.
        each: Help for the number of keystrokes.
    """
    parser.add_argument(
        "--path",
        action="append",
        metavar="PATH",
        help="a Python file, or a folder of them, to type in; may be given several times (default: modules of the "
        "standard library, 3 to 30 kB each)",
    )
    parser.add_argument("--files", type=positive_count, default=files, metavar="N", help=f"files (default: {files})")
    parser.add_argument(
        "--keystrokes", type=positive_count, default=keystrokes, metavar="N", help=f"{each} (default: {keystrokes:,})"
    )
    add_seed(parser, "the choice of all")
