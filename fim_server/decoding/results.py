"""What decoding comes to: a completion, why it ended there, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class StopReason(StrEnum):
    """Why a middle ended where it did."""

    END_TOKEN = "end_token"
    """The model ended it, at a point where the grammar allows that."""
    BUDGET = "budget"
    """``max_new_tokens`` were generated."""
    DEADLINE = "deadline"
    """``deadline_ms`` passed."""
    CANCELLED = "cancelled"
    """The caller set the cancel flag."""
    REPETITION = "repetition"
    """The model had begun to say the same over and over."""
    UNLIKELY = "unlikely"
    """By itself the model would hardly have written what it has (``least_likelihood``)."""
    LOST = "lost"
    """The model gave nothing more: an endpoint that does not answer."""
    DEAD_END = "dead_end"
    """No token at all may come next."""

    @property
    def is_interruption(self) -> bool:
        """Whether nothing more is to be asked of the model: nobody waits, the time is over, or it does not answer."""
        return self in (StopReason.CANCELLED, StopReason.DEADLINE, StopReason.LOST)


class Won(StrEnum):
    """What the text of a completion is."""

    END_TOKEN = "end_token"
    """The model's own, whole."""
    LANDED = "landed"
    """Whole, and its end such as the budget's end allowed it."""
    POINT = "point"
    """What there was at a complete point, most often cut back to it; it may have won against the landed text."""
    BUDGET = "budget"
    """Unconstrained: what there was when decoding stopped."""


@dataclass(slots=True)
class Statistics:
    """What a completion cost."""

    prompt_tokens: int = 0
    tokens: int = 0
    """Tokens generated, those cut off again at the end included."""
    refused_tokens: int = 0
    """Steps at which the grammar refused the model's own choice; ``landing_steps`` are those of the budget."""
    reused_tokens: int = 0
    """Tokens of the prompt that the model had read before."""
    prefilled_tokens: int = 0
    """Tokens of the prompt that it read now: the rest, or less where it was interrupted."""
    forced_share: float = 0.0
    """``refused_tokens / tokens``: the share of the text that the grammar chose among the model's alternatives."""
    fast_forwarded_tokens: int = 0
    """Those of ``tokens`` that the model was not asked for, because nothing else could come (``fast_forward``)."""
    passes: int = 0
    """Forward passes after the prompt's."""
    drafted_tokens: int = 0
    """Proposed tokens that were read ahead in them (``drafts``)."""
    accepted_tokens: int = 0
    """Those of them that were then chosen: each has saved a pass."""
    landing_steps: int = 0
    """Steps at which the budget's end ruled out what would have been chosen (``landing``)."""
    open_ms: float = 0.0
    """Opening the session on the whole file."""
    model_ms: float = 0.0
    """Forward passes, prefill included."""
    prefill_ms: float = 0.0
    """The part of ``model_ms`` that read the prompt."""
    decode_ms: float = 0.0
    """Everything after that but waiting for the engine: forward passes, choosing tokens."""
    engine_ms: float = 0.0
    """Masks, checks and commits, including masks computed while the model ran."""
    engine_wait_ms: float = 0.0
    """The part of ``engine_ms`` that decoding waited for."""
    total_ms: float = 0.0

    def add(self, other: Statistics) -> None:
        """Add what another text on the same prompt cost."""
        for name in self.__slots__:
            if name not in ("prompt_tokens", "forced_share"):
                setattr(self, name, getattr(self, name) + getattr(other, name))
        self.forced_share = min(1.0, self.refused_tokens / max(1, self.tokens))


@dataclass(frozen=True, slots=True)
class Written:
    """A token of a text that is offered."""

    end: int
    """Characters of the text up to its end; one that it only begins is not counted."""
    probability: float
    """As the model had it, before the grammar refused anything."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A middle and what is known about it. Line breaks are ``"\\n"``."""

    text: str | None
    """The middle, or None if there is none to offer."""
    guarantee: str
    """``"exact"``: left + text + right is in the language. ``"none"``: nothing is known about it."""
    stop_reason: StopReason
    reason: str | None
    """Why there is no text, in words."""
    truncated: bool = False
    """Whether the model would have gone on: the text was cut back to a complete point."""
    won: Won | None = None
    """What the text is, or None if there is none."""
    diagnostics: tuple[str, ...] = ()
    """What the session has to say about the contexts."""
    written: tuple[Written, ...] = ()
    """The text's tokens, where they are ``scored`` (:class:`.options.DecodeOptions`); those of ``begun``, if any."""
    following: str = ""
    """What would have come next, by itself unlikely, where the text ends because of that."""
    begun: str = ""
    """Beginning that the model wrote, where it is complete at no point and there is no text."""
    bits: float | None = None
    """Of the text and its end by the model, before the grammar refused anything, where they are ``scored``."""
    statistics: Statistics = field(default_factory=Statistics)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that the model would write next."""

    text: str
    probability: float
    allowed: bool
