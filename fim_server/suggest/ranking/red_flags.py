"""Red flags: parts of a suggestion that repeat near text or load an undefined name.

Such a suggestion is rarely right, whatever the model thinks of it. The confidences are in ``constants.toml``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from fim_server.decoding.ending.trimming.defined import names_in_block
from fim_server.decoding.ending.trimming.indentation import blanks_of, width_of
from fim_server.language_support.registry import support_of
from fim_server.suggest.constants import RANKING
from fim_server.suggest.context.cursor import around, contains_in_order, line_with
from fim_server.suggest.postprocess.identifiers import own_names, word_start
from fim_server.suggest.ranking.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fim_server.language.definition.defining import Defining
    from fim_server.language.spelling import Spelling
    from fim_server.language_support.protocol import NameScope
    from fim_server.suggest.postprocess.identifiers import OwnNames
    from fim_server.text.document import Split

DEFINED_AGAIN = RANKING.redefinition_confidence
REPEATED_LINE = RANKING.repeated_line_confidence
LOADS_UNKNOWN = RANKING.unknown_name_confidence

CONFIDENCES = DEFINED_AGAIN, REPEATED_LINE, LOADS_UNKNOWN
"""Confidences of all red flags."""

NEAR, LEAST_WORDS = RANKING.near_lines, RANKING.repeated_words

BEGUN_TARGETS = re.compile(r"(?:^|;)[\s(\[]*(?:[\w.*]+[ \t]*,[ \t]*)*\Z")
"""Start of a line before an assignment target, with other targets before it."""

CHAIN = re.compile(r"[\w.]+")
"""Words; words that dots join count as one."""

LOOKED_AT = 1 << 16
"""Characters on each side of the cursor that are searched for a definition."""


@dataclass(frozen=True, slots=True)
class RedFlag:
    """The suspicious part of a suggestion.

    Attributes:
        end: Length of the shortest suspicious beginning, in characters; 0 if there is none.
        confidence: Confidence of each text that includes it.
        cause: Length of the beginning that makes it suspicious, if that is longer.
        reason: The reason.
    """

    end: int = 0
    confidence: float = 1.0
    cause: int = 0
    reason: Reason | None = None

    @property
    def hides(self) -> bool:
        """Return whether a text with the suspicious part stays hidden, however likely its first word is."""
        is_undefined = self.reason in (Reason.UNDEFINED_NAME, Reason.FAILS_CHECK)
        return self.end > 0 and (is_undefined or self.confidence <= DEFINED_AGAIN)

    @property
    def is_repeat(self) -> bool:
        return self.reason in (Reason.DEFINED_AGAIN, Reason.REPEATED_LINE, Reason.LOOP)

    @property
    def is_loop(self) -> bool:
        """Return whether the text repeats itself and can end nowhere before."""
        return self.reason is Reason.LOOP

    @property
    def whole(self) -> int:
        """Return the length of the beginning that makes the text suspicious, in characters."""
        return max(self.end, self.cause)

    def after(self, typed: int) -> RedFlag:
        """Return the flag of the rest after ``typed`` characters, which may end inside the suspicious part."""
        left = self.whole - typed
        return replace(self, end=max(1, self.end - typed), cause=left) if self.end and left > 0 else NO_FLAG


NO_FLAG = RedFlag()


def flag_of(
    language: str,
    spelling: Spelling,
    split: Split,
    text: str,
    unknown: Sequence[int] = (),
    scope: NameScope | None = None,
) -> RedFlag:
    """Return the part of a suggestion that repeats text of the file or loads an undefined name.

    Args:
        language: The language's name.
        spelling: The language's spelling.
        split: The document, cut at the cursor.
        text: The suggestion.
        unknown: The ends of its unknown names.
        scope: The names around the cursor.
    """
    own, support = own_names(language), support_of(language)
    end = defined_again(own, spelling.defining, split, text)
    if end is not None:
        return RedFlag(end, DEFINED_AGAIN, reason=Reason.DEFINED_AGAIN)
    line, end = line_with(split, text), len(text.partition("\n")[0])
    imports = support is not None and support.is_import(line)
    if imports and support is not None and support.imports_again(line, around(split)[1]):
        return RedFlag(end, DEFINED_AGAIN, reason=Reason.DEFINED_AGAIN)
    loaded = 0 if own is None else loads_unknown(own, spelling, line[: len(line) - end], text, unknown)
    if loaded:
        return RedFlag(loaded, LOADS_UNKNOWN, reason=Reason.UNDEFINED_NAME)
    unbound = None if scope is None else scope.unbound_load(split.left, split.right, text)
    if unbound is not None:
        return RedFlag(unbound, LOADS_UNKNOWN, reason=Reason.UNDEFINED_NAME)
    member = None if support is None else support.unknown_member(split.left, split.right, text)
    if member is not None:
        return RedFlag(member[0] + 1, LOADS_UNKNOWN, member[1], Reason.UNKNOWN_MEMBER)
    if not text.partition("\n")[0].strip():
        return NO_FLAG  # the user wrote the line
    is_whole = stands_near(spelling, split, text)
    again = is_whole or (not imports and begins_near(spelling, split, text))
    return repeated_line(split, text, is_whole) if again else NO_FLAG


def flag_of_loop(start: int, other: RedFlag) -> RedFlag:
    """Return the flag of a suggestion that repeats itself from an offset.

    ``start``: that offset, or 0. ``other``: the flag of a suggestion that does not repeat itself.
    """
    return RedFlag(start + 1, DEFINED_AGAIN, reason=Reason.LOOP) if start else other


def defined_again(own: OwnNames | None, defining: Defining, split: Split, text: str) -> int | None:
    """Return the end of a name that the first line of a text defines or declares again, in characters of the text.

    None if the line defines or declares nothing, or if no other line of the block defines the name. None, too, below a
    mark that allows several definitions, as of an overload or a property.
    """
    start = split.left.rfind("\n") + 1
    line = line_with(split, text)
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
    """Yield the lines that are in no string of several lines. The lines continue from a line of code."""
    within = False
    for line in lines:
        if not within:
            yield line
        within ^= sum(map(line.count, marks)) % 2 == 1


def declared_by(own: OwnNames, line: str) -> tuple[re.Pattern[str], int] | None:
    """Return the pattern of lines that declare the same name as a line, and the name's end; None for other lines."""
    if not own.declaring_texts:
        return None
    after = rf"[ \t]*(?:{'|'.join(map(re.escape, sorted(own.declaring_texts)))})(?!=)"
    found = re.match(rf"([ \t]*)(\w+){after}", line)
    if found is None or found[2] in own.known:
        return None
    return re.compile(rf"{found[1]}{found[2]}{after}"), found.end(2)


