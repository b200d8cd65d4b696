"""Texts that are too large for a request: opened in part first, and whole at a later keystroke."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.strategies import alternatives
from fim_server.errors import StoppedError
from fim_server.language import Language, Session, Stop
from fim_server.models.pace import Pace
from fim_server.models.turn import Turn
from fim_server.recovery import budget as budgets
from fim_server.recovery.budget import Budget
from fim_server.suggest.context import background_open
from fim_server.suggest.context.background_open import Finisher
from fim_server.suggest.context.prompts import KeptReadings
from fim_server.suggest.context.sessions import DocumentSessions, Opened
from fim_server.suggest.job import Job, Loaded, Work
from fim_server.suggest.pipeline import Completer
from fim_server.suggest.ranking.stage import rank
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.text.document import Split
from fim_server.text.reuse import Sessions
from fim_server.workers.worker import CompletionWorker
from support.editors.editor import PATIENCE, Editor, parses, serving

URI = "file:///a.py"
ENTRIES = "".join(f'    "name {number}": ({number}, [{number}], "value"),\n' for number in range(4_000))
TABLE = ("T = {\n    ", f"\n{ENTRIES}}}\nprint(T)\n")
CODE = "def f(a):\n    return g(a, [1, 2])\n\n\n"


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def in_part(monkeypatch: pytest.MonkeyPatch) -> Budget:
    """Set a budget that opens nothing whole during a request, with time enough for a part."""
    monkeypatch.setattr(budgets, "SWIFT", 1_000.0)
    return Budget(seconds=60.0)


# --- the thread that finishes -------------------------------------------------------------------------------------


class Waiting(Sessions):
    """Sessions that are opened only when the test lets them."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[str] = []
        self.may = threading.Event()

    def open(self, language: Language, left: str, right: str) -> Session:
        self.begun.append(right)
        while not self.may.wait(0.001):
            language.open("", "")  # raises when it was stopped
        return super().open(language, left, right)


@pytest.fixture
def waiting() -> Iterator[tuple[Waiting, Finisher]]:
    sessions = Waiting()
    finisher = Finisher(sessions, 10**9)
    yield sessions, finisher
    finisher.close()


def test_the_same_text_continues_and_another_one_replaces_it(waiting: tuple[Waiting, Finisher]) -> None:
    sessions, finisher = waiting
    python = Language.load("python")
    for typed in ("x = ", "x = a", "x = ab"):
        finisher.finish(URI, python, typed, "\none\n")
    until(lambda: sessions.begun)
    assert finisher.is_finishing(URI, python, "\none\n")
    finisher.finish(URI, python, "x = ", "\ntwo\n")
    finisher.finish("file:///other.py", python, "x = ", "\nthree\n")
    assert not finisher.is_finishing(URI, python, "\none\n")
    until(lambda: len(sessions.begun) == 2)
    sessions.may.set()
    until(lambda: sessions.knows(python, "\nthree\n"))
    assert sessions.begun == ["\none\n", "\ntwo\n", "\nthree\n"]
    assert sessions.knows(python, "\ntwo\n")
    assert not sessions.knows(python, "\none\n")
    finisher.finish(URI, python, "x = ", "\ntwo\n")  # known
    assert not finisher.is_finishing(URI, python, "\ntwo\n")


def test_a_left_document_is_not_opened_and_a_closed_finisher_takes_no_work(waiting: tuple[Waiting, Finisher]) -> None:
    sessions, finisher = waiting
    python = Language.load("python")
    finisher.finish(URI, python, "x = ", "\none\n")
    until(lambda: sessions.begun)
    finisher.leave(URI)
    finisher.finish("file:///other.py", python, "x = ", "\ntwo\n")
    until(lambda: len(sessions.begun) == 2)
    finisher.close()
    finisher.finish(URI, python, "x = ", "\nthree\n")
    executor = finisher._thread._executor
    until(lambda: executor._shutdown and not any(thread.is_alive() for thread in executor._threads))
    assert sessions.begun == ["\none\n", "\ntwo\n"]
    assert not any(sessions.knows(python, right) for right in ("\none\n", "\ntwo\n", "\nthree\n"))


def test_slow_texts_are_given_up(monkeypatch: pytest.MonkeyPatch, waiting: tuple[Waiting, Finisher]) -> None:
    monkeypatch.setattr(background_open, "SECONDS", 0.01)
    sessions, finisher = waiting
    python = Language.load("python")
    for _ in range(background_open.MOST_TRIES + 2):
        finisher.finish(URI, python, "x = ", "\none\n")
        until(lambda: not finisher.is_finishing(URI, python, "\none\n"))
    assert len(sessions.begun) == background_open.MOST_TRIES


# --- the sessions of documents ------------------------------------------------------------------------------------


def open_at(contexts: DocumentSessions, left: str, right: str, uri: str = URI) -> Opened:
    return contexts.open(uri, Language.load("python"), Split(left, right))


def finished(contexts: DocumentSessions, right: str) -> bool:
    return contexts._sessions.knows(Language.load("python"), right)


