"""Protocols of decoding's inputs: the engine's sessions and matchers, biases, drafts, and what strategies observe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from fim_server.models.backend import Logits
    from fim_server.models.reading import Reading


class CancelFlag(Protocol):
    """Flag that ends decoding: a `threading.Event`, or a `fim_server.Stop`."""

    def is_set(self) -> bool: ...


class ProjectBias(Protocol):
    """Source of texts that may come next, such as the project's memory."""

    def __call__(self, middle: str, /) -> Sequence[tuple[str, float]]:
        """Return texts that may come after a middle, each with its weight; less than 1 together.

        A text should be longer than a token, and end with a lexeme.
        """

    def share(self, weight: float, heaviest: float, certainty: float, probability: float, /) -> float:
        """Return the share of the probability that a token gets as a text's beginning; the rest is the model's.

        Args:
            weight: Weight of the texts that begin with it; greater than its share.
            heaviest: Greatest weight of a token at this step.
            certainty: Probability of the model's likeliest token.
            probability: Probability of this token by the model.
        """


class NameBias(Protocol):
    """Rating of tokens by the text that they would write."""

    def __call__(self, middle: str, healing: str, texts: Sequence[str | None], /) -> Sequence[float]:
        """Return a term for the logarithm of each token's probability.

        Args:
            middle: Text so far.
            healing: End of the left context that the tokens write again.
            texts: The tokens' texts; None where one is no text by itself.
        """


class Drafts(Protocol):
    """Source of drafts for the model to check in one pass; a draft decides nothing."""

    def __call__(self, middle: str, /) -> str:
        """Return a text that may come after a middle; empty if none is likely enough to be worth reading."""


class Matcher(Protocol):
    """Result of ``session.matcher(vocabulary)``."""

    def fill_mask(self, words: NDArray[np.uint32], /) -> None: ...
    def allows(self, token_id: int, /) -> bool: ...
    def commit(self, token_id: int, /) -> None: ...
    def is_complete(self) -> bool: ...


@runtime_checkable
class InsideMatcher(Protocol):
    """Matcher that can go back, and knows the construct around the middle's end."""

    def commit(self, token_id: int, /) -> None: ...
    def rollback(self, n_tokens: int, /) -> None: ...
    @property
    def inside(self) -> str | None: ...


@runtime_checkable
class LandingMatcher(Protocol):
    """Matcher that can plan an end of the middle in a few tokens."""

    def plan(self, enough: int = 0, /) -> list[int] | None: ...
    def lands(self, token_id: int, left: int, /) -> bool | None: ...
    def rollback(self, n_tokens: int, /) -> None: ...


class Session(Protocol):
    """Result of ``language.open(left, right)``."""

    @property
    def guarantee(self) -> str: ...
    @property
    def diagnostics(self) -> Sequence[str]: ...
    def matcher(self, vocabulary: Any, /, shape: Any = None, *, healing: bytes = b"") -> Matcher: ...


class Verdict(Protocol):
    """Result of ``session.check(middle)``."""

    @property
    def complete(self) -> bool: ...


@runtime_checkable
class CheckingSession(Session, Protocol):
    """Session that judges whole middles."""

    def check(self, middle: str, /) -> Verdict: ...


class MiddleState(Protocol):
    """Result of ``session.start()``: a middle in progress, in bytes."""

    def advance(self, text: bytes, /) -> int: ...
    def rollback(self, n_bytes: int, /) -> None: ...
    def __len__(self) -> int: ...


@runtime_checkable
class StartingSession(Session, Protocol):
    """Session that has states of middles."""

    def start(self) -> MiddleState: ...


@runtime_checkable
class FlooredSession(Protocol):
    """Session that can keep middles from closing what the left context has opened."""

    def floored(self, floor: str, /) -> Session: ...


class StartedPrefill(Protocol):
    """Prefill that another thread has begun (:class:`.concurrent_prefill.ConcurrentPrefill`)."""

    prompt: list[int]
    reading: Reading
    reused: int
    tokens: int
    seconds: float

    def logits(self, prompt: Sequence[int], /) -> Logits | None: ...
    def seconds_before(self, moment: float, /) -> float: ...


class Language(Protocol):
    """Language, as far as completing uses it."""

    def open(self, left: str, right: str, /) -> Session: ...


@runtime_checkable
class NamedLanguage(Protocol):
    """Language that has a name."""

    name: str


class Beginnings(Protocol):
    """Collector of other beginnings: :class:`.search.Frontier`."""

    def note(self, run: Any, logits: Logits, choice: Any, /) -> None:
        """Take a run's choice, and its logits [V] before any refusal."""


class Worths(Protocol):
    """Worths of beginnings: :class:`.aligned.Aligned`."""

    def weighed(self, run: Any, logits: Logits, /) -> Logits:
        """Return the logits [V] to draw a run's next token from."""

    def note(self, run: Any, logits: Logits, token: int, /) -> None:
        """Take a token that a run has drawn, and the model's logits [V] there."""
