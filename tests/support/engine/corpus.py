"""Real files, cuts in them, mutated middles, and CPython's word on the result.

Files are the running interpreter's own standard library. A cut splits a file into left, middle and right; everything is
drawn from a seeded generator, so that a seed names a run.
"""

from __future__ import annotations

import ast
import io
import keyword
import random
import sysconfig
import tokenize
import tomllib
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fim_server import Language, Session
from support.languages import python_twin as by_twin
from support.languages.grammar_twin import language as twin

LIBRARY = Path(sysconfig.get_path("stdlib"))
CAUSES = Path(__file__).parents[2] / "cases" / "causes.toml"
LONGEST_SPAN = 100  # characters of a random span
MOST_TOKENS = 20  # of a middle that begins and ends at tokens


@cache
def python() -> Language:
    return Language.load("python")


def reference(text: str) -> bool:
    """CPython's verdict on a whole text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # ValueError: a number of too many digits
            return False
    return True


@dataclass(frozen=True)
class Source:
    """A file that CPython accepts.

    Attributes:
        path: Relative to the standard library.
        text: The file as it is: line breaks are not translated.
        tokens: Where each token of one character and more begins and ends; empty if the text has none.
    """

    path: str
    text: str
    tokens: tuple[tuple[int, int], ...]

    @property
    def starts(self) -> list[int]:
        return [start for start, _ in self.tokens]


@dataclass(frozen=True)
class Cut:
    source: Source
    start: int
    end: int

    @property
    def left(self) -> str:
        return self.source.text[: self.start]

    @property
    def middle(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def right(self) -> str:
        return self.source.text[self.end :]

    def __str__(self) -> str:
        return f"{self.source.path} {self.start}:{self.end} {self.middle!r}"


def read(path: Path) -> Source | None:
    """Reads a file; None where it is no UTF-8 or no Python."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None
    return Source(str(path.relative_to(LIBRARY)), text, tuple(_tokens(text))) if reference(text) else None


def _tokens(text: str) -> Iterator[tuple[int, int]]:
    lines = [0]
    for line in text.split("\n"):
        lines.append(lines[-1] + len(line) + 1)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="\n").readline):
            start = lines[token.start[0] - 1] + token.start[1]
            end = lines[token.end[0] - 1] + token.end[1]
            if token.string.strip() and text[start:end] == token.string:
                yield start, end
    except (tokenize.TokenError, IndentationError):
        return


def sources(rng: random.Random, limit: int) -> Iterator[Source]:
    """Files of at most `limit` bytes, in random order, without end."""
    paths = [
        path
        for path in sorted(LIBRARY.glob("**/*.py"))
        if not {"site-packages", "__pycache__"} & set(path.parts) and path.stat().st_size <= limit
    ]
    while True:
        rng.shuffle(paths)
        for path in paths:
            source = read(path)
            if source is not None:
                yield source


def cuts(rng: random.Random, limit: int, per_file: int) -> Iterator[Cut]:
    """Cuts without end: half at token boundaries with part of the first token typed, half random spans."""
    for source in sources(rng, limit):
        for index in range(per_file):
            if index % 2 and source.tokens:
                first = rng.randrange(len(source.tokens))
                last = min(len(source.tokens) - 1, first + rng.randrange(MOST_TOKENS))
                start, end = source.tokens[first]
                yield Cut(source, rng.randrange(start, end), source.tokens[last][1])
            else:
                start = rng.randrange(len(source.text) + 1)
                yield Cut(source, start, min(len(source.text), start + rng.randrange(LONGEST_SPAN + 1)))


# ---------------------------------------------------------------- mutated middles

_BRACKETS = "()[]{}"
_QUOTES = ("'", '"', '"""', "'''", "f'", "b'", "r'", "\\")
_KEYWORDS = (*keyword.kwlist, *keyword.softkwlist, "not in", "is not", "async def", "async for")
_BREAKS = ("\n", "\n\n", "\r\n", "\\\n", "\n    ", "\n        ", "\n# c\n", "\f", ";", "\r")
_BLANKS = (" ", "    ", "\t", "        ", "  ", "\f", "   ")
MUTATIONS = ("bracket", "quote", "colon", "keyword", "newline", "indentation")


def mutated(rng: random.Random, cut: Cut, kind: str) -> str:
    """The cut's middle with one bracket, quote, colon, keyword, newline or indentation changed."""
    middle = cut.middle
    match kind:
        case "bracket":
            return _changed(rng, middle, _BRACKETS, _BRACKETS)
        case "quote":
            return _changed(rng, middle, "'\"", _QUOTES)
        case "colon":
            return _changed(rng, middle, ":", (":", ":=", ";", ",", "::", "=", "->"))
        case "newline":
            return _changed(rng, middle, "\r\n", _BREAKS)
        case "keyword":
            return _changed_keyword(rng, cut)
        case _:
            return _moved_line(rng, cut)


