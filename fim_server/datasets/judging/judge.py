"""Judges: programs that tell whether a language's own parser takes a text.

A judge reads frames from its standard input: four bytes, big-endian, with a text's length in bytes, and the text in
UTF-8. For each it writes a line: ``ok``, or ``no`` and an error, or ``?`` and the reason why it cannot tell.

Where the language's own parser is slow, a faster one may judge first, and the slow one is the appeal. The appeal is
asked about a text only if the first judge contradicts the claim about it, and has the last word.

An error that begins with ``early`` is one of a text whose syntax is right: it breaks a rule that no grammar carries,
such as a name declared twice. A definition may take such a text, as a documented difference, but not refuse it.
"""

from __future__ import annotations

import contextlib
import queue
import struct
import subprocess
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from fim_server.errors import JudgeError

PATIENCE_S = 60.0
"""Seconds that a judge has for a text before it counts as hung and is started anew."""

REMEMBERED = 20_000_000
"""Characters of the texts whose verdicts are kept."""

MESSAGE = 300
"""Most characters of a message about a wrong text."""

EARLY = "early "
"""Beginning of a message about a text whose syntax is right."""


class Judge:
    """Process of a judge, which remembers verdicts, and restarts when it dies or hangs.

    Attributes:
        asked: Number of texts judged, without remembered ones.
        restarts: Number of restarts.
        appeals: Number of texts that the appeal judged.
    """

    def __init__(
        self, command: Sequence[str], appeal: Sequence[str] = (), longest_message: int | None = MESSAGE
    ) -> None:
        """Start the process.

        Args:
            command: The program.
            appeal: The judge with the last word; empty for none.
            longest_message: Most characters of a message; None for any number.

        Raises:
            JudgeError: The program cannot be started, or does not answer as a judge.
        """
        self._command = list(command)
        self._appeal = list(appeal)
        self._longest_message = longest_message
        self._higher: Judge | None = None
        self.appeals = 0
        self._memory: dict[str, tuple[bool | None, str]] = {}
        self._remembered = 0
        self.asked = 0
        self.restarts = -1
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._start()
        if self._answers([""])[0] is None:
            self.close()
            raise JudgeError(f"{self._command[0]} does not answer as a judge does: ok, no or ? for each text")

    def verdict(self, text: str) -> bool | None:
        """Return whether the language's parser takes a text; None where the judge cannot tell."""
        return self.verdicts([text])[0]

    def verdicts(self, texts: Sequence[str]) -> list[bool | None]:
        """Return the verdicts on some texts, which are sent together."""
        return [verdict for verdict, _ in self._told(texts)]

    def message(self, text: str) -> str:
        """Return the judge's message about a text that it refuses; empty for one that it takes."""
        return self.answer(text)[1]

    def answer(self, text: str) -> tuple[bool | None, str]:
        """Return the verdict on a text, and the rest of the answer."""
        return self._told([text])[0]

    def decided(self, text: str, claimed: bool) -> tuple[bool | None, str]:
        """Return the last judge's verdict on a text with a claim, and its message.

        Refusing a text with an early error alone is wrong: of such a claim the verdict is that the text is taken.
        """
        answer = self._told([text])[0]
        if not claimed and answer[1].startswith(EARLY):
            answer = True, answer[1]
        if answer[0] is claimed or not self._appeal:
            return answer
        if self._higher is None:
            self._higher = Judge(self._appeal)
        self.appeals += 1
        return self._higher.decided(text, claimed)

    def _told(self, texts: Sequence[str]) -> list[tuple[bool | None, str]]:
        memory = self._memory
        new = [text for text in dict.fromkeys(texts) if text not in memory]
        self.asked += len(new)
        self._remembered += sum(map(len, new))
        if self._remembered > REMEMBERED:
            kept = {text: memory[text] for text in texts if text in memory}
            memory.clear()
            memory.update(kept)
            self._remembered = sum(map(len, memory)) + sum(map(len, new))
        at = 0
        while at < len(new):
            for answer in self._answers(new[at:]):
                if answer is None:  # it died on this text
                    memory[new[at]] = None, "the judge died"
                    self._start()
                else:
                    memory[new[at]] = answer
                at += 1
        return [memory[text] for text in texts]

    def _answers(self, texts: Sequence[str]) -> list[tuple[bool | None, str] | None]:
        """Return the answers to some texts, ending with None for a text that the process does not survive."""
        process = self._process
        assert process is not None
        frames = b"".join(_frame(text) for text in texts)
        writer = threading.Thread(target=_write, args=(process, frames), daemon=True)
        writer.start()
        answers: list[tuple[bool | None, str] | None] = []
        for _ in texts:
            try:
                line = self._lines.get(timeout=PATIENCE_S)
            except queue.Empty:
                line = b""
            answer = _answer(line.decode("utf-8", "replace"), self._longest_message)
            answers.append(answer)
            if answer is None:
                process.kill()
                break
        writer.join()
        return answers

    def _start(self) -> None:
        self._end()
        self.restarts += 1
        try:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except (OSError, ValueError) as error:
            raise JudgeError(f"the judge {self._command[0]} cannot be started: {error}") from error
        self._lines = queue.SimpleQueue()
        threading.Thread(target=_read, args=(self._process, self._lines), daemon=True).start()

    def close(self) -> None:
        if self._higher is not None:
            self._higher.close()
        self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):  # of what was still to be written
                        pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _frame(text: str) -> bytes:
    encoded = text.encode("utf-8", "replace")
    return struct.pack(">I", len(encoded)) + encoded


def _answer(line: str, longest: int | None) -> tuple[bool | None, str] | None:
    """Parse a line; None for a line that is no answer."""
    word, _, message = line.rstrip("\r\n").partition(" ")
    verdicts = {"ok": True, "no": False, "?": None}
    return (verdicts[word], message[:longest]) if word in verdicts else None


def _write(process: subprocess.Popen[bytes], frames: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError, ValueError):  # it died, which who reads its answers is told; or it was closed
        process.stdin.write(frames)
        process.stdin.flush()


def _read(process: subprocess.Popen[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    assert process.stdout is not None
    with contextlib.suppress(OSError, ValueError):
        for line in process.stdout:
            lines.put(line)
    lines.put(b"")
