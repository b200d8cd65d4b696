"""From where on a suggestion is hardly meant: it says once more what is there, or loads a name that stands nowhere.

The first is a definition of the same name, and a line that stands a few lines above or below. In the packages for
tuning 0.3 % of the lines of three words and more have another like them that near in their block (of 51,500; in Go's
library 0.1 %), and of 21 suggestions of such a line none was right. Of headers that end with a colon it is 0.4 % (of
10,600; of those with ``elif`` none of 467). Those that end with a brace are of languages that often say one again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from fim_server.decoding.ending.trimming.defined import names_in_block
from fim_server.decoding.ending.trimming.indentation import blanks_of, width_of
from fim_server.suggest.context.cursor import contains_in_order
from fim_server.suggest.postprocess.identifiers import word_start

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fim_server.language.defining import Defining
    from fim_server.language.spelling import Spelling
    from fim_server.suggest.postprocess.identifiers import OwnNames
    from fim_server.text.document import Split

REPEATS_ITSELF = "the text repeats itself"
"""Reason for hiding a suggestion."""

DEFINED_AGAIN, SAID_AGAIN, LOADS_UNKNOWN = 0.001, 0.05, 0.05
"""How sure is what defines, declares or imports something once more: nobody sees it who has not asked. And what says a
line once more or begins to, or loads a name, not behind a dot, that is nowhere (none of six suggestions was right): it
may begin right, so that a part of it is shown that fits, else all of it where its first lexeme is sure by itself."""

DOUBTS = DEFINED_AGAIN, SAID_AGAIN, LOADS_UNKNOWN
"""All of these."""

NEAR, LEAST_WORDS = 8, 3
"""How many lines above and below count as near, and how many words a line has to have: fewer say little."""

BEGUN_TARGETS = re.compile(r"(?:^|;)[\s(\[]*(?:[\w.*]+[ \t]*,[ \t]*)*\Z")
"""What stands in a line before a target, with others before it."""

CHAIN = re.compile(r"[\w.]+")
"""Words, those that dots join as one."""

LOOKED_AT = 1 << 16
"""Characters on either side of the cursor in which a definition is looked for."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """From where on a suggestion is hardly meant.

    Attributes:
        end: The shortest beginning that is doubted, in characters; 0 where none is.
        confidence: How likely a text is right that goes so far.
        reason: The beginning that makes it so, in characters, where that is longer.
        of_name: Whether that loads a name that nothing binds.
        is_repeat: Whether it repeats text that is there already.
        is_loop: Whether it repeats itself from there on, and can end nowhere before.
    """

    end: int = 0
    confidence: float = 1.0
    reason: int = 0
    of_name: bool = False
    is_repeat: bool = False
    is_loop: bool = False

    @property
    def hides(self) -> bool:
        """Return whether no doubted text is shown unasked, however likely its first word is."""
        return self.end > 0 and (self.of_name or self.confidence <= DEFINED_AGAIN)

    @property
    def whole(self) -> int:
        """Where what makes it so ends, in characters."""
        return max(self.end, self.reason)

    def after(self, typed: int) -> Doubt:
        """What is doubted of the rest once so many characters were typed, which may be within what makes it so."""
        left = self.whole - typed
        return replace(self, end=max(1, self.end - typed), reason=left) if self.end and left > 0 else NO_DOUBT


NO_DOUBT = Doubt()


def of_loop(start: int, other: Doubt) -> Doubt:
    """Doubt a suggestion from the offset of its first repetition.

    ``start``: that offset, or 0. ``other``: the doubt of a suggestion that does not repeat itself.
    """
    return Doubt(start + 1, DEFINED_AGAIN, is_repeat=True, is_loop=True) if start else other


def defined_again(own: OwnNames | None, defining: Defining, split: Split, text: str) -> int | None:
    """Return the end, in characters of a ``text``, of a name that its first line defines or declares again.

    None where it does neither, or no other line of the block does, or a mark above says that there may be several: what
    overloads a function, or adds to a property.
    """
    start = split.left.rfind("\n") + 1
    line = split.left[start:] + text.partition("\n")[0]
    found = defining.search(line)
    name, wanted, end = None if found is None else found.groups(""), None, 0 if found is None else found.end(3)
    if found is None and own is not None:
        wanted, end = declared_by(own, line) or (None, 0)
    end -= len(split.left) - start
    if (name is None and wanted is None) or end <= 0:
        return None
    if defining.is_mark(split.left[:start].rstrip().rpartition("\n")[2]):
        return None
    marks = () if own is None else own.text_marks
    above = list(outside_of_texts(reversed(split.left[max(0, start - LOOKED_AT) : start].split("\n")), marks))
    below = list(outside_of_texts(split.right[:LOOKED_AT].split("\n")[1:], marks))
    if wanted is None:
        column = width_of(line)
        known = names_in_block(below, column, defining) | names_in_block(above, column, defining, are_above=True)
        return end if name in known else None
    indentation = blanks_of(line)
    return end if any(is_in_block(lines, indentation, wanted) for lines in (above, below)) else None


def outside_of_texts(lines: Iterable[str], marks: Sequence[str]) -> Iterator[str]:
    """Those of some lines, beside one of code, that are in no text of several lines, which may speak of names."""
    within = False
    for line in lines:
        if not within:
            yield line
        within ^= sum(map(line.count, marks)) % 2 == 1


def declared_by(own: OwnNames, line: str) -> tuple[re.Pattern[str], int] | None:
    """Return what lines begin with that declare the same name as a line, and the end of the name; None of others."""
    if not own.declaring_texts:
        return None
    after = rf"[ \t]*(?:{one_of(own.declaring_texts)})(?!=)"
    found = re.match(rf"([ \t]*)(\w+){after}", line)
    if found is None or found[2] in own.known:
        return None
    return re.compile(rf"{found[1]}{found[2]}{after}"), found.end(2)


def one_of(texts: Iterable[str]) -> str:
    """A pattern that matches one of some texts."""
    return "|".join(map(re.escape, sorted(texts)))


def stands_near(spelling: Spelling, split: Split, text: str) -> bool:
    """Whether a suggestion's first line stands in the same block, a few lines above or below.

    Not what opens a bracket or a brace, which may be told apart by what is in it.
    """
    start = split.left.rfind("\n") + 1
    rest, *below = split.right[:LOOKED_AT].split("\n", NEAR + 1)
    line = (split.left[start:] + text.partition("\n")[0]).rstrip()
    openers = tuple(opening for opening, _ in spelling.brackets)
    words = islice(re.finditer(r"\w+", line), LEAST_WORDS)
    if sum(1 for _ in words) < LEAST_WORDS or line.endswith(openers):
        return False
    if not contains_in_order(text, rest.strip()):
        return False  # there is more in the line
    above = reversed(split.left[max(0, start - LOOKED_AT) : start].rsplit("\n", NEAR + 1)[-NEAR - 1 : -1])
    indentation = line[: len(line) - len(line.lstrip())]
    wanted = re.compile(re.escape(line) + r"[ \t]*$")
    return any(is_in_block(lines, indentation, wanted) for lines in (above, below[:NEAR]))


def begins_near(spelling: Spelling, split: Split, text: str) -> bool:
    """Whether a suggestion's first line is the beginning, of two words and more, of one that stands near.

    Near is in the same block, indented alike. What is not the whole of such a line is mostly the first part of it, with
    which somebody would say it once more. Words that dots join count as one. Not where the line near opens a bracket or
    a brace at its end, with which many lines of a language may.
    """
    start = split.left.rfind("\n") + 1
    line = (split.left[start:] + text.partition("\n")[0]).rstrip()
    rest, *below = split.right[:LOOKED_AT].split("\n", NEAR + 1)
    is_closed = all(character in spelling.closers for character in rest.strip())  # by an editor
    if len(list(islice(CHAIN.finditer(line), 2))) < 2 or not (is_closed or contains_in_order(text, rest.strip())):
        return False
    above = split.left[max(0, start - LOOKED_AT) : start].rsplit("\n", NEAR + 1)[-NEAR - 1 : -1]
    indentation = line[: len(line) - len(line.lstrip())]
    openers = tuple(opening for opening, _ in spelling.brackets)
    for lines in (reversed(above), below[:NEAR]):
        for other in lines:
            if other.strip() and not other.startswith(indentation):
                break
            goes_on = other.rstrip()[len(line) :]
            says_more = CHAIN.search(goes_on) is not None and CHAIN.match(goes_on) is None
            if other.startswith(line) and says_more and not goes_on.endswith(openers):
                return True
    return False


def said_again(split: Split, text: str, all_of_it: bool) -> Doubt:
    """That a suggestion's first line says one once more: doubted from its second word on, with which that shows.

    Many lines of a block begin with the same word. ``all_of_it``: it is the whole of one, not a beginning.
    """
    start, first = split.left.rfind("\n") + 1, text.partition("\n")[0]
    words = list(islice(CHAIN.finditer(split.left[start:] + first), 2))
    end = words[1].end() - (len(split.left) - start) if len(words) > 1 else len(first)
    return Doubt(max(1, end), SAID_AGAIN, len(first) if all_of_it or end <= 0 else end, is_repeat=True)


def loads_unknown(own: OwnNames, spelling: Spelling, left: str, text: str, unknown: Sequence[int]) -> int:
    """The end in a suggestion's text of the first unknown name that is loaded by itself, or of the instance.

    0 where there is none. An attribute of the instance that is bound there, or may yet be, is none.

    Args:
        own: What is known of the language's names.
        spelling: How it is written.
        left: What stands in the line before it.
        text: The suggestion's.
        unknown: The ends of its names that nobody knows.
    """
    openers, closers = zip(*spelling.brackets, strict=True) if spelling.brackets else ((), ())
    joins = tuple(trailer for trailer in own.trailers if trailer not in openers)
    for end in unknown:
        before = text[: word_start(text, end)].rstrip()
        if before and not before.endswith(joins):
            return end
        line = (left + text[: word_start(text, end)]).rpartition("\n")[2].rstrip()
        after = text[end:].partition("\n")[0].lstrip()
        may_bind = not after or after.startswith((",", *own.declaring_texts, *closers))
        if line.endswith(joins) and is_load_of_instance(own, joins, line, may_bind):
            return end
    return 0


def is_load_of_instance(own: OwnNames, joins: tuple[str, ...], before: str, may_bind: bool) -> bool:
    """Whether an attribute is one of the instance, and cannot be one that is bound there.

    Args:
        own: What is known of the language's names.
        joins: What stands between a receiver and an attribute.
        before: The line up to the attribute.
        may_bind: Whether what follows it in the line may follow a target.
    """
    receiver = before.rstrip("".join(joins))
    start = word_start(receiver, len(receiver))
    head = receiver[:start]
    if receiver[start:] not in own.instance_words or head.endswith(joins):
        return False
    if head.rstrip()[word_start(head.rstrip(), len(head.rstrip())) :] in own.binding_words:
        return False
    return BEGUN_TARGETS.search(head) is None or not may_bind


def is_in_block(lines: Iterable[str], indentation: str, wanted: re.Pattern[str]) -> bool:
    """Whether one of the lines, as far as none is indented less, begins with a pattern."""
    for line in lines:
        if wanted.match(line):
            return True
        if line.strip() and not line.startswith(indentation):
            return False
    return False
