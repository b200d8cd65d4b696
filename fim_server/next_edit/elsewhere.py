"""Edits of a document that follow from those of others: uses of what another file renamed, calls of what it changed.

A name is another file's if a line imports it from there, or the file's own name and a dot stand before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from fim_server.next_edit.calls import call_edits, changed_header
from fim_server.next_edit.change import change_of, indentation
from fim_server.next_edit.confidence import span_of
from fim_server.next_edit.edit_memory import Edit
from fim_server.next_edit.line_tokens import Lines, Token, tokens_of
from fim_server.next_edit.propose import LEAST_OF_USES, LONGEST_DOCUMENT, Proposal
from fim_server.next_edit.renames import line_of
from fim_server.next_edit.signs import SIGNS

LATEST = 8
"""Latest edits of other documents that are looked at."""

MOST_USES = 64
"""Most uses of a name."""


def proposals_from_others(edits: Sequence[Edit], uri: str, text: str, others: Mapping[str, str]) -> list[Proposal]:
    """Return the edits that follow in a document from the latest edits of others, in their order.

    Args:
        edits: The latest edits, the latest last.
        uri: The document.
        text: Its text.
        others: Texts of other open documents of its language, by their URI.
    """
    if len(text) > LONGEST_DOCUMENT:
        return []
    lines = Lines(text)
    for edit in [edit for edit in edits if edit.uri in others and edit.uri != uri][: -LATEST - 1 : -1]:
        source = Lines(others[edit.uri])
        at = line_of(edit, source)
        if at is None or len(source.text) > LONGEST_DOCUMENT:
            continue
        found = [*renamed(edit, lines, stem_of(edit.uri)), *called(edit, source, at, lines, stem_of(edit.uri))]
        if found:
            return found
    return []


def renamed(edit: Edit, lines: Lines, stem: str) -> Iterator[Proposal]:
    """Yield the uses of a function or class at the margin that an edit renamed."""
    change = change_of(edit)
    names = None if change is None else change.names
    if change is None or names is None or indentation(edit.new):
        return
    before = change.tokens[change.head - 1].text if change.head else ""
    if before not in SIGNS.heads | SIGNS.types:
        return
    old, new = names
    is_imported = imports(lines, old, stem)
    if is_imported and imports(lines, new, new):
        return  # two names would become one
    is_imported = is_imported or imports(lines, new, stem)  # the import may have followed already
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


def called(edit: Edit, source: Lines, at: int, lines: Lines, stem: str) -> Iterator[Proposal]:
    """Yield the edits of the calls of a function at the margin whose header an edit changed."""
    changed = changed_header(edit, source.text, span_of(edit, at, source))
    if changed is None:
        return
    first = source.text.rfind("\n", 0, changed.end) + 1
    if indentation(source.text[first : changed.end]):
        return
    is_imported = imports(lines, changed.name, stem)
    for one in call_edits(changed, lines, is_own=False):
        line = lines.text.rfind("\n", 0, one.call) + 1
        if is_of(tokens_of(lines.text[line : one.call + len(changed.name)]), -1, stem, is_imported):
            yield Proposal(one.start, one.end, one.text, LEAST_OF_USES)


def imports(lines: Lines, name: str, stem: str) -> bool:
    """Return whether a line at the margin imports a name from the file of that name."""
    for line in lines.lines:
        first = line.split(maxsplit=1)[:1] if name in line and stem in line and line[:1].strip() else []
        if first and first[0] in SIGNS.imports and {name, stem} <= {token.text for token in tokens_of(line)}:
            return True
    return False


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
