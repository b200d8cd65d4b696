"""Positions in three encodings, lines with four breaks, and documents with unusual names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from lsprotocol import types

from support.editors.editor import (
    AUTOMATIC,
    INVOKED,
    Client,
    Editor,
    assert_parses,
    capabilities,
    items,
    serving,
    written,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

Kind = types.PositionEncodingKind
ENCODINGS = {"utf-8": Kind.Utf8, "utf-16": Kind.Utf16, "utf-32": Kind.Utf32}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def clients() -> AsyncIterator[dict[str, Client]]:
    """A server for each encoding; they start at the same time."""
    async with AsyncExitStack() as stack:
        contexts = [serving(capabilities(kind)) for kind in ENCODINGS.values()]
        found = await asyncio.gather(*(stack.enter_async_context(context) for context in contexts))
        for client in found:
            await client.is_ready()
            await client.use(maxTokens=16, maxLineTokens=8, alternatives=2)
        yield dict(zip(ENCODINGS, found, strict=True))


@pytest.fixture(params=ENCODINGS)
def client(request: pytest.FixtureRequest, clients: dict[str, Client]) -> Client:
    return clients[request.param]


async def assert_same_text(editor: Editor, marker: str) -> None:
    """The server's document is the editor's: the marker, a call that is open there, stands where it should."""
    offset = editor.text.index(marker) + len(marker)
    answer = await editor.explain(offset)
    line = editor.position(offset).line
    assert {"line": line, "text": marker} in [
        {"line": entry["line"], "text": entry["text"][-len(marker) :]} for entry in answer["openLeft"]
    ]


def named(name: str) -> str:
    return f"positions_{name}.py"


async def test_the_encoding_is_agreed_on(clients: dict[str, Client]) -> None:
    for name, client in clients.items():
        assert client.encoding == name


TEXTS = {
    "astral": "a = '😀é😀'; b = f('𝒳', mark(), '😀')\n# 😀😀\nd = '𝒳'\n",
    "tabs": "def f(a):\n\tif a:\n\t\tb = '\t😀\t'; c = mark()\n\treturn a\nd = 1\n",
    "crlf": "a = '😀'\r\nb = [\r\n    mark(),\r\n]\r\nd = 1\r\n",
    "lone cr": "a = '😀'\rb = [\r    mark(),\r]\rd = 1\r",
    "mixed": "a = '😀'\r\nb = [\n    mark(),\r]\nd = 1\r\n",
    "form feed": "a = 1\n\x0c\nb = '😀\x0b'; c = mark()\n\x0c\nd = 1\n",
    "other separators": "a = '\u2028\u2029\x85'\nb = '\x1c\x1d\x1e'; c = mark()\nd = 1\n",
    "combining": "a = 'e\u0301👩\u200d👩\u200d👧'; b = mark()\nd = 1\n",
    "identifiers": "größe = 1\n变量 = größe; 𝒳 = mark()\nd = 1\n",
}


@pytest.mark.parametrize("name", TEXTS)
async def test_a_cursor_is_where_the_editor_has_it(client: Client, name: str) -> None:
    """Opened, changed before, at and behind the cursor, and completed: each time in the client's own units."""
    editor = Editor(client, named(name), TEXTS[name])
    await assert_same_text(editor, "mark(")
    for inserted in ("é", "𝒳", "变"):
        at = editor.text.index("mark(")
        editor.change(at, at, inserted)
        if "'" in editor.text:
            first = editor.text.index("'") + 1
            editor.change(first, first, "😀")
    editor.change(editor.text.index("d = "), editor.text.index("d = ") + 1, "变")
    await assert_same_text(editor, "mark(")
    cursor = editor.text.index("mark(") + 5
    for kind in (INVOKED, AUTOMATIC):
        for item in await editor.ask(cursor, kind=kind):
            assert item.range is not None
            assert item.range.start == editor.position(cursor)
            assert_parses(editor.applied(item, cursor), written(item))
    cursor = len(editor.text)
    for item in await editor.ask(cursor):
        assert_parses(editor.applied(item, cursor), written(item))


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
async def test_several_lines_come_with_the_documents_breaks(client: Client, newline: str) -> None:
    text = f"class A:{newline}    def f(self, path):{newline}        for a in path:|{newline}        return 1{newline}"
    editor = Editor(client, f"breaks_{len(newline)}{ord(newline[0])}.py", text.replace("|", ""))
    cursor = text.index("|")
    for item in await editor.ask(cursor):
        assert not {"\r", "\n"} & set(written(item).replace(newline, ""))
        assert_parses(editor.applied(item, cursor), written(item))


async def test_positions_outside_the_text_are_its_ends(client: Client) -> None:
    editor = Editor(client, named("outside"), "def f(a):\n    return \n")
    context = types.InlineCompletionContext(INVOKED)
    for line, character in [(1, 12), (1, 10**6), (10**6, 0), (10**6, 10**6), (1, 2**31 - 1)]:
        clamped = editor.position(len(editor.text) - 1 if line == 1 else len(editor.text))
        params = types.InlineCompletionParams(
            context, types.TextDocumentIdentifier(editor.uri), types.Position(line, character)
        )
        for item in items(await client.text_document_inline_completion_async(params)):
            assert item.range == types.Range(clamped, clamped)
            start, end = editor.span(item)
            result = editor.text[:start] + written(item) + editor.text[end:]
            assert_parses(result, written(item))


