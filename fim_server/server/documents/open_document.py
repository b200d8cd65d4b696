"""Document that is open in the editor, with the positions of :mod:`fim_server.text.document`.

pygls' own documents count lines like ``str.splitlines``: an incremental change below a form feed (the standard library
has them) would land on the wrong line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lsprotocol import types
from pygls.workspace import TextDocument

from fim_server.text.document import LINE_BREAK, Document, PositionEncoding
from fim_server.text.notebook import Notebook


class OpenDocument(TextDocument):
    """Open document with the editor's changes."""

    def __init__(
        self,
        uri: str,
        *,
        source: str | None,
        encoding: PositionEncoding,
        notebook_at: Callable[[str], Notebook | None] = lambda uri: None,
        **rest: Any,
    ) -> None:
        """``notebook_at``: return the current notebook of a cell."""
        super().__init__(uri, source=source, **rest)
        self._encoding = encoding
        self._notebook_at = notebook_at
        self._document = Document.from_text(source or "")

    @property
    def document(self) -> Document:
        """Current text; the object is immutable, so a later change leaves it alone."""
        return replace(self._document, version=self.version or 0)

    @property
    def notebook(self) -> Notebook | None:
        """Notebook of this cell at this moment; None for other documents."""
        return self._notebook_at(self.uri)

    @property
    def source(self) -> str:
        """Text with normalised line breaks."""
        return self._document.text

    def frozen(self) -> OpenDocument:
        """Return a copy that later changes leave alone."""
        notebook = self.notebook
        copy = OpenDocument(
            self.uri,
            source="",
            encoding=self._encoding,
            notebook_at=lambda uri: notebook,
            version=self.version,
            language_id=self.language_id,
        )
        copy._document = self.document
        return copy

    def offset_of(self, position: types.Position) -> int:
        """Return the offset of a position in the client's units."""
        return self._document.offset_at_position(position.line, position.character, self._encoding)

    def offsets_of(self, stretch: types.Range) -> tuple[int, int]:
        """Return the offsets of a range in the client's units, the smaller one first."""
        start, end = self.offset_of(stretch.start), self.offset_of(stretch.end)
        return min(start, end), max(start, end)

    def clamped(self, position: types.Position) -> types.Position:
        """Return the nearest position inside the text: a line's end, or the end of the text."""
        line, character = self._document.clamped(position.line, position.character, self._encoding)
        return types.Position(line, character)

    def clamped_range(self, stretch: types.Range) -> types.Range:
        """Return the nearest range inside the text, the smaller position first."""
        first, last = sorted((self.clamped(stretch.start), self.clamped(stretch.end)))
        return types.Range(first, last)

    def replaced_by(self, change: types.TextDocumentContentChangeEvent) -> tuple[int, int, str]:
        """Return the offsets that a change replaces, and the text that it puts there."""
        text = LINE_BREAK.sub("\n", change.text)
        if isinstance(change, types.TextDocumentContentChangePartial):
            return *self.offsets_of(change.range), text
        return 0, len(self.source), text

    def apply_change(self, change: types.TextDocumentContentChangeEvent) -> None:
        """Apply one change, of a range or of the whole text."""
        if isinstance(change, types.TextDocumentContentChangePartial):
            start, end = change.range.start, change.range.end
            places = ((start.line, start.character), (end.line, end.character))
            self._document = self._document.replace_between(*places, change.text, self._encoding)
        else:
            self._document = Document.from_text(change.text)
