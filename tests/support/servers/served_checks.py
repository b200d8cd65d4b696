"""Invariants of the items that the server sends, judged by each language's own parser."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice, product
from pathlib import Path
from typing import Any, TypeGuard

from fim_server import Language
from fim_server.datasets.judging.cutting import Looks
from fim_server.datasets.judging.differences import Differences
from fim_server.datasets.judging.judge import Judge
from fim_server.datasets.judging.programs import start
from fim_server.decoding.ending.trimming.indentation import UNFINISHED
from fim_server.language.definition.compile import builtin_files, read_builtin
from fim_server.recovery.texts import insertions
from support.editors.editor import LINE_BREAK, PYTHON, is_subsequence
from support.editors.editor_fuzzer import F_PREFIX
from support.languages.token_tree_twin import reader_of
from support.servers.served_places import Place

EXACT, BALANCED, PARTIAL = "exact", "balanced", "partial"
LOOP = re.compile(r"(?s)(.{4,80}?)\1\1+")
WORD = re.compile(r"\w+")
MOST_STOOD_IN, MOST_TRIED = 2, 1000
"""Runs of lines that are stood in for, and ways to do so that are tried."""
LEAST_TELLING = 3
"""Letters and digits of a line, or of a phrase, that is not written twice by chance."""
NEWER_IN_NAMES = re.compile("[\u200c\u200d\u30fb\uff65]")
"""Characters that names may have since Unicode 15.1, which older Pythons do not know."""
MARK = re.compile(r"\s*@\w+\s*")
"""A line that marks the member below it, as several may be marked."""
SNIPPET_ESCAPE = re.compile(r"\\([\\$}])")
PLAIN_BLANKS = frozenset("\n\t ")
INVISIBLE = ("Cc", "Cf", "Zl", "Zp", "Cs", "Co")


@dataclass(frozen=True)
class Item:
    """An item as an editor applies it.

    Attributes:
        label: Its guarantee.
        start, end: What it replaces.
        text: What it inserts.
        lines: The lines that a partial guarantee covers.
    """

    label: str
    start: int
    end: int
    text: str
    lines: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Seen:
    """The answer to one request.

    Attributes:
        place: Where it was made.
        text: The document, with its own line breaks.
        cursor: In it.
        invoked: Whether the user asked.
        items: What was sent.
        requires_names: Whether the settings refuse items that load unknown names.
        case: The case's number and the request's in it.
        cells: The other cells of a notebook, those above the cursor's and those below.
    """

    place: Place
    text: str
    cursor: int
    invoked: bool
    items: tuple[Item, ...]
    requires_names: bool = False
    case: tuple[int, int] = (0, 0)
    cells: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


@dataclass(frozen=True)
class Violation:
    """An invariant that an answer breaks."""

    kind: str
    seen: Seen
    item: Item | None
    said: str = ""

    def __str__(self) -> str:
        seen = self.seen
        asked = "invoked" if seen.invoked else "not invoked"
        lines = [f"{self.kind}: {seen.place.language}, cut {seen.place.kind!r}, {asked}, case {seen.case[0]}"]
        lines.append(f"  text = {seen.text[: seen.cursor] + '‸' + seen.text[seen.cursor :]!r}")
        if seen.place.rest:
            lines.append(f"  true rest = {seen.place.rest!r} for {seen.place.closers!r}")
        if any(seen.cells):
            lines.append(f"  cells above = {list(seen.cells[0])!r}, below = {list(seen.cells[1])!r}")
        if self.item is not None:
            covered = seen.text[self.item.start : self.item.end]
            lines.append(f"  {self.item.label} item {self.item.text!r} in place of {covered!r}")
            if self.item.label == PARTIAL:
                lines.append(f"  covers of {len(LINE_BREAK.split(seen.text))} lines {sorted(self.item.lines)}")
        return "\n".join([*lines, f"  {self.said}"] if self.said else lines)


@dataclass
class Document:
    """A document as the editor has it, its offsets in characters."""

    uri: str
    text: str
    version: int = 1
    cursor: int = 0

    def position(self, offset: int) -> dict[str, int]:
        """A place in the protocol's units, those of UTF-16."""
        lines = LINE_BREAK.split(self.text[:offset])
        return {"line": len(lines) - 1, "character": len(lines[-1].encode("utf-16-le")) // 2}

    def offset(self, position: dict[str, int]) -> int:
        """The inverse; columns beyond a line's end mean the end."""
        starts = [0, *(found.end() for found in LINE_BREAK.finditer(self.text))]
        start = starts[position["line"]]
        line = LINE_BREAK.split(self.text[start:], maxsplit=1)[0]
        return start + len(line.encode("utf-16-le")[: 2 * position["character"]].decode("utf-16-le"))


# --- items ---------------------------------------------------------------------------------------------------------


def inline_item(document: Document, item: dict[str, Any]) -> Item:
    """An item of `textDocument/inlineCompletion`."""
    return _item(document, item["range"], item["insertText"], item)


def lsp4ij_item(document: Document, item: dict[str, Any]) -> Item:
    """An item of `textDocument/inlineCompletion` in LSP4IJ 0.21, which keeps the characters right of the cursor."""
    kept = document.text[document.cursor : document.offset(item["range"]["end"])]
    return _item(document, item["range"], kept + item["insertText"], item)


def list_item(document: Document, item: dict[str, Any]) -> Item:
    """An item of `textDocument/completion`."""
    edit = item["textEdit"]
    text = edit["newText"]
    if item["insertTextFormat"] == 2:
        text = expanded(text)
    if item.get("insertTextMode") == 2:  # adjust the indentation to that of the line
        start = document.offset(edit["range"]["start"])
        line = LINE_BREAK.split(document.text[:start])[-1]
        text = re.sub(r"(\r\n|\n)", lambda found: found[0] + line[: len(line) - len(line.lstrip())], text)
    return _item(document, edit["range"], text, item)


def expanded(snippet: str) -> str:
    """Return the text that an editor inserts for a snippet without tab stops.

    Raises:
        ValueError: It has one.
    """
    if re.search(r"(?<!\\)(?:\\\\)*\$", snippet):
        raise ValueError(f"a tab stop: {snippet!r}")
    return SNIPPET_ESCAPE.sub(r"\1", snippet)


def _item(document: Document, span: dict[str, Any], text: str, item: dict[str, Any]) -> Item:
    (argument,) = item["command"]["arguments"]
    lines = {
        line
        for stretch in argument.get("coveredLines", ())
        for line in range(stretch["line"], stretch["line"] + stretch["count"])
    }
    start, end = document.offset(span["start"]), document.offset(span["end"])
    return Item(argument["guarantee"], start, end, text, frozenset(lines))


def applied(seen: Seen, item: Item) -> str:
    """The document with an item, as the language's parser reads it."""
    text = seen.text[: item.start] + item.text + seen.text[item.end :]
    return seen.place.program(LINE_BREAK.sub("\n", text)) if seen.place.command else text


# --- judges --------------------------------------------------------------------------------------------------------


class BalanceJudge(Judge):
    """Plain reader of a language of token trees, in the place of a judge; of one with rules of its own, the engine."""

    def __init__(self, name: str) -> None:
        reader, language = reader_of(name), Language.load(name)
        self._takes = reader.takes if reader else lambda text: language.open("", "").check(text).complete

    def decided(self, text: str, claimed: bool) -> tuple[bool | None, str]:
        return self._told([text])[0]

    def close(self) -> None:
        """End nothing: no process runs."""

    def _told(self, texts: Sequence[str]) -> list[tuple[bool | None, str]]:
        verdicts = map(self._takes, (LINE_BREAK.sub("\n", text) for text in texts))
        return [(verdict, "" if verdict else "it is not balanced") for verdict in verdicts]


class Court:
    """A language's own parser, its documented differences, and the engine.

    A plain reader judges a language of token trees.

    Attributes:
        label: The guarantee of items in a file that the judge takes.
    """

    def __init__(self, name: str) -> None:
        """Start the judge. Raises JudgeError where the language's tools are missing."""
        self.name = name
        self.label = read_builtin(name).guarantee
        self.version: str | None = None
        if self.label == BALANCED:
            self.judge: Judge = BalanceJudge(name)
        else:
            started = start(name)
            self.judge = started.judge
            self.version = PYTHON if name == "python" else started.version
        self.language = Language.load(name, self.version)
        self.looks = Looks.of(read_builtin(name, self.version))
        self.differences = Differences.of(Path(builtin_files(name)[0]).parent)

    def close(self) -> None:
        """End the judge's process."""
        self.judge.close()

    def takes(self, text: str) -> bool:
        """Return whether the language's parser accepts a text that is claimed to parse."""
        return self.objection(text) is None

    def objection(self, text: str) -> str | None:
        """Return the parser's error for a text that is claimed to parse; None for none, or a documented difference."""
        verdict, said = self.judge.decided(text, True)
        if verdict is not False:
            return None
        if self.differences.name(text, True, said) is not None:
            return None
        if self.name == "python":  # docs/python.md: f-strings before 3.12, and names as 3.14 has them
            other = F_PREFIX.sub(r"\1\2", text) if sys.version_info < (3, 12) else text
            other = NEWER_IN_NAMES.sub("", other)
            if other != text and self.judge.verdict(other) is True:
                return None
        return said or "it does not parse"


@cache
def court(name: str) -> Court:
    """The court of a language."""
    return Court(name)


# --- invariants ----------------------------------------------------------------------------------------------------


@dataclass
class Verdicts:
    """Findings in some answers.

    Attributes:
        violations: What breaks an invariant.
        counts: Items and requests, by what they are.
    """

    violations: list[Violation] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, what: str, number: int = 1) -> None:
        """Add to a count."""
        self.counts[what] = self.counts.get(what, 0) + number


