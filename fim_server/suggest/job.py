"""What the worker is asked, and what it answers: requests, what they cost, and what came of them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING

from fim_server.language import Language, Stop
from fim_server.suggest.answer_cache import Answer, Suggestion
from fim_server.suggest.context.sessions import Opened
from fim_server.text.document import Split
from fim_server.text.notebook import CellContexts, healable

if TYPE_CHECKING:
    from fim_server.decoding.results import Completion, Statistics
    from fim_server.suggest.settings import ServerSettings

LANGUAGES = frozenset(Language.names())


@dataclass(frozen=True, slots=True)
class Request:
    """What one request is about, taken before anything else could change it."""

    uri: str
    split: Split
    language_id: str
    """The editor's name of the language."""
    path: str
    """Names the language where the editor's name is unknown."""
    invoked: bool
    single_line: bool
    settings: ServerSettings
    word_ends: bool = False
    """Whether the word left of the cursor is whole: chosen from a list, not typed."""
    cell: CellContexts | None = None
    """The contexts of the cursor's cell, where it is in one; the split is then the notebook's program."""

    @property
    def contexts(self) -> Split:
        """Texts around the cursor that have to parse."""
        return self.split if self.cell is None else replace(self.split, left=self.cell.left, right=self.cell.right)

    @property
    def named(self) -> Split:
        """Texts around the cursor in which names are looked up."""
        return self.split if self.cell is None else replace(self.split, left=self.cell.given + self.split.left)

    @property
    def offset(self) -> int:
        """Offset of the cursor in its document."""
        return len(self.own.left)

    @property
    def own(self) -> Split:
        """Texts of the document itself around the cursor."""
        return self.split if self.cell is None else replace(self.split, left=self.cell.before, right=self.cell.after)

    @property
    def above(self) -> int:
        """Number of lines before the cursor that are other cells of a notebook."""
        return self.split.left.count("\n") - self.own.left.count("\n")

    @property
    def healable(self) -> int | None:
        """Number of characters before the cursor that may be written again; None for any number."""
        return None if self.cell is None else healable(self.split.left, self.cell.left)

    def language(self) -> Language:
        """The document's language. Raises LanguageError if it is not one of ours."""
        name = self.language_id if self.language_id in LANGUAGES else None
        return Language.for_path(self.path, name, self.settings.versions)

    @property
    def key(self) -> tuple[str, str]:
        """What answers to other cursors must share with this one to hold here."""
        return self.uri, self.language_id if self.cell is None else f"{self.language_id} {self.cell.key}"


@dataclass(slots=True)
class Costs:
    """Where the time of a request went, in milliseconds."""

    total_ms: float = 0.0
    debounce_ms: float = 0.0
    queue_ms: float = 0.0
    open_ms: float = 0.0
    prefill_ms: float = 0.0
    decode_ms: float = 0.0
    engine_ms: float = 0.0

    @property
    def server_ms(self) -> float:
        """What is left when everything named is taken from the total."""
        named = self.debounce_ms + self.queue_ms + self.open_ms + self.prefill_ms + self.decode_ms + self.engine_ms
        return max(0.0, self.total_ms - named)


@dataclass(slots=True)
class PromptTokens:
    """Tokens of prompts, of all requests together, those that came to nothing among them.

    Attributes:
        read: Read while somebody waited.
        ahead: Read before anybody asked.
        reused: Not read, because they had been.
    """

    read: int = 0
    ahead: int = 0
    reused: int = 0
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def count(self, statistics: Statistics) -> None:
        """Take a completion into account. From any thread."""
        with self._lock:
            self.read += statistics.prefilled_tokens
            self.reused += statistics.reused_tokens

    def count_ahead(self, tokens: int) -> None:
        """Take into account what was read before anybody asked. From any thread."""
        with self._lock:
            self.ahead += tokens

    def as_json(self) -> dict[str, int]:
        """The field `promptTokens` of the statistics."""
        return {"read": self.read, "ahead": self.ahead, "reused": self.reused}


@dataclass(slots=True)
class Work:
    """What came of a request."""

    answer: Answer
    costs: Costs = field(default_factory=Costs)
    completions: list[Completion] = field(default_factory=list)
    origin: str = "model"
    """Where it comes from: `model`, or `memory`, the project's."""

    def count_decoding(self, hidden_ms: float = 0.0) -> None:
        """Take the time of the completions into the costs; ``hidden_ms``: of reading, while the session was opened.

        What is done while the model reads costs nothing besides.
        """
        statistics = [completion.statistics for completion in self.completions]
        self.costs.prefill_ms = sum(entry.prefill_ms for entry in statistics)
        self.costs.open_ms = max(0.0, self.costs.open_ms - hidden_ms)
        self.costs.decode_ms = sum(entry.decode_ms for entry in statistics)
        self.costs.engine_ms = sum(entry.engine_wait_ms for entry in statistics)


@dataclass(frozen=True, slots=True)
class Job:
    """A request under way."""

    future: Future[Work | None]
    cancelled: Stop
    """Stops the work when it is set: within some milliseconds, or, on torch, within one forward pass of the model."""
    written: Callable[[], str] = lambda: ""
    """What the model has written for it so far, where it is being worked at."""
    end_line: Callable[[int], None] = lambda typed: None
    """Has the model end with the line in which the first so many characters of what it writes end, if it goes on at all
    after that: who has typed these wants no more."""


@dataclass(frozen=True, slots=True)
class Explained:
    """What there is to say about a cursor."""

    language: Language
    opened: Opened
    candidates: list[tuple[str, float, bool, str | None]]
    """Text, probability, whether it is allowed, and why not."""


def answer_of(
    request: Request, suggestions: tuple[Suggestion, ...], reason: str | None = None, lasting: bool = True
) -> Answer:
    """The answer to a request."""
    return Answer(
        key=request.key,
        left=request.split.left,
        right=request.split.right,
        single_line=request.single_line,
        suggestions=suggestions,
        complete=request.invoked,
        word_ends=request.word_ends,
        reason=reason,
        above=request.above,
        lasting=lasting,
    )
