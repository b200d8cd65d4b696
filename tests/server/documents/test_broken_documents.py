"""Documents of token trees that are broken elsewhere, over the real protocol: windows, lines without a guarantee."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest
import pytest_asyncio

from fim_server import Language
from support.editors.editor import Wire
from support.servers.served_regions import HostFile, region_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

NUMBERS = count()
"""For a name of its own for each document."""

BROKEN = "int f() {\n    if (a) {\n        b();\n}\n\n"
"""A function that lacks a brace."""

NO_WINDOW = "int f() {\n  a(;\n  b(‸\n  c);\n  d(;\n"
"""Brackets on all sides that fit no indentation."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def wire() -> AsyncIterator[Wire]:
    async with region_server({"c": "automatic", "kotlin": "automatic", "go": "automatic"}) as wire:
        yield wire


async def asked(
    wire: Wire, name: str, language: str, marked: str, text: str, invoked: bool = True
) -> tuple[HostFile, list[dict[str, Any]]]:
    file = HostFile(wire, f"broken{next(NUMBERS)}/{name}", marked, language)
    items = await file.ask(text, invoked=invoked)
    return file, items


@pytest.mark.parametrize("invoked", [True, False])
@pytest.mark.parametrize(
    ("name", "language", "marked", "text", "covered"),
    [
        ("a.c", "c", BROKEN + "int g() {\n    c(‸\n    d();\n}\n", "alpha);", (5, 4)),
        ("b.c", "c", BROKEN + "int g() {\n    c(‸)\n    d();\n}\n", "alpha", (5, 4)),
        ("a.kt", "kotlin", "fun f() {\n    b(\n}\n\nfun g() {\n    c(‸\n    d()\n}\n", "alpha)", None),
    ],
)
async def test_a_window_gets_the_text_that_fits(
    wire: Wire, name: str, language: str, marked: str, text: str, covered: tuple[int, int] | None, invoked: bool
) -> None:
    file, items = await asked(wire, name, language, marked, text, invoked)
    assert items[0]["insertText"] == text
    (argument,) = items[0]["command"]["arguments"]
    assert argument["guarantee"] == "partial"
    ranges = [(one["line"], one["count"]) for one in argument["coveredLines"]]
    assert covered is None or ranges == [covered]
    lines = (file.left + items[0]["insertText"] + file.right).split("\n")
    kept = "\n".join(line for first, many in ranges for line in lines[first : first + many])
    assert Language.load(language).open(kept, "\n").check("").complete
    await file.close()


async def test_the_explanation_names_the_lines_left_out(wire: Wire) -> None:
    file, _ = await asked(wire, "c.c", "c", BROKEN + "int g() {\n    c(‸\n    d();\n}\n", "alpha);")
    found = await file.explain("alpha);")
    assert found["guarantee"] == "partial"
    assert found["diagnostics"] == [
        "lines 1 to 5 are left out: brackets or quotes somewhere do not fit the indentation"
    ]
    await file.close()


@pytest.mark.parametrize("invoked", [True, False])
async def test_without_a_window_an_item_is_a_line_without_a_guarantee(wire: Wire, invoked: bool) -> None:
    file, items = await asked(wire, "d.c", "c", NO_WINDOW, "alpha) + beta[1];\nnext();", invoked)
    assert [item["insertText"] for item in items[:1]] == ["alpha) + beta[1];"]
    assert all("\n" not in item["insertText"] for item in items)
    (argument,) = items[0]["command"]["arguments"]
    assert (argument["guarantee"], argument.get("coveredLines", [])) == ("none", [])
    found = await file.explain("x")
    assert found["guarantee"] == "none"
    assert found["diagnostics"] == ["brackets or quotes elsewhere do not fit the indentation: any text may come here"]
    await file.close()


async def test_without_a_window_no_bracket_is_closed_twice(wire: Wire) -> None:
    file, items = await asked(wire, "e.c", "c", NO_WINDOW.replace("b(‸", "b(‸)"), "alpha)); more")
    assert [item["insertText"] for item in items[:1]] == ["alpha"]
    await file.close()


async def test_a_whole_file_keeps_its_guarantee(wire: Wire) -> None:
    marked = BROKEN.replace("b();\n", "b();\n    }\n") + "int g() {\n    c(‸\n    d();\n}\n"
    file, items = await asked(wire, "f.c", "c", marked, "alpha);")
    assert items[0]["insertText"] == "alpha);"
    assert items[0]["command"]["arguments"][0]["guarantee"] == "balanced"
    await file.close()
