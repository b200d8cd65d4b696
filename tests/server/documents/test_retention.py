"""Retention of accepted suggestions, with a clock of the test."""

from __future__ import annotations

import json
import random
import time
from collections.abc import AsyncIterator
from concurrent.futures import Future
from typing import Any

import pytest
import pytest_asyncio

from fim_server.language import Stop
from fim_server.server.documents import retention as retention_module
from fim_server.server.documents.retention import (
    LONGEST_TEXT,
    MOST_FOLLOWED,
    MOST_GROUPS,
    MOST_SENT,
    Retention,
    SentText,
    retained,
)
from fim_server.suggest.job import Loaded, Work
from fim_server.suggest.pipeline import Completer
from fim_server.suggest.request import Request
from support.editors.answers import suggestion
from support.editors.connected import COMMAND, TEXT, URI, Connected
from support.editors.editor import Wire

BEFORE = "def total(values):\n    result = 0\n    "
ACCEPTED = "for value in values:\n        result += value"
AFTER = "\n    return result\n"
SIGNS = len("".join(ACCEPTED.split()))


class Document:
    """An open document, whose server has a clock."""

    def __init__(self, text: str = BEFORE + AFTER) -> None:
        self.text: str | None = text
        self.seconds = 0.0
        self.retention = Retention(lambda uri: self.text, lambda: self.seconds)

    def replace(self, start: int, end: int, text: str) -> None:
        assert self.text is not None
        if self.retention.watches(URI):
            self.retention.change(URI, self.text, start, end, text)
        self.text = self.text[:start] + text + self.text[end:]
        self.retention.changed(URI, self.text)

    def edit(self, old: str, new: str) -> None:
        """Replace the only place of a text."""
        assert self.text is not None
        assert self.text.count(old) == 1
        start = self.text.index(old)
        self.replace(start, start + len(old), new)

    def accept(self, text: str = ACCEPTED, at: int = len(BEFORE), early: bool = False, model: str = "a model") -> None:
        """Accept a suggestion; ``early``: the server hears of it before the text is inserted."""
        self.retention.note_sent("1", SentText(URI, at, text, "python", model))
        if early:
            self.retention.accept("1")
        self.replace(at, at, text)
        if not early:
            self.retention.accept("1")

    def counts(self, at: float = 30.0) -> list[tuple[int, int]]:
        """Characters and retained ones by checkpoint, at a time."""
        self.seconds = at
        return [(row["characters"], row["retained"]) for row in self.retention.as_json()]


@pytest.mark.parametrize("early", [True, False])
def test_a_text_that_stays_is_measured_twice(early: bool) -> None:
    document = Document()
    document.accept(early=early)
    assert document.counts(29.9) == []
    assert document.counts(30) == [(SIGNS, SIGNS)]
    assert document.counts(119) == [(SIGNS, SIGNS)]
    assert document.counts(500) == [(SIGNS, SIGNS), (SIGNS, SIGNS)]
    assert document.counts(1000) == [(SIGNS, SIGNS), (SIGNS, SIGNS)]
    rows = document.retention.as_json()
    assert [row["seconds"] for row in rows] == [30, 120]
    assert rows[0] | {"seconds": 0} == {
        "language": "python",
        "model": "a model",
        "seconds": 0,
        "texts": 1,
        "characters": SIGNS,
        "retained": SIGNS,
    }
    json.dumps(rows)


def test_edits_elsewhere_change_nothing() -> None:
    document = Document()
    document.accept()
    document.replace(0, 0, "import os\n\n\n")
    document.edit("\n    return result\n", "\n    print(result)\n    return result\n")
    document.edit("result = 0\n", "result = 0.0\n")
    document.edit("import os\n\n\n", "")
    document.edit(ACCEPTED, ACCEPTED)
    assert document.counts() == [(SIGNS, SIGNS)]


def test_words_that_were_changed_are_not_retained() -> None:
    document = Document()
    document.accept()
    document.edit("result += value", "result += 2 * value")
    document.edit("for value in", "for number in")
    assert document.counts() == [(SIGNS, SIGNS - len("value"))]
    document.edit("        result += 2 * value", "        pass")
    assert document.counts(120) == [(SIGNS, SIGNS - len("value")), (SIGNS, len("forinvalues:"))]


def test_a_checkpoint_is_before_the_first_change_after_it() -> None:
    document = Document()
    document.accept()
    document.seconds = 31
    document.edit(ACCEPTED, "")
    assert document.counts(121) == [(SIGNS, SIGNS), (SIGNS, 0)]


@pytest.mark.parametrize(
    "parts",
    [(ACCEPTED,), ("for value in", " values:"), (" += value", "result"), (" in values:\n",), ("result", "for value")],
)
def test_undo_takes_every_deletion_back(parts: tuple[str, ...]) -> None:
    document = Document()
    document.accept()
    deleted = []
    for part in parts:
        assert document.text is not None
        at = document.text.index(part, len(BEFORE))
        document.replace(at, at + len(part), "")
        deleted.append((at, part))
    for at, part in reversed(deleted):
        document.replace(at, at, part)
    assert document.text == BEFORE + ACCEPTED + AFTER
    assert document.counts() == [(SIGNS, SIGNS)]


def test_an_undone_text_is_not_retained() -> None:
    document = Document()
    document.accept()
    document.edit(ACCEPTED, "")
    for letter in reversed("while values: result = 1"):
        document.replace(len(BEFORE), len(BEFORE), letter)
    assert document.counts()[0][1] <= 1


