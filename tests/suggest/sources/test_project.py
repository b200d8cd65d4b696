"""Project's memory in the server: recalled suggestions, biases and drafts."""

from __future__ import annotations

import asyncio
import random
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types

from fim_server import server
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.strategies.alternatives import complete_session
from fim_server.language import Language, Stop
from fim_server.language_support.python.model import unbound
from fim_server.memory.belief import FITTED
from fim_server.memory.features import NAMES
from fim_server.memory.memory import Memory
from fim_server.memory.weights import Weights
from fim_server.models.load import load_model
from fim_server.server.handlers import files
from fim_server.suggest.context.sessions import DocumentSessions, Opened
from fim_server.suggest.job import PromptTokens
from fim_server.suggest.pipeline import Completer
from fim_server.suggest.postprocess import identifiers
from fim_server.suggest.postprocess.ends import cuts_of_lines
from fim_server.suggest.ranking.display import shown, worth
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.suggest.sources import project_suggestions
from fim_server.suggest.sources.project import LEAST_CHARACTERS, LINES_CONFIDENCE, Project, key_of, path_of
from fim_server.suggest.suggestion import Suggestion
from fim_server.text.document import Split
from fim_server.workers.worker import CompletionWorker
from support.editors.connected import Connected
from support.editors.editor import (
    AUTOMATIC,
    INVOKED,
    SETTINGS,
    Client,
    Editor,
    Wire,
    assert_parses,
    capabilities,
    serving,
    written,
)
from support.editors.watched import until

ELSEWHERE = """
def report_totals(ledger, stream):
    for account in ledger.accounts:
        stream.write(account.name, account.balance_of_year)
        ledger.note_written(account)
"""
HERE = "def other(ledger, stream):\n    for account in ledger.accounts:\n        \n\n\nprint(other)\n"
AT = HERE.index("        \n") + 8
NOTED = "ledger.note_written(account)"
LINE = "stream.write(account.name, account.balance_of_year)"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    (tmp_path / "report.py").write_text(ELSEWHERE)
    project = Project()
    yield project
    project.close()


def sent(project: Project, uri: str, text: str, at: int) -> Split:
    split = Split(text[:at], text[at:])
    project.opened(uri)
    project.send(uri, split, "python" if path_of(uri) is None else "")
    assert project.memory.settle()
    return split


def test_keys_are_paths_of_files_and_uris_of_other_documents() -> None:
    assert path_of("file:///a%20b/c.py") == Path("/a b/c.py")
    assert key_of("file:///a%20b/c.py") == "/a b/c.py"
    assert path_of("untitled:Untitled-1") is None
    assert key_of("untitled:Untitled-1") == "untitled:Untitled-1"


def test_lines_of_project_files_are_recalled(project: Project, tmp_path: Path) -> None:
    uri = (tmp_path / "here.py").as_uri()
    split = sent(project, uri, HERE, AT)
    assert LINE not in [one.completion.text for one in project.recall(uri, split, "exact")]
    project.read([tmp_path.as_uri()], {".py": "python"})
    assert project.memory.settle()
    best = project.recall(uri, split, "exact")[0]
    assert best.completion.text == LINE
    assert best.completion.written[-1].end == len(LINE)
    assert all(0 <= token.probability <= 1 for token in best.completion.written)


@pytest.fixture
def certain(tmp_path: Path) -> Iterator[Project]:
    """A project with high confidence in all recalled lines."""
    sure, never = (30.0, *[0.0] * (len(NAMES) - 1)), (30.0, 0.0)
    project = Project(Memory(weights=Weights(sure, sure, never)))
    (tmp_path / "report.py").write_text(ELSEWHERE)
    project.read([tmp_path.as_uri()], {".py": "python"})
    yield project
    project.close()


@pytest.mark.parametrize(
    ("below", "expected"),
    [
        ("\n\n\nprint(other)\n", f"{LINE}\n        {NOTED}"),
        (f"\n        {NOTED}\n", LINE),  # which stands there already
    ],
)
def test_lines_of_the_project_are_recalled_together(
    certain: Project, tmp_path: Path, below: str, expected: str
) -> None:
    uri = (tmp_path / "here.py").as_uri()
    split = sent(certain, uri, HERE[:AT] + below, AT)
    several, one = (certain.recall(uri, split, "exact", lines)[0].completion for lines in (True, False))
    assert (several.text, one.text) == (expected, LINE)
    assert several.written[-1].end == len(expected)


