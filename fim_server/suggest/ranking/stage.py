"""Last stage: rank the suggestions of the model and of the project's memory."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.errors import StoppedError
from fim_server.suggest.ranking.rank import others_of, ranked_for_display, together
from fim_server.suggest.ranking.regenerate import without_repeats

if TYPE_CHECKING:
    from fim_server.suggest.job import Job
    from fim_server.suggest.sources.project_suggestions import ProjectSuggestions


def rank(job: Job, project: ProjectSuggestions, is_written: bool, is_line: bool) -> None:
    """Set the answer of a job: its suggestions with the recalled ones, the best first.

    Args:
        job: The record of the request.
        project: Suggestions from the project's memory.
        is_written: Whether there was a suggestion before the engine had to end a text of the model.
        is_line: Whether the model's text was to end with its line.
    """
    request, opened = job.request, job.opened
    if request.invoked:
        job.suggestions = without_repeats(job.suggestions)
    if not job.cancelled.is_set():
        with suppress(StoppedError):  # the model's suggestions are there
            recalled = others_of(job.suggestions, project.likeliest(request, opened, job.language))
            if request.invoked:
                most = request.settings.alternatives
                job.suggestions = together(job.suggestions, recalled, job.closers, most, is_written)
            else:
                job.suggestions = ranked_for_display(job.suggestions, recalled, job.closers, request.least)
    found = bool(job.suggestions)
    is_late = any(completion.stop_reason == "deadline" for completion in job.work.completions)
    # An answer on a part of the text does not last: at the next key, the session covers the whole.
    lasting = ((found and (is_written or not request.invoked)) or not is_late) and not opened.is_unfinished
    reason = None if found or not job.suppressed else job.suppressed[0].message
    answered = replace(request, single_line=True) if is_line else request
    job.work.answer = answered.answered(tuple(job.suggestions), reason, lasting, tuple(job.suppressed))