def _changed(rng: random.Random, middle: str, targets: str, replacements: str | tuple[str, ...]) -> str:
    """One of the targets deleted or replaced, or a replacement put in somewhere."""
    places = [index for index, character in enumerate(middle) if character in targets]
    choice = rng.randrange(3)
    if places and choice:
        at = rng.choice(places)
        return middle[:at] + ("" if choice == 1 else rng.choice(replacements)) + middle[at + 1 :]
    at = rng.randrange(len(middle) + 1)
    return middle[:at] + rng.choice(replacements) + middle[at:]


def _changed_keyword(rng: random.Random, cut: Cut) -> str:
    """A keyword deleted, replaced, put before a token, or an operator or name made one."""
    middle = cut.middle
    starts = cut.source.starts
    inside = range(bisect_right(starts, cut.start - 1), bisect_right(starts, cut.end - 1))
    spans = [cut.source.tokens[index] for index in inside if cut.source.tokens[index][1] <= cut.end]
    texts = [(start - cut.start, end - cut.start) for start, end in spans]
    keywords = [(start, end) for start, end in texts if middle[start:end] in _KEYWORDS]
    word = rng.choice(_KEYWORDS)
    if not texts:
        at = rng.randrange(len(middle) + 1)
        return f"{middle[:at]} {word} {middle[at:]}"
    match rng.randrange(4):
        case 0 if keywords:
            start, end = rng.choice(keywords)
            return middle[:start] + middle[end:]
        case 1:
            start, end = rng.choice(texts)
            return f"{middle[:start]}{word} {middle[start:]}"
        case 2 if keywords:
            start, end = rng.choice(keywords)
            return middle[:start] + word + middle[end:]
        case _:
            start, end = rng.choice(texts)
            return middle[:start] + word + middle[end:]


def _moved_line(rng: random.Random, cut: Cut) -> str:
    """Blanks put in or taken out where one of the middle's lines begins (the first one too, if the cursor is there)."""
    middle = cut.middle
    starts = [index + 1 for index, character in enumerate(middle) if character == "\n"]
    if not cut.left.rpartition("\n")[2].strip():
        starts.append(0)
    if not starts:
        at = rng.randrange(len(middle) + 1)
        return middle[:at] + "\n" + rng.choice(_BLANKS) + middle[at:]
    start = rng.choice(starts)
    end = start
    while end < len(middle) and middle[end] in " \t":
        end += 1
    match rng.randrange(3):
        case 0:
            return middle[:start] + rng.choice(_BLANKS) + middle[start:]
        case 1:
            return middle[:start] + middle[start + rng.randint(0, end - start) :]
        case _:
            return middle[:start] + rng.choice(("", "\t", " " * rng.randrange(13))) + middle[end:]


# ---------------------------------------------------------------- disagreements


@cache
def causes() -> dict[str, Any]:
    """The causes of disagreement that are known, by name."""
    table = tomllib.loads(CAUSES.read_text(encoding="utf-8"))
    return {cause["name"]: cause for cause in table["causes"]}


def cause_of(left: str, middle: str, right: str) -> str | None:
    """Return the cause of a difference between the engine and CPython on left + middle + right, or None.

    The plain twin of lexer, layout and parser separates faults of the engine from faults of the grammar. Narrowed to
    the running interpreter's version, it finds syntax that the interpreter does not know.
    """
    text = left + middle + right
    complete = python().open(left, right).check(middle).complete
    if complete == reference(text):
        return None
    if complete != (twin("python").check(text) is None):
        return "engine differs from its twin"
    if _ends_in_joined_crlf(text) and python().open(text + "\n", "").check("").complete == reference(text):
        return "CRLF at the end of the file"
    return by_twin.disagreement(text) or "newer syntax"


def _ends_in_joined_crlf(text: str) -> bool:
    return text.endswith("\\\r\n")


@dataclass(frozen=True)
class Reproduction:
    left: str
    middle: str
    right: str

    def __str__(self) -> str:
        return f"left = {self.left!r}\n  middle = {self.middle!r}\n  right = {self.right!r}"


def shrunk(case: Reproduction, fails: Callable[[Reproduction], bool], steps: int = 400) -> Reproduction:
    """A smaller case that still fails: lines, then characters, taken out of each part while that lasts."""
    assert fails(case)
    for lines in (True, False):
        size = max(len(_pieces(part, lines)) for part in (case.left, case.middle, case.right))
        while size >= 1:
            found = False
            for part in ("left", "right", "middle"):
                at = 0
                while at < len(_pieces(getattr(case, part), lines)) and steps > 0:
                    pieces = _pieces(getattr(case, part), lines)
                    fields = {**case.__dict__, part: "".join(pieces[:at] + pieces[at + size :])}
                    smaller = Reproduction(**fields)
                    steps -= 1
                    if fails(smaller):
                        case, found = smaller, True
                    else:
                        at += size
            if not found or size > 1:
                size //= 2
    return case


def _pieces(text: str, lines: bool) -> list[str]:
    return text.splitlines(keepends=True) if lines else list(text)


def walk(session: Session, middle: str) -> int | None:
    """Feeds the middle character by character; the index of the first one that is refused."""
    state = session.start()
    for index, character in enumerate(middle):
        if not state.is_viable() or state.advance(character) != len(character.encode()):
            return index
    return None if state.is_viable() else len(middle)
