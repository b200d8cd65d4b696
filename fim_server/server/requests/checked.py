"""Suggestions with the findings of the language's checker, before they are displayed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.errors import LanguageError
from fim_server.server.requests.known_answers import remember
from fim_server.suggest.ranking.display import shown
from fim_server.suggest.ranking.findings import with_findings
from fim_server.suggest.ranking.reasons import Reason

if TYPE_CHECKING:
    from fim_server.server.checking.checkers import LanguageChecker
    from fim_server.server.language_server import FimLanguageServer
    from fim_server.suggest.answer_cache import Answer
    from fim_server.suggest.request import Request
    from fim_server.suggest.suggestion import Suggestion


def checker_for(ls: FimLanguageServer, request: Request) -> LanguageChecker | None:
    """Return the checker of a request's document. Notebooks and regions of other files have none."""
    if request.cell is not None or not request.has_grammar:
        return None
    try:
        return ls.checkers.checker(request.language().name, request.uri)
    except LanguageError:
        return None


def warm_checker(ls: FimLanguageServer, request: Request) -> None:
    """Have the checker read a document in which a cursor rests."""
    checker = checker_for(ls, request)
    if checker is not None:
        checker.warm(request.uri, request.split.joined(""))


async def checked(ls: FimLanguageServer, request: Request, answer: Answer, elapsed_ms: float, waits: bool) -> Answer:
    """Return an answer with red flags where a checker has findings, and remember it.

    An unrequested answer is checked in its first suggestion, the one to be shown. An explicit request is checked in
    all; those with findings come last.

    Args:
        ls: The server.
        request: The request.
        answer: Its answer.
        elapsed_ms: The time that the request took so far.
        waits: Whether to wait for findings. Without this, they count at the next key.
    """
    checker = checker_for(ls, request) if answer.suggestions else None
    if checker is None:
        return answer
    deadline_ms = request.deadline_ms
    left = checker.wait_seconds if not deadline_ms else (deadline_ms - elapsed_ms) / 1000
    wait = min(checker.wait_seconds, left) if waits else 0.0
    deadline = asyncio.get_running_loop().time() + wait
    count = len(answer.suggestions) if request.invoked else 1
    found = [await examined(checker, request, one, deadline) for one in answer.suggestions[:count]]
    if request.invoked:
        found.sort(key=lambda one: one.flag.reason is Reason.FAILS_CHECK)
    suggestions = (*found, *answer.suggestions[count:])
    if suggestions == answer.suggestions:
        return answer
    answer = replace(answer, suggestions=suggestions)
    remember(ls, request, answer)
    return answer


async def examined(checker: LanguageChecker, request: Request, suggestion: Suggestion, deadline: float) -> Suggestion:
    """Return a suggestion with the red flag of a finding."""
    left, right = suggestion.document(request.split)
    line = request.split.left.count("\n")
    findings = await checker.findings(request.uri, left + right, range(line, line + 1), deadline)
    if not findings:
        return suggestion
    least = 0.0 if request.invoked else request.least
    part = shown(suggestion, request.split.right[: suggestion.covered], least)
    return with_findings(suggestion, request.split.left, findings, 0 if part is None else len(part.text))
