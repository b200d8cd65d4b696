"""Results of decoding: a completion, its stop reason and its cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class StopReason(StrEnum):
    """Reason why a middle ended where it did."""

    END_TOKEN = "end_token"
    """The model ended it where the grammar allows that."""
    BUDGET = "budget"
    """``max_new_tokens`` were generated."""
    DEADLINE = "deadline"
    """``deadline_ms`` passed."""
    CANCELLED = "cancelled"
    """The caller set the cancel flag."""
    REPETITION = "repetition"
    """The model had begun to repeat itself."""
    UNLIKELY = "unlikely"
    """The middle's probability fell below ``least_likelihood``."""
    LOST = "lost"
    """The model gave no more logits: an endpoint that does not answer."""
    DEAD_END = "dead_end"
    """No token may come next."""

    @property
    def is_interruption(self) -> bool:
        """Return whether to stop asking the model: after a cancellation, a deadline, or if it does not answer."""
        return self in (StopReason.CANCELLED, StopReason.DEADLINE, StopReason.LOST)


class Won(StrEnum):
    """Kind of a completion's text."""

    END_TOKEN = "end_token"
    """The model's own, whole."""
    LANDED = "landed"
    """Whole, with an end that the budget forced."""
    POINT = "point"
    """Text up to a complete point, most often cut back; it may have won against the landed text."""
    BUDGET = "budget"
    """Unconstrained text up to where decoding stopped."""


@dataclass(slots=True)
class Statistics:
    """Cost of a completion."""

    prompt_tokens: int = 0
    tokens: int = 0
    """Tokens generated, those cut off at the end included."""
    refused_tokens: int = 0
    """Steps at which the grammar or a rule refused the model's own choice; ``landing_steps`` counts the budget's."""
    reused_tokens: int = 0
    """Tokens of the prompt found in the KV cache."""
    prefilled_tokens: int = 0
    """Tokens of the prompt read for this completion; fewer than the rest after an interruption."""
    forced_share: float = 0.0
    """Share of the tokens for which the grammar or a rule refused the model's own choice."""
    fast_forwarded_tokens: int = 0
    """Those of ``tokens`` that were appended without the model's choice (``fast_forward``)."""
    passes: int = 0
    """Forward passes after the prompt's."""
    drafted_tokens: int = 0
    """Tokens of drafts that were read ahead in them (``drafts``)."""
    accepted_tokens: int = 0
    """Those of them that were then chosen: each has saved a pass."""
    landing_steps: int = 0
    """Steps at which the budget's end ruled out the choice (``landing``)."""
    open_ms: float = 0.0
    """Time to open the session on the whole file."""
    model_ms: float = 0.0
    """Time of forward passes, prefill included."""
    prefill_ms: float = 0.0
    """The part of ``model_ms`` that read the prompt."""
    decode_ms: float = 0.0
    """Time after the prefill, without waiting for the engine: forward passes and choices."""
    engine_ms: float = 0.0
    """Time of masks, checks and commits, also while the model ran."""
    engine_wait_ms: float = 0.0
    """The part of ``engine_ms`` that decoding waited for."""
    total_ms: float = 0.0

    def add(self, other: Statistics) -> None:
        """Add the cost of another text on the same prompt."""
        for name in self.__slots__:
            if name not in ("prompt_tokens", "forced_share"):
                setattr(self, name, getattr(self, name) + getattr(other, name))
        self.forced_share = min(1.0, self.refused_tokens / max(1, self.tokens))


@dataclass(frozen=True, slots=True)
class Written:
    """Token of a suggested text."""

    end: int
    """Offset in characters of its end in the text; a character that it only begins does not count."""
    probability: float
    """By the model with the biases, before any refusal."""


@dataclass(frozen=True, slots=True)
class Completion:
    """Middle with its origin and cost. Line breaks are ``"\n"``."""

    text: str | None
    """The middle, or None if there is none to suggest."""
    guarantee: str
    """``"exact"``: left + text + right is in the language. ``"balanced"``: its brackets, strings and comments close.
    ``"none"``: it may be in the language or not."""
    stop_reason: StopReason
    reason: str | None
    """Reason for a missing text, in words."""
    truncated: bool = False
    """True if the text was cut back to a complete point before the model's end."""
    won: Won | None = None
    """Kind of the text, or None without one."""
    diagnostics: tuple[str, ...] = ()
    """The session's diagnostics on the contexts."""
    written: tuple[Written, ...] = ()
    """The text's tokens, where they are ``scored`` (:class:`.options.DecodeOptions`), or those of ``begun``."""
    following: str = ""
    """The unlikely text that would have come next, where ``least_likelihood`` ended the middle."""
    begun: str = ""
    """The model's beginning, where it is complete at no point and there is no text."""
    bits: float | None = None
    """Bits of the text and its end by the model with the biases, before any refusal, where tokens are ``scored``."""
    statistics: Statistics = field(default_factory=Statistics)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Token that the model would write next."""

    text: str
    probability: float
    allowed: bool
