"""``fim-server serve``: run the language server."""

from __future__ import annotations

import argparse
import errno
import json
import os
import socket
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fim_server.cli.arguments import (
    ModelArguments,
    add_decoding,
    add_model,
    add_prompt_tokens,
    add_python_version,
    address,
    bind,
    is_whole,
)
from fim_server.cli.output import BAD_INPUT, complain, version
from fim_server.errors import EXHAUSTED, DocumentError, MissingLibrary, is_exhaustion, problem_of_system
from fim_server.text.document import Document

if TYPE_CHECKING:
    from fim_server.server import Endpoint, ListeningClient, ServerSettings

LACKS_MEMORY = "too little memory, or no thread available: the server does not start; give the process more"

LOOPBACK = "127.0.0.1"

TOKEN_VARIABLE = "FIM_SERVER_TOKEN"
"""Environment variable with the token; all users of a machine can see arguments."""

HTTP_LIBRARIES = ("starlette", "uvicorn", "jsonschema", "prometheus_client")
"""Libraries of the extra `http`."""

LEAST_TOKEN = 16
"""Least characters of a token; a shorter one could be guessed."""


@dataclass(frozen=True)
class ServeArguments(ModelArguments):
    """Arguments of ``fim-server serve``; the editor decides those that are None.

    Attributes:
        tcp: Host, if one is named, and port to listen on.
        http: The same for HTTP.
        settings: File with the settings of HTTP clients.
        host: Address to listen on that other machines may reach.
        socket: Port on loopback where a client listens.
        pipe: Unix socket or Windows pipe where a client listens.
        client_process: Number of a process with which the server ends.
    """

    tcp: tuple[str | None, int] | None
    http: tuple[str | None, int] | None
    settings: Path | None
    host: str | None
    stdio: bool
    socket: int | None
    pipe: str | None
    node_ipc: bool
    client_process: int | None
    token_file: Path | None
    python_version: str | None
    max_new_tokens: int | None
    max_prompt_tokens: int | None
    temperature: float | None
    deadline_ms: float | None
    log_level: str


def add_serve(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "serve",
        help="run the language server",
        description="Run the language server (with textDocument/inlineCompletion) on standard input and output, or as "
        "an option says.",
    )
    parser.add_argument(
        "--tcp",
        type=address,
        metavar="[HOST:]PORT",
        help=f"listen on this port of a loopback address (default: {LOOPBACK})",
    )
    parser.add_argument(
        "--http",
        type=address,
        metavar="[HOST:]PORT",
        help="answer HTTP clients (llama.cpp's /infill, OpenAI's /v1/completions) on this port of a loopback address; "
        "needs the extra `http`",
    )
    parser.add_argument(
        "--settings",
        type=Path,
        metavar="FILE",
        help="with --http: JSON file with settings, by the names that editors use",
    )
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        help="with --tcp PORT or --http PORT: listen on this address, which other machines may reach; needs a token",
    )
    parser.add_argument(
        "--token-file",
        "--http-token-file",
        type=Path,
        metavar="FILE",
        help="with --tcp or --http: file with the token that clients send, in initializationOptions or as Bearer "
        f"(default: the environment variable {TOKEN_VARIABLE})",
    )
    parser.add_argument("--stdio", action="store_true", help="use standard input and output (default)")
    parser.add_argument(
        "--socket", type=port, metavar="PORT", help="connect to a client that listens on this port of this machine"
    )
    parser.add_argument(
        "--pipe", metavar="NAME", help="connect to a client that listens on this Unix socket or named pipe of Windows"
    )
    parser.add_argument("--node-ipc", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--clientProcessId",
        dest="client_process",
        type=process,
        metavar="N",
        help="exit when the process of this number ends, like the one that initialize names",
    )
    add_python_version(parser)
    add_model(parser, "the setting `model`, else ")
    add_decoding(parser)
    add_prompt_tokens(parser, None, "what the model reads in 0.3 s on this machine, at least 192")
    parser.add_argument("--log-level", choices=("error", "warning", "info", "debug"), default="warning")
    parser.set_defaults(max_new_tokens=None, temperature=None, deadline_ms=None)
    bind(parser, ServeArguments, run_serve)


