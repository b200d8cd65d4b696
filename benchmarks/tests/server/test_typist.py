"""A typing user without a server: requests, suggestions and accepted texts."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import Any

import pytest

from benchmarks.server import played_editor
from benchmarks.server.lsp_client import Asked
from benchmarks.server.scenarios import SCENARIOS, Played, Scenario
from benchmarks.server.typist import Typist
from support.bench_corpus import TYPED_SOURCE as SOURCE


class Scripted:
    """Answers every request at once with what it is told to, and keeps the document as a server would."""

    def __init__(self, offers: list[str]) -> None:
        self.suggestions = itertools.cycle(offers)
        self.texts: dict[str, str] = {}
        self.sent: list[tuple[str, Any]] = []
        self.numbers = itertools.count(1)

    def notify(self, method: str, params: Any) -> None:
        self.sent.append((method, params))
        if method == "textDocument/didOpen":
            self.texts[params["textDocument"]["uri"]] = params["textDocument"]["text"]
        elif method == "textDocument/didChange":
            uri = params["textDocument"]["uri"]
            for change in params["contentChanges"]:
                lines = self.texts[uri].split("\n")
                start, end = (
                    sum(len(line) + 1 for line in lines[: at["line"]]) + at["character"]
                    for at in (change["range"]["start"], change["range"]["end"])
                )
                self.texts[uri] = self.texts[uri][:start] + change["text"] + self.texts[uri][end:]

    def ask(self, method: str, params: Any) -> Asked:
        self.sent.append((method, params))
        asked = Asked(next(self.numbers), 0.0, asyncio.get_running_loop().create_future(), received=0.001)
        item = {
            "insertText": next(self.suggestions),
            "range": {"start": params.get("position"), "end": params.get("position")},
            "command": {"title": "", "command": "fim-server.accepted", "arguments": [{"id": "1"}]},
        }
        asked.answer.set_result({"result": {"items": [item]}})
        return asked

    def cancel(self, asked: Asked) -> None:
        assert asked.answer.done()

    async def answer_to(self, asked: Asked) -> Any:
        await asyncio.sleep(0)
        return asked.answer.result()["result"]


def play(
    monkeypatch: pytest.MonkeyPatch, scenario: Scenario, offers: list[str], keystrokes: int, seed: int = 0
) -> tuple[Scripted, Played]:
    """Types in :data:`SOURCE` without any waiting."""

    async def hurry(seconds: float) -> None:
        await sleep(0)

    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", hurry)
    client, played = Scripted(offers), Played(scenario)
    typist = Typist(client, played, 0.15, random.Random(seed))  # type: ignore[arg-type]
    found = played_editor.holes(SOURCE, random.Random(seed))
    asyncio.run(typist.type_in("a.py", SOURCE, found, keystrokes))
    return client, played


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("offers", [["x"], ["self.things", "\n    pass\n", 'print("a")']], ids=["short", "long"])
def test_the_servers_text_is_the_editors(
    scenario: Scenario, offers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, played = play(monkeypatch, scenario, offers, 600)
    counts = played.counts
    assert counts.keystrokes in range(600, 640)
    requests = [request for request in played.requests if request.after != "invoked"]
    assert len(requests) + counts.unasked == counts.keystrokes
    assert {request.outcome for request in played.requests} == {"answered"}
    assert bool(counts.followed) == scenario.follows
    assert requests[0].after == "opened"
    # Every hole but the last, in which the keystrokes ran out, was filled with what was taken out of it.
    (text,) = client.texts.values()
    changes = [params for method, params in client.sent if method == "textDocument/didChange"]
    assert [params["textDocument"]["version"] for params in changes] == list(range(2, len(changes) + 2))
    removed = max(hole.end - hole.start for hole in played_editor.holes(SOURCE, random.Random(0)))
    assert played_editor.common(text, SOURCE) + played_editor.common(text[::-1], SOURCE[::-1]) >= len(SOURCE) - removed


def test_what_agrees_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    client, played = play(monkeypatch, SCENARIOS[0], ["self.things"], 1500)
    accepted = [params for method, params in client.sent if method == "workspace/executeCommand"]
    assert played.counts.accepted > 0
    assert len(accepted) <= played.counts.accepted
    assert all(params["command"] == "fim-server.accepted" for params in accepted)
