"""HTTP servers of tests: on a thread and a port of this machine, without a log."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit


class QuietHandler(BaseHTTPRequestHandler):
    """Handler without a log."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass


class HubHandler(QuietHandler):
    """Handler of a hub, which answers GET and HEAD."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        raise NotImplementedError

    @property
    def plain_path(self) -> str:
        return unquote(urlsplit(self.path).path)

    def begin(self, status: int, length: int, headers: Mapping[str, str]) -> None:
        """Send the head of an answer whose body has a length in bytes."""
        self.send_response(status)
        for name, value in {"Content-Length": str(length), **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.begin(status, len(body), headers)
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def serving_by(handler: type[BaseHTTPRequestHandler], port: int = 0) -> Iterator[str]:
    """Serve, and yield the address. The port 0 is any that is free. Raises OSError for one that is taken."""
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
