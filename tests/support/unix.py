"""Calls of Unix that tests need; elsewhere they are skipped."""

from __future__ import annotations

import os
import socket
import struct
import sys
from pathlib import Path

import pytest

KILLED = -9
"""Exit status of a process that SIGKILL ended."""


def make_pipe(path: Path) -> None:
    """Make a named pipe."""
    if sys.platform == "win32":
        pytest.skip("no named pipes in folders")
    else:
        os.mkfifo(path)


def unix_socket() -> socket.socket:
    """Return a socket whose address is a path."""
    if sys.platform == "win32":
        pytest.skip("no sockets in folders")
    else:
        return socket.socket(socket.AF_UNIX)


def fork_terminal() -> tuple[int, int]:
    """Fork a process with a terminal of its own: return its id, 0 in it, and the terminal's descriptor."""
    if sys.platform == "win32":
        pytest.skip("no pseudo terminals")
    else:
        import pty

        return pty.fork()


def set_size(terminal: int, rows: int, columns: int) -> None:
    """Set a terminal's size."""
    if sys.platform != "win32":
        import fcntl
        import termios

        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def status_of(child: int) -> int | None:
    """Return the exit status of a child, or None while it runs."""
    if sys.platform == "win32":
        pytest.skip("no children by their ids")
    else:
        ended, status = os.waitpid(child, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if ended else None
