"""Names that a file lacks, where an import or a definition is being written: they are what it is written for, mostly.

What is either, and what a file lacks, is the language's own: the module ``imports`` in its folder, where it has one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fim_server.server.names import module_of, own_names
from fim_server.server.project import key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.decoding.protocols import Advice
    from fim_server.server.project import Project
    from fim_server.server.work import Request

IMPORT_SHARE = 0.8
"""Of the probability of a name's tokens, what is for names that the file lacks."""

MOST_DEFINITIONS = 32


@dataclass(slots=True)
class ImportAdvice:
    """Advice that knows the names that something may bring, and asks another elsewhere.

    Attributes:
        typed: What of a name stands before the cursor.
        names: With weights whose sum is 1.
        others: What else is known.
    """

    typed: str
    names: Sequence[tuple[str, float]]
    others: Advice | None
    _mine: bool = field(default=False, init=False)

    def __call__(self, middle: str) -> Sequence[tuple[str, float]]:
        """What may come after a middle."""
        begun = self.typed + middle
        rests = [(name[len(begun) :], weight) for name, weight in self.names if name.startswith(begun)]
        self._mine = any(rest for rest, _ in rests)
        if self._mine:
            return [(rest, IMPORT_SHARE * weight) for rest, weight in rests if rest]
        return [] if self.others is None else self.others(middle)

    def share(self, weight: float, heaviest: float, certainty: float, probability: float) -> float:
        """What a token has of the probability: all of the weight, where it is one of these names'."""
        if self._mine or self.others is None:
            return weight
        return self.others.share(weight, heaviest, certainty, probability)


def with_imports(
    others: Advice | None, language: str, request: Request, project: Project | None, modules: Any = None
) -> Advice | None:
    """Advice that knows of imports and definitions that were begun as well; the other one alone where none was.

    ``modules``: what can be imported, as the language's module has it.
    """
    module = module_of(language, "imports")
    if module is None:
        return others
    split = request.split
    start, end = split.left.rfind("\n") + 1, split.right.find("\n")
    line = split.left[start:]
    source = split.left[:start] + ("" if end < 0 else split.right[end:])
    if module.begun(line) is None:
        defined = module.definable(line, source, split.left.count("\n", 0, start))
        return others if defined is None else ImportAdvice(defined[0], defined[1], others)
    own, known = own_names(language), project

    def definitions(names: Sequence[str]) -> list[tuple[str, str]]:
        if known is None or own is None:
            return []
        found = known.memory.related(key_of(request.uri), range(0), [], [], names, own.defining_words, MOST_DEFINITIONS)
        return [(one.name, one.key) for one in found if one.name is not None]

    brought = module.importable(line, source, definitions, modules)
    return others if brought is None else ImportAdvice(brought[0], brought[1], others)
