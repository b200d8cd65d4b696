"""Entrance of the HTTP server: who may send requests, and for how long a connection may be silent.

A web page may send requests to a loopback address too: under another host's name (DNS rebinding), or with an `Origin`.
Both are refused.
"""

from __future__ import annotations

import json
import sys
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import h11
from starlette.responses import JSONResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from fim_server.server.connection.handshake import is_token
from fim_server.server.http.bodies import RefusedError, error_of

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from starlette.requests import Request

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

OPEN_PATH = "/health"
"""Path that needs no token."""

HEAD_SECONDS = 10.0
"""Longest time for a connection to send the head of its first request, or of a further one."""

MOST_CONNECTIONS = 128
"""Most connections at a time."""

MOST_HEAD_BYTES = 1 << 14
"""Most bytes of a request's head."""

LONG_HEAD = f"the head of the request has more than {MOST_HEAD_BYTES:,} bytes"


class Entrance:
    """Rules for requests; ``token``: the required token, if any."""

    def __init__(self, host: str, token: str | None, is_public: bool) -> None:
        self._names = None if is_public else LOOPBACK_NAMES | {host.lower()}
        self._token = token

    def check(self, path: str, headers: Mapping[str, str]) -> None:
        """Raise RefusedError for a request of a web page, or without the token."""
        if self._names is not None and host_in(headers.get("host", "")) not in self._names:
            raise RefusedError(403, "the header Host does not name this machine")
        if "origin" in headers:
            raise RefusedError(403, "requests of web pages are refused")
        if self._token is None or path == OPEN_PATH:
            return
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not is_token(shown.strip(), self._token):
            raise RefusedError(401, "the token is missing or wrong (header Authorization: Bearer TOKEN)")


def host_in(value: str) -> str:
    """Return the name or address in a header `Host`, in lower case; empty for a wrong one."""
    try:
        return (urlsplit(f"//{value}").hostname or "") if "@" not in value else ""
    except ValueError:
        return ""


def require_short_head(request: Request) -> None:
    """Raise RefusedError for a long head that came as a whole: the protocol refuses only those that come in parts."""
    headers = sum(len(name) + len(value) + len(b": \r\n") for name, value in request.headers.raw)
    if headers + len(request.scope["raw_path"]) + len(request.scope["query_string"]) > MOST_HEAD_BYTES:
        raise RefusedError(431, LONG_HEAD)


class TimedProtocol(H11Protocol):  # type: ignore[misc]  # uvicorn may not be installed where types are checked
    """Protocol of a connection that is closed if the head of a request does not come in time.

    Requests that are no HTTP, or come over too many connections, get errors like those of the application.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            headers = {"Retry-After": "1", "Connection": "close"}
            self.app = JSONResponse(error_of(503, "too many connections: try again later"), 503, headers)
        self._seen: Any = None
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Close the connection unless a request is being answered, or a new one has come since the last look."""
        cycle = self.cycle
        is_answered = cycle is None or cycle.response_complete
        if is_answered and cycle is self._seen:
            self.transport.close()
            return
        self._seen = cycle
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._look)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request. Called where the parser's error is handled."""
        is_long = getattr(sys.exception(), "error_status_hint", 400) == 431
        status, reason = (431, LONG_HEAD) if is_long else (400, "not a request of HTTP/1.1")
        body = json.dumps(error_of(status, reason)).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            response = h11.Response(status_code=status, headers=headers, reason=HTTPStatus(status).phrase.encode())
            events = (response, h11.Data(data=body), h11.EndOfMessage())
            self.transport.write(b"".join(self.conn.send(event) for event in events))
        self.transport.close()
