"""Languages are prepared beside requests, however many files an editor opens at once."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from fim_server.server.models import preparing
from fim_server.server.models.preparing import Preparations
from support.editors.editor import SETTINGS, wired

PATIENCE = 10.0
"""Seconds until a test gives up."""


def test_preparations_follow_one_another_and_an_equal_one_waits_once() -> None:
    preparations, done = Preparations(), threading.Event()
    begun, may_end = threading.Event(), threading.Event()
    order: list[str] = []

    def slow() -> None:
        begun.set()
        assert may_end.wait(PATIENCE)
        order.append("python")

    preparations.add(("python", 1), slow)
    assert begun.wait(PATIENCE)
    preparations.add(("python", 1), lambda: order.append("python, under way"))
    preparations.add(("go", 1), lambda: order.append("go"))
    preparations.add(("go", 1), lambda: order.append("go, waiting"))
    preparations.add(("python", 2), lambda: order.append("python for another model"))
    preparations.add(("rust", 1), done.set)
    may_end.set()
    assert done.wait(PATIENCE)
    assert order == ["python", "go", "python for another model"]


def test_a_failure_leaves_the_next_preparation_alone() -> None:
    preparations, done = Preparations(), threading.Event()
    preparations.add(("python", 1), lambda: 1 / 0)
    preparations.add(("go", 1), done.set)
    assert done.wait(PATIENCE)


def test_without_a_thread_the_next_file_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    preparations, done = Preparations(), threading.Event()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_thread)
        preparations.add(("python", 1), lambda: None)
    preparations.add(("go", 1), done.set)
    assert done.wait(PATIENCE)


def no_thread(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


@pytest.mark.asyncio
async def test_many_opened_files_leave_requests_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    may_end = threading.Event()
    monkeypatch.setattr(preparing, "prepare", lambda *_: may_end.wait(PATIENCE))
    capabilities: dict[str, Any] = {"textDocument": {"inlineCompletion": {}}}
    params: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": capabilities}
    async with wired("--model=embedded") as (_, wire):
        try:
            await wire.ask("initialize", "initialize", {**params, "initializationOptions": SETTINGS})
            await wire.send(wire.note("initialized", {}))
            await wire.is_ready()
            uris = [(tmp_path / f"file{number}.py").as_uri() for number in range(20)]
            for uri in uris:
                await wire.open(uri, "def total(rows):\n    return \n")
            request = wire.completion(uris[-1], 1, 11, True)
            answer = await wire.ask("asked", "textDocument/inlineCompletion", request)
            assert answer["result"]["items"]
        finally:
            may_end.set()
