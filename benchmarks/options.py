"""Options that several benchmarks share, and the types of their arguments."""

from __future__ import annotations

import argparse


def positive_count(text: str) -> int:
    """An argument that is a number above 0."""
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return int(text)


def positive_counts(text: str) -> tuple[int, ...]:
    """Numbers above 0 with commas between them."""
    return tuple(positive_count(part) for part in text.split(","))


def add_typing_arguments(parser: argparse.ArgumentParser, files: int, keystrokes: int, each: str) -> None:
    """Add the options of what types in files: ``--path``, ``--files``, ``--keystrokes`` and ``--seed``.

    Args:
        parser: The command's.
        files: The default of how many there are.
        keystrokes: That of how often a key is pressed.
        each: In what so often, in words.
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
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the choice of all (default: 0)")
