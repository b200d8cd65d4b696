"""What an endpoint streams, as rows of told tokens: by the model's own ids, or by texts where it tells no ids."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fim_server.models.backend import LostError
from fim_server.models.remote.client import SilentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fim_server.models.remote.client import Patience, Stream
    from fim_server.models.remote.rows import Told
    from fim_server.models.remote.texts import Pieces
    from fim_server.tokens.vocabulary import Vocabulary

LOOKAHEAD_BYTES = 24
"""Of a text without tokens, so much has to have come, or its end, before its next token is told."""


ROW_SECONDS = 60.0
"""Longest wait for a row: a stream may send events without a token in them for ever."""

MOST_SHARES = 1024
"""Most log probabilities at one place: each takes 8 us for each token of a text. 20 are asked for."""

AHEAD = 1e-3
"""By so much a token is likelier than the likeliest of those that were told, where a text goes on with it."""


@dataclass(frozen=True)
class Step:
    """A token that the model wrote.

    Attributes:
        token: Its id; None where the endpoint tells none.
        text: Its bytes.
        told: Log probabilities at its place, by id, or by bytes where the endpoint tells no ids.
    """

    token: int | None
    text: bytes
    told: Mapping[int, float] | Mapping[bytes, float]


class Source(Protocol):
    """A stream that began after some tokens."""

    def told(self, prefix: Sequence[int], patience: Patience) -> Told | None:
        """The row after a prefix; None where the stream is not of it, or ends before. Waits for it to come.

        Raises LostError where what comes cannot be of the model.
        """

    def close(self) -> None:
        """Have nothing more of it."""


class IdSource:
    """A stream of token ids."""

    def __init__(
        self, base: Sequence[int], stream: Stream, steps: Callable[[object], Iterable[Step]], vocabulary: Vocabulary
    ) -> None:
        """``steps``: those of an event; raises LookupError, TypeError or ValueError for what is none."""
        self.base, self._stream, self._steps, self._vocabulary = list(base), stream, steps, vocabulary
        self._found: list[Step] = []
        self._tokens: list[int] = []

    def told(self, prefix: Sequence[int], patience: Patience) -> Told | None:
        """As :meth:`Source.told`."""
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
                return {int(token): share for token, share in self._found[at].told.items()}
            event = next_event(self._stream, until, patience)
            if event is None:
                return None
            for step in read_event(self._steps, event):
                self._take(step)

    def _take(self, step: Step) -> None:
        token, size = step.token, self._vocabulary.size
        if token is None:
            raise LostError("the endpoint tells no token ids any more")
        for number in (token, *step.told):
            if not isinstance(number, int) or not 0 <= number < size:
                raise LostError(f"the endpoint tells a token {number!r}, and its model has {size}")
        known = self._vocabulary.token_bytes(token)
        if known and step.text and known != step.text:
            raise LostError(f"the endpoint has another tokenizer: its token {token} is not {known!r}")
        self._found.append(step)
        self._tokens.append(token)

    def close(self) -> None:
        """As :meth:`Source.close`."""
        self._stream.close()


class TextSource:
    """A stream of text, with the likeliest texts at each place if it has them, over a vocabulary that may be another's.

    Where this side cuts the text otherwise than the endpoint, where that tells no probabilities, and where it tells
    none of what it writes next, the text's own next token is all that is told.
    """

    def __init__(
        self,
        base: Sequence[int],
        stream: Stream,
        steps: Callable[[object], Iterable[Step]],
        vocabulary: Vocabulary,
        pieces: Pieces,
    ) -> None:
        """``pieces``: what the told texts are; its end is told where the stream ends by itself."""
        self.base, self._stream, self._steps, self._vocabulary = list(base), stream, steps, vocabulary
        self._pieces, self._text, self._is_over, self._has_ended = pieces, b"", False, False
        self._rows: dict[int, Mapping[bytes, float]] = {}
        """By the bytes before them."""

    def told(self, prefix: Sequence[int], patience: Patience) -> Told | None:
        """As :meth:`Source.told`."""
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
        told = self._pieces.tokens(self._rows[at]) if at in self._rows else {}
        if rest:
            return self._led(told, rest)
        return told or ({self._pieces.end: 0.0} if self._is_over and self._has_ended else None)

    def _led(self, told: Told, rest: bytes) -> Told:
        """What was told, the text's own next token first: texts may be told otherwise than they are written."""
        if not told:
            return {self._first(rest): 0.0}
        best = max(told, key=lambda token: told[token])
        text = self._vocabulary.token_bytes(best)
        if text and rest.startswith(text):
            return told
        return {**told, self._first(rest): told[best] + AHEAD}

    def _has_row(self, at: int) -> bool:
        return at in self._rows and len(self._text) > at

    def _read(self, until: float, patience: Patience) -> None:
        event = next_event(self._stream, until, patience)
        if event is None:
            self._is_over = True
            return
        self._has_ended = self._has_ended or is_end(event)
        for step in read_event(self._steps, event):
            if step.told:
                self._rows[len(self._text)] = {
                    text: share for text, share in step.told.items() if isinstance(text, bytes)
                }
            self._text += step.text

    def _first(self, text: bytes) -> int:
        """The first token of a text."""
        found = self._pieces.first(text)
        if found is None:
            raise LostError("the endpoint writes what no token of the vocabulary begins")
        return found

    def close(self) -> None:
        """As :meth:`Source.close`."""
        self._stream.close()


def next_event(stream: Stream, until: float, patience: Patience) -> object:
    """Return the next event of a stream; None after the last. Raises SilentError after the time limit."""
    if time.monotonic() >= until:
        raise SilentError(f"the endpoint has written nothing for {ROW_SECONDS:.0f} s")
    return stream.next(patience)


def is_end(event: object) -> bool:
    """Whether an event says that the model has ended its text."""
    if not isinstance(event, dict):
        return False
    choices = event.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    return "stop" in (event.get("done_reason"), first.get("finish_reason"))


def read_event(steps: Callable[[object], Iterable[Step]], event: object) -> list[Step]:
    """The steps of an event. Raises LostError where it is none."""
    try:
        found = list(steps(event))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise LostError("the endpoint sends something other than completions") from None
    if any(len(step.told) > MOST_SHARES for step in found):
        raise LostError(f"the endpoint sends more than {MOST_SHARES:,} log probabilities for one token")
    return found
