"""``fim-server serve``: the language server."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from fim_server.cli.arguments import (
    add_decoding,
    add_model,
    add_prompt_tokens,
    add_python_version,
    address,
    bind,
)
from fim_server.cli.output import version


@dataclass(frozen=True)
class ServeArguments:
    """What ``fim-server serve`` is asked for; what is None is the editor's to say.

    Attributes:
        tcp: A host and a port to listen on, in place of standard input and output.
        deadline_ms: Milliseconds.
    """

    tcp: tuple[str, int] | None
    python_version: str | None
    model: str | None
    device: str | None
    runtime: str | None
    max_new_tokens: int | None
    max_prompt_tokens: int | None
    temperature: float | None
    deadline_ms: float | None
    log_level: str


def add_serve(commands: Any) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "serve",
        help="run the language server",
        description="Speak the Language Server Protocol, with textDocument/inlineCompletion, on standard input and "
        "output.",
    )
    parser.add_argument("--tcp", type=address, metavar="HOST:PORT", help="listen there instead")
    add_python_version(parser)
    add_model(parser)
    add_decoding(parser)
    add_prompt_tokens(parser, None, "what is read in 0.3 s on this machine, and at least 192")
    parser.add_argument("--log-level", choices=("error", "warning", "info", "debug"), default="warning")
    parser.set_defaults(max_new_tokens=None, temperature=None, deadline_ms=None)
    bind(parser, ServeArguments, run_serve)


def run_serve(arguments: ServeArguments) -> int:
    """Run the server to its end; returns the exit status."""
    from fim_server.server import ServerSettings, serve

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
        python_version=arguments.python_version,
        log_level=arguments.log_level,
        **{name: value for name, value in named.items() if value is not None},
    )
    return serve(settings, arguments.tcp, version())
