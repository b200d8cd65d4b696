"""Scenarios of a typing user, and the results of their requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from benchmarks.server.lsp_client import CANCELLED, Asked

BURST = 0.4
"""Keys of a burst are apart by this share of the interval."""


@dataclass(frozen=True)
class Scenario:
    """Manner of typing."""

    name: str
    waits: bool
    """True to wait for each answer before the next key."""
    follows: bool = False
    """True to follow suggestions that are not the text to write."""
    pace: float = 1.0
    """Time between keys, as a share of the interval."""
    explanation: str = ""


SCENARIOS = (
    Scenario(
        "reads",
        waits=True,
        explanation="Types the file's own text, at least the interval apart, and waits for every answer before the "
        "next key; accepts what agrees with the file. So slow answers count like fast ones: the figures to compare.",
    ),
    Scenario(
        "follows",
        waits=True,
        follows=True,
        explanation="The same, but some of the offers are followed wherever they lead (accepted whole, accepted by a "
        "word, or typed for a few characters), then taken out again: what the memory of offers and prefetching do for "
        "a user whose model is right more often than the embedded one.",
    ),
    Scenario(
        "types",
        waits=False,
        explanation="Types the file's own text at a human pace and waits for nothing; what the next key overtakes is "
        "cancelled, and has no time of an answer.",
    ),
    Scenario("bursts", waits=False, pace=BURST, explanation="The same, but faster: most requests are cancelled."),
)

MODEL_PARTS = ("debounceMs", "queueMs", "prefillMs", "decodeMs")
OWN_PARTS = ("openMs", "engineMs", "serverMs")


@dataclass(frozen=True)
class Item:
    """An offer on the screen."""

    text: str
    covered: int
    command: dict[str, Any] | None


@dataclass
class Request:
    """One request as the editor saw it; times in milliseconds."""

    scenario: str
    after: str
    """`key`, `accepted`, `removed`, `moved` (to another place), `opened` (a file), or `invoked`."""
    milliseconds: float = 0.0
    outcome: str = ""
    """`answered`, `cancelled` (with an error, as asked for), `late` (answered although it was cancelled), or
    `failed`."""
    cancel_milliseconds: float | None = None
    """From the cancellation to the answer."""
    items: int = 0
    lines: int = 0
    """Lines of the first item."""
    last: dict[str, Any] | None = None
    same_right: bool = False
    """True if the text right of the cursor is that of the request before."""

    @property
    def latency(self) -> dict[str, float]:
        """Durations of the request's parts, as the server reports them."""
        found: dict[str, float] = self.last["latency"] if self.last is not None else {}
        return found

    @property
    def origin(self) -> str:
        """Origin of the answer: `model`, `cache`, `prefetch`, `joined`, or `none` where no model was asked."""
        if self.last is None:
            return "none"
        parts = self.latency
        if self.last["origin"] == "model" and not parts["prefillMs"] and not parts["decodeMs"]:
            return "none"
        if self.last["origin"] == "model" and sum(parts.values()) - parts["totalMs"] > parts["totalMs"] + 1:
            return "joined"  # with what was being prepared: its parts began before the request
        return str(self.last["origin"])

    @property
    def own(self) -> float | None:
        """The server's own share: the total without its pauses and the model; None where it is not known."""
        parts = self.latency
        if not parts or self.origin == "joined":
            return None
        return max(0.0, parts["totalMs"] - sum(parts[part] for part in MODEL_PARTS))


@dataclass
class Counts:
    """Numbers of the typist's actions."""

    keystrokes: int = 0
    unasked: int = 0
    """Keystrokes that the next one followed before the editor had asked."""
    accepted: int = 0
    accepted_characters: int = 0
    followed: int = 0


@dataclass
class Played:
    """A scenario and what came of it."""

    scenario: Scenario
    requests: list[Request] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    load: float | None = None
    """The machine's when the server was started."""
    ready: float = 0.0
    """Seconds from the server's start until its model was loaded."""
    seconds: float = 0.0
    """Seconds of typing."""
    memory: int | None = None
    """The server's bytes at the end."""
    cpu_loading: float | None = None
    cpu_typing: float | None = None
    model: dict[str, str] = field(default_factory=dict)
    prompt_tokens: dict[str, int] | None = None
    """Prompt tokens, as the server counts them: `read` during requests, `ahead`, and `reused`."""


def note(request: Request, asked: Asked, message: dict[str, Any]) -> list[Item]:
    """Take an answer into the record of its request; gives the offers."""
    request.milliseconds = 1000 * (asked.received - asked.sent)
    if asked.cancelled is not None:
        request.cancel_milliseconds = 1000 * (asked.received - asked.cancelled)
    if "error" in message:
        request.outcome = "cancelled" if message["error"].get("code") == CANCELLED else "failed"
        return []
    request.outcome = "answered" if asked.cancelled is None else "late"
    result = message["result"] or []
    found = result["items"] if isinstance(result, dict) else result
    items = [item_of(entry) for entry in found]
    request.items = len(items)
    request.lines = items[0].text.count("\n") + 1 if items else 0
    request.last = asked.last if request.outcome == "answered" else None
    return items


def item_of(entry: dict[str, Any]) -> Item:
    """An item of the protocol's. Its range begins at the cursor, since nothing is selected."""
    covered = 0
    if entry.get("range") is not None:
        covered = entry["range"]["end"]["character"] - entry["range"]["start"]["character"]
    return Item(entry["insertText"], covered, entry.get("command"))
