"""Application of the HTTP server: its routes, its errors, and its run on sockets."""

from __future__ import annotations

import json
import logging
import socket
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fim_server.server.http import completions, infill
from fim_server.server.http.answering import LOADING, Answerer, unless_gone
from fim_server.server.http.bodies import Body, BodyBytes, RefusedError, error_of, fields_of, openapi
from fim_server.server.http.client import HttpClients
from fim_server.server.http.entrance import MOST_HEAD_BYTES, Entrance, TimedProtocol, require_short_head
from fim_server.server.http.metrics import Metrics
from fim_server.server.status import MOST_OF_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from starlette.requests import Request

    from fim_server.server.connection.listening import Endpoint
    from fim_server.server.http.wanted import Served, Wanted
    from fim_server.server.language_server import FimLanguageServer
    from fim_server.suggest.settings import ServerSettings

logger = logging.getLogger(__name__)

IDLE_SECONDS = 30
"""Time after which an idle connection is closed."""

CLIENT_GONE = 499
"""Status in the metrics of a request whose client has gone."""

GRACE_SECONDS = 2
"""Time for requests under way when the server ends."""


class HttpServer:
    """Endpoints on one set of clients."""

    def __init__(self, entrance: Entrance, answerer: Answerer) -> None:
        self.entrance = entrance
        self.answerer = answerer
        self._metrics = Metrics(answerer)
        self._bodies = BodyBytes()
        self._began = int(time.time())

    def app(self) -> Starlette:
        """Return the application."""
        routes = [
            self._route("/infill", self.infill, "POST"),
            self._route("/v1/completions", self.completions, "POST"),
            self._route("/v1/models", self.models, "GET"),
            self._route("/health", self.health, "GET"),
            self._route("/metrics", self.metrics, "GET"),
            self._route("/openapi.json", self.openapi, "GET"),
        ]
        return Starlette(routes=routes, exception_handlers={HTTPException: self._unknown})

    def _route(self, path: str, handler: Callable[[Request], Any], method: str) -> Route:
        async def guarded(request: Request) -> Response:
            try:
                require_short_head(request)
                self.entrance.check(path, request.headers)
                response: Response = await handler(request)
            except RefusedError as error:
                response = refused(error.status, error.reason)
            except ClientDisconnect:  # while it sent the body
                response = Response(status_code=CLIENT_GONE)
            except Exception as error:  # noqa: BLE001  # one request's failure is not the server's
                where = traceback.extract_tb(error.__traceback__)[-1]
                logger.error("%s failed: %s at %s:%d", path, type(error).__name__, where.filename, where.lineno or 0)
                response = refused(500, "the request failed; the server's log says more")
            self._metrics.count(path, response.status_code)
            return response

        return Route(path, guarded, methods=[method])

    async def _unknown(self, request: Request, error: HTTPException) -> Response:
        try:
            require_short_head(request)
            self.entrance.check("", request.headers)
        except RefusedError as refusal:
            return refused(refusal.status, refusal.reason)
        return refused(error.status_code, f"{error.detail.lower()}: /openapi.json lists the endpoints")

    async def infill(self, request: Request) -> Response:
        """Answer ``POST /infill``."""
        return await self._complete(request, "Infill", infill.wanted_of, infill.response_of, infill.events_of, False)

    async def completions(self, request: Request) -> Response:
        """Answer ``POST /v1/completions``."""

        def response(served: Served, fields: Mapping[str, Any]) -> dict[str, Any]:
            return completions.response_of(served)

        return await self._complete(request, "Completion", completions.wanted_of, response, completions.events_of, True)

    async def _complete(
        self,
        request: Request,
        schema: str,
        wanted_of: Callable[[Mapping[str, Any]], Wanted],
        response_of: Callable[[Served, Mapping[str, Any]], dict[str, Any]],
        events_of: Callable[[Served, Mapping[str, Any]], Iterator[dict[str, Any]]],
        says_done: bool,
    ) -> Response:
        body, began = Body(self._bodies), time.perf_counter()
        try:
            fields = fields_of(await body.read(request), schema)
            address = request.client.host if request.client is not None else ""
            name = address, request.headers.get("user-agent", "")[:MOST_OF_NAME], fields.get("user") or ""
            served = await unless_gone(self.answerer.serve(name, wanted_of(fields)), lambda: gone(request))
        finally:
            body.close()
        if served is None:
            return Response(status_code=CLIENT_GONE)
        self._metrics.count_answer(served, time.perf_counter() - began)
        if not fields.get("stream"):
            return JSONResponse(response_of(served, fields), headers=served.headers)
        events = [f"data: {json.dumps(event)}\n\n" for event in events_of(served, fields)]
        done = ["data: [DONE]\n\n"] if says_done else []
        return Response("".join(events + done), headers=served.headers, media_type="text/event-stream")

    async def models(self, request: Request) -> Response:
        """Answer ``GET /v1/models``."""
        entry = {"id": self.answerer.model_name, "object": "model", "created": self._began, "owned_by": "fim-server"}
        return JSONResponse({"object": "list", "data": [entry]})

    async def health(self, request: Request) -> Response:
        """Answer ``GET /health``, without an endpoint's or model's name."""
        if self.answerer.clients.model is None:
            return refused(503, self.answerer.clients.failure or LOADING)
        return JSONResponse({"status": "ok"})

    async def metrics(self, request: Request) -> Response:
        """Answer ``GET /metrics``."""
        return Response(self._metrics.page(), media_type=CONTENT_TYPE_LATEST)

    async def openapi(self, request: Request) -> Response:
        """Answer ``GET /openapi.json``."""
        return JSONResponse(openapi())


