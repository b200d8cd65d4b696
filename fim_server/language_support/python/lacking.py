"""Names that Python code around a cursor loads and nothing binds: mostly the line that is missing there does.

Read by lines and words, as :mod:`.scopes`, so that a broken file lacks names as well, and a file without the first line
of a statement, which no parser reads, does too. It is for preferring names; what is exact is :mod:`.binding`.
"""

from __future__ import annotations

import builtins
import re
from collections import deque
from collections.abc import Callable, Sequence, Set
from functools import cached_property, lru_cache
from keyword import kwlist, softkwlist

from fim_server.language_support.python.scopes import (
    FIRST_PARAMETERS,
    MOST_HEADER,
    WORD,
    Block,
    Scope,
    Words,
    body_of,
    bound_in,
    indentation,
    parameters,
)

GIVEN = frozenset((*dir(builtins), *kwlist, *softkwlist, *FIRST_PARAMETERS, "__file__", "__name__", "__class__"))
"""Names that nothing need bind."""

NO_CODE = re.compile(
    r"""\#[^\n]* | (?P<prefix> (?<!\w) [rbuftRBUFT]{1,2} )?
    (?: \"{3} (?P<long> (?: [^\\] | \\. )*? ) (?: \"{3} | \Z )
      | '{3} (?P<other> (?: [^\\] | \\. )*? ) (?: '{3} | \Z )
      | " (?P<short> (?: [^"\\\n] | \\. )* ) (?: " | $ )
      | ' (?P<last> (?: [^'\\\n] | \\. )* ) (?: ' | $ ) )""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
"""Comments and strings."""
TEXTS = '"""', "'''"

FIELD = re.compile(r"\{\{|\{([^{}!:]*)")
LOADED = re.compile(r"(?<![\w.])([^\W\d]\w*)\b(?![ \t]*=(?!=))")
LONE = re.compile(r"(?<![\w.])\w+(?![\w.])")
CHAINED = re.compile(r"[=;:][ \t]*(\w+)(?=[ \t]*=(?!=))")
IN_BRACKETS = re.compile(
    r"^([\w., \t*]{0,200}(?<![\w)\]])[(\[][\w\s,*()]{1,500}[)\]][\w., \t*()]{0,200})=(?!=)"
    r"|\bfor\b([\w\s,*()]{1,200}?)\sin\b|\bas[ \t]+\(([\w\s,*()]{1,200})\)",
    re.MULTILINE,
)
"""Targets that stand in brackets, or on several lines."""
MIXED = re.compile(
    r"^([\w., \t*]{1,500})=(?!=)|^[\w., \t*]{0,200}[)\]]([\w., \t*]{1,200})=(?!=)"
    r"|^[\w., \t*]{0,200}[(\[][^()\[\]\n]{0,200}[)\]]([\w., \t*]{1,200})=(?!=)",
    re.MULTILINE,
)
"""Targets with attributes or elements among them."""
ANNOTATED = re.compile(r"^[ \t]*(\w+)[ \t]*:(?!=)[ \t]*\S", re.MULTILINE)
LAMBDA = re.compile(r"\blambda\b([^:\n]{0,200}(?:\\\n[^:\n]{0,200})?):")
IMPORTS = re.compile(r"^[ \t]*(?:from|import)\b(?:[^\n(]*\([^)]{0,3000}\))?[^\n]*", re.MULTILINE)
INNER = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+\w+[ \t]*([(\[](?:[^()]|\([^()]{0,80}\)){0,500})", re.MULTILINE)
FIRST_WORD = re.compile(r"[(\[,][\s*]*(\w+)")
CASE = re.compile(r"^[ \t]*case\b[^\n]*", re.MULTILINE)
IN_CLASS = re.compile(r"^[ \t]+(?:self\.|cls\.)?(\w+)[ \t]*[:=,]", re.MULTILINE)

TARGETS = re.compile(r"[ \t]*(?:\w+[ \t]*,[ \t]*)*\Z")
BINDING = re.compile(r"[ \t]*(?:async[ \t]+)?(?:for|(?:with|except)\b[^\n]*\bas)[ \t]+(?:\w+[ \t]*,[ \t]*)*\Z")
"""What a line begins with before the name of a target."""

MOST_NAMES = 16
"""Names that a line may bind; where more are lacking there is hardly one that it is."""

TAKES_ALL = re.compile(r"\bimport[ \t]+\*")


class Lacking:
    """What the code around a cursor lacks.

    Each is looked for once it is asked for: that reads the innermost function, or in none the whole text.
    """

    def __init__(self, scope: Scope) -> None:
        """What is lacking where those are the names."""
        self._scope = scope
        self._takes_all = TAKES_ALL.search(scope.text) is not None

    @cached_property
    def names(self) -> Words:
        """What is loaded below, in the innermost function; in none constants, in a class those that are loaded of it.

        Nothing that begins with a capital in a function, and no others in a module: these are imported or defined.
        """
        scope = self._scope
        if self._takes_all:
            return Words(())
        block = scope.blocks[0] if scope.blocks else None
        if block is None:
            return Words(lacked(scope.text, scope.text, set(), str.isupper))
        if block.kind == "class":
            return Words(class_constants(block, scope))
        bound = scope.bound.union(parameters("\n".join(scope.above[block.line :])[:MOST_HEADER]))
        body = body_of(block, scope.above, scope.below)
        return Words(lacked(body_of(block, (), scope.below), body, bound, is_local))

    @cached_property
    def targets(self) -> Words:
        """Those of the names that the cursor's line may begin with: none where a header or no statement begins."""
        return self.names if self.names and not self.is_header and self.is_statement else Words(())

    @cached_property
    def parameters(self) -> Words:
        """What the lines below load that are indented more than the cursor's: the body of what it begins."""
        scope = self._scope
        body = body_of(Block(0, "def", "", scope.level), (), scope.below)
        return Words(() if self._takes_all else lacked(body, body, scope.bound | scope.local, is_local))

    @cached_property
    def is_statement(self) -> bool:
        """Whether a statement may begin with the cursor's line: it is in no bracket."""
        above = self._scope.above
        first = next((block.line for block in self._scope.blocks), None)
        if first is None:
            starts = (at for at in range(len(above) - 1, -1, -1) if above[at][:1] not in ("", " ", "\t", *"#)]}\"'"))
            first = next(starts, 0)
        text = "\n".join(above[first:])
        code = code_of(text)
        return (
            not ends_in_text(text)
            and not code.endswith("\\")
            and sum(map(code.count, "([{")) <= sum(map(code.count, ")]}"))
        )

    @cached_property
    def is_header(self) -> bool:
        """Whether the lines below are a block that wants a header above: not the rest of what a bracket opens."""
        scope = self._scope
        lines = [line for line in scope.below if line.strip()]
        if not lines or indentation(lines[0]) <= scope.level:
            return False
        after = next((line for line in lines if indentation(line) <= scope.level), "")
        return not after.lstrip().startswith((")", "]", "}"))


def bound_at(line: str, scope: Scope) -> Sequence[str]:
    """The names that the cursor's line is likely to bind where so much of it is written; none where it binds none.

    Args:
        line: Its beginning, up to a name.
        scope: The names around the cursor.
    """
    begins = TARGETS.match(line) is not None and indentation(line) == scope.level
    if not (begins or BINDING.match(line)):
        return []
    lacking, words = lacking_of(scope), WORD.findall(line)
    names = lacking.targets if begins else lacking.names
    if not names or not lacking.is_statement:
        return []
    return [name for name in names.sorted if name not in words][:MOST_NAMES]


@lru_cache(maxsize=4)
def lacking_of(scope: Scope) -> Lacking:
    """What is lacking where those are the names: the same while somebody types in a line."""
    return Lacking(scope)


def class_constants(block: Block, scope: Scope) -> set[str]:
    """The constants that are loaded of a class, by its name or its instance, and that its body does not bind."""
    body = body_of(block, scope.above, scope.below)
    loaded = re.findall(rf"\b(?:self|cls|{re.escape(block.name)})\.([A-Z_][A-Z0-9_]*)\b", code_of(scope.text))
    return set(filter(str.isupper, loaded)).difference(IN_CLASS.findall(body))


def is_local(name: str) -> bool:
    """Whether a name is one of a function, not of a class or a constant."""
    return not name[0].isupper()


def lacked(code: str, body: str, bound: Set[str], counts: Callable[[str], bool]) -> set[str]:
    """The names that some code loads and neither the body that it is in nor anything around that binds.

    ``counts``: of which of them that is asked.
    """
    loaded = set(filter(counts, LOADED.findall(IMPORTS.sub("", code_of(code))))) - GIVEN - bound
    if loaded:
        body = code_of(body)
        loaded -= bound_in(body)
    if not loaded:
        return loaded
    return loaded - bound_otherwise(body) - inner_parameters(body)


def bound_otherwise(code: str) -> set[str]:
    """The names that code without texts binds in ways that :func:`.bound_in` does not see.

    Several equals signs, brackets, attributes and elements beside names, annotations, lambdas and cases. Some that are
    not bound are among them, such as an index.
    """
    found = set(CHAINED.findall(code))
    for pair in IN_BRACKETS.findall(code):
        found.update(WORD.findall(" ".join(pair)))
    for targets in MIXED.findall(code):
        found.update(LONE.findall(" ".join(targets)))
    found.update(ANNOTATED.findall(code))
    for names in LAMBDA.findall(code):
        found.update(WORD.findall(names))
    for case in CASE.findall(code):
        found.update(WORD.findall(case))
    return found


def inner_parameters(body: str) -> set[str]:
    """The parameters of the functions that are defined in a body."""
    return {name for header in INNER.findall(body) for name in FIRST_WORD.findall(header)}


def code_of(text: str) -> str:
    """A text without its comments and strings; of formatted ones the fields are left."""
    return NO_CODE.sub(fields_of, text)


def ends_in_text(text: str) -> bool:
    """Whether code ends within a string of several lines."""
    found = deque(NO_CODE.finditer(text), maxlen=1)
    last = found[0] if found else None
    if last is None or last.end() < len(text) or last[0].startswith("#"):
        return False
    mark = last[0][len(last["prefix"] or "") :]
    return mark.startswith(TEXTS) and (len(mark) < 2 * len(TEXTS[0]) or not mark.endswith(mark[:3]))


def fields_of(match: re.Match[str]) -> str:
    """What is left of a comment or a string."""
    if "f" not in (match["prefix"] or "").lower():
        return "" if match[0].startswith("#") else "0"
    inside = match["long"] or match["other"] or match["short"] or match["last"] or ""
    fields = (NO_CODE.sub("0", field) for field in FIELD.findall(inside) if field)
    return f"({', '.join(fields)})"