async def test_a_selection_past_its_lines_end_ends_there(client: Client) -> None:
    """Nor does it matter in which order its ends are."""
    editor = Editor(client, named("selected_beyond"), "# 😀\nlength = le\nd = 1\n")
    first, last = editor.position(editor.text.index("le\n")), types.Position(1, 2**31 - 1)
    for ends in ((first, last), (last, first)):
        found = await editor.ask(editor.text.index("\nd"), types.SelectedCompletionInfo(types.Range(*ends), "len"))
        assert found
        for item in found:
            assert item.range == types.Range(first, editor.position(editor.text.index("\nd")))


async def test_a_position_inside_a_character_is_its_start(client: Client) -> None:
    if client.encoding == "utf-32":
        pytest.skip("no position is inside a character")
    editor = Editor(client, named("half"), "x = '😀'\n")
    inside = types.Position(0, 6)
    answer = await client.run(
        "explainAt", {"uri": editor.uri, "position": {"line": inside.line, "character": inside.character}, "text": "y"}
    )
    assert answer["inside"] == "string"
    assert answer["verdict"]["complete"]


NAMES = [
    "untitled:Untitled-1",
    "vscode-notebook-cell:/project/a.ipynb#X23sZmlsZQ%3D%3D",
    "vscode-notebook-cell:/project/a.ipynb#W1sZmlsZQ%3D%3D",
    "file:///c%3A/project/b%20c.py",
    "file:///project/n%C3%A4me%20%F0%9F%98%80.py",
    "vscode-vfs://github/owner/name/a.py",
    "git:/project/a.py?%7B%22ref%22%3A%22HEAD%22%7D",
    "inmemory:",
]


@pytest.mark.parametrize("uri", NAMES)
async def test_documents_of_all_kinds_of_names(clients: dict[str, Client], uri: str) -> None:
    client = clients["utf-16"]
    editor = Editor(client, uri, f"import os\n\n\ndef names(path, count={len(uri)}):\n    return \n")
    cursor = editor.text.index("return ") + 7
    found = await editor.ask(cursor)
    assert found
    assert client.last["uri"] == uri
    assert client.last["origin"] == "model"
    for item in found:
        assert_parses(editor.applied(item, cursor), written(item))
    await assert_same_text(editor, "names(")
    editor.close()


async def test_cells_of_one_notebook_are_documents_of_their_own(clients: dict[str, Client]) -> None:
    client = clients["utf-16"]
    first = Editor(client, "vscode-notebook-cell:/project/n.ipynb#A", "a = [1, 2\n")
    second = Editor(client, "vscode-notebook-cell:/project/n.ipynb#B", "def g(a):\n    return \n")
    cursor = second.text.index("return ") + 7
    for item in await second.ask(cursor):
        assert_parses(second.applied(item, cursor), written(item))
    answer = await first.explain(len("a = [1, 2"))
    assert answer["openLeft"][0]["text"].startswith("[1, 2")
    first.close()
    assert await second.ask(cursor)


async def test_the_language_of_a_file_without_a_known_language_is_its_suffixs(clients: dict[str, Client]) -> None:
    client = clients["utf-16"]
    text = "def f(a):\n    return \n"
    for uri, language, known in [
        ("file:///project/suffix.py", "plaintext", True),
        ("file:///project/suffix.pyi", "", True),
        ("file:///project/suffix.txt", "python", True),
        ("file:///project/suffix.txt", "plaintext", False),
        ("untitled:Untitled-9", "plaintext", False),
    ]:
        editor = Editor(client, uri, text, language)
        await editor.ask(len(text) - 1)
        assert (client.last["guarantee"] == "exact") == known, (uri, client.last)
        editor.close()


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("import os\n\ndef f(path):\n    return os.pa|\n", "path"),
        ("x = '😀'; y = prin|\n", "print"),
        ("def f(value):\n    return f(va|)\n", "value"),
        ("s = '😀😀'; length = le|\n", "len"),
        ("import os\r\nos.ge|\r\n", "getcwd()"),
    ],
)
async def test_items_begin_with_the_selected_entry(client: Client, text: str, selected: str) -> None:
    cursor = text.index("|")
    editor = Editor(client, named("selected"), text.replace("|", ""))
    start = cursor - (4 if text[:cursor].endswith("prin") else 2)
    chosen = types.Range(editor.position(start), editor.position(cursor))
    for item in await editor.ask(cursor, types.SelectedCompletionInfo(chosen, selected)):
        assert item.range is not None
        assert item.range.start == chosen.start
        assert written(item).startswith(selected)
        begin, end = editor.span(item)
        assert end >= cursor
        assert_parses(editor.text[:begin] + written(item) + editor.text[end:], written(item))
    editor.close()
