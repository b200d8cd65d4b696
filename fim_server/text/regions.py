"""Regions of code in files of another language, such as scripts in HTML.

`hosts.toml` lists the files and their regions. Tags, comments and scripts are read as the HTML standard does (section
13.2.5, "Tokenization"), so the text before a region decides where it begins. The time is linear in the text: each
character is searched a fixed number of times.
"""

from __future__ import annotations

import re
import tomllib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from fim_server.text.notebook import CellContexts

if TYPE_CHECKING:
    from fim_server.text.document import Split

NO_CODE = "no code of a known language at the cursor"
"""Message about a cursor outside of the code in a host's file."""

ENDS_CODE = "it would change where the code in this file ends"
"""Message about a text that moves the end of a region."""

MOST_FOUND = 4
"""Most regions of a host's files that are remembered."""

BLANK = r"[ \t\n\f]"

NAME = r"(?:=[^ \t\n\f/>=]*+|[^ \t\n\f/>=]++)"

ATTRIBUTE = re.compile(
    rf"[ \t\n\f/]*+(?P<name>{NAME})(?:{BLANK}*+={BLANK}*+"
    rf"(?:\"(?P<twice>[^\"]*+)\"|'(?P<once>[^']*+)'|(?P<plain>[^ \t\n\f>\"'][^ \t\n\f>]*+)|(?=>)))?+"
)
"""An attribute in a tag, after the blanks before it."""

REST_OF_TAG = re.compile(
    rf"(?:[ \t\n\f/]++|{NAME}(?:{BLANK}*+={BLANK}*+"
    rf"(?:\"[^\"]*+\"|'[^']*+'|[^ \t\n\f>\"'][^ \t\n\f>]*+|(?=>))|(?!{BLANK}*+=)))*+>"
)
"""The attributes of a tag and its end."""

NAME_OF_TAG = re.compile(r"<(?P<tag>[A-Za-z][^ \t\n\f/>]*+)")

END_TAG = re.compile("</[A-Za-z]")

END_OF_COMMENT = re.compile("--!?>")

TAGS_IN_SCRIPT = re.compile(r"(?i:<!--|-->|</?script(?![^ \t\n\f/>]))")
"""Texts that change how a script is read: states "script data escaped" and "double escaped" of the standard."""


@dataclass(frozen=True, slots=True)
class Ender:
    """End of a region, searched from its first character.

    Attributes:
        pattern: The text that ends it.
        escapes: Whether comments of HTML in a script may hide the end.
    """

    pattern: re.Pattern[str]
    escapes: bool = False

    def find(self, text: str, start: int) -> tuple[int, int]:
        """Return the end of a region, and the end of the text that ends it; twice the text's end if none does."""
        found = self.pattern.search(text, start)
        if found is None:
            return len(text), len(text)
        if not self.escapes or text.find("<!--", start, found.start()) < 0:
            return found.span()
        return escaped_end(text, start)


def escaped_end(text: str, start: int) -> tuple[int, int]:
    """Return the end of a script with comments of HTML, as :meth:`Ender.find`.

    In a comment, a start tag hides the next end tag.
    """
    in_comment = is_hidden = False
    at = start
    while (found := TAGS_IN_SCRIPT.search(text, at)) is not None:
        match found[0].lower():
            case "<!--":
                in_comment = True
                # `<!-->` and `<!--->` are whole comments.
                at = found.end() - 2
                continue
            case "-->":
                in_comment = is_hidden = False
            case "<script":
                is_hidden = in_comment
            case _ if is_hidden:
                is_hidden = False
            case _:
                return found.span()
        at = found.end()
    return len(text), len(text)


@dataclass(frozen=True, slots=True)
class Region:
    """Code of one language in a file of another.

    Attributes:
        language: Its language; None for one that is no code to this server.
        start: Offset of its first character.
        end: Offset behind its last character.
        ender: The rule for its end.
    """

    language: str | None
    start: int
    end: int
    ender: Ender

    def contexts(self, uri: str, split: Split) -> CellContexts:
        """Return both sides of a cursor in the region.

        Line breaks stand for the text above the region, so that its lines have the file's numbers.
        """
        left, right, offset = split.left, split.right, len(split.left)
        above, inner = left.count("\n", 0, self.start), right[: self.end - offset]
        return CellContexts(
            key=f"{uri} {self.start} {offset + len(right) - self.end}",
            left="\n" * above + left[self.start :],
            right=inner,
            own=(),
            units=(),
            given="",
            takes_all=False,
            one_line=False,
            before=left,
            after=right,
            reader=RegionKeeper(self.start, self.ender),
            region=range(above, left.count("\n") + inner.count("\n") + 1),
        )


