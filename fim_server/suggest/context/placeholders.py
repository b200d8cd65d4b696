"""Stand-ins for text that has to follow the cursor's line and is missing.

While a user types a line below `try:`, the `except` is missing. Below a decorator the definition is missing, and below
the `)` that an editor put on a line of its own, the colon. No single line completes such a program, except one that
closes the header and opens another bracket (`def f(a):(` above `)`). So the shortest text that has to follow stands in
for it in the right context.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fim_server.decoding.ending.trimming.indentation import step_of
from fim_server.suggest.context.cursor import MOST_BLANK, Place, indentation

if TYPE_CHECKING:
    from collections.abc import Callable

    from fim_server.language import Language
    from fim_server.language.spelling import Spelling
    from fim_server.text.document import Split

BREAK = re.compile(r"\n[ \t]*")
"""A line break with the indentation behind it."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """Text that has to follow the cursor's line.

    Attributes:
        below: The line at whose end it is inserted, counted from the cursor's.
        text: The inserted text.
    """

    below: int
    text: str

    def inserted(self, right: str) -> str:
        """Return a right context with the text inserted."""
        at = -1
        for _ in range(self.below + 1):
            at = right.find("\n", at + 1)
            if at < 0:
                return right + self.text
        return right[:at] + self.text + right[at:]


@dataclass(frozen=True, slots=True)
class Bare:
    """Right context without the closers right of the cursor and alone on the lines below.

    Attributes:
        right: The rest of the right context.
        closers: The removed closers.
        lines: Number of lines below that had closers alone.
    """

    right: str
    closers: str
    lines: int


def without_closers(split: Split, language: Language) -> Bare:
    """Return the right context of a cursor without the closers that the shortest completion must contain."""
    own = Place.of(split).closers(language)
    line, newline, below = split.right.partition("\n")
    brackets = {closing for _, closing in language.spelling.brackets}
    lines, count, closers = below.split("\n"), 0, own
    if not line[len(own) :].strip():
        for text in lines:
            alone = text.strip()
            if not alone or not set(alone) <= brackets:
                break
            closers += alone
            count += 1
    return Bare(line[len(own) :] + newline + "\n".join(lines[count:]), closers, count)


def without_rest(split: Split) -> Bare:
    """Return the right context without the rest of the cursor's line."""
    _, newline, below = split.right.partition("\n")
    return Bare(newline + below, "", 0)


def without_blank_breaks(text: str, completes: Callable[[str], bool]) -> str:
    """Return a completion with a space for each line break that is white space, as inside brackets.

    Args:
        text: The completion.
        completes: Returns whether a text completes the same program. If it does with a space, the break ends no line.
    """
    for found in reversed(list(BREAK.finditer(text))):
        joined = f"{text[: found.start()]} {text[found.end() :]}"
        if completes(joined):
            text = joined
    return text


def stand_ins_for(split: Split, bare: Bare, text: str) -> tuple[StandIn, ...]:
    """Return the stand-ins that may have to follow, with their places.

    A block of the cursor's own line gets none, and none comes between that line and lines that belong to it.

    Args:
        split: The document, cut at the cursor.
        bare: The right context without closers.
        text: The shortest completion with that context.
    """
    if not bare.lines:
        following = text.partition("\n")[2]
        own = indentation(split.left[split.left.rfind("\n") + 1 :])
        next_one = next((one for one in split.right.split("\n", MOST_BLANK + 1)[1:] if one.strip()), "")
        if not following or max(indentation(following), indentation(next_one)) > own:
            return ()
        return (StandIn(0, f"\n{following}"),)
    end = 0
    for closer in bare.closers:
        end = text.find(closer, end) + 1
        if not end:
            return ()
    return (StandIn(bare.lines, text[end:]),) if text[end:] else ()


def block_stand_ins(block: str, text: str) -> tuple[StandIn, ...]:
    """Return the stand-ins for a complete header around the cursor: a block, and its clauses.

    Args:
        block: A block that does nothing; empty in languages without one.
        text: The shortest completion without the rest of the cursor's line.
    """
    following = text.partition("\n")[2]
    wanted = (block, following, f"{block}\n{following}") if following else (block,)
    return tuple(StandIn(0, f"\n{lines}") for lines in wanted) if block else ()


def empty_block(split: Split, spelling: Spelling) -> str:
    """Return a line below the cursor's for a block that does nothing; empty in languages without such a line."""
    line = Place.of(split).before
    nothing = spelling.stand_ins[:1] if spelling.block_opener else ()
    return line[: indentation(line)] + step_of(split, spelling) + nothing[0] if nothing else ""
