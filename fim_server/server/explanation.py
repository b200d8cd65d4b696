"""The answer of `fim-server.explainAt`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from fim_server.errors import SearchLimitError
from fim_server.server.items import lines_json, stand_in_json
from fim_server.text.hidden import escaped_values

if TYPE_CHECKING:
    from fim_server.suggest.context.sessions import Opened
    from fim_server.suggest.job import Explained

MOST_EXPLAINED = 1_000_000
"""Most characters of a text in an explanation; a grammar is long."""

LINE_CHARACTERS = 60
"""Most characters of a line in an explanation."""


def explanation_json(uri: str, position: types.Position, explained: Explained, text: str | None) -> dict[str, Any]:
    """Return the answer of `fim-server.explainAt`; ``text``: to be judged at the cursor."""
    opened, session = explained.opened, explained.opened.session
    state = session.start()
    here = state.explain("")
    answer: dict[str, Any] = {
        "uri": uri,
        "position": {"line": position.line, "character": position.character},
        "language": explained.language.title,
        "guarantee": opened.guarantee,
        "diagnostics": list(opened.diagnostics),
        "ignored": [{"line": group.line, "count": group.count, "beyond": group.beyond} for group in opened.ignored],
        "coveredLines": lines_json(opened.covered_lines),
        "standIn": None if opened.stand_in is None else stand_in_json(opened.stand_in, opened.left),
        "inside": session.inside,
        "expected": here.expected,
        "likely": state.likely_next(here, opened.left) if opened.guarantee != "none" else None,
        "openLeft": [
            {"name": construct.name, **line_of(opened, construct.offset)} for construct in session.open_constructs()
        ],
        "openRight": [closer_json(closer, opened) for closer in here.open_right],
        "grammar": session.quotient_grammar() if opened.guarantee != "none" else "",
        "shortest": shortest_of(state) if opened.guarantee != "none" else None,
        "candidates": [
            {"text": one, "probability": probability, "allowed": allowed, "reason": reason}
            for one, probability, allowed, reason in explained.candidates
        ],
    }
    if text is not None:
        verdict = session.check(text)
        answer["verdict"] = {
            "viable": verdict.viable,
            "complete": verdict.complete,
            "rejectedAt": verdict.rejected_at,
        }
    shown: dict[str, Any] = escaped_values(answer, MOST_EXPLAINED, frozenset({"uri"}))
    return shown


def line_of(opened: Opened, offset: int) -> dict[str, Any]:
    """Return the line of an offset in the left context, and its text from there to its end."""
    text = opened.left
    end = text.find("\n", offset)
    shown = text[offset : len(text) if end < 0 else end]
    return {"line": opened.line_in_document(text.count("\n", 0, offset)), "text": shown[:LINE_CHARACTERS]}


def closer_json(closer: str, opened: Opened) -> dict[str, Any]:
    """Return a bracket that the right side closes. The engine writes `) (line 2 after the cursor)`, from line 1."""
    text, _, rest = closer.partition(" (line ")
    below = int(rest.split(" ", 1)[0]) - 1 if rest else 0
    return {"text": text, "line": opened.line_in_document(opened.left.count("\n") + below)}


def shortest_of(state: Any) -> str | None:
    """Return the shortest completion, if the search finds it."""
    try:
        found: str | None = state.shortest_completion()
    except SearchLimitError:
        return None
    return found