def near_lines(split: Split) -> tuple[list[str], list[str]]:
    """Return the lines above the cursor's, the nearest first, and those below it, as far as they are near."""
    start = split.left.rfind("\n") + 1
    above = split.left[max(0, start - LOOKED_AT) : start].rsplit("\n", NEAR + 1)[-NEAR - 1 : -1]
    below = split.right[:LOOKED_AT].split("\n", NEAR + 1)[1:]
    return above[::-1], below[:NEAR]


def rest_of_line(split: Split) -> str:
    """Return the text right of the cursor on its line, without blanks at its ends."""
    return split.right[:LOOKED_AT].partition("\n")[0].strip()


def stands_near(spelling: Spelling, split: Split, text: str) -> bool:
    """Return whether the first line of a suggestion stands in the same block, a few lines above or below.

    A line that opens a bracket or a brace may repeat, because its content tells it apart.
    """
    line = line_with(split, text).rstrip()
    openers = tuple(opening for opening, _ in spelling.brackets)
    words = islice(re.finditer(r"\w+", line), LEAST_WORDS)
    if sum(1 for _ in words) < LEAST_WORDS or line.endswith(openers):
        return False
    if not contains_in_order(text, rest_of_line(split)):
        return False  # the line continues right of the cursor
    wanted = re.compile(re.escape(line) + r"[ \t]*$")
    return any(is_in_block(lines, blanks_of(line), wanted) for lines in near_lines(split))


def begins_near(spelling: Spelling, split: Split, text: str) -> bool:
    """Return whether the first line of a suggestion is the beginning of a near line in the same block.

    The beginning has two words at least, of which the last is whole. A near line that opens a bracket or a brace at its
    end does not count, because many lines of a language may.
    """
    line, rest = line_with(split, text).rstrip(), rest_of_line(split)
    is_closed = all(character in spelling.closers for character in rest)  # by an editor
    if len(list(islice(CHAIN.finditer(line), 2))) < 2 or not (is_closed or contains_in_order(text, rest)):
        return False
    openers = tuple(opening for opening, _ in spelling.brackets)
    for lines in near_lines(split):
        for other in lines:
            if other.strip() and not other.startswith(blanks_of(line)):
                break
            continuation = other.rstrip()[len(line) :]
            has_more = CHAIN.search(continuation) is not None and CHAIN.match(continuation) is None
            if other.startswith(line) and has_more and not continuation.endswith(openers):
                return True
    return False


def repeated_line(split: Split, text: str, is_whole: bool) -> RedFlag:
    """Return the flag of a suggestion that repeats a line, suspicious from its second word on.

    Many lines of a block share their first word. ``is_whole``: the suggestion's line equals the other one, and is not
    only its beginning.
    """
    start, first = split.left.rfind("\n") + 1, text.partition("\n")[0]
    words = list(islice(CHAIN.finditer(split.left[start:] + first), 2))
    end = words[1].end() - (len(split.left) - start) if len(words) > 1 else len(first)
    cause = len(first) if is_whole or end <= 0 else end
    return RedFlag(max(1, end), REPEATED_LINE, cause, Reason.REPEATED_LINE)


def loads_unknown(own: OwnNames, spelling: Spelling, left: str, text: str, unknown: Sequence[int]) -> int:
    """Return the end of the first unknown name that a suggestion loads by itself, or as a member of the instance.

    0 if there is none. An attribute of the instance counts only if no later text can bind it.

    Args:
        own: The language's names.
        spelling: The language's spelling.
        left: The text before the suggestion on its line.
        text: The suggestion.
        unknown: The ends of its unknown names.
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
    """Return whether an attribute belongs to the instance, and the line does not bind it.

    Args:
        own: The language's names.
        joins: Texts between a receiver and an attribute.
        before: The line up to the attribute.
        may_bind: Whether the text after the attribute may follow an assignment target.
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
    """Return whether a line begins with a pattern, up to the first line that is indented less."""
    for line in lines:
        if wanted.match(line):
            return True
        if line.strip() and not line.startswith(indentation):
            return False
    return False
