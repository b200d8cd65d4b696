"""Code in HTML, Vue, Svelte and Astro over the real protocol: each region is a program of its own."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from fim_server.text.regions import host_of
from support.editors.editor import Wire
from support.editors.notebooks import covered, guarantee
from support.languages.host_files import random_host_file
from support.servers.served_regions import CURSOR, HostFile, parses, region_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROUNDS = 400 if os.environ.get("FIM_SERVER_LONG") == "1" else 25
SEED = int(os.environ.get("FIM_SERVER_SEED", "0"))

HTML = (
    '<!doctype html>\n<p title="😀 <script>">Hi</p>\n<script>\nconst total = ‸\nprint(total);\n</script>\n<p>Bye</p>\n'
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def wire() -> AsyncIterator[Wire]:
    async with region_server() as wire:
        yield wire


async def items_in(
    wire: Wire, name: str, marked: str, *texts: str, language: str = "", invoked: bool = True
) -> tuple[HostFile, list[dict[str, Any]]]:
    """Return a file and the items at its cursor, where the model writes some texts."""
    file = HostFile(wire, name, marked, language or name.rpartition(".")[2])
    items = await file.ask(*texts, invoked=invoked)
    await file.close()
    return file, items


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_a_script_is_completed_alone(wire: Wire, newline: str) -> None:
    file, items = await items_in(wire, "a.html", HTML.replace("\n", newline), "sum(1, 2);")
    assert items[0]["insertText"] == "sum(1, 2);"
    for item in items:
        assert guarantee(item) == "partial"
        assert item["range"] == {"start": file.position, "end": file.position}
        script = file.document.applied(item).partition(f"<script>{newline}")[2].partition("</script>")[0]
        assert parses("javascript", script.replace("\r\n", "\n"))
        assert covered(item) == [(2, 4)]


@pytest.mark.parametrize(
    ("name", "marked", "text"),
    [
        ("a.html", "<script type=module>import a from ‸;</script>", '"b"'),
        ("a.html", '<i>"</i> <SCRIPT async type="text/JavaScript">f(‸)</SCRIPT >', "1"),
        ("a.htm", "<script>f(`😀`, ‸)</script><script>}</script>", "2"),
        ("a.html", "<script>(</script><script>f(‸)</script>", "2"),
        ("a.html", '<script type="text/babel">const a = <p>‸</p>;</script>', "{b}"),
        ("a.html", '<script type="importmap">{"a": ‸}</script>', "[1]"),
        ("a.html", "<script>\nf(‸)", "1"),
        ("a.vue", '<template><a :b="c > d"/></template>\n<script setup lang="ts">\nconst a: ‸ = 1</script>', "number"),
        ("a.vue", '<script lang="tsx">const a = <T,>(b: T) => <p>{‸}</p></script>', "b"),
        ("a.svelte", '<script lang="ts">let a = b as ‸;</script>{#if a < b}<p/>{/if}', "Item"),
        ("a.astro", "---\nconst a: ‸ = 1;\n---\n<p>{a}</p>", "string"),
        ("a.astro", "<p>it's</p><script>const a: ‸ = 1;</script>", "string"),
        ("a.html", "<p style='a'><style>a { ‸ }</style>", "b: c;"),
        ("a.vue", "<style scoped lang=scss>a { ‸ }</style>", "&:hover { b: c; }"),
        ("a.md", "It's\n\n```js\nf(‸);\n```\n(", "1"),
        ("a.md", "# a\n```toml\nb = ‸\n", "[1]"),
    ],
)
async def test_the_language_is_the_regions(wire: Wire, name: str, marked: str, text: str) -> None:
    _, items = await items_in(wire, name, marked, text)
    assert text in [item["insertText"] for item in items]
    assert {guarantee(item) for item in items} == {"partial"}


@pytest.mark.parametrize(
    ("name", "marked"),
    [
        ("a.vue", "<p>‸</p><script>f()</script>"),
        ("a.vue", "<script>f()</scr‸ipt>"),
        ("a.vue", "<scr‸ipt>f()</script>"),
        ("a.vue", "<!-- <script>f(‸)</script> -->"),
        ("a.vue", '<script src="a.js">‸</script>'),
        ("a.vue", '<script type="text/template"><p>‸</p></script>'),
        ("a.vue", '<style lang="stylus">a { ‸ }</style>'),
        ("a.vue", "<textarea><script>f(‸)</script></textarea>"),
        ("a.vue", '<script lang="coffee">f ‸</script>'),
        ("a.vue", "<script src=a />‸"),
        ("a.astro", "---\na\n---\n{‸}"),
        ("a.astro", "<p/>\n---\nf(‸)\n---\n"),
        ("a.vue", "‸"),
    ],
)
async def test_nothing_is_offered_elsewhere(wire: Wire, name: str, marked: str) -> None:
    file, items = await items_in(wire, name, marked, "x")
    assert items == []
    host = name.rpartition(".")[2]
    assert file.last["reason"] == f"no code of a known language at the cursor ({host})"


@pytest.mark.parametrize(
    ("marked", "text"),
    [
        ("<div><p>‸</div><script>f()</script>", "<b>a</b>"),
        ("<div cl‸<p>b</p></div>", "ass=a>"),
        ('<script src="a.js">‸</script>', "a"),
        ("<!doctype html>\n‸", "<p>"),
        ("<ul><li>‸</ul><style>a { }</style>", "b<li>"),
    ],
)
async def test_html_is_completed_outside_of_code(wire: Wire, marked: str, text: str) -> None:
    file, items = await items_in(wire, "a.html", marked, text)
    assert text in [item["insertText"] for item in items]
    assert {guarantee(item) for item in items} == {"balanced"}
    assert all(parses("html", file.document.applied(item)) for item in items)


@pytest.mark.parametrize("marked", ["# It's ‸\n\n```js\nf();\n```\n", "- a\n  ```js\n  ‸\n  ```\n", "```\n‸\n```\n"])
async def test_texts_of_markdown_have_no_grammar(wire: Wire, marked: str) -> None:
    _, items = await items_in(wire, "a.md", marked, "a word\nb", language="markdown")
    assert [item["insertText"] for item in items][:1] == ["a word"]
    assert {guarantee(item) for item in items} == {"none"}


@pytest.mark.parametrize("text", ["1\n```\n", "`\n````\n`"])
async def test_no_item_ends_a_fence(wire: Wire, text: str) -> None:
    _, items = await items_in(wire, "a.md", "```js\nf(‸)\n```\n", text, language="markdown")
    assert not any("```" in item["insertText"] for item in items)


@pytest.mark.parametrize(
    "text", ['"</script>"', "`</SCRIPT >`", "1 // </script", '"<!-- <script>"', "a </script>/.b", "'</script\n'"]
)
@pytest.mark.parametrize("right", ["", ")", '; "<!-- <script> </script> -->";'])
async def test_no_item_moves_the_end_of_the_script(wire: Wire, text: str, right: str) -> None:
    marked = f"<script>f({CURSOR}{right}</script><p>{{</p>"
    file, items = await items_in(wire, "a.html", marked, text)
    host = host_of("html", "")
    assert host is not None
    (before,) = (region.end for region in host.regions(file.document.text))
    for item in items:
        changed = file.document.applied(item)
        (after,) = (region.end for region in host.regions(changed))
        assert len(changed) - after == len(file.document.text) - before
        assert "</script" not in item["insertText"].lower()


async def test_a_script_that_is_broken_elsewhere_has_a_partial_guarantee(wire: Wire) -> None:
    marked = "<p>\n<script>\nlet a = ‸;\nlet b = 2;\n\nlet c = );\n</script>\n"
    _, items = await items_in(wire, "a.html", marked, "1")
    assert items[0]["insertText"] == "1"
    lines = {line for start, count in covered(items[0]) for line in range(start, start + count)}
    assert lines <= set(range(1, 7))
    assert 2 in lines
    assert 5 not in lines


async def test_an_explanation_names_the_language_and_the_files_lines(wire: Wire) -> None:
    file = HostFile(wire, "a.html", HTML, "html")
    await file.ask("1")
    found = await file.explain("1;")
    await file.close()
    assert found["language"] == "javascript"
    assert found["guarantee"] == "partial"
    assert found["diagnostics"] == ["lines 3 to 6 are read alone, as javascript"]
    assert found["coveredLines"] == [{"line": 2, "count": 4}]
    assert found["verdict"] == {"viable": True, "complete": True, "rejectedAt": None}
    outside = HostFile(wire, "b.vue", "<p>‸</p>", "vue")
    await outside.ask("1")
    assert "no code of a known language" in (await outside.explain())["message"]
    await outside.close()


async def test_an_unknown_name_of_the_language_leaves_the_suffix(wire: Wire) -> None:
    _, items = await items_in(wire, "a.vue", "<script>f(‸)</script>", "1", language="Vue.js component")
    assert items[0]["insertText"] == "1"
    _, items = await items_in(wire, "a.js", "f(‸)", "1", language="JavaScript")
    assert items[0]["insertText"] == "1"


@pytest.mark.parametrize(
    ("name", "editor_id", "marked", "text"),
    [
        ("a.tsx", "typescript", "const a = <p>‸</p>", "{b}"),
        ("a.ts", "typescriptreact", "const a = <b>‸;", "c"),
        ("a.js", "javascriptreact", "const a = <p>‸</p>", "{b}"),
        ("a.jsx", "javascript", "const a = <p>‸</p>", "{b}"),
        ("Untitled-1", "typescriptreact", "const a: b = <p>‸</p>", "{b}"),
        ("a.d.ts", "typescript", "declare const a: ‸;", "b"),
    ],
)
async def test_a_suffix_and_an_editors_name(wire: Wire, name: str, editor_id: str, marked: str, text: str) -> None:
    _, items = await items_in(wire, name, marked, text, language=editor_id)
    assert text in [item["insertText"] for item in items]
    assert {guarantee(item) for item in items} == {"exact"}


@pytest.mark.parametrize(
    ("languages", "invoked", "offered"),
    [
        ({"html": "off", "javascript": "automatic"}, True, False),
        ({"html": "manual", "javascript": "automatic"}, True, True),
        ({"html": "manual", "javascript": "automatic"}, False, False),
        ({"html": "automatic"}, False, True),
        ({"javascript": "automatic"}, False, True),
        ({"javascript": "off"}, True, False),
    ],
)
async def test_the_setting_of_the_file_overrides_the_regions(
    wire: Wire, languages: dict[str, str], invoked: bool, offered: bool
) -> None:
    async with region_server(languages=languages) as other:
        _, items = await items_in(other, "a.html", HTML, "sum(1, 2);", invoked=invoked)
    assert bool(items) == offered


async def test_items_in_random_files_parse_in_their_region(wire: Wire) -> None:
    draw = random.Random(SEED)
    seen = 0
    for number in range(ROUNDS):
        host, text, offset, rest = random_host_file(draw)
        file, items = await items_in(
            wire, f"{number}.{host.suffixes[0][1:]}", text[:offset] + CURSOR + text[offset:], rest, language=host.name
        )
        region = host.at(text, offset)
        for item in items:
            changed = file.document.applied(item)
            if region is None:
                assert host.name == "html", text
                assert guarantee(item) != "balanced" or parses("html", changed), changed
                continue
            assert region.language is not None
            after = host.at(changed, offset)
            assert after is not None
            assert len(changed) - after.end == len(text) - region.end, changed
            lines = text.count("\n", 0, region.start), 1 + text.count("\n", region.start, region.end)
            if guarantee(item) == "partial" and covered(item) == [lines]:
                assert parses(region.language, changed[after.start : after.end]), changed
                seen += 1
    assert seen > ROUNDS / 5
