"""Metrics of the HTTP server, in Prometheus' text format. They hold no text, path or name of a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from fim_server.language import Language
from fim_server.server.http.languages import UNKNOWN
from fim_server.system.process import resident_bytes

if TYPE_CHECKING:
    from fim_server.server.http.answering import Answerer
    from fim_server.server.http.wanted import Served

SECONDS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0)
"""Bounds of the histogram's buckets."""

LANGUAGES = frozenset((*Language.names(), UNKNOWN))
"""Languages with a count of their own: clients choose other names freely."""


class Metrics:
    """Metrics of one server."""

    def __init__(self, answerer: Answerer) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter("fim_http_requests", "Requests.", ("path", "status"), registry=registry)
        self._texts = Counter(
            "fim_http_answers", "Answers.", ("language", "guarantee", "origin", "has_text"), registry=registry
        )
        self._tokens = Counter("fim_http_tokens", "Tokens of the model.", ("kind",), registry=registry)
        self._seconds = Histogram(
            "fim_http_answer_seconds", "Time from a request to its answer.", buckets=SECONDS, registry=registry
        )
        gauges = {
            "fim_http_running": ("Requests that are being answered.", lambda: answerer.queue.running),
            "fim_http_waiting": ("Requests that wait for their turn.", lambda: answerer.queue.waiting),
            "fim_http_clients": ("Clients with documents.", lambda: len(answerer.clients)),
            "fim_resident_bytes": ("Memory of the process.", lambda: resident_bytes() or 0),
        }
        for name, (meaning, read) in gauges.items():
            Gauge(name, meaning, registry=registry).set_function(read)

    def count(self, path: str, status: int) -> None:
        """Count a request; ``path``: of a known endpoint."""
        self._requests.labels(path, str(status)).inc()

    def count_answer(self, served: Served, seconds: float) -> None:
        """Count an answer."""
        language = served.language if served.language in LANGUAGES else "other"
        has_text = "true" if served.texts[0].text else "false"
        self._texts.labels(language, served.guarantee, served.origin, has_text).inc()
        self._seconds.observe(seconds)
        if (statistics := served.statistics) is not None:
            self._tokens.labels("prompt").inc(statistics.prefilled_tokens)
            self._tokens.labels("reused").inc(statistics.reused_tokens)
            self._tokens.labels("generated").inc(statistics.tokens)

    def page(self) -> bytes:
        """Return the page."""
        return bytes(generate_latest(self._registry))
