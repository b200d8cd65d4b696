"""Blocking work is done by few threads, however many requests come and go while a disk hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from fim_server.errors import LanguageError, StoppedError
from fim_server.language import Language, Stop
from fim_server.suggest.context import stage
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.system import blocking_pool
from fim_server.system.blocking_pool import BlockingPool, wait_for
from fim_server.text.document import Split
from fim_server.workers.worker import CompletionWorker
from support.editors.watched import PATIENCE, give_model, until


class Disk:
    """A disk that does not answer until it is let."""

    def __init__(self) -> None:
        self.reads, self.answers = 0, threading.Event()

    def read(self) -> str:
        self.reads += 1
        assert self.answers.wait(PATIENCE)
        return "read"


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.answers.set()


def left(pool: BlockingPool, key: str, disk: Disk) -> None:
    """Ask for something, and want it no more at once."""
    stop = Stop()
    stop.set()
    with stop, pytest.raises(StoppedError):
        pool.run(key, disk.read)


def test_work_under_way_is_not_begun_again(disk: Disk) -> None:
    pool = BlockingPool()
    for _ in range(20):
        left(pool, "a", disk)
    assert disk.reads == 1
    disk.answers.set()
    assert pool.run("a", disk.read) == "read"
    until(lambda: not pool._under_way)
    assert pool.run("a", lambda: "anew") == "anew"


def test_callers_wait_for_one_of_few_threads(disk: Disk) -> None:
    pool = BlockingPool(most=2)
    for number in range(20):
        left(pool, str(number), disk)
    assert disk.reads == 2
    found: list[str] = []
    waiting = threading.Thread(target=lambda: found.append(pool.run("another", lambda: "done")), daemon=True)
    waiting.start()
    time.sleep(0.05)
    assert found == []
    disk.answers.set()
    waiting.join(PATIENCE)
    assert found == ["done"]


def test_errors_reach_the_caller_and_the_next_call_tries_again() -> None:
    def fail() -> str:
        raise LanguageError("no such language")

    pool = BlockingPool()
    for _ in range(2):
        with pytest.raises(LanguageError, match="no such language"):
            pool.run("a", fail)
    assert pool.run("a", lambda: "found") == "found"


def test_a_result_at_the_end_of_a_wait_is_returned() -> None:
    class Late(Future[int]):
        """Done between the end of a wait and the look whether it is."""

        def result(self, timeout: float | None = None) -> int:
            if not self.done():
                self.set_result(7)
                raise TimeoutError
            return super().result(timeout)

    assert wait_for(Late()) == 7
    fails: Future[int] = Future()
    fails.set_exception(TimeoutError("the disk"))
    with pytest.raises(TimeoutError, match="the disk"):
        wait_for(fails)


def test_requests_on_a_hanging_disk_cost_one_thread(monkeypatch: pytest.MonkeyPatch, disk: Disk) -> None:
    """Each of them is overtaken by the next, and so leaves the worker; the disk is not left."""

    def language(self: Request) -> Language:
        disk.read()
        return Language.load("python")

    monkeypatch.setattr(Request, "language", language)
    monkeypatch.setattr(stage, "BLOCKING_POOL", BlockingPool())
    worker = CompletionWorker(ServerSettings(prefetch=False))
    give_model(worker)
    before, last = threading.active_count(), None
    for typed in range(20):
        split = Split("x" * typed, "\n")
        last = worker.submit(Request("a", split, "python", "a.py", False, True, ServerSettings(prefetch=False)))
        until(lambda: disk.reads)
    assert last is not None
    until(lambda: len(worker._threads["a"]._promised) == 1)
    assert disk.reads == 1
    assert threading.active_count() - before <= 2  # the document's, and the one that reads
    last.cancelled.set()
    assert last.future.result(PATIENCE) is None
    worker.close()


def test_all_clients_share_one_pool() -> None:
    assert vars(stage)["BLOCKING_POOL"] is blocking_pool.BLOCKING_POOL
    assert blocking_pool.BLOCKING_POOL._most == blocking_pool.MOST_THREADS
