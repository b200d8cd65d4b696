"""Interrupts of child processes."""

import signal


def heed_interrupts() -> None:
    """Let a child be interrupted, as its `preexec_fn`.

    A job in the background of a script, as CI may be, has interrupts ignored, and its children inherit that.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
