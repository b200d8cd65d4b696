"""Words of a suggestion that neither the document nor the project has."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from fim_server.decoding.results import Completion, StopReason, Won, Written
from fim_server.language import Language
from fim_server.suggest.context.sessions import DocumentSessions
from fim_server.suggest.postprocess.stage import Postprocess
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.suggest.sources.project import Project
from fim_server.suggest.sources.scope_cache import ScopeCache
from fim_server.suggest.suggestion import Suggestion
from fim_server.text.document import Split

SPLIT = Split("int f(int total) {\n  return ", "\n}\n")
TEXT = "length(total, other);"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    (tmp_path / "length.c").write_text("int length(int x) {\n  return x;\n}\n")
    (tmp_path / "here.c").write_text(f"{SPLIT.left}{TEXT}{SPLIT.right}")
    project = Project()
    project.read([tmp_path.as_uri()], {".c": "c", ".py": "python"})
    assert project.memory.settle()
    yield project
    project.close()


def request_at(folder: Path, project_memory: bool = True) -> Request:
    path, settings = folder / "here.c", ServerSettings(project_memory=project_memory)
    return Request(path.as_uri(), SPLIT, "c", str(path), False, True, settings)


def new_words(project: Project | None, request: Request) -> list[str]:
    """Return the beginnings of the text that end with a new word."""
    language = Language.load(request.language_id)
    opened = DocumentSessions().open(request.uri, language, request.split)
    completion = Completion(
        TEXT, opened.guarantee, StopReason.END_TOKEN, None, won=Won.END_TOKEN, written=(Written(len(TEXT), 0.9),)
    )
    found = Postprocess(count(1), ScopeCache(), project).suggestion(completion, request, opened, language)
    assert isinstance(found, Suggestion)
    return [TEXT[:end] for end in found.likelihoods.new_words]


def test_a_word_of_the_projects_other_files_is_not_new(project: Project, tmp_path: Path) -> None:
    asked = request_at(tmp_path)
    assert new_words(None, asked) == ["length", "length(total, other"]
    assert new_words(project, asked) == ["length(total, other"]  # the document's own file does not count
    assert new_words(project, request_at(tmp_path, project_memory=False)) == ["length", "length(total, other"]
    (tmp_path / "length.c").unlink()
    project.read([tmp_path.as_uri()], {".c": "c"})
    assert project.memory.settle()
    assert new_words(project, asked) == ["length", "length(total, other"]
