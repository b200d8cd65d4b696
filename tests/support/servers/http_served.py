"""An HTTP server in this process, on a thread and a port of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

import httpx2

from fim_server.server.app import create_server
from fim_server.server.connection.listening import Endpoint
from fim_server.server.http.answering import Answerer
from fim_server.server.http.app import listen_http
from fim_server.server.language_server import FimLanguageServer
from fim_server.suggest.settings import ServerSettings
from fim_server.workers.shared_models import SharedModels

PATIENCE = 120.0

TEXT_LEFT = "import os\n\n\ndef area(width, height):\n    total = width * height\n    return "
TEXT_RIGHT = "\n\n\nprint(area(2, 3))\n"


class HttpServed:
    """Server with the embedded model, unless told otherwise; ``servers``: those of its clients."""

    def __init__(self, settings: ServerSettings | None = None, token: str | None = None, public: bool = False) -> None:
        self.settings = settings or ServerSettings(model="embedded", min_confidence=0.0, deadline_ms=None)
        self.endpoint = Endpoint("127.0.0.1", 0, token, public)
        self.servers: list[FimLanguageServer] = []
        self.port = 0
        self.failure: BaseException | None = None
        self._models = SharedModels()
        self._listens = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> HttpServed:
        self._thread.start()
        assert self._listens.wait(PATIENCE)
        if self.failure is not None:
            raise self.failure
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001  # raised again where the test waits
            self.failure = error
        finally:
            self._listens.set()

    async def _serve(self) -> None:
        self.loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._task = task
        await listen_http(self.settings, self.endpoint, self._create, self._began)

    def _create(self, settings: ServerSettings) -> FimLanguageServer:
        server = create_server(settings, models=self._models, covers=False)
        self.servers.append(server)
        return server

    def _began(self, answerer: Answerer, sockets: Sequence[socket.socket]) -> None:
        self.answerer = answerer
        self.port = sockets[0].getsockname()[1]
        self._listens.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return httpx2.get(self.url + path, headers=headers, timeout=PATIENCE)

    def post(self, path: str, body: Any, **headers: str) -> httpx2.Response:
        return httpx2.post(self.url + path, json=body, headers=headers, timeout=PATIENCE)

    def infill(self, left: str, right: str, **fields: Any) -> dict[str, Any]:
        """Return the response of an accepted request for Python."""
        body = {"input_prefix": left, "input_suffix": right, "language": "python", **fields}
        response = self.post("/infill", body)
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    def await_model(self) -> None:
        """Wait for the model, which takes longer than a request waits where other work has the processors."""
        ends = time.monotonic() + PATIENCE
        while self.get("/health").status_code != 200:
            assert time.monotonic() < ends
            time.sleep(0.1)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)
