"""Handlers of the commands (docs/protocol.md).

pygls checks the number of arguments; the handlers check their contents.
"""

from __future__ import annotations

import asyncio
from typing import Any

from pygls.exceptions import JsonRpcInternalError, JsonRpcInvalidParams

from fim_server.errors import DocumentError, LanguageError, ModelError, StoppedError
from fim_server.models.store.catalogue import DEFAULT_NAME, entry_of
from fim_server.server.arguments import member, object_of, position_of, text_member
from fim_server.server.documents.cut import cut_of, language_at
from fim_server.server.explanation import explanation_json
from fim_server.server.habits import Decision
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.languages import languages_json
from fim_server.server.models.fetching import get_model, stop_getting
from fim_server.server.models.installed import list_models, remove_model
from fim_server.server.models.loading import reload
from fim_server.server.requests.dismissals import Offer
from fim_server.server.requests.secret_files import secret_reason
from fim_server.server.status import send_status
from fim_server.suggest.request import Request
from fim_server.text.hidden import on_one_line

EXPLAIN, STATISTICS, LANGUAGES = "fim-server.explainAt", "fim-server.statistics", "fim-server.languages"
DISMISSED, RESET_THRESHOLD = "fim-server.dismissed", "fim-server.resetThreshold"
SET_ENABLED, RELOAD = "fim-server.setEnabled", "fim-server.reload"
GET_MODEL, MODELS, REMOVE_MODEL = "fim-server.getModel", "fim-server.models", "fim-server.removeModel"


def on_accepted(ls: FimLanguageServer, accepted: Any) -> None:
    identity = text_member(accepted, "id")
    ls.usage.count_acceptance(identity)
    ls.protocol.retention().accept(identity)
    decide(ls, ls.dismissals.take(identity), True)


def on_dismissed(ls: FimLanguageServer, dismissed: Any) -> None:
    """Keep a suggestion and its alternatives away from their place until its line changes."""
    decide(ls, ls.dismissals.dismiss(text_member(dismissed, "id"), ls.open_document), False)


def decide(ls: FimLanguageServer, offer: Offer | None, is_accepted: bool) -> None:
    """Learn from a decision on an unrequested suggestion."""
    if offer is not None and offer.confidence is not None and ls.settings.personal_threshold:
        ls.habits.decide(Decision(offer.language, offer.confidence, is_accepted))


def on_reset_threshold(ls: FimLanguageServer, *arguments: Any) -> None:
    """Forget what the user accepted and dismissed."""
    object_of(arguments)
    ls.habits.forget()


async def on_explain(ls: FimLanguageServer, question: Any) -> dict[str, Any]:
    """Explain which text may follow the cursor, and why other text may not."""
    asked, position = text_member(question, "uri"), position_of(member(question, "position"))
    uri = ls.protocol.spellings.of(asked)
    text = member(question, "text", None)
    if text is not None and not isinstance(text, str):
        raise JsonRpcInvalidParams.of(ValueError("text: a text expected"))
    document = ls.open_document(uri)
    if document is None:
        raise JsonRpcInvalidParams.of(ValueError(f"{on_one_line(asked)} is not open"))
    owner = ls.protocol.owner_of(uri)
    document = document.frozen()
    if (secret := await secret_reason(ls, owner)) is not None:
        raise JsonRpcInvalidParams.of(ValueError(secret))
    if owner in ls.requests.suspended:
        raise JsonRpcInvalidParams.of(ValueError(ls.requests.suspended[owner]))
    if len(document.document.text) > ls.settings.max_file_characters:
        raise JsonRpcInvalidParams.of(ValueError("the document is too large (setting maxFileCharacters)"))
    try:
        read, offset = document.document, document.offset_of(position)
        language = language_at(document, read, offset)
        cut = cut_of(document, read.split(offset, language.keeps_returns), language.region)
        if isinstance(cut, str):
            raise DocumentError(cut)
        one_line = cut.one_line or not language.has_grammar
        request = Request(
            cut.uri,
            cut.split,
            language.editor_id,
            cut.path,
            True,
            one_line,
            ls.settings,
            cell=cut.cell,
            described=ls.described(cut.uri, language),
        )
        answer, cancelled = ls.worker.explain(
            request, lambda explained: explanation_json(asked, position, explained, text)
        )
        ls.supervisor.begin()
        ls.protocol.once_cancelled(cancelled.set)
        try:
            return await asyncio.wrap_future(answer)
        finally:
            cancelled.set()  # the server may be about to end
    except (DocumentError, LanguageError, StoppedError) as error:
        raise JsonRpcInvalidParams.of(error) from error


def on_languages(ls: FimLanguageServer, *arguments: Any) -> list[dict[str, Any]]:
    """Return the languages that the server knows."""
    object_of(arguments)
    return languages_json(ls)


def on_statistics(ls: FimLanguageServer, *arguments: Any) -> dict[str, Any]:
    """Return counts and latencies since the server started."""
    object_of(arguments)
    counts = ls.usage.as_json() | {"promptTokens": ls.worker.prompts.as_json()}
    return counts | {"thresholdShifts": ls.habits.as_json(), "retained": ls.protocol.retention().as_json()}


def on_set_enabled(ls: FimLanguageServer, enabled: Any) -> bool:
    """Switch completions on or off, until the settings change."""
    if not isinstance(enabled, bool):
        raise JsonRpcInvalidParams.of(ValueError("true or false expected"))
    ls.settings = ls.settings.having("enabled", enabled)
    ls.worker.use(ls.settings)
    if not enabled:
        ls.worker.stop_prefetch()
        ls.requests.stop_all()
    send_status(ls)
    return enabled


async def on_reload(ls: FimLanguageServer, *arguments: Any) -> None:
    """Forget everything and load the model again."""
    object_of(arguments)
    await reload(ls)


async def on_get_model(ls: FimLanguageServer, *arguments: Any) -> dict[str, Any]:
    """Get a better model in the background and load it, or cancel that."""
    wanted = object_of(arguments)
    name, cancel = member(wanted, "name", None), member(wanted, "cancel", None)
    if not isinstance(name, str | None) or not isinstance(cancel, bool | None):
        raise JsonRpcInvalidParams.of(ValueError("name: a text expected, and cancel: true or false"))
    try:
        entry = entry_of(DEFAULT_NAME if name is None else name)
    except ModelError as error:
        raise JsonRpcInvalidParams.of(error) from error
    return stop_getting(ls, entry) if cancel is True else await get_model(ls, entry)


async def on_models(ls: FimLanguageServer, *arguments: Any) -> list[dict[str, Any]]:
    object_of(arguments)
    try:
        return await list_models(ls)
    except (ModelError, OSError) as error:
        raise JsonRpcInternalError.of(error) from error


async def on_remove_model(ls: FimLanguageServer, wanted: Any) -> dict[str, Any]:
    """Delete a model that is not in use."""
    name = member(wanted, "name")
    if not isinstance(name, str) or not name:
        raise JsonRpcInvalidParams.of(ValueError("name: a model's name expected"))
    return await remove_model(ls, name)
