"""Counts and latencies since the server started, kept in memory and shown to the user only."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fim_server.server.constants import SERVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.suggest.job import Costs
    from fim_server.suggest.suggestion import Suggestion

RECENT = 200
"""Latest latencies that are kept."""

MOST_SENT = 512
"""Latest suggestions whose acceptance is counted."""


@dataclass(slots=True)
class Usage:
    """Counts and latencies of one server.

    Attributes:
        shown: Answers with suggestions, once each, however often they are sent again while the user types along.
        superseded: Requests overtaken by a newer one or by a change of the document.
        replaced: Stuck workers that were replaced.
    """

    requests: int = 0
    answered_from_cache: int = 0
    shown: int = 0
    accepted: int = 0
    accepted_characters: int = 0
    cancelled: int = 0
    superseded: int = 0
    failed: int = 0
    replaced: int = 0
    since: datetime = field(default_factory=lambda: datetime.now(UTC))
    _totals: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _servers: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _models: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _sent: OrderedDict[str, int] = field(default_factory=OrderedDict)

    def count_answer(self, costs: Costs, from_model: bool) -> None:
        self._totals.append(costs.total_ms)
        self._servers.append(costs.server_ms + costs.open_ms + costs.engine_ms)
        if from_model and costs.prefill_ms + costs.decode_ms > 0:
            self._models.append(costs.prefill_ms + costs.decode_ms)

    def count_sent(self, suggestions: Sequence[Suggestion]) -> None:
        """Count the suggestions of an answer, which are alternatives."""
        self.shown += all(suggestion.identity not in self._sent for suggestion in suggestions)
        for suggestion in suggestions:
            # The typed part of a suggestion is not accepted: the rest keeps its identity, and its length counts.
            self._sent[suggestion.identity] = len(suggestion.text)
        while len(self._sent) > MOST_SENT:
            self._sent.popitem(last=False)

    def count_acceptance(self, identity: str) -> None:
        """Count an accepted suggestion, once."""
        characters = self._sent.pop(identity, None)
        if characters is not None:
            self.accepted += 1
            self.accepted_characters += characters

    @property
    def saved_keystrokes(self) -> int:
        """Accepted characters, less the one key that each acceptance takes."""
        return self.accepted_characters - self.accepted

    def debounce_ms(self, since_change_ms: float | None) -> float:
        """Return the debounce of an automatic request, ``since_change_ms`` after the change before the last one.

        It is 0 if the user types slower than the model answers, or if either speed is unknown.
        """
        if not self._models or since_change_ms is None:
            return 0.0
        typical = percentile(self._models, 50)
        if since_change_ms > typical:
            return 0.0
        return min(SERVER.longest_debounce_ms, SERVER.debounce_share * typical)

    def as_json(self) -> dict[str, Any]:
        """Return the answer of `fim-server.statistics`."""
        return {
            "requests": self.requests,
            "answeredFromCache": self.answered_from_cache,
            "shown": self.shown,
            "accepted": self.accepted,
            "acceptedCharacters": self.accepted_characters,
            "savedKeystrokes": self.saved_keystrokes,
            "cancelled": self.cancelled,
            "superseded": self.superseded,
            "failed": self.failed,
            "replaced": self.replaced,
            "latency": {
                "p50Ms": rounded(percentile(self._totals, 50)),
                "p95Ms": rounded(percentile(self._totals, 95)),
                "serverP95Ms": rounded(percentile(self._servers, 95)),
            },
            "since": self.since.isoformat(timespec="seconds").replace("+00:00", "Z"),
        }


def percentile(values: Sequence[float], rank: int) -> float:
    """Return the percentile of a rank from 1 to 99; 0 of no values."""
    if len(values) < 2:
        return values[0] if values else 0.0
    from statistics import quantiles  # takes longer to import than a user waits for it

    return quantiles(values, n=100, method="inclusive")[rank - 1]


def rounded(milliseconds: float) -> float:
    """Round milliseconds for logs and messages."""
    return round(milliseconds, 1)
