"""The language server as an editor sees it: a process of its own, asked over the protocol."""

from __future__ import annotations

import asyncio
import textwrap
import time
from collections.abc import AsyncIterator
from itertools import groupby
from pathlib import Path

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from fim_server.server.documents.open_document import OpenDocument
from fim_server.text.document import Document, PositionEncoding
from support.editors.editor import (
    AUTOMATIC,
    INVOKED,
    PATIENCE,
    REQUEST_CANCELLED,
    Client,
    Editor,
    assert_parses,
    items,
    serving,
    written,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

SOURCE = Path(textwrap.__file__).read_text(encoding="utf-8")
HOLE = "return self._wrap_chunks(chunks)"
"""A statement of the standard library's textwrap that the server is asked to write again."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[Client]:
    async with serving() as client:
        yield client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client_without_model() -> AsyncIterator[Client]:
    async with serving(None, "--model", "./no-such-model") as client:
        yield client


async def one_to_three(editor: Editor, offset: int) -> list[types.InlineCompletionItem]:
    """The items for an explicit request; there has to be one, and none twice."""
    found = await editor.ask(offset)
    assert 1 <= len(found) <= 3
    assert len({written(item) for item in found}) == len(found)
    return found


# --- completing --------------------------------------------------------------------------------------------------


async def test_the_feature_is_advertised(client: Client) -> None:
    offered = client.initialized_with.capabilities
    assert offered.inline_completion_provider
    assert isinstance(offered.text_document_sync, types.TextDocumentSyncOptions)
    assert offered.text_document_sync.change == types.TextDocumentSyncKind.Incremental
    assert offered.position_encoding == types.PositionEncodingKind.Utf16


async def test_an_accepted_completion_leaves_a_file_that_parses(client: Client) -> None:
    offset = SOURCE.index(HOLE)
    editor = Editor(client, "textwrap.py", SOURCE.replace(HOLE, ""))
    for item in await one_to_three(editor, offset):
        assert item.range == types.Range(editor.position(offset), editor.position(offset))
        assert_parses(editor.applied(item, offset), written(item))


async def test_an_automatic_request_gets_one_item(client: Client) -> None:
    offset = SOURCE.index(HOLE)
    editor = Editor(client, "automatic.py", SOURCE.replace(HOLE, ""))
    (item,) = await editor.ask(offset, kind=AUTOMATIC)
    assert_parses(editor.applied(item, offset), written(item))


async def test_a_completion_fits_between_what_is_open(client: Client) -> None:
    offset = SOURCE.index(HOLE) + len("return self._wrap_chunks(")
    editor = Editor(client, "inside.py", SOURCE.replace(HOLE, "return self._wrap_chunks()"))
    for item in await editor.ask(offset):
        assert_parses(editor.applied(item, offset), written(item))


async def test_columns_are_counted_in_utf16(client: Client) -> None:
    text = "def f(a):\n    s, t = '😀é😀', \n    return s\n"
    editor = Editor(client, "utf16.py", text)
    offset = text.index(", \n") + 2
    for item in await editor.ask(offset):
        assert_parses(editor.applied(item, offset), written(item))


async def test_line_breaks_are_the_documents_own(client: Client) -> None:
    text = "def f(a):\r\n    for b in a:\r\n        \r\n    return a\r\n"
    offset = text.index("        \r\n") + 8
    editor = Editor(client, "crlf.py", text)
    for item in await one_to_three(editor, offset):
        assert "\n" not in written(item).replace("\r\n", "")
        assert_parses(editor.applied(item, offset), written(item))


async def test_changes_below_a_form_feed_land_on_their_line(client: Client) -> None:
    text = "import a\n\x0c\ndef f(a):\n    return a\n\n\ndef g(a):\n    return a\n"
    editor = Editor(client, "formfeed.py", text)
    start = editor.text.rindex("return a")
    editor.change(start, start + len("return a"), "return a + ")
    offset = start + len("return a + ")
    for item in await one_to_three(editor, offset):
        assert_parses(editor.applied(item, offset), written(item))


async def test_typing_and_asking_again(client: Client) -> None:
    editor = Editor(client, "typing.py", "import os\n\n\ndef f(path):\n    \n\n\nprint(f('😀'))\n")
    offset = editor.text.index("    \n") + 4
    for character in "return os":
        editor.change(offset, offset, character)
        offset += 1
    for item in await editor.ask(offset):
        assert_parses(editor.applied(item, offset), written(item))


async def test_a_selected_suggestion_is_completed_as_if_accepted(client: Client) -> None:
    text = "import os\n\ndef f(path):\n    return os.pa\n"
    offset = text.index("os.pa") + 5
    editor = Editor(client, "selected.py", text)
    chosen = types.Range(editor.position(offset - 2), editor.position(offset))
    for item in await editor.ask(offset, types.SelectedCompletionInfo(chosen, "path")):
        assert item.range == chosen
        assert written(item).startswith("path")
        assert_parses(text[: offset - 2] + written(item) + text[offset:], written(item))


@pytest.mark.parametrize("chosen", ["sto", "stock", "s", "stoc", "st"])
async def test_a_selected_word_is_never_made_a_longer_one(client: Client, chosen: str) -> None:
    text = "stock_of_items = 1\nprint(s)\n"
    offset = text.index("print(s") + 7
    editor = Editor(client, f"word-{chosen}.py", text)
    for kind in (AUTOMATIC, INVOKED):
        await editor.ask(offset, kind=kind)  # what the word may become is known by then
        there = types.Range(editor.position(offset - 1), editor.position(offset))
        for item in await editor.ask(offset, types.SelectedCompletionInfo(there, chosen), kind=kind):
            rest = written(item).removeprefix(chosen)
            assert not rest[:1].replace("_", "a").isalnum(), written(item)


async def test_a_selected_suggestion_of_several_lines_keeps_the_place(client: Client) -> None:
    text = "import os\r\nos.\r\nprint(1)\r\n"
    editor = Editor(client, "selected-lines.py", text)
    offset = text.index("os.\r") + 3
    here = types.Range(editor.position(offset), editor.position(offset))
    for item in await editor.ask(offset, types.SelectedCompletionInfo(here, "path(\r\n  x)")):
        assert written(item).startswith("path(\r\n  x)")
        assert_parses(text[:offset] + written(item) + text[offset:], written(item))


async def test_an_explicit_request_is_not_answered_by_a_hidden_suggestion(client: Client) -> None:
    text = "def f(value):\n    # the value \n    return value\n"
    offset = text.index("# the value ") + len("# the value ")
    editor = Editor(client, "unasked.py", text)
    assert await editor.ask(offset, kind=types.InlineCompletionTriggerKind.Automatic) == []
    await editor.ask(offset)
    assert client.last["origin"] == "model"


# --- nothing to offer --------------------------------------------------------------------------------------------


async def test_a_broken_file_breaks_nothing(client: Client) -> None:
    editor = Editor(client, "broken.py", "def f(:\n    return \n)))\n")
    await editor.ask(editor.text.index("return ") + 7)
    await client.until(lambda: any("broken.py" in line for line in client.logged))
    (said,) = [line for line in client.logged if "broken.py" in line]
    assert "guarantee exact" not in said


async def test_languages_without_a_grammar_and_unknown_documents_get_nothing_unasked(client: Client) -> None:
    assert await Editor(client, "notes.txt", "hello ", "plaintext").ask(6, kind=AUTOMATIC) == []
    unopened = types.TextDocumentIdentifier("file:///project/never-opened.py")
    context = types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic)
    answer = await client.text_document_inline_completion_async(
        types.InlineCompletionParams(context, unopened, types.Position(0, 0))
    )
    assert items(answer) == []


async def test_a_huge_file_gets_nothing(client: Client) -> None:
    started = time.monotonic()
    editor = Editor(client, "huge.py", "a = 1\n" * 200_000)
    for offset in (0, 6, 12):
        assert await editor.ask(offset) == []
    assert time.monotonic() - started < 30
    logged = [line for line in client.logged if "huge.py" in line]
    assert ["no suggestion (the document has more than 1,000,000 characters" in line for line in logged] == [True]
    assert "maxFileCharacters" in client.last["reason"]


async def test_half_a_surrogate_pair_gets_nothing(client: Client) -> None:
    editor = Editor(client, "surrogate.py", "a = 1\n")
    editor.version += 1
    whole = types.TextDocumentContentChangeWholeDocument(text="a = '\ud83d'\n")
    identifier = types.VersionedTextDocumentIdentifier(editor.version, editor.uri)
    client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [whole]))
    assert await editor.ask(0) == []


async def test_a_failed_model_leaves_the_server_alive(client_without_model: Client) -> None:
    editor = Editor(client_without_model, "a.py", "a = \n")
    assert await editor.ask(4) == []
    assert await editor.ask(4) == []
    assert any("./no-such-model: no such model folder" in message for message in client_without_model.logged)
    assert [entry.message for entry in client_without_model.messages] == [
        "fim-server: ./no-such-model: no such model folder"
    ]
    status = client_without_model.statuses[-1]
    assert status["state"] == "error"
    assert status["message"] == status["last"]["reason"] == "./no-such-model: no such model folder"
    assert "model" not in status


async def test_a_failed_model_can_be_loaded_again(client_without_model: Client) -> None:
    await client_without_model.until(lambda: client_without_model.statuses[-1]["state"] == "error")
    said, shown = len(client_without_model.statuses), len(client_without_model.messages)
    await client_without_model.run("reload")
    # The old error may be told once more before, because something else of the status has changed.
    states = [state for state, _ in groupby(status["state"] for status in client_without_model.statuses[said:])]
    assert states[-2:] == ["loading", "error"]
    assert states[:-2] in ([], ["error"])
    assert len(client_without_model.messages) == shown + 1  # the user asked, and gets a message
    assert await Editor(client_without_model, "b.py", "a = \n").ask(4) == []
    assert await client_without_model.run("statistics")


# --- requests that overtake each other ---------------------------------------------------------------------------


def slow(client: Client, name: str) -> tuple[Editor, int]:
    """A document whose prompt alone takes the model longer than a message takes to arrive."""
    text = SOURCE + f"\n\ndef {name}(a):\n    b = [\n        \n    ]\n    return b\n"
    return Editor(client, f"{name}.py", text), text.rindex("        \n") + 8


async def test_a_cancelled_request_is_answered_at_once_and_the_next_is_served(client: Client) -> None:
    await Editor(client, "warm.py", "a = \n").ask(4)  # the model is there
    editor, offset = slow(client, "cancel")
    request = asyncio.ensure_future(
        client.protocol.send_request_async(
            types.TEXT_DOCUMENT_INLINE_COMPLETION, editor.params(offset), msg_id="to-be-cancelled"
        )
    )
    await asyncio.sleep(0.05)  # under way
    client.protocol.notify(types.CANCEL_REQUEST, types.CancelParams("to-be-cancelled"))
    with pytest.raises(JsonRpcException) as refusal:
        await asyncio.wait_for(request, 10)
    assert refusal.value.code == REQUEST_CANCELLED
    await asyncio.wait_for(editor.ask(offset), 60)
    assert client.last["origin"] == "model"


async def test_the_latest_request_wins(client: Client) -> None:
    editor, offset = slow(client, "latest")
    first = client.text_document_inline_completion_async(editor.params(offset))
    second = client.text_document_inline_completion_async(editor.params(offset - 4))
    earlier, later = await asyncio.wait_for(asyncio.gather(first, second), PATIENCE)
    assert items(earlier) == []
    for item in items(later):
        assert_parses(editor.applied(item, offset - 4), written(item))


async def test_a_request_for_another_document_supersedes_none(client: Client) -> None:
    (one, at), (other, there) = slow(client, "one"), slow(client, "other")
    found = await asyncio.wait_for(asyncio.gather(one.ask(at), other.ask(there)), PATIENCE)
    assert all(found)


async def test_a_result_for_an_old_version_is_dropped(client: Client) -> None:
    editor, offset = slow(client, "stale")
    request = asyncio.ensure_future(client.text_document_inline_completion_async(editor.params(offset)))
    await asyncio.sleep(0)
    editor.change(0, 0, "# changed meanwhile\n")
    assert items(await request) == []


# --- documents without a process ---------------------------------------------------------------------------------


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_changes_give_the_editors_text(newline: str) -> None:
    text = newline.join(["a = '😀'", "\x0cb = 2", "c = '\u2028'", "d", ""])
    opened = OpenDocument("file:///a.py", source=text, encoding=PositionEncoding.UTF16, version=1)
    for (line, start, end), inserted in [
        ((0, 7, 8), "!'"),
        ((1, 0, 1), ""),
        ((3, 0, 1), f"e{newline}f"),
        ((4, 1, 9), "g"),
    ]:
        change = types.Range(types.Position(line, start), types.Position(line, end))
        opened.apply_change(types.TextDocumentContentChangePartial(range=change, text=inserted))
    assert opened.document == Document("a = '😀!'\nb = 2\nc = '\u2028'\ne\nfg\n", newline, 1)
