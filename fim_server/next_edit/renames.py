"""Names that an edit renamed where they are bound, and the uses that follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fim_server.next_edit.bindings import is_bound, is_in_parameters, is_type, scope_of
from fim_server.next_edit.change import Change, indentation
from fim_server.next_edit.edit_memory import Edit
from fim_server.next_edit.line_tokens import LINE_BREAK, LONGEST_LINE, Lines, Token, tokens_of
from fim_server.next_edit.rebinding import (
    HEADER_LINES,
    is_header,
    is_in_short_block,
    opened_block,
    outer_end,
    rebinding_of,
)
from fim_server.next_edit.signs import SIGNS

MOST_USES = 256
"""Most uses that are looked at."""

MOST_SEEN, MOST_ON_LINE = 1024, 16
"""Most places of the old name that are looked at, and most on a line: another line has none."""


@dataclass(frozen=True, slots=True)
class NameUses:
    """Places of a name.

    Attributes:
        uses: Offsets where it is the variable.
        others: Offsets within the variable's block where it is another name.
        is_variable: Whether the name is a variable at all, and no keyword of an argument.
    """

    uses: tuple[int, ...]
    others: tuple[int, ...]
    is_variable: bool = True


@dataclass(frozen=True, slots=True)
class Uses:
    """Uses of a name in a document.

    Attributes:
        spans: Start and end of each.
        apart: Offsets at which it is another name.
        is_all: Whether it is another one wherever it is no use.
    """

    spans: frozenset[tuple[int, int]]
    apart: tuple[range, ...]
    is_all: bool


FindUses = Callable[[str, int, str], NameUses | None]
"""Returns the places of a variable's old name in a text, given an offset where its new name is bound; None if unknown.

A language's own support knows them, where it has one.
"""


@dataclass(frozen=True, slots=True)
class Rename:
    """Name that was renamed where it is bound.

    Attributes:
        old: The old name.
        new: The new one.
        at: Offset of the new name.
        lines: Numbers of the lines in which the old one should be gone.
        is_member: Whether it is used behind a dot, too, as methods are.
        may_be_field: Whether it may be a field, which other functions use.
    """

    old: str
    new: str
    at: int
    lines: range
    is_member: bool
    may_be_field: bool = False


def rename_of(changes: Sequence[Change], lines: Lines) -> Rename | None:
    """Return the rename that the last of some changes of a document belongs to; None if there is none."""
    names = changes[-1].names if changes else None
    if names is None:
        return None
    for change in reversed(changes):
        if change.names != names:
            continue
        tokens = tokens_of(change.edit.new)
        number = change.head
        if not is_bound(tokens, number):
            continue
        at = line_of(change.edit, lines)
        if at is None:
            continue
        line = at + change.edit.new.count("\n", 0, tokens[number].start)
        before = tokens[number - 1].text if number else ""
        offset = lines.line_starts[at] + tokens[number].start
        if before in SIGNS.heads | SIGNS.types:
            is_member = before in SIGNS.types or indentation(lines.lines[line]) > 0
            return Rename(*names, offset, range(len(lines.lines)), is_member)
        texts = [token.text for token in tokens]
        if before in SIGNS.loops and outer_end(texts, number) is not None:
            return Rename(*names, offset, range(0), False)  # of a comprehension
        if is_in_short_block(texts, number):
            return Rename(*names, offset, range(line, line + 1), False)
        if is_header(texts, number):
            return Rename(*names, offset, range(line, opened_block(lines, line)), False)
        is_parameter = is_in_parameters(tokens, number)
        may_be_field = before != "" and not is_parameter and is_type(before)
        return Rename(*names, offset, scope_of(lines, line, is_parameter), False, may_be_field)
    return None


def line_of(edit: Edit, lines: Lines) -> int | None:
    """Return the line of an edit now: the nearest one with its new text."""
    first = edit.new.split("\n", 1)[0]
    return min(lines.same_as(first), key=lambda number: abs(number - edit.line), default=None)


def uses(rename: Rename, lines: Lines, find: FindUses | None) -> Uses:
    """Return the uses of the old name. ``find``: knows those in the document's language, if anything does."""
    if binds_otherwise(rename, lines):
        return Uses(frozenset(), (), True)
    known = None if find is None else find(lines.text, rename.at, rename.old)
    if known is None:
        return guessed_uses(rename, lines)
    length = len(rename.old)
    apart = tuple(range(at, at + length) for at in known.others)
    return Uses(spans(known.uses[:MOST_USES], length), apart, known.is_variable)


def spans(starts: Iterable[int], length: int) -> frozenset[tuple[int, int]]:
    """Return start and end of texts of one length."""
    return frozenset((at, at + length) for at in starts)


