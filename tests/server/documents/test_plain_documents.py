"""Documents of languages without a grammar, over the real protocol: single lines that repeat nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest
import pytest_asyncio

from fim_server import Language
from fim_server.server.documents.cut import plain_at
from fim_server.suggest.settings import ServerSettings
from fim_server.tokens.formats import known_formats
from support.editors.editor import STATUS, Wire
from support.servers.served_regions import HostFile, region_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

NUMBERS = count()
"""For a name of its own for each document: the status tells of the last one."""

SETTING = {"foo": "automatic", "*.note": "automatic", "docs/": "off", "*.off.note": "off"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def wire() -> AsyncIterator[Wire]:
    async with region_server(SETTING) as wire:
        yield wire


async def asked(
    wire: Wire, name: str, marked: str, *texts: str, language: str = "", invoked: bool = True
) -> tuple[HostFile, list[dict[str, Any]]]:
    file = HostFile(wire, f"{next(NUMBERS)}/{name}", marked, language)
    items = await file.ask(*texts, invoked=invoked)
    status = await wire.note_of(STATUS, lambda status: status.get("last", {}).get("uri") == file.document.uri)
    file.last = status["last"]
    await file.close()
    return file, items


@pytest.mark.parametrize(
    ("name", "language", "marked", "text", "shown"),
    [
        ("a.foo", "", "begin\nx = f(‸)\n", "alpha, beta)", "alpha, beta"),
        ("a.foo", "foo", "begin\r\nx = ‸\r\nend\r\n", "alpha + 1", "alpha + 1"),
        ("a.rst", "restructuredtext", "# Title\n\nA line with 😀 ‸\n", "and more words", "and more words"),
        ("Makefile", "makefile", "all:\n\tgcc ‸ -o main\n", "main.c -o main", "main.c"),
        ("a", "", "hey ‸", "hello", "hello"),
        ("c.ini", "ini", "a:\n  - ‸\n  - two\n", "one", "one"),
        ("index.pl", "perl", "print '‸';\n", "hi';", "hi"),
    ],
)
@pytest.mark.parametrize("multiline", ["", "\nand another line\nand more"])
async def test_an_explicit_request_gets_the_rest_of_the_line(
    wire: Wire, name: str, language: str, marked: str, text: str, shown: str, multiline: str
) -> None:
    file, items = await asked(wire, name, marked, text + multiline, language=language)
    assert items[0]["insertText"] == shown
    for item in items:
        assert "\n" not in item["insertText"]
        assert item["range"] == {"start": file.position, "end": file.position}
        (argument,) = item["command"]["arguments"]
        assert (argument["guarantee"], argument.get("coveredLines", [])) == ("none", [])
    assert file.last["guarantee"] == "none"
    assert file.last["tokens"] < 16, "decoding ends with the line"


@pytest.mark.parametrize(
    ("marked", "text"),
    [("a ‸\nthe line below\n", "\nthe line below"), ("‸\nthe line below\n", "the line below"), ("re‸turn", "= 1")],
)
async def test_text_that_stands_there_is_no_item(wire: Wire, marked: str, text: str) -> None:
    _, items = await asked(wire, "a.foo", marked, text)
    assert text.strip() not in [item["insertText"].strip() for item in items]


@pytest.mark.parametrize(
    ("name", "language", "reason"),
    [
        ("a.foo", "", None),
        ("a.note", "restructuredtext", None),
        ("a.NOTE", "", None),
        ("a.off.note", "", "switched off for this file"),
        ("docs/a.rst", "restructuredtext", "switched off for this file"),
        (
            "a.rst",
            "restructuredtext",
            "only when asked: the model does not know restructuredtext (setting languages)",
        ),
        ("a.txt", "plaintext", "only when asked: the model does not know plaintext (setting languages)"),
        ("a.note.py", "python", None),
    ],
)
async def test_unasked_only_languages_and_files_that_the_setting_names(
    wire: Wire, name: str, language: str, reason: str | None
) -> None:
    file, items = await asked(wire, f"sub/{name}", "begin\nx = ‸\n", "alpha", language=language, invoked=False)
    assert [item["insertText"] for item in items] == ([] if reason else ["alpha"])
    assert file.last["reason"] == reason
    assert (await asked(wire, f"sub/{name}", "x = al‸pha\n", "beta", language=language, invoked=False))[1] == []


async def test_typing_along_keeps_the_suggestion(wire: Wire) -> None:
    file, items = await asked(wire, "b.foo", "begin\nx = ‸\n", "alpha beta gamma")
    assert items[0]["insertText"] == "alpha beta gamma"
    file = HostFile(wire, "b.foo", "begin\nx = ‸\n", "foo")
    await file.ask("alpha beta gamma")
    change = {"range": {"start": file.position, "end": file.position}, "text": "alpha"}
    named = {"uri": file.document.uri, "version": 2}
    await wire.send(Wire.note("textDocument/didChange", {"textDocument": named, "contentChanges": [change]}))
    at = file.position
    params = Wire.completion(file.document.uri, at["line"], at["character"] + 5, False)
    answer = await wire.ask("typed", "textDocument/inlineCompletion", params)
    assert [item["insertText"] for item in answer["result"]["items"]] == [" beta gamma"]
    await file.close()


async def test_the_explanation_says_that_there_is_no_grammar(wire: Wire) -> None:
    file = HostFile(wire, "c.foo", "begin\nx = ‸\n", "foo")
    await file.ask("alpha")
    found = await file.explain("alpha)")
    await file.close()
    assert (found["language"], found["guarantee"]) == ("foo", "none")
    assert found["diagnostics"] == ["there is no grammar for foo: any text may come here"]
    assert found["verdict"] == {"viable": True, "complete": True, "rejectedAt": None}
    assert found["candidates"]
    assert all(one["allowed"] and one["reason"] is None for one in found["candidates"])


async def test_long_lines_and_odd_bytes_are_bounded(wire: Wire) -> None:
    async with asyncio.timeout(30):
        for marked in ("(" * 400_000 + "‸" + ")" * 400_000, "\0\x01‸\x01\0", "\r\r‸\r", "x\u2028" * 1000 + "‸"):
            file, _ = await asked(wire, "long.foo", marked, "alpha")
            assert file.last["reason"] is None or "sure" not in file.last["reason"]
    _, items = await asked(wire, "long.foo", "x" * 1_000_001 + "‸", "alpha")
    assert items == [], "beyond maxFileCharacters"


async def test_editors_with_grammars_are_unchanged(wire: Wire) -> None:
    file, items = await asked(wire, "d.py", "x = f(‸)\n", "alpha, beta)", language="python")
    assert items[0]["insertText"] == "alpha, beta"
    assert file.last["guarantee"] == "exact"


@pytest.mark.parametrize(("name", "is_known"), [("rb", True), ("makefile", False)])
async def test_languages_that_the_model_knows_are_suggested_unasked(name: str, is_known: bool) -> None:
    (smollm2,) = [row for row in known_formats() if row.family == "SmolLM2"]
    silent = plain_at(name).silent(False, ServerSettings(), smollm2.languages)
    assert (silent is None) == is_known
    assert plain_at(name).silent(True, ServerSettings(), smollm2.languages) is None


async def test_the_languages_are_listed_with_their_guarantee(wire: Wire) -> None:
    params = {"command": "fim-server.languages", "arguments": []}
    answer = await wire.ask("languages", "workspace/executeCommand", params)
    rows = {row["name"]: row for row in answer["result"]}
    assert set(Language.names()) <= set(rows)
    assert {"python", "html", "vue"} <= set(rows)
    assert rows["python"] == {
        "name": "python",
        "ids": ["python"],
        "guarantee": "exact",
        "trigger": "automatic",
        "learnt": True,
    }
    assert rows["tsx"]["ids"] == ["tsx", "typescriptreact"]
    assert (rows["json"]["trigger"], rows["vue"]["guarantee"], rows["vue"]["learnt"]) == ("off", "partial", None)
    assert {row["guarantee"] for row in rows.values()} <= {"exact", "balanced", "partial"}
    assert "foo" not in rows
