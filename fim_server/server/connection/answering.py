"""Messages sent together with an answer, and work done after it.

The first of several messages wakes the editor, which may take the processor before the server has written the last one.
On two busy cores the answer behind a status came 5 ms later. So the server writes them at once, and does other work
afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fim_server.server.connection.handshake import HandshakeProtocol


class Held:
    """Writer that keeps its bytes."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes) -> None:
        self.data += data

    def close(self) -> None:
        """Do nothing."""


class AnsweringProtocol(HandshakeProtocol):
    """Protocol with messages that are sent together with an answer."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._with: dict[int | str, list[Callable[[], object]]] = {}

    def with_answer(self, tell: Callable[[], object]) -> None:
        """Call ``tell``, which sends messages, right before the answer to the current request, in one write.

        It is not called if the request is cancelled before its handler returns.
        """
        number = self.msg_id
        if number is None or number not in self._request_futures:
            tell()
        else:
            self._with.setdefault(number, []).append(tell)

    def once_answered(self, work: Callable[[], object]) -> None:
        """Call ``work`` once the current request is answered or cancelled."""
        number = self.msg_id
        answered = None if number is None else self._request_futures.get(number)
        if answered is None:
            work()
        else:
            answered.add_done_callback(lambda done: work())  # behind pygls' own callback, which sends

    def _send_handler_result(self, future: Any, *, msg_id: int | str) -> None:
        tellers, writer, held = self._with.pop(msg_id, ()), self.writer, Held()
        if not tellers or writer is None or future.cancelled():
            super()._send_handler_result(future, msg_id=msg_id)
            return
        self.writer = held
        try:
            for tell in tellers:
                tell()
            super()._send_handler_result(future, msg_id=msg_id)
        finally:
            self.writer = writer
            with suppress(OSError):  # the editor has gone
                writer.write(bytes(held.data))