def test_what_is_typed_behind_a_text_is_not_the_texts() -> None:
    document = Document("")
    document.accept("values.append(1)", at=0)
    document.replace(16, 16, "\nvalues.append(1)")
    document.replace(0, 16, "")
    assert document.counts() == [(len("values.append(1)"), 0)]


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_formatter_keeps_the_words(is_whole: bool) -> None:
    """It replaces the whole text, or the stretch from its first change to its last."""
    document = Document("import os\nx=1\n" * 40 + BEFORE + AFTER + "x = {'a':1}\n" * 40)
    before = document.text
    assert before is not None
    document.accept(at=before.index(AFTER))
    assert document.text is not None
    new = document.text.replace("x=1", "x = 1").replace("    ", "  ").replace("'", '"').replace(":1", ": 1")
    start, end = (0, 0) if is_whole else (10, 5)
    document.replace(start, len(document.text) - end, new[start : len(new) - end])
    assert document.counts() == [(SIGNS, SIGNS)]


def test_a_text_in_a_huge_replaced_part_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention_module, "MOST_LINES", 10)
    document = Document("x = 1\n" * 200 + BEFORE + AFTER + "x = 1\n" * 200)
    assert document.text is not None
    document.accept(at=document.text.index(AFTER))
    document.replace(0, len(document.text), "y = 1\n" * 400)
    assert not document.retention.watches(URI)
    assert document.counts(200) == []


def test_a_closed_document_counts_up_to_its_end() -> None:
    document = Document()
    document.accept()
    assert document.text is not None
    document.seconds = 40
    document.retention.close(URI, document.text)
    document.text = None
    assert document.counts(200) == [(SIGNS, SIGNS)]
    document.retention.accept("1")
    assert not document.retention.watches(URI)


def test_a_text_that_was_never_inserted_is_not_counted() -> None:
    document = Document()
    document.retention.note_sent("1", SentText(URI, len(BEFORE), ACCEPTED, "python", "a model"))
    document.retention.accept("1")
    document.retention.accept("1")
    document.retention.accept("unknown")
    document.edit("result = 0", "result = 1")
    assert document.counts(200) == []


def test_everything_is_bounded() -> None:
    document = Document()
    document.accept("a" * (LONGEST_TEXT + 1))
    assert not document.retention.watches(URI)
    for number in range(MOST_SENT + 1):
        document.retention.note_sent(str(number), SentText(URI, 0, "a", "python", "a model"))
    document.retention.accept("0")
    assert not document.retention.watches(URI)
    for number in range(MOST_GROUPS + 5):
        document.accept("b", at=0, model=f"model {number}")
        document.counts(document.seconds + 200)
    assert len({row["model"] for row in document.retention.as_json()}) == MOST_GROUPS
    for _ in range(MOST_FOLLOWED + 5):
        document.accept("c", at=0, model="last")
    document.counts(document.seconds + 200)
    assert [row["texts"] for row in document.retention.as_json() if row["model"] == "last"] == [MOST_FOLLOWED] * 2


def test_ranges_stay_inside_the_document() -> None:
    random.seed(7)
    for _ in range(300):
        document = Document()
        document.accept()
        for _ in range(12):
            assert document.text is not None
            start, end = sorted(random.choices(range(len(document.text) + 1), k=2))
            text = random.choice(["", "x", "\n", ACCEPTED, document.text, document.text[start:end].upper()])
            document.replace(start, end, text[: 10 * len(ACCEPTED)])
            for one in document.retention._followed:
                assert 0 <= one.start <= one.end <= len(document.text)
        for characters, kept in document.counts(130):
            assert 0 <= kept <= characters == SIGNS


@pytest.mark.parametrize("text", ["( " * (LONGEST_TEXT // 2), "a b " * (LONGEST_TEXT // 4), "x" * LONGEST_TEXT])
def test_the_comparison_is_quick(text: str) -> None:
    started = time.perf_counter()
    assert retained(text, f"{text[::-1]}\n{text[1:]}".strip()) <= len(text)
    assert time.perf_counter() - started < 10  # the limits make it some tenths


# --- the server -----------------------------------------------------------------------------------------------------


@pytest_asyncio.fixture
async def client(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Connected]:
    connected = Connected()

    def work(self: Completer, loading: Future[Loaded], request: Request, cancelled: Stop, *rest: object) -> Work:
        return Work(request.answered((suggestion("values[0]", confidence=0.9),)))

    monkeypatch.setattr(Completer, "_answer", work)
    await connected.begin(monkeypatch)
    yield connected
    connected.server.close()


async def command(client: Connected, name: str, *arguments: Any) -> Any:
    client.send(Wire.request(name, COMMAND, {"command": f"fim-server.{name}", "arguments": list(arguments)}))
    return (await client.answer(name))["result"]


@pytest.mark.asyncio
async def test_the_servers_statistics_have_the_counts(client: Connected) -> None:
    clock = [0.0]
    client.server.protocol.retention()._clock = lambda: clock[0]
    client.ask("asked")
    assert await client.texts("asked") == ["values[0]"]
    client.change(2, "x = values[0]\n")
    await command(client, "accepted", {"id": "1"})
    line = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    change = {"range": line, "text": "# 😀\r\n"}
    document = {"uri": URI, "version": 3}
    client.send(Wire.note("textDocument/didChange", {"textDocument": document, "contentChanges": [change]}))
    line = {"start": {"line": 1, "character": 10}, "end": {"line": 1, "character": 13}}
    change = {"range": line, "text": ""}
    client.send(Wire.note("textDocument/didChange", {"textDocument": document, "contentChanges": [change]}))
    clock[0] = 31.0
    client.close()
    row = {"seconds": 30, "texts": 1, "characters": 9, "retained": 6}
    found = (await command(client, "statistics"))["retained"]
    assert [{name: value for name, value in one.items() if name in row} for one in found] == [row]
    assert found[0]["language"] == "python"
    assert not client.server.protocol.retention().watches(URI)
    assert TEXT not in json.dumps(found)
