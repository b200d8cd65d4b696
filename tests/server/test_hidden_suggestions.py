"""Items are the texts that the engine has judged; neither they nor messages have characters that are not seen."""

from __future__ import annotations

import io
import json
import logging
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lsprotocol import types

from fim_server.server.items import FallbackKinds, inline_items, list_items
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.logs import FORMAT, Escaping
from fim_server.server.models.loading import fail
from fim_server.server.state import ModelState, RequestState, SentStatus
from fim_server.server.status import model_json, send_status
from fim_server.text.document import LINE_BREAK, Document, PositionEncoding, Split
from fim_server.text.hidden import HIDDEN
from support.editors.answers import answered, suggestion
from support.editors.editor import Client, Editor, serving, written

START = types.Position(0, 4)
ENCODING = PositionEncoding.UTF16
ZWNJ, ZWJ = "\u200c", "\u200d"
HOSTILE = f"a\x1b[2J\u202e\u200b\U000e0041{'x' * 8_000_000}"


def kinds() -> FallbackKinds:
    item = types.ClientCompletionItemOptions(snippet_support=True)
    completion = types.CompletionClientCapabilities(completion_item=item)
    return FallbackKinds(
        types.ClientCapabilities(text_document=types.TextDocumentClientCapabilities(completion=completion))
    )


def texts(split: Split, *offered: str) -> list[str]:
    """The texts that both kinds of items insert."""
    answer = answered(split.left, split.right, *map(suggestion, offered))
    inline = [item.insert_text for item in inline_items(answer, split, START, ENCODING, None)]
    listed = [item.text_edit for item in list_items(answer, split, START, ENCODING, kinds())]
    assert [edit.new_text for edit in listed if isinstance(edit, types.TextEdit)] == inline
    assert all(isinstance(text, str) for text in inline)
    return [str(text) for text in inline]


@pytest.mark.parametrize(
    "hidden", ["\r", "\x00", "\x1b[31m", "\x85", "\u2028", "\u202e", "\u200b", "\U000e0041", "\ufeff"]
)
def test_no_item_has_a_hidden_character(hidden: str) -> None:
    split = Split("x = ", "\n")
    assert texts(split, f"a{hidden})", "b", hidden) == ["b"]


def test_the_word_at_the_cursor_may_be_continued() -> None:
    assert texts(Split(f'x = "\u0645\u06cc{ZWNJ}', '"\n'), f"\u0634{ZWNJ}\u0648", f"\u0634{ZWJ}") == [
        f"\u0634{ZWNJ}\u0648"
    ]


def test_only_line_breaks_differ_between_a_judged_text_and_its_item() -> None:
    random.seed(14)
    pieces = ["a", " ", "\n", "\r", "\t", "(", "\f", "\u2028", "\x85", "é", "\ufeff", "\x1b", "\\", "😀"]
    for _ in range(2_000):
        text = "".join(random.choices(pieces, k=random.randrange(1, 8)))
        for newline in ("\n", "\r\n"):
            split = Split("x = ", "\n", newline=newline)
            for inserted in [
                one.insert_text
                for one in inline_items(answered("x = ", "\n", suggestion(text)), split, START, ENCODING, None)
            ]:
                assert isinstance(inserted, str)
                assert inserted.replace("\r\n", "\n") == text
                assert "\r" not in text
                assert inserted.count("\r\n") == (text.count("\n") if newline == "\r\n" else 0)
                assert LINE_BREAK.sub("\n", inserted) == text


def test_a_text_is_restored_without_changes_to_its_carriage_returns() -> None:
    split = Document.from_text("a\r\nb\r\n").split(1)
    assert split.restore("x\ny\rz") == "x\r\ny\rz"
    assert Document.from_text("a\nb").split(1).restore("x\ny\rz") == "x\ny\rz"


def test_a_hostile_name_of_a_model_is_shown_escaped_and_shortened() -> None:
    told: list[Any] = []
    model: Any = SimpleNamespace(
        name=HOSTILE,
        device=HOSTILE,
        runtime="remote",
        mode="checked",
        format=SimpleNamespace(family=HOSTILE, languages=None, sees_suffix=False),
    )
    assert len(model_json(model)["name"]) < 300
    server: Any = SimpleNamespace(
        worker=SimpleNamespace(model=model, unfinished=SimpleNamespace(documents=[])),
        settings=SimpleNamespace(enabled=True, memory_mb="auto"),
        model=ModelState(),
        requests=RequestState(),
        sent=SentStatus(last={"uri": "file:///a\u202e.py", "reason": HOSTILE}),
        supervisor=SimpleNamespace(allowed=None, budget=SimpleNamespace(last=None)),
        project=SimpleNamespace(size=0),
        checkers=SimpleNamespace(resident_bytes=0),
        protocol=SimpleNamespace(notify=lambda method, status: told.append(status)),
    )
    send_status(server)
    (status,) = told
    assert status["last"].pop("uri") == "file:///a\u202e.py"  # the client's own name
    shown = json.dumps(status, ensure_ascii=False)
    assert HIDDEN.search(shown) is None
    assert len(shown) < 20_000


def test_a_record_of_the_log_is_escaped_and_bounded() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Escaping(FORMAT))
    try:
        raise ValueError(HOSTILE)
    except ValueError as error:
        record = logging.LogRecord(
            "a\x1b", logging.ERROR, "", 1, "%s", (HOSTILE,), (ValueError, error, error.__traceback__)
        )
    handler.emit(record)
    assert HIDDEN.search(stream.getvalue()) is None
    assert len(stream.getvalue()) < 200_000


@pytest.mark.asyncio
async def test_messages_and_explanations_are_escaped(tmp_path: Path) -> None:
    client: Client
    async with serving(None, "--model", "embedded") as client:
        await client.is_ready()
        editor = Editor(client, "a.py", 'def f():\n    if x:  # \u202e\x1b[2J\n        y = "\u200b" + (\n')
        told = json.dumps(await editor.explain(len(editor.text) - 1), ensure_ascii=False)
        assert "if x:" in told
        assert HIDDEN.search(told) is None
        assert b"\x1b" not in client.stderr


def test_a_failure_is_shown_escaped_and_shortened() -> None:
    told: list[str] = []
    server: Any = SimpleNamespace(
        model=ModelState(),
        window_log_message=lambda params: told.append(params.message),
        window_show_message=lambda params: told.append(params.message),
    )
    server.log = lambda kind, message: FimLanguageServer.log(server, kind, message)
    fail(server, f"{HOSTILE}: no such model")
    told.append(server.model.failure)
    server.log(types.MessageType.Error, HOSTILE)
    assert len(told) == 4
    for message in told:
        assert HIDDEN.search(message) is None
        assert len(message) < 5_000


@pytest.mark.asyncio
async def test_items_in_documents_of_windows_and_of_old_macs_have_their_line_breaks() -> None:
    text = "def f(values):\n    total = 0\n    for value in values:\n        \n    return total\n\n\nprint(f([1]))\n"
    async with serving(None, "--model", "embedded") as client:
        await client.is_ready()
        await client.use(alternatives=3, multiline="always")
        for newline in ("\n", "\r\n", "\r"):
            whole = text.replace("\n", newline)
            editor = Editor(client, f"{newline!r}.py", whole)
            found = await editor.ask(whole.index(f"        {newline}    return") + 8)
            assert found
            for item in found:
                breaks = LINE_BREAK.findall(written(item))
                assert set(breaks) <= {newline}
                assert "\r" not in written(item).replace(newline, "")
