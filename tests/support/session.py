"""Settings of all test sessions: their own cache, and the package `support` for programs that tests start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def pytest_configure(config: pytest.Config) -> None:
    """Hide the models in the user's cache from tests and from the programs that tests start.

    Which model serves depends on them. Token tables and compiled languages are kept from one run to the next; a test
    that wants other cache folders names its own.
    """
    cache: pytest.Cache | None = getattr(config, "cache", None)
    os.environ["FIM_SERVER_CACHE"] = "" if cache is None else str(cache.mkdir("fim-server"))  # "" keeps nothing
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(TESTS) not in path:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(TESTS), *filter(None, path)])
