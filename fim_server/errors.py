"""Every exception that says what is wrong with what the user gave, or asked for.

All derive from :class:`FimServerError`, which the command line catches in one place: its message is one line made for
the user, and the exit status 2. The engine's binding raises these classes too, so ``except FimServerError`` sees what
either half refuses. Wrong calls of a function (a negative count, an array of another shape) are ``ValueError``,
``TypeError`` and ``BufferError`` as everywhere in Python, and are not listed here.
"""

from __future__ import annotations

import errno

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
    "is_exhaustion",
]


class FimServerError(Exception):
    """The base of all of them; the message is one line made for the user."""


class LanguageError(FimServerError, ValueError):
    """A language definition that cannot be used."""


class VocabularyError(FimServerError, ValueError):
    """A tokenizer whose tokens cannot be read as bytes."""


class DocumentError(FimServerError, ValueError):
    """A file or a cursor that cannot be used."""


class HoleError(FimServerError, ValueError):
    """A hole, as another engine's request describes it, that cannot be filled: what it says, or its two texts."""


class VersionError(FimServerError, RuntimeError):
    """Another engine is of a version, or of a form, that its plug-in here does not know."""


class ModelError(FimServerError, ValueError):
    """A model that cannot be found, loaded or used, or a device or runtime that is not there."""


class AwayError(ModelError):
    """A model behind an endpoint that does not answer now, and may later."""


class ScarceMemoryError(ModelError):
    """Model for which this process has too little memory."""


class DamagedError(ModelError):
    """Model in a cache whose files are damaged; the message says how to repair it."""


class FormatError(ModelError):
    """A model whose tokenizer has the tokens of no known prompt format: it was not trained to fill in the middle."""


class MissingLibrary(FimServerError, ImportError):
    """A library of an extra is not installed; the message names the extra."""


class StoppedError(FimServerError):
    """The engine was left because a :class:`fim_server.Stop` said so."""


class BenchError(FimServerError):
    """What was to be measured, or the place of its results, cannot be used; or a measured server does not answer."""


class DatasetError(FimServerError):
    """A source or a file of samples that cannot be used."""


class RecordError(FimServerError):
    """A run of an evaluation that cannot be begun, gone on with, read or written."""


class RunError(RecordError):
    """A run that cannot be begun or gone on with."""


class JudgeError(RecordError):
    """A program that cannot judge: it is not there, cannot be built, or does not answer."""


class TrainingError(FimServerError):
    """Bad input to training, or a step of it that is missing."""


class LimitError(FimServerError):
    """A limit was passed.

    Attributes:
        given: How much there is, in the limit's unit; None where it was not counted.
        limit: How much is allowed; None where no one number says it.
    """

    def __init__(self, message: str, given: int | None = None, limit: int | None = None) -> None:
        super().__init__(message)
        self.given = given
        self.limit = limit


class SearchLimitError(LimitError):
    """A bounded search gave up. Nothing is known then: neither that there is an answer, nor that there is none."""


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
