"""Answers of the server where a checker has findings, or is late."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest

from fim_server.decoding.results import Written
from fim_server.server.app import create_server
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.requests.checked import checked
from fim_server.suggest.answer_cache import Answer
from fim_server.suggest.ranking.display import display
from fim_server.suggest.ranking.findings import Finding, Kind
from fim_server.suggest.ranking.reasons import Reason
from fim_server.suggest.request import Request
from fim_server.suggest.suggestion import Suggestion
from fim_server.text.document import Split
from support.editors.answers import suggestion
from support.editors.watched import SETTINGS

URI = "file:///project/a.py"


class Finder:
    """A checker that finds a word, after some seconds at first."""

    wait_seconds = 0.05

    def __init__(self, word: str, seconds: float = 0.0) -> None:
        self.word, self.seconds = word, seconds
        self.waited: list[float] = []

    async def findings(self, uri: str, text: str, lines: range, deadline: float) -> Sequence[Finding] | None:
        left = max(0.0, deadline - asyncio.get_running_loop().time())
        self.waited.append(left)
        late = self.seconds > left
        await asyncio.sleep(min(left, self.seconds))
        self.seconds = 0.0
        start = text.find(self.word)
        return None if late else [Finding(start, start + len(self.word), Kind.NAME)] if start >= 0 else []


def offer(text: str) -> Suggestion:
    return suggestion(text, cuts=(len(text),), lexemes=(len(text),), tokens=(Written(len(text), 0.99),))


def asked(server: FimLanguageServer, finder: Finder, *texts: str, invoked: bool = False) -> tuple[Request, Answer]:
    """A request with offers of such texts."""
    server.checkers.checker = lambda language, uri: finder  # type: ignore[assignment,method-assign,return-value]
    request = Request(URI, Split("x = ", "\n"), "python", "a.py", invoked, True, server.settings)
    return request, request.answered(tuple(map(offer, texts)))


@pytest.fixture
def server() -> FimLanguageServer:
    return create_server(SETTINGS)


async def check(
    server: FimLanguageServer, request: Request, answer: Answer, elapsed_ms: float = 0.0, waits: bool = True
) -> Answer:
    return await checked(server, request, answer, elapsed_ms, waits)


@pytest.mark.asyncio
async def test_a_finding_hides_the_suggestion_and_is_remembered(server: FimLanguageServer) -> None:
    request, answer = asked(server, Finder("missing"), "missing.a")
    found = display(await check(server, request, answer), request)
    assert (found.suggestions, [one.reason for one in found.suppressed]) == ((), [Reason.FAILS_CHECK])
    kept = server.answers.find(request.key, "x = ", "\n", True, False)
    assert kept is not None
    assert kept.suggestions[0].flag.reason is Reason.FAILS_CHECK


@pytest.mark.asyncio
async def test_an_explicit_request_has_them_last(server: FimLanguageServer) -> None:
    request, answer = asked(server, Finder("missing"), "missing.a", "b", invoked=True)
    found = display(await check(server, request, answer), request)
    assert [one.text for one in found.suggestions] == ["b", "missing.a"]


@pytest.mark.asyncio
async def test_a_late_finding_counts_at_the_next_key(server: FimLanguageServer) -> None:
    request, answer = asked(server, Finder("missing", seconds=1.0), "missing.a")
    started = time.monotonic()
    answer = await check(server, request, answer)
    assert time.monotonic() - started < 0.5
    assert display(answer, request).suggestions
    assert not display(await check(server, request, answer), request).suggestions


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("elapsed_ms", "waits", "most"), [(0.0, True, 0.05), (1480.0, True, 0.02), (2000.0, True, 0.0), (0.0, False, 0.0)]
)
async def test_no_finding_is_awaited_past_the_deadline(
    server: FimLanguageServer, elapsed_ms: float, waits: bool, most: float
) -> None:
    finder = Finder("missing", seconds=1.0)
    request, answer = asked(server, finder, "missing.a")
    assert await check(server, request, answer, elapsed_ms=elapsed_ms, waits=waits) == answer
    assert finder.waited[0] <= most
