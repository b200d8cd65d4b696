"""Cuts of real files: a text that the judge takes, in three parts, the middle one of a known kind.

A text is made small by leaving out runs of lines with balanced brackets, as long as the judge still takes the rest. So
it is real code, and a judge gets through many texts. A seed and a case's number seed all draws.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fim_server.datasets.judging.judge import Judge
from fim_server.language import Language
from fim_server.language.definition.compile import Definition, lower
from fim_server.language.encodings import EncodingError
from fim_server.language.limited_files import read_found

KINDS = ("token", "span", "line", "lines", "brackets", "blank", "string", "comment", "empty", "end")

LARGEST_FILE = 200_000  # characters
WINDOWS = (250, 500, 900, 1500, 3000)  # most characters that are aimed at
WHOLE = 0.05  # share of files that are taken as they are, where they are not long
WHOLE_FILE = 20_000
HALVINGS = 24  # times that lines are left out of a file
LONGEST = 160  # characters of a middle
MOST_TOKENS = 20
PER_WINDOW = 5  # cases that are drawn from one text


@dataclass(frozen=True)
class Looks:
    """Parts of a language's look that cuts need: brackets, quotes, and beginnings and ends of comments."""

    brackets: tuple[tuple[str, str], ...]
    quotes: tuple[str, ...]
    comments: tuple[tuple[str, str], ...]

    words: tuple[str, ...] = ()
    """Texts of its fixed lexemes, keywords and signs."""

    @classmethod
    def of(cls, definition: Definition) -> Looks:
        spec = definition.spec
        fixed = (lexeme.get("literal") for lexeme in lower(definition)["lexemes"])
        return cls(
            tuple((opening, closing) for opening, closing in spec.get("brackets", [])),
            tuple(spec.get("quotes", [])),
            tuple((comment["prefix"], comment.get("suffix", "")) for comment in spec.get("comments", [])),
            tuple(sorted({text for text in fixed if text})),
        )

    @cached_property
    def symbols(self) -> re.Pattern[str]:
        """Pattern of symbols, roughly: strings, comments, words, blanks, and characters."""
        parts: list[str] = []
        for begin, end in sorted(self.comments, key=lambda comment: -len(comment[0])):
            rest = rf"[\s\S]*?{re.escape(end)}" if end else r"[^\n]*"
            parts.append(f"(?P<comment{len(parts)}>{re.escape(begin)}{rest})")
        for quote in sorted(self.quotes, key=lambda quote: -len(quote)):
            inner = r"(?:\\[\s\S]|[^\\])*?" if len(quote) > 1 else rf"(?:\\.|[^\\\n{re.escape(quote)}])*"
            parts.append(f"(?P<string{len(parts)}>{re.escape(quote)}{inner}{re.escape(quote)})")
        return re.compile("|".join([*parts, r"(?P<word>\w+)", r"(?P<blank>\s+)", r"[^\w\s]"]))


@dataclass(frozen=True)
class Case:
    """Cut of a text: its place and its three parts."""

    index: int
    kind: str
    path: str
    text: str
    start: int
    end: int
    tokens: tuple[tuple[int, int], ...]

    @property
    def left(self) -> str:
        return self.text[: self.start]

    @property
    def middle(self) -> str:
        return self.text[self.start : self.end]

    @property
    def right(self) -> str:
        return self.text[self.end :]


def spans(looks: Looks, text: str, kind: str = "") -> list[tuple[int, int]]:
    """Return the places of a text's symbols: of one kind (comment, string, blank, word), or of all but blanks."""
    found = looks.symbols.finditer(text)
    named = [(match.span(), (match.lastgroup or "").rstrip("0123456789")) for match in found]
    return [span for span, group in named if (group == kind if kind else group != "blank")]


def window(rng: random.Random, looks: Looks, judge: Judge, text: str, most: int) -> str | None:
    """Return a smaller text that the judge takes; None where it refuses the text itself."""
    if judge.verdict(text) is not True:
        return None
    for _ in range(HALVINGS):
        if len(text) <= most:
            break
        ways = [
            way for way in (_without_some(rng, looks, text) for _ in range(4)) if way.strip() and len(way) < len(text)
        ]
        verdicts = judge.verdicts(ways)
        taken = [way for way, verdict in zip(ways, verdicts, strict=True) if verdict]
        if taken:
            text = min(taken, key=len)
    return text


def _without_some(rng: random.Random, looks: Looks, text: str) -> str:
    """Leave out some of the lines between two places of equal depth."""
    lines = text.splitlines(keepends=True)
    depths = list(_depths(looks, text))
    depth = rng.choice(sorted({*depths})[:4])
    # Where a line begins at that depth and no line above it, up to the last such place, goes below.
    groups: list[list[int]] = [[]]
    for at, here in enumerate(depths):
        if here < depth:
            groups.append([])
        elif here == depth:
            groups[-1].append(at)
    longest = max(groups, key=lambda group: group[-1] - group[0] if len(group) > 1 else 0)
    if len(longest) < 2:
        return text
    first, last = sorted(rng.sample(range(len(longest)), 2))
    if rng.random() < 0.5:  # all above or all below: what is left is of one piece
        first, last = (0, last) if rng.random() < 0.5 else (first, len(longest) - 1)
    return "".join(lines[: longest[first]] + lines[longest[last] :])


