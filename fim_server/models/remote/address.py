"""Address of an endpoint, and its key."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from fim_server.errors import ModelError
from fim_server.text.hidden import on_one_line

LONGEST_ADDRESS, LONGEST_SHOWN = 4096, 200
"""Most characters of an address, and of a name that a message repeats."""

SCHEMES = ("http://", "https://")


def is_remote(name: str) -> bool:
    """Return whether a model's name is an endpoint's address."""
    return name.lower().startswith(SCHEMES)


@dataclass(frozen=True)
class Address:
    """Address of an endpoint.

    Attributes:
        base: Scheme, host, port and an optional path before the endpoint's own, without a slash at its end.
        model: The model that the address names behind a `#`.
        key: Bearer token; no output contains it.
    """

    base: str
    model: str | None = None
    key: str | None = field(default=None, repr=False)


def address_of(name: str, key_variable: str | None, allow_plain: bool) -> Address:
    """Parse a model's name as an address.

    Args:
        name: As in ``http://HOST:PORT``, ``https://HOST/PATH#MODEL``.
        key_variable: The environment variable that holds the key.
        allow_plain: Whether HTTP without TLS may leave this machine.

    Raises:
        ModelError: It is no address, it is plain HTTP to another machine, or the variable is not set; one line.
    """
    if len(name) > LONGEST_ADDRESS:
        problem = f"an address of {len(name):,} characters; {LONGEST_ADDRESS:,} at most"
        raise ModelError(f"{on_one_line(name[:LONGEST_SHOWN])}…: {problem}")
    try:
        parts = urlsplit(name)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ModelError(
            f"{on_one_line(name, LONGEST_SHOWN)}: no address ({on_one_line(str(error), LONGEST_SHOWN)})"
        ) from None
    if not host or parts.username or parts.password or parts.query:
        raise ModelError("an address is http(s)://HOST:PORT, and #MODEL behind it if need be; keys go by --api-key-env")
    if parts.scheme == "http" and not allow_plain and not is_loopback(host):
        raise ModelError(
            f"{on_one_line(name, LONGEST_SHOWN)}: without TLS, anyone between would read the code; https, or "
            "--allow-plain-http"
        )
    key = None
    if key_variable is not None:
        shown = on_one_line(key_variable, LONGEST_SHOWN)
        try:
            key = os.environ.get(key_variable, "").strip()
        except ValueError:  # half of a surrogate pair
            key = ""
        if not key:
            raise ModelError(f"the environment variable {shown}, which is to hold the key, is not set")
        if not key.isascii() or not key.isprintable():
            raise ModelError(f"what the environment variable {shown} holds is no key")
    path = parts.path.rstrip("/").removesuffix("/v1")
    return Address(f"{parts.scheme}://{parts.netloc}{path}", parts.fragment or None, key)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, by its name alone."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
