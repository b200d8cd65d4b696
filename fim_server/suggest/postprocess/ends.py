"""Positions at which a text may end."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from fim_server.decoding.ending.trimming.below import without_line_below
from fim_server.language.texts import is_word
from fim_server.suggest.context.cursor import PROSE
from fim_server.suggest.postprocess.trailing_comma import COMMA
from fim_server.suggest.suggestion import Ends

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fim_server.language import Session
    from fim_server.language.spelling import Spelling
    from fim_server.text.document import Split

WANTS_OPERAND = re.compile(r"(?:[=$@<&^~\\]|(?<!\+)\+|(?<!-)-|(?<=\s)[|*/%])\Z")
"""A sign that wants an operand, at the end of a text. `++`, `50%` and the end of `do |x|` want none."""

WANTS_MEMBER = re.compile(r"(?<=[\w)\]])\.\Z")
"""A dot behind a value, at the end of a text."""

MEMBER = re.compile(r"""(?<=[\w)\]}"'`?!>])(?:\s*\n\s*)?(?:\?\.|!?\.|->|::<?|&\.)(?=\w|\Z)""")
"""The beginning of a member behind a value, also on the next line: `.b`, `->b`, `::b`, `?.b`; or of decimals."""

APPLICATION = re.compile(r"""(?<=[\w)\]!])!?[(\[]|(?<=\w)["'`]""")
"""The beginning of a call or an index behind a value, and of a string behind its prefix."""

NEAR = 1000
"""Characters on each side of the cursor that cuts are compared with."""

MOST_CUTS = 64
"""Most positions at which a text may end."""


def ends_of(text: str, session: Session, no_comments: bool = False, right: str = "") -> Ends:
    """Return the positions at which a text may end.

    The last cut of a decoded text is its whole. Without a guarantee, every position counts as complete.

    Args:
        text: The text.
        session: The session at the cursor.
        no_comments: Cut in no comment, because it would take in the rest of the cursor's line.
        right: The text right of the cursor, whose first word no cut extends.
    """
    state = session.start() if session.guarantee != "none" else None
    cuts: list[int] = []
    lexemes: list[int] = []
    start = 0
    for end in (*islice(boundaries(text), MOST_CUTS), len(text)):
        if state is not None:
            piece = text[start:end]
            if state.advance(piece) < len(piece.encode()):
                break  # recalled text fits no further
            start = end
            if state.inside != "string":
                lexemes.append(end)
            # Prose has no units that a user accepts one by one.
            if not state.is_complete() or (state.inside in PROSE and end < len(text)):
                continue
            if no_comments and state.inside == "comment":
                continue
            if end < len(text) and is_word(text[end - 1]) and is_word(right[:1]):
                continue
        else:
            lexemes.append(end)
        cuts.append(end)
    return Ends(tuple(cuts), tuple(lexemes))


def without_lines_below(ends: Ends, text: str, split: Split) -> Ends:
    """Return the ends of a text without the cuts at which its beginning repeats the line below the cursor."""
    near = replace(split, left=split.left[-NEAR:], right=split.right[:NEAR])

    def repeats(end: int) -> bool:
        return end < len(text) and without_line_below(text[:end], near, bool) != text[:end]

    return Ends(tuple(end for end in ends.cuts if not repeats(end)), ends.lexemes)


def finished_cuts(ends: Ends, text: str, takes_dots: bool) -> Ends:
    """Return the ends of a text without the cuts right after a sign that wants an operand, unless all are.

    An exact grammar allows no end there; a definition of token trees does.

    Args:
        ends: The ends.
        text: The text.
        takes_dots: A dot may end a text, as it ends sentences.
    """
    finished = tuple(
        end
        for end in ends.cuts
        if not WANTS_OPERAND.search(text, 0, end) and (takes_dots or not WANTS_MEMBER.search(text, 0, end))
    )
    return replace(ends, cuts=finished or ends.cuts)


def without_members_cut_off(ends: Ends, whole: str) -> Ends:
    """Return the ends of a text without the cuts at which a chain of members goes on, unless it does at all of them.

    ``whole``: the text with what would follow it.
    """
    kept = tuple(end for end in ends.cuts if not MEMBER.match(whole, end))
    return replace(ends, cuts=kept or ends.cuts)


def boundaries(text: str) -> Iterator[int]:
    """Yield the positions behind a character that is no blank, and not inside a word; not the end of the text."""
    for end in range(1, len(text)):
        before, after = text[end - 1], text[end]
        if not before.isspace() and not (is_word(before) and is_word(after)):
            yield end


def continued_cuts(cuts: Iterable[int], whole: str, right: str, spelling: Spelling) -> tuple[int, ...]:
    """Return the cuts of a text after which an expression or a list continues.

    A list continues after a comma if a bracket closes right of the cursor. Alone, the comma would make a tuple, which
    is rarely meant.

    Args:
        cuts: The cuts.
        whole: The text with what would follow it.
        right: The text right of the cursor.
        spelling: The spelling of the language.
    """
    closing = tuple(closer for _, closer in spelling.brackets)
    separator = COMMA if right.lstrip(" \t").startswith(closing) else None
    return tuple(
        end
        for end in cuts
        if MEMBER.match(whole, end)
        or APPLICATION.match(whole, end)
        or (separator is not None and whole.endswith(separator, 0, end))
    )


def cuts_of_lines(text: str, cuts: Sequence[int]) -> tuple[int, ...]:
    """Return the cuts of a text on its first line, and those at the end of a further one."""
    first = text.find("\n")
    return tuple(end for end in cuts if first < 0 or end <= first or text[end : end + 1] in ("", "\n"))
