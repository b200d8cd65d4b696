"""Next edits over the real protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio

from fim_server.next_edit.edit_memory import Edit
from fim_server.next_edit.propose import LONGEST_DOCUMENT, Proposal
from fim_server.server.documents.open_document import OpenDocument
from fim_server.server.handlers.next_edit import edit_json, others_edited
from fim_server.suggest.next_edit import NextEdit
from fim_server.text.document import PositionEncoding
from support.editors.editor import INVALID_PARAMS, SETTINGS, Wire, wired

pytestmark = pytest.mark.asyncio(loop_scope="module")

NEXT_EDIT = "textDocument/copilotInlineEdit"

TEXT = "def total(values):\n    for one in values:\n        print(one)\n    return len(values)\n"


class Edited:
    """Open document of a real server."""

    def __init__(self, wire: Wire, uri: str, text: str) -> None:
        self.wire, self.uri, self.text, self.version = wire, uri, text, 1
        self.answers = 0

    async def change(self, line: int, start: int, end: int, text: str) -> None:
        """Replace a part of a line."""
        lines = self.text.split("\n")
        lines[line] = lines[line][:start] + text + lines[line][end:]
        self.text = "\n".join(lines)
        self.version += 1
        place = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
        named = {"uri": self.uri, "version": self.version}
        changed = {"textDocument": named, "contentChanges": [{"range": place, "text": text}]}
        await self.wire.send(self.wire.note("textDocument/didChange", changed))

    async def next_edit(self, version: int | None = None, **more: Any) -> list[dict[str, Any]]:
        """Ask for the next edit; ``more``: further members of the question."""
        self.answers += 1
        named = {"uri": self.uri, "version": self.version if version is None else version}
        params = {"textDocument": named, "position": {"line": 0, "character": 0}, **more}
        answer = await self.wire.ask(f"{self.uri} {self.answers}", NEXT_EDIT, params)
        edits: list[dict[str, Any]] = answer["result"]["edits"]
        assert len(edits) <= 1
        return edits

    async def accept(self, edit: dict[str, Any]) -> None:
        """Make an edit of one line, and tell the server."""
        start, end = edit["range"]["start"], edit["range"]["end"]
        assert start["line"] == end["line"]
        await self.change(start["line"], start["character"], end["character"], edit["text"])
        await self.run(edit["command"]["command"], edit)

    async def run(self, command: str, edit: dict[str, Any]) -> None:
        self.answers += 1
        asked = {"command": command, "arguments": edit["command"]["arguments"]}
        assert (await self.wire.ask(f"{self.uri} {self.answers}", "workspace/executeCommand", asked))["result"] is None


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Wire, Path]]:
    """A server of one folder."""
    folder = tmp_path_factory.mktemp("workspace")
    async with wired("--model=embedded") as (_, wire):
        params = {"processId": None, "rootUri": folder.as_uri(), "capabilities": {}, "initializationOptions": SETTINGS}
        await wire.ask("initialize", "initialize", params)
        await wire.send(wire.note("initialized", {}))
        yield wire, folder


async def opened(served: tuple[Wire, Path], name: str, text: str = TEXT, language: str = "python") -> Edited:
    wire, folder = served
    uri = (folder / name).as_uri()
    document = {"uri": uri, "languageId": language, "version": 1, "text": text}
    await wire.send(wire.note("textDocument/didOpen", {"textDocument": document}))
    return Edited(wire, uri, text)


async def test_the_uses_of_a_renamed_parameter_are_walked(served: tuple[Wire, Path]) -> None:
    edited = await opened(served, "walked.py")
    assert await edited.next_edit() == []
    await edited.change(0, 10, 16, "")
    for number, character in enumerate("items"):
        await edited.change(0, 10 + number, 10 + number, character)
    lines = []
    while found := await edited.next_edit():
        lines.append(found[0]["range"]["start"]["line"])
        assert found[0]["textDocument"] == {"uri": edited.uri, "version": edited.version}
        assert found[0]["command"]["arguments"][0]["guarantee"] == "exact"
        await edited.accept(found[0])
    assert lines == [1, 3]
    assert edited.text == TEXT.replace("values", "items")


async def test_a_dismissed_or_undone_edit_stays_away(served: tuple[Wire, Path]) -> None:
    edited = await opened(served, "dismissed.py")
    await edited.change(0, 10, 16, "items")
    [first] = await edited.next_edit()
    await edited.run("fim-server.editDismissed", first)
    [second] = await edited.next_edit()
    assert second["range"] != first["range"]
    await edited.accept(second)
    line = second["range"]["start"]["line"]
    start = second["range"]["start"]["character"]
    await edited.change(line, start, start + len("items"), "values")  # undone
    assert await edited.next_edit() == []


async def test_an_edit_that_does_not_parse_is_not_proposed(served: tuple[Wire, Path]) -> None:
    edited = await opened(served, "broken.py", "".join(f"x{n} = load({n}, None)\n" for n in range(4)))
    for line in range(2):
        await edited.change(line, 11, 18, "")  # with the bracket
    assert await edited.next_edit() == []
    edited = await opened(served, "whole.py", "".join(f"x{n} = load({n}, None)\n" for n in range(4)))
    for line in range(2):
        await edited.change(line, 11, 17, "")
    [found] = await edited.next_edit()
    await edited.accept(found)
    assert edited.text == "".join(f"x{n} = load({n}{', None' * (n == 3)})\n" for n in range(4))


@pytest.mark.parametrize(
    ("name", "language"), [("secrets.py", "python"), ("notes.txt", "plaintext"), ("plain.md", "markdown")]
)
async def test_files_of_secrets_and_prose_get_none(served: tuple[Wire, Path], name: str, language: str) -> None:
    edited = await opened(served, name, language=language)
    await edited.change(0, 10, 16, "items")
    assert await edited.next_edit() == []


async def test_an_edit_follows_in_another_file(served: tuple[Wire, Path]) -> None:
    user = await opened(served, "user.py", "from shapes import area\n\nprint(area(1))\n")
    shapes = await opened(served, "shapes.py", "def area(w):\n    return w\n")
    await shapes.change(0, 4, 8, "size")
    lines = []
    while found := await user.next_edit():
        lines.append(found[0]["range"]["start"]["line"])
        await user.accept(found[0])
    assert lines == [0, 2]
    assert user.text == "from shapes import size\n\nprint(size(1))\n"


async def test_the_other_files_that_count_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def not_secret(*_: object) -> None:
        return None

    monkeypatch.setattr("fim_server.server.handlers.next_edit.secret_reason", not_secret)
    lengths = [LONGEST_DOCUMENT + 1, *[LONGEST_DOCUMENT] * 4, 1]
    documents = {
        f"file:///{number}.py": SimpleNamespace(language_id="python", notebook=None, source="x" * length)
        for number, length in enumerate(lengths)
    }
    edits = [Edit(uri, 0, "", "x") for uri in reversed(documents)]
    memory = SimpleNamespace(latest=lambda: edits)
    ls: Any = SimpleNamespace(protocol=SimpleNamespace(edit_memory=lambda: memory), open_document=documents.get)
    mine: Any = SimpleNamespace(uri="file:///mine.py", language_id="python")
    assert list(await others_edited(ls, mine)) == [f"file:///{number}.py" for number in (1, 2, 3, 5)]


async def test_no_edit_follows_from_a_file_of_secrets(served: tuple[Wire, Path]) -> None:
    user = await opened(served, "reader.py", "from secrets import area\n\nprint(area(1))\n")
    secret = await opened(served, "secrets.py", "def area(w):\n    return w\n")
    await secret.change(0, 4, 8, "size")
    assert await user.next_edit() == []
    assert await secret.next_edit() == []


async def test_clients_that_ask_for_it_get_an_edit_of_another_file(served: tuple[Wire, Path]) -> None:
    user = await opened(served, "painter.py", "import circles\n\nprint(circles.area(1), circles.area(2))\n")
    other = await opened(served, "reporter.py", "from circles import area\n\nprint(area(3))\n")
    await opened(served, "talker.ts", "import { area } from './circles';\n", "typescript")
    circles = await opened(served, "circles.py", "def area(w):\n    return w\n")
    await circles.change(0, 4, 8, "size")
    assert await circles.next_edit() == []
    [latest] = await circles.next_edit(otherDocuments=True)
    assert latest["textDocument"] == {"uri": other.uri, "version": 1}, "the one that was opened last"
    await other.accept(latest)
    [second] = await other.next_edit(otherDocuments=True)
    assert second["textDocument"]["uri"] == other.uri, "its own go first"
    await other.accept(second)
    assert other.text == "from circles import size\n\nprint(size(3))\n"
    [third] = await other.next_edit(otherDocuments=True)
    assert third["textDocument"] == {"uri": user.uri, "version": 1}
    assert third["range"]["start"] == {"line": 2, "character": 14}
    await other.run("fim-server.editDismissed", third)
    assert await other.next_edit(otherDocuments=True) == [], "its other use stays away too"
    [own] = await user.next_edit(otherDocuments=True)
    assert own["range"]["start"]["character"] == 31, "in the file itself only that place stays away"


async def test_after_further_changes_no_edit_of_another_file_follows(served: tuple[Wire, Path]) -> None:
    await opened(served, "caller.py", "import lines\n\nprint(lines.length(1))\n")
    lines = await opened(served, "lines.py", "def length(w):\n    return w\n\n\na = 1\n\nb = 2\n\nc = 3\n\nd = 4\n")
    await lines.change(0, 4, 10, "reach")
    for number, line in enumerate((4, 6, 8)):
        await lines.change(line, 4, 5, str(10 * number))
        assert len(await lines.next_edit(otherDocuments=True)) == 1
    await lines.change(10, 4, 5, "f(x)")
    assert await lines.next_edit(otherDocuments=True) == []


async def test_files_of_secrets_switched_off_or_broken_get_no_edit_from_others(served: tuple[Wire, Path]) -> None:
    await opened(served, "secrets.py", "import shop\n\nprint(shop.price(1))\n")
    shop = await opened(served, "shop.py", "def price(w):\n    return w\n")
    await shop.change(0, 4, 9, "cost")
    assert await shop.next_edit(otherDocuments=True) == []
    readable = await opened(served, "till.py", "import shop\n\nprint(shop.price(1))\n")
    assert len(await shop.next_edit(otherDocuments=True)) == 1
    wire = served[0]
    for languages, count in (({"till.py": "off"}, 0), ({}, 1)):
        settings = {"fim-server": {**SETTINGS, "languages": languages}}
        await wire.send(wire.note("workspace/didChangeConfiguration", {"settings": settings}))
        assert len(await shop.next_edit(otherDocuments=True)) == count
    await readable.change(1, 0, 0, "x = (")  # the file does not parse
    assert await shop.next_edit(otherDocuments=True) == []


async def test_an_old_version_and_an_unknown_document_get_none(served: tuple[Wire, Path]) -> None:
    edited = await opened(served, "versions.py")
    await edited.change(0, 10, 16, "items")
    assert await edited.next_edit(version=1) == []
    assert await edited.next_edit() != []
    assert await Edited(served[0], "file:///unknown.py", "").next_edit() == []


async def test_positions_are_the_clients(served: tuple[Wire, Path]) -> None:
    edited = await opened(served, "wide.py", "".join(f'x{n} = "😀", load({n}, None)\r\n' for n in range(3)))
    for line in range(2):
        await edited.change(line, 17, 23, "")
    [found] = await edited.next_edit()
    assert found["range"]["start"] == {"line": 2, "character": 17}
    assert found["range"]["end"] == {"line": 2, "character": 23}
    assert found["text"] == ""


async def test_line_breaks_are_the_documents() -> None:
    document = OpenDocument("file:///a.py", source="a\r\nb\r\n", encoding=PositionEncoding.UTF16, version=7)
    found = NextEdit(Proposal(2, 3, "c\nd", 0.5), "exact", 1)
    edit = edit_json(document, found, "1", PositionEncoding.UTF16)
    assert edit["text"] == "c\r\nd"
    assert edit["range"] == {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 1}}


async def test_the_setting_switches_it_off(served: tuple[Wire, Path]) -> None:
    wire = served[0]
    edited = await opened(served, "off.py")
    await edited.change(0, 10, 16, "items")
    for wanted in (False, True):
        await wire.send(
            wire.note("workspace/didChangeConfiguration", {"settings": {"fim-server": {"nextEdits": wanted}}})
        )
        assert bool(await edited.next_edit()) is wanted


async def test_clients_of_this_request_may_tell_more(served: tuple[Wire, Path]) -> None:
    wire = served[0]
    await wire.send(wire.note("textDocument/didShowInlineEdit", {"item": {}}))
    await wire.send(wire.note("textDocument/didFocus", {"textDocument": {"uri": "file:///a.py"}}))
    wrong = await wire.ask("wrong", NEXT_EDIT, {"textDocument": {}})
    assert wrong["error"]["code"] == INVALID_PARAMS
