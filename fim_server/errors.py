"""Exceptions about the user's input and requests.

All derive from :class:`FimServerError`, which the command line catches in one place: its message is one line made for
the user, and the exit status is 2. The engine's binding raises these classes too, so ``except FimServerError`` sees the
refusals of both halves. Wrong calls of a function (a negative count, an array of another shape) are ``ValueError``,
``TypeError`` and ``BufferError`` as everywhere in Python, and are not listed here.
"""

from __future__ import annotations

import errno
import os
import socket

__all__ = [
    "AwayError",
    "BenchError",
    "DamagedError",
    "DatasetError",
    "DocumentError",
    "FimServerError",
    "FormatError",
    "HoleError",
    "JudgeError",
    "LanguageError",
    "LimitError",
    "MissingLibrary",
    "ModelError",
    "RecordError",
    "RunError",
    "ScarceMemoryError",
    "SearchLimitError",
    "StoppedError",
    "TrainingError",
    "VersionError",
    "VocabularyError",
    "first_line",
    "is_exhaustion",
    "problem_of_system",
]


class FimServerError(Exception):
    """Base of all of them; the message is one line made for the user."""


class LanguageError(FimServerError, ValueError):
    """Language definition that cannot be used."""


class VocabularyError(FimServerError, ValueError):
    """Tokenizer whose tokens cannot be read as bytes."""


class DocumentError(FimServerError, ValueError):
    """File or cursor that cannot be used."""


class HoleError(FimServerError, ValueError):
    """Hole of another engine's request that cannot be filled: its settings or its two texts are wrong."""


class VersionError(FimServerError, RuntimeError):
    """Version or form of another engine that its plug-in here does not know."""


class ModelError(FimServerError, ValueError):
    """Model that cannot be found, loaded or used, or a device or runtime that is missing."""


class AwayError(ModelError):
    """Model behind an endpoint that does not answer at the moment."""


class ScarceMemoryError(ModelError):
    """Model for which this process has too little memory."""


class DamagedError(ModelError):
    """Model in a cache whose files are damaged; the message says how to repair it."""


class FormatError(ModelError):
    """Model whose tokenizer has the tokens of no known prompt format: it was not trained to fill in the middle."""


class MissingLibrary(FimServerError, ImportError):
    """Library of an extra that is not installed; the message names the extra."""


class StoppedError(FimServerError):
    """End of an engine call that a :class:`fim_server.Stop` asked for."""


class BenchError(FimServerError):
    """Object or results' place of a measurement that cannot be used, or a measured server that does not answer."""


class DatasetError(FimServerError):
    """Source or file of samples that cannot be used."""


class RecordError(FimServerError):
    """Run of an evaluation that cannot be started, continued, read or written."""


class RunError(RecordError):
    """Run that cannot be started or continued."""


class JudgeError(RecordError):
    """Program that cannot judge: it is missing, cannot be built, or does not answer."""


class TrainingError(FimServerError):
    """Bad input to training, or a missing step of it."""


class LimitError(FimServerError):
    """Exceeded limit.

    Attributes:
        given: The amount, in the limit's unit; None if it was not counted.
        limit: The allowed amount; None if no single number tells it.
    """

    def __init__(self, message: str, given: int | None = None, limit: int | None = None) -> None:
        super().__init__(message)
        self.given = given
        self.limit = limit


class SearchLimitError(LimitError):
    """Bounded search that gave up. It tells nothing: neither that there is an answer, nor that there is none."""


EXHAUSTED = 4
"""Exit status of a server for a lack of memory or threads."""

EXHAUSTION_IN_WORDS = (
    "can't start new thread",
    "bad_alloc",
    "bad allocation",
    "failed to allocate memory",
    "cannot allocate memory",
    "failed to map segment",
    "out of memory",
)
"""Messages of Python, native libraries and the loader of libraries for a lack of memory or threads."""

DEEPEST_CAUSE = 8
"""Causes of an error to look at."""


def is_exhaustion(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, reports a lack of memory or threads."""
    for _ in range(DEEPEST_CAUSE):
        if isinstance(error, MemoryError | ScarceMemoryError) or (
            isinstance(error, OSError) and error.errno == errno.ENOMEM
        ):
            return True
        if isinstance(error, RuntimeError | ImportError | OSError):
            said = str(error).lower()
            if any(words in said for words in EXHAUSTION_IN_WORDS):
                return True
        if error is None:
            return False
        error = error.__cause__ or error.__context__
    return False


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its class if it has none."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(" :.") if lines else type(error).__name__


def problem_of_system(error: OSError) -> str:
    """Return the system's words for an error, in lower case, without the address that Python adds to them."""
    words = "" if error.errno is None or isinstance(error, socket.gaierror) else os.strerror(error.errno)
    if not words or words.startswith("Unknown error"):  # Windows has no words for errors of sockets
        words = error.strerror or str(error)
    return words.lower()