def test_the_model_writes_beside_recalled_suggestions(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both share one lookup; another request makes its own."""
    project.read([tmp_path.as_uri()], {".py": "python"})
    uri = (tmp_path / "here.py").as_uri()
    split = sent(project, uri, HERE, AT)
    settings = ServerSettings(model="embedded", prefetch=False, deadline_ms=None, prompt_tokens=64, min_confidence=0.0)
    asked = Request(uri, split, "python", "here.py", True, True, settings)
    recall, count = Project.recall, []

    def counted(self: Project, *arguments: Any) -> Any:
        count.append(arguments)
        return recall(self, *arguments)

    monkeypatch.setattr(Project, "recall", counted)
    worker = CompletionWorker(settings, project=project)
    worker.load().result()
    texts, calls = [], []
    for request, before in ((asked, True), (replace(asked), False), (replace(asked), True)):
        if before and (recalling := worker.recall(request)) is not None:
            recalling.future.result()
        work = worker.submit(request).future.result()
        assert work is not None
        texts.append([suggestion.text for suggestion in work.answer.suggestions])
        calls.append(len(count))
    worker.close()
    assert calls == [1, 2, 3]
    assert texts[0] == texts[1] == texts[2]
    assert LINE in texts[0]


@pytest.mark.parametrize(
    ("ask_model", "least", "invoked", "made_share"),
    [(False, 0.45, False, 0.5), (False, 0.1, False, 0.5), (True, 0.45, False, 0.5), (False, 0.45, True, 1.0)],
)
def test_only_recalled_texts_that_may_be_shown_become_suggestions(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    ask_model: bool,
    least: float,
    invoked: bool,
    made_share: float,
) -> None:
    """The plain twin makes suggestions of all continuations before it tests which may be shown."""
    monkeypatch.setattr(project_suggestions, "RECALL_CONFIDENCE", 0.3)  # lines of one folder reach it, too
    folder = Path(server.__file__).parent.parent / "decoding" / "strategies"
    project.read([folder.as_uri()], {".py": "python"})
    text = (folder.parent / "concurrent_prefill.py").read_text(encoding="utf-8")
    settings = ServerSettings(ask_model=ask_model, min_confidence=least, alternatives=3)
    draw, made, found = random.Random(3), Counter[str](), Counter[str]()

    def completer(name: str) -> Completer:
        one = Completer(DocumentSessions(), PromptTokens(), count(1), lambda: True, project)
        make = one.postprocess.suggestion

        def counted(*arguments: Any) -> Any:
            made[name] += 1
            return make(*arguments)

        one.postprocess.suggestion = counted  # type: ignore[assignment, method-assign]
        return one

    quick, plain = completer("quick"), completer("plain")

    def surest(request: Request, opened: Opened, language: Language) -> tuple[Suggestion, ...]:
        closers, most = request.split.right[: opened.covered], request.settings.alternatives if request.invoked else 1
        shown_from = 0.0 if request.invoked else least
        suggestions = [
            suggestion
            for suggestion, whole in plain.sources.project.weighed(request, opened, language)
            if shown(suggestion, closers, shown_from)
            and (not ask_model or whole >= project_suggestions.RECALL_CONFIDENCE)
        ]
        if not ask_model:
            suggestions.sort(key=lambda suggestion: -worth(suggestion, closers, shown_from))
        return tuple(suggestions[:most])

    plain.sources.project.surest = surest  # type: ignore[method-assign]
    for _ in range(60):
        at = draw.choice([at for at in range(1, len(text)) if text[at - 1] in " .(" and text[at].isalpha()])
        typed = text[:at] + text[text.find("\n", at) :]  # the rest of the line is missing
        split = sent(project, "file:///beside.py", typed, at)
        request = Request("file:///beside.py", split, "python", "", invoked, bool(draw.randrange(2)), settings)
        told_of = [one.recall(request, Stop(), 0.0) for one in (quick, plain)]
        texts = [
            None if work is None else [(one.text, one.ends.cuts) for one in work.answer.suggestions] for work in told_of
        ]
        assert texts[0] == texts[1]
        found[str(texts[0] is None)] += 1
    assert made["quick"] < made_share * made["plain"]
    assert found["False"] >= 5


def test_few_recalled_suggestions_stay_beside_the_models(project: Project) -> None:
    """The first ones that fit stay; on request, all."""
    folder = Path(server.__file__).parent.parent / "decoding" / "strategies"
    project.read([folder.as_uri()], {".py": "python"})
    text = (folder.parent / "concurrent_prefill.py").read_text(encoding="utf-8")
    completer = Completer(DocumentSessions(), PromptTokens(), count(1), lambda: True, project)
    uri, most = "file:///beside.py", 0
    for at in (text.index("self.prompt,"), text.index("self._chunk ="), text.index("return logits")):
        typed = text[:at] + text[text.find("\n", at) :]
        split = sent(project, uri, typed, at)
        for invoked in (False, True):
            request = Request(uri, split, "python", "", invoked, True, ServerSettings())
            language = request.language()
            opened = completer.contexts.open(uri, language, split)
            found = completer.sources.project.likeliest(request, opened, language)
            every = [suggestion for suggestion, _ in completer.sources.project.weighed(request, opened, language)]
            assert found == (every if invoked else every[: project_suggestions.MOST_KEPT])
            most = max(most, len(every))
    assert most > project_suggestions.MOST_KEPT


def test_a_cursor_at_rest_sends_the_document_to_the_memory(project: Project) -> None:
    one = Completer(DocumentSessions(), PromptTokens(), count(1), lambda: True, project)
    project.opened("file:///rests.py")
    split = Split(ELSEWHERE + HERE[:AT], HERE[AT:])
    settings = ServerSettings(ask_model=False)
    request = Request("file:///rests.py", split, "python", "", False, True, settings)
    one.read_at_rest(None, replace(request, settings=replace(settings, project_memory=False)), Stop())
    assert project.memory.settle()
    assert project.recall("file:///rests.py", split, "exact", language="python") == []
    one.read_at_rest(None, request, Stop())
    assert project.memory.settle()
    assert project.recall("file:///rests.py", split, "exact", language="python")[0].completion.text == LINE


def test_a_cursor_at_rest_reads_the_names(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Typing there sends it again only if other lines changed."""
    settings = ServerSettings(ask_model=False)
    one = Completer(DocumentSessions(), PromptTokens(), count(1), lambda: True, project)
    split = sent(project, "file:///rests.py", HERE, AT)
    request = Request("file:///rests.py", split, "python", "", False, True, settings)
    read: list[int] = []
    count_words = identifiers.words_of

    def counted(text: str, start: int, end: int) -> Any:
        read.append(end - start)
        return count_words(text, start, end)

    monkeypatch.setattr(identifiers, "words_of", counted)
    one.read_at_rest(None, replace(request, settings=replace(settings, names="off")), Stop())
    assert read == []
    one.read_at_rest(None, request, Stop())
    assert sum(read) == len(HERE)
    typed = sent(project, "file:///rests.py", HERE[:AT] + "l" + HERE[AT:], AT + 1)
    one.read_at_rest(None, replace(request, split=typed), Stop())
    assert sum(read) < 1.25 * len(HERE)


def test_unlikely_recalled_lines_are_left_out(project: Project, tmp_path: Path) -> None:
    project.read([tmp_path.as_uri()], {".py": "python"})
    split = sent(project, "untitled:x", HERE, AT)
    suggestion = project.memory.recall("untitled:x", split.left, split.right, 8, language="python")[0]
    assert suggestion.text == f"{LINE}\n        {NOTED}"
    ((end, sure),) = suggestion.lines
    assert end == len(suggestion.text)
    assert sure < min(suggestion.whole, LINES_CONFIDENCE)
    assert (suggestion.until(0.0), suggestion.until(suggestion.whole)) == (suggestion.text, LINE)
    assert project.recall("untitled:x", split, "exact", True, "python")[0].completion.text == LINE


def test_recalled_lines_end_where_lines_end(certain: Project, tmp_path: Path) -> None:
    """A further line is left out if the program is complete within it but not at its end."""
    assert cuts_of_lines("a = b\nc = d(e)", [1, 5, 11]) == (1, 5)
    assert cuts_of_lines("a = b\nc = d(\ne)", [1, 5, 11, 15]) == (1, 5, 15)
    uri = (tmp_path / "here.py").as_uri()
    worker = CompletionWorker(ServerSettings(), project=certain)
    completer = worker._thread_of(uri).completer

    def recalled(text: str, single_line: bool = False) -> list[str]:
        split = sent(certain, uri, text, text.index("|"))
        split = Split(split.left, split.right[1:])
        request = Request(uri, split, "python", "here.py", False, single_line, ServerSettings())
        language = request.language()
        return [
            one.text
            for one in completer.sources.project.likeliest(
                request, completer.contexts.open(uri, language, split), language
            )
        ]

    loop = "def other(ledger, stream):\n    for account in ledger.accounts:\n        |"
    assert recalled(loop + "\n")[0] == f"{LINE}\n        {NOTED}"
    assert recalled(loop + "\n", single_line=True)[0] == LINE
    worker.close()


def test_the_cursors_own_line_is_not_recalled(project: Project, tmp_path: Path) -> None:
    uri = (tmp_path / "here.py").as_uri()
    text = "unlike_anything_else(zebra)\nunlike_any\n"
    split = sent(project, uri, text, len(text) - 1)
    assert [one.completion.text for one in project.recall(uri, split, "exact")] == ["thing_else(zebra)"]
    split = sent(project, uri, "unlike_anything_else(zebra)\n", 10)
    assert project.recall(uri, Split("unlike_any", "\n"), "exact") == []


def test_the_bias_has_weights_and_follows_the_text(project: Project, tmp_path: Path) -> None:
    project.read([tmp_path.as_uri()], {".py": "python"})
    split = sent(project, "untitled:x", HERE, AT)
    bias = project.bias("untitled:x", split.left, "python")
    middle = ""
    while not LINE.startswith(middle + "\n") and len(middle) < len(LINE):
        texts = bias(middle)
        assert 0 < sum(weight for _, weight in texts) < 1
        following = next((text for text, _ in texts if LINE.startswith(middle + text)), None)
        assert following, (middle, texts)
        middle += following
    assert middle == LINE
    assert bias.characters == project.memory.sizes()["characters"] > 0
    usual = (0.5, 0.5, 0.5, 0.1)
    assert bias.share(*usual) == FITTED.share(usual[0], bias.characters, *usual[1:])


def test_a_draft_has_the_memorys_likeliest_lexemes(project: Project, tmp_path: Path) -> None:
    project.read([tmp_path.as_uri()], {".py": "python"})
    split = sent(project, "untitled:x", HERE, AT)
    draft = project.drafts("untitled:x", split.left, "python")
    for at in (0, 7, 13):
        proposed = draft(LINE[:at])
        assert LINE[at:].startswith(proposed)
        assert len(proposed) > len("write(")
    assert draft("zebra zebra zebra") == ""


def test_drafts_save_passes_and_change_no_text(project: Project, tmp_path: Path) -> None:
    project.read([tmp_path.as_uri()], {".py": "python"})
    model, language = load_model("embedded", "cpu", "torch"), Language.load("python")
    saved = 0
    for at in range(0, len(LINE), 6):
        split = sent(project, "untitled:x", HERE.replace("        \n", f"        {LINE[:at]}\n"), AT + at)
        session = language.open(split.left, split.right)
        plain = DecodeOptions(
            max_new_tokens=12, single_line=True, project_bias=project.bias("untitled:x", split.left, "python")
        )
        drafted = replace(plain, drafts=project.drafts("untitled:x", split.left, "python"))
        one, other = (complete_session(model, session, split, options) for options in (plain, drafted))
        assert one.text == other.text
        saved += one.statistics.passes - other.statistics.passes
    assert saved > 0


def test_the_setting_decides_whether_there_are_drafts(project: Project) -> None:
    worker = CompletionWorker(ServerSettings(), project=project)
    completer = worker._thread_of("file:///a.py").completer
    for value in (True, False):
        settings = replace(ServerSettings(), project_memory=value)
        request = Request("file:///a.py", Split("", ""), "python", "a.py", False, True, settings)
        assert (completer.sources.drafts(request, Language.load("python")) is not None) == value
    worker.close()


def test_text_of_a_closed_document_is_ignored(project: Project) -> None:
    split = sent(project, "untitled:x", HERE, AT)
    assert project.memory.sizes()["open"] == 1
    project.forget("untitled:x")
    project.send("untitled:x", Split(split.left + "\n", split.right))
    assert project.memory.settle()
    assert project.memory.sizes()["open"] == 0


def test_clearing_stops_reading_and_files_can_be_read_again(project: Project, tmp_path: Path) -> None:
    uri = (tmp_path / "here.py").as_uri()
    split = sent(project, uri, HERE, AT)
    project.read([tmp_path.as_uri()], {".py": "python"})
    old = project.memory
    assert old.settle()
    project.clear()
    assert not project.is_begun
    assert project.memory.sizes()["bytes"] < old.sizes()["bytes"]
    gone = weakref.ref(old)
    threads = [one for one in (old._folders._thread, old._documents._thread) if one is not None]
    del old
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    until(lambda: gone() is None)
    assert project.recall(uri, split, "exact") == []
    project.read([tmp_path.as_uri()], {".py": "python"})
    project.send(uri, split)
    assert project.memory.settle()
    assert project.recall(uri, split, "exact")[0].completion.text == LINE


def test_shrinking_halves_the_characters_that_are_read(project: Project, tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"m{number}.py").write_text("".join(f"value_{line} = {number}\n" for line in range(2_000)))

    def read() -> int:
        project.read([tmp_path.as_uri()], {".py": "python"})
        assert project.memory.settle()
        return project.memory.sizes()["characters"]

    before = read()
    for _ in range(10):
        project.shrink()
    assert read() <= LEAST_CHARACTERS < before
    project.clear()
    assert read() == before


def test_a_left_folder_is_dropped_except_for_files_of_others(project: Project, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "a.py").write_text("first = 1\n")
    uris = [tmp_path.as_uri(), inner.as_uri()]
    project.read(uris, {".py": "python"})
    assert project.memory.settle()
    assert project.memory.sizes()["files"] == 2
    project.leave(uris[:1])
    project.read(uris[1:], {".py": "python"})
    assert project.memory.settle()
    assert project.memory.sizes()["files"] == 1
    project.leave(uris[1:])
    assert project.memory.settle()
    assert project.memory.sizes()["files"] == 0


# --- in a server in this process ----------------------------------------------------------------------------------


@pytest_asyncio.fixture
async def connected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Connected]:
    (tmp_path / "report.py").write_text(ELSEWHERE)
    monkeypatch.setattr(files, "READ_SECONDS", 0.05)
    connected = Connected()
    folders = [{"uri": tmp_path.as_uri(), "name": "project"}]
    able = {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}, "workspaceFolders": True}}
    await connected.begin(monkeypatch, capabilities=able, workspaceFolders=folders, rootUri=tmp_path.as_uri())
    connected.send(Wire.note("initialized", {}))
    await connected.until(lambda: connected.server.project.memory.sizes()["files"] == 1)
    yield connected
    connected.server.close()


