"""Protocol of docs/protocol.md besides completions: status, settings, commands, the suggestion list."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from support.editors.editor import (
    INVALID_PARAMS,
    PATIENCE,
    PYTHON,
    Client,
    Editor,
    assert_parses,
    capabilities,
    guarantee_of,
    parses,
    plain,
    serving,
    written,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

COMMANDS = {
    "accepted",
    "dismissed",
    "editAccepted",
    "editDismissed",
    "resetThreshold",
    "explainAt",
    "languages",
    "statistics",
    "setEnabled",
    "reload",
    "getModel",
    "models",
    "removeModel",
}
LATENCY = {"totalMs", "debounceMs", "queueMs", "openMs", "prefillMs", "decodeMs", "engineMs", "serverMs"}
TEXT = "import os\n\n\ndef names(path, count):\n    return \n"
HERE = TEXT.index("return ") + 7

CONFIGURED = {
    "pythonVersion": PYTHON,
    "debounceMs": 0,
    "trigger": "sometimes",
    "alternatives": 9,
    "maxTokens": "many",
    "deadlineMs": True,
    "languages": {"json": "loud"},
    "colour": "red",
    "path": ["the extension's own"],
    "multiline": None,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[Client]:
    """A client with everything: progress, a configuration that can be asked for, options that come first."""
    offered = capabilities()
    offered.window = types.WindowClientCapabilities(work_done_progress=True)
    offered.workspace = types.WorkspaceClientCapabilities(configuration=True)
    options = {"maxTokens": -3}
    async with serving(offered, options=options, configuration={"fim-server": dict(CONFIGURED)}) as client:
        yield client


# --- capabilities and status -------------------------------------------------------------------------------------


async def test_advertised_capabilities(client: Client) -> None:
    offered = client.initialized_with.capabilities
    assert offered.inline_completion_provider
    assert offered.completion_provider is None
    assert offered.execute_command_provider is not None
    assert set(offered.execute_command_provider.commands) == {f"fim-server.{name}" for name in COMMANDS}
    information = client.initialized_with.server_info
    assert information is not None
    assert information.name == "fim-server"
    assert information.version


async def test_loading_is_shown_as_status_and_as_progress(client: Client) -> None:
    await client.is_ready()
    loading = [status for status in client.statuses if status["state"] == "loading"]
    shares = [status["progress"] for status in loading if "progress" in status]
    assert shares
    assert shares == sorted(shares)
    assert all(0 <= share <= 1 for share in shares)
    assert all("model" not in status and "last" not in status for status in loading)
    ready = client.statuses[-1]
    assert ready["message"]
    assert "\n" not in ready["message"]
    assert "progress" not in ready
    assert set(ready["model"]) == {"name", "device", "runtime", "format", "mode", "languages"}
    assert (ready["model"]["name"], ready["model"]["format"]) == ("embedded", "fim-server")
    assert ready["model"]["languages"] == ["python"]
    (reports,) = client.progress_reports.values()
    kinds = [type(report).__name__ for report in reports]
    assert kinds[0] == "WorkDoneProgressBegin"
    assert kinds[-1] == "WorkDoneProgressEnd"
    assert set(kinds[1:-1]) == {"WorkDoneProgressReport"}


async def test_an_answer_changes_the_status(client: Client) -> None:
    before = len(client.statuses)
    editor = Editor(client, "status.py", TEXT)
    found = await editor.ask(HERE)
    states = [status["state"] for status in client.statuses[before:]]
    assert states[0] == "busy"
    assert states[-1] == "ready"
    last = client.statuses[-1]["last"]
    assert last["uri"] == editor.uri
    assert last["items"] == len(found) > 0
    assert last["guarantee"] == guarantee_of(found[0]) == "exact"
    assert last["origin"] == "model"
    assert last["reason"] is None
    assert last["stopReason"]
    assert last["tokens"] > 0
    assert last["refused"] >= 0
    assert last["passes"] > 0
    assert last["passes"] >= last["drafted"] == last["accepted"] == 0  # the embedded export gives the last row alone
    assert set(last["latency"]) == LATENCY
    costs = last["latency"]
    assert all(cost >= 0 for cost in costs.values())
    assert costs["totalMs"] == pytest.approx(sum(costs.values()) - costs["totalMs"], abs=1)


async def test_an_answer_from_memory_says_so(client: Client) -> None:
    editor = Editor(client, "remembered.py", TEXT)
    first = await editor.ask(HERE)
    again = await editor.ask(HERE)
    assert [written(item) for item in first] == [written(item) for item in again]
    assert client.last["origin"] == "cache"
    assert client.last["latency"]["decodeMs"] == client.last["latency"]["prefillMs"] == 0


# --- settings ----------------------------------------------------------------------------------------------------


async def test_wrong_settings_are_logged_and_keep_their_defaults(client: Client) -> None:
    await client.is_ready()
    expected = [
        "setting 'trigger': one of automatic, subtle, manual expected, not 'sometimes'",
        "setting 'alternatives': a whole number from 1 to 5 expected, not 9",
        "setting 'maxTokens': a whole number from 1 to 4096 expected, not 'many'",
        "setting 'maxTokens': a whole number from 1 to 4096 expected, not -3",
        "setting 'deadlineMs': a number from 0 to 3600000 expected, not True",
        "setting 'languages': one of automatic, subtle, manual, off expected, not 'loud'",
        "unknown setting 'colour'",
    ]
    for problem in expected:
        assert [entry.type for entry in client.log_messages if entry.message == problem] == [types.MessageType.Warning]
    assert not any("'path'" in line or "'multiline'" in line for line in client.logged)
    found = await Editor(client, "defaults.py", TEXT).ask(HERE)
    assert 1 <= len(found) <= 3


@pytest.mark.parametrize("wrapped", [True, False])
async def test_changed_settings_are_taken_with_and_without_their_section(client: Client, wrapped: bool) -> None:
    count = len(client.statuses)
    values = {"pythonVersion": PYTHON, "debounceMs": 0, "alternatives": 1}
    settings: Any = {"fim-server": values} if wrapped else values
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings))
    await client.until(lambda: len(client.statuses) > count)
    assert len(await Editor(client, f"one{wrapped}.py", TEXT).ask(HERE)) == 1
    assert client.last["origin"] == "model"
    await client.use(alternatives=5)
    assert len(await Editor(client, f"one{wrapped}.py", TEXT).ask(HERE)) > 1


async def test_a_change_without_values_asks_the_client(client: Client) -> None:
    client.set_configuration({"pythonVersion": PYTHON, "languages": {"python": "off"}}, section="fim-server")
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams(None))
    editor = Editor(client, "asked.py", TEXT)
    await client.until(lambda: client.statuses)
    for _ in range(100):
        if await editor.ask(HERE) == [] and client.last["reason"] == "switched off for python":
            break
        await asyncio.sleep(0.05)
    else:
        pytest.fail(f"not switched off: {client.last}")
    client.set_configuration(dict(CONFIGURED), section="fim-server")
    await client.use()
    assert await editor.ask(HERE)


async def test_the_enabled_setting(client: Client) -> None:
    await client.use(enabled=False)
    assert client.statuses[-1]["state"] == "off"
    assert await Editor(client, "off.py", TEXT).ask(HERE) == []
    assert client.last["reason"] == "switched off"
    await client.use()
    assert client.statuses[-1]["state"] == "ready"


# --- commands ----------------------------------------------------------------------------------------------------


async def test_switching_off_and_on(client: Client) -> None:
    editor = Editor(client, "switch.py", TEXT)
    assert await client.run("setEnabled", False) is False
    assert client.statuses[-1]["state"] == "off"
    assert await editor.ask(HERE) == []
    assert await client.run("setEnabled", True) is True
    assert client.statuses[-1]["state"] == "ready"
    assert await editor.ask(HERE)
    await client.run("setEnabled", False)
    await client.use()  # the settings as they are
    assert client.statuses[-1]["state"] == "off"
    await client.use(prefetch=False)  # until they change
    assert client.statuses[-1]["state"] == "ready"
    await client.use()


async def test_statistics_count_shown_and_accepted_suggestions(client: Client) -> None:
    before = await client.run("statistics")
    editor = Editor(client, "counted.py", TEXT)
    found = await editor.ask(HERE)
    await editor.ask(HERE)
    command = found[0].command
    assert command is not None
    assert command.command == "fim-server.accepted"
    (argument,) = command.arguments or ()
    argument = plain(argument)
    assert set(argument) == {"id", "guarantee"}
    assert await client.run("accepted", argument) is None
    assert await client.run("accepted", argument) is None  # once is enough
    assert await client.run("accepted", {"id": "nobody's", "guarantee": "exact"}) is None
    after = await client.run("statistics")
    assert after["requests"] == before["requests"] + 2
    assert after["answeredFromCache"] == before["answeredFromCache"] + 1
    assert after["shown"] == before["shown"] + 1  # alternatives are one offer
    assert after["accepted"] == before["accepted"] + 1
    assert after["acceptedCharacters"] == before["acceptedCharacters"] + len(written(found[0]))
    assert after["failed"] == before["failed"] == 0
    assert set(after["latency"]) == {"p50Ms", "p95Ms", "serverP95Ms"}
    assert 0 < after["latency"]["p50Ms"] <= after["latency"]["p95Ms"]
    assert after["since"] == before["since"]
    assert after["since"].endswith("Z")
    assert datetime.fromisoformat(after["since"]).tzinfo is not None
    assert set(after) == {
        *("requests", "answeredFromCache", "shown", "accepted", "acceptedCharacters", "retained"),
        *("savedKeystrokes", "cancelled", "superseded"),
        *("failed", "replaced", "latency", "promptTokens", "thresholdShifts", "since"),
    }


async def test_reloading_forgets_everything(client: Client) -> None:
    editor = Editor(client, "reloaded.py", TEXT)
    await editor.ask(HERE)
    before = len(client.statuses)
    assert await client.run("reload") is None
    states = [status["state"] for status in client.statuses[before:]]
    assert states[0] == "loading"
    assert states[-1] == "ready"
    assert await editor.ask(HERE)
    assert client.last["origin"] == "model"


WRONG: list[tuple[str, list[Any]]] = [
    ("accepted", []),
    ("accepted", [{}]),
    ("accepted", [{"id": "1"}, {"id": "2"}]),
    ("accepted", ["1"]),
    ("resetThreshold", [1, 2]),
    ("dismissed", []),
    ("dismissed", [{}]),
    ("dismissed", [{"id": 1}]),
    ("explainAt", []),
    ("explainAt", [{}]),
    ("explainAt", [17]),
    ("explainAt", [{"uri": "file:///project/wrong.py"}]),
    ("explainAt", [{"uri": "file:///project/never.py", "position": {"line": 0, "character": 0}}]),
    ("explainAt", [{"uri": "file:///project/wrong.py", "position": {"line": "0", "character": 0}}]),
    ("explainAt", [{"uri": "file:///project/wrong.py", "position": {"line": 0}}]),
    ("explainAt", [{"uri": "file:///project/wrong.py", "position": {"line": -1, "character": 0}}]),
    ("explainAt", [{"uri": "file:///project/wrong.py", "position": [0, 0]}]),
    ("explainAt", [{"uri": "file:///project/wrong.py", "position": {"line": 0, "character": 0}, "text": 5}]),
    ("explainAt", [{"uri": ["file:///project/wrong.py"], "position": {"line": 0, "character": 0}}]),
    ("explainAt", [{"uri": "file:///project/wrong.env", "position": {"line": 0, "character": 0}}]),
    ("setEnabled", []),
    ("setEnabled", ["yes"]),
    ("setEnabled", [1]),
    ("setEnabled", [None]),
    ("setEnabled", [True, False]),
    ("languages", [1, 2]),
    ("statistics", [1, 2]),
    ("reload", [1, 2]),
    ("getModel", [1, 2]),
    ("getModel", [{"name": "no-such-model"}]),
    ("models", [1, 2]),
    ("removeModel", []),
    ("removeModel", [{}]),
    ("removeModel", [{"name": 5}]),
    ("removeModel", [{"name": ""}]),
    ("noSuchCommand", []),
]


async def test_wrong_arguments_are_refused_and_the_server_lives(client: Client) -> None:
    Editor(client, "wrong.py", TEXT)
    Editor(client, "wrong.env", "text", "plaintext")
    shown = len(client.messages)
    taken, codes = [], set()
    for command, arguments in WRONG:
        try:
            taken.append((command, arguments, await client.run(command, *arguments)))
        except JsonRpcException as refusal:
            codes.add(refusal.code)
    assert taken == []
    assert codes == {INVALID_PARAMS}
    assert await Editor(client, "right.py", TEXT).ask(HERE)
    assert "Traceback" not in client.stderr.decode()
    assert client.messages[shown:] == []  # the user has done nothing wrong


# --- explanations ------------------------------------------------------------------------------------------------


EXPLAINED = {
    *(
        "uri",
        "position",
        "language",
        "guarantee",
        "diagnostics",
        "ignored",
        "coveredLines",
        "standIn",
        "inside",
        "expected",
        "openLeft",
    ),
    *("openRight", "grammar", "shortest", "candidates", "likely"),
}


async def test_a_cursor_is_explained(client: Client) -> None:
    text = "import os\n\n\ndef names(path):\n    return os.listdir(\n        path,\n        \n    )\n"
    offset = text.index("        \n") + 8
    editor = Editor(client, "explained.py", text)
    answer = await editor.explain(offset)
    assert set(answer) == EXPLAINED
    assert answer["uri"] == editor.uri
    assert answer["position"] == {"line": 6, "character": 8}
    assert answer["language"].startswith("python")
    assert (answer["guarantee"], answer["diagnostics"], answer["ignored"]) == ("exact", [], [])
    assert answer["inside"] is None
    assert "NAME" in answer["expected"]
    assert any(entry.startswith('"') for entry in answer["expected"])
    assert answer["openLeft"][0]["line"] == 4  # innermost first
    assert 3 in [entry["line"] for entry in answer["openLeft"]]
    for entry in answer["openLeft"]:
        assert set(entry) == {"name", "line", "text"}
        assert entry["text"] in text.split("\n")[entry["line"]]
    assert answer["openRight"][0] == {"text": ")", "line": 7}
    assert answer["grammar"]
    assert parses(text[:offset] + answer["shortest"] + text[offset:])


async def test_candidates_come_with_reasons(client: Client) -> None:
    editor = Editor(client, "candidates.py", "x = [1, 2, \n")
    answer = await editor.explain(len("x = [1, 2, "))
    found = answer["candidates"]
    assert 1 < len(found) <= 20
    assert all(set(entry) == {"text", "probability", "allowed", "reason"} for entry in found)
    probabilities = [entry["probability"] for entry in found]
    assert probabilities == sorted(probabilities, reverse=True)
    assert 0 < sum(probabilities) <= 1.0001
    for entry in found:
        assert (entry["reason"] is None) == entry["allowed"]
        assert entry["allowed"] or "\n" not in entry["reason"]


@pytest.mark.parametrize(
    ("text", "viable", "complete", "rejected_at"),
    [("3]", True, True, None), ("3", True, False, None), ("3)", False, False, 1), ("😀", False, False, 0)],
)
async def test_a_text_is_judged(
    client: Client, text: str, viable: bool, complete: bool, rejected_at: int | None
) -> None:
    editor = Editor(client, "judged.py", "x = [1, 2, \n")
    answer = await editor.explain(len("x = [1, 2, "), text=text)
    assert answer["verdict"] == {"viable": viable, "complete": complete, "rejectedAt": rejected_at}


@pytest.mark.parametrize(
    ("text", "inside"), [("# a comm|ent\n", "comment"), ("a = 'te|xt'\n", "string"), ("a = te|xt\n", None)]
)
async def test_what_a_cursor_is_inside_of(client: Client, text: str, inside: str | None) -> None:
    offset = text.index("|")
    answer = await Editor(client, "within.py", text.replace("|", "")).explain(offset)
    assert answer["inside"] == inside


async def test_a_broken_document_is_explained(client: Client) -> None:
    text = "def f(:\n    pass\n\n\ndef g(a):\n    return \n"
    answer = await Editor(client, "broken.py", text).explain(text.index("return ") + 7, text="a")
    assert answer["guarantee"] in ("partial", "none")
    assert answer["diagnostics"]
    if answer["guarantee"] == "partial":
        assert any(entry["line"] <= 1 for entry in answer["ignored"])


async def test_json_is_explained_though_it_is_off(client: Client) -> None:
    answer = await Editor(client, "a.json", '{"a": }', "json").explain(6)
    assert answer["language"] == "json"
    assert answer["guarantee"] == "exact"


# --- clients without inline completion ---------------------------------------------------------------------------


@dataclass
class Kind:
    """Capability of a client of the suggestion list for texts of several lines."""

    snippets: bool = False
    as_is: bool = False

    def offered(self) -> types.ClientCapabilities:
        item = types.ClientCompletionItemOptions(
            snippet_support=self.snippets,
            insert_text_mode_support=types.ClientCompletionItemInsertTextModeOptions(
                [types.InsertTextMode.AsIs, types.InsertTextMode.AdjustIndentation]
            )
            if self.as_is
            else None,
        )
        return capabilities(
            inline=False, completion=types.CompletionClientCapabilities(completion_item=item, context_support=True)
        )


KINDS = {"snippets": Kind(snippets=True), "as is": Kind(as_is=True), "plain": Kind()}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fallbacks() -> AsyncIterator[dict[str, Client]]:
    """Three clients of three servers, which start at the same time."""
    options = {
        "pythonVersion": PYTHON,
        "debounceMs": 0,
        "multiline": "always",
        "maxTokens": 24,
        "alternatives": 2,
        "minConfidence": 0,
    }
    async with AsyncExitStack() as stack:
        contexts = [serving(kind.offered(), options=options) for kind in KINDS.values()]
        clients = await asyncio.gather(*(stack.enter_async_context(context) for context in contexts))
        yield dict(zip(KINDS, clients, strict=True))


async def listed(editor: Editor, offset: int, invoked: bool = True) -> types.CompletionList:
    kind = types.CompletionTriggerKind.Invoked if invoked else types.CompletionTriggerKind.TriggerCharacter
    params = types.CompletionParams(
        types.TextDocumentIdentifier(editor.uri), editor.position(offset), context=types.CompletionContext(kind)
    )
    answer = await asyncio.wait_for(editor.client.text_document_completion_async(params), PATIENCE)
    assert isinstance(answer, types.CompletionList)
    return answer


def expanded(item: types.CompletionItem, editor: Editor) -> str:
    """The document after a client has put an item into it, by the protocol's rules."""
    edit = item.text_edit
    assert isinstance(edit, types.TextEdit)
    start, end = editor.offset(edit.range.start), editor.offset(edit.range.end)
    text = edit.new_text
    if item.insert_text_format is types.InsertTextFormat.Snippet:
        assert not re.search(r"(?<!\\)(?:\\\\)*[$}]", text), "an unintended placeholder"
        text = re.sub(r"\\([\\$}])", r"\1", text)
    if item.insert_text_mode is not types.InsertTextMode.AsIs:
        line = editor.text[:start].rsplit("\n", 1)[-1]
        indentation = line[: len(line) - len(line.lstrip())]
        first, *rest = text.split("\n")
        text = "\n".join([first, *(indentation + line if line else line for line in rest)])
    return editor.text[:start] + text + editor.text[end:]


