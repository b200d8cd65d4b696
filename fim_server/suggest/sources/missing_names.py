"""Undefined names of a document, preferred where the user writes an import, a definition or an assignment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fim_server.language_support.registry import support_of
from fim_server.suggest.postprocess.identifiers import own_names, word_start
from fim_server.suggest.ranking.red_flags import (
    DEFINED_AGAIN,
    LOADS_UNKNOWN,
    NO_DOUBT,
    Doubt,
    begins_near,
    defined_again,
    loads_unknown,
    said_again,
    stands_near,
)
from fim_server.suggest.sources.project import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fim_server.decoding.protocols import ProjectBias
    from fim_server.language.spelling import Spelling
    from fim_server.language_support.protocol import Importable, NameScope
    from fim_server.suggest.job import Request
    from fim_server.suggest.sources.project import Project
    from fim_server.suggest.sources.scope_cache import Preferences
    from fim_server.text.document import Split

IMPORT_SHARE = 0.8
"""Of the probability of a name's tokens, what is for names that the file lacks."""

LACKING_SHARE, SURE = 0.3, 0.5
"""Of the probability of a line's first tokens, what is at most for names that the code below loads and nothing binds:
the less, the surer the model is of another. None where the project's memory is sure of something by so much."""

MOST_DEFINITIONS = 32

MOST_LINE = 4096
"""Characters of a line that is looked at: that is done for each token, and takes 0.2 ms for 1,000."""


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
    others: ProjectBias | None
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


@dataclass(slots=True)
class LineAdvice:
    """Advice for a line in which an import or a definition may yet begin: what is written says when.

    Attributes:
        line: The cursor's, up to it.
        brought: Returns names with weights for a line's beginning that ends before a name.
        others: What else is known.
        bound: For such a beginning, names that the line is likely to bind there.
    """

    line: str
    brought: Callable[[str], Sequence[tuple[str, float]]]
    others: ProjectBias | None
    bound: Callable[[str], Sequence[str]] = lambda line: ()
    _mine: bool = field(default=False, init=False)
    _binds: bool = field(default=False, init=False)
    _known: dict[str, Sequence[tuple[str, float]]] = field(default_factory=dict, init=False)

    def __call__(self, middle: str) -> Sequence[tuple[str, float]]:
        """What may come after a middle."""
        line = self.line + middle
        rests: list[tuple[str, float]] = []
        if "\n" not in middle and len(line) <= MOST_LINE:
            rests = self._rests(line)
            if not rests and not line[-1:].isspace():  # tokens begin with the blank before a name
                rests = [(f" {rest}", weight) for rest, weight in self._rests(f"{line} ")]
        self._mine, self._binds = bool(rests), False
        if rests:
            return rests
        foretold = [] if self.others is None else self.others(middle)
        if "\n" in middle or len(line) > MOST_LINE or any(weight > SURE for _, weight in foretold):
            return foretold
        start = word_start(line, len(line))
        typed = line[start:]
        names = [name[len(typed) :] for name in self.bound(line[:start]) if name.startswith(typed) and name != typed]
        self._binds = bool(names)
        return [(name, 1 / len(names)) for name in names] or foretold

    def _rests(self, line: str) -> list[tuple[str, float]]:
        """What is left of the names that may come where a line ends: looked for once for all letters of a name."""
        start = word_start(line, len(line))
        stem, typed = line[:start], line[start:]
        if stem not in self._known:
            self._known[stem] = self.brought(stem)
        names = [(name, weight) for name, weight in self._known[stem] if name.startswith(typed)]
        total = sum(weight for _, weight in names)
        return [(name[len(typed) :], IMPORT_SHARE * weight / total) for name, weight in names if name != typed]

    def share(self, weight: float, heaviest: float, certainty: float, probability: float) -> float:
        """As :meth:`ImportAdvice.share`; of names to bind the less, the surer the model is."""
        if self._binds:
            return weight * LACKING_SHARE * (1 - certainty * certainty)
        if self._mine or self.others is None:
            return weight
        return self.others.share(weight, heaviest, certainty, probability)


