"""File of a command, and its language."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from fim_server.errors import DocumentError, LanguageError
from fim_server.language import Language
from fim_server.language.plain import PlainText, plain_name
from fim_server.language.session import WHOLE
from fim_server.memory.ignoring import is_secret
from fim_server.text.document import Document, Split
from fim_server.text.notebook import CellContexts
from fim_server.text.regions import NO_CODE, Host, host_of, read_alone
from fim_server.text.terminal import Progress


def read_document(arguments: NamesFile) -> Document:
    """Return the file that the user named.

    Raises DocumentError if it cannot be read or may hold secrets, and LanguageError for standard input without a
    language, before reading.
    """
    file, language = arguments.file, arguments.language
    if file == "-" and language is None:
        raise LanguageError("standard input has no suffix: name its language with --language")
    if file != "-" and not arguments.any_file and may_hold_secrets(file):
        raise DocumentError(f"{file}: the file may hold secrets; --any-file reads it")
    return Document.read(file, language)


def may_hold_secrets(file: str) -> bool:
    """Return whether a file is read on request only, by its name or an ignore file above it."""
    try:
        return is_secret(Path(file).absolute(), [Path.cwd()])
    except (OSError, ValueError):  # no file has such a name, which reading reports
        return False


class NamesFile(Protocol):
    """Arguments of commands that read a file."""

    @property
    def file(self) -> str: ...
    @property
    def any_file(self) -> bool: ...
    @property
    def language(self) -> str | None: ...
    @property
    def language_version(self) -> str | None: ...
    @property
    def python_version(self) -> str | None: ...


def choose_language(arguments: NamesFile, shown: Progress, of_region: str | None = None) -> Language:
    """Return the language that the user named, the one of a region in the file, or the one of the file's suffix.

    Standard input belongs to the current folder's project. Raises LanguageError without a grammar or version.
    """
    shown.say("loading the language")
    name = arguments.language or of_region
    if name is None:
        if plain_name(arguments.file) is not None:
            suffix = Path(arguments.file).suffix or "(no suffix)"
            raise LanguageError(f"there is no grammar for files named *{suffix}; name a language with --language")
        name = Language.name_for_path(arguments.file)
    versions = {"python": arguments.python_version}
    if arguments.language_version is not None:
        versions[name] = arguments.language_version
    if of_region is not None:
        return Language.load(name, versions.get(name))
    return Language.for_path(arguments.file, name, versions)


@dataclass(frozen=True)
class Part:
    """Part of a file around a cursor that a language reads: all of it, or the code in a file of another language.

    Attributes:
        language: Its language.
        split: The whole file, cut at the cursor.
        region: The contexts in the code; None where the file is of one language.
    """

    language: Language
    split: Split
    region: CellContexts | None = None

    @property
    def contexts(self) -> Split:
        """Return the texts around the cursor that must parse."""
        if self.region is None:
            return self.split
        return replace(self.split, left=self.region.left, right=self.region.right)

    @property
    def diagnostics(self) -> tuple[str, ...]:
        """Return the line that says what is read of the file; none if it is all of it."""
        return () if self.region is None else (read_alone(self.region, self.language.name),)

    def guaranteed(self, guarantee: str) -> str:
        """Return the guarantee for the file where the part has one."""
        return "partial" if guarantee in WHOLE and self.region is not None else guarantee


def choose_part(
    arguments: NamesFile, document: Document, offset: int, shown: Progress, takes_any: bool = False
) -> Part:
    """Return the part of a file around an offset. Raises as :func:`choose_language`, and outside of code.

    ``takes_any``: files without a grammar have a part as well.
    """
    host = host_of_file(arguments)
    plain = None if arguments.language is not None or not takes_any else plain_name(arguments.file)
    if host is None and plain is not None:
        return Part(PlainText(plain), document.split(offset))
    if host is None:
        language = choose_language(arguments, shown)
        return Part(language, document.split(offset, Language.keeps_returns(language.name)))
    region = host.at(document.text, offset)
    if region is None and host.text_is_plain and takes_any:
        return Part(PlainText(host.name), document.split(offset))
    if region is None and host.name not in Language.names():
        raise LanguageError(f"{NO_CODE} ({host.name})")
    language = choose_language(arguments, shown, None if region is None else region.language)
    if region is None:
        return Part(language, document.split(offset, Language.keeps_returns(language.name)))
    split = document.split(offset, Language.keeps_returns(language.name))
    return Part(language, split, region.contexts(arguments.file, split))


def host_of_file(arguments: NamesFile) -> Host | None:
    """Return the host whose suffix the file has, unless the user named the language."""
    return None if arguments.language is not None else host_of("", arguments.file)


def names_of(language: Language) -> dict[str, Any]:
    """Return a language in JSON, with its version if the grammar is limited to one."""
    return {"language": language.name, **({} if language.version is None else {"version": language.version})}
