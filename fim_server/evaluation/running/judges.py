"""Judges of files by language: CPython for Python, each other language's own parser.

Where a parser is missing, the engine itself judges if the user allows it, and the run names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from fim_server.datasets.judging import programs
from fim_server.datasets.judging.programs import ASK_ENGINE, ASK_NONE, ENGINE, NOTHING
from fim_server.datasets.python.text import LANGUAGE as PYTHON
from fim_server.errors import JudgeError
from fim_server.evaluation.running.judge import Judge
from fim_server.language import Language
from fim_server.language.plain import PlainText


class Judging(Protocol):
    """Judge of the files of one language."""

    def parses(self, text: str, claimed: bool) -> bool:
        """Return whether a file parses; False also where that is unknown.

        ``claimed``, the engine's verdict, decides whether a slower second parser is asked.
        """

    def close(self) -> None:
        """End what was started."""


class ProgramJudge:
    """A program that answers as `fim_server.datasets.judging.judge` has it."""

    def __init__(self, language: str, version: str | None, named: str | None) -> None:
        """Starts it: the package's own for a version of the language, or the command that is named.

        Raises:
            JudgeError: There is none, or it does not answer as a judge does.
        """
        if named is None:
            missing = programs.unavailable(language)
            if missing is not None:
                raise JudgeError(
                    f"{missing}; --judge {language}=PROGRAM names another, and --judge {language}={ASK_ENGINE} has the "
                    "engine judge its own texts"
                )
        started = programs.start(language, version, named)
        self.title, self.version, self._judge = started.title, started.version, started.judge

    def parses(self, text: str, claimed: bool) -> bool:
        """See `Judging.parses`."""
        return self._judge.decided(text, claimed)[0] is True

    def close(self) -> None:
        """End the program."""
        self._judge.close()


class EngineJudge:
    """The engine's own verdict on whole files."""

    def __init__(self, language: Language) -> None:
        self._language = language

    def parses(self, text: str, claimed: bool) -> bool:
        """See `Judging.parses`."""
        return self._language.open("", "").check(text).complete

    def close(self) -> None:
        """Nothing was started."""


class AnyText:
    """Judge of a language without a grammar: every text is a file."""

    def __init__(self, language: str) -> None:
        """Raises JudgeError for a language with a grammar."""
        if language in Language.names():
            raise JudgeError(f"{language} has a grammar: {ASK_NONE} is for languages without one")

    def parses(self, text: str, claimed: bool) -> bool:
        """See `Judging.parses`."""
        return True

    def close(self) -> None:
        """Nothing was started."""


def languages_of(found: tuple[str, ...], named: Mapping[str, str]) -> tuple[str, ...]:
    """Return the languages of the samples that can be judged: those with a grammar, and those that need no judge.

    ``named``: as of :class:`Judges`.
    """
    known = Language.names()
    return tuple(name for name in found if name in known or named.get(name) == ASK_NONE)


class Judges:
    """The judges of some languages, and the languages themselves.

    Attributes:
        python: The version of the Python that judges Python; empty where none does.
        titles: Of all other languages, and of Python where another program judges it, what judges it.
        languages: Each language, in the version that its judge is of.
        versions: Of all languages but Python that have some, what that is.
    """

    def __init__(
        self,
        languages: tuple[str, ...],
        python: str | None,
        named: Mapping[str, str],
        version: str | None,
        versions: Mapping[str, str],
    ) -> None:
        """Starts them.

        Args:
            languages: Of which there are samples, each one of the package's.
            python: The Python that judges Python, or `ASK_ENGINE`; None is the one that runs this.
            named: By language the command of another judge, `ASK_ENGINE`, or `ASK_NONE` without a grammar.
            version: Of Python's grammar; None is the judge's.
            versions: Of other languages, by language; without one the newest that the judge knows.

        Raises:
            JudgeError: One of them cannot judge.
            LanguageError: There is no such version.
        """
        self.python = ""
        self.titles: dict[str, str] = {}
        self.languages: dict[str, Language] = {}
        self.versions: dict[str, str] = {}
        self._judging: dict[str, Judging] = {}
        try:
            for name in languages:
                if name == PYTHON and python != ASK_ENGINE:
                    own = Judge(python)
                    self._judging[name] = own
                    self.python = own.version
                    self.languages[name] = Language.load(name, version or version_of(own))
                    continue
                if named.get(name) == ASK_NONE:
                    self.languages[name] = PlainText(name)
                    self._judging[name] = AnyText(name)
                    self.titles[name] = NOTHING
                    continue
                asked = version if name == PYTHON else versions.get(name)
                known = Language.versions(name)
                if ASK_ENGINE in (python if name == PYTHON else None, named.get(name)):
                    self.languages[name] = Language.load(name, asked)
                    self._judging[name] = EngineJudge(self.languages[name])
                    self.titles[name] = ENGINE
                else:
                    Language.load(name, asked)  # what is no version is said before a judge is asked for it
                    program = ProgramJudge(name, asked, named.get(name))
                    self._judging[name] = program
                    self.titles[name] = program.title
                    self.languages[name] = Language.load(name, program.version)
                if known and name != PYTHON:
                    self.versions[name] = self.languages[name].version or known[-1]
        except BaseException:
            self.close()
            raise

    def parses(self, language: str, text: str, claimed: bool) -> bool:
        """Return whether a file of a language parses; ``claimed`` is the engine's verdict."""
        return self._judging[language].parses(text, claimed)

    def close(self) -> None:
        """End them."""
        for judging in self._judging.values():
            judging.close()


def version_of(judge: Judge) -> str | None:
    """The version of Python's grammar that a judge has; None, the newest, where it is newer than all that are known."""
    version = ".".join(judge.version.split(".")[:2])
    return version if version in Language.versions(PYTHON) else None
