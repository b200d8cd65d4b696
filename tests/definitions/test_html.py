"""HTML against a plain reader of its tags, and beside the regions of its code."""

from __future__ import annotations

import os
import random
import re

import pytest

from fim_server import Language
from fim_server.text.regions import host_of
from support.languages.host_twin import BLANKS, RAW, Reader, is_letter

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
ROUNDS = 60_000 if LONG else 6_000

PAIRED = ("div", "b", "table")
"""Some elements that need an end tag."""
ATTRIBUTES = (" a", ' b="<p>"', " c='>\"'", " d = e ", "\n", ' f=""', " checked")
PIECES = (
    *("<div", "</div", "<B", "</b", "<table>", "</table>", "<p", "</p", "<br", "</br>", "<x-y>", "<divs", "</bx"),
    *("<script", "</script", "<SCRIPT>", "</Script>", "<style>", "</style>", "<title>", "</title >", "<textarea>"),
    *("<!--", "-->", "--!>", "<!-->", "<!--->", "<!doctype html>", "<?a b>", "</ a>", "<!a>", "</>", "<!"),
    *(">", ">", ">", "/>", "/", "a", "é", " ", "\n", "<", '"', "'", "-", "!", *ATTRIBUTES),
)
WHOLE = (
    *("<div>", "</div>", "<b>", "</B>", "<p>", "<br/>", "</p>", "<!-- <div> -->", "a < b", "<table a='>'>", "</table>"),
    *("<b/>", "<script>a</b></script>", "<style></style >", "<script>'<!--'</script>", "<script><!--<script></script>"),
)


class Tags(Reader):
    """Reader that compares end tags with start tags."""

    def taken(self) -> bool:
        """Return whether HTML's definition should take the text."""
        stack: list[str] = []
        while self.at < len(self.text):
            start, after = self.at, self.text[self.at + 1 : self.at + 2]
            is_end = after == "/"
            if self.text[start] != "<" or not after:
                self.at += 1
            elif self.sees("<!--", start):
                self.comment()
                inner = self.text[start + 4 : self.at]
                if inner not in (">", "->") and not inner.endswith(("-->", "--!>")):
                    return False
            elif after in "!?":
                self.bogus_comment()
                inner = self.text[start + 1 : self.at]
                if self.at > len(self.text) or "<" in inner or (after == "!" and not is_letter(inner[1:2])):
                    return False
            elif is_end and not is_letter(self.text[start + 2 : start + 3]):
                return False
            elif is_end or is_letter(after):
                self.at += 1 + is_end
                begin = self.at
                name, _, closes_itself = self.tag()
                if (
                    not name
                    or opens_in(self.text[begin : self.at])
                    or not (self.closes(name, stack) if is_end else self.opens(name, closes_itself, stack))
                ):
                    return False
            else:
                self.at += 1
        return stack == []

    def closes(self, name: str, stack: list[str]) -> bool:
        return name not in PAIRED or (stack != [] and stack.pop() == name)

    def opens(self, name: str, closes_itself: bool, stack: list[str]) -> bool:
        if name in PAIRED and not closes_itself:
            stack.append(name)
        if name not in (*RAW["html"], "script"):
            return True
        if closes_itself:
            return False
        start = self.at
        while self.at < len(self.text) and not self.ends(name):
            self.at += 1
        inner = self.text[start : self.at].lower()
        if name == "script" and "<!--" in inner and has_tag(inner[inner.index("<!--") :]):
            return False
        self.at += 2
        start = self.at
        return self.tag()[0] != "" and not opens_in(self.text[start : self.at])

    def ends(self, name: str) -> bool:
        end = self.at + len(name) + 2
        return self.sees(f"</{name}", self.at) and self.text[end : end + 1] in (*BLANKS, "/", ">")


def opens_in(tag: str) -> bool:
    """Return whether a tag has a `<` or a quote outside of values in quotes."""
    return re.search("[<\"']", re.sub(r"=[ \n]*(\"[^\"]*\"|'[^']*')", "", tag)) is not None


def has_tag(text: str) -> bool:
    return any(f"<script{after}" in text for after in f"{BLANKS}/>")


def test_html_is_what_a_plain_reader_takes() -> None:
    draw = random.Random(47)
    empty = Language.load("html").open("", "")
    counts = {True: 0, False: 0}
    for number in range(ROUNDS):
        pool = WHOLE if number % 2 else PIECES
        text = "".join(draw.choice(pool) for _ in range(draw.randint(1, 8)))
        expected = Tags("html", text).taken()
        assert empty.check(text).complete == expected, text
        counts[expected] += 1
    assert min(counts.values()) > ROUNDS / 10


def test_a_cut_changes_no_verdict() -> None:
    draw = random.Random(48)
    html = Language.load("html")
    for _ in range(ROUNDS // 4):
        text = "".join(draw.choice(WHOLE) for _ in range(draw.randint(1, 6)))
        start, end = sorted(draw.choices(range(len(text) + 1), k=2))
        assert html.open(text[:start], text[end:]).check(text[start:end]).complete == Tags("html", text).taken(), (
            text,
            start,
            end,
        )


@pytest.mark.parametrize("text", ["<script>‸</script>", "<style>a{‸}</style>", "<p>‸</p>", "<script src=a>‸</script>"])
def test_code_is_a_region_and_all_else_is_html(text: str) -> None:
    host = host_of("html", "")
    assert host is not None
    offset = text.index("‸")
    region = host.at(text.replace("‸", ""), offset)
    expected = {"<script>‸</script>": "javascript", "<style>a{‸}</style>": "css"}.get(text)
    assert (None if region is None else region.language) == expected
    assert Language.load("html").open(*text.split("‸")).guarantee == "balanced"
