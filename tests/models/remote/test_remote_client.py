"""Cancellation of requests to an endpoint at each stage of its answer, and the certificates that the client accepts."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fim_server.errors import ModelError, StoppedError
from fim_server.models.backend import LostError
from fim_server.models.remote.address import address_of
from fim_server.models.remote.client import Client, loop

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b'{"response": "a"}\n'
CHUNK = b"%x\r\n%s\r\n" % (len(EVENT), EVENT)


class Heard:
    """Endpoint with one connection.

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
def test_cancelling_before_the_first_event_closes_the_connection(said: bytes) -> None:
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


def test_cancelling_between_events_closes_the_connection() -> None:
    with listening(HEAD + CHUNK) as (address, heard):
        stream = Client(address_of(address, None, False)).stream("/api/generate", {}, lambda: None)
        assert stream.next(lambda: None) == {"response": "a"}
        stream.close()
        assert heard.left.wait(10)


def test_an_abandoned_stream_closes_the_connection() -> None:
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
        with pytest.raises(LostError, match=r"has not answered within|ReadTimeout"):
            client.post("/api/generate", {}, tries=1, seconds=0.3)
        assert time.monotonic() - began < 30
        assert heard.left.wait(10)


# --- certificates -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for this machine that no authority has signed, and its key, in one file."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("there is no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("certificate")
    made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    made += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(folder / "key"), "-out", str(folder / "cert")]
    subprocess.run([program, *made], check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_text((folder / "key").read_text() + (folder / "cert").read_text())
    return both


@contextmanager
def encrypting(certificate: Path) -> Iterator[str]:
    """The address of an endpoint with TLS that answers an empty object."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"https://localhost:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join(20)


def test_an_own_authority_is_trusted_on_this_machine_too(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with encrypting(certificate) as base:
        address = address_of(base, None, False)
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        with pytest.raises(LostError, match=r"certificate.*goes by SSL_CERT_FILE"):
            Client(address).get("/v1/models")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert Client(address).get("/v1/models") == {}


def test_unreadable_authorities_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("no certificate\n")
    for file in (junk, tmp_path / "nowhere.pem"):
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        with pytest.raises(ModelError, match=r"^the certificates that SSL_CERT_FILE .*$"):
            Client(address_of("https://example.com", None, False))
        Client(address_of("http://127.0.0.1:1", None, False))  # which needs none