@pytest.mark.asyncio
async def test_files_are_read_when_they_change_on_the_disk(connected: Connected, tmp_path: Path) -> None:
    sent = connected.sent
    await connected.until(lambda: any(one.get("method") == "client/registerCapability" for one in sent))
    (registration,) = next(one for one in sent if "registrations" in one.get("params", {}))["params"]["registrations"]
    assert registration["method"] == "workspace/didChangeWatchedFiles"
    (watcher,) = registration["registerOptions"]["watchers"]
    assert watcher["globPattern"].startswith("**/*{")
    assert ".py" in watcher["globPattern"]
    memory = connected.server.project.memory
    changes = []
    for number in range(3):
        (tmp_path / f"new{number}.py").write_text("first = 1\n")
        changes.append({"uri": (tmp_path / f"new{number}.py").as_uri(), "type": 1})
        connected.send(Wire.note("workspace/didChangeWatchedFiles", {"changes": changes[-1:]}))
    await connected.until(lambda: memory.sizes()["files"] == 4)
    (tmp_path / "new0.py").unlink()
    connected.send(Wire.note("workspace/didChangeWatchedFiles", {"changes": [{**changes[0], "type": 3}]}))
    await connected.until(lambda: memory.sizes()["files"] == 3)


@pytest.mark.asyncio
async def test_a_folder_that_is_removed_is_forgotten(connected: Connected, tmp_path: Path) -> None:
    event = {"added": [], "removed": [{"uri": tmp_path.as_uri(), "name": "project"}]}
    connected.send(Wire.note("workspace/didChangeWorkspaceFolders", {"event": event}))
    memory = connected.server.project.memory
    await connected.until(lambda: memory.sizes()["files"] == 0)
    assert await asyncio.to_thread(memory.settle)
    assert memory.sizes()["files"] == 0


