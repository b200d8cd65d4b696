"""Names that a line binds, and the lines in which they hold, by signs that most languages share."""

from __future__ import annotations

from collections.abc import Sequence

from fim_server.next_edit.change import indentation
from fim_server.next_edit.line_tokens import Lines, Token

DECLARE = frozenset(
    (
        *("as", "class", "const", "def", "enum", "fn", "for", "func", "function", "import", "interface", "let"),
        *("mut", "static", "struct", "trait", "type", "val", "var"),
    )
)
"""Words before a name that is bound."""

HEADS = frozenset({"def", "fn", "func", "function"})
"""Words of a line whose parentheses have parameters."""

GO_ON = frozenset(
    (
        *("and", "assert", "await", "case", "del", "else", "if", "in", "is", "new", "not", "or", "raise", "return"),
        *("throw", "while", "yield"),
    )
)
"""Words before a name that is used."""

LONGEST_SCOPE = 500
"""Most lines of a scope above a line, and below it."""


def is_bound(tokens: Sequence[Token], number: int) -> bool:
    """Return whether a line binds the name that is one of its tokens."""
    before = tokens[number - 1].text if number else "\n"
    after = [token.text for token in tokens[number + 1 : number + 3]] + ["\n", "\n"]
    if before == "." or before in GO_ON:
        return False
    if before in DECLARE:
        return True
    assigned = after[0] == "=" and after[1] not in ("=", ">")
    is_parameter = is_in_parameters(tokens, number)
    if assigned:
        return is_parameter or before in ("\n", ",", ";") or is_type(before)
    if after[0] == ":" and after[1] == "=":
        return True
    return is_parameter or (is_type(before) and after[0] in (";", ",", ")", ":"))


def is_in_parameters(tokens: Sequence[Token], number: int) -> bool:
    """Return whether a token is a parameter's name in the header of a function."""
    if tokens[number - 1].text not in ("(", ",", "*", "&", "mut", "\n"):
        return False
    head = next((at for at in range(number) if tokens[at].text in HEADS), None)
    if head is None:
        return False
    depth = 0
    for token in tokens[head:number]:
        depth += (token.text in "([{") - (token.text in ")]}")
    return depth == 1


def is_type(word: str) -> bool:
    """Return whether a word before a name may be its type, as in `int count`."""
    return (
        word[0].isalpha() and word not in GO_ON and word not in DECLARE and word not in ("and", "or", "else", "async")
    )


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
