"""Report of `./dev bench server`: times of requests by kind, their parts, and a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.report import megabytes, page, page_head, paragraph, percentile, percentiles, setting_lines, shown
from benchmarks.server.scenarios import MODEL_PARTS, OWN_PARTS, Played, Request
from fim_server.text.terminal import Table

ITEM_GOAL, FIRST_GOAL, OWN_GOAL, CANCEL_GOAL = "p50 300", "p50 700", "p95 5", "p95 50"


@dataclass(frozen=True)
class Row:
    """Times of one kind, in milliseconds."""

    scenario: str
    what: str
    n: int
    p50: float | None
    p95: float | None
    max: float | None
    goal: str = ""

    @classmethod
    def of(cls, scenario: str, what: str, values: Sequence[float], goal: str = "") -> Row:
        """The figures of some values."""
        p50, p95, most = percentiles(values, 0.5, 0.95, 1.0)
        return cls(scenario, what, len(values), p50, p95, most, goal)

    def cells(self) -> tuple[str, ...]:
        """A line of the table."""
        figures = map(shown, (self.p50, self.p95, self.max))
        return self.scenario, self.what, f"{self.n:,}", *figures, self.goal


def two_figures(row: Row) -> str:
    """The middle and the upper end of some times."""
    return f"p50 {shown(row.p50)} ms, p95 {shown(row.p95)} ms"


def share_with_item(played: Played) -> float:
    """The share of the keystrokes after which an item was there before the next key."""
    requests = [one for one in played.requests if one.after != "invoked"]
    return sum(one.outcome == "answered" and one.items > 0 for one in requests) / max(played.counts.keystrokes, 1)


def is_automatic(request: Request) -> bool:
    return request.outcome == "answered" and request.after != "invoked"


def is_from_model(request: Request) -> bool:
    return is_automatic(request) and request.origin == "model"


def by_reuse(requests: Sequence[Request]) -> Iterator[tuple[str, list[Request]]]:
    """Requests by what the server can have read for the one before."""
    first = [one for one in requests if one.after in ("opened", "moved")]
    rest = [one for one in requests if one.after not in ("opened", "moved")]
    yield "the first in a file or at a place", first
    yield "later, the right side as before", [one for one in rest if one.same_right]
    yield "later, the right side changed", [one for one in rest if not one.same_right]


ONE_LINE = "item of one line, from the model"
ITEM = "item, from the model"
FIRST = "first answer of the model in a file"

KINDS: tuple[tuple[str, Callable[[Request], bool], str], ...] = (
    ("every answer", is_automatic, ""),
    (ITEM, lambda one: is_from_model(one) and one.items > 0, ITEM_GOAL),
    (ONE_LINE, lambda one: is_from_model(one) and one.lines == 1, ITEM_GOAL),
    ("item of several lines, from the model", lambda one: is_from_model(one) and one.lines > 1, ""),
    ("nothing to offer, says the model", lambda one: is_from_model(one) and not one.items, ""),
    (FIRST, lambda one: is_from_model(one) and one.after == "opened", FIRST_GOAL),
    ("first answer of the model at another place", lambda one: is_from_model(one) and one.after == "moved", ""),
    ("from the cache", lambda one: is_automatic(one) and one.origin == "cache", ""),
    ("prepared before (prefetch)", lambda one: is_automatic(one) and one.origin == "prefetch", ""),
    ("still being prepared (prefetch)", lambda one: is_automatic(one) and one.origin == "joined", ""),
    ("no model asked (comment, string, word)", lambda one: is_automatic(one) and one.origin == "none", ""),
    (
        "invoked: up to three items, from the model",
        lambda one: one.outcome == "answered" and one.after == "invoked" and one.origin == "model",
        "",
    ),
)
"""Kinds of requests: name, the requests that belong to it, and the goal."""

CANCEL_KINDS = (
    ("cancelled: from there to the error", "cancelled", CANCEL_GOAL),
    ("cancelled, but already answered", "late", ""),
)

SHORT_HEADER = ("figure", "result", "goal, ms")
TIMES_HEADER = ("scenario", "request", "n", "p50", "p95", "max", "goal")
PARTS_HEADER = ("of", "part", "n", "p50", "p95", "max", "goal")
KEYS_HEADER = (
    "scenario",
    "keystrokes",
    "cache",
    "prefetch",
    "no model asked",
    "not asked",
    "without the model",
    "model: item",
    "model: nothing",
    "cancelled",
    "failed",
    "accepted",
    "followed",
)
PROCESS_HEADER = (
    "scenario",
    "load before",
    "s to ready",
    "CPU s to ready",
    "s typing",
    "CPU s typing",
    "CPU ms a key",
    "MB at end",
)


@dataclass
class Report:
    """Report: settings and figures."""

    setting: dict[str, str]
    played: list[Played] = field(default_factory=list)

    def times(self) -> Iterator[Row]:
        """Times from request to answer, by scenario and kind."""
        for played in self.played:
            name = played.scenario.name
            for what, belongs, goal in KINDS:
                values = [request.milliseconds for request in played.requests if belongs(request)]
                if values:
                    yield Row.of(name, what, values, goal)
            for what, outcome, goal in CANCEL_KINDS:
                values = [
                    request.cancel_milliseconds
                    for request in played.requests
                    if request.outcome == outcome and request.cancel_milliseconds is not None
                ]
                if values:
                    yield Row.of(name, what, values, goal)

    def shares(self) -> Iterator[Row]:
        """Yield the shares of the answers' time, as the server reports them, over all scenarios."""
        known = [
            one
            for played in self.played
            for one in played.requests
            if is_automatic(one) and one.latency and one.own is not None
        ]
        model = [one for one in known if one.origin == "model"]
        kinds = (
            ("every answer", known, OWN_GOAL),
            ("answers of the model", model, OWN_GOAL),
            ("answers from memory", [one for one in known if one.origin in ("cache", "prefetch")], OWN_GOAL),
        )
        for name, requests, goal in kinds:
            yield Row.of(name, "server's own share", [one.own or 0.0 for one in requests], goal)
            outside = [one.milliseconds - one.latency["totalMs"] for one in requests]
            yield Row.of(name, "outside the server's clock", outside)
        for part in (*OWN_PARTS, *MODEL_PARTS):
            yield Row.of("answers of the model", part.removesuffix("Ms"), [one.latency[part] for one in model])
        for what, requests in by_reuse(model):
            yield Row.of(what, "prefill", [one.latency["prefillMs"] for one in requests])
            yield Row.of(what, "server's own share", [one.own or 0.0 for one in requests])

    def short(self) -> Iterator[tuple[str, ...]]:
        """The figures that stand for all the others."""
        for row in self.times():
            if row.what in (ITEM, FIRST, CANCEL_KINDS[0][0]):
                yield (f"{row.what} ({row.scenario})", two_figures(row), row.goal)
        own = next(self.shares())
        yield ("server's own share of an answer (all scenarios)", two_figures(own), own.goal)
        for played, cells in zip(self.played, self.keys(), strict=True):
            named = dict(zip(KEYS_HEADER, cells, strict=True))
            value = f"cache {named['cache']}, prefetch {named['prefetch']}"
            yield (f"keystrokes answered from memory ({played.scenario.name})", value, "")
            with_item = share_with_item(played)
            yield (f"keystrokes with an item ({played.scenario.name})", f"{100 * with_item:.1f} %", "")
            if played.prompt_tokens is not None:
                counted = played.prompt_tokens
                each = {name: counted[name] / max(played.counts.keystrokes, 1) for name in ("read", "ahead", "reused")}
                value = (
                    f"{each['read']:.1f} while the user waits, {each['ahead']:.1f} ahead; {each['reused']:.0f} reused"
                )
                yield (f"prompt tokens read a keystroke ({played.scenario.name})", value, "")
        ready = percentile([played.ready for played in self.played], 0.5)
        memory = max((played.memory for played in self.played if played.memory is not None), default=None)
        yield ("from the server's start until it is ready", f"{shown(ready)} s", "")
        yield ("memory of the server at the end", f"{shown(megabytes(memory))} MB", "")

    def keys(self) -> Iterator[tuple[str, ...]]:
        """Results of the keystrokes, in shares of them."""
        for played in self.played:
            counts = played.counts
            requests = [one for one in played.requests if one.after != "invoked"]
            answered = [one for one in requests if one.outcome == "answered"]

            def of(*origins: str, among: list[Request] = answered) -> list[Request]:
                return [one for one in among if one.origin in origins]

            model = of("model", "joined")
            saved = len(of("cache")), len(of("prefetch")), len(of("none")), counts.unasked
            shares = (
                *saved,
                sum(saved),
                sum(one.items > 0 for one in model),
                sum(one.items == 0 for one in model),
                sum(one.outcome in ("cancelled", "late") for one in requests),
                sum(one.outcome == "failed" for one in requests),
            )
            yield (
                played.scenario.name,
                f"{counts.keystrokes:,}",
                *(f"{100 * share / max(counts.keystrokes, 1):.1f} %" for share in shares),
                f"{counts.accepted} ({counts.accepted_characters} characters)",
                f"{counts.followed}",
            )

    def processes(self) -> Iterator[tuple[str, ...]]:
        """Resources of the server's process."""
        for played in self.played:
            memory = megabytes(played.memory)
            keys = max(played.counts.keystrokes, 1)
            each = None if played.cpu_typing is None else 1000 * played.cpu_typing / keys
            figures = (played.load, played.ready, played.cpu_loading, played.seconds, played.cpu_typing, each, memory)
            yield played.scenario.name, *map(shown, figures)

    def tables(self) -> Iterator[tuple[str, str, Table]]:
        """Titles, explanations and tables."""
        times, parts = ([row.cells() for row in rows] for rows in (self.times(), self.shares()))
        tables = (
            ("In short", Table(SHORT_HEADER, list(self.short()))),
            ("From request to answer, in ms", Table(TIMES_HEADER, times, range(2, 6))),
            ("Where the server says the time went, in ms", Table(PARTS_HEADER, parts, range(2, 6))),
            ("What became of the keystrokes", Table(KEYS_HEADER, list(self.keys()), range(1, 11))),
            ("The server's process", Table(PROCESS_HEADER, list(self.processes()), range(1, 8))),
        )
        for (title, table), explanation in zip(tables, TABLES_EXPLAINED, strict=True):
            yield title, explanation, table

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        scenarios = []
        for played in self.played:
            entry = asdict(played)
            entry["scenario"] = played.scenario.name
            for request, written in zip(played.requests, entry["requests"], strict=True):
                written |= {"origin": request.origin, "own": request.own}
            scenarios.append(entry)
        return {
            "setting": self.setting,
            "times": [asdict(row) for row in self.times()],
            "parts": [asdict(row) for row in self.shares()],
            "scenarios": scenarios,
        }

    def parts(self) -> Iterator[str | Table]:
        """The report as lines of text and tables."""
        yield from setting_lines(self.setting)
        for title, _, table in self.tables():
            yield ""
            yield f"{title}:"
            yield table

    def as_markdown(self) -> str:
        """The report as a page of `docs/results`."""
        lines = [*page_head("The server while a user types", self.setting, EXPLAINED)]
        for played in self.played:
            lines += paragraph(f"- **{played.scenario.name}**: {played.scenario.explanation}", indent="  ")
        for title, explanation, table in self.tables():
            lines += ["", f"## {title}", "", *paragraph(explanation), "", *table.markdown()]
        return page(lines)


