"""Prompts of two lengths, and the readings of them that are kept.

The short prompt is as long as the user waits for. A longer one completes more lines correctly, so the worker reads it
while it has nothing else to do. A request takes it if hardly more of it is left to read.
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
    """Readings of one model, for prompts of both lengths. The threads that complete with it share them."""

    def __init__(self, model: FimModel) -> None:
        self.short = Readings(model)
        self.long = Readings(model, most=1)
        """One reading, because of its memory, and because the user works at one place."""

    def clear(self) -> None:
        """Drop the readings that are not in use."""
        self.short.clear()
        self.long.clear()


class Prompts:
    """Readings of one model, as one thread uses them."""

    def __init__(self, model: FimModel, pace: Pace, kept: KeptReadings | None = None) -> None:
        """``kept``: shared with other threads."""
        self._model = model
        self._pace = pace
        kept = kept or KeptReadings(model)
        self._reads_when_asked = isinstance(model.backend, PacedBackend)
        """True for an endpoint: each prefill is a request, and the server does not know its cache."""
        self._short = Lent(kept.short)
        self._long = Lent(kept.long)

    @property
    def short(self) -> Lent:
        return self._short

    @property
    def drafts_pay(self) -> bool:
        return self._pace.drafts_pay

    def give_back(self) -> None:
        self._short.give_back()
        self._long.give_back()

    def options(
        self, request: Request, elapsed_ms: float, inside: str | None, context: ProjectContext | None = None
    ) -> DecodeOptions:
        """Return the options of decoding as :func:`options_of`, with the text of other files in the prompt."""
        options = options_of(request, self._model, self._pace, elapsed_ms, inside)
        options = replace(options, context=context)
        # Room for any request, so that none has to begin a new reading.
        self._short.room = options.max_prompt_tokens + written(request, self._model)
        return options

    def reach(self, request: Request, split: Split, options: DecodeOptions, heals: bool) -> tuple[DecodeOptions, Lent]:
        """Return the options and readings of a request: those of the long prompt, if little of it is left to read.

        ``options``: the result of :meth:`options`. ``heals``: as in :func:`.alternatives.read_before`.
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
        """Read the short prompt of a cursor and, if ``both``, the long one; return the number of tokens read.

        An endpoint reads only at rest, which wants one prompt, and not after each key, which wants ``both``.
        """
        from fim_server.decoding.strategies.alternatives import read_ahead

        if self._reads_when_asked and both:
            return 0
        read = read_ahead(self._model, split, options, cancelled, self._short, heals, LEAST_AHEAD)
        # Encode both in any case: a request compares them, and the first encoding takes milliseconds.
        longer = None if cancelled.is_set() else self._longer(request, split, options, heals)
        if longer is not None and both:
            read += read_ahead(self._model, split, longer[0], cancelled, self._long, heals, LEAST_AHEAD)
        return read

    def _longer(
        self, request: Request, split: Split, options: DecodeOptions, heals: bool
    ) -> tuple[DecodeOptions, list[int], list[int]] | None:
        """Return the long prompt's options, and the tokens of the short and the long one; None if both are alike."""
        from fim_server.decoding.strategies.alternatives import prompt_of

        if request.settings.prompt_tokens or not request.settings.prefetch or self._reads_when_asked:
            return None
        tokens = in_window(self._pace.long_prompt_tokens, self._model, request)
        self._long.room = tokens + written(request, self._model)
        long = replace(options, max_prompt_tokens=tokens, prompt_grid=grid_of(tokens))
        short_prompt, long_prompt = (prompt_of(self._model, split, one, heals)[0] for one in (options, long))
        return (long, short_prompt, long_prompt) if len(long_prompt) >= len(short_prompt) + LEAST_AHEAD else None


def options_of(request: Request, model: FimModel, pace: Pace, elapsed_ms: float, inside: str | None) -> DecodeOptions:
    """Return the options of decoding, ``elapsed_ms`` after the work began. ``inside``: the text around the cursor."""
    from fim_server.decoding.options import DecodeOptions

    settings = request.settings
    deadline = request.deadline_ms
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
    """Return ``DecodeOptions.no_comments``. ``inside``: the kind of text around the cursor."""
    return inside != "comment" and not Place.of(request.split).is_at_line_end


def written(request: Request, model: FimModel) -> int:
    """Return the most tokens after a prompt: the same for all kinds of request, so that all prompts begin alike."""
    longest = max(request.settings.max_tokens, request.settings.max_line_tokens)
    return min(longest, model.window // 2) + MOST_UNSETTLED


def in_window(tokens: int, model: FimModel, request: Request) -> int:
    """Return a prompt's length that leaves room in the model's window for the middle."""
    return max(LEAST_PROMPT_TOKENS, min(tokens, model.window - written(request, model)))


def grid_of(prompt: int) -> int:
    """Return ``DecodeOptions.prompt_grid`` for the length of a prompt."""
    return max(1, min(CONTEXT.prompt_grid, prompt // CONTEXT.prompt_steps))
