"""Requests for texts, in the form that both endpoints share, and the texts that answer them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fim_server.suggest.job import Costs
from fim_server.suggest.request import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fim_server.decoding.results import Statistics


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Text of another file, and the file's name, which may be empty."""

    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """Request for texts between two others.

    Attributes:
        prefix: The text before the cursor.
        suffix: The text after it.
        language: The language, by an editor's name; empty if the client does not name it.
        file: The file's name; empty if the client does not name it.
        excerpts: Texts of other files.
        count: Most alternatives.
        most_tokens: Most tokens; None: as the settings say.
        temperature: Temperature of sampling; None: as the settings say.
        allowed_ms: Time that the client allows, in milliseconds; None: as the settings say.
        stops: Texts before which a text ends.
        invoked: Whether the request is explicit.
    """

    prefix: str
    suffix: str
    language: str = ""
    file: str = ""
    excerpts: tuple[Excerpt, ...] = ()
    count: int = 1
    most_tokens: int | None = None
    temperature: float | None = None
    allowed_ms: float | None = None
    stops: tuple[str, ...] = ()
    invoked: bool = False

    @property
    def reads_only(self) -> bool:
        """Return whether no text is wanted: the client sends excerpts ahead."""
        return self.most_tokens == 0

    @property
    def limits(self) -> Limits:
        """Return the limits of the request."""
        return Limits(self.most_tokens or None, self.temperature, self.count)


@dataclass(frozen=True, slots=True)
class Text:
    """Text to insert at the cursor; ``is_cut``: whether a limit has ended it."""

    text: str
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Served:
    """Texts that answer a request.

    Attributes:
        texts: The texts, the best first.
        language: Name of the language; `none` if it is unknown.
        guarantee: Guarantee of the first text; `none` without one.
        reason: Reason for the absence of a text.
        origin: `model`, `memory`, `prefetch`, `cache`, or `none`.
        covered_lines: Lines, from 0, for which a `partial` guarantee holds.
        costs: The time it took.
        statistics: Cost of the first text, if the model wrote it for this request.
        model: Name of the model.
    """

    texts: tuple[Text, ...]
    language: str
    model: str
    guarantee: str = "none"
    reason: str | None = None
    origin: str = "none"
    covered_lines: tuple[range, ...] = ()
    costs: Costs = field(default_factory=Costs)
    statistics: Statistics | None = None

    @property
    def about(self) -> dict[str, Any]:
        """Return the field `fim_server` of a response."""
        lines = [{"line": lines.start, "count": len(lines)} for lines in self.covered_lines]
        return {
            "language": self.language,
            "guarantee": self.guarantee,
            "reason": self.reason,
            "origin": self.origin,
            "covered_lines": lines,
        }

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of a response."""
        return {"X-Fim-Language": self.language, "X-Fim-Guarantee": self.guarantee, "Cache-Control": "no-store"}


def common_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of :class:`Wanted` that both endpoints name alike."""
    stop = fields.get("stop")
    stops = (stop,) if isinstance(stop, str) else tuple(stop or ())
    return {
        "language": (fields.get("language") or "").strip().lower(),
        "file": (fields.get("filename") or fields.get("path") or "").strip(),
        "temperature": fields.get("temperature"),
        "stops": tuple(one for one in stops if one),
        "invoked": bool(fields.get("invoked")),
    }
