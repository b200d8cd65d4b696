"""Allowed addresses of a port."""

from __future__ import annotations

import socket

import pytest

from fim_server.server import Endpoint

TOKEN = "correct-horse-battery-staple"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.1.2.3"])
def test_loopback_addresses_are_allowed(host: str) -> None:
    try:
        assert Endpoint(host, 8765).addresses()
    except socket.gaierror:
        pytest.skip("no such address here")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "2001:db8::1"])
def test_other_addresses_need_a_public_endpoint(host: str) -> None:
    with pytest.raises(OSError, match="not a loopback address"):
        Endpoint(host, 8765).addresses()
    assert Endpoint(host, 8765, TOKEN, is_public=True).addresses() == [host]
