"""Streams of endpoints as rows of reported tokens, by the model's ids or by texts."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fim_server.models.backend import LostError
from fim_server.models.remote.client import SilentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fim_server.models.remote.client import Patience, Stream
    from fim_server.models.remote.rows import Reported
    from fim_server.models.remote.texts import Pieces
    from fim_server.tokens.vocabulary import Vocabulary

LOOKAHEAD_BYTES = 24
"""Bytes of a text without tokens that have to come, if it does not end, before its next token is reported."""


ROW_SECONDS = 60.0
"""Longest wait for a row: a stream may send events without a token forever."""

MOST_SHARES = 1024
"""Most log probabilities at one place, of which 20 are asked for. Each takes 8 us for each token of a text."""

AHEAD = 1e-3
"""Margin by which the next token of the streamed text exceeds the likeliest reported token."""


@dataclass(frozen=True)
class Step:
    """Token that the model has written.

    Attributes:
        token: Its id; None where the endpoint reports none.
        text: Its bytes.
        reported: Log probabilities at its place, by id, or by bytes where the endpoint reports no ids.
    """

    token: int | None
    text: bytes
    reported: Mapping[int, float] | Mapping[bytes, float]


class Source(Protocol):
    """Stream that begins after a prefix."""

    def reported(self, prefix: Sequence[int], patience: Patience) -> Reported | None:
        """Wait for the row after a prefix, and return it; None where the stream differs from it or ends before.

        Raises LostError where the stream cannot be the model's.
        """

    def close(self) -> None: ...


class IdSource:
    """Stream of token ids."""

    def __init__(
        self, base: Sequence[int], stream: Stream, steps: Callable[[object], Iterable[Step]], vocabulary: Vocabulary
    ) -> None:
        """Wrap a stream.

        ``steps`` returns an event's steps; it raises LookupError, TypeError or ValueError if it is invalid.
        """
        self.base, self._stream, self._steps, self._vocabulary = list(base), stream, steps, vocabulary
        self._found: list[Step] = []
        self._tokens: list[int] = []

    def reported(self, prefix: Sequence[int], patience: Patience) -> Reported | None:
        start = len(self.base)
        at = len(prefix) - start
        if at < 0 or list(prefix[:start]) != self.base:
            return None
        until = time.monotonic() + ROW_SECONDS
        while True:
            known = min(at, len(self._tokens))
            if list(prefix[start : start + known]) != self._tokens[:known]:
                return None
            if at < len(self._found):
                return {int(token): share for token, share in self._found[at].reported.items()}
            event = next_event(self._stream, until, patience)
            if event is None:
                return None
            for step in read_event(self._steps, event):
                self._take(step)

    def _take(self, step: Step) -> None:
        token, size = step.token, self._vocabulary.size
        if token is None:
            raise LostError("the endpoint reports no token ids any more")
        for number in (token, *step.reported):
            if not isinstance(number, int) or not 0 <= number < size:
                raise LostError(f"the endpoint reports a token {number!r}, and its model has {size}")
        known = self._vocabulary.token_bytes(token)
        if known and step.text and known != step.text:
            raise LostError(f"the endpoint has another tokenizer: its token {token} is not {known!r}")
        self._found.append(step)
        self._tokens.append(token)

    def close(self) -> None:
        self._stream.close()


class TextSource:
    """Stream of text with the likeliest texts at each place, if any, over a vocabulary that may be another model's.

    The row is the text's own next token alone where this vocabulary cuts the text in another place. So it is where the
    endpoint reports no probabilities, or none of its next text.
    """

    def __init__(
        self,
        base: Sequence[int],
        stream: Stream,
        steps: Callable[[object], Iterable[Step]],
        vocabulary: Vocabulary,
        pieces: Pieces,
    ) -> None:
        """Wrap a stream.

        ``pieces`` maps reported texts to tokens; its end token is reported where the stream ends by itself.
        """
        self.base, self._stream, self._steps, self._vocabulary = list(base), stream, steps, vocabulary
        self._pieces, self._text, self._is_over, self._has_ended = pieces, b"", False, False
        self._rows: dict[int, Mapping[bytes, float]] = {}
        """Rows by the number of bytes before them."""

    def reported(self, prefix: Sequence[int], patience: Patience) -> Reported | None:
        start = len(self.base)
        if len(prefix) < start or list(prefix[:start]) != self.base:
            return None
        written = b"".join(self._vocabulary.token_bytes(token) for token in prefix[start:])
        at = len(written)
        until = time.monotonic() + ROW_SECONDS
        while not self._is_over and len(self._text) < at + LOOKAHEAD_BYTES and not self._has_row(at):
            self._read(until, patience)
        if not self._text.startswith(written):
            return None
        rest = self._text[at:]
        reported = self._pieces.tokens(self._rows[at]) if at in self._rows else {}
        if rest:
            return self._led(reported, rest)
        return reported or ({self._pieces.end: 0.0} if self._is_over and self._has_ended else None)

    def _led(self, reported: Reported, rest: bytes) -> Reported:
        """Return reported tokens with the text's own next token first, since the text may be cut another way."""
        if not reported:
            return {self._first(rest): 0.0}
        best = max(reported, key=lambda token: reported[token])
        text = self._vocabulary.token_bytes(best)
        if text and rest.startswith(text):
            return reported
        return {**reported, self._first(rest): reported[best] + AHEAD}

    def _has_row(self, at: int) -> bool:
        return at in self._rows and len(self._text) > at

    def _read(self, until: float, patience: Patience) -> None:
        event = next_event(self._stream, until, patience)
        if event is None:
            self._is_over = True
            return
        self._has_ended = self._has_ended or is_end(event)
        for step in read_event(self._steps, event):
            if step.reported:
                self._rows[len(self._text)] = {
                    text: share for text, share in step.reported.items() if isinstance(text, bytes)
                }
            self._text += step.text

    def _first(self, text: bytes) -> int:
        found = self._pieces.first(text)
        if found is None:
            raise LostError("the endpoint writes what no token of the vocabulary begins")
        return found

    def close(self) -> None:
        self._stream.close()


def next_event(stream: Stream, until: float, patience: Patience) -> object:
    """Return the next event of a stream; None after the last. Raises SilentError after the time limit."""
    if time.monotonic() >= until:
        raise SilentError(f"the endpoint has written nothing for {ROW_SECONDS:.0f} s")
    return stream.next(patience)


def is_end(event: object) -> bool:
    """Return whether an event says that the model has ended its text."""
    if not isinstance(event, dict):
        return False
    choices = event.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    return "stop" in (event.get("done_reason"), first.get("finish_reason"))


def read_event(steps: Callable[[object], Iterable[Step]], event: object) -> list[Step]:
    """Return the steps of an event. Raises LostError where it is invalid."""
    try:
        found = list(steps(event))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise LostError("the endpoint sends something other than completions") from None
    if any(len(step.reported) > MOST_SHARES for step in found):
        raise LostError(f"the endpoint sends more than {MOST_SHARES:,} log probabilities for one token")
    return found
