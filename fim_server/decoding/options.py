"""Options of decoding, in groups by purpose.

:class:`DecodeOptions` has all of them under one keyword each. A function that reads one group takes that group's type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fim_server.decoding.bias.undefined_names import UndefinedNames
    from fim_server.decoding.ending.rest_of_line import RestOfLine
    from fim_server.decoding.ending.right_closer import RightCloser
    from fim_server.decoding.protocols import Drafts, NameBias, ProjectBias
    from fim_server.models.project_context import ProjectContext

from fim_server.models.backend import PREFILL_CHUNK

CONTEXT_SHARE = 0.25
"""Share of the prompt for other files. With more they displace the more telling lines around the cursor."""

LEAST_TEMPERATURE, GREATEST_TEMPERATURE = 1e-30, 1e30
"""Between them, logits divided by the temperature stay finite in single precision, and refused ones stay refused."""


@dataclass(frozen=True, kw_only=True)
class BudgetOptions:
    """Limits of length and time."""

    max_new_tokens: int = 128
    """Most tokens of the middle; at most half the model's window is used."""
    landing: bool = True
    """Choose only tokens after which the middle can still end within the budget (:mod:`.landing`), and a
    ``single_line`` within its line, wherever the engine knows a way to do that. A deadline, ``stop_repetition`` or a
    cancellation may stop earlier, before a complete point. With ``no_comments`` a way through a comment does not count.
    """
    deadline_ms: float | None = None
    """Milliseconds after which the best text so far is returned."""
    first_end_ms: float | None = None
    """Milliseconds after which decoding gives up a middle that is complete nowhere yet."""


@dataclass(frozen=True, kw_only=True)
class PromptOptions:
    """Prompt of the model."""

    max_prompt_tokens: int = 1024
    """Most tokens of the prompt; the model's window may be shorter. One CPU thread prefills 1,024 tokens in about 0.1 s
    with a model of 7M parameters, and in 1.6 s with one of 135M. :class:`.models.pace.Pace` tells how many there is
    time for."""
    prefill_chunk: int = PREFILL_CHUNK
    """Most tokens of one forward pass of the prefill. Cancellation and the deadline wait for one pass."""
    prompt_grid: int = 1
    """Contexts that do not fit lose a multiple of this many tokens. Above 1, the prompt of the next keystroke then has
    the same prefix."""
    context: ProjectContext | None = None
    """Text of other files to show."""
    context_share: float = CONTEXT_SHARE
    """Share of ``max_prompt_tokens`` that it may take."""
    heal: bool = True
    """Let the model write again the tokens that the tokenizer may have cut otherwise left of the cursor
    (:class:`.healing.Healing`). Only :func:`.complete.complete` reads this; the budget is for the text after them."""


@dataclass(frozen=True, kw_only=True)
class ConstraintOptions:
    """Texts that are allowed."""

    constrained: bool = True
    """False decodes without the grammar, as a baseline."""
    floor: str = "off"
    """Part of the left context that the middle must not close: `off`, `brackets` or `block`
    (:meth:`~fim_server.language.session.Session.floored`). Without a middle that keeps it, as `off`."""
    names: str = "off"
    """`off`, or `require`: the middle loads no undefined name (:mod:`.undefined_names`), and there is no text where it
    could end only with one. Only :func:`.complete.complete` reads this, for languages with name rules."""
    undefined_names: UndefinedNames | None = None
    """Rules for ``names``; :func:`.complete.complete` makes them."""
    single_line: bool = False
    """No line break in the middle. If the model would begin a new line where the middle may end, it ends. Without a
    grammar, the middle ends with the token that has its first line break."""
    says_something: bool = False
    """Require a character that is no blank."""
    no_comments: bool = False
    """Begin no comment, which would swallow the rest of the cursor's line."""
    word_ends: bool = False
    """The word before the cursor is whole: begin with no letter, digit, ``_`` or character beyond ASCII."""
    line_begun: bool = False
    """The cursor stands at its line's whole indentation: begin with no blank or tab."""
    invisible: frozenset[str] = frozenset()
    """Hidden characters (:mod:`fim_server.text.hidden`) that the middle may have; all others are refused, also without
    the grammar. :func:`.complete.complete` adds those of the word at the cursor."""


@dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    """Choice among allowed texts."""

    temperature: float = 0.0
    """0 takes the likeliest token; above, tokens are drawn from softmax(logits / temperature)."""
    seed: int = 0
    """Seed of the draws."""
    search: int = 1
    """Most texts to try for the likeliest (:mod:`.search`); 1 is greedy. Only for one completion in an exact session at
    temperature 0."""
    samples: int = 1
    """Texts to draw at a temperature above 0, each with the worths learnt from those before; the last is taken
    (:mod:`.aligned`). With 1 the text follows the masked distribution, not the model's distribution of texts that fit.
    """
    fast_forward: bool = False
    """Append tokens that every continuation begins with without asking the model, which reads them in the pass of the
    token before. The guarantee and the forced text stay; the model sees it in other tokens than it might have chosen.
    """
    scored: bool = False
    """Note each token's probability: another pass over each row of logits."""
    least_likelihood: float = 0.0
    """Least probability of the whole middle: decoding of ``scored`` tokens ends below it."""
    unlikely_if_nothing: bool = True
    """Let ``least_likelihood`` also end a middle that is complete nowhere yet, which leaves no text."""

    @property
    def usable_temperature(self) -> float:
        """Return the temperature within the limits of arithmetic, or 0 for one that is too low."""
        return 0.0 if self.temperature < LEAST_TEMPERATURE else min(self.temperature, GREATEST_TEMPERATURE)


@dataclass(frozen=True, kw_only=True)
class BiasOptions:
    """Knowledge besides the model's."""

    project_bias: ProjectBias | None = None
    """Foretells texts, which are mixed into the model's distribution (:mod:`.project_bias`)."""
    name_bias: NameBias | None = None
    """Rates the likeliest tokens after that (:mod:`.name_bias`)."""
    drafts: Drafts | None = None
    """Proposes texts, so that the model reads several tokens in a pass (:mod:`.drafting`). For one run on one prompt, a
    model that gives the logits after each token of a pass, and no ``fast_forward``."""


@dataclass(frozen=True, kw_only=True)
class EndingOptions:
    """Ends of the middle before its budget."""

    stop_repetition: bool = False
    """End where the model repeats itself (:func:`.repetition.before_repetition`); keep one of the equal stretches, or
    less if that is complete nowhere."""
    trimmed: bool = False
    """Cut off repetitions of the document and of the text, as the server does (:mod:`.trimming`); if no text is left,
    take another. Only :func:`.complete.complete` reads this."""
    right_closer: RightCloser | None = None
    """Closer that begins the right context; a model that writes it ends the middle (:mod:`.right_closer`).
    :func:`.complete.complete` finds it."""
    rest_of_line: RestOfLine | None = None
    """Rest of the cursor's line; a model that writes it ends the middle (:mod:`.rest_of_line`).
    :func:`.complete.complete` finds it."""
    end_mark: bytes = b""
    """Text that ends the middle at the beginning of a line, for models that end with a text and no token."""


@dataclass(frozen=True, kw_only=True)
class DecodeOptions(BudgetOptions, PromptOptions, ConstraintOptions, SamplingOptions, BiasOptions, EndingOptions):
    """Options of decoding."""