def examine(answers: Sequence[Seen]) -> Verdicts:
    """Check all invariants of some answers; each judge gets all its texts together."""
    found = Verdicts()
    for name in sorted({seen.place.language for seen in answers}):
        mine = [seen for seen in answers if seen.place.language == name]
        texts = [seen.place.program(seen.place.truth) for seen in mine]
        texts += [applied(seen, item) for seen in mine for item in seen.items if item.label in (EXACT, BALANCED)]
        court(name).judge.verdicts(texts)
    for seen in answers:
        found.count("requests")
        found.count("items", len(seen.items))
        for kind, item, said in broken_invariants(seen):
            found.violations.append(Violation(kind, seen, item, said))
        for item in seen.items:
            found.count(f"{item.label} items")
    return found


def broken_invariants(seen: Seen) -> Iterator[tuple[str, Item | None, str]]:
    """The invariants that an answer breaks: their names, the item, and what is said of it."""
    place = seen.place
    judge = court(place.language)
    # An editor shows no item that lacks what it replaces.
    is_shown = is_subsequence(place.closers, place.rest)
    can_be_exact = is_shown and not place.broken and judge.takes(place.program(place.truth))
    # Brackets that are still wanted are in doubt where they do not fit the indentation.
    as_it_is = (place.program(place.text), place.program(place.left + place.right))
    is_whole = can_be_exact and (judge.label == EXACT or any(map(judge.takes, as_it_is)))
    for item in seen.items:
        for kind, said in faults(seen, item):
            yield kind, item, said
        if is_whole and item.label != judge.label:
            yield f"not {judge.label}", item, "the file with the true rest of the line parses"
        if item.label == judge.label:
            said = judge.objection(applied(seen, item)) or ""
            if said:
                yield f"{judge.label} does not parse", item, said + known_to_engine(seen, item)
        elif item.label in (EXACT, BALANCED):
            yield "wrong label", item, f"the language is {judge.label}"
        elif item.label == PARTIAL:
            fault = partial_fault(seen, item, judge)
            if fault is not None:
                yield "partial does not parse", item, fault
    if seen.invoked and not seen.items and can_be_exact and not seen.requires_names:
        if judge.label == BALANCED and place.kind == "prose":
            return  # nothing is known of the text inside a lexeme, such as the quotes in `<?xml …?>`
        if not any(judge.judge.verdict(text) for text in as_it_is):
            yield "nothing on request", None, "the text cannot stay as it is"


