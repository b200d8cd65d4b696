"""Names around the cursors of a document, kept while the user types in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fim_server.language.limited_files import read_found
from fim_server.language_support.registry import support_of
from fim_server.memory.ignoring import is_secret
from fim_server.suggest.postprocess.identifiers import own_names
from fim_server.suggest.sources.project import key_of, path_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fim_server.decoding.protocols import NameBias
    from fim_server.language_support.protocol import Importable, Modules, NameScope, ReadFile
    from fim_server.suggest.request import Request
    from fim_server.suggest.sources.project import Project

MOST_DEFINITIONS = 4
"""Definitions of a name in other files that are read."""

MOST_LOOKED_UP = 64
"""Names whose definitions are kept for a line."""

LIBRARIES = "site-packages"
"""Folder of published modules, which hold no secrets of the user."""


class ScopeCache:
    """Names around the cursors of a document. Used by one thread."""

    def __init__(self) -> None:
        self._around: tuple[str, str, str] | None = None
        self._scope: NameScope | None = None
        self._modules: Modules | None = None
        self._secret: tuple[str, ...] = ()
        self._looked_up: dict[str, Sequence[str]] = {}

    def modules(self, request: Request, language: str, project: Project | None) -> Importable | None:
        """Return the modules that a request's file can import; None if they are unknown."""
        support, path = support_of(language), path_of(request.uri)
        if support is None or path is None or project is None:
            return None
        secret = request.settings.secret_files
        if self._modules is None or self._modules.folders != project.folders or self._secret != secret:
            self._modules = support.modules(project.folders, reader_without(secret, project.folders))
            self._secret = secret
        return self._modules.at(path)

    def scope(self, request: Request, language: str) -> NameScope | None:
        """Return the names around a request's cursor; None if the language has no support code."""
        support = support_of(language)
        if support is None:
            return None
        split = request.named
        start, end = split.left.rfind("\n") + 1, split.right.find("\n")
        around = language, split.left[:start], "" if end < 0 else split.right[end:]
        if around != self._around or len(self._looked_up) > MOST_LOOKED_UP:
            self._scope = support.scope_at(split.left, split.right)
            self._around = around
            self._looked_up.clear()
        return self._scope

    def at(self, request: Request, language: str, project: Project | None) -> NameBias | None:
        """Return the preference for names at a request's cursor; None if the language has no support code."""
        support, scope, own = support_of(language), self.scope(request, language), own_names(language)
        if support is None or scope is None:
            return None

        def parameters(name: str) -> Sequence[str]:
            if project is None or own is None or not project.is_begun:
                return ()
            if name not in self._looked_up:
                found = project.memory.related(
                    key_of(request.uri), range(0), [], [], [name], own.defining_words, MOST_DEFINITIONS, language
                )
                headers = [one.text for one in found if one.name == name]
                self._looked_up[name] = [one for header in headers for one in support.parameters_of(header)]
            return self._looked_up[name]

        return scope.preference(request.split.left, parameters, self.modules(request, language, project))


def reader_without(secret: tuple[str, ...], folders: Sequence[Path]) -> ReadFile:
    """Return a reader of modules that raises PermissionError for files of secrets. ``secret``: the user's globs."""

    def read(path: Path, most: int, folder: Path) -> bytes:
        if LIBRARIES not in path.parts and is_secret(path, folders, secret):
            raise PermissionError(f"{path.name} may hold secrets")
        return read_found(path, most, folder)

    return read
