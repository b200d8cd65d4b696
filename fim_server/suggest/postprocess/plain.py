"""Rules for the lines of languages without a grammar, in place of one.

A text is the rest of the cursor's line. It repeats nothing right of the cursor and not the next line, closes only
brackets that the line left open, and leaves words whole.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.decoding.ending.trimming.trimmed import THERE_ALREADY, roughly_trimmed
from fim_server.language.texts import is_word
from fim_server.suggest.context.cursor import Place
from fim_server.suggest.ranking.reasons import Reason, Suppression
from fim_server.text.brackets import before_unopened, unmatched

if TYPE_CHECKING:
    from collections.abc import Collection

    from fim_server.language import Session
    from fim_server.language.spelling import Spelling
    from fim_server.suggest.suggestion import Ends
    from fim_server.text.document import Split

APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")

LOOKED_AT = 2_000
"""Characters around the cursor that the rules look at."""

STANDS_THERE = Suppression(Reason.REPEATED_BELOW, THERE_ALREADY)
CUTS_WORD = Suppression(Reason.IN_WORD, "it does not go on with the word at the cursor")


def plain_line(text: str, split: Split, session: Session) -> str | Suppression:
    """Return the part of a text that may stand at a cursor, or the reason why none may."""
    place = Place.of(replace(split, left=split.left[-LOOKED_AT:], right=split.right[:LOOKED_AT]))
    line = roughly_trimmed(text.partition("\n")[0], split, session)
    line = before_rest(line, place.after, session.spelling.closers)
    line = before_doubled_closer(line, place, session.spelling)
    line = before_cut_word(line, place)
    if place.is_inside_a_word and not is_word(line[:1]):
        return CUTS_WORD
    if not line.strip() and text.strip():
        return STANDS_THERE
    below = next((one for one in split.right[:LOOKED_AT].split("\n")[1:] if one.strip()), "")
    whole = (place.before + line + place.after).strip()
    return STANDS_THERE if whole and whole == below.strip() else line


def closed_cuts(ends: Ends, text: str, spelling: Spelling) -> Ends:
    """Return the ends of a text without the cuts at which it leaves a bracket or a quote of its own open."""
    quotes = spelling.closers - {closer for _, closer in spelling.brackets}

    def is_closed(end: int) -> bool:
        part = APOSTROPHE.sub("", text[:end])
        return not unmatched(part, spelling.brackets)[1] and not any(part.count(quote) % 2 for quote in quotes)

    return replace(ends, cuts=tuple(end for end in ends.cuts if end == len(text) or is_closed(end)))


def before_rest(line: str, rest: str, closers: Collection[str]) -> str:
    """Return a line up to where it writes the rest of the cursor's line, unless that consists of closers.

    >>> before_rest("b = c", " = c", ")"), before_rest("f(x)", ")", ")")
    ('b', 'f(x)')
    """
    wanted = rest.strip()
    if all(character in closers for character in wanted):
        return line
    at = line.find(wanted)
    while at >= 0 and is_word(line[at - 1 : at]) and is_word(wanted[0]):
        at = line.find(wanted, at + 1)
    return line if at < 0 else line[:at].rstrip(" \t") if rest[:1].isspace() else line[:at]


def before_doubled_closer(line: str, place: Place, spelling: Spelling) -> str:
    """Return a line up to a bracket that the text left of the cursor did not open, or that is closed right of it.

    The same holds for a quote right of the cursor.
    """
    brackets = spelling.brackets
    opened, closed = unmatched(place.before, brackets)[1], unmatched(place.after, brackets)[0]
    kept, rest = "", line
    for allowed in range(max(0, opened - closed), -1, -1):
        part = before_unopened(rest, brackets)
        kept, rest = kept + part, rest[len(part) :]
        if not rest or not allowed:
            break
        kept, rest = kept + rest[0], rest[1:]
    quotes = spelling.closers - {closer for _, closer in brackets}
    first = place.after[:1]
    return kept.partition(first)[0] if first in quotes and place.before.count(first) % 2 else kept


def before_cut_word(line: str, place: Place) -> str:
    """Return a line without a last word that would grow together with the word right of the cursor."""
    if not is_word(place.after[:1]) or place.is_inside_a_word:
        return line
    end = len(line)
    while end and is_word(line[end - 1]):
        end -= 1
    return line[:end]
