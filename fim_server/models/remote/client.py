"""HTTP to an endpoint: requests with retries, and streams that can be left at any time."""

from __future__ import annotations

import itertools
import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fim_server.language.stop import heed
from fim_server.models.backend import LostError
from fim_server.models.remote.address import is_loopback
from fim_server.models.source import first_line

if TYPE_CHECKING:
    from httpx2 import Response

    from fim_server.models.remote.address import Address

TRIES = 3
"""Attempts at one request."""

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.25, 5.0
"""Before the second attempt, twice as long before the next; where the endpoint says how long, that, up to the other."""

CONNECT_SECONDS, READ_SECONDS = 5.0, 60.0
"""How long an endpoint may take to be reached, and to send anything: it may be reading a long prompt."""

SLICE_SECONDS = 0.02
"""How long is waited for an endpoint before it is looked whether anybody still waits for what it says."""

MOST_LINE = 1 << 26
"""Bytes of an answer, or of one event of a stream; the log probabilities of a whole vocabulary take 30 MB."""

MOST_EVENTS = 4096
"""Of a stream, whatever it was asked for."""

AGAIN = (408, 425, 429, 500, 502, 503, 504)
"""Statuses after which the same request may succeed."""

SAID = 200
"""Characters that are told of what an endpoint says about a refusal."""

Patience = Callable[[], None]
"""Raises where whoever waits does not want to wait any longer."""


class Transient(Exception):
    """A failure after which another attempt may succeed; ``pause``: seconds that the endpoint asks for."""

    def __init__(self, problem: str, pause: float | None = None) -> None:
        super().__init__(problem)
        self.pause = pause


class Client:
    """Requests to one endpoint. Used from the threads of all who share the model."""

    def __init__(self, address: Address) -> None:
        import httpx2

        self._address, self._errors = address, (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError)
        headers = {"Accept": "application/json"}
        if address.key is not None:
            headers["Authorization"] = f"Bearer {address.key}"
        timeout = httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
        # A proxy that the environment names is for other machines.
        proxied = not is_loopback(urlsplit(address.base).hostname or "")
        self._client = httpx2.Client(headers=headers, timeout=timeout, follow_redirects=False, trust_env=proxied)
        self.trips = 0
        """Requests for text that were made."""

    @property
    def base(self) -> str:
        """The endpoint's address."""
        return self._address.base

    def get(self, path: str) -> Any:
        """What an endpoint says at a path, as JSON; None where it has nothing there. Raises LostError."""
        return self._attempts(lambda: self._whole("GET", path, None, missing=(404, 405, 400, 501)), tries=2)

    def post(self, path: str, body: Mapping[str, Any], missing: tuple[int, ...] = ()) -> Any:
        """The answer to a request, as JSON; None where its status is one of ``missing``. Raises LostError."""
        return self._attempts(lambda: self._whole("POST", path, body, missing=missing))

    def ask(self, path: str, body: Mapping[str, Any], patience: Patience) -> Any:
        """As :meth:`post`, for text: counted as a trip, and left where ``patience`` raises."""
        self.trips += 1
        stream: Stream = self._attempts(
            lambda: begun(Stream(lambda: iter((self._whole("POST", path, body, ()),))), patience), patience
        )
        return stream.next(patience)

    def stream(self, path: str, body: Mapping[str, Any], patience: Patience) -> Stream:
        """The events of a request's answer, once they begin. Raises LostError, and whatever ``patience`` does."""
        self.trips += 1
        stream: Stream = self._attempts(lambda: self._begun(path, body, patience), patience)
        return stream

    def _begun(self, path: str, body: Mapping[str, Any], patience: Patience) -> Stream:
        stream = Stream(lambda: self._events(path, body, stream))
        return begun(stream, patience)

    def _attempts(self, work: Callable[[], Any], patience: Patience = heed, tries: int = TRIES) -> Any:
        pause = FIRST_PAUSE_SECONDS
        for attempt in range(1, tries + 1):
            try:
                return work()
            except Transient as failure:
                if attempt == tries:
                    raise LostError(f"{self.base}: {failure}") from None
                wait(min(LONGEST_PAUSE_SECONDS, pause if failure.pause is None else failure.pause), patience)
                pause *= 2
        raise AssertionError("every attempt returns or raises")

    def _whole(self, method: str, path: str, body: Mapping[str, Any] | None, missing: tuple[int, ...]) -> Any:
        try:
            with self._client.stream(method, self.base + path, json=body) as response:
                if response.status_code in missing:
                    return None
                self._check(response)
                return json.loads(limited(response))
        except self._errors as error:
            raise self._transient(error) from None
        except (ValueError, RecursionError):
            raise Transient("sends no JSON") from None

    def _events(self, path: str, body: Mapping[str, Any], stream: Stream) -> Iterator[Any]:
        """On the stream's own thread: each event's JSON. Raises Transient and LostError."""
        try:
            with self._client.stream("POST", self.base + path, json=body) as response:
                stream.response = response
                self._check(response)
                for line in lines(response):
                    data = line.removeprefix("data:").strip()
                    if data == "[DONE]":
                        return
                    if data and not line.startswith((":", "event:", "id:", "retry:")):
                        yield json.loads(data)
        except self._errors as error:
            raise self._transient(error) from None
        except (ValueError, RecursionError):
            raise Transient("sends what is no JSON") from None

    def _check(self, response: Response) -> None:
        status = response.status_code
        if status == 200:
            return
        said = self._hidden(said_of(response))
        problem = f"HTTP {status}{f' ({said})' if said else ''}"
        if status in AGAIN:
            raise Transient(problem, asked_pause(response))
        if status in (401, 403):
            problem += "; a key goes by --api-key-env"
        raise LostError(f"{self.base}: {problem}")

    def _transient(self, error: Exception) -> Transient:
        text = self._hidden(first_line(error)) or type(error).__name__
        return Transient(f"{type(error).__name__}: {text}")

    def _hidden(self, text: str) -> str:
        """A text in which the key does not stand."""
        key = self._address.key
        return text if key is None else text.replace(key, "...")