LISTED = [
    "import os\n\n\nclass A:\n    def f(self, path, count):\n        if path:\n            |\n        return count\n",
    "def f(path, count):\n    for name in path:\n        |\n",
    "def f(path):\n    return {'$a': '${b}\\\\', |\n    }\n",
    "class A:\n    def f(self, path):\n        return sel|\n",
    "x = f(|)\n",
]


@pytest.mark.parametrize("kind", KINDS)
async def test_the_suggestion_list_has_what_fits(fallbacks: dict[str, Client], kind: str) -> None:
    client = fallbacks[kind]
    assert client.initialized_with.capabilities.completion_provider is not None
    shown = lines = 0
    for number, marked in enumerate(LISTED):
        offset = marked.index("|")
        editor = Editor(client, f"listed{number}.py", marked.replace("|", "", 1))
        answer = await listed(editor, offset)
        assert answer.is_incomplete
        assert len(answer.items) <= 3
        for item in answer.items:
            assert item.label
            assert "\n" not in item.label
            assert item.text_edit is not None
            assert isinstance(item.text_edit, types.TextEdit)
            assert item.text_edit.range.start.line == item.text_edit.range.end.line == editor.position(offset).line
            word = re.search(r"\w*$", marked[:offset])
            assert word is not None
            assert (item.filter_text or item.label).startswith(word[0])
            result = expanded(item, editor)
            assert_parses(result, result)
            several = "\n" in item.text_edit.new_text
            lines += several
            if several:
                assert KINDS[kind].snippets or KINDS[kind].as_is
            assert item.command is not None
            assert item.command.command == "fim-server.accepted"
            shown += 1
    print(f"{kind}: {shown} entries, {lines} of several lines")
    assert shown > 3
    assert (lines > 0) == (kind != "plain")


async def test_the_suggestion_list_opens_by_itself_with_one_entry(fallbacks: dict[str, Client]) -> None:
    editor = Editor(fallbacks["plain"], "typed.py", TEXT)
    answer = await listed(editor, HERE, invoked=False)
    assert len(answer.items) == 1
    again = await listed(editor, HERE, invoked=False)
    assert [item.label for item in again.items] == [item.label for item in answer.items]
    assert fallbacks["plain"].last["origin"] in ("cache", "prefetch")


async def test_the_suggestion_list_is_empty_where_there_is_nothing(fallbacks: dict[str, Client]) -> None:
    answer = await listed(Editor(fallbacks["plain"], "a.env", "text", "plaintext"), 2)
    assert (answer.items, answer.is_incomplete) == ([], True) or (list(answer.items), answer.is_incomplete) == (
        [],
        True,
    )
