"""Prefetch of prompts: the model reads, while it is idle, the prompt that the next request is likely to have.

The protocol reports no cursors. An edit shows where one is, and a request follows a moment later, or does not if the
next key comes first. Editors that know this server also report a resting cursor. So there is one place at a time, the
last known one, and any request goes first.
"""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from fim_server.errors import DocumentError, LanguageError
from fim_server.server.arguments import member, position_of, text_member
from fim_server.server.constants import SERVER
from fim_server.server.documents.cut import cut_of, language_at
from fim_server.server.documents.open_document import OpenDocument
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.requests.checked import warm_checker
from fim_server.server.requests.known_answers import is_prefetched, look_up
from fim_server.server.requests.request import is_single_line, size_of
from fim_server.server.requests.secret_files import is_readable, secret_reason
from fim_server.suggest.request import Request
from fim_server.text.document import LINE_BREAK


def read_after_change(ls: FimLanguageServer, params: types.DidChangeTextDocumentParams) -> None:
    """Prefetch the prompt after one edit; several at once come from a program and show no cursor."""
    uri, changes = params.text_document.uri, params.content_changes
    document = ls.open_document(uri)
    if document is None or len(changes) != 1 or not isinstance(changes[0], types.TextDocumentContentChangePartial):
        return
    text = LINE_BREAK.sub("\n", changes[0].text)
    try:
        offset = document.offset_of(changes[0].range.start) + len(text)
    except DocumentError:
        return
    if text.isspace() and text.count("\n") > 1:  # a line break between brackets puts the closing one on its own line
        offset -= len(text) - text.rfind("\n")
    read_at(ls, uri, document, offset, len(text) == 2)


def read_after_opening(ls: FimLanguageServer, params: types.DidOpenTextDocumentParams) -> None:
    """Prefetch the prompt of a document that was open before, at the cursor's last place."""
    uri = params.text_document.uri
    document, offset = ls.open_document(uri), ls.cursors.of(uri)
    if document is not None and offset is not None:
        read_at(ls, uri, document, min(offset, len(document.document.text)), False)


def read_at_rest(ls: FimLanguageServer, params: Any) -> None:
    """Prefetch the short prompt at a resting cursor: the user may only be reading.

    Where the user typed, it is prefetched already. Raises JsonRpcInvalidParams for an invalid place.
    """
    uri = ls.protocol.spellings.of(text_member(member(params, "textDocument"), "uri"))
    position, document = position_of(member(params, "position")), ls.open_document(uri)
    ls.log_once(types.MessageType.Log, "the editor reports where its cursor rests")
    if document is None or (ls.settings.ask_model and ls.worker.model is None):
        return  # no prefetch while the model is loaded; a later report counts as the first
    try:
        offset = document.offset_of(position)
    except DocumentError:  # the text has changed since
        return
    if offset != ls.cursors.of(uri):
        read_at(ls, uri, document, offset, False, rests=True)


def read_at(
    ls: FimLanguageServer, uri: str, document: OpenDocument, offset: int, may_be_pair: bool, rests: bool = False
) -> None:
    """Prefetch the prompt at an offset, if a request there would be sent to the model and none is known or under way.

    ``may_be_pair``: the two characters before it may be a bracket and a closer that the editor has put behind the
    cursor. ``rests``: the editor reports a resting cursor, and nothing was typed.
    """
    settings = ls.settings
    ls.cursors.note(uri, offset)
    if not ls.usage.requests and not rests:  # perhaps the editor never requests completions
        return
    if not settings.prefetch or not (settings.ask_model or rests):
        return
    if size_of(document) > min(SERVER.prefetch_characters, settings.max_file_characters):
        return
    readable = is_readable(ls, ls.protocol.owner_of(uri))
    if readable is None:
        ls.spawn(read_once_known(ls, uri, document, offset, may_be_pair, rests))
    if not readable:
        return
    try:
        text = document.document
        language = language_at(document, text, offset)
        if language.silent(False, settings, ls.learnt, ls.file_of(ls.protocol.owner_of(uri))) is not None:
            return
        cut = cut_of(document, text.split(offset, language.keeps_returns), language.region)
    except (DocumentError, LanguageError):
        return
    if isinstance(cut, str):
        return
    takes_lines = ls.client.fallback is None or ls.client.fallback.takes_lines
    single_line = is_single_line(cut, language, settings, takes_lines)
    request = Request(
        cut.uri,
        cut.split,
        language.editor_id,
        cut.path,
        False,
        single_line,
        settings,
        cell=cut.cell,
        described=ls.described(cut.uri, language),
    )
    if rests:
        warm_checker(ls, request)
    if is_prefetched(ls, request):
        return
    if cut.uri not in ls.requests.suspended and look_up(ls, request) is None:
        if rests:
            ls.worker.prefetch_at_rest(request)
        else:
            ls.worker.prefetch_prompt(request, may_be_pair)
        ls.supervisor.begin()


async def read_once_known(
    ls: FimLanguageServer, uri: str, document: OpenDocument, offset: int, may_be_pair: bool, rests: bool
) -> None:
    """Call :func:`read_at` once the disk has said that the document may be read, if it is unchanged then."""
    text, reason = document.document, await secret_reason(ls, ls.protocol.owner_of(uri))
    if reason is None and ls.open_document(uri) is document and document.document == text:
        read_at(ls, uri, document, offset, may_be_pair, rests)
