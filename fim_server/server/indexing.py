"""Which of the workspace's files are read into the project's memory."""

from __future__ import annotations

from fim_server.language import Language
from fim_server.server.language_server import FimLanguageServer


def read_project(ls: FimLanguageServer) -> None:
    """Read the workspace's files in the background, those that have changed; forget them where they are not wanted."""
    if not ls.settings.project_memory:
        if ls.project.is_begun:
            ls.project.clear()
        return
    if ls.settings.enabled:
        folders = [folder.uri for folder in ls.workspace.folders.values()]
        if not folders and not ls.folders_changed:
            folders = [ls.workspace.root_uri or ""]
        languages = [name for name in Language.names() if ls.settings.remembers(name, ls.learnt)]
        ls.project.read(folders, [suffix for name in languages for suffix in Language.suffixes_of(name)])
