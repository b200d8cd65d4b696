"""Requests that are refused, and limits: with raw sockets and real clients."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

for library in ("starlette", "uvicorn", "jsonschema"):
    pytest.importorskip(library)

from fim_server.errors import StoppedError
from fim_server.server.http import answering, bodies, entrance
from fim_server.server.http.answering import Answerer
from fim_server.server.http.bodies import RefusedError
from fim_server.server.http.client import MOST_CLIENTS
from fim_server.server.http.entrance import Entrance
from fim_server.server.http.wanted import Wanted
from fim_server.suggest.job import Work
from fim_server.suggest.pipeline import Completer
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from support.servers.http_served import PATIENCE, TEXT_LEFT, TEXT_RIGHT, HttpServed

TOKEN = "a-token-of-some-length"
HOST = {"host": "127.0.0.1:8000"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "127.0.0.1:8000"}, None),
        ({"host": "LOCALHOST"}, None),
        ({"host": "[::1]:8000"}, None),
        ({"host": "evil.example:8000"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": "evil@127.0.0.1"}, 403),
        ({"host": "[::1"}, 403),
        ({"host": ""}, 403),
        ({}, 403),
        ({**HOST, "origin": "http://127.0.0.1:8000"}, 403),
        ({**HOST, "origin": "null"}, 403),
    ],
)
def test_requests_of_web_pages_are_refused(headers: dict[str, str], status: int | None) -> None:
    assert refusal(Entrance("127.0.0.1", None, False), "/infill", headers) == status


@pytest.mark.parametrize(
    ("shown", "status"),
    [
        (f"Bearer {TOKEN}", None),
        (f"bearer  {TOKEN} ", None),
        (TOKEN, 401),
        ("Bearer", 401),
        (f"Bearer {TOKEN}x", 401),
        (f"Basic {TOKEN}", 401),
        ("Bearer \udcff", 401),
    ],
)
def test_a_token_is_shown_as_bearer(shown: str, status: int | None) -> None:
    public = Entrance("192.0.2.7", TOKEN, True)
    assert refusal(public, "/infill", {"host": "any.example", "authorization": shown}) == status
    assert refusal(public, "/infill", {}) == 401
    assert refusal(public, "/health", {}) is None


def refusal(rules: Entrance, path: str, headers: dict[str, str]) -> int | None:
    try:
        rules.check(path, headers)
    except RefusedError as error:
        return error.status
    return None


def test_all_paths_but_health_need_the_token() -> None:
    with HttpServed(token=TOKEN, public=True) as server:
        for path in ("/v1/models", "/openapi.json", "/metrics", "/unknown"):
            refused = server.get(path)
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert server.post("/infill", {}).status_code == 401
        assert server.get("/health").status_code in (200, 503)
        assert server.get("/v1/models", Authorization=f"Bearer {TOKEN}").status_code == 200


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not JSON, or nested too deeply"),
        (b"\xff", "the body is not JSON, or nested too deeply"),
        (b"[" * 100_000, "the body is not JSON, or nested too deeply"),
        (b'{"n_predict": NaN}', "the body is not JSON, or nested too deeply"),
        (b"9" * 10_000, "the body is not JSON, or nested too deeply"),
        (b"[]", "the body: object expected"),
        (b'{"input_prefix": 1}', "input_prefix: string expected"),
        (b'{"n_predict": 1.5}', "n_predict: integer expected"),
        (b'{"n_predict": true}', "n_predict: integer expected"),
        (b'{"n_predict": -2}', "n_predict: at least -1 expected"),
        (b'{"temperature": 1e9}', "temperature: at most 2 expected"),
        (b'{"input_extra": [{"filename": "a"}]}', "text: missing"),
        (b'{"language": {}}', "language: string or null expected"),
    ],
)
def test_bad_bodies_get_one_clear_line(served: HttpServed, body: bytes, message: str) -> None:
    status, error = raw_post(served, "/infill", body)
    assert (status, error["error"]) == (400, {"code": 400, "message": message, "type": "invalid_request_error"})


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (f"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: {'a' * 20_000}\r\n\r\n", 431),
        (f"GET /unknown?{'a' * 20_000} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 431),
        (f"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: {'a' * 20_000}", 431),  # without its end
        (f"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\nX: {'a' * 16_000}\r\n\r\n", 200),
        ("GET /health HTTP/9\r\n\r\n", 400),
        ("\x16\x03\x01\r\n\r\n", 400),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_long_and_wrong_heads_are_refused(served: HttpServed, head: str, status: int) -> None:
    with served.connect() as connection:
        connection.sendall(head.encode())
        answer = received(connection)
    assert int(answer.split()[1]) == status
    if status != 200:
        error = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
        assert (error["code"], error["type"]) == (status, "invalid_request_error")


@pytest.mark.parametrize(
    ("schema", "name", "most"),
    [
        ("Infill", "stop", 64),
        ("Infill", "input_extra", 256),
        ("Infill", "response_fields", 64),
        ("Completion", "prompt", 1),
    ],
)
def test_a_long_list_is_refused_before_its_elements_are_checked(schema: str, name: str, most: int) -> None:
    body = b'{"prompt": "", "%s": [%s1]}' % (name.encode(), b"1," * 500_000)
    began = time.process_time()
    with pytest.raises(RefusedError, match=f"^{name}: at most {most} element"):
        bodies.fields_of(body, schema)
    assert time.process_time() - began < 1, "checking the elements takes several seconds"


def test_a_client_that_leaves_while_it_sends_is_no_failure(
    served: HttpServed, caplog: pytest.LogCaptureFixture
) -> None:
    def gone() -> float:
        page = served.get("/metrics").text
        found = re.search(r'^fim_http_requests_total\{path="/infill",status="499"\} (.+)', page, re.MULTILINE)
        return 0.0 if found is None else float(found[1])

    before = gone()
    with served.connect() as connection:
        connection.sendall(request_head("/infill", 40) + b"{")
    until(lambda: gone() > before)
    assert "/infill failed" not in caplog.text


def test_one_connection_too_many_gets_a_reason(served: HttpServed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entrance, "MOST_CONNECTIONS", 0)
    refused = served.get("/openapi.json")
    assert (refused.status_code, refused.headers["retry-after"], refused.headers["connection"]) == (503, "1", "close")
    assert refused.json()["error"]["message"] == "too many connections: try again later"
    monkeypatch.undo()


def test_half_of_a_surrogate_pair_gets_a_reason(served: HttpServed) -> None:
    status, found = raw_post(served, "/infill", b'{"input_prefix": "x = \\ud800", "language": "python"}')
    assert status == 200
    assert "half a surrogate pair" in found["fim_server"]["reason"]


def test_other_types_and_large_bodies_are_refused(served: HttpServed) -> None:
    assert raw_post(served, "/infill", b"{}", "text/plain")[0] == 415
    head = request_head("/infill", bodies.MOST_BODY_BYTES + 1)
    with served.connect() as connection:
        connection.sendall(head)
        assert status_of(connection) == 413
    with served.connect() as connection:
        chunked = request_head("/infill", None) + b"Transfer-Encoding: chunked\r\n\r\n"
        connection.sendall(chunked.replace(b"\r\n\r\nTransfer", b"\r\nTransfer"))
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        try:
            for _ in range(bodies.MOST_BODY_BYTES // 0x10000 + 8):
                connection.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            pass
        else:
            assert status_of(connection) == 413
    assert served.get("/health").status_code in (200, 503)


def test_silent_connections_are_closed(served: HttpServed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entrance, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.2)
    with served.connect() as silent, served.connect() as slow, served.connect() as half:
        slow.sendall(b"POST /infill HTTP/1.1\r\nHost: ")
        half.sendall(request_head("/infill", 100) + b"{")
        assert status_of(half) == 408
        assert silent.recv(100) == slow.recv(100) == b""


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Work that goes on until it is stopped, at the cursor behind `stuck`."""
    seen: dict[str, Any] = {"begun": threading.Event(), "stopped": threading.Event()}
    original = Completer._answer

    def answer(self: Completer, loading: Any, request: Request, cancelled: Any, *rest: Any) -> Work | None:
        if not request.split.left.endswith("stuck"):
            return original(self, loading, request, cancelled, *rest)
        seen["begun"].set()
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends:
            if cancelled.is_set():
                seen["stopped"].set()
                raise StoppedError("stopped")
            time.sleep(0.01)
        raise AssertionError("not stopped")

    monkeypatch.setattr(Completer, "_answer", answer)
    return seen