def with_imports(
    others: ProjectBias | None,
    language: str,
    request: Request,
    project: Project | None,
    modules: Importable | None = None,
    scope: NameScope | None = None,
) -> ProjectBias | None:
    """Return advice that adds undefined names to other advice, where an import, definition or assignment begins.

    Args:
        others: The other advice, returned alone if the language has no support code.
        language: The language's name.
        request: The request.
        project: The project, whose other files define names.
        modules: The modules that can be imported.
        scope: The names around the cursor.
    """
    support = support_of(language)
    if support is None:
        return others
    start, source, above = around(request.named)
    own, known = own_names(language), project

    def definitions(names: Sequence[str]) -> list[tuple[str, str]]:
        if known is None or own is None:
            return []
        words, most = own.defining_words, MOST_DEFINITIONS
        found = known.memory.related(key_of(request.uri), range(0), [], [], names, words, most, language)
        return [(one.name, one.key) for one in found if one.name is not None]

    def brought(line: str) -> Sequence[tuple[str, float]]:
        return support.completions(line, source, above, definitions, modules)

    def bound(line: str) -> Sequence[str]:
        return () if scope is None else scope.bound_at(line)

    return LineAdvice(request.split.left[start:], brought, others, bound)


def is_needless_import(
    text: str, language: str, request: Request, project: Project | None, preferences: Preferences | None = None
) -> bool:
    """Return whether a suggestion's first line imports only modules that the file does not need, while it needs others.

    ``preferences``: tells which modules can be imported.
    """
    support, line = support_of(language), first_line(request.split, text)
    if support is None or not support.is_import(line.strip()):
        return False
    modules = None if preferences is None else preferences.modules(request, language, project)
    return support.is_needless(line, around(request.named)[1], modules)


def doubt_of(
    language: str,
    spelling: Spelling,
    split: Split,
    text: str,
    unknown: Sequence[int] = (),
    scope: NameScope | None = None,
) -> Doubt:
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
        return Doubt(end, DEFINED_AGAIN, is_repeat=True)
    line, end = first_line(split, text), len(text.partition("\n")[0])
    imports = support is not None and support.is_import(line)
    if imports and support is not None and support.imports_again(line, around(split)[1]):
        return Doubt(end, DEFINED_AGAIN, is_repeat=True)
    loaded = 0 if own is None else loads_unknown(own, spelling, line[: len(line) - end], text, unknown)
    if loaded:
        return Doubt(loaded, LOADS_UNKNOWN, of_name=True)
    unbound = None if scope is None else scope.unbound_load(split.left, split.right, text)
    if unbound is not None:
        return Doubt(unbound, LOADS_UNKNOWN, of_name=True)
    member = None if support is None else support.unknown_member(split.left, split.right, text)
    if member is not None:
        return Doubt(member[0] + 1, LOADS_UNKNOWN, member[1])
    if not text.partition("\n")[0].strip():
        return NO_DOUBT  # what stands in the line is somebody's own
    all_of_it = stands_near(spelling, split, text)
    again = all_of_it or (not imports and begins_near(spelling, split, text))
    return said_again(split, text, all_of_it) if again else NO_DOUBT


def first_line(split: Split, text: str) -> str:
    """The cursor's line up to it, and what of it a suggestion writes."""
    return split.left[split.left.rfind("\n") + 1 :] + text.partition("\n")[0]


def around(split: Split) -> tuple[int, str, int]:
    """Where the cursor's line begins, the document without that line, and how many of its lines stand above."""
    start, end = split.left.rfind("\n") + 1, split.right.find("\n")
    source = split.left[:start] + ("" if end < 0 else split.right[end:])
    return start, source, split.left.count("\n", 0, start)
