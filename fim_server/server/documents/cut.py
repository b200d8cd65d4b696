"""Cursor of a request in its document, or in the notebook of its cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygls.uris import to_fs_path

from fim_server.errors import LanguageError
from fim_server.language import Language
from fim_server.language.plain import plain_name
from fim_server.language_support.registry import support_of
from fim_server.suggest.ranking.display import silent
from fim_server.suggest.request import LANGUAGES
from fim_server.text import notebook as program
from fim_server.text.notebook import CellContexts
from fim_server.text.regions import NO_CODE, Region, host_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from fim_server.server.documents.open_document import OpenDocument
    from fim_server.suggest.ranking.reasons import Suppression
    from fim_server.suggest.settings import ServerSettings
    from fim_server.text.document import Document, Split
    from fim_server.text.notebook import Reader

CELL_SCHEMES = ("vscode-notebook-cell:", "vscode-interactive-input:")
"""Schemes of documents that are cells, even if the editor opens no notebook."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Cursor of a request.

    Attributes:
        uri: The document that holds the program: for a cell its notebook.
        path: The program's file; empty where there is none.
        split: The program, cut at the cursor.
        cell: The contexts of a cursor in a cell or a region.
    """

    uri: str
    path: str
    split: Split
    cell: CellContexts | None = None

    @property
    def one_line(self) -> bool:
        """True where no line break may be written."""
        return self.cell is not None and self.cell.one_line


@dataclass(frozen=True, slots=True)
class LanguageAt:
    """Language at a cursor.

    Attributes:
        editor_id: The editor's name of it; for a region its own name.
        name: Its own name.
        host: Name of the file's language, if the cursor is in a region.
        region: The region.
        has_grammar: False for a language without a grammar, which the editor or the file's suffix names.
    """

    editor_id: str
    name: str
    host: str | None = None
    region: Region | None = None
    has_grammar: bool = True

    @property
    def keeps_returns(self) -> bool:
        """True if a lone carriage return is no line break."""
        return self.has_grammar and Language.keeps_returns(self.name)

    def silent(
        self, invoked: bool, settings: ServerSettings, learnt: Collection[str] | None, file: str = ""
    ) -> Suppression | None:
        """Return the reason for which the language gets no suggestions, or None.

        The setting of the file's language overrides that of a region's. A language without a grammar is learnt only by
        a model that names it. ``file``: path of the file below the workspace's folder.
        """
        name, learnt = self._deciding(settings, learnt)
        return silent(name, invoked, settings, learnt, file)

    def is_subtle(self, settings: ServerSettings, learnt: Collection[str] | None, file: str = "") -> bool:
        """Return whether suggestions wait for an explicit request. The arguments are as of :meth:`silent`."""
        name, learnt = self._deciding(settings, learnt)
        return settings.trigger_of(name, learnt, file) == "subtle"

    def _deciding(self, settings: ServerSettings, learnt: Collection[str] | None) -> tuple[str, Collection[str] | None]:
        """Return the language whose setting decides, and the languages that count as learnt."""
        if self.host in settings.languages:
            return self.host or "", None
        return self.name, learnt if self.has_grammar else learnt or ()


def language_at(document: OpenDocument, text: Document, offset: int) -> LanguageAt:
    """Return the language at an offset of a document's text.

    Raises LanguageError outside of the code in a file of another language whose other text is not completed.
    """
    editor_id, path = document.language_id or "", document.path or ""
    host = host_of(editor_id, path)
    if editor_id in LANGUAGES and (host is None or editor_id not in host.editor_ids):
        return LanguageAt(editor_id, editor_id)
    if host is None:
        plain = plain_name(path, editor_id)
        return LanguageAt(editor_id, Language.name_for_path(path)) if plain is None else plain_at(plain)
    region = host.at(text.text, offset)
    if region is None or region.language not in LANGUAGES:
        if host.name in LANGUAGES:
            return LanguageAt(host.name, host.name)
        if host.text_is_plain:
            return plain_at(host.name)
        raise LanguageError(f"{NO_CODE} ({host.name})")
    return LanguageAt(region.language, region.language, host.name, region)


def plain_at(name: str) -> LanguageAt:
    """Return a language without a grammar."""
    return LanguageAt(name, name, has_grammar=False)


def cut_of(document: OpenDocument, split: Split, region: Region | None = None) -> Cut | str:
    """Return the cursor of a request in a document's own text, or the reason for having no suggestion."""
    if region is not None:
        return Cut(document.uri, document.path or "", split, region.contexts(document.uri, split))
    notebook = document.notebook
    reader = None if notebook is None else reader_of(document.language_id or "")
    if notebook is None or reader is None:
        return Cut(document.uri if notebook is None else notebook.uri, document.path or "", split)
    found = program.cut(notebook, document.uri, split, reader)
    return found if isinstance(found, str) else Cut(notebook.uri, path_of(notebook.uri), *found)


def text_of(document: OpenDocument) -> str:
    """Return the program of a document, or the one that it is a part of."""
    notebook = document.notebook
    reader = None if notebook is None else reader_of(document.language_id or "")
    if notebook is None or reader is None:
        return document.document.text
    return notebook.program(document.language_id or "", reader)


def reader_of(language: str) -> Reader | None:
    """Return a language's reader of cells; None where it has none."""
    support = support_of(language)
    return None if support is None else support.cells


def path_of(uri: str) -> str:
    """Return the file of a notebook; empty where there is none."""
    for scheme in CELL_SCHEMES:
        if uri.startswith(f"{scheme}/"):
            uri = f"file:{uri.removeprefix(scheme)}"
    return to_fs_path(uri) or ""