@pytest.mark.asyncio
async def test_the_setting_switches_the_memory_off(connected: Connected) -> None:
    def use(value: bool) -> None:
        settings = {"settings": {"fim-server": {"projectMemory": value}}}
        connected.send(Wire.note("workspace/didChangeConfiguration", settings))

    known = connected.server.project.memory
    use(False)
    await connected.until(lambda: connected.server.project.memory is not known)
    assert connected.server.project.memory.sizes()["files"] == 0
    use(True)
    await connected.until(lambda: connected.server.project.memory.sizes()["files"] == 1)


# --- through the protocol -----------------------------------------------------------------------------------------


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    (tmp_path / "report.py").write_text(ELSEWHERE)
    options = {**SETTINGS, "projectMemory": True, "minConfidence": 0.1}
    async with serving(capabilities(), options=options, folder=tmp_path) as client:
        await client.is_ready()
        yield client


async def suggested(client: Client, editor: Editor, at: int, kind: types.InlineCompletionTriggerKind) -> list[str]:
    for _ in range(50):  # the messages of the project are read meanwhile
        items = await editor.ask(at, kind=kind)
        for item in items:
            assert_parses(editor.applied(item, at), written(item))
        if any(written(item).startswith(LINE) for item in items):
            break
        await asyncio.sleep(0.02)
    return [written(item).split("\n")[0] for item in items]


