"""Texts that load no unbound name: ``DecodeOptions.names`` as ``require``.

The rules are those of :class:`~fim_server.language_support.protocol.NameRules`. Their *judge* returns the unbound names
of a middle and decides wherever a text may end. Their *tracker* follows the middle and refuses tokens that no valid
text continues, so that the judge seldom refuses an ending. The loop asks the tracker about each drawn token;
:meth:`TrackedNames.mask` asks it about all tokens at once.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING

from fim_server.language_support.protocol import UndefinedNameError
from fim_server.language_support.registry import support_of
from fim_server.language_support.token_texts import TokenTexts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from fim_server.language_support.protocol import NameRules, NameTracker
    from fim_server.tokens.vocabulary import Vocabulary

NAMES = ("off", "require")
"""Values of ``DecodeOptions.names``."""

DRAWS_BEFORE_MASK = 16
"""Tokens that the rules refuse at a step before the loop asks for the mask of all tokens."""


class UndefinedNames:
    """Names that the texts at one cursor may load."""

    def __init__(self, rules: NameRules, left: str, right: str, is_whole: bool) -> None:
        """Apply rules between two texts. ``is_whole``: whether the texts parse with some middle."""
        self.left = left
        self.right = right
        self.rules = rules
        self.is_whole = is_whole
        self.judged_seconds = 0.0
        """Time that the judge took."""
        self._judged: dict[str, tuple[str, ...]] = {}

    @classmethod
    def of(cls, language: str, left: str, right: str, guarantee: str = "exact") -> UndefinedNames | None:
        """Return the names of a cursor between two texts; None if the language has no rules for names.

        ``guarantee``: the session's. If it is not `exact`, every name in the texts counts as bound.
        """
        rules = support_of(language)
        return None if rules is None else cls(rules, left, right, guarantee == "exact")

    def unbound(self, middle: str) -> tuple[str, ...]:
        """Return the names that a middle loads and nothing binds; none if the middle loads only bound names."""
        found = self._judged.get(middle)
        if found is None:
            started = time.perf_counter()
            found = self._judged[middle] = self.rules.unbound(self.left, middle, self.right, self.is_whole)
            self.judged_seconds += time.perf_counter() - started
        return found


class TrackedNames:
    """Names along the tokens of one run."""

    def __init__(self, names: UndefinedNames, vocabulary: Vocabulary, healing: str) -> None:
        """Follow a run. ``healing``: the text that the run writes again before the middle."""
        self._names = names
        self._vocabulary = vocabulary
        self._healed = len(healing.encode())
        self._tokens: list[int] = []
        tracker = names.rules.track(names.left, names.right, healing, names.is_whole)
        self._trackers: list[NameTracker | None] = [tracker]

    def refuses(self, tokens: Sequence[int], token: int) -> bool:
        """Return whether no valid text continues some allowed tokens with another."""
        tracker = self._follow(tokens)
        return tracker is None or self._step(tracker, token) is None

    def unbound(self, tokens: Sequence[int]) -> tuple[str, ...]:
        """Return the unbound names that the middle loads if it ends after some tokens."""
        text = b"".join(map(self._vocabulary.token_bytes, tokens))[self._healed :]
        return self._names.unbound(text.decode(errors="replace"))

    def allowed_of(self, tokens: Sequence[int], forced: Sequence[int]) -> list[int]:
        """Return the first of some forced tokens, up to one that the rules refuse."""
        written = list(tokens)
        for token in forced:
            if self.refuses(written, token):
                break
            written.append(token)
        return written[len(tokens) :]

    def mask(self, tokens: Sequence[int]) -> NDArray[np.uint32]:
        """Return the mask of the next tokens, packed as the engine's; end tokens where the middle may end."""
        import numpy as np  # the command line reads this module's names alone

        from fim_server.models.masking import WORD_BITS, word_count

        allowed = np.zeros(word_count(self._vocabulary.size) * WORD_BITS, dtype=np.bool_)
        tracker = self._follow(tokens)
        if tracker is not None:
            tracker.allow(texts_of(self._vocabulary), allowed[: self._vocabulary.size])
        if not self.unbound(tokens):
            allowed[self._vocabulary.end_token_ids] = True
        return np.packbits(allowed, bitorder="little").view(np.uint32)

    def _follow(self, tokens: Sequence[int]) -> NameTracker | None:
        """Return a tracker after some tokens; None if the rules refuse one of them, such as a forced one."""
        kept, most = 0, min(len(tokens), len(self._tokens))
        while kept < most and tokens[kept] == self._tokens[kept]:
            kept += 1
        del self._tokens[kept:], self._trackers[kept + 1 :]
        for token in tokens[kept:]:
            tracker = self._trackers[-1]
            self._trackers.append(None if tracker is None else self._step(tracker, token))
            self._tokens.append(token)
        return self._trackers[-1]

    def _step(self, tracker: NameTracker, token: int) -> NameTracker | None:
        copy = tracker.copy()
        try:
            copy.feed(self._vocabulary.token_bytes(token).decode("latin-1"))
        except UndefinedNameError:
            return None
        return copy


@lru_cache(maxsize=2)
def texts_of(vocabulary: Vocabulary) -> TokenTexts:
    """Return a vocabulary's tokens, grouped by their texts."""
    return TokenTexts([vocabulary.token_bytes(token) for token in range(vocabulary.size)])
