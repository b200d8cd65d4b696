"""The program ``fim-server``, also ``python -m fim_server``: a command in a process of its own.

An interrupt ends it at once. Python delivers a signal to the main thread between two of its own instructions only.
Loading a model and reading a large file with the engine are one long instruction each. So a second thread gets the
signal too.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

BAD_INPUT, INTERRUPTED = 2, 130

NO_TELEMETRY = {"HF_HUB_DISABLE_TELEMETRY": "1"}
"""Variables without which a library tells its maker more than it has to, unless the user has set them."""

NOTICE_SECONDS = 0.1
"""Most seconds until the main thread notices an interrupt; later it is inside a long instruction."""

TIDYING_SECONDS = 3.0
"""Most seconds that a command may take to clean up once it has noticed the interrupt."""


def run(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status.

    Without ``argv`` it is the process's own, whose interrupts are heeded, and an interrupted one does not return.
    """
    for name, value in NO_TELEMETRY.items():  # read when the library is imported
        os.environ.setdefault(name, value)
    try:
        if argv is None:
            heed_interrupts()
        from fim_server.cli import main

        status = main(argv)
    except (ImportError, MemoryError) as error:  # the imports themselves take memory
        from fim_server.errors import is_exhaustion

        if not is_exhaustion(error):
            raise
        os.write(2, b"fim-server: too little memory, or no thread available\n")
        status = BAD_INPUT
    except KeyboardInterrupt:
        status = INTERRUPTED
    if argv is None and status == INTERRUPTED:  # what goes on in other threads is waited for at a usual end
        leave()
    return status


def heed_interrupts() -> None:
    """Have interrupts end the process, whatever it does; unless they are ignored, as in a script's background."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    noticed = threading.Event()

    def notice(number: int, frame: FrameType | None) -> NoReturn:
        if noticed.is_set():  # the second one
            leave()
        noticed.set()
        raise KeyboardInterrupt

    woken, wakes = socket.socketpair()
    wakes.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=wait_for_interrupt, args=(woken, wakes, noticed), daemon=True, name="fim-signals").start()
    signal.signal(signal.SIGINT, notice)


def wait_for_interrupt(woken: socket.socket, wakes: socket.socket, noticed: threading.Event) -> None:
    """End the process soon after an interrupt, if it has not ended by then.

    ``wakes``: the other end of ``woken``, open as long as this thread is there.
    """
    while signal.SIGINT not in woken.recv(64):
        pass
    if noticed.wait(NOTICE_SECONDS):
        threading.Event().wait(TIDYING_SECONDS)
    leave()


def leave() -> NoReturn:
    """End the process as interrupted, without a word; a progress bar may have hidden the terminal's cursor."""
    if sys.stderr is not None and sys.stderr.isatty():
        os.write(sys.stderr.fileno(), b"\r\x1b[K\x1b[?25h")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(run())
