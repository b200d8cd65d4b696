"""What cuts holes into the files of a language: by CPython's parser for Python, by data and a judge for all others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from fim_server.datasets.defined import constructions as defined
from fim_server.datasets.defined.text import DefinedText, Lexemes
from fim_server.datasets.holes import Cut, Refused
from fim_server.datasets.judging import programs
from fim_server.datasets.python import constructions as python
from fim_server.datasets.python import text as python_text
from fim_server.errors import DatasetError, LanguageError
from fim_server.language import Language
from fim_server.language.compile import builtin_versions, read_builtin
from fim_server.language.versions import NEWEST

PYTHON = python_text.LANGUAGE
"""The language that has constructions of its own."""


class Cutter(ABC):
    """Reads the files of one language, and cuts holes of one construction into them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """End what it started."""

    @property
    def judged_by(self) -> str | None:
        """What says whether a file is one; None where that is the interpreter that builds."""
        return None

    @abstractmethod
    def decode(self, content: bytes | str | None) -> str | None:
        """A file's text, its line ends being "\\n"; None where it is none."""

    @abstractmethod
    def cuts(self, text: str, seed: int, sha256: str, count: int) -> Iterator[Cut]:
        """Up to ``count`` holes in a text. Raises Refused where none can be cut."""


def cutter(language: str, construction: str, version: str | None = None, judge: str | None = None) -> Cutter:
    """What cuts the holes of a construction into files of a language of the package.

    Args:
        language: Its name.
        construction: The name of the set.
        version: Of the language; None is the newest that can be judged here. Of Python there is none but that of the
            interpreter that runs this.
        judge: The command of another judge than the package's.

    Raises:
        LanguageError: There is no such language or version.
        DatasetError: The construction is not for that language.
        JudgeError: The language's own parser is not there.
    """
    if language == PYTHON:
        if version is not None or judge is not None:
            raise DatasetError(f"{PYTHON} is cut by the interpreter that runs this, and in its version")
        return PythonCutter(construction)
    return DefinedCutter(language, construction, version, judge)


def suffixes(language: str) -> tuple[str, ...]:
    """The suffixes of the files that are cut: of Python those of programs alone, not of stubs."""
    return (".py",) if language == PYTHON else Language.suffixes_of(language)


class PythonCutter(Cutter):
    """Python, by `ast` and `tokenize`."""

    def __init__(self, construction: str) -> None:
        self._construction = construction

    def close(self) -> None:
        """Nothing was started."""

    def decode(self, content: bytes | str | None) -> str | None:
        """As `Cutter.decode`."""
        return python_text.decode(content)

    def cuts(self, text: str, seed: int, sha256: str, count: int) -> Iterator[Cut]:
        """As `Cutter.cuts`."""
        return python.cuts(self._construction, python_text.PythonText(text), seed, sha256, count)


class DefinedCutter(Cutter):
    """Any other language of the package."""

    def __init__(self, language: str, construction: str, version: str | None, judge: str | None) -> None:
        """As `cutter`."""
        if construction not in defined.CONSTRUCTIONS:
            raise DatasetError(f"{construction} is not for {language}, which has {', '.join(defined.CONSTRUCTIONS)}")
        layout = read_builtin(language).spec.get("layout", {"rule": "none"})
        if layout.get("rule", "indent") != "none":
            raise LanguageError(f"{language}: holes are cut by brackets, and its blocks are indented")
        self._construction = construction
        versions = builtin_versions(language)
        versions.narrowed(version)  # refuses what is none
        if version == NEWEST:
            version = next(reversed(versions.known), None)
        started = programs.start(language, version, judge)
        self._judged_by, self._judge = started.title, started.judge
        self._lexemes = Lexemes(language, started.version)

    def close(self) -> None:
        """End the judge."""
        self._judge.close()

    @property
    def judged_by(self) -> str:
        """As `Cutter.judged_by`."""
        return self._judged_by

    def decode(self, content: bytes | str | None) -> str | None:
        """As `Cutter.decode`; the encoding is UTF-8."""
        try:
            text = content.decode() if isinstance(content, bytes) else content
            if text is not None:
                text.encode()  # lone surrogates
        except UnicodeError:
            return None
        return None if text is None else text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")

    def cuts(self, text: str, seed: int, sha256: str, count: int) -> Iterator[Cut]:
        """As `Cutter.cuts`."""
        file = DefinedText(text, self._lexemes)
        if self._judge.decided(text, False)[0] is not True:
            raise Refused("refused by the judge")
        return defined.cuts(self._construction, file, seed, sha256, count)
