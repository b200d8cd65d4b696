"""HTTP client of an endpoint: requests with retries, and streams that can be cancelled at any time.

Cancelling has to close the connection, else the endpoint goes on reading a long prompt and the next request waits.
Ollama and llama.cpp's server send nothing, not even a header, before they have read the prompt. A thread that waits for
a socket cannot be interrupted, but a task can. So requests are tasks of one event loop, on one thread for all
endpoints.
"""

from __future__ import annotations

import asyncio
import json
import queue
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fim_server.errors import ModelError, first_line
from fim_server.language.stop import heed
from fim_server.models.backend import LostError
from fim_server.models.remote.address import is_loopback

if TYPE_CHECKING:
    from concurrent.futures import Future
    from ssl import SSLContext

    from httpx2 import Response, Timeout

    from fim_server.models.remote.address import Address

TRIES = 3
"""Most attempts at a request."""

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.25, 5.0
"""Pause before the second attempt, doubled before the next, and the longest pause that an endpoint may ask for."""

CONNECT_SECONDS, READ_SECONDS = 5.0, 60.0
"""Longest time to reach an endpoint, and until its answer or the next event, since it may read a long prompt first.

All attempts at a request share it, and signs of life do not extend it.
"""

SLICE_SECONDS = 0.02
"""Longest wait between two checks whether the caller still needs the answer."""

PROBE_SECONDS = 15.0
"""Longest time for an endpoint to describe itself, without reading a prompt."""

MOST_BYTES = 1 << 23
"""Most bytes of an answer with text, or of a stream: 64 tokens with 20 log probabilities each take 200 kB."""

MOST_VOCABULARY_BYTES = 1 << 26
"""Most bytes of an answer with a vocabulary; the largest known one takes 30 MB."""

MOST_VALUES = 1 << 23
"""Most values of such an answer. A parsed value may take 64 bytes for two in the text; the largest vocabulary has 3
million."""

MOST_EVENTS = 4096
"""Most events of a stream, whatever the request asks for."""

AGAIN = (408, 425, 429, 500, 502, 503, 504)
"""Statuses after which the same request may succeed."""

BEFORE_VALUES = bytes((0x2C, 0x5B, 0x7B))
"""Marks before values of JSON: a comma, or the beginning of an array or object."""

MOST_REFUSAL, MOST_MESSAGE = 200, 500
"""Most characters of an endpoint's refusal, and of a whole message, in an error."""

Patience = Callable[[], None]
"""Check of the caller's need for the answer; it raises where the caller has given up."""


class Transient(Exception):
    """Failure after which another attempt may succeed; ``pause``: seconds that the endpoint asks for."""

    def __init__(self, problem: str, pause: float | None = None) -> None:
        super().__init__(problem)
        self.pause = pause


class LateError(Transient):
    """Answer or event that did not come within its time limit, so that no time is left for another attempt."""


class SilentError(LostError):
    """Endpoint that did not answer in time, or in all attempts; it may answer later."""


