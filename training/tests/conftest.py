"""Settings of the test session."""

from support.session import pytest_configure as pytest_configure
