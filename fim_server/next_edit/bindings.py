"""Names that a line binds, and the lines in which they hold, by signs that most languages share."""

from __future__ import annotations

from collections.abc import Sequence

from fim_server.next_edit.change import indentation
from fim_server.next_edit.line_tokens import LINE_BREAK, Lines, Token
from fim_server.next_edit.signs import SIGNS

LONGEST_SCOPE = 500
"""Most lines of a scope above a line, and below it."""


def is_bound(tokens: Sequence[Token], number: int) -> bool:
    """Return whether a line binds the name that is one of its tokens."""
    before = tokens[number - 1].text if number else LINE_BREAK
    after = [token.text for token in tokens[number + 1 : number + 3]] + [LINE_BREAK, LINE_BREAK]
    if before == SIGNS.member:
        return False
    if before in SIGNS.declare or after[:2] == [SIGNS.annotate, SIGNS.assign]:
        return True
    if before in SIGNS.use:
        return False
    is_parameter = is_in_parameters(tokens, number)
    if after[0] == SIGNS.assign and after[1] not in (SIGNS.assign, SIGNS.arrow):
        return is_parameter or before == LINE_BREAK or before in SIGNS.separators or is_type(before)
    return is_parameter or (is_type(before) and after[0] in SIGNS.ends_declaration)


def is_in_parameters(tokens: Sequence[Token], number: int) -> bool:
    """Return whether a token is a parameter's name in the header of a function."""
    before = tokens[number - 1].text if number else LINE_BREAK
    if before not in SIGNS.before_parameters | {SIGNS.parameters_open, LINE_BREAK}:
        return False
    head = next((at for at in range(number) if tokens[at].text in SIGNS.heads), None)
    if head is None:
        return False
    depth = 0
    for token in tokens[head:number]:
        depth += (token.text in SIGNS.opens) - (token.text in SIGNS.closes)
    return depth == 1


def is_type(word: str) -> bool:
    """Return whether a word before a name may be its type, as in `int count`."""
    return word[0].isalpha() and word not in SIGNS.use | SIGNS.declare | SIGNS.no_types


def scope_of(lines: Lines, number: int, is_local: bool) -> range:
    """Return the lines in which a name holds that a line binds.

    They are the block that the line opens or, for a name that is not ``is_local`` to it, the block around the line.
    """
    texts = lines.lines
    margin = indentation(texts[number])
    below = next((at for at in range(number + 1, len(texts)) if texts[at].strip()), len(texts))
    if not (is_local and below < len(texts) and indentation(texts[below]) > margin):
        first = number
        while first > max(0, number - LONGEST_SCOPE) and (
            not texts[first - 1].strip() or indentation(texts[first - 1]) >= margin
        ):
            first -= 1
        return range(first, block_end(texts, number, margin))
    return range(number, block_end(texts, number, margin + 1))


def block_end(texts: Sequence[str], number: int, margin: int) -> int:
    """Return the first line below one that is indented less than ``margin``."""
    end = min(len(texts), number + LONGEST_SCOPE)
    return next((at for at in range(number + 1, end) if texts[at].strip() and indentation(texts[at]) < margin), end)