def guessed_uses(rename: Rename, lines: Lines) -> Uses:
    """Return the uses by signs that most languages share. A block that may bind the name again has none."""
    found: list[int] = []
    apart: list[range] = []
    seen = 0
    for number in rename.lines:
        text = lines.lines[number]
        if rename.old not in text or len(text) > LONGEST_LINE or text.count(rename.old) > MOST_ON_LINE:
            continue
        if len(apart) > MOST_USES or seen > MOST_SEEN:
            break
        tokens = tokens_of(text)
        for at, token in enumerate(tokens):
            if token.text != rename.old:
                continue
            seen += 1
            start = lines.line_starts[number] + token.start
            if any(start in block for block in apart):
                continue
            is_member = at > 0 and tokens[at - 1].text == SIGNS.member
            block = None if is_member else rebinding_of(lines, number, tokens, at, rename.lines)
            if block is not None:
                apart += [block, range(start, start + len(rename.old))]
            elif len(found) < MOST_USES and not is_other(lines, number, tokens, at, rename):
                found.append(start)
    found = [at for at in found if not any(at in block for block in apart)]
    return Uses(spans(found, len(rename.old)), tuple(apart), not rename.may_be_field)


def binds_otherwise(rename: Rename, lines: Lines) -> bool:
    """Return whether a second line binds the new name: the uses of two names would become one."""
    count = 0
    for number in rename.lines:
        text = lines.lines[number]
        if rename.new not in text or text.count(rename.new) > MOST_ON_LINE:
            continue
        tokens = tokens_of(text)
        count += any(token.text == rename.new and is_bound(tokens, at) for at, token in enumerate(tokens))
        if count > 1:
            return True
    return False


def is_other(lines: Lines, number: int, tokens: Sequence[Token], at: int, rename: Rename) -> bool:
    """Return whether the same word of a line is another name: a member, a key, or the keyword of an argument."""
    if is_key(tokens, at) or is_shorthand(lines, number, tokens, at):
        return True
    if at and tokens[at - 1].text == SIGNS.member:
        return not rename.is_member
    if rename.is_member:
        return False
    after = [token.text for token in tokens[at + 1 : at + 3]] + ["", ""]
    if at == 0 or after[0] != SIGNS.assign or after[1] == SIGNS.assign:
        return False
    before = tokens[at - 1].text
    return (before == SIGNS.parameters_open or before in SIGNS.separators) and not is_in_parameters(tokens, at)


def is_key(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a word may be a key, or the name of an argument, before its value."""
    after = [token.text for token in tokens[at + 1 : at + 3]] + ["", ""]
    if after[0] != SIGNS.annotate or after[1] in (SIGNS.annotate, SIGNS.assign):
        return False
    before = tokens[at - 1].text if at else LINE_BREAK
    if before not in (LINE_BREAK, SIGNS.separator, SIGNS.parameters_open, SIGNS.braces[0]):
        return False
    return tokens[0].text not in SIGNS.labels or opened_before(tokens[:at]) is not None


def is_shorthand(lines: Lines, number: int, tokens: Sequence[Token], at: int) -> bool:
    """Return whether a word of a line stands alone between braces, where it may be a key as well as its value."""
    before = tokens[at - 1].text if at else LINE_BREAK
    after = tokens[at + 1].text if at + 1 < len(tokens) else LINE_BREAK
    if before not in (LINE_BREAK, SIGNS.braces[0], SIGNS.separator):
        return False
    if after not in (LINE_BREAK, SIGNS.braces[1], SIGNS.separator):
        return False
    opened = opened_before(tokens[:at])
    if opened is None:
        above = tokens_of(lines.lines[number - 1]) if number else ()
        if SIGNS.separator not in (tokens[-1].text, above[-1].text if above else ""):
            return False  # the value of a block, or a list of targets
    for line in range(number - 1, max(-1, number - HEADER_LINES), -1):
        if opened is not None or len(lines.lines[line]) > LONGEST_LINE:
            break
        if indentation(lines.lines[line]) < indentation(lines.lines[number]) and lines.lines[line].strip():
            tokens = tokens_of(lines.lines[line])
            opened = opened_before(tokens)
            break
    return opened == SIGNS.braces[0] and tokens[0].text not in SIGNS.lists_names


def opened_before(tokens: Sequence[Token]) -> str | None:
    """Return the innermost bracket that is open behind some tokens; None without one."""
    depth = 0
    for token in reversed(tokens):
        depth += (token.text in SIGNS.closes) - (token.text in SIGNS.opens)
        if depth < 0:
            return token.text
    return None
