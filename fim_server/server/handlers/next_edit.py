"""Handlers of next edits: the request of Copilot's language server, and the decisions on its answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import Any

from lsprotocol import types

from fim_server.errors import DocumentError, LanguageError, StoppedError
from fim_server.next_edit.edit_memory import Edit
from fim_server.server.arguments import member, text_member
from fim_server.server.arguments import position_of as position_of_cursor
from fim_server.server.documents.cut import language_at
from fim_server.server.documents.open_document import OpenDocument
from fim_server.server.items import after
from fim_server.server.language_server import SERVER_NAME, FimLanguageServer
from fim_server.server.requests.secret_files import secret_reason
from fim_server.server.status import MOST_OF_NAME
from fim_server.suggest.next_edit import EditQuestion, NextEdit
from fim_server.suggest.request import Request
from fim_server.system.process import resident_bytes
from fim_server.text.document import Document, PositionEncoding
from fim_server.text.hidden import on_one_line
from fim_server.workers.edit_model import in_words

NEXT_EDIT = "textDocument/copilotInlineEdit"
"""Request for the next edit, in the form that existing clients send."""

SHOWN, FOCUSED = "textDocument/didShowInlineEdit", "textDocument/didFocus"
"""Notifications that these clients send, and the server ignores."""

MOST_OTHERS = 8
"""Most other documents whose latest edits count, and most that edits are looked for in."""

MOST_OF_OTHERS = 1_000_000
"""Most characters of those documents whose latest edits count."""

EDIT_ACCEPTED, EDIT_DISMISSED = "fim-server.editAccepted", "fim-server.editDismissed"


async def on_next_edit(ls: FimLanguageServer, params: Any) -> dict[str, Any]:
    """Return at most one edit that may follow the latest one, as `{"edits": [...]}`.

    There is none if the document is not the named version, or changes meanwhile. It may be one of another open document
    if the client says so.
    """
    named = member(params, "textDocument")
    document = ls.open_document(text_member(named, "uri"))
    version = member(named, "version", None)
    if document is None or (version is not None and version != document.version):
        return {"edits": []}
    then = document.frozen()
    place = member(params, "position", None)
    cursor = None if place is None else position_of_cursor(place)
    found = await find(ls, then, cursor, member(params, "otherDocuments", None) is True)
    if found is None or any(has_changed(ls, one) for one in (then, found[0])):
        return {"edits": []}
    target, edit = found
    identity = ls.next_edits.note(edit.key, edit.document_key)
    return {"edits": [edit_json(target, edit, identity, ls.encoding)]}


def has_changed(ls: FimLanguageServer, then: OpenDocument) -> bool:
    """Return whether a document is not open any more as it was."""
    now = ls.open_document(then.uri)
    return now is None or now.source != then.source


async def find(
    ls: FimLanguageServer, document: OpenDocument, cursor: types.Position | None, looks_elsewhere: bool
) -> tuple[OpenDocument, NextEdit] | None:
    """Return the next edit of a document, or of another one if ``looks_elsewhere``; None if there is none."""
    request = await request_of(ls, document)
    if request is None:
        return None
    uri, text = document.uri, request.split.right
    others = await others_edited(ls, document)
    edits = [edit for edit in ls.protocol.edit_memory().latest() if edit.uri == uri or edit.uri in others]
    documents = {one.uri: one for one in (naming_documents(ls, document, edits) if looks_elsewhere else ())}
    asked_elsewhere = [await request_of(ls, one) for one in documents.values()]
    asked = EditQuestion(
        uri,
        text,
        edits,
        others,
        ls.next_edits.decided,
        cursor=None if cursor is None else min(document.offset_of(cursor), len(text)),
        paths={one: ls.file_of(one) or one.rpartition("/")[2] for one in (uri, *others)},
        deadline_ms=ls.settings.invoked_deadline_ms or None,
        elsewhere=[one for one in asked_elsewhere if one is not None],
    )
    try:
        ls.supervisor.begin()
        answer = ls.worker.next_edit(request, asked)
        report_model(ls)
        found = await asyncio.wrap_future(answer)
    except (LanguageError, StoppedError):
        return None
    return None if found is None else (document if found.uri is None else documents[found.uri], found)


async def request_of(ls: FimLanguageServer, document: OpenDocument) -> Request | None:
    """Return the request for a document's grammar; None where the settings or the document allow no next edit."""
    settings, uri = ls.settings, document.uri
    if not settings.enabled or not settings.next_edits or document.notebook is not None:
        return None
    if uri in ls.requests.suspended or len(document.source) > settings.max_file_characters:
        return None
    if await secret_reason(ls, uri) is not None:
        ls.protocol.edit_memory().forget(uri)
        return None
    try:
        language = language_at(document, document.document, 0)
        if not language.has_grammar or language.region is not None:
            return None
        if settings.trigger_of(language.name, None, ls.file_of(uri)) == "off":
            return None
        split = document.document.split(0, language.keeps_returns)
    except (DocumentError, LanguageError):
        return None
    if "\r" in split.right:
        return None
    return Request(uri, split, language.editor_id, document.path or "", False, False, settings)


