"""What decoding asks of the engine: languages, sessions and matchers, as far as it uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from fim_server.models.backend import Logits
    from fim_server.models.reading import Reading


class CancelFlag(Protocol):
    """What ends decoding once nobody waits for it: a `threading.Event`, or a `fim_server.Stop`."""

    def is_set(self) -> bool: ...


class ProjectBias(Protocol):
    """What else than the model knows how a text goes on."""

    def __call__(self, middle: str, /) -> Sequence[tuple[str, float]]:
        """Texts that may come after a middle, each with its weight; less than 1 together.

        A text should be longer than a token, and end with a lexeme.
        """

    def share(self, weight: float, heaviest: float, certainty: float, probability: float, /) -> float:
        """What a token that a text begins with has of the probability for that; the rest is the model's.

        Args:
            weight: That of the texts that begin with it; its share is less.
            heaviest: The greatest weight of a token at this step.
            certainty: The probability of the model's likeliest token.
            probability: That of this token, by the model.
        """


class NameBias(Protocol):
    """What makes tokens likelier or less likely than the model says, by what they would write."""

    def __call__(self, middle: str, healing: str, texts: Sequence[str | None], /) -> Sequence[float]:
        """What to add to the logarithms of the probabilities of tokens.

        Args:
            middle: The text so far.
            healing: What the left context ends with and the tokens are to write again.
            texts: The tokens' texts; None of one that is no text by itself.
        """


class Drafts(Protocol):
    """What proposes how a text goes on, for the model to check in one pass; what it proposes decides nothing."""

    def __call__(self, middle: str, /) -> str:
        """A text that may come after a middle; empty where none is likely enough to be read for nothing."""


class Matcher(Protocol):
    """What decoding asks of ``session.matcher(vocabulary)``."""

    def fill_mask(self, words: NDArray[np.uint32], /) -> None: ...
    def allows(self, token_id: int, /) -> bool: ...
    def commit(self, token_id: int, /) -> None: ...
    def is_complete(self) -> bool: ...


@runtime_checkable
class InsideMatcher(Protocol):
    """A matcher that can go back, and knows what the middle's end is inside of."""

    def commit(self, token_id: int, /) -> None: ...
    def rollback(self, n_tokens: int, /) -> None: ...
    @property
    def inside(self) -> str | None: ...


@runtime_checkable
class LandingMatcher(Protocol):
    """A matcher that knows how the middle can end in a few tokens."""

    def plan(self, enough: int = 0, /) -> list[int] | None: ...
    def lands(self, token_id: int, left: int, /) -> bool | None: ...
    def rollback(self, n_tokens: int, /) -> None: ...


class Session(Protocol):
    """What decoding asks of ``language.open(left, right)``."""

    @property
    def guarantee(self) -> str: ...
    @property
    def diagnostics(self) -> Sequence[str]: ...
    def matcher(self, vocabulary: Any, /, shape: Any = None, *, healing: bytes = b"") -> Matcher: ...


class MiddleState(Protocol):
    """What decoding asks of ``session.start()``: a middle in progress, in bytes."""

    def advance(self, text: bytes, /) -> int: ...
    def rollback(self, n_bytes: int, /) -> None: ...
    def __len__(self) -> int: ...


@runtime_checkable
class StartingSession(Session, Protocol):
    """A session that has states of middles."""

    def start(self) -> MiddleState: ...


@runtime_checkable
class FlooredSession(Protocol):
    """A session that can keep middles from closing what the left context has opened."""

    def floored(self, floor: str, /) -> Session: ...


class StartedPrefill(Protocol):
    """What decoding asks of a prompt whose reading was begun before (:class:`.beside.Beside`)."""

    prompt: list[int]
    reading: Reading
    reused: int
    tokens: int
    seconds: float

    def logits(self, prompt: Sequence[int], /) -> Logits | None: ...
    def seconds_before(self, moment: float, /) -> float: ...


class Language(Protocol):
    """What completing asks of a language."""

    def open(self, left: str, right: str, /) -> Session: ...


@runtime_checkable
class NamedLanguage(Protocol):
    """A language that says which one it is."""

    name: str


class Beginnings(Protocol):
    """Where else texts could begin: :class:`.search.Frontier`."""

    def note(self, run: Any, logits: Logits, choice: Any, /) -> None:
        """A run has chosen, from logits [V] of which nothing was refused yet."""


class Worths(Protocol):
    """What beginnings of texts are worth: :class:`.aligned.Aligned`."""

    def weighed(self, run: Any, logits: Logits, /) -> Logits:
        """The logits [V] that a run's next token is drawn from."""

    def note(self, run: Any, logits: Logits, token: int, /) -> None:
        """A run has drawn a token where the model's logits were these, [V]."""