@dataclass(frozen=True, slots=True)
class RegionKeeper:
    """Judge of texts at a cursor in a region: they must leave its end where it is."""

    start: int
    ender: Ender

    def keeps(self, left: str, right: str, units: Sequence[str], before: str, text: str, after: str) -> bool:
        """Return whether a region still ends as it did, and the text contains nothing that ends one.

        Args:
            left: The region before the cursor.
            right: The rest of the region after the text.
            units: Not used.
            before: The file before the cursor.
            text: The text.
            after: The rest of the file.
        """
        if self.ender.pattern.search(text) is not None:
            return False
        end = len(before) + len(text) + len(right)
        return self.ender.find(before + text + after, self.start)[0] == end


@dataclass(frozen=True, slots=True)
class Element:
    """Element whose content is a region; the keys of `hosts.toml`."""

    tag: str
    attributes: tuple[str, ...]
    without: str
    language: str
    bare: str
    escapes: bool

    def language_of(self, attributes: Mapping[str, str], names: Mapping[str, str]) -> str | None:
        """Return the language of an element with some attributes."""
        if self.without in attributes:
            return None
        if not attributes:
            return self.bare
        value = next((attributes[name] for name in self.attributes if name in attributes), None)
        return self.language if value is None else names.get(value.strip(" \t\n\f").lower())


@dataclass(frozen=True, slots=True)
class Fence:
    """Region between two texts; the keys of `hosts.toml`."""

    begins: re.Pattern[str]
    ends: str
    language: str | None

    def language_of(self, opening: re.Match[str], names: Mapping[str, str]) -> str | None:
        named = opening.groupdict().get("language")
        return self.language if named is None else names.get(named.lower())

    def ender_of(self, opening: re.Match[str]) -> Ender:
        """Return the rule for the end: the pattern, with the opening's group `fence` in it."""
        return fence_ender(self.ends.replace("{fence}", re.escape(opening.groupdict().get("fence") or "")))


class Host:
    """Language whose files hold regions of others.

    Attributes:
        name: Its name in settings.
        suffixes: Suffixes of its files.
        editor_ids: Its names in editors.
        text_is_plain: Its other text is a file without a grammar.
    """

    def __init__(self, spec: Mapping[str, Any], names: Mapping[str, str]) -> None:
        self.name: str = spec["name"]
        self.suffixes: tuple[str, ...] = tuple(spec["suffixes"])
        self.editor_ids: tuple[str, ...] = (self.name, *spec.get("editor_ids", ()))
        self._names = {**names, **spec.get("names", {})}
        self.text_is_plain: bool = spec.get("text_is_plain", False)
        self._closes_itself: bool = spec.get("closes_itself", False)
        self._spec = spec
        self._found: deque[tuple[str, Region]] = deque(maxlen=MOST_FOUND)

    @cached_property
    def _elements(self) -> dict[str, Element]:
        return {
            one["tag"]: Element(
                one["tag"],
                tuple(one["attributes"]),
                one.get("without", ""),
                one["language"],
                one.get("bare", one["language"]),
                one.get("escapes", False),
            )
            for one in self._spec.get("elements", ())
        }

    @cached_property
    def _enders(self) -> dict[str, Ender]:
        enders = {tag: Ender(end_tag(tag), one.escapes) for tag, one in self._elements.items()}
        return enders | {tag: Ender(end_tag(tag)) for tag in self._spec.get("texts", ())}

    @cached_property
    def _fences(self) -> list[Fence]:
        return [
            Fence(re.compile(one["begins"], re.MULTILINE), one["ends"], one.get("language"))
            for one in self._spec.get("fences", ())
        ]

    @cached_property
    def _skipped(self) -> re.Pattern[str] | None:
        return skipped(self._enders) if self._enders else None

    def at(self, text: str, offset: int) -> Region | None:
        """Return the region around an offset of a text, ends included; None outside of regions of code.

        A region that was found lately is found again without its text above, which decides where it begins.
        """
        for above, known in self._found:
            if len(above) <= offset and text.startswith(above):
                region = replace(known, end=known.ender.find(text, known.start)[0])
                if offset <= region.end:
                    return region
        for region in self.regions(text):
            if region.start > offset:
                break
            if offset <= region.end:
                if region.language is not None:
                    self._found.appendleft((text[: region.start], region))
                    return region
                break
        return None

    def regions(self, text: str) -> Iterator[Region]:
        """Yield the regions of a text in their order."""
        at = 0
        ahead = [fence.begins.search(text) for fence in self._fences]
        while at < len(text):
            found = self._next_fence(text, at, ahead)
            event = len(text) if self._skipped is None else end_of_match(self._skipped, text, at)
            if found is not None and found[1].start() <= event:
                fence, opening = found
                ender = fence.ender_of(opening)
                end, after = ender.find(text, opening.end())
                yield Region(fence.language_of(opening, self._names), opening.end(), end, ender)
                at = max(after, at + 1)
            elif (name := NAME_OF_TAG.match(text, event)) is not None:
                region, at = self._element(text, name)
                if region is not None:
                    yield region
            else:
                at = after_other(text, event)

    def _next_fence(self, text: str, at: int, ahead: list[re.Match[str] | None]) -> tuple[Fence, re.Match[str]] | None:
        """Return the next fence that opens at or behind an offset.

        ``ahead``: the next opening of each fence, brought up to date, so that no part of the text is searched twice.
        """
        for number, fence in enumerate(self._fences):
            known = ahead[number]
            if known is not None and known.start() < at:
                ahead[number] = fence.begins.search(text, at)
        opened = [(fence, opening) for fence, opening in zip(self._fences, ahead, strict=True) if opening is not None]
        return min(opened, key=lambda one: one[1].start(), default=None)

    def _element(self, text: str, name: re.Match[str]) -> tuple[Region | None, int]:
        """Return the region of an element whose start tag has a name, and the offset behind the element."""
        tag = name["tag"].lower()
        element, ender = self._elements.get(tag), self._enders.get(tag)
        start = after_tag(text, name.end())
        if start is None or ender is None:
            return None, len(text)
        if self._closes_itself and text.startswith("/>", start - 2):
            return None, start
        attributes = read_attributes(text, name.end(), start)
        end, closing = ender.find(text, start)
        after = after_tag(text, closing) or len(text)
        if element is None:
            return None, after
        return Region(element.language_of(attributes, self._names), start, end, ender), after


