"""Languages that the editor describes, over the real protocol: balanced where a file fits, else without a guarantee."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest
import pytest_asyncio

from fim_server.server.documents.editor_languages import MOST_NAMES, EditorLanguages
from fim_server.server.handlers.language_data import LANGUAGE_DATA
from support.editors.editor import PATIENCE, Wire
from support.servers.served_regions import HostFile, region_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

NUMBERS = count()

PAIRS = [["{", "}"], ["[", "]"], ["(", ")"]]
GROOVY = {
    "comments": {"lineComment": "//", "blockComment": ["/*", "*/"]},
    "brackets": PAIRS,
    "autoClosingPairs": [*PAIRS, {"open": '"', "close": '"', "notIn": ["string"]}, ["'", "'"]],
    "onEnterRules": [{"beforeText": {"pattern": "//.*"}}],
}
TAKEN = "def a = f(')')\ndef b = g(‸\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def wire() -> AsyncIterator[Wire]:
    async with region_server({"groovy": "automatic", "made-up": "automatic"}) as wire:
        yield wire


async def describe(wire: Wire, language: str, configuration: Any) -> None:
    await wire.send(Wire.note(LANGUAGE_DATA, {"languageId": language, "configuration": configuration}))


async def opened(wire: Wire, marked: str, language: str = "groovy") -> HostFile:
    file = HostFile(wire, f"{next(NUMBERS)}.{language}", marked, language)
    await wire.send(Wire.note("textDocument/didOpen", {"textDocument": file.document.item}))
    return file


async def guarantee_of(file: HostFile, expected: str) -> str:
    """Return the guarantee at the cursor once it is the expected one, or after :data:`PATIENCE` seconds."""
    found, ends = "", time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        explained = await file.explain()
        found = explained["guarantee"]
        if found == expected:
            break
        await asyncio.sleep(0.02)
    return found


async def test_a_file_that_the_data_takes_is_balanced(wire: Wire) -> None:
    file = await opened(wire, TAKEN.replace("(‸", "(‸)"))
    assert (await file.explain())["guarantee"] == "none"  # the editor has not described the language yet
    await describe(wire, "groovy", GROOVY)
    assert await guarantee_of(file, "balanced") == "balanced"
    for text, is_complete in (("1, '('", True), ("1)", False), ("'a", True), ('"a', False), ("/* )", False)):
        verdict = (await file.explain(text))["verdict"]
        assert verdict["complete"] is is_complete, text
    await file.close()


async def test_its_suggestions_are_balanced_single_lines(wire: Wire) -> None:
    await describe(wire, "groovy", GROOVY)
    first = await opened(wire, "def a = [1, 2]\n‸\n")
    assert await guarantee_of(first, "balanced") == "balanced"
    items = await first.ask("x = f(1, [2])\ny = 3")
    assert items[0]["insertText"] == "x = f(1, [2])"
    assert items[0]["command"]["arguments"][0]["guarantee"] == "balanced"
    await first.close()


async def test_a_file_that_the_data_refuses_has_no_guarantee(wire: Wire) -> None:
    await describe(wire, "groovy", GROOVY)
    broken, taken = await opened(wire, f"f(\n{TAKEN}"), await opened(wire, TAKEN.replace("(‸", "(‸)"))
    assert await guarantee_of(taken, "balanced") == "balanced"  # which was judged after the broken one
    assert (await broken.explain())["guarantee"] == "none"
    text = f"f()\n{broken.left}1){broken.right}"[3:].replace("(\n", "()\n", 1)
    change = {"textDocument": {"uri": broken.document.uri, "version": 2}, "contentChanges": [{"text": text}]}
    await wire.send(Wire.note("textDocument/didChange", change))
    assert (await broken.explain())["guarantee"] == "none"  # until it is saved
    await wire.send(Wire.note("textDocument/didSave", {"textDocument": {"uri": broken.document.uri}}))
    assert await guarantee_of(broken, "balanced") == "balanced"
    await broken.close()
    await taken.close()


@pytest.mark.parametrize(
    ("configuration", "logged"),
    [
        (None, "brackets: none of () [] {}"),
        ("text", "brackets: none of () [] {}"),
        ({"brackets": [["(", ")"]] * 10_000}, "entries of brackets: 513 is over the limit of 512"),
        (
            {"comments": {"lineComment": "x" * 1_000_000}},
            "a text of comments.lineComment: 1000000 is over",
        ),
        ({"brackets": [[[[[[]]]]]]}, "brackets: two texts expected"),
        (GROOVY | {"comments": {"lineComment": ""}}, "comments.lineComment: a text expected"),
    ],
)
async def test_wrong_data_is_logged_and_the_server_lives(wire: Wire, configuration: Any, logged: str) -> None:
    await describe(wire, "made-up", configuration)
    note = await wire.note_of("window/logMessage", lambda note: logged in note["message"])
    assert note["message"].endswith("; its files have the guarantee none")
    file = await opened(wire, TAKEN, "made-up")
    assert (await file.explain())["guarantee"] == "none"
    await file.close()


async def test_wrong_data_takes_the_place_of_earlier_data(wire: Wire) -> None:
    await describe(wire, "made-up", GROOVY)
    file = await opened(wire, TAKEN.replace("(‸", "(‸)"), "made-up")
    assert await guarantee_of(file, "balanced") == "balanced"
    await describe(wire, "made-up", {"brackets": 5})
    assert await guarantee_of(file, "none") == "none"
    await file.close()


async def test_data_of_languages_with_a_grammar_is_ignored(wire: Wire) -> None:
    for language in ("python", "typescriptreact", "html", "shellscript"):
        await describe(wire, language, GROOVY)
    file = await opened(wire, "x = (‸)\n", "python")
    assert (await file.explain())["guarantee"] == "exact"
    await file.close()


async def test_an_editor_describes_so_many_languages() -> None:
    languages = EditorLanguages(lambda language: None, lambda message: None)
    assert all(languages.describe(f"l{number}", GROOVY) for number in range(MOST_NAMES))
    assert not languages.describe("l0", GROOVY)
    with pytest.raises(ValueError, match=f"more than {MOST_NAMES} languages"):
        languages.describe("other", GROOVY)
    with pytest.raises(ValueError, match="is no name"):
        languages.describe("x" * 1_000, GROOVY)
    languages.close()
