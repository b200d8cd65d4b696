"""Edits of a document that follow from those of others: uses of what another file renamed, calls of what it changed.

A name is another file's if a line imports it from there, or the file's own name and a dot stand before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from fim_server.next_edit.calls import ChangedHeader, call_edits, changed_header
from fim_server.next_edit.change import Change, change_of, indentation
from fim_server.next_edit.confidence import span_of
from fim_server.next_edit.edit_memory import Edit
from fim_server.next_edit.line_tokens import Lines, Token, tokens_of
from fim_server.next_edit.propose import LEAST_OF_USES, LONGEST_DOCUMENT, Proposal
from fim_server.next_edit.renames import line_of
from fim_server.next_edit.signs import SIGNS

LATEST = 8
"""Latest different changes of other documents that are looked at."""

MOST_EDITS = 32
"""Latest edits among which these are looked for: a walk through the uses of a name is one change."""

MOST_USES = 64
"""Most uses of a name."""


@dataclass(frozen=True, slots=True)
class Source:
    """Function or class at the margin of a document that an edit renamed, or function whose header it changed.

    Attributes:
        stem: Name by which the document's file is imported.
        names: The old and the new name, if it was renamed.
        header: The changed header, if there is one.
    """

    stem: str
    names: tuple[str, str] | None
    header: ChangedHeader | None

    @property
    def key(self) -> tuple[object, ...]:
        """Names and parameters of the change, wherever it stands."""
        header = self.header
        return self.names, header and (header.name, header.number, header.old, header.new)


class Sources:
    """Latest edits of documents of a language, and what may follow from them in others."""

    def __init__(self, edits: Sequence[Edit], texts: Mapping[str, str]) -> None:
        """``edits``: the latest edits, the latest last. ``texts``: those of the documents that may be read, by URI."""
        self._texts = texts
        self._edits = [edit for edit in reversed(edits) if edit.uri in texts]
        self._lines: dict[str, Lines] = {}
        self._known: dict[int, Source | None] = {}

    def following(self, uri: str, text: str, most: int = LATEST) -> tuple[Source, list[Proposal]] | None:
        """Return the edits of a document that follow from the latest edit of another one that has some, in their order.

        Args:
            uri: The document.
            text: Its text.
            most: Number of the latest different changes of other documents that are looked at.
        """
        lines = None
        imported: dict[str, set[str]] = {}
        for source in self._before(uri, most) if len(text) <= LONGEST_DOCUMENT else ():
            if source.stem in text:
                lines = lines or Lines(text)
                if source.stem not in imported:
                    imported[source.stem] = words_with_import(lines, source.stem)
                words = imported[source.stem]
                found = [*renamed(source, lines, words), *called(source, lines, words)]
                if found:
                    return source, found
        return None

    def _before(self, uri: str, most: int) -> Iterator[Source]:
        """Yield the sources among the latest edits of other documents than one, the latest first."""
        count, later = 0, None
        for number, edit in islice(enumerate(self._edits), MOST_EDITS):
            if edit.uri == uri:
                continue
            change = change_of(edit)
            made = None if change is None else (change.old, change.new)
            count += made is None or made != later
            later = made
            if count > most:
                return
            if number not in self._known:
                self._known[number] = self._source(edit, change)
            if (source := self._known[number]) is not None:
                yield source

    def _source(self, edit: Edit, change: Change | None) -> Source | None:
        """Return the source that an edit is, if it still stands."""
        text = self._texts[edit.uri]
        if len(text) > LONGEST_DOCUMENT:
            return None
        if edit.uri not in self._lines:
            self._lines[edit.uri] = Lines(text)
        lines = self._lines[edit.uri]
        at = line_of(edit, lines)
        if at is None:
            return None
        names = None if change is None or indentation(edit.new) else new_name(change)
        header = changed_header(edit, text, span_of(edit, at, lines))
        if header is not None:
            first = text.rfind("\n", 0, header.end) + 1
            header = None if indentation(text[first : header.end]) else header
        return None if names is None and header is None else Source(stem_of(edit.uri), names, header)


def proposals_from_others(edits: Sequence[Edit], uri: str, text: str, others: Mapping[str, str]) -> list[Proposal]:
    """Return the edits that follow in a document from the latest edits of others, in their order.

    Args:
        edits: The latest edits, the latest last.
        uri: The document.
        text: Its text.
        others: Texts of other open documents of its language, by their URI.
    """
    found = Sources(edits, others).following(uri, text)
    return [] if found is None else found[1]


def new_name(change: Change) -> tuple[str, str] | None:
    """Return the old and the new name of the function or class that a change renamed."""
    before = change.tokens[change.head - 1].text if change.head else ""
    return change.names if before in SIGNS.heads | SIGNS.types else None


def renamed(source: Source, lines: Lines, imported: Collection[str]) -> Iterator[Proposal]:
    """Yield the uses of a renamed function or class; ``imported``: words of the lines that import from its file."""
    if source.names is None:
        return
    (old, new), stem = source.names, source.stem
    if old in imported and new in words_with_import(lines, new):
        return  # two names would become one
    is_imported = old in imported or new in imported  # the import may have followed already
    if old not in lines.text or not (is_imported or stem + SIGNS.member in lines.text):
        return
    count = 0
    for number, line in enumerate(lines.lines):
        if old not in line:
            continue
        tokens = tokens_of(line)
        for place, token in enumerate(tokens):
            if token.text == old and is_of(tokens, place, stem, is_imported) and count < MOST_USES:
                start = lines.line_starts[number] + token.start
                count += 1
                yield Proposal(start, start + len(old), new, LEAST_OF_USES, is_use=True)


def called(source: Source, lines: Lines, imported: Collection[str]) -> Iterator[Proposal]:
    """Yield the edits of the calls of a function whose header was changed; ``imported`` as of :func:`renamed`."""
    changed, stem = source.header, source.stem
    if changed is None:
        return
    is_imported = changed.name in imported
    if not (is_imported or stem + SIGNS.member in lines.text):
        return
    for one in call_edits(changed, lines, is_own=False):
        line = lines.text.rfind("\n", 0, one.call) + 1
        if is_of(tokens_of(lines.text[line : one.call + len(changed.name)]), -1, stem, is_imported):
            yield Proposal(one.start, one.end, one.text, LEAST_OF_USES)


def words_with_import(lines: Lines, stem: str) -> set[str]:
    """Return the words of the lines at the margin that import names from the file of that name."""
    words: set[str] = set()
    for line in lines.lines:
        first = line.split(maxsplit=1)[:1] if stem in line and line[:1].strip() else []
        if first and first[0] in SIGNS.imports and stem in (found := {token.text for token in tokens_of(line)}):
            words |= found
    return words


def is_of(tokens: Sequence[Token], at: int, stem: str, is_imported: bool) -> bool:
    """Return whether a token with the name is that of another file; ``at``: its number, -1 for the last one."""
    at %= len(tokens)
    if at and tokens[at - 1].text == SIGNS.member:
        return at > 1 and tokens[at - 2].text == stem
    return is_imported and not (at and tokens[at - 1].text in SIGNS.heads | SIGNS.types)


def stem_of(uri: str) -> str:
    """Return the name by which a document's file is imported: without its suffix, or that of its folder."""
    path = PurePosixPath(unquote(urlsplit(uri).path))
    return path.parent.name if path.stem in SIGNS.packages else path.stem
