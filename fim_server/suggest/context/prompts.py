"""What the model reads for a cursor, and what is kept of it: prompts of two lengths.

One is as long as somebody waits for. What was read before anybody asked costs nothing, and a longer prompt fills in
more lines right (docs/results/model.md), so the worker reads such a one too while it has nothing else to do, and a
request takes it where hardly more of it is left to be read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.models.backend import LEAST_PROMPT_TOKENS, PacedBackend
from fim_server.models.pace import Pace
from fim_server.models.reading import Lent, Readings
from fim_server.suggest.constants import CONTEXT
from fim_server.suggest.context.cursor import Place
from fim_server.tokens.vocabulary import MOST_UNSETTLED

if TYPE_CHECKING:
    from fim_server.decoding.options import DecodeOptions
    from fim_server.decoding.protocols import CancelFlag
    from fim_server.models.model import FimModel
    from fim_server.models.project_context import ProjectContext
    from fim_server.suggest.request import Request
    from fim_server.text.document import Split

LEAST_AHEAD, EXTRA_MS = CONTEXT.ahead_tokens, CONTEXT.extra_ms


class KeptReadings:
    """What a model has read, of prompts of both lengths: shared by the threads that complete with it."""

    def __init__(self, model: FimModel) -> None:
        self.short = Readings(model)
        self.long = Readings(model, most=1)
        """One, because of the memory that it takes, and the place that somebody works at is one."""

    def clear(self) -> None:
        """Forget what nobody uses."""
        self.short.clear()
        self.long.clear()


class Prompts:
    """The readings of one model, as one thread uses them."""

    def __init__(self, model: FimModel, pace: Pace, kept: KeptReadings | None = None) -> None:
        """``kept``: shared with other threads."""
        self._model = model
        self._pace = pace
        kept = kept or KeptReadings(model)
        self._reads_when_asked = isinstance(model.backend, PacedBackend)
        """An endpoint: what it has read is not known here, and each thing that it reads is a request."""
        self._short = Lent(kept.short)
        self._long = Lent(kept.long)

    @property
    def short(self) -> Lent:
        """What was read of prompts for somebody who waits."""
        return self._short

    @property
    def drafts_pay(self) -> bool:
        """Whether drafts save time with this model."""
        return self._pace.drafts_pay

    def give_back(self) -> None:
        """Let others use what was read."""
        self._short.give_back()
        self._long.give_back()

    def note(self, tokens: int, seconds: float) -> None:
        """Take a pass, or several, into the pace."""
        self._pace.note(tokens, seconds)

    def options(
        self, request: Request, elapsed_ms: float, inside: str | None, context: ProjectContext | None = None
    ) -> DecodeOptions:
        """How to decode for somebody who waits; see :func:`options_of`. ``context``: what to show of other files."""
        options = options_of(request, self._model, self._pace, elapsed_ms, inside)
        options = replace(options, context=context)
        # As much as any request needs, so that none has to begin again for room.
        self._short.room = options.max_prompt_tokens + written(request, self._model)
        return options

    def reach(self, request: Request, split: Split, options: DecodeOptions, heals: bool) -> tuple[DecodeOptions, Lent]:
        """Options and readings to complete a cut with: those of the long prompt, where that is read all but for little.

        ``options``: of :meth:`options`; ``heals``: as in :func:`.decoding.alternatives.read_before`.
        """
        longer = self._longer(request, split, options, heals)
        if longer is not None:
            long, short_prompt, long_prompt = longer
            extra = int(self._pace.tokens_per_second * EXTRA_MS / 1000)
            left = len(short_prompt) - self._short.shared(short_prompt)
            if len(long_prompt) - self._long.shared(long_prompt) <= left + extra:
                return long, self._long
        return options, self._short

    def read_ahead(
        self,
        request: Request,
        split: Split,
        options: DecodeOptions,
        cancelled: CancelFlag,
        heals: bool,
        both: bool = True,
    ) -> int:
        """Read a cut's short prompt, then, if ``both``, the long one, until ``cancelled``; returns how many tokens.

        An endpoint reads for a cursor that rests alone, not after each key, where ``both`` are wanted.
        """
        from fim_server.decoding.strategies.alternatives import read_ahead

        if self._reads_when_asked and both:
            return 0
        read = read_ahead(self._model, split, options, cancelled, self._short, heals, LEAST_AHEAD)
        # Encoded in any case, which takes milliseconds the first time: a request compares the two.
        longer = None if cancelled.is_set() else self._longer(request, split, options, heals)
        if longer is not None and both:
            read += read_ahead(self._model, split, longer[0], cancelled, self._long, heals, LEAST_AHEAD)
        return read

    def _longer(
        self, request: Request, split: Split, options: DecodeOptions, heals: bool
    ) -> tuple[DecodeOptions, list[int], list[int]] | None:
        """The long prompt's options, and the tokens of the short and the long one.

        None where there is no long one, or the short one holds about as much.
        """
        from fim_server.decoding.strategies.alternatives import prompt_of

        if request.settings.prompt_tokens or not request.settings.prefetch or self._reads_when_asked:
            return None
        tokens = in_window(self._pace.long_prompt_tokens, self._model, request)
        self._long.room = tokens + written(request, self._model)
        long = replace(options, max_prompt_tokens=tokens, prompt_grid=grid_of(tokens))
        short_prompt, long_prompt = (prompt_of(self._model, split, one, heals)[0] for one in (options, long))
        return (long, short_prompt, long_prompt) if len(long_prompt) >= len(short_prompt) + LEAST_AHEAD else None


def options_of(request: Request, model: FimModel, pace: Pace, elapsed_ms: float, inside: str | None) -> DecodeOptions:
    """How to decode for a request, ``elapsed_ms`` after work on it began; ``inside``: what the cursor is inside of."""
    from fim_server.decoding.options import DecodeOptions

    settings = request.settings
    deadline = settings.invoked_deadline_ms if request.invoked else settings.deadline_ms
    prompt = in_window(settings.prompt_tokens or pace.prompt_tokens, model, request)
    return DecodeOptions(
        max_new_tokens=settings.max_line_tokens if request.single_line else settings.max_tokens,
        max_prompt_tokens=prompt,
        prefill_chunk=pace.chunk,
        temperature=settings.temperature,
        deadline_ms=max(0.0, deadline - elapsed_ms) if deadline else None,
        single_line=request.single_line,
        no_comments=takes_no_comments(request, inside),
        prompt_grid=grid_of(prompt),
        stop_repetition=True,
    )


def takes_no_comments(request: Request, inside: str | None) -> bool:
    """``DecodeOptions.no_comments`` for a cursor; ``inside``: what it is inside of."""
    return inside != "comment" and not Place.of(request.split).is_at_line_end


def written(request: Request, model: FimModel) -> int:
    """Tokens after a prompt, at most: as many for all kinds of request, so that all prompts begin alike."""
    longest = max(request.settings.max_tokens, request.settings.max_line_tokens)
    return min(longest, model.window // 2) + MOST_UNSETTLED


def in_window(tokens: int, model: FimModel, request: Request) -> int:
    """A prompt's length that leaves room in the model's window for what is written after it."""
    return max(LEAST_PROMPT_TOKENS, min(tokens, model.window - written(request, model)))


def grid_of(prompt: int) -> int:
    """``DecodeOptions.prompt_grid`` for a prompt of so many tokens."""
    return max(1, min(CONTEXT.prompt_grid, prompt // CONTEXT.prompt_steps))