def test_work_stops_when_the_client_leaves(served: HttpServed, stuck: dict[str, Any]) -> None:
    body = json.dumps({"input_prefix": "stuck", "input_suffix": "\n", "language": "python"}).encode()
    with served.connect() as connection:
        connection.sendall(request_head("/infill", len(body)) + body)
        assert stuck["begun"].wait(PATIENCE)
    assert stuck["stopped"].wait(PATIENCE)


def test_the_newest_request_for_a_document_wins(served: HttpServed, stuck: dict[str, Any]) -> None:
    found: dict[str, Any] = {}
    text = "first = 1\nsecond = 2\nthird = 3\n"

    def older() -> None:
        found.update(served.infill(f"{text}stuck", "\n", n_predict=40, temperature=0.1))

    thread = threading.Thread(target=older)
    thread.start()
    assert stuck["begun"].wait(PATIENCE)
    assert served.infill(text + "fourth = first + ", "\n")["content"]
    thread.join(PATIENCE)
    assert "a newer request" in found["fim_server"]["reason"]
    assert found["content"] == ""


def test_limits_belong_to_the_request(served: HttpServed) -> None:
    """One client: the answer of another limit is not taken from the cache."""
    left, clients = f"{TEXT_LEFT}height - ", len(served.answerer.clients)
    whole = served.infill(left, TEXT_RIGHT, user="limits")
    origins = []
    for fields in ({"n_predict": 2}, {"n_predict": 2}, {"temperature": 0.2}, {}):
        found = served.infill(left, TEXT_RIGHT, user="limits", **fields)
        origins.append(found["fim_server"]["origin"])
        assert found["tokens_predicted"] <= fields.get("n_predict", 99)
    assert origins == ["model", "cache", "model", "cache"]
    assert found["content"] == whole["content"]
    assert len(served.answerer.clients) == min(clients + 1, MOST_CLIENTS)