def test_a_text_is_opened_in_part_and_whole_at_the_next_key(in_part: Budget) -> None:
    contexts = DocumentSessions(in_part)
    left, right = TABLE
    first = open_at(contexts, left, right)
    assert first.guarantee == "partial"
    assert first.is_unfinished
    assert first.session.check('"a": 1,').complete
    assert first.covered_lines[0].start == 0
    assert 1 in first.covered_lines[0]  # the cursor's
    assert first.diagnostics[0].endswith("are too far away to be read in time and are left out")
    until(lambda: finished(contexts, right))
    second = open_at(contexts, left + '"a"', right)
    assert second.guarantee == "exact"
    assert not second.is_unfinished
    assert second.right == right
    assert second.covered_lines == ()
    assert second.ignored == ()
    contexts.clear()


def test_a_closer_may_be_opened_by_the_middle_in_a_part_too(in_part: Budget) -> None:
    contexts = DocumentSessions(in_part)
    found = open_at(contexts, "x = f(a)", ")\n" + CODE * 1_000)
    assert (found.guarantee, found.covered) == ("partial", 0)  # by a middle that opens what it closes
    contexts.clear()


def test_typing_does_not_prevent_opening_the_whole() -> None:
    """Each request is stopped early, and yet the text is opened in the end."""
    contexts = DocumentSessions()
    left, right = TABLE
    for typed in ("", '"', '"a'):
        stop = Stop()
        stop.set()
        with stop, pytest.raises(StoppedError):
            open_at(contexts, left + typed, right)
    until(lambda: finished(contexts, right))
    assert open_at(contexts, left + '"a"', right).guarantee == "exact"
    contexts.clear()


class Beside:
    """Prefill that reads no prompt."""

    def seconds_before(self, moment: float) -> float:
        return 0.0

    def close(self) -> None:
        pass


def test_an_answer_on_a_part_does_not_last(in_part: Budget, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker whose model writes nothing."""
    worker = CompletionWorker(ServerSettings(prefetch=False))
    made: list[DocumentSessions] = []

    def make() -> DocumentSessions:
        made.append(DocumentSessions(in_part))
        return made[-1]

    worker.make_contexts = make
    loaded: Future[Any] = Future()
    model: Any = SimpleNamespace(turn=Turn(), eos_ids=(), backend=None)
    loaded.set_result(Loaded(model, Pace(), KeptReadings(model)))
    worker._loading = loaded
    seen: list[Opened] = []

    def answer(self: Completer, loading: Any, request: Request, *rest: Any) -> Work:
        opened = self.contexts.open(request.uri, request.language(), request.split)
        seen.append(opened)
        work = Work(request.answered(()))
        healing: Any = SimpleNamespace(split=request.split, text="")
        prefill: Any = Beside()
        readings: Any = None
        options, language = DecodeOptions(), request.language()
        job = Job(request, loaded.result(), Stop(), 0.0, language, healing, options, readings, prefill, opened, work)
        rank(job, self.sources.project, self.decoder.run(job, False), False)
        return work

    monkeypatch.setattr(Completer, "_answer", answer)
    monkeypatch.setattr(alternatives, "alternatives", lambda *arguments, **more: iter(()))
    left, right = TABLE

    def ask(typed: str) -> Work:
        settings = ServerSettings(prefetch=False)
        job = worker.submit(Request(URI, Split(left + typed, right), "python", "", False, True, settings))
        work = job.future.result(PATIENCE)
        assert work is not None
        return work

    assert not ask("").answer.lasting
    until(lambda: finished(made[0], right))
    assert ask('"').answer.lasting
    assert [opened.guarantee for opened in seen] == ["partial", "exact"]
    worker.close()
    assert len(made) == 1


# --- the server ---------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["a table", "a megabyte"])
async def test_large_documents_get_an_answer_at_once_and_the_whole_later(name: str) -> None:
    """Test over the real protocol that no left-out line is claimed as covered, whatever fits on the machine."""
    left, right = TABLE if name == "a table" else (CODE + "x = ", "\n" + CODE * 25_000)
    async with serving(options={"prefetch": False, "deadlineMs": 1}) as client:
        await client.is_ready()
        editor = Editor(client, "large.py", left + right)
        cursor = len(left)
        answer = await editor.explain(cursor)
        lines = (left + right).count("\n")
        if answer["guarantee"] == "partial":
            stretches = [range(part["line"], part["line"] + part["count"]) for part in answer["coveredLines"]]
            covered = [line for stretch in stretches for line in stretch]
            left_out = [entry["line"] + at for entry in answer["ignored"] for at in range(entry["count"])]
            assert all(entry["beyond"] for entry in answer["ignored"])
            assert sorted(covered + left_out) == list(range(lines))
            texts = editor.text.splitlines(keepends=True)
            middle = '"a": 1,' if name == "a table" else "1"
            at = left.count("\n")
            texts[at] = texts[at].removesuffix("\n") + middle + "\n"
            assert parses("".join(texts[line] for line in covered))
        else:
            assert answer["guarantee"] == "exact"
        deadline = time.monotonic() + PATIENCE
        while answer["guarantee"] != "exact":
            assert time.monotonic() < deadline
            await asyncio.sleep(0.2)
            editor.change(cursor, cursor, "a")
            cursor += 1
            answer = await editor.explain(cursor)
        assert answer["coveredLines"] == answer["ignored"] == []
