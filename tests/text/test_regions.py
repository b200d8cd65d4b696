"""Regions of code in files of other languages: against a plain reader, Python's own parser of HTML, and the clock."""

from __future__ import annotations

import os
import random
import time
from html.parser import HTMLParser

import pytest

from fim_server.text.document import Split
from fim_server.text.regions import Host, host_of, hosts
from support.languages.host_files import random_host_file
from support.languages.host_twin import scripts

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = int(os.environ.get("FIM_SERVER_SEED", "0"))
ROUNDS = 200_000 if LONG else 6_000

PIECES = (
    *("<", ">", "/", "!", "?", "-", "--", "=", '"', "'", " ", "\n", "a", "é", "<!--", "-->", "--!>", "<!-->", "<!--->"),
    *(
        "<script",
        "</script",
        "<SCRIPT>",
        "</Script>",
        "<script>",
        "</script >",
        "<style>",
        "</style>",
        "<title>",
        "<p ",
    ),
    *(
        ' type="module"',
        " src=x",
        " lang=ts",
        "/>",
        "</",
        "</>",
        "<p a='",
        '<p a="',
        "<script a=",
        "<script/>",
        "<textarea>",
    ),
)
"""Pieces of hostile files."""


def host(name: str) -> Host:
    found = host_of(name, "")
    assert found is not None
    return found


def spans(name: str, text: str) -> list[tuple[int, int]]:
    return [(region.start, region.end) for region in host(name).regions(text)]


@pytest.mark.parametrize("name", ["html", "vue", "svelte", "astro"])
def test_scripts_are_those_of_the_plain_reader(name: str) -> None:
    draw = random.Random(f"{SEED} {name}")
    for _ in range(ROUNDS):
        text = "".join(draw.choice(PIECES) for _ in range(draw.randint(1, 14)))
        if name != "astro" or not text.lstrip().startswith("---"):
            assert spans(name, text) == [(start, end) for _, start, end in scripts(name, text)], text


def test_scripts_are_those_of_pythons_parser() -> None:
    """In files without what Python's parser reads in a way of its own, according to its version."""

    class Scripts(HTMLParser):
        def __init__(self) -> None:
            super().__init__(convert_charrefs=False)
            self.texts: list[str] = []
            self.inside = False

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.inside = tag in ("script", "style")
            if self.inside:
                self.texts.append("")

        def handle_endtag(self, tag: str) -> None:
            self.inside = False

        def handle_data(self, data: str) -> None:
            if self.inside:
                self.texts[-1] += data

    draw = random.Random(SEED)
    count = 0
    for _ in range(ROUNDS // 10):
        found, text, _, _ = random_host_file(draw)
        if found.name != "html" or "textarea" in text or "--!>" in text:
            continue
        parser = Scripts()
        parser.feed(text)
        parser.close()
        assert [text[start:end] for start, end in spans("html", text)] == parser.texts, text
        count += 1
    assert count > ROUNDS / 200


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("html", "<script>a", [("javascript", "a")]),
        ("html", "<script type=''>a</script>", [("javascript", "a")]),
        ("html", "<script type=' text/JAVASCRIPT '>a</script>", [("javascript", "a")]),
        ("html", "<script type='text/javascript; charset=utf-8'>a</script>", [(None, "a")]),
        ("html", "<script lang=ts>a</script>", [("javascript", "a")]),
        ("html", "<script type=module type=a>a</script>", [("javascript", "a")]),
        (
            "html",
            "<script type=text/jsx>a</script><script type='application/ld+json'>{}</script>",
            [("jsx", "a"), ("json", "{}")],
        ),
        ("html", "<script src=a></script>", [(None, "")]),
        ("html", "<script><!--<script></script>--></script>a", [("javascript", "<!--<script></script>-->")]),
        ("html", "<script><!--<script>--></script>a", [("javascript", "<!--<script>-->")]),
        ("html", "<style>a<!--</style>", [("css", "a<!--")]),
        ("html", "<style type=text/plain>a</style><style type='TEXT/css'>b</style>", [(None, "a"), ("css", "b")]),
        ("vue", "<style lang=scss scoped>a</style><style src=b />", [("scss", "a")]),
        ("html", "<p a='>\n<script>b", []),
        ("vue", "<script><!--<script></script>--></script>", [("javascript", "<!--<script>")]),
        ("vue", "<script lang='tsx' type=module>a</script>", [("tsx", "a")]),
        ("vue", "<script lang=coffee>a</script>", [(None, "a")]),
        ("svelte", "<script context=module lang=typescript>a</script>", [("typescript", "a")]),
        ("astro", "---\na\n  ---b\n<script>c</script>", [("typescript", "\na\n"), ("typescript", "c")]),
        ("astro", "---\na---b\n", [("typescript", "\na---b\n")]),
        ("astro", "\n\n---a\n---\n---\nb\n---", [("typescript", "a\n")]),
        ("astro", "<script is:inline>a</script>", [("javascript", "a")]),
        ("astro", "<script lang=ts is:inline>a</script>", [("typescript", "a")]),
        ("astro", "<p/>\n---\na\n---\n", []),
        (
            "markdown",
            "a\n```python\nb\n```\n~~~ js title='c'\nd```\n~~~~\n",
            [("python", "b\n"), ("javascript", "d```\n")],
        ),
        ("markdown", "````md\n```js\na\n```\n````\n```{.rs}\nb", [(None, "```js\na\n```\n"), ("rust", "b")]),
        ("markdown", "- a\n  ```js\n  b\n  ```\n```\nc\n```\n", [(None, "  b\n"), (None, "c\n")]),
        ("markdown", "> ```go\n> a\n> ```\n```c++\nb\n```", [(None, "> a\n"), ("cpp", "b\n")]),
        ("markdown", "+++\na = 1\n+++\n---\nb\n---\n", [("toml", "a = 1\n")]),
        ("markdown", "---\na: '\n---\nb ```js\n", [("yaml", "a: '\n")]),
        ("markdown", "<script>a</script>", []),
        ("markdown", "```go.mod\na\n```\n```js{1,2} b\nc\n```\n", [(None, "a\n"), ("javascript", "c\n")]),
        ("markdown", "~~~py `x`\na\n~~~\n``` py `x`\nb\n", [("python", "a\n")]),
        ("markdown", "> ```py\n> a\n\nb\n```go\nc\n```\n", [(None, "> a\n\n"), ("go", "c\n")]),
        ("markdown", "1. ```py\n   a\nb\n```go\nc\n```\n", [(None, "   a\n"), ("go", "c\n")]),
    ],
)
def test_languages(name: str, text: str, found: list[tuple[str | None, str]]) -> None:
    assert [(region.language, text[region.start : region.end]) for region in host(name).regions(text)] == found


