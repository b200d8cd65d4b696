"""fim-server: fill-in-the-middle completion whose text always fits the code around it.

The public API is what this module exports; everything else may change.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fim_server.errors import LanguageError, StoppedError, VocabularyError
    from fim_server.language import Explanation, Language, Matcher, Session, State, Stop, Verdict
    from fim_server.tokens.vocabulary import Vocabulary

__all__ = [
    "Explanation",
    "Language",
    "LanguageError",
    "Matcher",
    "Session",
    "State",
    "Stop",
    "StoppedError",
    "Verdict",
    "Vocabulary",
    "VocabularyError",
]

_HOMES = {
    "LanguageError": "fim_server.errors",
    "StoppedError": "fim_server.errors",
    "Vocabulary": "fim_server.tokens.vocabulary",
    "VocabularyError": "fim_server.errors",
}
"""Modules of the public names that fim_server.language does not define."""


def __getattr__(name: str) -> object:
    """Imports what is asked for: the program's first lines, which heed interrupts, are not to wait for all of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(_HOMES.get(name, "fim_server.language")), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
