"""Names that exist are preferred while a model writes: what the language's own module makes of a cursor.

Which names there are at a cursor, and how much likelier they are for it, is the language's own: the module `preferring`
in its folder, where it has one, and `scopes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fim_server.language.limited_files import read_found
from fim_server.suggest.postprocess.identifiers import module_of, own_names
from fim_server.suggest.sources.project import key_of, path_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.decoding.protocols import Preference
    from fim_server.suggest.job import Request
    from fim_server.suggest.sources.project import Project

MOST_DEFINITIONS = 4
"""Of a name that are looked at."""

MOST_LOOKED_UP = 64
"""Names whose definitions are remembered for a line."""


class Preferences:
    """What is preferred at the cursors of a document. Used by one thread."""

    def __init__(self) -> None:
        self._around: tuple[str, str, str] | None = None
        self._scope: Any = None
        self._modules: Any = None
        self._looked_up: dict[str, Sequence[str]] = {}

    def modules(self, request: Request, language: str, project: Project | None) -> Any:
        """What can be imported where a request is made, as the language's module has it; None where nothing tells."""
        module, path = module_of(language, "preferring"), path_of(request.uri)
        if module is None or path is None or project is None:
            return None
        if self._modules is None or self._modules.folders != project.folders:
            self._modules = module.Modules(project.folders, read_found)
        return self._modules.at(path)

    def scope(self, request: Request, language: str) -> Any:
        """The names around a request's cursor, as the language's module has them; None where nothing is known."""
        module = module_of(language, "preferring")
        if module is None:
            return None
        split = request.named
        start, end = split.left.rfind("\n") + 1, split.right.find("\n")
        around = language, split.left[:start], "" if end < 0 else split.right[end:]
        if around != self._around or len(self._looked_up) > MOST_LOOKED_UP:
            # While somebody types in a line, all else stays as it is.
            self._scope = module.scope_at(split.left, split.right)
            self._around = around
            self._looked_up.clear()
        return self._scope

    def at(self, request: Request, language: str, project: Project | None) -> Preference | None:
        """What is preferred at a request's cursor; None where nothing is known of the language's names."""
        module = module_of(language, "preferring")
        scope = self.scope(request, language)
        if module is None or scope is None:
            return None
        own = own_names(language)

        def parameters(name: str) -> Sequence[str]:
            if project is None or own is None or not project.is_begun:
                return ()
            if name not in self._looked_up:
                found = project.memory.related(
                    key_of(request.uri), range(0), [], [], [name], own.defining_words, MOST_DEFINITIONS, language
                )
                headers = [one.text for one in found if one.name == name]
                self._looked_up[name] = [one for header in headers for one in module.parameters_of(header)]
            return self._looked_up[name]

        modules = self.modules(request, language, project)
        preference: Preference = module.Preference(request.split.left, scope, parameters, modules)
        return preference
