"""How to decode."""

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

REPEATED_TOKENS, REPEATED_TIMES = 24, 4

CONTEXT_SHARE = 0.25
"""With more, what is shown of other files takes the place of what says more: the lines around the cursor."""

LEAST_TEMPERATURE, GREATEST_TEMPERATURE = 1e-30, 1e30
"""Logits divided by what lies between are numbers of single precision still, and what is refused stays refused."""


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """How to decode."""

    max_new_tokens: int = 128
    """Budget of the middle, in tokens; at most half the model's window is given to it."""
    temperature: float = 0.0
    """0 takes the likeliest token; above, tokens are drawn from softmax(logits / temperature)."""
    constrained: bool = True
    """False decodes without the grammar, whatever the session could guarantee: the baseline to compare with."""
    seed: int = 0
    """Seed of the draws."""
    deadline_ms: float | None = None
    """Milliseconds from the start after which the best text so far is returned."""
    first_end_ms: float | None = None
    """Milliseconds after which decoding gives up if the middle is complete nowhere yet."""
    says_something: bool = False
    """Require a middle with something besides blanks."""
    max_prompt_tokens: int = 1024
    """Longest prompt; the model's window may be shorter. 1,024 tokens prefill in about 0.1 s with a model of 7M
    parameters on one CPU thread, in 1.6 s with one of 135M; where somebody waits, :class:`.models.pace.Pace` says how
    many there is time for."""
    prefill_chunk: int = PREFILL_CHUNK
    """Prompt tokens in one forward pass at most. A cancellation and the deadline wait for one pass."""
    prompt_grid: int = 1
    """Contexts that do not fit into the prompt lose a multiple of this many tokens; above 1, so that the prompt of the
    next keystroke begins as this one's."""
    context: ProjectContext | None = None
    """What the prompt shows of other files."""
    context_share: float = CONTEXT_SHARE
    """Of the longest prompt, what that may take."""
    single_line: bool = False
    """The middle has no line break. Where the model would begin a new line and the middle may end, it ends."""
    stop_repetition: bool = False
    """End where the model repeats itself: after :data:`REPEATED_TOKENS` tokens of at least :data:`REPEATED_TIMES` equal
    stretches. What was repeated is cut to one of them, or to a complete point before."""
    heal: bool = True
    """Let the model write again what the tokenizer may have cut otherwise left of the cursor
    (:class:`.healing.Healing`). For :func:`complete`; others heal by themselves. The budget is for what comes after."""
    trimmed: bool = False
    """Cut repetitions of the document and of the text itself off, as the server does (:mod:`.trimming`). Where nothing
    is left, take another text. For :func:`complete`."""
    no_comments: bool = False
    """The middle begins no comment, which would take in the rest of the cursor's line: a program still, but not the
    user's."""
    project_bias: ProjectBias | None = None
    """What else is known of how the text goes on: mixed with what the model says."""
    name_bias: NameBias | None = None
    """What is thought of the likeliest tokens besides, once that is mixed in (:mod:`.preferring`)."""
    drafts: Drafts | None = None
    """What proposes how the text goes on, so that the model reads several tokens in a pass (:mod:`.drafting`). Used by
    one run on one prompt, where the model gives the logits after each token of a pass, and without ``fast_forward``."""
    word_ends: bool = False
    """The word that the left context ends with is whole: the middle does not begin with a letter, a digit, ``_``, or
    anything that is not ASCII."""
    invisible: frozenset[str] = frozenset()
    """Hidden characters (:mod:`fim_server.text.hidden`) that the middle may have. All others are refused, under the
    grammar and without it. :func:`complete` takes those of the word at the cursor."""
    line_begun: bool = False
    """Refuse a blank or tab at the middle's beginning, because the cursor stands at its line's whole indentation."""
    landing: bool = True
    """Choose only tokens after which the middle can still end within the budget, so that every one ends in time
    (:mod:`.landing`), wherever a way to do that is known at the cursor; a ``single_line`` within its line. What
    stops earlier may stop before a complete point all the same (``deadline_ms``, ``stop_repetition``, cancelling), and
    with ``no_comments`` a way that needs a comment is none."""
    floor: str = "off"
    """What of the left context's the middle must not close: `off`, `brackets` or `block`, see
    :meth:`~fim_server.language.session.Session.floored`; where none keeps it, as `off`."""
    names: str = "off"
    """`require`: the middle loads no name that is bound nowhere (:mod:`.naming`); where it could end only with such a
    name, there is no text. `off`. For :func:`complete`, and languages of which names are known: Python."""
    undefined_names: UndefinedNames | None = None
    """What decoding asks for that. :func:`complete` makes it."""
    right_closer: RightCloser | None = None
    """The closer that the right context begins with: the model's writing it ends the middle (:mod:`.closing`).
    :func:`complete` finds it."""
    rest_of_line: RestOfLine | None = None
    """The rest of the cursor's line: the model's writing it ends the middle (:mod:`.following`). :func:`complete` finds
    it."""
    scored: bool = False
    """Note the probability of each token: another pass over each row of logits."""
    least_likelihood: float = 0.0
    """Where tokens are ``scored``: end where the probability of all of the middle together falls below."""
    unlikely_if_nothing: bool = True
    """Whether that ends a middle of which nothing is complete yet, so that there is none."""
    search: int = 1
    """Texts that are tried at most, of which the one is taken that the model holds for likeliest (:mod:`.search`); 1
    takes the likeliest token at each step. For :func:`complete`, at temperature 0, where the model's own session is
    exact."""
    samples: int = 1
    """Texts that are drawn at a temperature above 0, each with what the ones before have told of what fits; the last is
    taken (:mod:`.aligned`). With 1 a text is drawn from the masked distribution, which is another one than the model's
    among the texts that fit."""
    fast_forward: bool = False
    """Append the tokens that every continuation begins with without asking the model for them: it reads them in the
    same forward pass as the token before. Neither the guarantee nor the forced text changes, but the model sees that
    text in its tokenizer's own tokens, where it might have chosen others."""

    @property
    def usable_temperature(self) -> float:
        """The temperature, or the one within the limits of arithmetic that draws the same; 0 of one that is too low."""
        return 0.0 if self.temperature < LEAST_TEMPERATURE else min(self.temperature, GREATEST_TEMPERATURE)
