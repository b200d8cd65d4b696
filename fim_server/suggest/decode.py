"""Third stage: have the model write, again if its text has a red flag, and shortly if there is no suggestion."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.decoding.ending.trimming.indentation import starts_line
from fim_server.errors import StoppedError
from fim_server.models.backend import LostError
from fim_server.suggest.context.cursor import is_fresh
from fim_server.suggest.context.prompts import takes_no_comments
from fim_server.suggest.postprocess.blocks import is_header, owes_block
from fim_server.suggest.postprocess.endings import with_any_ending
from fim_server.suggest.postprocess.short_texts import beginning_of, of_a_short_text, with_time_to_end
from fim_server.suggest.postprocess.stage import undefined_names_of
from fim_server.suggest.ranking.confidence import least_likelihood
from fim_server.suggest.ranking.regenerate import MOST_ON_REQUEST, unlike_flagged
from fim_server.text.hidden import known_at

if TYPE_CHECKING:
    from fim_server.decoding.concurrent_prefill import ConcurrentPrefill
    from fim_server.decoding.options import DecodeOptions
    from fim_server.decoding.results import Completion
    from fim_server.language import Stop
    from fim_server.suggest.job import Job, PromptTokens
    from fim_server.suggest.postprocess.stage import Postprocess
    from fim_server.suggest.sources.stage import Sources


class Decoder:
    """Decoding for one document. Used by its thread alone, except where a method says otherwise."""

    def __init__(self, sources: Sources, postprocess: Postprocess, tokens: PromptTokens) -> None:
        self._sources = sources
        self._postprocess = postprocess
        self._tokens = tokens
        self._writing: tuple[Stop | None, str] = (None, "")
        """Text that the model has written so far, and the stop of its request."""
        self._line_wanted: tuple[Stop | None, int] = (None, 0)
        """Stop of a request whose text may end with its line, and the number of characters before that line's end."""

    def written_for(self, cancelled: Stop) -> str:
        """Return the text that the model has written so far for a request. Safe to call from other threads."""
        stop, text = self._writing
        return text if stop is cancelled else ""

    def end_line_for(self, cancelled: Stop, typed: int) -> None:
        """End a text as :attr:`.Handle.end_line` tells. Safe to call from other threads."""
        self._line_wanted = cancelled, typed

    def is_enough(self, cancelled: Stop) -> bool:
        """Return whether the text of a request ends with its line."""
        stop, typed = self._line_wanted
        return stop is cancelled and "\n" in self.written_for(cancelled)[typed:]

    def run(self, job: Job, drafts_pay: bool) -> bool:
        """Add the model's suggestions to a job; return whether there was one before the engine had to end a text.

        ``drafts_pay``: whether drafts save time with this model.
        """
        request, options = job.request, self._biased(job, drafts_pay)
        job.options, job.began = options, time.perf_counter()
        for completion in self._write(job, with_time_to_end(options) if request.invoked else options, job.prefill):
            self._take(job, completion)
        for _ in range(MOST_ON_REQUEST if request.invoked else 1):
            flagged = job.suggestions or job.loops
            unlike = unlike_flagged(flagged, job.repeats, options.name_bias, request.invoked)
            if unlike is None or job.work.completions[-1].stop_reason.is_interruption:
                break
            with suppress(StoppedError, LostError):  # the first text is there
                again = replace(options, name_bias=unlike, deadline_ms=job.left_ms())
                self._take(job, next(self._write(job, again)))
        if request.invoked and not job.suggestions and not job.cancelled.is_set():
            short = of_a_short_text(options, job.opened.session, job.model.vocabulary, job.left_ms())
            with suppress(StoppedError, LostError):
                self._take(job, next(self._write(job, short)))
        is_written, needs_end = bool(job.suggestions), request.invoked or job.loops
        if needs_end and not is_written and job.opened.guarantee != "none" and not job.cancelled.is_set():
            begun = beginning_of(job.work.completions, job.loops)
            self._postprocess.add(job, with_any_ending(begun, job.opened.session, job.closers))
        job.work.count_decoding(hidden_ms=1000 * job.prefill.seconds_before(job.began))
        return is_written

    def _biased(self, job: Job, drafts_pay: bool) -> DecodeOptions:
        """Return the options of a job with the biases of the sources and the ends of the session."""
        from fim_server.decoding.ending.rest_of_line import RestOfLine
        from fim_server.decoding.ending.right_closer import RightCloser

        request, opened, language, split = job.request, job.opened, job.language, job.request.split
        left_ms = job.left_ms()
        return replace(
            job.options,
            right_closer=RightCloser.of(opened.session, opened.left, opened.right),
            rest_of_line=RestOfLine.of(opened.session, opened.right),
            undefined_names=undefined_names_of(request, opened, language),
            scored=True,
            project_bias=self._sources.project_bias(request, language),
            name_bias=self._sources.name_bias(request, language, job.inside),
            drafts=self._sources.drafts(request, language) if drafts_pay else None,
            word_ends=request.word_ends,
            invisible=known_at(split.left, split.right),
            least_likelihood=least_likelihood(
                request,
                is_fresh(split, opened.session.spelling),
                owes_block(split, language.name),
                is_header(split, language.name),
            ),
            unlikely_if_nothing=not request.invoked,
            no_comments=takes_no_comments(request, job.inside),
            line_begun=starts_line(opened.session, split),
            deadline_ms=left_ms,
            single_line=job.options.single_line or not opened.has_grammar,
        )

    def _write(
        self, job: Job, options: DecodeOptions, prefill: ConcurrentPrefill | None = None
    ) -> Iterator[Completion]:
        """Yield the model's texts; with the ``prefill``, other threads see the first one while it is written."""
        from fim_server.decoding.loop.conclusion import decoded
        from fim_server.decoding.loop.watch import Interrupted
        from fim_server.decoding.results import StopReason
        from fim_server.decoding.strategies.alternatives import alternatives

        def note(tokens: Sequence[int]) -> None:
            text = decoded(job.model.vocabulary, tokens, strict=False)
            self._writing = job.cancelled, text[len(job.healing.text) :]
            if self.is_enough(job.cancelled):
                raise Interrupted(StopReason.DEADLINE)

        return alternatives(
            job.model,
            job.opened.session,
            job.healing.split,
            job.request.settings.alternatives if job.request.invoked else 1,
            options,
            cancelled=job.cancelled,
            on_token=(lambda tokens: None) if prefill is None else note,
            readings=job.readings,
            healing=job.healing.text,
            prefill=prefill,
        )

    def _take(self, job: Job, completion: Completion) -> None:
        """Count a text of the model, end it, and make a suggestion of it."""
        completion = self._postprocess.ended(job, job.healing.undo(completion))
        job.work.completions.append(completion)
        statistics = completion.statistics
        self._tokens.count(statistics)
        job.loaded.pace.note(statistics.prefilled_tokens, statistics.prefill_ms / 1000)
        self._postprocess.add(job, completion)
