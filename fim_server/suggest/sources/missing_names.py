"""Undefined names of a document, preferred where the user writes an import, a definition or an assignment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fim_server.language_support.registry import support_of
from fim_server.suggest.constants import SOURCES
from fim_server.suggest.context.cursor import around, line_with
from fim_server.suggest.postprocess.identifiers import own_names, word_start
from fim_server.suggest.sources.project import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fim_server.decoding.protocols import ProjectBias
    from fim_server.language_support.protocol import Importable, NameScope
    from fim_server.suggest.request import Request
    from fim_server.suggest.sources.project import Project
    from fim_server.suggest.sources.scope_cache import ScopeCache
    from fim_server.text.document import Split

IMPORT_SHARE = SOURCES.import_share

MOST_DEFINITIONS = 32
"""Most definitions of other files that are looked up for an import."""

MOST_LINE = 4096
"""Longest line that is searched for each token, which takes 0.2 ms for 1,000 characters."""

NEAR = 1 << 14
"""Characters on each side of the cursor that are searched for the definition below a decorator."""


@dataclass(slots=True)
class BegunNameBias:
    """Bias for names after a construct that the user has begun; elsewhere another bias.

    Attributes:
        typed: The part of a name before the cursor.
        names: Names with weights, whose sum is 1.
        others: The other bias.
    """

    typed: str
    names: Sequence[tuple[str, float]]
    others: ProjectBias | None
    _mine: bool = field(default=False, init=False)

    def __call__(self, middle: str) -> Sequence[tuple[str, float]]:
        """Return texts that may follow a middle, with weights."""
        begun = self.typed + middle
        rests = [(name[len(begun) :], weight) for name, weight in self.names if name.startswith(begun)]
        self._mine = any(rest for rest, _ in rests)
        if self._mine:
            return [(rest, IMPORT_SHARE * weight) for rest, weight in rests if rest]
        return [] if self.others is None else self.others(middle)

    def share(self, weight: float, heaviest: float, certainty: float, probability: float) -> float:
        """Return a token's share of the probability: for one of these names its whole weight."""
        if self._mine or self.others is None:
            return weight
        return self.others.share(weight, heaviest, certainty, probability)


@dataclass(slots=True)
class LineBias:
    """Bias for a line in which an import, a definition or an assignment may begin; elsewhere another bias.

    Attributes:
        line: The cursor's line up to the cursor.
        brought: Returns undefined names with weights that the line brings after a beginning.
        others: The other bias.
        bound: Returns names that the line probably binds after a beginning.
    """

    line: str
    brought: Callable[[str], Sequence[tuple[str, float]]]
    others: ProjectBias | None
    bound: Callable[[str], Sequence[str]] = lambda line: ()
    _mine: bool = field(default=False, init=False)
    _binds: bool = field(default=False, init=False)
    _known: dict[str, Sequence[tuple[str, float]]] = field(default_factory=dict, init=False)

    def __call__(self, middle: str) -> Sequence[tuple[str, float]]:
        """Return texts that may follow a middle, with weights."""
        line = self.line + middle
        rests: list[tuple[str, float]] = []
        if "\n" not in middle and len(line) <= MOST_LINE:
            rests = self._rests(line)
            if not rests and not line[-1:].isspace():  # tokens begin with the blank before a name
                rests = [(f" {rest}", weight) for rest, weight in self._rests(f"{line} ")]
        self._mine, self._binds = bool(rests), False
        if rests:
            return rests
        predicted = [] if self.others is None else self.others(middle)
        if (
            "\n" in middle
            or len(line) > MOST_LINE
            or any(weight > SOURCES.lacking_certainty for _, weight in predicted)
        ):
            return predicted
        start = word_start(line, len(line))
        typed = line[start:]
        names = [name[len(typed) :] for name in self.bound(line[:start]) if name.startswith(typed) and name != typed]
        self._binds = bool(names)
        return [(name, 1 / len(names)) for name in names] or predicted

    def _rests(self, line: str) -> list[tuple[str, float]]:
        """Return the rests of the names that a line brings at its end. One lookup serves all letters of a name."""
        start = word_start(line, len(line))
        stem, typed = line[:start], line[start:]
        if stem not in self._known:
            self._known[stem] = self.brought(stem)
        names = [(name, weight) for name, weight in self._known[stem] if name.startswith(typed)]
        total = sum(weight for _, weight in names)
        return [(name[len(typed) :], IMPORT_SHARE * weight / total) for name, weight in names if name != typed]

    def share(self, weight: float, heaviest: float, certainty: float, probability: float) -> float:
        """Return a token's share of the probability. That of a name to bind falls with the model's certainty."""
        if self._binds:
            return weight * SOURCES.lacking_share * (1 - certainty * certainty)
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
    """Return a bias for undefined names where an import, definition or assignment begins; elsewhere the other bias.

    Args:
        others: The other bias, returned alone if the language has no support code.
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
    own = own_names(language)

    def definitions(names: Sequence[str]) -> list[tuple[str, str]]:
        if project is None or own is None:
            return []
        words, most = own.defining_words, MOST_DEFINITIONS
        found = project.memory.related(key_of(request.uri), range(0), [], [], names, words, most, language)
        return [(one.name, one.key) for one in found if one.name is not None]

    def brought(line: str) -> Sequence[tuple[str, float]]:
        return support.completions(line, source, above, definitions, modules)

    def bound(line: str) -> Sequence[str]:
        return () if scope is None else scope.bound_at(line)

    return LineBias(request.split.left[start:], brought, others, bound)


def is_needless_import(
    text: str, language: str, request: Request, project: Project | None, scopes: ScopeCache | None = None
) -> bool:
    """Return whether a suggestion's first line imports only modules that the file does not need, while it needs others.

    ``scopes``: tell which modules can be imported.
    """
    support, line = support_of(language), line_with(request.split, text)
    if support is None or not support.is_import(line.strip()):
        return False
    modules = None if scopes is None else scopes.modules(request, language, project)
    return support.is_needless(line, around(request.named)[1], modules)


def with_decorators(others: ProjectBias | None, language: str, split: Split) -> ProjectBias | None:
    """Return a bias for decorators that fit the definition below, if the cursor's line begins one, else the other bias.

    Args:
        others: The other bias.
        language: The language's name.
        split: The document, cut at the cursor.
    """
    support, end = support_of(language), split.right.find("\n")
    if support is None or end < 0 or split.right[:end].strip():
        return others
    start = split.left.rfind("\n") + 1
    above, below = split.left[max(0, start - NEAR) : start], split.right[end + 1 :][:NEAR]
    found = support.decorators(above, split.left[start:], below)
    return others if found is None else BegunNameBias(found[0], found[1], others)
