"""Log without the user's code, and without the ends of connections."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable

from fim_server.text.hidden import escaped

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

MOST_LOGGED = 100_000
"""Most characters of a record with its traceback."""


class Escaping(logging.Formatter):
    """Formatter that escapes hidden characters and cuts long records off."""

    def format(self, record: logging.LogRecord) -> str:
        return escaped(super().format(record), MOST_LOGGED)


def configure_logging(level: str, quotes_code: Callable[[], bool]) -> None:
    """Log to standard error. ``quotes_code``: return whether the log may now hold the user's code."""
    logging.basicConfig(stream=sys.stderr, level=level.upper(), format=FORMAT)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(Escaping(FORMAT))
        handler.addFilter(lambda record: without_code(record, quotes_code()))
    logging.getLogger("asyncio").addFilter(is_no_end)


def is_no_end(record: logging.LogRecord) -> bool:
    """Return whether a log record is about anything but the end of a connection.

    On the exit message pygls raises SystemExit in a callback. After the editor's end, a pipe breaks in one, or pygls
    cancels a handler.
    """
    error = record.exc_info[0] if record.exc_info else None
    return error is None or not issubclass(error, SystemExit | ConnectionError | asyncio.CancelledError)


def without_code(record: logging.LogRecord, log_code: bool) -> bool:
    """Remove the contents of messages, which hold the user's code, from a record of pygls."""
    if not log_code and record.name.startswith("pygls"):
        plain = (str, int, float)
        if isinstance(record.args, tuple):
            shown = (
                one if isinstance(one, plain) and len(str(one)) < 100 else type(one).__name__ for one in record.args
            )
            record.args = tuple(shown)
        record.msg, record.args = record.getMessage().split("\n", 1)[0], ()
        record.exc_info, record.exc_text = None, None
    return True
