"""Lines with which a block begins, where there is none yet: what is offered there has to begin it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fim_server.server.names import own_names
from fim_server.server.place import Place, is_word

if TYPE_CHECKING:
    from fim_server.text.document import Split

FIRST_WORD = re.compile(r"\s*(\w+)\W")
"""A line's, once it is typed."""

MOST_BLANK = 8
"""Lines below the cursor's in which the next one that is not blank is looked for."""


def owes_block(split: Split, language: str) -> bool:
    """Whether the cursor's line begins like one with a block, and no block follows it.

    Such a line can only be completed together with a first line of the block: no program is complete before. The
    cursor stands at the line's end, but for closers that an editor has put there.
    """
    own = own_names(language)
    place = Place.of(split)
    first = FIRST_WORD.match(place.before)
    if own is None or first is None or first[1] not in own.block_words or any(map(is_word, place.after)):
        return False
    following = next((line for line in split.right.split("\n", MOST_BLANK + 1)[1:] if line.strip()), "")
    return indentation(following) <= indentation(place.before)


def indentation(line: str) -> int:
    """Blanks that a line begins with."""
    return len(line) - len(line.lstrip())
