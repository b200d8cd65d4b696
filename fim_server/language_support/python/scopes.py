"""What is bound where around a cursor in Python code, read by lines and words: code that does not parse has names too.

It is for preferring names, not for ruling any out: a block is told by its indentation, and a binding by what stands
around a word. What is exact asks `symtable`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

MOST_CHARACTERS = 100_000
"""Before and after the cursor that are read: 30,000 take 5 ms."""

MOST_HEADER = 3_000
"""Characters of a definition's header."""

WORD = re.compile(r"[^\W\d]\w*")
HEADER = re.compile(r"[ \t]*(?:async[ \t]+)?(def|class)[ \t]+(\w+)")
CONDITIONAL = re.compile(r"(?:if|elif|else|try|except|finally|with|for|while)\b")
ATTRIBUTE = re.compile(r"\.([^\W\d]\w*)")
OWN = re.compile(r"\b(?:self|cls)\.(\w+)")
IMPORT = re.compile(r"(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+(\([^)]*\)|[^\n]*)")
INDENTED_IMPORT = re.compile(r"\n[ \t]+(?=from |import )")
TARGETS = re.compile(r"(\w+(?:[ \t]*,[ \t]*\*?\w+)*)[ \t]*(?::[^=]+)?=(?!=)")
DECLARED = re.compile(r"(?:global|nonlocal)[ \t]+([\w ,]+)")
WITHIN = {
    "for": re.compile(r"\bfor[ \t]+([\w \t,()*]{1,200}?)[ \t]+in\b"),
    " as ": re.compile(r"\bas[ \t]+(\w+)"),
    ":=": re.compile(r"(?<!\w)(\w++)[ \t]*:="),
    "lambda": re.compile(r"\blambda[ \t]+([\w \t,*=]{0,200}):"),
}
"""What binds names in the middle of a line, and what stands in each such line."""

RENAMED, SUBMODULE, COMMENT = (
    re.compile(r"(?<![\w.])[\w.]++[ \t]+as[ \t]+"),
    re.compile(r"(?<!\w)(\w++)(?:\.\w++)+"),
    re.compile(r"#[^\n]*"),
)
FIRST_PARAMETERS = frozenset({"self", "cls"})


class Words:
    """Words, to be asked whether one is among them, or whether one of them begins so."""

    def __init__(self, words: Iterable[str]) -> None:
        self._known = frozenset(words)
        self.sorted = sorted(self._known)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._known)

    def has(self, word: str, is_whole: bool) -> bool:
        """Whether a word is one of them, or the beginning of one where it is not ``is_whole``."""
        if is_whole or word in self._known:
            return word in self._known
        at = bisect_left(self.sorted, word)
        return at < len(self.sorted) and self.sorted[at].startswith(word)


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a definition takes.

    Attributes:
        names: Of its parameters, without the one that is the instance or the class.
    """

    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Scope:
    """The names around a cursor.

    Attributes:
        used: Bound in the innermost function, and standing elsewhere in it as well.
        unused: Bound there, and standing nowhere else in it.
        outer: Bound in functions around that one, or in the module.
        members: The attributes of the class around the cursor that some of its code has to do with.
        unused_members: Those that nothing of it loads.
        words: Of all that was read.
        attributes: The words after a dot, in all of that.
        function: The name of the innermost function; empty outside of any.
        text: What was read, without the cursor's line.
        above: Its lines above that one.
        below: Those below.
        level: The cursor's line's indentation.
        blocks: Those that it is in, the innermost first.
        local: What the innermost function binds, or the class.
        bound: What is bound around it.
    """

    used: Words
    unused: Words
    outer: Words
    members: Words
    unused_members: Words
    words: Words
    attributes: Words
    function: str
    text: str
    above: Sequence[str]
    below: Sequence[str]
    level: int
    blocks: Sequence[Block]
    local: frozenset[str]
    bound: frozenset[str]

    def attributes_of(self, receiver: str) -> Words:
        """The words that stand after a name and a dot."""
        return Words(re.findall(rf"\b{re.escape(receiver)}\.(\w+)", self.text))

    def parameters_of(self, name: str) -> list[str]:
        """The parameters of what is defined by a name: of a class those of its ``__init__``, or its annotated names."""
        found: list[str] = []
        for start, kind in self._definitions.get(name, ()):
            if kind == "def":
                found += parameters(self.text[start : start + MOST_HEADER])
            else:
                found += self._fields(start)
        return found

    @cached_property
    def _definitions(self) -> dict[str, list[tuple[int, str]]]:
        """Where definitions begin, by name, and of what kind they are."""
        found: dict[str, list[tuple[int, str]]] = {}
        for match in re.finditer(rf"^{HEADER.pattern}", self.text, re.MULTILINE):
            found.setdefault(match[2], []).append((match.start(), match[1]))
        return found

    def _fields(self, start: int) -> list[str]:
        """What a class that begins at a place is made of: the parameters of ``__init__``, or annotated names."""
        lines = self.text[start : start + MOST_HEADER].split("\n")
        level = indentation(lines[0])
        fields = []
        for at, line in enumerate(lines[1:], 1):
            if line.strip() and indentation(line) <= level:
                break
            if (made := HEADER.match(line)) is not None:
                if made[2] == "__init__":
                    return parameters("\n".join(lines[at:]))
            elif (field := re.match(r"[ \t]+(\w+)[ \t]*:[ \t]*[\w\"']", line)) is not None:
                fields.append(field[1])
        return fields


def indentation(line: str) -> int:
    """Blanks at a line's beginning."""
    return len(line) - len(line.lstrip(" \t"))


