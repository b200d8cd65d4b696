"""What all commands print alike: exit statuses, JSON, colours, lists, and progress on standard error."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from importlib import metadata
from types import TracebackType

PROGRAM = "fim-server"

DONE, NEGATIVE, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
"""Exit statuses: done, a negative verdict (no completion, a file that does not parse), bad input, interrupted."""

QUIET_SECONDS = 1.0
"""Work shorter than this says nothing about its progress."""

SHOWN_EXPECTED = 12
"""Alternatives listed where a text is refused; ``--json`` lists all."""


def print_json(value: object) -> None:
    """One line of JSON."""
    print(json.dumps(value, ensure_ascii=False))


def one_line(text: str) -> str:
    """A message without line breaks."""
    return " ".join(text.split())


def complain(message: str) -> None:
    """Say something about a command on standard error."""
    print(f"{PROGRAM}: {message}", file=sys.stderr)


def listing(title: str, alternatives: Sequence[str]) -> str:
    """``title: a, b, c and 5 more``."""
    if not alternatives:
        return f"{title}: nothing"
    rest = len(alternatives) - SHOWN_EXPECTED
    return f"{title}: {', '.join(alternatives[:SHOWN_EXPECTED])}{f' and {rest} more' if rest > 0 else ''}"


def wants_colour(choice: str) -> bool:
    """Whether standard output is to be coloured; NO_COLOR (no-color.org) speaks for those who did not choose."""
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, code: str, colour: bool) -> str:
    """Text in an ANSI colour."""
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text


def version() -> str:
    """The installed version."""
    try:
        return metadata.version(PROGRAM)
    except metadata.PackageNotFoundError:
        return "(not installed)"


class Progress:
    """Says on standard error what is being done, once it has taken longer than :data:`QUIET_SECONDS`.

    On a terminal it is one line that counts seconds and vanishes at the end; elsewhere, one line for the work that was
    under way when the time was up. Where ``json`` is printed it is said on terminals alone: a program that reads JSON
    may read standard error too.
    """

    def __init__(self, json: bool) -> None:
        self._text = ""
        self._ended = threading.Event()
        self._terminal = sys.stderr.isatty()
        enabled = self._terminal or not json
        self._thread = threading.Thread(target=self._show, daemon=True) if enabled else None
        self._started = time.monotonic()

    def say(self, text: str) -> None:
        """Name what is being done now."""
        self._text = text

    def __enter__(self) -> Progress:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self) -> None:
        if self._ended.wait(QUIET_SECONDS):
            return
        if not self._terminal:
            print(f"{self._text} ...", file=sys.stderr, flush=True)
            return
        while True:
            seconds = time.monotonic() - self._started
            print(f"\r\x1b[K{self._text} ({seconds:.0f} s)", end="", file=sys.stderr, flush=True)
            if self._ended.wait(0.2):
                break
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
