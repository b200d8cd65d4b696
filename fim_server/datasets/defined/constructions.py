"""Constructions of holes in files of a language that is defined by data.

Symbols are the lexemes of the definition, by the longest match, without ignored lexemes and line ends; comments and
blanks are none. One block, or indentation level, is the text between one pair of brackets, without inner pairs. A pair
that closes on its own line is no block, since its content is not indented. So a hole may begin before such a bracket
and end inside the pair, as it may in Python.
"""

from __future__ import annotations

from fim_server.datasets.defined.text import DefinedText
from fim_server.datasets.holes import BLOCK_LINES, SHARED, Constructions, Cut, Draw, any_of


def block(file: DefinedText) -> Draw | None:
    """Draw whole lines, up to `BLOCK_LINES`, between brackets on lines above and below.

    The hole reaches from the first symbol between them to the end of the last one's line. It is the body of a function,
    the members of a class, or the arguments of a call on lines of their own. The kind is the pair of brackets.
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


CONSTRUCTIONS = Constructions[DefinedText]({**SHARED, "block": block})

cuts = CONSTRUCTIONS.cuts
