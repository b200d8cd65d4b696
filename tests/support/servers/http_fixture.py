"""Fixture of an HTTP server that all tests of a session share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.servers.http_served import HttpServed


@pytest.fixture(scope="session")
def served() -> Iterator[HttpServed]:
    """Server with the embedded model, without thresholds and deadlines."""
    from support.servers.http_served import HttpServed  # its libraries may be missing

    with HttpServed() as server:
        server.await_model()
        yield server
