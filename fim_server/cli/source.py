"""File of a command, and its language."""

from __future__ import annotations

from typing import Any, Protocol

from fim_server.errors import LanguageError
from fim_server.language import Language
from fim_server.text.document import Document
from fim_server.text.terminal import Progress


def read_document(file: str, language: str | None) -> Document:
    """Return the file that the user named.

    Raises DocumentError if it cannot be read, and LanguageError for standard input without a language, before reading.
    """
    if file == "-" and language is None:
        raise LanguageError("standard input has no suffix: name its language with --language")
    return Document.read(file, language)


class NamesFile(Protocol):
    """Arguments of commands that read a file."""

    @property
    def file(self) -> str: ...
    @property
    def language(self) -> str | None: ...
    @property
    def language_version(self) -> str | None: ...
    @property
    def python_version(self) -> str | None: ...


def choose_language(arguments: NamesFile, shown: Progress) -> Language:
    """Return the language that the user named, or the one of the file's suffix.

    Standard input belongs to the current folder's project. Raises LanguageError without a language or version.
    """
    shown.say("loading the language")
    name = arguments.language or Language.name_for_path(arguments.file)
    versions = {"python": arguments.python_version}
    if arguments.language_version is not None:
        versions[name] = arguments.language_version
    return Language.for_path(arguments.file, name, versions)


def names_of(language: Language) -> dict[str, Any]:
    """Return a language in JSON, with its version if the grammar is limited to one."""
    return {"language": language.name, **({} if language.version is None else {"version": language.version})}
