"""Answers with suggestions of given texts, and a memory of them."""

from __future__ import annotations

from typing import Any

from fim_server.decoding.results import Completion, StopReason
from fim_server.language import Language
from fim_server.suggest.answer_cache import Answer, AnswerCache, Suggestion

KEY = ("file:///a.py", "python")
ENDED = Completion("", "exact", StopReason.END_TOKEN, None)


def suggestion(text: str, covered: int = 0, identity: str = "1") -> Suggestion:
    return Suggestion(identity, text, covered, "exact", ENDED, Language.load("python").spelling.closers)


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
