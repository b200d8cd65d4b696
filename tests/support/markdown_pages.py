"""Reader of the repository's Markdown: links, anchors, blocks of code, commands."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>```+|~~~+)(?P<info>[^\n]*)\n(?P<text>.*?)^(?P=indent)(?P=ticks)[ \t]*$", re.S | re.M
)
_INDENTED = re.compile(r"(?:(?<=\n\n)|\A)(?:(?: {4}[^\n]*)?\n)+", re.M)
_LINK = re.compile(r"(?:\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^()\s]+)\)")
_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@dataclass(frozen=True)
class Block:
    """A fenced block of code.

    Attributes:
        page: The page's path from the repository's root.
        language: The fence's first word.
        title: What `title="..."` behind it says, or "".
        text: What is in it.
    """

    page: str
    language: str
    title: str
    text: str


@cache
def tracked() -> frozenset[str]:
    """The repository's files, new ones among them, and its folders: paths from its root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = {path for path in listed.split("\0") if path and (ROOT / path).exists()}
    folders = {parent.as_posix() for path in files for parent in Path(path).parents}
    return frozenset(files | folders)


def pages() -> list[str]:
    """All Markdown files."""
    return sorted(path for path in tracked() if path.endswith(".md"))


@cache
def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@cache
def blocks(page: str) -> tuple[Block, ...]:
    """The fenced blocks of a page."""
    found = []
    for match in _FENCE.finditer(text_of(page)):
        info = match["info"].strip()
        title = re.search(r'title="([^"]*)"', info)
        found.append(Block(page, info.split(" ")[0], title[1] if title else "", match["text"]))
    return tuple(found)


@cache
def prose(page: str) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("\n", text_of(page))


def links(page: str) -> list[str]:
    """The targets of a page's links and pictures; code is not looked at."""
    plain = _CODE.sub("", _INDENTED.sub("\n", prose(page)))
    # A link's text may itself be code, which the line above has emptied.
    return _LINK.findall(plain)


@cache
def anchors(page: str) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub makes them, and those written in HTML."""
    found: dict[str, int] = {}
    names = set(re.findall(r'<a (?:id|name)="([^"]+)"', prose(page)))
    for heading in re.findall(r"^#{1,6} +(.*?) *#*$", prose(page), re.M):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        count = found.get(slug, 0)
        found[slug] = count + 1
        names.add(slug if count == 0 else f"{slug}-{count}")
    return frozenset(names)


def spans(page: str) -> list[str]:
    """Return the spans between single backticks."""
    return _CODE.findall(prose(page))


def command_lines(page: str) -> list[str]:
    """Lines of the blocks that a reader would type, and spans of the prose."""
    lines = []
    for block in blocks(page):
        if block.language in ("", "sh", "shell", "console", "bash", "text"):
            lines += block.text.splitlines()
    for match in _INDENTED.finditer(prose(page)):
        lines += match[0].splitlines()
    return [line.strip().removeprefix("$ ") for line in [*lines, *spans(page)] if line.strip()]


def differences(page: str) -> list[tuple[str, bool]]:
    """Return the examples of a language's page, each with whether the definition accepts it and its judge does not."""
    _, *sections = re.split(r"^(Accepted|Refused) here, .*:$", text_of(page), flags=re.M)
    return [
        (example, verdict == "Accepted")
        for verdict, section in zip(sections[::2], sections[1::2], strict=True)
        for example in re.findall(r"^\| `(.+?)` \|", section.split("\n## ")[0], re.M)
    ]
