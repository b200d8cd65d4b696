"""Judge of Python files: CPython's own ``ast.parse`` in a separate process.

The interpreter may be another one than runs the evaluation. Some texts overflow a parser's stack: the process dies, the
text counts as not parsing, and the run goes on.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path

from fim_server.errors import JudgeError

CHILD = Path(__file__).with_name("judge_child.py")

PATIENCE_S = 60.0
"""For one text. A file of a megabyte takes a second."""

LONGEST_LINE = 256
"""Bytes of an answer; a version is the longest there is."""


class Judge:
    """An interpreter that says whether files parse."""

    def __init__(self, executable: str | None = None) -> None:
        """Starts it: a path or a name on the PATH; None is the interpreter that runs this. Raises JudgeError."""
        self._executable = sys.executable if executable is None else executable
        self.version = ""
        """Version of the interpreter, as in ``3.13.0``."""
        self.deaths = 0
        """Number of times that the process died or was killed for not answering."""
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        try:
            process = subprocess.Popen(
                [self._executable, "-I", "-X", "utf8", str(CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="ascii",
            )
        except OSError as error:
            raise JudgeError(f"{self._executable}: {error.strerror or error}") from None
        version = read_line(process)
        if not re.fullmatch(r"3\.(9|[1-9]\d)\.\d+\S*", version, re.ASCII):
            process.kill()
            process.wait()
            raise JudgeError(f"{self._executable}: not a Python that can judge (3.9 or newer)")
        self.version = version
        return process

    def parses(self, text: str, claimed: bool = True) -> bool:
        """Return whether ``ast.parse`` takes a file; False if it dies or does not answer in a minute.

        Its verdict overrides the engine's.
        """
        process = self._process
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(text) + "\n")
            process.stdin.flush()
            answer = read_line(process)
        except BrokenPipeError:
            answer = ""
        if answer not in ("0", "1"):
            self.deaths += 1
            self.close()
            self._process = self._start()
        return answer == "1"

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:  # what was left to write
                continue


def read_line(process: subprocess.Popen[str]) -> str:
    """The next line of a process, which says one at a time; empty if none comes in time, or one that has no end."""
    assert process.stdout is not None
    descriptor, deadline, line = process.stdout.fileno(), time.monotonic() + PATIENCE_S, b""
    while not line.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or len(line) >= LONGEST_LINE or not select.select([descriptor], [], [], left)[0]:
            return ""
        piece = os.read(descriptor, LONGEST_LINE)
        if not piece:
            break
        line += piece
    return line.decode("ascii", "replace").strip()