class Client:
    """Client of one endpoint, for all threads that share its model."""

    def __init__(self, address: Address) -> None:
        import httpx2

        self._address, self._errors = address, (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError)
        # The size of a compressed answer has no limit, so the client neither asks for compression nor accepts it.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if address.key is not None:
            headers["Authorization"] = f"Bearer {address.key}"
        # A proxy that the environment names is for other machines; authorities that it names are for all of them.
        proxied = not is_loopback(urlsplit(address.base).hostname or "")
        verify = authorities() if proxied or address.base.startswith("https:") else False
        try:
            self._client = httpx2.AsyncClient(
                headers=headers,
                timeout=timeout(READ_SECONDS),
                follow_redirects=False,
                trust_env=proxied,
                verify=verify,
            )
        except (ValueError, ImportError, httpx2.InvalidURL) as error:
            raise ModelError(f"the proxy that the environment names cannot be used ({first_line(error)})") from None
        self.trips = 0
        """Number of requests for text so far."""

    @property
    def base(self) -> str:
        return self._address.base

    def get(self, path: str) -> Any:
        """Return the endpoint's JSON at a path; None where it has nothing there. Raises LostError."""
        return self._answer("GET", path, None, missing=(404, 405, 400, 501), tries=2, seconds=PROBE_SECONDS)

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        missing: tuple[int, ...] = (),
        tries: int = TRIES,
        seconds: float | None = None,
        most: int = MOST_BYTES,
    ) -> Any:
        """Return the answer to a request as JSON; None where its status is one of ``missing``. Raises LostError.

        ``seconds``: time limit of all attempts together; ``most``: most bytes of the answer.
        """
        return self._answer("POST", path, body, missing, tries=tries, seconds=seconds, most=most)

    def ask(self, path: str, body: Mapping[str, Any], patience: Patience) -> Any:
        """Post a request for text: it counts as a trip, and ends where ``patience`` raises."""
        self.trips += 1
        return self._answer("POST", path, body, (), patience)

    def stream(self, path: str, body: Mapping[str, Any], patience: Patience) -> Stream:
        """Return the events of an answer once they begin. Raises LostError, and the exceptions of ``patience``."""
        self.trips += 1
        return self._begun(lambda: self._events(path, body), patience)

    def _answer(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        missing: tuple[int, ...],
        patience: Patience = heed,
        tries: int = TRIES,
        seconds: float | None = None,
        most: int = MOST_BYTES,
    ) -> Any:
        limit = READ_SECONDS if seconds is None else seconds
        stream = self._begun(lambda: self._whole(method, path, body, missing, limit, most), patience, tries, limit)
        return stream.next(patience)

    def _begun(
        self,
        events: Callable[[], AsyncGenerator[Any]],
        patience: Patience,
        tries: int = TRIES,
        seconds: float | None = None,
    ) -> Stream:
        next_pause = FIRST_PAUSE_SECONDS
        seconds = READ_SECONDS if seconds is None else seconds
        until = time.monotonic() + seconds
        for attempt in range(1, tries + 1):
            stream = Stream(events, seconds)
            try:
                stream.begin(patience, until)
            except Transient as failure:
                stream.close()
                pause = min(LONGEST_PAUSE_SECONDS, next_pause if failure.pause is None else failure.pause)
                if attempt == tries or time.monotonic() + pause >= until:
                    raise SilentError(f"{self.base}: {failure}") from None
                wait(pause, patience)
                next_pause *= 2
            except BaseException:
                stream.close()
                raise
            else:
                return stream
        raise AssertionError("every attempt returns or raises")

    async def _whole(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        missing: tuple[int, ...],
        seconds: float,
        most: int,
    ) -> AsyncGenerator[Any]:
        """Yield an answer's JSON, or None, as the one event. Raises Transient and LostError.

        The endpoint may load a model before it answers. An answer that has begun gets the usual time at most.
        """
        body_seconds = min(seconds, READ_SECONDS)
        try:
            times = timeout(seconds)
            async with self._client.stream(method, self.base + path, json=body, timeout=times) as response:
                if response.status_code in missing:
                    found = None
                else:
                    await self._check(response)
                    async with asyncio.timeout(body_seconds):
                        answer = await limited(response, most)
                    found = parsed(answer)
        except TimeoutError:
            raise LateError(f"has not ended its answer within {body_seconds:.0f} s") from None
        except self._errors as error:
            raise self._transient(error) from None
        except UnicodeError:
            raise LostError(f"{self.base}: its name or a text for it cannot be encoded") from None
        except ValueError:
            raise Transient("sends no JSON") from None
        yield found

    async def _events(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[Any]:
        """Yield each event's JSON. Raises Transient and LostError."""
        try:
            async with self._client.stream("POST", self.base + path, json=body) as response:
                await self._check(response)
                async with aclosing(lines(response)) as found:
                    size = 0
                    async for line in found:
                        size += len(line)
                        if size > MOST_BYTES:  # the endpoint may send faster than the reader takes it
                            raise Transient("sends a stream that does not end")
                        data = line.removeprefix("data:").strip()
                        if data == "[DONE]":
                            return
                        if data and not line.startswith((":", "event:", "id:", "retry:")):
                            yield parsed(data.encode())
        except self._errors as error:
            raise self._transient(error) from None
        except UnicodeError:
            raise LostError(f"{self.base}: its name or a text for it cannot be encoded") from None
        except ValueError:
            raise Transient("sends what is no JSON") from None

    async def _check(self, response: Response) -> None:
        status = response.status_code
        if status == 200 and is_plain(response):
            return
        if not is_plain(response):
            raise LostError(f"{self.base}: compresses its answers, which is not supported")
        if 300 <= status < 400:
            raise LostError(f"{self.base}: HTTP {status} redirects to another address: name that one")
        refusal = shortened(self.hidden(await refusal_of(response)))
        problem = f"HTTP {status}{f' ({refusal})' if refusal else ''}"
        if status in AGAIN:
            raise Transient(problem, requested_pause(response))
        if status in (401, 403):
            problem += "; a key goes by --api-key-env"
        raise LostError(f"{self.base}: {problem}")

    def _transient(self, error: Exception) -> Transient:
        text = self.hidden(first_line(error)) or type(error).__name__
        if "certificate" in text:
            text += "; an authority of your own goes by SSL_CERT_FILE"
        return Transient(f"{type(error).__name__}: {text}")

    def message_of(self, error: Exception) -> str:
        """Return an error's message without the key; shortening comes last, so that no part of the key is left."""
        return shortened(self.hidden(str(error)), MOST_MESSAGE)

    def hidden(self, text: str) -> str:
        key = self._address.key
        return text if key is None else text.replace(key, "...")


def authorities() -> SSLContext:
    """Return the system's certificate authorities, or those that `SSL_CERT_FILE` or `SSL_CERT_DIR` names.

    Raises ModelError where they cannot be read.
    """
    import httpx2

    try:
        return httpx2.create_ssl_context()
    except OSError as error:  # ssl.SSLError is one; neither says which file it is
        raise ModelError(f"the certificates that SSL_CERT_FILE or SSL_CERT_DIR names: {first_line(error)}") from None


def timeout(seconds: float) -> Timeout:
    """Return the time limits of a connection and its answers."""
    import httpx2

    return httpx2.Timeout(seconds, connect=CONNECT_SECONDS)


def loop() -> asyncio.AbstractEventLoop:
    with LOOP_LOCK:
        if not LOOPS:
            found = asyncio.new_event_loop()
            threading.Thread(target=found.run_forever, name="fim-remote", daemon=True).start()
            LOOPS.append(found)
        return LOOPS[0]


LOOPS: list[asyncio.AbstractEventLoop] = []
LOOP_LOCK = threading.Lock()


class Stream:
    """Events from a task of the event loop, so that a thread that waits for one can leave."""

    def __init__(self, events: Callable[[], AsyncGenerator[Any]], seconds: float) -> None:
        """Prepare a stream. ``seconds``: longest time from one event to the next."""
        self._seconds = seconds
        self._events, self._queue = events, queue.SimpleQueue[tuple[str, Any]]()
        self._first: tuple[str, Any] | None = None
        self._task: Future[None] | None = None

    def begin(self, patience: Patience, until: float) -> None:
        """Wait for the first event or the end, until a time of ``time.monotonic``.

        Raises Transient, LostError, and the exceptions of ``patience``.
        """
        self._task = asyncio.run_coroutine_threadsafe(self._read(), loop())
        self._first = self._take(patience, until)
        if self._first[0] == "failed":
            raise self._first[1]

    def next(self, patience: Patience) -> Any:
        """Return the next event; None after the last one, and where the endpoint has left in the middle.

        Raises SilentError where it does not come in time.
        """
        kind, value = self._first or self._take(patience, time.monotonic() + self._seconds)
        self._first = None
        if isinstance(value, LateError):
            raise SilentError(f"the endpoint {value}")
        if kind != "event":
            self._first = kind, value
        return value if kind == "event" else None

    def close(self) -> None:
        """Cancel the task; the closed connection shows it to the endpoint."""
        if self._task is not None:
            self._task.cancel()

    def _take(self, patience: Patience, until: float) -> tuple[str, Any]:
        while time.monotonic() < until:
            with suppress(queue.Empty):
                return self._queue.get(timeout=SLICE_SECONDS)
            heed()
            patience()
        # It may have sent signs of life all the while.
        return "failed", LateError(f"has not answered within {self._seconds:.0f} s")

    async def _read(self) -> None:
        left = MOST_EVENTS
        try:
            async with aclosing(self._events()) as events:
                async for event in events:
                    self._queue.put(("event", event))
                    left -= 1
                    if not left:
                        break
            self._queue.put(("end", None))
        except Exception as error:  # noqa: BLE001  # the waiting thread gets it
            self._queue.put(("failed", error))


def wait(seconds: float, patience: Patience) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        heed()
        patience()
        time.sleep(min(left, SLICE_SECONDS))


async def lines(response: Response) -> AsyncGenerator[str]:
    """Yield the lines of an answer as they come. Raises Transient for a line that is too long."""
    rest = bytearray()
    async for chunk in response.aiter_raw():
        known = len(rest)
        rest += chunk
        if len(rest) > MOST_BYTES:
            raise Transient("sends a line that does not end")
        if rest.find(b"\n", known) < 0:
            continue
        *whole, rest = rest.split(b"\n")
        for line in whole:
            yield line.decode(errors="replace").strip("\r")
    if rest:
        yield rest.decode(errors="replace")


async def limited(response: Response, most: int = MOST_BYTES) -> bytes:
    """Return the whole answer. Raises Transient for one that is too long."""
    found = bytearray()
    async for chunk in response.aiter_raw():
        found += chunk
        if len(found) > most:
            raise Transient("sends an answer that does not end")
    return bytes(found)


def is_plain(response: Response) -> bool:
    return response.headers.get("content-encoding", "identity").strip().lower() in ("", "identity")


def parsed(text: bytes) -> Any:
    """Parse JSON, NaN and infinities included. Raises ValueError for other texts, or for too many values."""
    if sum(map(text.count, BEFORE_VALUES)) > MOST_VALUES:
        raise ValueError("too many values")
    try:
        return json.loads(text)
    except UnicodeDecodeError:
        raise ValueError("no UTF-8") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


async def refusal_of(response: Response) -> str:
    text = ""
    with suppress(Exception):
        text = (await limited(response)).decode(errors="replace")
        found = parsed(text.encode())
        error = found.get("error", found) if isinstance(found, dict) else found
        text = str(error.get("message", error) if isinstance(error, dict) else error)
    return " ".join(text.split())


def shortened(text: str, most: int = MOST_REFUSAL) -> str:
    return text[:most] + ("..." if len(text) > most else "")


def requested_pause(response: Response) -> float | None:
    """Return the seconds after which an endpoint wants the next request, if it names them."""
    with suppress(ValueError):
        return max(0.0, float(response.headers.get("retry-after", "")))
    return None
