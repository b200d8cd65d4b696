"""Registry of the languages with support code."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fim_server.language_support.protocol import LanguageSupport


def _python() -> LanguageSupport:
    from fim_server.language_support.python.support import PythonSupport

    return PythonSupport()


REGISTRY: Mapping[str, Callable[[], LanguageSupport]] = {"python": _python}
"""Constructors of the support of each language, by the language's name. Each imports its modules when called."""


def support_of(language: str) -> LanguageSupport | None:
    """Return the support of a language; None if there is none. Clients may name any language."""
    return _made(language) if language in REGISTRY else None


@cache
def _made(language: str) -> LanguageSupport:
    return REGISTRY[language]()