def run_serve(arguments: ServeArguments) -> int:
    """Run the server; return the exit status. Raises DocumentError."""
    token = read_token(arguments.token_file) if listening_at(arguments) is not None else None
    problem = contradiction(arguments, token) or taken(arguments)
    if problem is not None:
        complain(problem)
        return BAD_INPUT
    from fim_server.models.resources.room import can_serve

    if not can_serve():  # native libraries would end the process
        complain(LACKS_MEMORY)
        return EXHAUSTED
    try:
        from fim_server.server import ServerSettings, serve
    except (MemoryError, RuntimeError, ImportError) as error:
        if not is_exhaustion(error):
            raise
        complain(LACKS_MEMORY)
        return EXHAUSTED
    named: dict[str, Any] = {
        "max_tokens": arguments.max_new_tokens,
        "prompt_tokens": arguments.max_prompt_tokens,
        "temperature": arguments.temperature,
        "deadline_ms": arguments.deadline_ms,
    }
    settings = ServerSettings(
        model=arguments.model,
        device=arguments.device,
        runtime=arguments.runtime,
        gpu_layers=arguments.gpu_layers,
        adapter=arguments.adapter,
        api_key_env=arguments.api_key_env,
        allow_plain_http=arguments.allow_plain_http,
        tokenizer=arguments.tokenizer,
        python_version=arguments.python_version,
        log_level=arguments.log_level,
        **{name: value for name, value in named.items() if value is not None},
    )
    if arguments.settings is not None:
        settings = with_file(settings, arguments.settings)
    speaks_http = arguments.http is not None
    if speaks_http and (missing := [name for name in HTTP_LIBRARIES if find_spec(name) is None]):
        raise MissingLibrary(f"--http needs {', '.join(missing)}: install fim-server[http]")
    return serve(settings, place_of(arguments, token), version(), arguments.client_process, speaks_http)


def with_file(settings: ServerSettings, file: Path) -> ServerSettings:
    """Return the settings with those of a JSON file. Raises DocumentError for a wrong file or setting."""
    text = Document.read_file(str(file)).text
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise DocumentError(f"{file}: not JSON, or nested too deeply") from None
    found, problems = settings.with_client(values)
    if problems:
        raise DocumentError(f"{file}: {problems[0]}")
    return found


def listening_at(arguments: ServeArguments) -> tuple[str | None, int] | None:
    """Return the host, if one is named, and the port to listen on; None if the server does not listen."""
    return arguments.tcp if arguments.http is None else arguments.http


def read_token(file: Path | None) -> str | None:
    """Return the token of a file or the environment, or None.

    Raises DocumentError if the file cannot be read, or its token is missing, too short or not printable.
    """
    if file is not None:
        name, token = str(file), Document.read_file(str(file)).text.strip()
    else:
        name, token = TOKEN_VARIABLE, os.environ.get(TOKEN_VARIABLE, "").strip()
        if not token:
            return None
    if len(token) < LEAST_TOKEN:
        raise DocumentError(f"{name}: a token has at least {LEAST_TOKEN} characters")
    if not token.isprintable():
        raise DocumentError(f"{name}: a token has printable characters only")
    return token


def contradiction(arguments: ServeArguments, token: str | None) -> str | None:
    """Return the fault of the given addresses in one line, or None."""
    if arguments.node_ipc:
        return "--node-ipc: only programs of Node.js can use it; start the server with --stdio"
    ways = {
        "--stdio": arguments.stdio,
        "--tcp": arguments.tcp,
        "--http": arguments.http,
        "--socket": arguments.socket,
        "--pipe": arguments.pipe,
    }
    named_ways = [way for way, value in ways.items() if value not in (None, False)]
    if len(named_ways) > 1:
        return f"{named_ways[0]} and {named_ways[1]}: use only one of them"
    empty = {"--pipe": arguments.pipe, "--host": arguments.host}
    for option, value in empty.items():
        if value is not None and not value.strip():
            return f"argument {option}: a name expected"
    if arguments.settings is not None and arguments.http is None:
        return "--settings: needs --http"
    place, way = listening_at(arguments), "--tcp" if arguments.http is None else "--http"
    if place is None:
        named = "--host" if arguments.host is not None else "--token-file" if arguments.token_file is not None else None
        return None if named is None else f"{named}: needs --tcp or --http"
    if arguments.host is not None and place[0] is not None:
        return f"--host {arguments.host}: {way} names a host already; {way} {place[1]} names the port alone"
    if arguments.host is not None and token is None:
        return f"--host {arguments.host}: needs a token, in --token-file or in {TOKEN_VARIABLE}"
    return None


def taken(arguments: ServeArguments) -> str | None:
    """Return a line about a port that cannot be listened on, before the slow import of the server; else None."""
    listening = listening_at(arguments)
    if listening is None:
        return None
    host, port = arguments.host or listening[0] or LOOPBACK, listening[1]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        for family, *_, place in found:
            socket.create_server(place, family=family).close()
    except UnicodeError:
        return None
    except OSError as error:
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            return f"{host}:{port}: {problem_of_system(error)}"
    return None


def place_of(arguments: ServeArguments, token: str | None) -> Endpoint | ListeningClient | None:
    """Return the address to listen on or to connect to; None for standard input and output."""
    from fim_server.server import Endpoint, ListeningClient

    if arguments.socket is not None or arguments.pipe is not None:
        return ListeningClient(arguments.socket, arguments.pipe)
    listening = listening_at(arguments)
    if listening is None:
        return None
    host, port = listening
    return Endpoint(arguments.host or host or LOOPBACK, port, token, is_public=arguments.host is not None)


def port(text: str) -> int:
    """Parse the number of a port that a client listens on."""
    if not is_whole(text) or len(text) > 5 or not 0 < int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 1 to 65535 expected")
    return int(text)


def process(text: str) -> int:
    """Parse the number of a process."""
    if not is_whole(text) or len(text) > 10 or not 0 < int(text) < 1 << 31:
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of a process")
    return int(text)