def bound_in(text: str) -> set[str]:
    """Names that some lines bind, wherever in them.

    >>> sorted(bound_in("for a, b in c:\\n    from d import e as f, g"))
    ['a', 'b', 'f', 'g']
    """
    found: set[str] = set()
    start = 0
    for line in text.split("\n"):
        code = line.lstrip(" \t")
        if code.startswith(("import", "from")):
            found |= imported(text, start + len(line) - len(code))
        elif (header := HEADER.match(code)) is not None:
            found.add(header[2])
        else:
            bound = (TARGETS.match(code) if "=" in code else None) or DECLARED.match(code)
            if bound is not None:
                found.update(WORD.findall(bound[1]))
        for mark, pattern in WITHIN.items():
            if mark in code:
                found.update(name for names in pattern.findall(code) for name in WORD.findall(names))
        start += len(line) + 1
    return found


def imported(text: str, start: int) -> set[str]:
    """Names that the import statement binds which begins there, if one does."""
    statement = IMPORT.match(text, start)
    names = "" if statement is None else COMMENT.sub("", statement[1])
    return set(WORD.findall(SUBMODULE.sub(r"\1", RENAMED.sub("", names))))


def parameters(header: str) -> list[str]:
    """The names of a definition's parameters, but for the instance or the class.

    >>> parameters("def f(self, a: dict[str, int] = {}, /, *b, c=(1, 2), **d) -> None:")
    ['a', 'b', 'c', 'd']
    """
    header = COMMENT.sub("", header)
    start = header.find("(")
    depth, pieces = 0, [""]
    for character in header[start:] if start >= 0 else "":
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        if depth == 0:
            break
        if character == "," and depth == 1:
            pieces.append("")
        else:
            pieces[-1] += character
    found = (re.match(r"[(\s*]*(\w*)", piece) for piece in pieces)
    names = [one[1] for one in found if one is not None and one[1]]
    return names[1:] if names and names[0] in FIRST_PARAMETERS else names


@dataclass(frozen=True, slots=True)
class Block:
    """A block that the cursor is in.

    Attributes:
        line: Its header's, of those above the cursor.
        kind: `def` or `class`.
        name: What the header defines.
        level: The header's indentation.
    """

    line: int
    kind: str
    name: str
    level: int


