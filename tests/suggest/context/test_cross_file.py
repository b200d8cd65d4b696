"""Text of other files in the prompt: its choice, its order, and for how long it stays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fim_server.decoding.strategies.alternatives import prompt_of
from fim_server.language import Language
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.pace import Pace
from fim_server.models.project_context import ProjectContext
from fim_server.suggest.context import cross_file
from fim_server.suggest.context.cross_file import PLACE_LINES, CrossFile, choose, joined
from fim_server.suggest.context.prompts import KeptReadings, Prompts
from fim_server.suggest.job import Loaded
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.suggest.sources.project import Project
from fim_server.text.document import Split
from fim_server.workers.worker import CompletionWorker
from support.models.tiny_models import write_tiny_model

PYTHON = Language.load("python")
LEDGER = '''class Ledger:
    """Accounts."""

    def balance_of(
        self,
        account,
        year=None,
    ):
        total = self.start_of(year)
        for entry in self.entries_of(account):
            total += entry.amount
        return total
'''
LEFT = """from ledger import Ledger

def report(ledger, account):
    total = ledger.start_of(2024)
    for entry in ledger.entries_of(account):
        total += entry.amount
    print(ledger.balance_of(account), total)
    """
RIGHT = "\n\nreport(Ledger(), 1)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path, text in {
        "shop/money/ledger.py": LEDGER,
        "shop/other.json": '{"total": "entry", "amount": "account"}',
        "outside/ledger.py": LEDGER.replace("balance_of", "entries_of"),
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.fixture
def project(folder: Path) -> Iterator[Project]:
    project = Project()
    project.read([(folder / "shop").as_uri()], {".py": "python", ".json": "json"})
    assert project.memory.settle()
    yield project
    project.close()


@pytest.fixture
def ask(folder: Path, project: Project) -> Callable[..., Request]:
    def ask(left: str = LEFT, right: str = RIGHT, **settings: str | bool) -> Request:
        uri = (folder / "shop" / "here.py").as_uri()
        split = Split(left, right)
        project.opened(uri)
        project.send(uri, split)
        assert project.memory.settle()
        return Request(uri, split, "python", "", False, True, ServerSettings(**settings))  # type: ignore[arg-type]

    return ask


def test_definitions_come_before_similar_lines(project: Project, ask: Callable[..., Request]) -> None:
    context = choose(project, ask(), PYTHON)
    assert context is not None
    assert (context.repository, context.path, context.comment) == ("shop", "here.py", "# ")
    (path, definitions), *alike = context.excerpts
    assert path == "money/ledger.py"
    assert definitions == "def balance_of(self, account, year=None,):\nclass Ledger:"
    assert any("for entry in self.entries_of(account):" in text for _, text in alike)
    # Neither what is outside of the workspace nor another language's files.
    assert {path for path, _ in context.excerpts} == {"money/ledger.py"}
    assert not any("entries_of(" in text and "def " in text for _, text in context.excerpts)


def test_text_of_the_prompt_is_not_shown_twice(project: Project, ask: Callable[..., Request]) -> None:
    near = choose(project, ask(LEDGER + LEFT, RIGHT), PYTHON)
    assert near is None or all(path != "here.py" for path, _ in near.excerpts)
    far = "def far_away(value, unit): return value\n" + "x = [1, 2, 3]  # nothing\n" * 400
    context = choose(project, ask(far + LEFT + "y = far_away(1)\n    ", RIGHT), PYTHON)
    assert context is not None
    assert ("here.py", "def far_away(value, unit): return value") in context.excerpts


def test_the_choice_stays_while_typing_and_changes_elsewhere(
    project: Project, ask: Callable[..., Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    beyond = CrossFile()
    first = beyond.context(project, ask(), PYTHON)
    assert first is not None
    for typed in ("to", "total_", "total = Ledger()\n    ", "a\n" * (PLACE_LINES - 1)):
        assert beyond.context(project, ask(LEFT + typed), PYTHON) is first
    calls: list[Request] = []
    monkeypatch.setattr(cross_file, "choose", lambda project, request, language: calls.append(request))
    assert beyond.context(project, ask(LEFT + "a\n" * PLACE_LINES), PYTHON) is None
    assert len(calls) == 1


def test_an_empty_choice_is_searched_again(
    project: Project, ask: Callable[..., Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    beyond = CrossFile()
    found: list[ProjectContext | None] = [None, ProjectContext("", "here.py", (("a.py", "a"),))]
    monkeypatch.setattr(cross_file, "choose", lambda *asked: found.pop(0))
    assert beyond.context(project, ask(), PYTHON) is None
    assert beyond.context(project, ask(), PYTHON) is None
    monkeypatch.setattr(cross_file, "LOOK_AGAIN_SECONDS", -1)
    assert beyond.context(project, ask(), PYTHON) is not None


def test_headers_are_one_line() -> None:
    header = "    async def f(\n        self,\n        x=[\n            1,\n        ],\n    ) -> int:"
    assert joined(header, PYTHON.spelling.brackets) == "async def f(self, x=[1,],) -> int:"


# --- in prompts ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> FimModel:
    folder: Path = write_tiny_model(tmp_path_factory.mktemp("tiny") / "model", 32, window=2048)
    return load_model(str(folder), "cpu", "torch")


def test_prompts_begin_with_the_choice_and_keep_their_length(
    project: Project, model: FimModel, ask: Callable[..., Request]
) -> None:
    pace = Pace()
    pace.note(200, 1.0)
    prompts = Prompts(model, pace)
    request = ask("# a line to fill the prompt\n" * 400 + LEFT)
    context = choose(project, request, PYTHON)
    assert context is not None
    shown = prompts.options(request, 0, None, context)
    plain = prompts.options(request, 0, None)
    for factor in (1, 3):
        one, other = (replace(each, max_prompt_tokens=256 * factor) for each in (shown, plain))
        tokens, without = (prompt_of(model, request.split, each, False)[0] for each in (one, other))
        assert tokens != without
        assert len(tokens) <= 256 * factor
        front, head = context.ids(model.format, 64 * factor)
        assert 0 < len(front) + len(head) <= 64 * factor
        assert list(head) == tokens[(at := tokens.index(head[0])) : at + len(head)] or front
    # Read ahead, and then hardly anything is left to be read, in the short one and in the long one.
    read = prompts.read_ahead(request, request.split, shown, threading.Event(), False)
    assert read > 192
    typed = replace(request, split=replace(request.split, left=request.split.left + "to"))
    again = prompts.read_ahead(typed, typed.split, prompts.options(typed, 0, None, context), threading.Event(), False)
    assert again < 32


@pytest.mark.parametrize(("wanted", "shows"), [("on", True), ("off", False), ("auto", False)])
def test_the_setting_decides_about_other_files(
    project: Project, model: FimModel, ask: Callable[..., Request], wanted: str, shows: bool
) -> None:
    worker = CompletionWorker(ServerSettings(), project=project)
    completer = worker._thread_of("file:///a.py").completer
    language = ask().language()
    loaded = Loaded(model, Pace(), KeptReadings(model))
    context = completer.context._other_files(ask(project_context=wanted), loaded, language)
    assert (context is not None) == shows
    assert completer.context._other_files(ask(project_context=wanted, project_memory=False), loaded, language) is None
    worker.close()
