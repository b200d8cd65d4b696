"""Second stage: biases from the project's memory and from the names around the cursor, and recalled suggestions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fim_server.suggest.sources.missing_names import with_decorators, with_imports
from fim_server.suggest.sources.project_suggestions import ProjectSuggestions
from fim_server.suggest.sources.scope_cache import ScopeCache

if TYPE_CHECKING:
    from fim_server.decoding.protocols import Drafts, NameBias, ProjectBias
    from fim_server.language import Language
    from fim_server.suggest.postprocess.stage import Postprocess
    from fim_server.suggest.request import Request
    from fim_server.suggest.sources.project import Project


class Sources:
    """Sources of suggestions and biases beside the model, for one document. Used by its thread alone."""

    def __init__(self, project: Project | None, scopes: ScopeCache, postprocess: Postprocess) -> None:
        self._project = project
        self._scopes = scopes
        self.project = ProjectSuggestions(project, postprocess, scopes)

    def project_bias(self, request: Request, language: Language) -> ProjectBias | None:
        """Return the bias from the project's memory and from the names that the file lacks."""
        project = self._project if request.settings.project_memory else None
        bias: ProjectBias | None = None
        if project is not None:
            project.send(request.uri, request.remembered, language.name)
            bias = project.bias(request.uri, request.split.left, language.name)
        if request.settings.names == "off":
            return bias
        modules = self._scopes.modules(request, language.name, project)
        scope = self._scopes.scope(request, language.name)
        bias = with_imports(bias, language.name, request, project, modules, scope)
        return with_decorators(bias, language.name, request.split)

    def name_bias(self, request: Request, language: Language, inside: str | None) -> NameBias | None:
        """Return the bias for names that exist; ``inside``: the kind of text around the cursor."""
        if request.settings.names == "off" or inside is not None:
            return None
        project = self._project if request.settings.project_memory else None
        return self._scopes.at(request, language.name, project)

    def drafts(self, request: Request, language: Language) -> Drafts | None:
        """Return the drafts of the project's memory, which the model checks several tokens at a time."""
        if self._project is None or not request.settings.project_memory:
            return None
        return self._project.drafts(request.uri, request.split.left, language.name)
