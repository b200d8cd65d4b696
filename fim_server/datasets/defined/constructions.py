"""How holes are cut into files of a language that is defined by data."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fim_server.datasets.defined.text import DefinedText
from fim_server.datasets.holes import (
    BLOCK_LINES,
    Cut,
    Draw,
    Draws,
    any_of,
    between_symbols,
    drawn,
    random_span,
    rest_of_line,
)


def cuts(construction: str, file: DefinedText, seed: int, sha256: str, count: int) -> Iterator[Cut]:
    """Up to ``count`` holes of a construction in a file. ``sha256``: of the text's UTF-8, hexadecimal.

    Raises:
        KeyError: There is no such construction.
    """
    return drawn(CONSTRUCTIONS[construction](file), Draws(construction, seed, sha256), count)


def stack_boundary(file: DefinedText) -> Draw | None:
    """STACK-BOUNDARY: between two symbols of one block.

    As `fim_server.datasets.python.constructions.stack_boundary`, whose indented blocks other languages have not:

    - *Symbols* are the lexemes of the definition, by the longest match, but for those that it ignores and for line
      ends. Comments and blanks are none.
    - *The same indentation level* is what stands between one pair of brackets, not in another such pair inside it.
      Pairs that close on the line on which they open are no level, as what stands in them is not indented: a hole may
      begin before such a bracket and end inside of it, as it may in Python.
    """
    return between_symbols(file.symbols)


def stack_randspan(file: DefinedText) -> Draw | None:
    """STACK-RANDSPAN: a random span of characters."""
    return random_span(file.text)


def line(file: DefinedText) -> Draw | None:
    """`line`: a line from its first character that is no blank to its end.

    Lines of comments alone and lines that share a lexeme with another line are left out.
    """
    return any_of([Cut("line", start, end) for start, end in file.whole_lines])


def line_rest(file: DefinedText) -> Draw | None:
    """`line-rest`: the rest of a line, from a random character to its end.

    Which of the lines that the set `line` has, then which of its characters but the first, is equally likely. What is
    blank is drawn again.
    """
    return rest_of_line(file.text, file.whole_lines)


def block(file: DefinedText) -> Draw | None:
    """`block`: whole lines between two brackets on lines above and below, up to `BLOCK_LINES` of them.

    From the first symbol between them to the end of the last one's line: the body of a function, the members of a
    class, the arguments of a call that are on lines of their own. The kind is the pair of brackets.
    """
    found = []
    for brackets, start, end in file.blocks:
        inside = file.between(start, end)
        if not inside:
            continue
        first, last = inside[0], inside[-1]
        begin, until = file.line_at(first.start), file.line_at(last.end - 1)
        apart = file.line_at(start - 1) < begin and until < file.line_at(end)
        if apart and until - begin < BLOCK_LINES and file.first_character_of(begin) == first.start:
            found.append(Cut(brackets, first.start, file.line_end(until)))
    return any_of(found)


CONSTRUCTIONS: dict[str, Callable[[DefinedText], Draw | None]] = {
    "stack-boundary": stack_boundary,
    "stack-randspan": stack_randspan,
    "line": line,
    "line-rest": line_rest,
    "block": block,
}
"""By the name of the set. A construction takes a file and returns how to draw from it; None where there is nothing."""
