"""A program in a pseudo terminal, and what it shows there: for tests of terminal editors."""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import pyte

from support.unix import KILLED, fork_terminal, set_size, status_of

NOT_UNDERSTOOD = re.compile(
    rb"\x1b[P_^\]][^\x07\x1b]*(?:\x07|\x1b\\)"
    rb"|\x1b\[(?:[<=>][0-9;]*|[?0-9;]*[$:][0-9;:]*)[@-~]"
    rb"|\x1b\[\?[0-9;]*[A-Za-gi-km-z]"
)
"""Sequences that the emulator would print: device control and operating system strings, and unknown queries."""
UNFINISHED = re.compile(rb"\x1b(?:[P_^\]][^\x07\x1b]*\x1b?|\[[^@-~]*|)\Z")
ANSWERS = {b"\x1b[c": b"\x1b[?62c", b"\x1b[5n": b"\x1b[0n"}
"""Queries to a terminal that programs wait for: its attributes, its status."""
PATIENCE = 20
"""Seconds after which a screen that does not come up fails a test."""


class Terminal:
    """A running program, its screen and its keyboard."""

    def __init__(
        self,
        command: Sequence[str | Path],
        environment: Mapping[str, str],
        cwd: Path,
        rows: int = 24,
        columns: int = 80,
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._unfinished = b""
        self.exit_status: int | None = None
        self.process_id, self._file = fork_terminal()
        if self.process_id == 0:  # a controlling terminal is what subprocess.Popen cannot give
            try:
                os.chdir(cwd)
                variables = {**os.environ, **environment, "TERM": "xterm-256color", "COLORTERM": ""}
                os.execvpe(command[0], [str(argument) for argument in command], variables)
            finally:
                os._exit(127)
        set_size(self._file, rows, columns)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        if self.has_ended() is None:
            os.kill(self.process_id, -KILLED)
            os.waitpid(self.process_id, 0)
        os.close(self._file)

    def has_ended(self) -> int | None:
        """The program's exit status, None while it runs."""
        if self.exit_status is None:
            self.exit_status = status_of(self.process_id)
        return self.exit_status

    def type(self, keys: str) -> None:
        os.write(self._file, keys.encode())

    def type_slowly(self, keys: str, pause: float = 0.03) -> None:
        """Key by key, so that the program takes no key for a part of a longer one."""
        for key in keys:
            self.type(key)
            self.look(pause)

    def look(self, seconds: float) -> None:
        """Take in what the program writes within a time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self._file], [], [], left)[0]:
                return
            try:
                data = self._unfinished + os.read(self._file, 65536)
            except OSError:  # the program has ended
                time.sleep(left)
                return
            for question, answer in ANSWERS.items():
                if question in data:
                    os.write(self._file, answer)
            unfinished = UNFINISHED.search(data)
            self._unfinished = unfinished.group() if unfinished else b""
            self._stream.feed(NOT_UNDERSTOOD.sub(b"", data[: len(data) - len(self._unfinished)]))

    def until(self, condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
        """Look until a condition holds."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"no {what} within {seconds} s:\n{self.text}"
            assert self.has_ended() is None, f"the program has ended with {self.exit_status}:\n{self.text}"
            self.look(0.03)

    @property
    def lines(self) -> list[str]:
        """The screen's lines without blanks at their ends."""
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def coloured(self, colour: str) -> list[str]:
        """The parts of the screen written in a colour, a string for each line that has any."""
        parts = []
        for number in range(self.screen.lines):
            row = self.screen.buffer[number]
            part = "".join(row[column].data for column in range(self.screen.columns) if row[column].fg == colour)
            if part.strip():
                parts.append(part)
        return parts
