"""Operations on a text: opening a session, and the questions to the session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from benchmarks.engine.corpus import Library
from benchmarks.engine.vocabularies import synthetic_tokens
from benchmarks.processes import (
    clock_of,
    forget_peak,
    peak_since_forgotten,
    release_free_memory,
    resident_memory,
    timed,
)
from fim_server.errors import SearchLimitError
from fim_server.language import Language, Matcher, Session, Verdict
from fim_server.language.shapes import SINGLE_LINE
from fim_server.tokens import masks
from fim_server.tokens.vocabulary import Vocabulary

OPEN, CHECK = "open", "check"

VOCABULARY_SIZE = 32_000
"""Tokens of the vocabulary, made from the library's text."""

VOCABULARY_CHARACTERS = 400_000

GAVE_UP = "gave up"
"""The answer of a search that passed its limit."""


@dataclass
class Kit:
    """Language of the sessions with the vocabulary that they need, each loaded once."""

    language: Language

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """A vocabulary from the standard library's text, its masks ready for the language."""
        text = Library.of_this_interpreter().text(VOCABULARY_CHARACTERS)
        vocabulary = synthetic_tokens(text, VOCABULARY_SIZE).vocabulary
        masks.prepare(self.language, vocabulary)
        return vocabulary

    def prepare(self) -> None:
        """Loads what is loaded on first use: processes that are forked then have it."""
        assert self.vocabulary.size
        self.language.shaped(SINGLE_LINE)


@cache
def kit_of(language_name: str) -> Kit:
    """The kit of a language that comes with the package.

    Raises:
        LanguageError: There is no such language.
    """
    return Kit(Language.load(language_name))


# --- the operations -----------------------------------------------------------------------------------------------


def _check(kit: Kit, session: Session) -> str:
    return verdict_name(session.check(""))


def _mask(kit: Kit, session: Session) -> str:
    return _filled(kit, session.matcher(kit.vocabulary))


def _filled(kit: Kit, matcher: Matcher) -> str:
    words = np.zeros(-(-kit.vocabulary.size // 32), dtype=np.uint32)
    matcher.fill_mask(words)
    return f"{int(np.unpackbits(words.view(np.uint8)).sum())} tokens"


def _shortest_completion(kit: Kit, session: Session) -> str:
    found = session.start().shortest_completion()
    return "none" if found is None else f"{len(found)} characters"


def _plan(kit: Kit, session: Session) -> str:
    found = session.matcher(kit.vocabulary).plan()
    return "none" if found is None else f"{len(found)} tokens"


def _explain(kit: Kit, session: Session) -> str:
    session.open_constructs()
    return "" if session.start().explain(kit.language.spelling.placeholder).rejected_at is None else "refused"


def _one_line(kit: Kit, session: Session) -> str:
    return _filled(kit, session.matcher(kit.vocabulary, SINGLE_LINE))


QUESTIONS: dict[str, Callable[[Kit, Session], str]] = {
    CHECK: _check,
    "mask": _mask,
    "completion": _shortest_completion,
    "plan": _plan,
    "explain": _explain,
    "line": _one_line,
}
"""Questions to a session.

They are the verdict on the empty middle, the first mask, a shortest completion and a plan. Then come an explanation
of the placeholder with the open constructs, and a session for middles of one line with its first mask.
"""

OPERATIONS = (OPEN, *QUESTIONS)
NEED_VOCABULARY = frozenset({"mask", "plan", "line"})
"""Questions for which a vocabulary is made."""


def verdict_name(verdict: Verdict) -> str:
    """A verdict in one word."""
    return "complete" if verdict.complete else "viable" if verdict.viable else "refused"


# --- in a process of its own --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """A text with a cursor, and what to measure of it.

    Attributes:
        language: A language's name.
        left: Left of the cursor.
        right: Right of it.
        small: The same of next to no repetitions, for what every session takes.
        questions: Names of `QUESTIONS`, in the order in which they are asked.
        cpu_time: Whether processor time is counted instead of the clock's.
    """

    language: str
    left: str
    right: str
    small: tuple[str, str]
    questions: tuple[str, ...]
    cpu_time: bool


@dataclass(frozen=True)
class Measured:
    """Cost of an operation.

    Attributes:
        operation: One of `OPERATIONS`.
        seconds: Its time.
        fixed: Its time with next to no repetitions, in seconds.
        peak: Growth of the process in bytes; None where the system does not report it.
        answer: The answer in short; `GAVE_UP` where a search passed its limit.
    """

    operation: str
    seconds: float
    fixed: float
    peak: int | None
    answer: str


def measured(job: Job) -> Iterator[Measured]:
    """Opens a session and asks it; to be run in a process of its own, which has the kit.

    The small text goes first, twice: what only a language's first session pays for is not what a text's size costs. The
    text itself is opened once, since a language remembers what it has read.
    """
    kit, clock = kit_of(job.language), clock_of(job.cpu_time)

    def open_session(left: str, right: str) -> Session:
        return kit.language.open(left, right)

    def ask(question: str, session: Session) -> str:
        with suppress(SearchLimitError):
            return QUESTIONS[question](kit, session)
        return GAVE_UP

    smalls = [timed(clock, open_session, *job.small) for _ in range(2)]
    before = start_counting()
    session, seconds = timed(clock, open_session, job.left, job.right)
    yield Measured(OPEN, seconds, smalls[-1][1], growth_since(before), session.guarantee)
    for question in job.questions:
        _, fixed = [timed(clock, ask, question, small) for small, _ in smalls][-1]
        before = start_counting()
        answer, seconds = timed(clock, ask, question, session)
        yield Measured(question, seconds, fixed, growth_since(before), answer)


def start_counting() -> int | None:
    """Bytes that the process holds now, which count as its peak from here on."""
    release_free_memory()
    forget_peak()
    return resident_memory()


def growth_since(before: int | None) -> int | None:
    """By how many bytes the process has grown at most."""
    peak = peak_since_forgotten()
    return None if before is None or peak is None else max(peak - before, 0)