async def gone(request: Request) -> None:
    """Return once the client has closed its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def shown(listening: socket.socket) -> str:
    """Return the address of a socket as people write it."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def refused(status: int, reason: str) -> JSONResponse:
    """Return an error in the form that clients of OpenAI and llama.cpp read."""
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {"Retry-After": "1"} if status == 503 else None
    return JSONResponse(error_of(status, reason), status, headers)


def http_settings(settings: ServerSettings) -> ServerSettings:
    """Return the settings for HTTP clients, who pause by themselves and report no acceptance."""
    languages = {"plaintext": "automatic", **settings.languages}
    return settings.having("debounce_ms", 0.0).having("personal_threshold", False).having("languages", languages)


async def listen_http(
    settings: ServerSettings,
    endpoint: Endpoint,
    create: Callable[[ServerSettings], FimLanguageServer],
    began: Callable[[Answerer, Sequence[socket.socket]], object] = lambda answerer, sockets: None,
) -> None:
    """Serve HTTP until a signal ends the process. Raises OSError if the server cannot listen.

    Args:
        settings: Settings of all clients.
        endpoint: Address to listen on.
        create: Returns a new server for a client.
        began: Called with the sockets once they listen.
    """
    sockets = [bound(address, endpoint.port) for address in endpoint.addresses()]
    clients = HttpClients(create)
    answerer = Answerer(clients, http_settings(settings))
    server = HttpServer(Entrance(endpoint.host, endpoint.token, endpoint.is_public), answerer)
    config = uvicorn.Config(
        server.app(),
        http=TimedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        h11_max_incomplete_event_size=MOST_HEAD_BYTES,
    )
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # a stranger's requests shall not fill the log
    try:
        clients.begin(answerer.settings)
        print(f"fim-server: HTTP on {', '.join(map(shown, sockets))}", file=sys.stderr, flush=True)  # the port may be 0
        began(answerer, sockets)
        await uvicorn.Server(config).serve(sockets=sockets)
    finally:
        clients.close()
        for one in sockets:
            one.close()


def bound(address: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address. Raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address.partition("%")[0], port), family=family, reuse_port=False)
