"""What holds for all tests: they keep what is compiled in a cache of their own."""

from __future__ import annotations

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Have no test, and no program that a test starts, see the models in the cache of who runs it.

    Which model serves depends on them. Token tables and compiled languages are kept from one run to the next as
    everywhere; a test that wants other cache folders names its own.
    """
    cache: pytest.Cache | None = getattr(config, "cache", None)
    os.environ["FIM_SERVER_CACHE"] = "" if cache is None else str(cache.mkdir("fim-server"))  # "" keeps nothing
