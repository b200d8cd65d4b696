"""A middle in progress, in tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fim_server import _core
from fim_server.errors import SearchLimitError
from fim_server.language.argument_types import expect_count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Vocabulary(Protocol):
    """What a session asks of a vocabulary: the engine's own, and how many tokens its masks have."""

    core: _core.Vocabulary
    size: int


class Matcher:
    """A middle in progress, in tokens of a vocabulary."""

    def __init__(self, core: _core.Matcher, vocabulary: Vocabulary) -> None:
        """Wraps the engine's matcher; use `Session.matcher`."""
        self.core = core
        self._vocabulary = vocabulary

    def mask(self) -> NDArray[np.bool_]:
        """Which tokens may follow. Shape: [vocabulary size]. The end tokens are allowed iff the middle is complete."""
        import numpy as np  # needed here alone; checking a file makes no array

        words = np.frombuffer(self.core.mask(), dtype=np.uint8)
        return np.unpackbits(words, bitorder="little")[: self._vocabulary.size].astype(np.bool_)

    def fill_mask(self, words: NDArray[np.uint32]) -> None:
        """Fills a packed mask in place: bit `id % 32` of word `id // 32`. Shape: [ceil(vocabulary size / 32)].

        Raises:
            ValueError: The array has another length, or gaps.
            BufferError: The array is of another type or read-only.
        """
        self.core.fill_mask(words)

    def fill_mask_plain(self, words: NDArray[np.uint32]) -> None:
        """Fills a mask by a walk over the whole vocabulary, byte by byte, with nothing kept: `fill_mask`'s plain twin.

        Raises:
            ValueError: The array has another length, or gaps.
            BufferError: The array is of another type or read-only.
        """
        self.core.fill_mask_plain(words)

    def forced(self) -> bytes:
        """The bytes that every continuation begins with; none where the middle may end. At most 256.

        `fim_server.tokens.forced.forced_tokens` says which tokens they are.
        """
        return self.core.forced()

    def allows(self, token_id: int) -> bool:
        """Whether one token may follow, without the price of a whole mask.

        Raises:
            ValueError: The token is outside the vocabulary.
        """
        try:
            return self.core.allows(token_id)
        except TypeError:
            expect_count("token_id", token_id)
            raise

    def plan(self, enough: int = 0) -> list[int] | None:
        """Tokens that complete the middle; an empty list where it is complete, None if the session has no guarantee.

        They spell a short completion, not always the shortest, in the fewest tokens that do; one that is known already
        will do if it has at most ``enough`` tokens. A shape has what completes, too. Raises SearchLimitError if none is
        found: the search is bounded, and a completion may have no tokens in the vocabulary.
        """
        try:
            tokens, unknown = self.core.landing(enough)
        except TypeError:
            expect_count("enough", enough)
            raise
        if unknown:
            raise SearchLimitError("no plan was found within the search's limit")
        return tokens

    def lands(self, token_id: int, left: int) -> bool | None:
        """Whether the middle can end within ``left`` tokens after a token, by a :meth:`plan`; None if not known.

        True for an end token. Raises ValueError for a token that is not allowed, or outside the vocabulary.
        """
        try:
            return self.core.lands(token_id, left)
        except TypeError:
            expect_count("token_id", token_id)
            expect_count("left", left)
            raise

    def fill_landing_mask(self, words: NDArray[np.uint32], left: int) -> int:
        """:meth:`fill_mask` without the tokens after which the middle is not known to end within ``left`` tokens.

        What completes after one token is tried after the others, so more may be known than :meth:`lands` finds.
        Returns how many tokens ``left`` has ruled out. Design, section 10.
        """
        return self.core.fill_landing_mask(left, words)

    def commit(self, token_id: int) -> None:
        """Appends a token.

        Raises:
            ValueError: The token is not allowed here, or outside the vocabulary; nothing changes then.
        """
        try:
            self.core.commit(token_id)
        except TypeError:
            expect_count("token_id", token_id)
            raise

    def rollback(self, n_tokens: int) -> None:
        """Takes back tokens.

        Raises:
            ValueError: There are not so many.
            TypeError: What is no whole number.
        """
        expect_count("n_tokens", n_tokens)
        if n_tokens < 0:
            raise ValueError(f"cannot take back {n_tokens} tokens")
        self.core.rollback(n_tokens)

    def is_complete(self) -> bool:
        """Whether left + middle + right is a program."""
        return self.core.is_complete()

    @property
    def inside(self) -> str | None:
        """`comment` or `string`: what the end of the middle is inside of, as `Session.inside`."""
        return self.core.inside
