"""Exit statuses of all commands, and their output: JSON, lists, and messages on standard error."""

from __future__ import annotations

import contextlib
import json as json_format
import sys
from collections.abc import Sequence

from fim_server.text.hidden import HIDDEN, escaped, on_one_line
from fim_server.text.terminal import Progress

PROGRAM = "fim-server"

DONE, NEGATIVE, BAD_INPUT, UNFINISHED, INTERRUPTED = 0, 1, 2, 5, 130
"""Exit statuses: done, a negative verdict (no completion, a file that does not parse), bad input, out of time,
interrupted."""

MOST_SAID = 800
"""Characters of one message."""

QUIET_SECONDS = 1.0
"""Time before work shows its progress."""

MOST_COMPLAINED = 10_000
"""Characters of a message on standard error."""

SHOWN_EXPECTED = 12
"""Most alternatives listed for a refused text; ``--json`` lists all."""


def print_json(value: object) -> None:
    """Print one line of JSON, with hidden characters as escapes."""
    text = json_format.dumps(value, ensure_ascii=False)
    print(HIDDEN.sub(lambda found: json_format.dumps(found[0])[1:-1], text))


def one_line(text: str) -> str:
    """Return a message without the line breaks and hidden characters that a file's name may have.

    The middle of a very long message is left out.
    """
    if len(text) > MOST_SAID:
        text = f"{text[: MOST_SAID // 2]} … {text[-MOST_SAID // 4 :]}"
    line = on_one_line(text)
    return line if line.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def complain(message: str) -> None:
    """Print a message on standard error, if there is one; print would use standard output instead."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(f"{PROGRAM}: {escaped(message, MOST_COMPLAINED)}", file=sys.stderr, flush=True)


def listing(title: str, alternatives: Sequence[str]) -> str:
    """Return ``title: a, b, c and 5 more``."""
    if not alternatives:
        return f"{title}: nothing"
    rest = len(alternatives) - SHOWN_EXPECTED
    return f"{title}: {', '.join(alternatives[:SHOWN_EXPECTED])}{f' and {rest} more' if rest > 0 else ''}"


def expectation(likely: str | None, alternatives: Sequence[str]) -> str:
    """Return ``expected ":"; all that may come: …``, with the likely one first, if there is one."""
    if likely is None or len(alternatives) == 1:
        return listing("expected", alternatives)
    return f"expected {likely}; {listing('all that may come', alternatives)}"


def progress(json: bool) -> Progress:
    """Return a display of the progress of long work; with ``json``, on a terminal only."""
    return Progress(plain=not json, after=QUIET_SECONDS)


def version() -> str:
    from importlib import metadata

    try:
        return metadata.version(PROGRAM)
    except metadata.PackageNotFoundError:
        return "(not installed)"
