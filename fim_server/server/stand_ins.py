"""What has to follow the line that is being typed and is not there yet, where nobody has asked for it.

Who types `try:` and a line below has not written `except` so far, nor a definition below a decorator, nor the colon
behind the `)` that an editor has put on a line of its own. No program is complete before that, and of a line alone
nothing could be offered, or only one that closes the header itself and opens another bracket (`def f(a):(` above `)`).
So the shortest that has to follow stands in for it in the right context, and what is offered fits that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fim_server.server.place import MOST_BLANK, Place, indentation

if TYPE_CHECKING:
    from fim_server.language import Language
    from fim_server.text.document import Split


@dataclass(frozen=True, slots=True)
class Bare:
    """A right context without the closers of brackets that stand right of the cursor, or alone on the lines below.

    Attributes:
        right: What is left of it.
        closers: Those that were taken out.
        lines: How many lines below held nothing but closers.
    """

    right: str
    closers: str
    lines: int


def without_closers(split: Split, language: Language) -> Bare:
    """The right context of a cursor without the closers that the shortest completion is to bring."""
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


def with_stand_in(split: Split, bare: Bare, text: str) -> str | None:
    """The right context with what has to follow in it; None where that is nothing.

    Nor where it would be the cursor's line's own block, or stand between that line and lines that belong to it.

    Args:
        split: The cursor.
        bare: Its right context without closers.
        text: The shortest completion with that.
    """
    line, newline, below = split.right.partition("\n")
    if not bare.lines:
        following = text.partition("\n")[2]
        own = indentation(split.left[split.left.rfind("\n") + 1 :])
        next_one = next((one for one in below.split("\n", MOST_BLANK) if one.strip()), "")
        if not following or max(indentation(following), indentation(next_one)) > own:
            return None
        return f"{line}\n{following}{newline}{below}"
    end = 0
    for closer in bare.closers:
        end = text.find(closer, end) + 1
        if not end:
            return None
    if not text[end:]:
        return None
    lines = below.split("\n")
    above, rest = "\n".join(lines[: bare.lines]), "\n".join(lines[bare.lines :])
    return f"{line}{newline}{above}{text[end:]}\n{rest}"
