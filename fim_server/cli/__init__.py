"""The command line."""

from fim_server.cli.program import main

__all__ = ["main"]