@pytest.mark.asyncio
async def test_a_recalled_line_is_suggested_with_its_origin(client: Client, tmp_path: Path) -> None:
    editor = Editor(client, (tmp_path / "here.py").as_uri(), HERE)
    assert LINE in await suggested(client, editor, AT, INVOKED)
    asked = Editor(client, (tmp_path / "typed.py").as_uri(), HERE.replace("        \n", "        stream.wr\n"))
    shown = await asked.ask(AT + 9, kind=AUTOMATIC)
    assert [written(item) for item in shown] == [LINE.removeprefix("stream.wr")]
    assert client.last["origin"] in ("memory", "model")


@pytest.mark.asyncio
async def test_without_the_setting_no_line_is_recalled(client: Client, tmp_path: Path) -> None:
    editor = Editor(client, (tmp_path / "here.py").as_uri(), HERE)
    assert LINE in await suggested(client, editor, AT, INVOKED)
    await client.use(projectMemory=False)
    assert not any(written(item).startswith(LINE) for item in await editor.ask(AT, kind=INVOKED))


@pytest.mark.asyncio
async def test_without_the_model_all_suggestions_are_recalled(client: Client, tmp_path: Path) -> None:
    await client.use(askModel=False, minConfidence=0.01, projectMemory=True)
    editor = Editor(client, (tmp_path / "here.py").as_uri(), HERE)
    before = (await client.run("statistics"))["promptTokens"]
    assert LINE in await suggested(client, editor, AT, INVOKED)
    shown = await suggested(client, editor, AT, AUTOMATIC)
    assert len(shown) == 1
    assert client.last["origin"] in ("memory", "cache")
    await client.use(askModel=False)
    assert await editor.ask(AT, kind=INVOKED) == []
    assert (await client.run("statistics"))["promptTokens"] == before
    await client.use()
    assert await editor.ask(AT, kind=INVOKED)
    assert (await client.run("statistics"))["promptTokens"] != before


@pytest.mark.asyncio
async def test_required_names_hold_for_recalled_suggestions(client: Client, tmp_path: Path) -> None:
    """A line with `stream`, which the file does not bind, is suggested only if the setting allows it."""
    text = HERE.replace("stream", "flow")
    editor = Editor(client, (tmp_path / "here.py").as_uri(), text)
    at = text.index("        \n") + 8
    assert LINE in await suggested(client, editor, at, INVOKED)
    await client.use(names="require")
    for kind in (INVOKED, AUTOMATIC):
        for item in await editor.ask(at, kind=kind):
            assert not unbound(text[:at], written(item), text[at:])
            assert not written(item).startswith(LINE)
