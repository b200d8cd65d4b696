"""Record that the stages of the pipeline extend for one request, and its outcome."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from fim_server.language import Language, Stop
from fim_server.suggest.answer_cache import Answer

if TYPE_CHECKING:
    from fim_server.decoding.concurrent_prefill import ConcurrentPrefill
    from fim_server.decoding.loop.healing import Healing
    from fim_server.decoding.options import DecodeOptions
    from fim_server.decoding.results import Completion, Statistics
    from fim_server.models.model import FimModel
    from fim_server.models.pace import Pace
    from fim_server.models.reading import Lent
    from fim_server.suggest.context.prompts import KeptReadings
    from fim_server.suggest.context.sessions import Opened
    from fim_server.suggest.ranking.reasons import Suppression
    from fim_server.suggest.request import Request
    from fim_server.suggest.suggestion import Suggestion


@dataclass(slots=True)
class Costs:
    """Time that a request took, in milliseconds."""

    total_ms: float = 0.0
    debounce_ms: float = 0.0
    queue_ms: float = 0.0
    open_ms: float = 0.0
    prefill_ms: float = 0.0
    decode_ms: float = 0.0
    engine_ms: float = 0.0

    @property
    def server_ms(self) -> float:
        """Return the rest of the total."""
        named = self.debounce_ms + self.queue_ms + self.open_ms + self.prefill_ms + self.decode_ms + self.engine_ms
        return max(0.0, self.total_ms - named)


@dataclass(slots=True)
class PromptTokens:
    """Tokens of prompts, for all requests. Safe to use from several threads.

    Attributes:
        read: Tokens that the model read during a request.
        ahead: Tokens that it read before one.
        reused: Tokens that it had read already.
    """

    read: int = 0
    ahead: int = 0
    reused: int = 0
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def count(self, statistics: Statistics) -> None:
        with self._lock:
            self.read += statistics.prefilled_tokens
            self.reused += statistics.reused_tokens

    def count_ahead(self, tokens: int) -> None:
        """Count tokens that the model read before a request."""
        with self._lock:
            self.ahead += tokens

    def as_json(self) -> dict[str, int]:
        """Return the field `promptTokens` of the statistics."""
        return {"read": self.read, "ahead": self.ahead, "reused": self.reused}


@dataclass(slots=True)
class Work:
    """Outcome of a request.

    Attributes:
        answer: The answer.
        costs: The time it took.
        completions: The decoded texts.
        origin: `model` or `memory`, the project's.
    """

    answer: Answer
    costs: Costs = field(default_factory=Costs)
    completions: list[Completion] = field(default_factory=list)
    origin: str = "model"

    def count_decoding(self, hidden_ms: float = 0.0) -> None:
        """Add the times of the completions to the costs.

        ``hidden_ms``: time in which the model read while the session was opened. It costs nothing besides.
        """
        statistics = [completion.statistics for completion in self.completions]
        self.costs.prefill_ms = sum(entry.prefill_ms for entry in statistics)
        self.costs.open_ms = max(0.0, self.costs.open_ms - hidden_ms)
        self.costs.decode_ms = sum(entry.decode_ms for entry in statistics)
        self.costs.engine_ms = sum(entry.engine_wait_ms for entry in statistics)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The model, and the parts of it that the threads of a worker share."""

    model: FimModel
    pace: Pace
    readings: KeptReadings


@dataclass(slots=True)
class Job:
    """Record of one request, which each stage of the pipeline extends.

    Attributes:
        request: The request.
        loaded: The model.
        cancelled: Stops the work.
        began: Start of the work, then of the decoding, by ``time.perf_counter``. The deadline counts from there.
        language: Context: the language.
        healing: Context: the end of the left text that the model writes again.
        options: Context: options of decoding; the sources add their biases.
        readings: Context: prompts that the model has read.
        prefill: Context: the prefill, which runs while the session is opened.
        opened: Context: the session at the cursor.
        work: The outcome.
        suggestions: Postprocess: suggestions from the model's texts, then from all sources.
        loops: Postprocess: suggestions that repeat themselves.
        repeats: Postprocess: completions that stand near the cursor already.
        suppressed: All stages: texts that are no suggestions, and why.
    """

    request: Request
    loaded: Loaded
    cancelled: Stop
    began: float
    language: Language
    healing: Healing
    options: DecodeOptions
    readings: Lent
    prefill: ConcurrentPrefill
    opened: Opened
    work: Work
    suggestions: list[Suggestion] = field(default_factory=list)
    loops: list[Suggestion] = field(default_factory=list)
    repeats: list[Completion] = field(default_factory=list)
    suppressed: list[Suppression] = field(default_factory=list)

    @property
    def model(self) -> FimModel:
        return self.loaded.model

    @property
    def inside(self) -> str | None:
        """Return the kind of text around the cursor: `comment`, `string` or None."""
        return self.opened.session.inside

    @property
    def closers(self) -> str:
        """Return the closers right of the cursor that suggestions replace."""
        return self.request.split.right[: self.opened.covered]

    def left_ms(self) -> float | None:
        """Return the time until the deadline, in milliseconds; None without one."""
        deadline_ms = self.options.deadline_ms
        return None if deadline_ms is None else max(0.0, deadline_ms - 1000 * (time.perf_counter() - self.began))


@dataclass(frozen=True, slots=True)
class Handle:
    """A request under way, for the thread that waits for it.

    Attributes:
        future: The outcome; None if the request was cancelled.
        cancelled: Stops the work within milliseconds, or on torch within one forward pass.
        written: Returns the text that the model has written so far.
        end_line: Ends the model's text with the line that contains the given number of typed characters, if it
            continues after that line.
    """

    future: Future[Work | None]
    cancelled: Stop
    written: Callable[[], str] = lambda: ""
    end_line: Callable[[int], None] = lambda typed: None


@dataclass(frozen=True, slots=True)
class Explained:
    """Explanation of a cursor.

    Attributes:
        language: The language.
        opened: The session.
        candidates: The model's likeliest tokens: text, probability, whether it is allowed, and why not.
    """

    language: Language
    opened: Opened
    candidates: list[tuple[str, float, bool, str | None]]
