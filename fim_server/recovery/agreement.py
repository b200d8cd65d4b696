"""Agreement of the brackets that a cursor wants with the indentation around it: the sign of a file broken elsewhere.

If a bracket is missing elsewhere, the engine wants it at the cursor. There it seldom fits the lines. In formatted code,
the next line that is not indented more begins with as many closing brackets as the cursor's line leaves open.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from fim_server.errors import SearchLimitError
from fim_server.language.shapes import Shape
from fim_server.recovery.texts import indentation
from fim_server.text.brackets import unmatched

if TYPE_CHECKING:
    from fim_server.language import Session
    from fim_server.language.spelling import Spelling
    from fim_server.recovery.documents import Document
    from fim_server.recovery.opener import OpenSession

MOST_WANTED = 8
"""Most brackets and quotes of a middle that may agree. More are those of other places."""

MOST_SEARCHED = 2_000
"""Most lines to search for one that is not indented more than another."""

MOST_COUNTED = 2_000
"""Characters of a line whose brackets count, so that the cost of long lines is bounded."""

WANTED_STATES = 300
"""States to look at for a shortest completion in an exact language, each up to some tenths of a millisecond. Real files
take ten. Where more are needed, all agrees."""


def agrees(open_session: OpenSession, session: Session, document: Document) -> bool:
    """Return whether the brackets and quotes that a session wants of the middle agree with the indentation.

    Args:
        open_session: Opens a session on other contexts.
        session: Session that can be completed.
        document: Its contexts.
    """
    is_exact = session.language_guarantee == "exact"
    text = shortest(session) if is_exact else wanted(session)
    if text != "" and session.inside is not None and begins_above(open_session, document):
        return False
    if text is None:
        return is_exact or ends_later(session)
    if not is_exact and session.inside is None and not quotes(session.spelling).isdisjoint(text):
        return False
    if not is_exact and reopens(text, document, session.spelling):
        return False
    return fits(text, document, session.spelling)


def reopens(text: str, document: Document, spelling: Spelling) -> bool:
    """Return whether a middle closes brackets and opens others for the rest of its line, as in `f(x) { g(‸);`."""
    closed, opened = unmatched(text, spelling.brackets)
    return closed > 0 and opened > 0 and bool(document.head.strip())


def shortest(session: Session) -> str | None:
    """Return a shortest completion; None if none is found within the limit."""
    try:
        return session.start().shortest_completion(WANTED_STATES)
    except SearchLimitError:
        return None


def wanted(session: Session) -> str | None:
    """Return the fewest brackets and quotes that complete a session; None if none do."""
    try:
        return session.start(marks(session.spelling)).shortest_completion()
    except SearchLimitError:
        return None


def ends_later(session: Session) -> bool:
    """Return whether the cursor is in a comment that goes on over line breaks: it may want nothing but its end."""
    state = session.start()
    state.advance("\n")
    return session.inside == state.inside == "comment"


def begins_above(open_session: OpenSession, document: Document) -> bool:
    """Return whether the string or comment at the cursor began on an earlier line."""
    return open_session("".join(document.above), "").inside is not None


@lru_cache(maxsize=64)
def marks(spelling: Spelling) -> Shape:
    """Return the shape of a few brackets and quotes."""
    texts = {text for pair in spelling.brackets for text in pair} | quotes(spelling)
    return Shape.regex(f"({'|'.join(map(re.escape, sorted(texts)))}){{0,{MOST_WANTED}}}")


def quotes(spelling: Spelling) -> frozenset[str]:
    return spelling.closers - {closing for _, closing in spelling.brackets}


def fits(text: str, document: Document, spelling: Spelling) -> bool:
    """Return whether brackets in the middle fit the indentation of the lines around the cursor.

    The *rest* is the number of brackets that the cursor's line leaves open behind the closing ones at its beginning;
    negative if it closes more. The *next* line is the nearest one below that is indented no more. They fit if

    - the next line, if indented like the cursor's, begins with as many closing brackets as the rest; if it is indented
      less, the rest is 0;
    - or the last of the lines between closes the remainder of the rest (the last line of a call's arguments);
    - or the rest closes brackets that the nearest line above at the next line's indentation opens, and the next line
      begins with the others. Then the cursor's line is indented more, or blank up to the cursor. A blank one may also
      close the block that begins at its own indentation;
    - or the cursor's line begins with closing brackets, and the rest closes what its header opens besides: `)` behind
      the brace of `call(function() {`. The header is the nearest line above at its indentation, and further ones up to
      one that does not begin with a closing bracket.
    """
    column = column_of(document)
    last = following = None
    for line in islice(document.below, MOST_SEARCHED):
        if line.strip():
            if indentation(line) <= column:
                following = line
                break
            last = line
    begins = leading(following or "", spelling)
    at = indentation(following) if following is not None else 0
    rest = net(document.tail, spelling) + leading(document.tail, spelling) + net(document.head, spelling)
    closed, opened = unmatched(text, spelling.brackets)
    rest += opened - closed
    due = begins if at == column else 0
    if rest == due or (last is not None and rest > 0 and rest + left_open(last, spelling) == due):
        return True
    if rest >= 0:
        return False
    closes = leading(document.tail, spelling)
    if closes and rest + opened_by_header(column, document, spelling) - closes == due:
        return True
    is_blank = not document.tail.strip()
    return ((at < column or is_blank) and rest + opened_at(at, document, spelling) == begins) or (
        is_blank and rest + opened_at(column, document, spelling) == due
    )


def opened_at(column: int, document: Document, spelling: Spelling) -> int:
    """Return how many brackets the nearest line above at a column leaves open, if no line in between begins before it.

    -1 if there is no such line, or it leaves none open.
    """
    nearest = reversed(document.above[-MOST_SEARCHED:])
    line = next((line for line in nearest if line.strip() and indentation(line) <= column), None)
    count = left_open(line, spelling) if line is not None and indentation(line) == column else 0
    return count if count > 0 else -1


def opened_by_header(column: int, document: Document, spelling: Spelling) -> int:
    """Return how many brackets the lines of a header at a column leave open; -1 if there is none."""
    count = 0
    for line in reversed(document.above[-MOST_SEARCHED:]):
        if not line.strip() or indentation(line) > column:
            continue
        if indentation(line) < column:
            break
        count += net(line, spelling)
        if not leading(line, spelling):
            return count if count > 0 else -1
    return -1


def column_of(document: Document) -> int:
    """Return the indentation of the cursor's line; where it is blank, the cursor's column."""
    if document.tail.strip():
        return indentation(document.tail)
    return indentation(document.tail + document.head) if document.head.strip() else len(document.tail.expandtabs())


def left_open(line: str, spelling: Spelling) -> int:
    """Return how many brackets a line leaves open behind the closing ones at its beginning, less those it closes."""
    return net(line, spelling) + leading(line, spelling)


def leading(line: str, spelling: Spelling) -> int:
    """Return the number of closing brackets at a line's beginning."""
    closing = tuple(closing for _, closing in spelling.brackets)
    count, text = 0, line[:MOST_COUNTED].lstrip()
    while mark := next((mark for mark in closing if text.startswith(mark)), None):
        count, text = count + 1, text[len(mark) :].lstrip()
    return count


def net(line: str, spelling: Spelling) -> int:
    """Return the opening less the closing brackets of a line by itself, without its strings and its comment."""
    text = strings(spelling).sub("", line[:MOST_COUNTED])
    ends = [at for prefix in spelling.comments if (at := text.find(prefix)) >= 0]
    closed, opened = unmatched(text[: min(ends, default=len(text))], spelling.brackets)
    return opened - closed


@lru_cache(maxsize=64)
def strings(spelling: Spelling) -> re.Pattern[str]:
    """Return the pattern of a string on one line."""
    marks = "".join(map(re.escape, sorted(quotes(spelling)))) or "\0"
    return re.compile(rf"([{marks}])(?:\\.|(?!\1)[^\\\n])*\1")