def test_waiting_requests_of_a_client_are_dropped_for_its_newest(
    served: HttpServed, stuck: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all places taken: the older request that waits gets no text, and one more client is refused."""
    found: dict[str, Any] = {}
    queue = served.answerer.queue

    def ask(name: str, left: str, user: str = "") -> None:
        body = {"input_prefix": left, "input_suffix": "\n", "language": "python", "user": user}
        found[name] = served.post("/infill", body)

    def begin(*arguments: str) -> threading.Thread:
        thread = threading.Thread(target=ask, args=arguments)
        thread.start()
        return thread

    holders = [served.connect() for _ in range(answering.MOST_AT_WORK)]
    for number, holder in enumerate(holders):
        body = json.dumps({"input_prefix": "stuck", "filename": f"{number}.py"}).encode()
        holder.sendall(request_head("/infill", len(body)) + body)
    until(lambda: queue.running == answering.MOST_AT_WORK)
    monkeypatch.setattr(answering, "MOST_WAITING", 1)
    older = begin("older", "x = ")
    until(lambda: queue.waiting == 1)
    newer = begin("newer", "y = 1\nz = ")
    older.join(PATIENCE)
    assert "a newer request" in found["older"].json()["fim_server"]["reason"]
    ask("refused", "x = ", "another client")
    assert (found["refused"].status_code, found["refused"].headers["retry-after"]) == (503, "1")
    for holder in holders:
        holder.close()
    newer.join(PATIENCE)
    assert found["newer"].json()["content"]


def test_requests_of_one_moment_wait_too() -> None:
    """They arrive before the first of them has taken its place."""

    class NoClients:
        def find(self, *arguments: Any) -> None:
            raise RefusedError(500, "no client")

    async def burst(count: int) -> list[Any]:
        clients: Any = NoClients()
        answerer = Answerer(clients, ServerSettings())
        served = [answerer.serve((str(number),), Wanted("x", "")) for number in range(count)]
        return await asyncio.gather(*served, return_exceptions=True)

    most = answering.MOST_AT_WORK + answering.MOST_WAITING
    assert [refused.status for refused in asyncio.run(burst(most + 1))] == [500] * most + [503]


def test_equal_requests_share_an_answer(served: HttpServed) -> None:
    """Three at a time, by which minuet asks for alternatives."""
    found: list[str] = []

    def ask() -> None:
        found.append(served.infill(f"{TEXT_LEFT}width + ", TEXT_RIGHT)["content"])

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(found) == 3
    assert len(set(found)) == 1
    assert found[0]


def test_a_server_without_a_model_says_why(tmp_path: Any) -> None:
    with HttpServed(ServerSettings(model=str(tmp_path / "missing"))) as server:
        until(lambda: server.get("/health").json()["error"]["message"] != answering.LOADING)
        refused = server.post("/infill", {"input_prefix": "x = "})
        assert refused.status_code == 503
        assert "missing" in refused.json()["error"]["message"]
        assert [model["id"] for model in server.get("/v1/models").json()["data"]] == ["missing"]


def request_head(path: str, length: int | None, kind: str = "application/json") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Type: {kind}", "User-Agent: python-httpx2/raw"]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return "\r\n".join([*lines, "", ""]).encode()


def raw_post(server: HttpServed, path: str, body: bytes, kind: str = "application/json") -> tuple[int, Any]:
    with server.connect() as connection:
        connection.sendall(request_head(path, len(body), kind) + body)
        head, _, rest = received(connection).partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(rest)


def received(connection: socket.socket) -> bytes:
    """Return one response, by its content length."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += more(connection)
    head = data.partition(b"\r\n\r\n")[0].decode().lower()
    length = int(head.split("content-length: ")[1].split("\r\n")[0])
    while len(data.partition(b"\r\n\r\n")[2]) < length:
        data += more(connection)
    return data


def more(connection: socket.socket) -> bytes:
    chunk = connection.recv(1 << 16)
    assert chunk, "the connection has ended"
    return chunk


def status_of(connection: socket.socket) -> int:
    return int(received(connection).split()[1])


def until(holds: Any) -> None:
    ends = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def _same_server(served: HttpServed) -> Iterator[None]:
    """Check that no request ends the server."""
    yield
    assert served.get("/openapi.json").status_code == 200
