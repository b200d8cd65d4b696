"""Matcher: a middle in progress, in tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fim_server import _core
from fim_server.errors import SearchLimitError
from fim_server.language.argument_types import expect_count, expect_size, expect_token

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Vocabulary(Protocol):
    """Vocabulary, as far as a session uses it."""

    core: _core.Vocabulary
    size: int


class Matcher:
    """Middle in progress, in tokens of a vocabulary."""

    def __init__(self, core: _core.Matcher, vocabulary: Vocabulary) -> None:
        """Wrap the engine's matcher; use `Session.matcher`."""
        self.core = core
        self._vocabulary = vocabulary

    def mask(self) -> NDArray[np.bool_]:
        """Return a bool for each token, shape [vocabulary size]; end tokens are allowed iff the middle is complete."""
        import numpy as np  # needed here alone; checking a file makes no array

        words = np.frombuffer(self.core.mask(), dtype=np.uint8)
        return np.unpackbits(words, bitorder="little")[: self._vocabulary.size].astype(np.bool_)

    def fill_mask(self, words: NDArray[np.uint32]) -> None:
        """Fill a packed mask in place: bit `id % 32` of word `id // 32`. Shape: [ceil(vocabulary size / 32)].

        Raises ValueError if the array has another length, or gaps; BufferError if the array is of another type or
        read-only.
        """
        try:
            self.core.fill_mask(words)
        except TypeError:
            expect_array("words", words)
            raise

    def fill_mask_plain(self, words: NDArray[np.uint32]) -> None:
        """Fill a mask by a walk over the whole vocabulary, byte by byte, without caches: `fill_mask`'s plain twin.

        Raises ValueError if the array has another length, or gaps; BufferError if the array is of another type or
        read-only.
        """
        try:
            self.core.fill_mask_plain(words)
        except TypeError:
            expect_array("words", words)
            raise

    def forced(self) -> bytes:
        """Return the bytes that every continuation begins with, at most 256; none where the middle may end.

        `fim_server.tokens.forced.forced_tokens` makes tokens of them.
        """
        return self.core.forced()

    def allows(self, token_id: int) -> bool:
        """Return whether a token may follow, without computing a mask.

        Raises ValueError if the token is outside the vocabulary.
        """
        try:
            return self.core.allows(token_id)
        except (TypeError, OverflowError):
            expect_token("token_id", token_id, self._vocabulary.size)
            raise

    def plan(self, enough: int = 0) -> list[int] | None:
        """Return tokens that complete the middle; empty if it is complete, None if the session has no guarantee.

        They spell a short completion, not always the shortest, in the fewest tokens that do. A completion that is known
        already will do if it has at most ``enough`` tokens. A shape has to hold as well. Raises SearchLimitError if
        none is found: the search is bounded, and a completion may have no tokens in the vocabulary.
        """
        try:
            tokens, unknown = self.core.landing(enough)
        except (TypeError, OverflowError):
            expect_size("enough", enough)
            raise
        if unknown:
            raise SearchLimitError("no plan was found within the search's limit")
        return tokens

    def lands(self, token_id: int, left: int) -> bool | None:
        """Return whether the middle can end within ``left`` tokens after a token, by a :meth:`plan`; None if unknown.

        True for an end token. Raises ValueError for a token that is not allowed, or outside the vocabulary.
        """
        try:
            return self.core.lands(token_id, left)
        except (TypeError, OverflowError):
            expect_token("token_id", token_id, self._vocabulary.size)
            expect_size("left", left)
            raise

    def fill_landing_mask(self, words: NDArray[np.uint32], left: int) -> int:
        """Fill a mask without the tokens after which the middle is not known to end within ``left`` tokens.

        A completion after one token is tried after the others, so more may be known than :meth:`lands` finds. Returns
        how many tokens ``left`` has ruled out. Design, section 10.
        """
        try:
            return self.core.fill_landing_mask(left, words)
        except (TypeError, OverflowError):
            expect_array("words", words)
            expect_size("left", left)
            raise

    def commit(self, token_id: int) -> None:
        """Append a token.

        Raises ValueError if the token is not allowed here, or outside the vocabulary; nothing changes then.
        """
        try:
            self.core.commit(token_id)
        except (TypeError, OverflowError):
            expect_token("token_id", token_id, self._vocabulary.size)
            raise

    def rollback(self, n_tokens: int) -> None:
        """Take back tokens. Raises ValueError if there are not so many."""
        expect_count("n_tokens", n_tokens)
        if n_tokens < 0:
            raise ValueError(f"cannot take back {n_tokens} tokens")
        try:
            self.core.rollback(n_tokens)
        except OverflowError:
            expect_size("n_tokens", n_tokens)
            raise

    def is_complete(self) -> bool:
        """Return whether left + middle + right is a program."""
        return self.core.is_complete()

    @property
    def inside(self) -> str | None:
        """Return `comment` or `string` if the end of the middle is inside of one, as `Session.inside`."""
        return self.core.inside


def expect_array(name: str, value: object) -> None:
    try:
        memoryview(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name}: an array of uint32 expected, not {type(value).__name__}") from None