def report_model(ls: FimLanguageServer) -> None:
    """Log once whether the model for next edits was loaded; show it if not."""
    news = ls.worker.edit_model.take_news()
    if isinstance(news, BaseException):
        message = on_one_line(in_words(news))
        ls.log(types.MessageType.Error, message)
        ls.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"{SERVER_NAME}: {message}"))
    elif news is not None:
        ls.supervisor.budget.note_loaded(resident_bytes(), (news.name, news.device, news.runtime))
        edits = news.format.edits
        name = on_one_line(news.name, MOST_OF_NAME)
        if edits is None:
            message = f"model {name} is not trained to write next edits"
            ls.log(types.MessageType.Warning, message)
            ls.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"{SERVER_NAME}: {message}"))
        else:
            ls.log(types.MessageType.Info, f"model {name} ready for next edits ({edits.family} format)")


async def others_edited(ls: FimLanguageServer, document: OpenDocument) -> dict[str, str]:
    """Return the texts of other open documents of the language that were edited lately and may be read, by URI.

    Very long ones are left out.
    """
    from fim_server.next_edit.propose import LONGEST_DOCUMENT

    found: dict[str, str] = {}
    left = MOST_OF_OTHERS
    for uri in dict.fromkeys(edit.uri for edit in reversed(ls.protocol.edit_memory().latest())):
        other = None if uri == document.uri else ls.open_document(uri)
        if other is None or other.language_id != document.language_id or other.notebook is not None:
            continue
        if len(other.source) <= min(left, LONGEST_DOCUMENT) and await secret_reason(ls, uri) is None:
            found[uri] = other.source
            left -= len(other.source)
        if len(found) == MOST_OTHERS:
            break
    return found


def naming_documents(ls: FimLanguageServer, document: OpenDocument, edits: Sequence[Edit]) -> list[OpenDocument]:
    """Return other open documents of the language that name an edited file.

    Those edited last come first, then those opened last.
    """
    from fim_server.next_edit.elsewhere import stem_of

    edited = [edit.uri for edit in reversed(edits)]
    stems = {stem_of(uri) for uri in edited}
    opened = [one.uri for one in reversed(ls.workspace.text_documents.values())]
    others = (ls.open_document(uri) for uri in dict.fromkeys([*edited, *opened]) if uri != document.uri)
    alike = (one for one in others if one is not None and one.language_id == document.language_id)
    naming = (one for one in alike if one.notebook is None and any(stem in one.source for stem in stems))
    return [one.frozen() for one in islice(naming, MOST_OTHERS)]


def edit_json(document: OpenDocument, found: NextEdit, identity: str, encoding: PositionEncoding) -> dict[str, Any]:
    """Return an edit as clients take it."""
    text, proposal = document.document, found.proposal
    start, end = (position_of(text, offset, encoding) for offset in (proposal.start, proposal.end))
    return {
        "text": text.split(proposal.start).restore(proposal.text),
        "range": {"start": start, "end": end},
        "textDocument": {"uri": document.uri, "version": document.version},
        "command": {
            "title": "Edit accepted",
            "command": EDIT_ACCEPTED,
            "arguments": [{"id": identity, "guarantee": found.guarantee}],
        },
    }


def position_of(document: Document, offset: int, encoding: PositionEncoding) -> dict[str, int]:
    """Return the position of an offset in the client's units."""
    text = document.text
    line = types.Position(text.count("\n", 0, offset), 0)
    found = after(line, text[text.rfind("\n", 0, offset) + 1 : offset], encoding)
    return {"line": found.line, "character": found.character}


def on_edit_accepted(ls: FimLanguageServer, accepted: Any) -> None:
    """Note that the client made an edit: it is not proposed again, as after it is undone."""
    ls.next_edits.decide(text_member(accepted, "id"), is_accepted=True)


def on_edit_dismissed(ls: FimLanguageServer, dismissed: Any) -> None:
    """Keep an edit away from its place, until its lines or those beside them change.

    The edits of another document than the user's stay away together.
    """
    ls.next_edits.decide(text_member(dismissed, "id"), is_accepted=False)


def on_told(ls: FimLanguageServer, params: Any) -> None:
    """Ignore a notification about a shown edit or a focused editor."""
