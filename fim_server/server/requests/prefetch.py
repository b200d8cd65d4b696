"""Prefetch of suggestions while the user reads one: the one behind it, and the model's next to the memory's."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from fim_server.errors import MissingLibrary, ModelError, StoppedError
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.requests.known_answers import remember
from fim_server.server.state import UnderWay
from fim_server.suggest.answer_cache import Answer
from fim_server.suggest.context.cursor import Place, wants_single_line
from fim_server.suggest.job import Work
from fim_server.suggest.postprocess.blocks import owes_block
from fim_server.suggest.ranking.display import shown
from fim_server.suggest.request import Request
from fim_server.suggest.suggestion import Suggestion
from fim_server.text.document import Split


def prefetch_next(ls: FimLanguageServer, request: Request, found: Answer) -> None:
    """Prefetch the suggestion that follows the first one of an answer; any request goes first."""
    prefetches = request.settings.prefetch and request.settings.ask_model
    if not prefetches or ls.requests.waiting or ls.requests.prefetch is not None:
        return
    suggestion = found.suggestions[0]
    left, right = suggestion.document(request.split)
    split = Split(left, right, request.split.version, request.split.newline)
    one_line = request.cell is not None and request.cell.one_line
    following = replace(
        request,
        split=split,
        invoked=False,
        single_line=one_line
        or not request.has_grammar
        or wants_single_line(Place.of(split), request.settings, owes_block(split, request.language_id)),
        word_ends=False,
        allowed_ms=None,
        cell=None if request.cell is None else request.cell.with_text(suggestion.text, suggestion.covered),
    )
    if ls.answers.find(following.key, left, right, following.single_line, False) is None:
        ls.spawn(remember_prefetched(ls, begin(ls, following)))


def confirm(ls: FimLanguageServer, request: Request, recalled: Answer) -> None:
    """Have the model answer where the project's memory alone has, while its suggestion is shown; requests go first."""
    if not request.settings.prefetch or not request.settings.ask_model or ls.requests.waiting:
        return
    ls.requests.stop_prefetch()  # it follows another suggestion
    ls.spawn(remember_confirmed(ls, begin(ls, request), recalled))


def begin(ls: FimLanguageServer, request: Request) -> UnderWay:
    prefetch = ls.requests.prefetch = UnderWay(request, ls.worker.submit(request))
    ls.supervisor.begin()
    return prefetch


async def finished(ls: FimLanguageServer, prefetch: UnderWay) -> Work | None:
    """Return the result of a prefetch; None if a request has stopped it."""
    try:
        return await asyncio.wrap_future(prefetch.job.future)
    except (ModelError, MissingLibrary, StoppedError, asyncio.CancelledError):
        return None
    finally:
        if ls.requests.prefetch is prefetch:
            ls.requests.prefetch = None


async def remember_prefetched(ls: FimLanguageServer, prefetch: UnderWay) -> None:
    work = await finished(ls, prefetch)
    if work is not None:
        remember(ls, prefetch.request, work.answer.as_prefetched())


async def remember_confirmed(ls: FimLanguageServer, prefetch: UnderWay, recalled: Answer) -> None:
    """Cache the model's answer joined with the shown one, and prefetch what follows."""
    work = await finished(ls, prefetch)
    if work is not None:
        found = confirmed(recalled, work.answer, prefetch.request)
        remember(ls, prefetch.request, found)
        prefetch_next(ls, prefetch.request, found)


def confirmed(recalled: Answer, written: Answer, request: Request) -> Answer:
    """Return the shown answer and the model's as one: no shown text changes while it is typed.

    A text of the model that continues the shown one on its line comes before it, all others behind, for a user who
    types something else.
    """

    def seen(suggestion: Suggestion) -> str:
        part = shown(suggestion, request.split.right[: suggestion.covered], request.least)
        return "" if part is None else part.text

    first, *rest = recalled.suggestions
    others = [one for one in (*written.suggestions, *rest) if one.text != first.text]
    if any(one.text == first.text and not one.is_recalled for one in written.suggestions):
        first = replace(first, origin=replace(first.origin, is_recalled=False))  # the model says the same
    for longer in others:
        more = longer.text.removeprefix(first.text)
        continues = more != longer.text and "\n" not in more
        if not longer.is_recalled and continues and seen(longer).startswith(seen(first)):
            return replace(written, suggestions=(longer, first, *(one for one in others if one is not longer)))
    return replace(written, suggestions=(first, *others))