def test_the_region_around_an_offset_is_that_of_the_list_however_the_text_changed() -> None:
    draw = random.Random(SEED)
    for _ in range(ROUNDS // 30):
        name = draw.choice(hosts()).name
        text = "".join(draw.choice(PIECES) for _ in range(draw.randint(1, 14)))
        for _ in range(6):
            offset = draw.randint(0, len(text))
            around = [one for one in host(name).regions(text) if one.start <= offset <= one.end]
            expected = around[0] if around and around[0].language else None
            assert host(name).at(text, offset) == expected, (text, offset)
            piece = draw.choice(("x", "", *PIECES))
            text = text[:offset] + piece + text[offset + draw.randint(0, 2) :]


def test_contexts_have_the_files_lines() -> None:
    text = "<p>\n\n<script>a\nb\nc</script>\n"
    offset = text.index("b")
    region = host("html").at(text, offset)
    assert region is not None
    contexts = region.contexts("u", Split(text[:offset], text[offset:]))
    assert (contexts.left, contexts.right) == ("\n\na\n", "b\nc")
    assert (contexts.before, contexts.after) == (text[:offset], text[offset:])
    assert contexts.region == range(2, 5)
    assert contexts.with_text("x\n").region == range(2, 6)
    assert contexts.key == region.contexts("u", Split(text[: offset + 1], text[offset + 1 :])).key


@pytest.mark.parametrize(
    ("left", "text", "right", "keeps"),
    [
        ("f(", "'a'", ");", True),
        ("f(", "'</script>'", ");", False),
        ("f('</scr", "ipt ", "');", False),
        ("f('</scr", "ipts", "');", True),
        ("f('<", "/a", "script>');", True),
        ("f('<", "/", "script>');", False),
        ("f('", "<!-- <script>", "');", False),
        ("f('", "<!-- ", "');", True),
        ("f('<!-- ", "<script>", "');", False),
        ("f('<!-- <script> ", "</script>", "');", False),
    ],
)
def test_a_text_keeps_the_regions_end(left: str, text: str, right: str, keeps: bool) -> None:
    file = f"<script>{left}{right}</script><p>"
    offset = len("<script>") + len(left)
    region = host("html").at(file, offset)
    assert region is not None
    assert region.contexts("u", Split(file[:offset], file[offset:])).keeps(text, 0) == keeps


def test_a_suffix_names_a_host_where_the_editor_does_not() -> None:
    assert host_of("html", "a.vue") is host("html")
    assert host_of("Vue", "/a/b.vue") is host("vue")
    assert host_of("", "a.txt") is None


@pytest.mark.parametrize("name", ["html", "astro", "markdown"])
@pytest.mark.parametrize(
    "unit",
    [
        *(
            '<p class="a" id=b>c</p>\n',
            "<a ",
            '<a b="',
            "<a b='<a c=\"",
            "<!--",
            "<script>",
            "<script></script>",
            "<a =",
        ),
        *(
            "<script><!--<script></script>",
            "</script",
            "<script>a</scrip",
            "<script><!--->",
            "<!",
            "---\n",
            "```\n",
            "- ```a\n",
            "~",
            "`",
            "> ```a\n\n",
            "> >",
            "<",
            "</a",
            "\n ",
        ),
    ],
)
def test_the_time_is_linear_in_the_text(name: str, unit: str) -> None:
    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        times = []
        for _ in range(3):
            started = time.process_time()
            for _ in host(name).regions(text):
                pass
            times.append(time.process_time() - started)
        return min(times)

    short, long = seconds(20_000), seconds(160_000)
    assert long < 24 * short + 0.02  # eight times as much; 64 times would be quadratic