@cache
def fence_ender(pattern: str) -> Ender:
    return Ender(re.compile(pattern, re.MULTILINE))


def skipped(raw: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern of text and tags before a comment, a declaration, a broken tag, or one of some elements."""
    names = "|".join(map(re.escape, raw))
    tag = rf"</?+(?!(?<=<)(?:{names})(?![^ \t\n\f/>]))[a-z][^ \t\n\f/>]*+{REST_OF_TAG.pattern}"
    return re.compile(rf"(?:[^<]++|{tag}|<(?![a-z!?/])|</>)*+", re.IGNORECASE)


def end_of_match(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


def end_tag(tag: str) -> re.Pattern[str]:
    """Return the pattern of an element's end tag up to its name's end; the text's end may cut it."""
    return re.compile(rf"</{re.escape(tag)}(?![^ \t\n\f/>])", re.IGNORECASE)


def after_other(text: str, at: int) -> int:
    """Return the offset behind a comment or declaration that begins at an offset; the text's end for a broken tag."""
    if text.startswith("<!--", at):
        return after_comment(text, at + len("<!--"))
    if END_TAG.match(text, at) is not None:
        return len(text)
    return text.find(">", at) + 1 or len(text)


def after_comment(text: str, at: int) -> int:
    """Return the offset behind a comment whose beginning `<!--` ends at an offset."""
    for whole in (">", "->"):
        if text.startswith(whole, at):
            return at + len(whole)
    found = END_OF_COMMENT.search(text, at)
    return len(text) if found is None else found.end()


def after_tag(text: str, at: int) -> int | None:
    """Return the offset behind a tag whose name ends at an offset; None where the text ends in it."""
    found = REST_OF_TAG.match(text, at)
    return None if found is None else found.end()


def read_attributes(text: str, at: int, end: int) -> dict[str, str]:
    """Return the attributes between the name and the end of a tag, in lower case; of equal ones the first."""
    attributes: dict[str, str] = {}
    while (found := ATTRIBUTE.match(text, at, end)) is not None:
        value = found["twice"] or found["once"] or found["plain"] or ""
        attributes.setdefault(found["name"].lower(), value)
        at = found.end()
    return attributes


def read_alone(contexts: CellContexts, language: str) -> str:
    """Return the message about the lines of a file that are read."""
    lines = contexts.region or range(0)
    where = f"line {lines.stop} is" if len(lines) == 1 else f"lines {lines.start + 1} to {lines.stop} are"
    return f"{where} read alone, as {language}"


@cache
def hosts() -> tuple[Host, ...]:
    """Return the hosts of `hosts.toml`."""
    read = tomllib.loads(Path(__file__).with_name("hosts.toml").read_text(encoding="utf-8"))
    return tuple(Host(spec, read["names"]) for spec in read["hosts"])


def host_of(editor_id: str, path: str) -> Host | None:
    """Return the host that an editor's name of a language or a file's suffix names; None for other files."""
    suffix = PurePath(path).suffix
    named = (host for host in hosts() if editor_id in host.editor_ids)
    return next(named, None) or next((host for host in hosts() if suffix in host.suffixes), None)
