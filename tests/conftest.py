"""Settings of the test session."""

from support.servers.http_fixture import served as served
from support.session import pytest_configure as pytest_configure
