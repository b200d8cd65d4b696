"""A hub on this machine with one repository of GGUF files, which redirects downloads to another server."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class FileHub:
    """Behaviour of the hub.

    Attributes:
        repository: Name of its repository.
        content: Content of the file, as the hub describes it.
        names: Paths of the repository's files; all have that content.
        store: Address that downloads are redirected to.
        token: The token that files need; None: none.
        tells_checksum: True if it describes the file in its large storage.
        answer: Answer to the listing in place of the right one.
        asked: Methods and paths of the requests.
    """

    repository: str
    content: bytes
    names: list[str]
    store: str
    token: str | None = None
    tells_checksum: bool = True
    answer: bytes | None = None
    asked: list[str] = field(default_factory=list)


@contextmanager
def serving_hub(hub: FileHub) -> Iterator[str]:
    """The hub's address, for the variable HF_ENDPOINT."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.asked.append(f"{self.command} {path}")
            if path == f"/api/models/{hub.repository}":
                listed = {"id": hub.repository, "sha": COMMIT, "siblings": [{"rfilename": name} for name in hub.names]}
                self._answer(200, hub.answer or json.dumps(listed).encode())
                return
            found = re.fullmatch(f"/{hub.repository}/resolve/{COMMIT}/(.+)", path)
            if found is None or found[1] not in hub.names:
                self._answer(404, b"{}", {"X-Error-Code": "RepoNotFound" if found is None else "EntryNotFound"})
            elif hub.token is not None and self.headers.get("Authorization") != f"Bearer {hub.token}":
                self._answer(401, b"{}", {"X-Error-Code": "GatedRepo"})
            else:
                described = {"X-Repo-Commit": COMMIT, "Location": hub.store, "X-Linked-Size": str(len(hub.content))}
                if hub.tells_checksum:
                    described["X-Linked-Etag"] = f'"{hashlib.sha256(hub.content).hexdigest()}"'
                self._answer(302, b"", {**described, "ETag": '"of-the-redirection"'})

        def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
