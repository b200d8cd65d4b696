"""Texts that load no name which nothing binds: ``DecodeOptions.names`` as ``require``.

Two parts, both the language's own (``fim_server.languages.<language>.required``). The *judge* says of a whole text
which names of the middle nothing binds; it decides, wherever a text may end. The *tracker* follows the middle and
refuses tokens after which no text that obeys can come, so that what is judged at the end seldom fails. The loop asks it
about the tokens that are drawn; :meth:`Followed.mask` is the same for all tokens at once.
"""

from __future__ import annotations

import time
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from fim_server.tokens.vocabulary import Vocabulary

NAMES = ("off", "require")
"""What ``DecodeOptions.names`` may be."""

DRAWS_BEFORE_MASK = 16
"""Tokens that names may rule out at a step before all tokens are asked about at once."""


class Naming:
    """What the texts at one cursor may load."""

    def __init__(self, module: Any, left: str, right: str, is_whole: bool) -> None:
        """``module``: the language's; ``is_whole``: whether the texts parse with some middle."""
        self.left = left
        self.right = right
        self.module = module
        self.is_whole = is_whole
        self.judged_seconds = 0.0
        """Time that judging took."""
        self._judged: dict[str, tuple[str, ...]] = {}

    @classmethod
    def of(cls, language: str, left: str, right: str, guarantee: str = "exact") -> Naming | None:
        """That of a cursor between two texts; None where nothing is known of the language's names.

        ``guarantee``: the session's. Where that is not `exact`, names count as bound that stand anywhere in the texts.
        """
        module = module_of(language)
        return None if module is None else cls(module, left, right, guarantee == "exact")

    def unbound(self, middle: str) -> tuple[str, ...]:
        """Names that a middle loads and nothing binds: none where it obeys."""
        found = self._judged.get(middle)
        if found is None:
            started = time.perf_counter()
            found = self._judged[middle] = self.module.unbound(self.left, middle, self.right, self.is_whole)
            self.judged_seconds += time.perf_counter() - started
        return found


@cache
def module_of(language: str) -> Any:
    """What a language knows of its names: a module with ``begin`` and ``unbound``; None where it has none."""
    name = f"fim_server.languages.{language}.required"
    return import_module(name) if find_spec(name) is not None else None


class Followed:
    """The names along the tokens of one run."""

    def __init__(self, naming: Naming, vocabulary: Vocabulary, healing: str) -> None:
        """``healing``: what the run writes again before the middle."""
        self._naming = naming
        self._vocabulary = vocabulary
        self._healed = len(healing.encode())
        self._refusal: type[Exception] = naming.module.RefusedError
        self._tokens: list[int] = []
        self._trackers = [naming.module.begin(naming.left, naming.right, healing, naming.is_whole)]

    def refuses(self, tokens: Sequence[int], token: int) -> bool:
        """Whether no text that obeys goes on with a token after others, which were allowed."""
        tracker = self._follow(tokens)
        return tracker is None or self._step(tracker, token) is None

    def unbound(self, tokens: Sequence[int]) -> tuple[str, ...]:
        """Names that the middle would load and nothing binds if it ended after some tokens."""
        text = b"".join(map(self._vocabulary.token_bytes, tokens))[self._healed :]
        return self._naming.unbound(text.decode(errors="replace"))

    def allowed_of(self, tokens: Sequence[int], forced: Sequence[int]) -> list[int]:
        """The first of some tokens that may come after others one after another."""
        written = list(tokens)
        for token in forced:
            if self.refuses(written, token):
                break
            written.append(token)
        return written[len(tokens) :]

    def mask(self, tokens: Sequence[int]) -> NDArray[np.uint32]:
        """The mask of the tokens that may come after others, packed as the engine's; end tokens where it may end."""
        import numpy as np  # the command line reads this module's names alone

        from fim_server.models.masking import WORD_BITS, word_count

        allowed = np.zeros(word_count(self._vocabulary.size) * WORD_BITS, dtype=np.bool_)
        tracker = self._follow(tokens)
        if tracker is not None:
            texts = texts_of(self._vocabulary, self._naming.module)
            self._naming.module.allow(tracker, texts, allowed[: self._vocabulary.size])
        if not self.unbound(tokens):
            allowed[self._vocabulary.end_token_ids] = True
        return np.packbits(allowed, bitorder="little").view(np.uint32)

    def _follow(self, tokens: Sequence[int]) -> Any:
        """A tracker after some tokens; None where one of them was refused, as forced ones may be."""
        kept, most = 0, min(len(tokens), len(self._tokens))
        while kept < most and tokens[kept] == self._tokens[kept]:
            kept += 1
        del self._tokens[kept:], self._trackers[kept + 1 :]
        for token in tokens[kept:]:
            tracker = self._trackers[-1]
            self._trackers.append(None if tracker is None else self._step(tracker, token))
            self._tokens.append(token)
        return self._trackers[-1]

    def _step(self, tracker: Any, token: int) -> Any:
        copy = tracker.copy()
        try:
            copy.feed(self._vocabulary.token_bytes(token).decode("latin-1"))
        except self._refusal:
            return None
        return copy


@lru_cache(maxsize=2)
def texts_of(vocabulary: Vocabulary, module: Any) -> Any:
    """A vocabulary's tokens, as a language's module sorts them for its masks."""
    return module.Texts([vocabulary.token_bytes(token) for token in range(vocabulary.size)])
