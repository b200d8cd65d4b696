"""Explanation of a cursor: its session, and the model's candidates for the next token."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.language import Stop
from fim_server.suggest import limits
from fim_server.suggest.context.cursor import Place, wants_single_line
from fim_server.suggest.job import Explained
from fim_server.suggest.postprocess.blocks import owes_block

if TYPE_CHECKING:
    from concurrent.futures import Future

    from fim_server.suggest.context.sessions import Opened
    from fim_server.suggest.context.stage import ContextStage
    from fim_server.suggest.job import Loaded
    from fim_server.suggest.request import Request

MODEL_MS = 3000.0
"""Time in which the model may read. After it, an explanation has no candidates. Unit: milliseconds."""

CANDIDATES = 12
"""Most candidates."""


def explain(context: ContextStage, loading: Future[Loaded] | None, request: Request, cancelled: Stop) -> Explained:
    """Return the explanation of a cursor, with candidates if the model is loaded."""
    from fim_server.decoding.strategies.alternatives import candidates

    is_loaded = loading is not None and loading.done() and loading.exception() is None
    language = context.language(request, loading.result() if loading is not None and is_loaded else None)
    place, owes = Place.of(request.split), owes_block(request.split, language.name)
    single_line = request.single_line or wants_single_line(place, request.settings, owes)
    with Stop(limits.ENGINE_SECONDS):
        opened = context.open(replace(request, single_line=single_line), language)  # as for a completion
    if loading is None or not is_loaded or not request.settings.enabled:
        return Explained(language, opened, [])
    loaded = loading.result()
    prompts = context.prompts(loaded)
    options = context.options(request, loaded, language, opened.session.inside)
    options = replace(options, deadline_ms=MODEL_MS)
    with Stop(limits.ENGINE_SECONDS + MODEL_MS / 1000):
        healing = context.healing(request, loaded)  # as for a completion
        found = candidates(
            loaded.model,
            opened.session,
            healing.split,
            CANDIDATES,
            options,
            prompts.short,
            cancelled,
            healing.text,
        )
        if not opened.has_grammar:
            return Explained(language, opened, [(one.text, one.probability, True, None) for one in found])
        shown = [
            (one.text, one.probability, one.allowed, None if one.allowed else refusal(opened, one.text))
            for one in found
        ]
        return Explained(language, opened, shown)


def refusal(opened: Opened, text: str) -> str:
    """Return the reason for refusing a token, in words; the empty text is an end token."""
    if opened.guarantee == "none":
        return "nothing is known of what may come here"
    if text == "":
        return "the text cannot end here"
    explanation = opened.session.start().explain(text)
    rest = text[len(explanation.accepted) :]
    place = f"after {explanation.accepted!r}" if explanation.accepted else "here"
    return f"{rest[:1]!r} cannot come {place}" if rest else "it holds a part of a character"
