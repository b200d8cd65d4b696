"""Answers with suggestions of given texts, and a memory of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fim_server.decoding.results import Completion, StopReason
from fim_server.language import Language
from fim_server.suggest.answer_cache import Answer, AnswerCache
from fim_server.suggest.suggestion import Display, Ends, Likelihoods, Origin, Suggestion

KEY = ("file:///a.py", "python")
ENDED = Completion("", "exact", StopReason.END_TOKEN, None)


PARTS = {
    "origin": Origin(ENDED, "exact"),
    "ends": Ends(),
    "likelihoods": Likelihoods(),
    "display": Display(),
}


def suggestion(text: str, covered: int = 0, identity: str = "1", **fields: Any) -> Suggestion:
    """Return a suggestion for Python; ``fields``: those of its parts."""
    closers = Language.load("python").spelling.closers
    return changed(Suggestion(identity, text, covered, Origin(ENDED, "exact"), closers), **fields)


def changed(one: Suggestion, **fields: Any) -> Suggestion:
    """Return a suggestion with other fields, of its own or of its parts."""
    for name, value in fields.items():
        part = next((part for part, kind in PARTS.items() if hasattr(kind, name)), None)
        one = replace(one, **({name: value} if part is None else {part: replace(getattr(one, part), **{name: value})}))
    return one


def answered(left: str, right: str, *suggestions: Suggestion, **more: Any) -> Answer:
    given: dict[str, Any] = {"key": KEY, "single_line": True, "complete": False, **more}
    return Answer(left=left, right=right, suggestions=suggestions, **given)


def find(memory: AnswerCache, left: str, right: str, **more: Any) -> list[tuple[str, int]] | None:
    """The texts and what they cover, or None where nothing is remembered."""
    arguments: dict[str, Any] = {"key": KEY, "single_line": True, "alternatives": False, **more}
    found = memory.find(left=left, right=right, **arguments)
    return None if found is None else [(one.text, one.covered) for one in found.suggestions]


def remembering(*answers: Answer, capacity: int = 64) -> AnswerCache:
    memory = AnswerCache(capacity)
    for answer in answers:
        memory.add(answer)
    return memory
