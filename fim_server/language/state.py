"""State: a middle in progress, in bytes, with explanations of refused texts."""

from __future__ import annotations

from dataclasses import dataclass, field

from fim_server import _core
from fim_server.errors import SearchLimitError
from fim_server.language.argument_types import expect, expect_count, expect_size, expect_text
from fim_server.language.texts import encodable, is_word


@dataclass(frozen=True)
class Explanation:
    """Explanation of a refused text.

    Attributes:
        accepted: Allowed part of the text.
        rejected_at: Offset in bytes of the first impossible byte; None if all of the text is allowed.
        expected: Symbols that may come after the last whole one: literals in quotes, other lexemes by name.
        open_left: Open constructs of the left side, innermost first.
        open_right: Brackets that the right side closes, the first one first.
        message: All of it in one sentence.
    """

    accepted: str
    rejected_at: int | None
    expected: list[str] = field(default_factory=list)
    open_left: list[str] = field(default_factory=list)
    open_right: list[str] = field(default_factory=list)
    message: str = ""


class State:
    """Middle in progress, in bytes."""

    def __init__(self, core: _core.State) -> None:
        """Wrap the engine's state; use `Session.start`."""
        self._core = core

    def advance(self, text: str | bytes) -> int:
        """Append a text up to its first impossible byte; return the number of bytes appended."""
        return self._core.advance(text if isinstance(text, bytes) else encodable(text, "text").encode())

    def is_complete(self) -> bool:
        """Return whether left + middle + right is a program."""
        return self._core.is_complete()

    def is_viable(self) -> bool:
        """Return whether some text can still follow; false only if the session's guarantee is `none`."""
        return self._core.is_viable()

    @property
    def inside(self) -> str | None:
        """Return `comment` or `string` if the end of the middle is inside of one, as `Session.inside`."""
        return self._core.inside

    def fork(self) -> State:
        """Return an independent state at the same place."""
        return State(self._core.fork())

    def rollback(self, n_bytes: int) -> None:
        """Take back bytes. Raises ValueError if there are not so many."""
        expect_count("n_bytes", n_bytes)
        if n_bytes < 0:
            raise ValueError(f"cannot take back {n_bytes} bytes")
        try:
            self._core.rollback(n_bytes)
        except OverflowError:
            expect_size("n_bytes", n_bytes)
            raise

    def __len__(self) -> int:
        """Return the bytes of the middle so far."""
        return len(self._core)

    def distance(self) -> int | None:
        """Return the least bytes of text that complete the middle; None if no text does.

        Raises SearchLimitError if the search gave up, which is no answer.
        """
        found = self._core.shortest_completion()
        return None if found is None else len(found)

    def shortest_completion(self, most: int | None = None) -> str | None:
        """Return a shortest text that completes the middle; None if no text does.

        If the middle ends inside a character, the text's first bytes finish it and stand as U+FFFD here. Raises
        SearchLimitError: the search gave up, which is no answer. ``most``: states to look at before it does, if fewer
        than the engine's own limit.
        """
        found = self._core.shortest_completion() if most is None else self._core.shortest_completion(most)
        return None if found is None else found.decode("utf-8", "replace")

    def explain(self, text: str) -> Explanation:
        """Return how far a text goes from here, the symbols that may come there, and the obstacles to the rest."""
        encoded = encodable(text, "text").encode()
        accepted, viable, expected, open_left, open_right = self._core.explain(encoded)
        shown = encoded[:accepted].decode("utf-8", "ignore")
        rejected_at = None if viable else accepted
        return Explanation(
            accepted=shown,
            rejected_at=rejected_at,
            expected=expected,
            open_left=open_left,
            open_right=open_right,
            message=message_of(encoded, rejected_at, expected, open_left, open_right),
        )

    def likely_next(self, explanation: Explanation, before: str = "") -> str | None:
        """Return the expected symbol that a shortest completion begins with; None if it begins with none of them.

        A shortest completion closes the open constructs and writes the missing symbols, so users have most often left
        out its beginning. None as well if it begins with a name or a number, which stand for any, or if the search gave
        up.

        Args:
            explanation: An answer of :meth:`explain` of this state.
            before: Text before it, whose end may be the beginning of the next symbol.
        """
        expect("explanation", explanation, Explanation, "an Explanation")
        expect_text("before", before)
        state = self.fork()
        state.advance(explanation.accepted)
        try:
            shortest = state.shortest_completion()
        except SearchLimitError:
            return None
        if shortest is None:
            return None
        return beginning_of(before + explanation.accepted, shortest, explanation.expected)


def beginning_of(before: str, text: str, expected: list[str]) -> str | None:
    """Return the one of ``expected`` that a text begins with; ``before`` may end within it."""
    rest = text.lstrip(" \t")
    best: tuple[int, int, str] | None = None
    for entry in expected:
        literal = entry[1:-1] if len(entry) > 2 and entry[0] == entry[-1] == '"' else ""
        for begun in range(len(literal)):
            if begun and not before.endswith(literal[:begun]):
                continue
            if not begun and is_word(before[-1:]) and is_word(text[:1]):
                continue  # the text goes on with a word that is not this one
            ending = literal[begun:]
            follows = text if begun else rest
            after = follows[len(ending) : len(ending) + 1]
            is_cut = is_word(literal[-1]) and is_word(after)
            if follows.startswith(ending) and not is_cut:
                best = max(best or (begun, len(literal), entry), (begun, len(literal), entry))
    if best is None and (not text or rest.startswith("\n")):
        return next((entry for entry in expected if entry.strip("_") == "NEWLINE"), None)
    return best[2] if best is not None else None


def message_of(
    text: bytes, rejected_at: int | None, expected: list[str], open_left: list[str], open_right: list[str]
) -> str:
    parts = []
    if rejected_at is None:
        parts.append("all of the text is possible here")
    elif rejected_at < len(text):
        refused = text[rejected_at:].decode("utf-8", "replace")[:1]
        parts.append(f"{refused!r} cannot come here")
    else:
        parts.append("nothing can come here: left and right context do not meet")
    if expected:
        more = f" and {len(expected) - 12} more" if len(expected) > 12 else ""
        parts.append(f"expected {', '.join(expected[:12])}{more}")
    if open_left:
        parts.append(f"inside {', '.join(open_left[:4])}")
    if open_right:
        parts.append(f"the right side closes {', '.join(open_right[:4])}")
    return "; ".join(parts)
