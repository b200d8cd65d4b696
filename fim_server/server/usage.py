"""What the server has done since it started: counts and latencies, kept in memory and told to nobody but the user."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import quantiles
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.suggest.answer_cache import Suggestion
    from fim_server.suggest.job import Costs

RECENT = 200
"""Latencies that are kept."""

OFFERS = 512
"""Offers whose acceptance is still counted."""

LONGEST_DEBOUNCE_MS = 150.0

DEBOUNCE_SHARE = 0.25
"""Pause before an automatic request, as a share of the time that the model takes: a request that the next keystroke
cancels has then wasted little, and one that stands is late by little."""


@dataclass(slots=True)
class Usage:
    """Counts and latencies of one server."""

    requests: int = 0
    answered_from_cache: int = 0
    shown: int = 0
    """Answers with offers, each once however often it was sent again while it was typed. Alternatives do not count."""
    accepted: int = 0
    accepted_characters: int = 0
    cancelled: int = 0
    superseded: int = 0
    """Requests that a newer one, or a change of the document, has overtaken."""
    failed: int = 0
    replaced: int = 0
    """Workers that have not answered and were replaced."""
    since: datetime = field(default_factory=lambda: datetime.now(UTC))
    _totals: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _servers: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _models: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _offered: OrderedDict[str, int] = field(default_factory=OrderedDict)

    def count_answer(self, costs: Costs, from_model: bool) -> None:
        """Note what an answered request took."""
        self._totals.append(costs.total_ms)
        self._servers.append(costs.server_ms + costs.open_ms + costs.engine_ms)
        if from_model and costs.prefill_ms + costs.decode_ms > 0:
            self._models.append(costs.prefill_ms + costs.decode_ms)

    def count_offers(self, offers: Sequence[Suggestion]) -> None:
        """Note that offers were sent, alternatives of each other."""
        self.shown += all(offer.identity not in self._offered for offer in offers)
        for offer in offers:
            # What was typed of an offer is not accepted: the rest keeps the offer's name, and its length counts.
            self._offered[offer.identity] = len(offer.text)
        while len(self._offered) > OFFERS:
            self._offered.popitem(last=False)

    def count_acceptance(self, identity: str) -> None:
        """Note that an offer was accepted; once, whatever an editor says."""
        characters = self._offered.pop(identity, None)
        if characters is not None:
            self.accepted += 1
            self.accepted_characters += characters

    @property
    def saved_keystrokes(self) -> int:
        """Accepted characters, less the one key that each acceptance takes."""
        return self.accepted_characters - self.accepted

    def debounce_ms(self, since_change_ms: float | None) -> float:
        """How long to wait before an automatic request, ``since_change_ms`` after the change before the last one.

        Nothing where the model is fast, where nothing is known of it, or where somebody types slower than it writes.
        """
        if not self._models or since_change_ms is None:
            return 0.0
        typical = percentile(self._models, 50)
        if since_change_ms > typical:
            return 0.0
        return min(LONGEST_DEBOUNCE_MS, DEBOUNCE_SHARE * typical)

    def as_json(self) -> dict[str, Any]:
        """The answer of `fim-server.statistics`."""
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
    """The percentile of that rank, from 1 to 99; 0 of nothing."""
    if len(values) < 2:
        return values[0] if values else 0.0
    return quantiles(values, n=100, method="inclusive")[rank - 1]


def rounded(milliseconds: float) -> float:
    """Milliseconds for people and logs."""
    return round(milliseconds, 1)