def known_to_engine(seen: Seen, item: Item) -> str:
    """Return whether the engine, opened afresh, accepts a text that the parser refuses."""
    language = court(seen.place.language).language
    left, right = (LINE_BREAK.sub("\n", part) for part in (seen.text[: item.start], seen.text[item.end :]))
    left = seen.place.program(left)
    complete = language.open(left, right).check(LINE_BREAK.sub("\n", item.text)).complete
    return f" (the engine {'takes' if complete else 'refuses'} it)"


def partial_fault(seen: Seen, item: Item, judge: Court) -> str | None:
    """Return the fault of the lines that a partial item covers; None where they parse, or can be made to.

    Lines that are left out may have to be stood in for, as the block of a header, each run of them by something else.
    """
    before = seen.place.program(LINE_BREAK.sub("\n", seen.text[: item.start])).split("\n")
    after = LINE_BREAK.sub("\n", seen.text[item.end :]).split("\n")
    line = len(before) - 1
    own = after[0] if line in item.lines else ""
    known = insertions(judge.language.spelling)
    lines = [*before[:-1], *after[1:]]
    covered = [number in item.lines for number in (*range(line), *range(line + 1, line + len(after)))]
    covered = [now or not one.strip() for now, one in zip(covered, lines, strict=True)]
    gaps = [at for at, now in enumerate(covered) if not now and (at in (0, line) or covered[at - 1])]
    texts = (*known.stand_ins, *known.closings)
    options = {
        at: (None, *(blanks + text for blanks in indentations(lines, covered, at) for text in texts)) for at in gaps
    }
    several: Iterator[dict[int, str | None]] = (
        dict(zip(gaps, one, strict=False)) for one in product(*(options[at] for at in gaps[:MOST_STOOD_IN]))
    )
    around: Iterator[dict[int, str | None]] = (
        {at: above if at < line else below for at in gaps} for above, below in judge.language.spelling.surroundings
    )
    for known_at in islice(chain(around, several), MOST_TRIED):
        kept = [one if now else known_at.get(at) for at, (one, now) in enumerate(zip(lines, covered, strict=True))]
        left = "\n".join([*filter(is_kept, kept[:line]), before[-1] + LINE_BREAK.sub("\n", item.text)])
        right = "\n".join([own, *filter(is_kept, kept[line:])])
        # What has to follow may stand in for itself.
        if judge.language.open(left, right).guarantee == judge.label or (
            len(gaps) < MOST_STOOD_IN and judge.takes(left + right)
        ):
            return None
    return judge.judge.message(left + right) or "it does not parse"


