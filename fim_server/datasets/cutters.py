"""Cutters of holes: CPython's parser for Python, and definitions with a judge for all other languages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from fim_server.datasets.defined import constructions as defined
from fim_server.datasets.defined.text import DefinedText, Lexemes, ToldSymbols, Words
from fim_server.datasets.holes import SHARED, Cut, Refused
from fim_server.datasets.judging import programs
from fim_server.datasets.judging.programs import ASK_ENGINE, ASK_NONE, ENGINE, NOTHING
from fim_server.datasets.python import constructions as python
from fim_server.datasets.python import text as python_text
from fim_server.errors import DatasetError, LanguageError
from fim_server.language import Language
from fim_server.language.definition.compile import builtin_versions, read_builtin
from fim_server.language.definition.versions import NEWEST

PYTHON = python_text.LANGUAGE
"""The language that has constructions of its own."""


class Cutter(ABC):
    """Reader of one language's files that cuts holes of one construction."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """End the cutter's processes."""

    @property
    def judged_by(self) -> str | None:
        """Parser that decides what is a file; None for the interpreter that builds."""
        return None

    @abstractmethod
    def decode(self, content: bytes | str | None) -> str | None:
        """Return a file's text with "\\n" as its line ends; None where it is no text."""

    @abstractmethod
    def cuts(self, text: str, seed: int, sha256: str, count: int) -> Iterator[Cut]:
        """Yield up to ``count`` holes in a text. Raises Refused where none can be cut."""


def cutter(language: str, construction: str, version: str | None = None, judge: str | None = None) -> Cutter:
    """Return the cutter for a construction and a language of the package.

    Args:
        language: Its name.
        construction: The name of the set.
        version: Version of the language; None is the newest with a judge here. Python has that of this interpreter
            only.
        judge: Command of another judge than the package's; `ASK_ENGINE` for the definition itself; `ASK_NONE` for a
            language without a grammar.

    Raises:
        LanguageError: There is no such language or version.
        DatasetError: The construction is not for that language.
        JudgeError: The language's own parser is not there.
    """
    if language == PYTHON:
        if version is not None or judge is not None:
            raise DatasetError(f"{PYTHON} is cut by the interpreter that runs this, and in its version")
        return PythonCutter(construction)
    if judge == ASK_NONE:
        return PlainCutter(language, construction)
    return DefinedCutter(language, construction, version, judge)


def suffixes(language: str) -> tuple[str, ...]:
    """Return the suffixes of the files that are cut: programs of Python, without stubs; none without a grammar."""
    if language == PYTHON:
        return (".py",)
    return Language.suffixes_of(language) if language in Language.names() else ()


class PythonCutter(Cutter):
    """Cutter of Python files by `ast` and `tokenize`."""

    def __init__(self, construction: str) -> None:
        self._construction = construction

    def close(self) -> None:
        """Do nothing: there is no process."""

    def decode(self, content: bytes | str | None) -> str | None:
        return python_text.decode(content)

    def cuts(self, text: str, seed: int, sha256: str, count: int) -> Iterator[Cut]:
        return python.cuts(self._construction, python_text.PythonText(text), seed, sha256, count)


class DefinedCutter(Cutter):
    """Cutter of files of any other language of the package."""

    def __init__(self, language: str, construction: str, version: str | None, judge: str | None) -> None:
        """Start the judge. Raises as `cutter`."""
        if construction not in defined.CONSTRUCTIONS:
            raise DatasetError(f"{construction} is not for {language}, which has {', '.join(defined.CONSTRUCTIONS)}")
        layout = read_builtin(language).spec.get("layout", {"rule": "none"})
        if layout.get("rule", "indent") != "none":
            raise LanguageError(f"{language}: holes are cut by brackets, and its blocks are indented")
        self._construction = construction
        versions = builtin_versions(language)
        versions.narrowed(version)  # refuses what is none
        if version == NEWEST:
            version = next(reversed(versions.choices), None)
        self._engine = self._judge = None
        if judge == ASK_ENGINE:
            self._engine, self._judged_by = Language.load(language, version), ENGINE
        else:
            started = programs.start(language, version, judge)
            version, self._judged_by, self._judge = started.version, started.title, started.judge
        self._lexemes: Lexemes | ToldSymbols = Lexemes(language, version)
        command = programs.symbols(language, version)
        if command:
            self._lexemes = ToldSymbols(command, self._lexemes.brackets)

    def close(self) -> None:
        if self._judge is not None:
            self._judge.close()
        if isinstance(self._lexemes, ToldSymbols):
            self._lexemes.close()

    @property
    def judged_by(self) -> str:
        return self._judged_by

    def decode(self, content: bytes | str | None) -> str | None:
        return decode_text(content)

    def cuts(self, text: str, seed: int, sha256: str, count: int) -> Iterator[Cut]:
        file = DefinedText(text, self._lexemes)
        if not self._takes(text):
            raise Refused("refused by the judge")
        return defined.cuts(self._construction, file, seed, sha256, count)

    def _takes(self, text: str) -> bool:
        """Return whether the judge takes a file."""
        if self._engine is not None:
            return self._engine.open("", "").check(text).complete
        return self._judge is not None and self._judge.decided(text, False)[0] is True


class PlainCutter(Cutter):
    """Cutter of files of a language without a grammar. Words and other characters are its symbols."""

    def __init__(self, language: str, construction: str) -> None:
        """Raises DatasetError for a language with a grammar, and for a construction that needs brackets."""
        if language in Language.names():
            raise DatasetError(f"{language} has a grammar: --judge {ASK_NONE} is for languages without one")
        if construction not in SHARED:
            raise DatasetError(f"{construction} is not for {language}, which has {', '.join(SHARED)}")
        self._construction = construction

    def close(self) -> None:
        """Do nothing: there is no process."""

    @property
    def judged_by(self) -> str:
        return NOTHING

    def decode(self, content: bytes | str | None) -> str | None:
        return decode_text(content)

    def cuts(self, text: str, seed: int, sha256: str, count: int) -> Iterator[Cut]:
        return defined.cuts(self._construction, DefinedText(text, Words()), seed, sha256, count)


def decode_text(content: bytes | str | None) -> str | None:
    """Return a file's text, whose encoding is UTF-8; None where it is no text."""
    try:
        text = content.decode() if isinstance(content, bytes) else content
        if text is not None:
            text.encode()  # lone surrogates
    except UnicodeError:
        return None
    return None if text is None else text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
