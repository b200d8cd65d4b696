"""Having the model read what is likely asked next, while nobody asks: the prompt at the place that somebody is at.

The protocol tells no cursors. An edit says where one is, and the editor asks a moment later, or does not if the next
key comes first; and editors that know this server tell it where a cursor comes to rest. So there is one place at a
time, the last that was told, and any request goes first.
"""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from fim_server.errors import DocumentError, LanguageError
from fim_server.language import Language
from fim_server.server.arguments import member, position_of, text_member
from fim_server.server.documents.notebooks import cut_of
from fim_server.server.documents.open_documents import OpenDocument
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.requests import is_same, look_up
from fim_server.suggest.context.cursor import Place, silent, wants_single_line
from fim_server.suggest.job import LANGUAGES, Request
from fim_server.suggest.postprocess.blocks import owes_block
from fim_server.text.document import LINE_BREAK

MOST_CHARACTERS = 200_000
"""Larger documents are read when somebody asks: opening one takes the engine a while."""


def read_after_change(ls: FimLanguageServer, params: types.DidChangeTextDocumentParams) -> None:
    """Have read what somebody will ask after one edit; several at once are a program's, and say nothing of a cursor."""
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
    """Have read what somebody will ask in a document that was open before, where they were then."""
    uri = params.text_document.uri
    document, offset = ls.open_document(uri), ls.places.of(uri)
    if document is not None and offset is not None:
        read_at(ls, uri, document, min(offset, len(document.document.text)), False)


def read_at_rest(ls: FimLanguageServer, params: Any) -> None:
    """Have read what somebody will ask where a cursor came to rest, but for the long prompt: they may only be reading.

    Where they were typing it is read already, or being read. Raises JsonRpcInvalidParams for what is no place.
    """
    uri = ls.protocol.spellings.of(text_member(member(params, "textDocument"), "uri"))
    position, document = position_of(member(params, "position")), ls.open_document(uri)
    ls.log_once(types.MessageType.Log, "the editor tells where its cursor rests")
    if document is None or (ls.settings.ask_model and ls.worker.model is None):
        return  # while the model is loaded nothing is read, and a rest that is told again then is news
    try:
        offset = document.offset_of(position)
    except DocumentError:  # the text has changed since
        return
    if offset != ls.places.of(uri):
        read_at(ls, uri, document, offset, False, rests=True)


def read_at(
    ls: FimLanguageServer, uri: str, document: OpenDocument, offset: int, may_be_pair: bool, rests: bool = False
) -> None:
    """Have read what somebody will ask at an offset, if it may be offered there and is not known or at work already.

    ``may_be_pair``: the two characters before it may be a bracket and the closer that an editor put behind the cursor.
    ``rests``: the editor says so, and nothing was typed.
    """
    settings, text, notebook = ls.settings, document.document, document.notebook
    ls.places.note(uri, offset)
    if not ls.usage.requests and not rests:  # perhaps an editor that never asks
        return
    if not settings.prefetch or not (settings.ask_model or rests):
        return
    characters = len(text.text) if notebook is None else notebook.characters
    if characters > min(MOST_CHARACTERS, settings.max_file_characters):
        return
    name = document.language_id or ""
    try:
        language = name if name in LANGUAGES else Language.name_for_path(document.path or "")
        if silent(language, False, settings, ls.learnt) is not None:
            return
        cut = cut_of(document, text.split(offset, Language.keeps_returns(language)))
    except (DocumentError, LanguageError):
        return
    if isinstance(cut, str):
        return
    split, takes_lines = cut.split, not cut.one_line and (ls.fallback is None or ls.fallback.takes_lines)
    single_line = not takes_lines or wants_single_line(Place.of(split), settings, owes_block(split, language))
    request = Request(cut.uri, split, name, cut.path, False, single_line, settings, cell=cut.cell)
    prefetching = ls.prefetching
    if prefetching is not None and is_same(prefetching.request, request):
        return
    if cut.uri not in ls.set_aside and look_up(ls, request) is None:
        if rests:
            ls.worker.prefetch_at_rest(request)
        else:
            ls.worker.prefetch_prompt(request, may_be_pair)
        ls.supervisor.begin()
