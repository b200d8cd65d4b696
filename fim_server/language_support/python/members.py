"""Attributes of the instance that nothing in the class around the cursor says it has.

Only of a class that inherits nothing, and whose attributes are all written down: of 1,894 loads of such attributes in
the packages for tuning, and of 709 in those for reporting, in files of up to 90,000 characters, there is none whose
name may not be a member's by the rest of its file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from fim_server.language_support.python.preferring import is_text
from fim_server.language_support.python.scopes import HEADER, MOST_CHARACTERS, WORD, body_of, enclosing, indentation

NAMED = re.compile(r"\bself\.([^\W\d]\w*)")
TARGET = re.compile(r"\b(?:as|for)[ \t]+(?:[\w.]+[ \t]*,[ \t]*)*\Z")
METHOD = re.compile(r"[ \t]*(?:async[ \t]+)?def[ \t]+\w+[ \t]*(?:\[[^\]]*\])?\([ \t\n]*self\b")
ASSIGNING = re.compile(r"(?<![=<>!:])=(?!=)")
PLAIN_CLASS = re.compile(r"[ \t]*class[ \t]+(?!\w*Mixin\b)\w+[ \t]*(?:\([ \t]*(?:object)?[ \t]*\))?[ \t]*:")
MARK = re.compile(r"[ \t]*@(?:\w+\.)*(\w+)")
HARMLESS_MARKS = frozenset({"dataclass", "define", "final", "frozen", "total_ordering"})
"""Decorators that bring a class no attribute that somebody loads by its name."""

MAKING = frozenset({"__dict__", "__getattr__", "__getattribute__", "__setattr__", "locals", "setattr", "vars"})
"""Words of classes whose attributes are not all written down."""

MEMBER = re.compile(r"\.\s*([^\W\d]\w*)|[\"']([^\W\d]\w*)[\"']")
"""What stands after a dot, or in a text by itself: slots are named so, and what is bound by name."""

TEXTS = '"""', "'''"

MOST_LINE, MOST_HEADER = 4_096, 3
"""Characters of a line that is looked at, and lines of a method's header up to its first parameter."""

MOST_ASKED = 4
"""Names of a line for each of which all the text is searched, some tenths of a millisecond."""


def unknown_member(left: str, right: str, text: str) -> tuple[int, int] | None:
    """Where the first load of an attribute begins in a text that the class has not, and where it ends, in characters.

    None where there is none. It begins at 0 where the cursor is in it already.
    """
    start, end = left.rfind("\n") + 1, right.find("\n")
    typed = len(left) - start
    line = left[start:] + text.partition("\n")[0]
    whole = line + right[: max(0, end)]
    if len(whole) > MOST_LINE or "self" not in line:
        return None
    named = [match for match in NAMED.finditer(line) if match.end() > typed and not match[1].startswith("__")]
    if not named:
        return None
    after = right[end + 1 : end + 1 + MOST_CHARACTERS] if end >= 0 else ""
    words = words_of_class(left[max(0, start - MOST_CHARACTERS) : start], after, indentation(line))
    if words is None:
        return None
    targets = end_of_targets(whole)
    loads = (one for one in named if one[1] not in words and one.start() > targets and is_load(whole, one))
    unknown = {match[1]: match for match in reversed(list(loads))}  # the first of each name
    for name in islice(reversed(unknown), MOST_ASKED):
        if not is_bound_by_others(name, left, right):
            match = unknown[name]
            return max(0, match.start() - typed), match.end() - typed
    return None


def is_bound_by_others(name: str, left: str, right: str) -> bool:
    """Whether an attribute is bound through another receiver anywhere around: ``shell.name = ...``."""
    bound = re.compile(rf"\.{name}[ \t]*(?:=(?!=)|,)")
    return any(bound.search(text) is not None for text in (left[-MOST_CHARACTERS:], right[:MOST_CHARACTERS]))


def is_load(line: str, name: re.Match[str]) -> bool:
    """Whether an attribute that stands in a line, behind what that assigns to, is loaded: not bound, not spoken of."""
    before, after = line[: name.start()], line[name.end() :]
    is_annotated = not before.strip() and after.lstrip(" \t").startswith(":")
    return not is_annotated and TARGET.search(before) is None and not is_text(before)


def end_of_targets(line: str) -> int:
    """Where the last equals sign stands that assigns to what is before it; -1 where none does."""
    depth, found = 0, -1
    for at, character in enumerate(line):
        depth += (character in "([{") - (character in ")]}")
        if depth <= 0 and ASSIGNING.match(line, at):
            found = at
    return found


@lru_cache(maxsize=4)
def words_of_class(before: str, after: str, level: int) -> frozenset[str] | None:
    """What may be members of the class of which a line is in a method, by the words of its other lines.

    None where it is in none, where another function is around it, and where the class may have other attributes.

    Args:
        before: The lines above.
        after: The lines below.
        level: The line's indentation.
    """
    above, below = before.split("\n")[:-1], after.split("\n")
    blocks = list(enclosing(above, level))
    if len(blocks) < 2 or (blocks[0].kind, blocks[1].kind) != ("def", "class"):
        return None
    method, block = blocks[:2]
    header = "\n".join(above[method.line : method.line + MOST_HEADER])
    if METHOD.match(header) is None or PLAIN_CLASS.match(above[block.line]) is None:
        return None
    for line in reversed(above[: block.line]):
        if not line.strip():
            break
        mark = MARK.match(line)
        if mark is None or mark[1] not in HARMLESS_MARKS:
            return None  # a decorator of several lines may end there
    body = body_of(block, above, below)
    if len(after) >= MOST_CHARACTERS and body.endswith(below[-1]):
        return None  # it goes on in what is not looked at
    if any(body.count(mark) % 2 for mark in TEXTS):
        return None  # a text's line took its end for the class's
    derived = re.compile(rf"^[ \t]*class[ \t]+\w+[ \t]*\([^)]{{0,500}}\b{block.name}\b", re.MULTILINE)
    if derived.search(after) is not None or MAKING.intersection(WORD.findall(body)):
        return None  # a class that inherits from it may have what it uses
    return frozenset(members_of(body))


def members_of(body: str) -> Iterator[str]:
    """The names in a class's lines that may be its members: not those that stand in its methods alone by themselves."""
    for found in MEMBER.finditer(body):
        yield found[1] or found[2]
    lines = [line for line in body.split("\n")[1:] if line.strip()]
    level = next((indentation(line) for line in lines if line.lstrip()[0] not in "#)]}"), 0)
    in_method = False
    for line in lines:
        if indentation(line) <= level and line.lstrip()[0] not in "#)]}":
            header = HEADER.match(line)
            in_method = header is not None and header[1] == "def"
            if header is not None:
                yield header[2]
                continue
        if not in_method:
            yield from WORD.findall(line)