def indentations(lines: Sequence[str], covered: Sequence[bool], at: int) -> list[str]:
    """The blanks that a stand-in for a line may begin with: its own, and those of blocks around it."""
    others = {one[: wide(one)] for one, now in zip(lines, covered, strict=True) if now and wide(one) < wide(lines[at])}
    return [lines[at][: wide(lines[at])], *sorted(others, key=len, reverse=True)]


def is_kept(line: str | None) -> TypeGuard[str]:
    """Return whether a line, or its stand-in, is there."""
    return line is not None


def faults(seen: Seen, item: Item) -> Iterator[tuple[str, str]]:
    """Yield the faults of an item's text and range, apart from parsing."""
    place = seen.place
    if not item.start <= seen.cursor <= item.end or "\n" in seen.text[item.start : item.end]:
        yield "range", f"{item.start}:{item.end} is not at the cursor, {seen.cursor}"
    breaks = set(LINE_BREAK.findall(item.text)) - set(LINE_BREAK.findall(seen.text) or ["\n"])
    if breaks:
        yield "line breaks", f"{sorted(breaks)!r} in a document with {sorted(set(LINE_BREAK.findall(seen.text)))!r}"
    added = seen.text[item.start : seen.cursor]
    text = LINE_BREAK.sub("\n", item.text.removeprefix(added))
    below = next((line for line in (place.closers + place.right).split("\n")[1:] if line.strip()), "")
    above = next((line for line in reversed(place.left.split("\n")[:-1]) if line.strip()), "")
    is_deeper = wide(below) > len(place.indentation)
    if above.rstrip().endswith(tuple(opening for opening, _ in court(place.language).looks.brackets)):
        is_deeper |= wide(above) >= len(place.indentation)  # the cursor stands where the closing bracket belongs
    if court(place.language).label == BALANCED and UNFINISHED.search(above.rstrip()):
        is_deeper = True  # `a *` goes on in the next line, and a line of a comment whose beginning is cut looks like it
    if place.indentation and text[:1] in (" ", "\t") and text.strip() and not is_deeper:
        yield "indentation repeated", f"after {place.indentation!r}"
    word = re.search(r"\S*\Z", place.left)
    known = word[0] if word else ""
    odd = [
        character
        for character in text
        if character not in PLAIN_BLANKS and unicodedata.category(character) in INVISIBLE and character not in known
    ]
    if odd:
        yield "invisible", f"{odd!r}"
    loop = next((found for found in LOOP.finditer(text) if is_loop(found)), None)
    if loop is not None and loop[0] not in place.truth:
        yield "loop", f"{loop[1]!r} again and again"
    if below and telling(below) and not place.left[place.left.rfind("\n") + 1 :].strip():
        lines = (place.indentation + text).split("\n")
        defining = court(place.language).language.spelling.defining
        is_mark = (defining.is_mark(below) or MARK.fullmatch(below)) and len(lines) > 1
        if below.rstrip() in [line.rstrip() for line in lines] and below.strip() not in place.rest and not is_mark:
            yield "line below repeated", f"{below!r}"


def wide(line: str) -> int:
    """The number of blanks that a line begins with."""
    return len(line) - len(line.lstrip())


def is_loop(found: re.Match[str]) -> bool:
    """Return whether a phrase repeats too often: a word with signs may come three times (`x.parent.parent.parent`)."""
    times = len(found[0]) // len(found[1])
    return telling(found[1]) and any(map(str.isalpha, found[1])) and (times > 3 or len(WORD.findall(found[1])) > 1)


def telling(text: str) -> bool:
    """Return whether a text is too specific to be written twice by chance."""
    return sum(character.isalnum() for character in text) >= LEAST_TELLING