class Stream:
    """Events that come on a thread of their own, so that whoever waits for one can leave."""

    def __init__(self, events: Callable[[], Iterator[Any]]) -> None:
        self._events, self._queue = events, queue.SimpleQueue[tuple[str, Any]]()
        self.response: Response | None = None
        """Set once there is one."""
        self._first: tuple[str, Any] | None = None
        self._is_closed = False
        self._thread = threading.Thread(target=self._read, name="fim-remote", daemon=True)

    def begin(self, patience: Patience) -> None:
        """Wait for the first event, or the end. Raises Transient, LostError, and whatever ``patience`` does."""
        self._thread.start()
        self._first = self._take(patience)
        if self._first[0] == "failed":
            raise self._first[1]

    def next(self, patience: Patience) -> Any:
        """The next event; None after the last one, and where the endpoint has left in the middle."""
        kind, value = self._first or self._take(patience)
        self._first = None
        if kind != "event":
            self._first = kind, value
        return value if kind == "event" else None

    def close(self) -> None:
        """Have nothing more of it; the endpoint notices that nobody listens."""
        self._is_closed = True
        response = self.response
        if response is None or not self._thread.is_alive():
            return
        with suppress(Exception):  # the other thread may be waiting in the socket, which closing alone does not end
            network = response.extensions["network_stream"]
            network.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    def _take(self, patience: Patience) -> tuple[str, Any]:
        end = time.monotonic() + READ_SECONDS
        while time.monotonic() < end:
            with suppress(queue.Empty):
                return self._queue.get(timeout=SLICE_SECONDS)
            heed()
            patience()
        return "failed", Transient(f"says nothing for {READ_SECONDS:.0f} s")  # it may send signs of life all the while

    def _read(self) -> None:
        try:
            for event in itertools.islice(self._events(), MOST_EVENTS):
                if self._is_closed:
                    break
                self._queue.put(("event", event))
            self._queue.put(("end", None))
        except BaseException as error:  # noqa: BLE001  # it is for who waits
            self._queue.put(("failed", error))


def begun(stream: Stream, patience: Patience) -> Stream:
    """A stream that has begun. Raises as :meth:`Stream.begin`."""
    try:
        stream.begin(patience)
    except BaseException:
        stream.close()
        raise
    return stream


def wait(seconds: float, patience: Patience) -> None:
    """Wait, as long as it is wanted."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        heed()
        patience()
        time.sleep(min(left, SLICE_SECONDS))


def lines(response: Response) -> Iterator[str]:
    """The lines of an answer as they come. Raises Transient for one without an end."""
    rest = b""
    for chunk in response.iter_bytes():
        rest += chunk
        if len(rest) > MOST_LINE:
            raise Transient("sends a line that does not end")
        *whole, rest = rest.split(b"\n")
        for line in whole:
            yield line.decode(errors="replace").strip("\r")
    if rest:
        yield rest.decode(errors="replace")


def limited(response: Response) -> bytes:
    """All of an answer. Raises Transient for one that is too long."""
    found = bytearray()
    for chunk in response.iter_bytes():
        found += chunk
        if len(found) > MOST_LINE:
            raise Transient("sends an answer that does not end")
    return bytes(found)


def said_of(response: Response) -> str:
    """What a refusal says, in one short line."""
    text = ""
    with suppress(Exception):
        text = limited(response).decode(errors="replace")
        found = json.loads(text)
        error = found.get("error", found) if isinstance(found, dict) else found
        text = str(error.get("message", error) if isinstance(error, dict) else error)
    text = " ".join(text.split())
    return text[:SAID] + ("..." if len(text) > SAID else "")


def asked_pause(response: Response) -> float | None:
    """The seconds after which an endpoint wants to be asked again, where it says so."""
    with suppress(ValueError):
        return max(0.0, float(response.headers.get("retry-after", "")))
    return None