def _depths(looks: Looks, text: str) -> Iterator[int]:
    """Yield the number of open brackets at the beginning of each line, and at the end."""
    opening = {pair[0] for pair in looks.brackets}
    closing = {pair[1] for pair in looks.brackets}
    depth, at = 0, 0
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for match in looks.symbols.finditer(text):
        while at < len(starts) and starts[at] <= match.start():
            yield depth
            at += 1
        symbol = match.group()
        depth += (symbol in opening) - (symbol in closing)
    for _ in range(at, len(starts)):
        yield depth


def cut(rng: random.Random, looks: Looks, text: str, kind: str) -> tuple[int, int] | None:
    """Return the place of a middle of a kind; None where the text has none."""
    tokens = spans(looks, text)
    match kind:
        case "empty":
            at = rng.randint(0, len(text))
            return at, at
        case "end":
            return max(0, len(text) - rng.randint(0, LONGEST)), len(text)
        case "span":
            start = rng.randint(0, len(text))
            return start, min(len(text), start + rng.randint(1, LONGEST))
        case "token" if tokens:
            first = rng.randrange(len(tokens))
            last = min(len(tokens) - 1, first + rng.randrange(MOST_TOKENS))
            while last > first and tokens[last][1] - tokens[first][0] > LONGEST:
                last -= 1
            return tokens[first][0], min(tokens[last][1], tokens[first][0] + LONGEST)
        case "line" | "lines":
            return _lines(rng, text, 1 if kind == "line" else rng.randint(2, 6))
        case "brackets":
            pairs = [pair for pair in _pairs(looks, text) if pair[1] - pair[0] <= 2 * LONGEST]
            return rng.choice(pairs) if pairs else None
        case "blank" | "string" | "comment":
            found = [span for span in spans(looks, text, kind) if span[1] - span[0] <= 2 * LONGEST]
            if not found:
                return None
            start, end = rng.choice(found)
            inside = sorted((rng.randint(start, end), rng.randint(start, end)))
            return rng.choice(
                [(start, end), (inside[0], inside[1]), (inside[0], end), (inside[0], min(len(text), end + 20))]
            )
        case _:
            return None


def _lines(rng: random.Random, text: str, count: int) -> tuple[int, int] | None:
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    first = rng.randrange(len(starts))
    last = min(first + count, len(starts) - 1)
    start, end = starts[first], starts[last] if last > first else len(text)
    end = min(end, start + 3 * LONGEST)
    if rng.random() < 0.5:  # without the indentation before and the line break after
        start += len(text[start:end]) - len(text[start:end].lstrip())
        end = max(start, end - rng.randint(0, 1))
    return start, end


def _pairs(looks: Looks, text: str) -> list[tuple[int, int]]:
    partner = {close: opened for opened, close in looks.brackets}
    opening = set(partner.values())
    stack: list[tuple[str, int]] = []
    found = []
    for match in looks.symbols.finditer(text):
        symbol = match.group()
        if symbol in opening:
            stack.append((symbol, match.end()))
        elif symbol in partner and stack and stack[-1][0] == partner[symbol]:
            found.append((stack.pop()[1], match.start()))
    return found


class Files:
    """Files of a language in some folders; each folder is a project, and all projects count equally."""

    def __init__(self, folders: Sequence[Path], suffixes: Sequence[str], without: Sequence[str] = ()) -> None:
        """List the files with one of the suffixes, and with none of the longer ones that are of other languages.

        Raises:
            OSError: A folder is not there, or has no such file.
        """
        self.projects: list[tuple[str, list[Path]]] = []
        for folder in folders:
            if not folder.exists():
                raise FileNotFoundError(f"{folder}: there is no such folder")
            inner = (
                [folder]
                if folder.is_file()
                else sorted(
                    path
                    for path in folder.rglob("*")
                    if path.name.endswith(tuple(suffixes)) and not path.name.endswith(tuple(without))
                )
            )
            paths = [path for path in inner if path.is_file()]
            if not paths:
                raise FileNotFoundError(f"{folder}: no file named *{', *'.join(suffixes)}")
            self.projects.append((folder.name, paths))

    def all(self) -> Iterator[tuple[str, Path]]:
        for project, paths in self.projects:
            for path in paths:
                yield project, path

    def drawn(self, rng: random.Random) -> tuple[str, Path, str] | None:
        """Draw a project, a file of it and its text; None for a file that is no text or too large."""
        project, paths = rng.choice(self.projects)
        path = rng.choice(paths)
        text = text_of(path)
        return None if text is None or len(text) > LARGEST_FILE else (project, path, text)


def text_of(path: Path) -> str | None:
    """Return a file's text with line breaks as the engine reads them; None where it is no text."""
    try:
        text = Language.decode(path, read_found(path))
    except (OSError, EncodingError):
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def cases(rng: random.Random, looks: Looks, judge: Judge, files: Files, first: int, kinds: Sequence[str]) -> list[Case]:
    """Return the cases of one text, numbered from the first; their kinds take turns."""
    for _ in range(60):
        drawn = files.drawn(rng)
        if drawn is None:
            continue
        project, path, text = drawn
        whole = rng.random() < WHOLE and len(text) <= WHOLE_FILE
        small = text if whole and judge.verdict(text) else window(rng, looks, judge, text, rng.choice(WINDOWS))
        if not small or judge.decided(small, False)[0] is not True:
            continue
        tokens = tuple(spans(looks, small))
        found = []
        for index in range(first, first + PER_WINDOW):
            wanted = kinds[index % len(kinds)]
            place = cut(rng, looks, small, wanted) or cut(rng, looks, small, "span")
            assert place is not None
            found.append(Case(index, wanted, f"{project}/{path.name}", small, *place, tokens))
        return found
    return []