def enclosing(above: Sequence[str], level: int) -> Iterator[Block]:
    """The blocks of functions and classes around a line of some indentation, the innermost first."""
    for at in range(len(above) - 1, -1, -1):
        line = above[at]
        blank = indentation(line)
        if blank >= level or len(line) == blank or line[blank] in "#)]}":
            continue
        level = blank
        if (header := HEADER.match(line)) is not None:
            yield Block(at, header[1], header[2], blank)
        if level == 0:
            break


def body_of(block: Block, above: Sequence[str], below: Sequence[str]) -> str:
    """The lines of a block, its header among them."""
    end = 0
    for line in below:
        blank = indentation(line)
        if len(line) > blank and blank <= block.level and line[blank] not in "#)]}":
            break
        end += 1
    return "\n".join((*above[block.line :], *below[:end]))


def outside_of_blocks(text: str) -> str:
    """The lines of a module that are in no function and no class, as far as indentation tells."""
    found, conditional, importing = [], False, False
    for line in text.split("\n"):
        if importing:
            found.append(line)
            importing = ")" not in line
        elif line[:1] not in (" ", "\t", ""):
            conditional = CONDITIONAL.match(line) is not None
            importing = line.startswith(("from", "import")) and "(" in line and ")" not in line
            found.append(line)
        elif conditional:
            found.append(line)
    return "\n".join(found)


def scope_at(left: str, right: str) -> Scope:
    """The names around a cursor, the cursor's line left out.

    Args:
        left: The text up to the cursor.
        right: The text after it.
    """
    start, end = left.rfind("\n") + 1, right.find("\n")
    before = left[max(0, start - MOST_CHARACTERS) : start]
    after = right[end + 1 : end + 1 + MOST_CHARACTERS] if end >= 0 else ""
    text = f"{before}\n{after}"
    above, below = before.split("\n")[:-1], after.split("\n")
    level = indentation(left[start:])
    blocks = list(enclosing(above, level))
    function, local, uses = "", set[str](), Counter[str]()
    outer = bound_in(outside_of_blocks(text))
    for found in INDENTED_IMPORT.finditer(text) if "import" in text else ():
        outer |= imported(text, found.end())
    for number, block in enumerate(blocks):
        if block.kind != "def":
            continue
        body = body_of(block, above, below)
        header = "\n".join(above[block.line :])[:MOST_HEADER]
        bound = {*bound_in(body), *parameters(header), *FIRST_PARAMETERS.intersection(WORD.findall(header))}
        bound.discard(block.name)
        if number == 0:
            function, local, uses = block.name, bound, Counter(WORD.findall(body))
        else:
            outer |= bound
    used_members, unused_members = members(blocks, above, below)
    if blocks and blocks[0].kind == "class":
        local = bound_in(body_of(blocks[0], above, below)) | used_members | unused_members
        uses = Counter(dict.fromkeys(local, 2))
    unused = {name for name in local if uses[name] <= 1 and name not in FIRST_PARAMETERS}
    return Scope(
        Words(local - unused),
        Words(unused),
        Words(outer),
        Words(used_members - {function}),
        Words(unused_members - {function}),
        Words(WORD.findall(text)),
        Words(ATTRIBUTE.findall(text)),
        function,
        text,
        above,
        below,
        level,
        blocks,
        frozenset(local),
        frozenset(outer),
    )


def members(blocks: Sequence[Block], above: Sequence[str], below: Sequence[str]) -> tuple[set[str], set[str]]:
    """The attributes of the innermost class around a cursor: those that it has to do with, and those only defined."""
    for block in blocks:
        if block.kind == "class":
            break
    else:
        return set(), set()
    body = body_of(block, above, below)
    deeper = (indentation(line) for line in body.split("\n")[1:] if line.strip())
    level = min((blank for blank in deeper if blank > block.level), default=block.level + 4)
    inner = rf"^[ \t]{{{level}}}(?:(?:async[ \t]+)?def[ \t]+(\w+)|(\w+)[ \t]*[:=])"
    defined = {one or other for one, other in re.findall(inner, body, re.MULTILINE)}
    seen = set(OWN.findall(body))
    return seen, defined - seen
