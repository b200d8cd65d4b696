"""Imports that the latest edits of a Python file made needless, and those that they need."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from posixpath import basename, dirname

from fim_server.language_support.python.lexemes import Name
from fim_server.language_support.python.lines import Import, Line, logical_lines
from fim_server.language_support.python.model import Model, model_of
from fim_server.language_support.python.modules import public_names
from fim_server.language_support.python.next_edits.import_block import added
from fim_server.next_edit.change import change_of
from fim_server.next_edit.edit_memory import Edit, line_end, line_start
from fim_server.next_edit.line_tokens import lines_of
from fim_server.next_edit.propose import Proposal
from fim_server.next_edit.renames import line_of

NEEDLESS, MISSING = 0.65, 0.8
"""Confidence in the removal and in the addition of an import.

Of 44 removals in 24 pairs of releases, 28 were right by their lines, and 34 were gone from the newer file. Of 41
additions 32 were right.
"""

LATEST = 1
"""Latest edits of a file whose names are looked at: with more, the same import is proposed after each of them."""

MOST_NAMES = 32
"""Most names that are looked at."""

MOST_FOUND = 16
"""Most occurrences of a name in another file that are looked at."""

LONGEST_NAME = 200
"""Longest name of a module and a member, in characters."""

LONGEST_IMPORT = 60
"""Most lines of an import statement."""

NAME = re.compile(r"[^\W\d]\w+")
IMPORTS = re.compile(r"^[ \t]*(?:from|import)[ \t].*", re.MULTILINE)
BUILT_IN = frozenset(dir(builtins))
METHODS = frozenset(name for one in (str, bytes, list, dict, set, int, float) for name in dir(one))
"""Methods of built-in types."""

DOTTED = re.compile(r"\w+(?:\.\w+)+")
STATEMENT = re.compile(r"[ \t]*(?:from|import)[ \t]")
ITEM = re.compile(r"[ \t]*\w+(?:[ \t]+as[ \t]+\w+)?[ \t]*,?[ \t]*\)?[ \t]*")
GUARD = re.compile(r"[ \t]*(?:if[ \t]+(?:\w+\.)?TYPE_CHECKING[ \t]*:|(?:async[ \t]+)?def[ \t])")
"""Header of a block whose imports may go like those at the top."""


def import_edits(source: str, uri: str, edits: Sequence[Edit], others: Mapping[str, str]) -> list[Proposal]:
    """Return the removals and the additions of imports that follow from the latest edits of a file.

    Args:
        source: The file.
        uri: Its name.
        edits: Its latest edits, the latest last.
        others: Other open files, by their names.
    """
    latest = edits[: -LATEST - 1 : -1]
    written = dict.fromkeys(name for edit in latest for name in NAME.findall(edit.new))
    found: list[Proposal] = []
    if basename(uri) != "__init__.py" and "__all__" not in source:
        used = dict.fromkeys(name for edit in latest for name in NAME.findall(IMPORTS.sub("", edit.old)))
        found += needless(source, list(islice((name for name in used if name not in written), MOST_NAMES)), edits)
    known = {name for edit in latest for name in NAME.findall(edit.old)}
    new = list(islice((name for name in written if name not in known), MOST_NAMES))
    return found + list(missing(source, uri, new, latest, others))


def words(text: str, name: str) -> Iterator[int]:
    """Yield the offsets at which a text has a name as a whole word."""
    return (found.start() for found in re.finditer(rf"(?<!\w){name}(?!\w)", text))


def needless(source: str, names: Iterable[str], edits: Sequence[Edit]) -> Iterator[Proposal]:
    """Yield the removals of imports of names that stand nowhere else in a file.

    A name that the latest edit replaced by one that nothing binds is replaced in its import, too.
    """
    change = change_of(edits[-1]) if edits else None
    for name in names:
        places = list(islice(words(source, name), 2))
        if len(places) != 1:
            continue
        [at] = places
        line = source[line_start(source, at) : line_end(source, at)]
        if not (STATEMENT.match(line) or ITEM.fullmatch(line)):
            continue
        model = model_of(source)
        number = model.number_at(at)
        span = None if model.is_broken else removal(source, model, number, name)
        if span is None:
            continue
        new = None if change is None or change.names is None or change.old != name else change.new
        if new is not None and any(one.name == new for _, one in model.unbound()):
            yield Proposal(at, at + len(name), new, NEEDLESS, needs_whole=True)
        else:
            yield Proposal(*span, "", NEEDLESS, needs_whole=True)


def removal(source: str, model: Model, number: int, name: str) -> tuple[int, int] | None:
    """Return the part of an import to remove; None if it should stay."""
    line, start = model.lines[number], model.starts[number]
    end = model.starts[number + 1] if number + 1 < len(model.starts) else len(source)
    text = source[start:end]
    one = next((one for one in line.imports if bound_name(one) == name), None)
    if one is None or not line.is_import or "#" in text or one.origin == "__future__" or one.renamed == one.name:
        return None
    if line.column > 0 and not is_in_guard(source, start, line):
        return None
    if len(line.imports) == 1:
        return start, end
    pieces = pieces_of(text, line)
    if pieces is None:
        return None
    at = line.imports.index(one)
    first, last = pieces[at]
    if is_alone(text, first, last):
        return start + line_start(text, first), start + line_end(text, last) + 1
    if at + 1 < len(pieces):
        return start + first, start + pieces[at + 1][0]
    return start + pieces[at - 1][1], start + last


def is_alone(text: str, first: int, last: int) -> bool:
    """Return whether a piece of a statement has a line of its own, with its comma."""
    return not text[line_start(text, first) : first].strip() and text[last : line_end(text, last)].strip() == ","


def is_in_guard(source: str, start: int, line: Line) -> bool:
    """Return whether an indented import is directly in a function or in a block for type checkers."""
    above = source[:start].split("\n")[-LONGEST_IMPORT:]
    for text in reversed(above):
        if text.strip() and len(text) - len(text.lstrip()) < line.column:
            return GUARD.match(text) is not None
    return False


def bound_name(one: Import) -> str:
    """Return the name that an import binds."""
    return one.renamed or (one.name if one.origin is not None else one.name.partition(".")[0])


def pieces_of(text: str, line: Line) -> list[tuple[int, int]] | None:
    """Return the offsets of the imported names in a statement, each with the name that it gets."""
    at = re.search(r"(?<!\w)import(?!\w)", text)
    if at is None:
        return None
    found, end = [], at.end()
    for one in line.imports:
        renamed = rf"\s+as\s+{one.renamed}" if one.renamed else ""
        piece = re.compile(rf"(?<![\w.]){re.escape(one.name)}{renamed}(?![\w.])").search(text, end)
        if piece is None:
            return None
        found.append(piece.span())
        end = piece.end()
    return found


def missing(
    source: str, uri: str, names: Sequence[str], edits: Sequence[Edit], others: Mapping[str, str]
) -> Iterator[Proposal]:
    """Yield the additions of imports of names that stand in the lines of the latest edits alone, unbound."""
    lines = lines_of(source)
    unbound: list[tuple[int, Name]] | None = None
    written = [(at, at + edit.new.count("\n")) for edit in edits if (at := line_of(edit, lines)) is not None]
    for name in names:
        places = list(islice(words(source, name), MOST_FOUND))
        numbers = [lines.line_at(at) for at in places]
        if not places or not all(any(first <= one <= last for first, last in written) for one in numbers):
            continue
        model = model_of(source)
        if model.is_broken or model.takes_all:
            return
        if unbound is None:
            unbound = list(model.unbound())
        loads = [at for at, one in unbound if one.name == name]
        if not loads:
            continue
        ways = {way for other, text in others.items() for way in ways_to(name, text, dirname(other) == dirname(uri))}
        if not ways and name in sys.stdlib_module_names:
            modules = {module_of(source, at) for at in loads}
            ways = {Import(None, module, "") for module in modules if None not in modules and module is not None}
        if len(ways) == 1 and (edit := added(source, model, ways.pop(), pieces_of)) is not None:
            yield Proposal(*edit, MISSING, needs_whole=True)


def module_of(source: str, at: int) -> str | None:
    """Return the module of the standard library whose member stands at an offset, behind the module's name.

    None if the name is rather a variable's: its member is a method of built-in types, such as `token.strip()`.
    """
    chain = DOTTED.match(source, at, at + LONGEST_NAME)
    if chain is None:
        return None
    parts = chain[0].split(".")
    for depth in range(len(parts) - 1, 0, -1):
        module = ".".join(parts[:depth])
        if parts[depth] in (public_names(module) or ()):
            return module
    name, member = parts[:2]
    if public_names(f"{name}.{member}"):
        return f"{name}.{member}"
    return None if name in sys.builtin_module_names or member in METHODS else name


def imports_unknown(left: str, text: str, right: str) -> bool:
    """Return whether a line with a proposal imports a built-in name from a module of the standard library."""
    line = left[line_start(left, len(left)) :] + text + right[: line_end(right, 0)]
    if not STATEMENT.match(line):
        return False
    found = next(logical_lines(line.split("\n")), None)
    for one in found.imports if found is not None and found.is_import else ():
        names = None if one.origin is None else public_names(one.origin)
        if names is not None and one.name in BUILT_IN and one.name not in names:
            return True
    return False


def ways_to(name: str, text: str, is_beside: bool) -> Iterator[Import]:
    """Yield the imports at the top of another file that bind a name.

    ``is_beside``: the file is in the same folder, so that relative imports mean the same.
    """
    for at in islice(words(text, name), MOST_FOUND):
        start = line_start(text, at)
        for _ in range(LONGEST_IMPORT):
            if not start or (not text[start : start + 1].isspace() and text[start : start + 1] != ")"):
                break
            start = line_start(text, start - 1)
        if not STATEMENT.match(text, start) or text[start].isspace():
            continue
        line = next(logical_lines(text[start : line_end(text, at) + 1000].split("\n"), None))
        for one in line.imports if line.is_import else ():
            is_known = one.origin is None or is_beside or not one.origin.startswith(".")
            if bound_name(one) == name and is_known and one.origin != "__future__":
                yield one