EXPLAINED = """
Code is taken out of files (the rest of a line, a line, a block, the arguments of a call) and typed again, 25 keystrokes
of it at most, through the real protocol, to a server process of its own for each scenario. The editor is played as VS
Code is: brackets and quotes close by themselves, each keystroke is a change, and 50 ms after it comes an automatic
request, which is cancelled if the next keystroke comes before the answer. Times between keys are log-normal, with
pauses for thought. An offer that is what the file says is accepted most of the time, whole or by a word; the embedded
model is weak, so that is rare. Percentiles are measured values.
"""

TABLES_EXPLAINED = (
    """
Of the figures below, those that goals were set for.
""",
    """
From the moment the request is written to the moment its answer is read, at the editor's end; the 50 ms before the
request are not in it. An item may have several lines wherever the cursor is at a line's end. In the scenarios that wait
for nothing only requests that the next key left time for have an answer, so the slow ones are missing there.
""",
    """
The server's own share is the total without its own pause (debounce), waiting for the worker (queue), and the model
(prefill and decode): open and engine, which are the grammar's, and the server's rest. What lies outside the server's
clock is the reading and writing of messages at both ends, and the pipe between them. A request that found its answer
already being prepared is left out: its parts began before it. The right side is the text right of the cursor, which
comes first in the prompt: what closes by itself changes it, and the model reads all of the prompt anew. What was asked
for explicitly (invoked) is left out.
""",
    """
Shares of the keystrokes (acceptances and removals count as one each). Not asked: the next key came within the 50 ms.
Without the model: the four columns before it. Failed: an error that is not the cancellation's.
""",
    """
Load before: the machine's when the server was started, by which it chooses the model's threads. Ready: from the start
of the process to the status `ready`. Processor time is of all the server's threads.
""",
)
