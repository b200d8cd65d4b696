"""CPython as the judge of texts: newer ones, in processes of their own, and the one that runs the tests."""

from __future__ import annotations

import json
import os
import platform
import select
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from support.engine import verdicts

ORACLE = Path(__file__).parents[2] / "oracle"
PACKAGES = ORACLE / "node_modules"
VERSIONS = ("3.14", "3.15")
NEWEST = VERSIONS[-1]
BATCH = 400_000  # characters of one request
REMEMBERED = 20_000_000  # characters of the texts whose verdicts are kept
PATIENCE_S = 60.0  # for one request: the slowest texts of a batch take some seconds
STACK_KIB = 7000  # of the 8 MiB that a process has: nesting that CPython takes overflows V8's own 1 MB


class Unavailable(Exception):
    """The oracle cannot be started; the message is one line that says what to do."""


class _Died(Exception):
    pass


def unavailable() -> str | None:
    """Return the reason why there is no oracle, or None if there is one."""
    if shutil.which("node") is None:
        return "the oracle needs Node 20 or newer"
    if not (PACKAGES / f"pyodide-{NEWEST}").is_dir():
        return "the oracle is not installed: run './dev exact --help', or 'npm ci' in tests/oracle"
    return None


class Judge:
    """CPython's verdicts, by pyodide in Node. Verdicts are remembered; the process is restarted when it dies."""

    def __init__(self, python: str = NEWEST) -> None:
        """Start the process, which takes some seconds.

        Args:
            python: One of `VERSIONS`.

        Raises:
            Unavailable: Node or the package is missing.
        """
        reason = unavailable()
        if reason is not None:
            raise Unavailable(reason)
        self.seconds = 0.0  # spent waiting for answers
        self.asked = 0  # texts that were not remembered
        self.restarts = -1
        self._memory: dict[str, bool | None] = {}
        self._remembered = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._received = b""
        self._python = python
        self.version = self._start()

    def verdict(self, text: str) -> bool | None:
        """Return whether CPython parses a text; None where it gives up (recursion, memory, a crash)."""
        return self.verdicts([text])[0]

    def verdicts(self, texts: Sequence[str]) -> list[bool | None]:
        memory = self._memory
        new = [text for text in dict.fromkeys(texts) if text not in memory]
        self.asked += len(new)
        self._remembered += sum(map(len, new))
        if self._remembered > REMEMBERED:
            kept = {text: memory[text] for text in texts if text in memory}
            memory.clear()
            memory.update(kept)
            self._remembered = sum(map(len, memory)) + sum(map(len, new))
        batch: list[str] = []
        size = 0
        for text in new:
            if batch and size + len(text) > BATCH:
                self._judge(batch)
                batch, size = [], 0
            batch.append(text)
            size += len(text)
        self._judge(batch)
        return [memory[text] for text in texts]

    def message(self, text: str) -> str:
        """Return CPython's message on a text that it refuses; empty for others."""
        return str(self._tell("message", text, otherwise="gave up"))

    def outline(self, text: str, most: int) -> list[Any]:
        """See `verdicts.outline`; empty where CPython refuses the text."""
        return list(self._tell("outline", text, most, otherwise=[])) if self.verdict(text) else []

    def tokens(self, text: str) -> dict[str, list[tuple[int, int]]]:
        """See `verdicts.tokens`."""
        found = self._tell("tokens", text, otherwise={"tokens": [], "strings": [], "fields": []})
        return {name: [(start, end) for start, end in spans] for name, spans in found.items()}

    def spans(self, question: str, text: str) -> list[tuple[int, int]]:
        """`verdicts.expressions` or `verdicts.blocks` of a text that CPython takes."""
        return [(start, end) for start, end in self._tell(question, text, otherwise=[])]

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _judge(self, texts: list[str]) -> None:
        """Asks for verdicts; halves what the process dies of until the one text is found."""
        if not texts:
            return
        try:
            found = self._ask("verdicts", texts)
        except _Died:
            if len(texts) == 1:
                self._memory[texts[0]] = None
            else:
                self._judge(texts[: len(texts) // 2])
                self._judge(texts[len(texts) // 2 :])
            return
        self._memory.update(zip(texts, found, strict=True))
        if None in found:  # what ran out of memory or stack may have left the interpreter short of it
            self.close()

    def _tell(self, *request: Any, otherwise: Any) -> Any:
        try:
            return self._ask(*request)
        except _Died:
            return otherwise

    def _ask(self, *request: Any) -> Any:
        started = time.perf_counter()
        try:
            if self._process is None:
                self._start()
            assert self._process is not None
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(request).encode("ascii") + b"\n")
            self._process.stdin.flush()
            return json.loads(self._line())
        except (BrokenPipeError, json.JSONDecodeError, _Died) as error:  # a dying pyodide writes what it dies of
            self.close()
            raise _Died from error
        finally:
            self.seconds += time.perf_counter() - started

    def _start(self) -> str:
        self.restarts += 1
        self._received = b""
        command = ["node", f"--stack-size={STACK_KIB}", str(ORACLE / "worker.mjs"), self._python]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        try:
            return str(json.loads(self._line()))
        except _Died as error:
            self.close()
            raise Unavailable(f"the oracle does not start: try 'node {command[-2]} {self._python}'") from error

    def _line(self) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        deadline = time.monotonic() + PATIENCE_S
        parts = [self._received]
        while b"\n" not in parts[-1]:
            ready, _, _ = select.select([output], [], [], max(0.0, deadline - time.monotonic()))
            part = os.read(output, 1 << 16) if ready else b""
            if not part:
                raise _Died
            parts.append(part)
        line, _, self._received = b"".join(parts).partition(b"\n")
        return line


class Running:
    """The verdicts of the interpreter that runs the tests."""

    version = platform.python_version()

    def verdict(self, text: str) -> bool | None:
        return verdicts.verdict(text)[0]

    def verdicts(self, texts: Sequence[str]) -> list[bool | None]:
        return [self.verdict(text) for text in texts]

    def message(self, text: str) -> str:
        return verdicts.message(text)
