"""What an endpoint hears of whoever asks: that nobody waits any longer, at whatever stage its answer is."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from fim_server.errors import StoppedError
from fim_server.models.backend import LostError
from fim_server.models.remote.address import address_of
from fim_server.models.remote.client import Client, loop

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b'{"response": "a"}\n'
CHUNK = b"%x\r\n%s\r\n" % (len(EVENT), EVENT)


class Heard:
    """What an endpoint of one connection has heard.

    Attributes:
        asked: Set once a request has come.
        left: Set once the other side has closed.
    """

    def __init__(self) -> None:
        self.asked, self.left = threading.Event(), threading.Event()


@contextmanager
def listening(said: bytes) -> Iterator[tuple[str, Heard]]:
    """The address of an endpoint that says so much, and then nothing more."""
    heard = Heard()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.settimeout(20)
                connection.recv(1 << 16)
                connection.sendall(said)
                heard.asked.set()
                while connection.recv(1 << 16):
                    pass
                heard.left.set()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", heard
        thread.join(20)


def impatient(heard: Heard) -> Callable[[], None]:
    """Patience until a request has arrived."""

    def wait() -> None:
        if heard.asked.is_set():
            raise StoppedError("nobody waits")

    return wait


@pytest.mark.parametrize("said", [b"", HEAD[:20], HEAD], ids=["nothing", "half a header", "a header"])
def test_who_is_left_before_the_first_event_hears_it(said: bytes) -> None:
    with listening(said) as (address, heard):
        client = Client(address_of(address, None, False))
        with pytest.raises(StoppedError):
            client.stream("/api/generate", {}, impatient(heard))
        assert heard.left.wait(10)
    with listening(said) as (address, heard):
        client = Client(address_of(address, None, False))
        with pytest.raises(StoppedError):
            client.ask("/api/generate", {}, impatient(heard))
        assert heard.left.wait(10)


def test_who_is_left_between_events_hears_it() -> None:
    with listening(HEAD + CHUNK) as (address, heard):
        stream = Client(address_of(address, None, False)).stream("/api/generate", {}, lambda: None)
        assert stream.next(lambda: None) == {"response": "a"}
        stream.close()
        assert heard.left.wait(10)


def test_a_stream_that_nobody_looks_at_any_more_is_left() -> None:
    with listening(HEAD + CHUNK) as (address, heard):
        stream = Client(address_of(address, None, False)).stream("/api/generate", {}, lambda: None)
        stream.next(lambda: None)

        def stop() -> None:
            raise StoppedError("nobody waits")

        with pytest.raises(StoppedError):
            stream.next(stop)
        stream.close()
        assert heard.left.wait(10)


def test_all_requests_share_one_loop() -> None:
    found: set[int] = set()
    threads = [threading.Thread(target=lambda: found.add(id(loop()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1


def test_a_request_may_be_given_more_time_or_less() -> None:
    with listening(b"") as (address, heard):
        client = Client(address_of(address, None, False))
        began = time.monotonic()
        with pytest.raises(LostError, match=r"says nothing for|ReadTimeout"):
            client.post("/api/generate", {}, tries=1, seconds=0.3)
        assert time.monotonic() - began < 30
        assert heard.left.wait(10)
