"""Messages in forms that no protocol has, as clients send them all the same: commands, changes, names of documents."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio

from fim_server.server.documents.spellings import identity_of
from support.editors.connected import COMMAND, URI, Connected
from support.editors.editor import INVALID_PARAMS, Wire

pytestmark = pytest.mark.asyncio

CHANGE = "textDocument/didChange"
HERE = {"line": 0, "character": 4}
START = {"line": 0, "character": 0}
SPAN = {"start": START, "end": {"line": 0, "character": 1}}
MISSING = object()


@pytest_asyncio.fixture
async def connected(monkeypatch: pytest.MonkeyPatch) -> Connected:
    connected = Connected()
    await connected.begin(monkeypatch)
    return connected


def text_of(connected: Connected, uri: str = URI) -> str | None:
    opened = connected.server.protocol.opened(uri)
    return None if opened is None else opened.source


# --- commands ---------------------------------------------------------------------------------------------------------

NONE: tuple[Any, ...] = (MISSING, None, [])
WRONG: tuple[Any, ...] = ({}, {"id": "1"}, "a", "abc", 5, True, [5], ["a"], [True], [[1]], [{}, {}], [[{}]])
NO_OBJECT: tuple[Any, ...] = ([None], [{}])
WRONG_MEMBERS: dict[str, tuple[Any, ...]] = {
    "accepted": ([{"id": 5}], [{"id": None}], [{"id": ["1"]}]),
    "explainAt": (
        [{"uri": 5, "position": HERE}],
        [{"uri": None, "position": HERE}],
        [{"uri": URI, "position": None}],
        [{"uri": URI, "position": [0, 4]}],
        [{"uri": URI, "position": {"line": -1, "character": 0}}],
        [{"uri": URI, "position": {"line": 0, "character": 2**31}}],
        [{"uri": URI, "position": {"line": "0", "character": 0.5}}],
        [{"uri": URI, "position": HERE, "text": 5}],
        [{"uri": "file:///not/open.py", "position": HERE}],
    ),
    "getModel": ([{"name": 5}], [{"name": "smollm2", "cancel": "yes"}], [{"name": ["smollm2"]}]),
    "removeModel": ([{"name": 5}], [{"name": None}], [{"name": ""}]),
    "setEnabled": (),
    "statistics": (),
    "models": (),
    "reload": (),
}
WITHOUT = ("statistics", "models", "reload", "getModel")
"""Commands that need no argument: some editors send null or an object to each."""

REFUSED = [
    (command, arguments)
    for command, wrong in WRONG_MEMBERS.items()
    for arguments in (*(() if command in WITHOUT else NONE + NO_OBJECT), *WRONG, *wrong)
    if not (command == "setEnabled" and arguments == [True])
]


async def run(connected: Connected, number: str, command: str, arguments: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"command": f"fim-server.{command}"}
    if arguments is not MISSING:
        params["arguments"] = arguments
    message = Wire.request(number, COMMAND, params)
    connected.receive(message)
    return await connected.answer(number)


async def test_commands_refuse_wrong_arguments(connected: Connected) -> None:
    codes = {}
    for number, (command, arguments) in enumerate(REFUSED):
        answer = await run(connected, f"n{number}", command, arguments)
        codes[command, repr(arguments)] = answer.get("error", {}).get("code", "taken")
    assert {asked: code for asked, code in codes.items() if code != INVALID_PARAMS} == {}


@pytest.mark.parametrize("arguments", [*NONE, *NO_OBJECT, [[]]])
@pytest.mark.parametrize("command", ["statistics", "models"])
async def test_commands_without_arguments_take_none(connected: Connected, command: str, arguments: Any) -> None:
    assert "result" in await run(connected, "taken", command, arguments)


# --- changes ----------------------------------------------------------------------------------------------------------

CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "no range": ({"text": "y\n"}, "y\n"),
    "a range of null": ({"range": None, "rangeLength": None, "text": "y\n"}, "y\n"),
    "a length of null": ({"range": SPAN, "rangeLength": None, "text": "y"}, "y = \n"),
    "a length": ({"range": SPAN, "rangeLength": 1, "text": "y"}, "y = \n"),
    "a wrong length": ({"range": SPAN, "rangeLength": 99, "text": "y"}, "y = \n"),
    "a length in words": ({"range": SPAN, "rangeLength": "one", "text": "y"}, "y = \n"),
    "reversed": ({"range": {"start": SPAN["end"], "end": START}, "text": "y"}, "y = \n"),
    "below 0": ({"range": {"start": {"line": -3, "character": -9}, "end": SPAN["end"]}, "text": "y"}, "y = \n"),
    "beyond": (
        {"range": {"start": {"line": 0, "character": 2**40}, "end": {"line": 2**80, "character": 1}}, "text": "y"},
        "x = y",
    ),
    "fractions of 0": (
        {"range": {"start": {"line": 0.0, "character": 0.0}, "end": SPAN["end"]}, "text": "y"},
        "y = \n",
    ),
    "half a pair": ({"range": SPAN, "text": "'\ud83d'"}, "'\ud83d' = \n"),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("version", [2, 1, 0, -7, None, MISSING])
async def test_a_change_is_applied_in_whatever_form(connected: Connected, name: str, version: Any) -> None:
    change, expected = CHANGES[name]
    document = {"uri": URI} if version is MISSING else {"uri": URI, "version": version}
    connected.receive(Wire.note(CHANGE, {"textDocument": document, "contentChanges": [change]}))
    assert text_of(connected) == expected


@pytest.mark.parametrize(
    "changes",
    [None, [], [{}], [{"text": None}], [{"text": 5}], "abc", {"text": "y"}, [[]], [{"range": 5, "text": "y"}]],
)
async def test_invalid_changes_change_nothing(connected: Connected, changes: Any) -> None:
    connected.receive(Wire.note(CHANGE, {"textDocument": {"uri": URI, "version": 2}, "contentChanges": changes}))
    assert text_of(connected) == "x = \n"
    assert "result" in await run(connected, "lives", "statistics", None)


async def test_a_change_of_a_document_that_was_never_opened_is_passed_over(connected: Connected) -> None:
    for version in (1, None):
        document = {"uri": "file:///never.py", "version": version}
        connected.receive(Wire.note(CHANGE, {"textDocument": document, "contentChanges": [{"text": "y"}]}))
    assert text_of(connected, "file:///never.py") is None
    assert "result" in await run(connected, "lives", "statistics", None)


@pytest.mark.parametrize("version", [None, MISSING])
async def test_a_document_without_a_version_is_opened(connected: Connected, version: Any) -> None:
    document = {"uri": "file:///b.py", "languageId": "python", "text": "b"}
    if version is not MISSING:
        document["version"] = version
    connected.receive(Wire.note("textDocument/didOpen", {"textDocument": document}))
    assert text_of(connected, "file:///b.py") == "b"


# --- halves of surrogate pairs ----------------------------------------------------------------------------------------


def edit(start: int, end: int, text: str) -> dict[str, Any]:
    return {"range": {"start": {"line": 0, "character": start}, "end": {"line": 0, "character": end}}, "text": text}


HALVES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "the second half": ([edit(5, 6, "")], "a = \ud83d = b"),
    "the first half": ([edit(4, 5, "")], "a = \ude00 = b"),
    "the second half, typed again": ([edit(5, 6, ""), edit(5, 5, "\ude00")], "a = 😀 = b"),
    "the first half, typed again": ([edit(4, 5, ""), edit(4, 4, "\ud83d")], "a = 😀 = b"),
    "another second half": ([edit(5, 6, "\ude01")], "a = 😁 = b"),
    "both, one after the other": ([edit(4, 5, ""), edit(4, 5, "")], "a =  = b"),
    "a text in between": ([edit(5, 5, "x")], "a = \ud83dx\ude00 = b"),
    "a text in between, taken back": ([edit(5, 5, "x"), edit(5, 6, "")], "a = 😀 = b"),
    "up to the middle": ([edit(0, 5, "")], "\ude00 = b"),
    "from the middle on": ([edit(5, 9, "")], "a = \ud83db"),
    "reversed": ([edit(6, 5, "")], "a = \ud83d = b"),
    "halves of two that become one": ([edit(6, 6, "😁"), edit(5, 7, "")], "a = 😁 = b"),
}


@pytest.mark.parametrize("name", HALVES)
async def test_halves_of_a_pair_are_edited_as_in_the_editor(connected: Connected, name: str) -> None:
    changes, expected = HALVES[name]
    whole = {"text": "a = 😀 = b"}
    document = {"uri": URI, "version": 2}
    connected.receive(Wire.note(CHANGE, {"textDocument": document, "contentChanges": [whole, *changes]}))
    assert text_of(connected) == expected


async def test_halves_of_the_bytes_of_a_text_are_one_character(connected: Connected) -> None:
    """A client that encodes the halves each by itself (CESU-8)."""
    document = {"uri": "file:///cesu.py", "languageId": "python", "version": 1, "text": "\ud83d\ude00"}
    connected.server.protocol.handle_message(
        connected.server.protocol.structure_message(Wire.note("textDocument/didOpen", {"textDocument": document}))
    )
    assert text_of(connected, "file:///cesu.py") == "😀"


# --- names ------------------------------------------------------------------------------------------------------------

ONE = [
    ("file:///C:/a.py", "file:///c:/a.py", "file:///c%3A/a.py", "file:///C%3a/a.py", "FILE:///c:/%61.py"),
    ("file:///a%20b/%C3%A9.py", "file:///a b/é.py", "file://localhost/a%20b/é.py", "file:///a%20b/%c3%a9.py"),
    ("vscode-notebook-cell:/c%3A/n.ipynb#X2%3D", "vscode-notebook-cell:/C:/n.ipynb#X2="),
    ("file://Server/share/a.py", "file://server/share/a.py"),
    ("untitled:Untitled-1", "untitled:Untitled%2D1"),
]
OTHERS = [
    ("file:///a%2520b.py", "file:///a%20b.py"),
    ("file:///a%23b.py", "file:///a#b.py"),
    ("file:///a%3Fb.py", "file:///a?b.py"),
    ("file:///A.py", "file:///a.py"),
    ("file:///%ff.py", "file:///%fe.py"),
    ("vscode-notebook-cell:/n.ipynb#A", "vscode-notebook-cell:/n.ipynb#B"),
    ("file:///cd:/a.py", "file:///CD:/a.py"),
]


@pytest.mark.parametrize("names", ONE)
async def test_spellings_of_one_name(names: tuple[str, ...]) -> None:
    assert len({identity_of(name) for name in names}) == 1


@pytest.mark.parametrize("names", OTHERS)
async def test_names_of_two_documents(names: tuple[str, ...]) -> None:
    assert len({identity_of(name) for name in names}) == 2


@pytest.mark.parametrize("names", [one[:2] for one in ONE] + [(one[-1], one[0]) for one in ONE])
async def test_every_message_may_spell_a_documents_name_in_its_own_way(
    connected: Connected, names: tuple[str, str]
) -> None:
    opened, other = names
    server = connected.server
    connected.open(opened)
    changed = {"textDocument": {"uri": other, "version": 2}, "contentChanges": [{"text": "y = \n"}]}
    connected.receive(Wire.note(CHANGE, changed))
    assert text_of(connected, opened) == text_of(connected, other) == "y = \n"
    connected.receive(Wire.note("fim-server/cursor", {"textDocument": {"uri": other}, "position": HERE}))
    assert server.cursors.of(opened) == 4
    server.requests.suspended[server.protocol.owner_of(opened)] = "it is set aside"
    answer = await run(connected, "why", "explainAt", [{"uri": other, "position": HERE}])
    assert "it is set aside" in answer["error"]["message"]
    connected.ask("inline", uri=other)
    assert (await connected.answer("inline"))["result"]["items"] == []
    assert server.sent.last is not None
    assert server.sent.last["uri"] == opened
    assert server.sent.last["reason"] == "it is set aside"
    connected.open(other)  # once more, as an editor does whose client was restarted
    assert text_of(connected, opened) == "x = \n"
    connected.receive(Wire.note("textDocument/didClose", {"textDocument": {"uri": other}}))
    assert text_of(connected, opened) is None
    assert text_of(connected, other) is None


@pytest.mark.parametrize("names", [OTHERS[0], OTHERS[3], OTHERS[5], OTHERS[6]])
async def test_two_documents_stay_two(connected: Connected, names: tuple[str, str]) -> None:
    for name in names:
        connected.open(name)
    document = {"uri": names[1], "version": 2}
    connected.receive(Wire.note(CHANGE, {"textDocument": document, "contentChanges": [{"text": "other"}]}))
    assert [text_of(connected, name) for name in names] == ["x = \n", "other"]
    connected.receive(Wire.note("textDocument/didClose", {"textDocument": {"uri": names[1]}}))
    assert [text_of(connected, name) for name in names] == ["x = \n", None]
