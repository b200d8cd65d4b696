"""Requests for completions as they arrive, and as the worker gets them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lsprotocol import types

from fim_server.errors import DocumentError, LanguageError
from fim_server.language.texts import is_word
from fim_server.server.documents.cut import Cut, LanguageAt, cut_of, language_at
from fim_server.server.documents.open_document import OpenDocument
from fim_server.server.language_server import FimLanguageServer
from fim_server.suggest.context.cursor import Place, wants_single_line
from fim_server.suggest.postprocess.blocks import owes_block
from fim_server.suggest.request import NO_LIMITS, Limits, Request, language_name
from fim_server.suggest.settings import ServerSettings
from fim_server.text.document import LINE_BREAK
from fim_server.text.notebook import Notebook


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """Request for completions, with the document as it was when the request arrived.

    Attributes:
        takes_lines: Whether the client can insert several lines.
        reveals: Whether the request shows an answer that was prepared and held back. It then counts as automatic.
        arrived: Time by ``time.perf_counter``.
        allowed_ms: Time that the client allows, in milliseconds; None: as the settings say.
        limits: The client's other limits.
    """

    uri: str
    position: types.Position
    invoked: bool
    selected: types.SelectedCompletionInfo | None
    takes_lines: bool
    arrived: float
    document: OpenDocument | None
    version: int | None
    reveals: bool = False
    allowed_ms: float | None = None
    limits: Limits = NO_LIMITS

    @property
    def notebook(self) -> Notebook | None:
        """Notebook of the cell when the request arrived."""
        return None if self.document is None else self.document.notebook

    @property
    def owner(self) -> str:
        """Document that holds the program: for a cell, its notebook."""
        return self.uri if self.notebook is None else self.notebook.uri

    def is_current(self, ls: FimLanguageServer) -> bool:
        """Return whether the document is unchanged and completions are on.

        Versions alone are not enough: some clients count them backwards, or not at all.
        """
        current, then = ls.open_document(self.uri), self.document
        if current is None or then is None or not ls.settings.enabled:
            return False
        unchanged = current.source == then.source and current.notebook == self.notebook
        return unchanged and current.version == self.version


def receive(
    ls: FimLanguageServer,
    params: types.InlineCompletionParams | types.CompletionParams,
    invoked: bool,
    selected: types.SelectedCompletionInfo | None,
    takes_lines: bool,
) -> IncomingRequest:
    arrival = ls.protocol.arrival_of(params)
    document = arrival.document
    if document is not None and selected is not None:
        selected = types.SelectedCompletionInfo(document.clamped_range(selected.range), selected.text)
    return IncomingRequest(
        uri=params.text_document.uri,
        position=params.position if document is None else document.clamped(params.position),
        invoked=invoked,
        selected=selected,
        takes_lines=takes_lines,
        arrived=arrival.at,
        document=document,
        version=arrival.version,
    )


def build_request(ls: FimLanguageServer, incoming: IncomingRequest) -> Request | str:
    """Return the worker's request, or the reason for having none."""
    document = incoming.document
    if document is None:
        return "the document is not open"
    if incoming.owner in ls.requests.suspended:
        return ls.requests.suspended[incoming.owner]
    if size_of(document) > ls.settings.max_file_characters:
        return f"the document has more than {ls.settings.max_file_characters:,} characters (setting maxFileCharacters)"
    text, selected = document.document, incoming.selected
    try:
        if selected is None:
            offset = document.offset_of(incoming.position)
        else:
            # Complete as if the selected entry were accepted.
            start, end = document.offsets_of(selected.range)
            chosen = LINE_BREAK.sub("\n", selected.text)
            text = text.replace(start, end, chosen)
            offset = start + len(chosen)
        language = language_at(document, text, offset)
        place = ls.settings, ls.learnt, ls.file_of(incoming.owner)
        problem = language.silent(incoming.invoked, *place)
        if problem is not None:
            return problem.message
        cut = cut_of(document, text.split(offset, language.keeps_returns), language.region)
    except (DocumentError, LanguageError) as error:
        return str(error)
    if isinstance(cut, str):
        return cut
    word_ends = selected is not None and is_word(cut.split.left[-1:])
    single_line = is_single_line(cut, language, ls.settings, incoming.takes_lines)
    request = Request(
        uri=cut.uri,
        split=cut.split,
        language_id=language.editor_id,
        path=cut.path,
        invoked=incoming.invoked,
        single_line=single_line,
        settings=incoming.limits.within(ls.settings),
        word_ends=word_ends,
        cell=cut.cell,
        described=ls.described(cut.uri, language),
        is_held=not (incoming.invoked or incoming.reveals) and language.is_subtle(*place),
        allowed_ms=incoming.allowed_ms,
        limits=incoming.limits,
    )
    shift = ls.habits.shift_of(language_name(request)) if ls.settings.personal_threshold else 0.0
    return replace(request, dismissed=ls.dismissals.at(incoming, request), shift=shift)


def size_of(document: OpenDocument) -> int:
    """Return the number of characters of a document; for a cell, of its notebook."""
    notebook = document.notebook
    return len(document.document.text) if notebook is None else notebook.characters


def is_single_line(cut: Cut, language: LanguageAt, settings: ServerSettings, takes_lines: bool) -> bool:
    """Return whether only one line is wanted at a cursor. ``takes_lines``: the client can insert several."""
    if cut.one_line or not takes_lines or not language.has_grammar:
        return True
    return wants_single_line(Place.of(cut.split), settings, owes_block(cut.split, language.name))
