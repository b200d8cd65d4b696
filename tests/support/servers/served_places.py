"""Places in real files at which an editor asks for items: a line is cut, and what an editor adds stands there.

Each place keeps the true rest of what was cut. With it the file is a program, so that an exact item exists.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.engine import json_documents
from fim_server.datasets.judging.cutting import Looks, spans, window
from fim_server.datasets.judging.judge import Judge
from fim_server.datasets.sources.npm import LANGUAGES as NPM
from fim_server.language import Language
from fim_server.language.definition.compile import read_builtin

ROOT = Path(__file__).resolve().parents[3]
EXACT_LANGUAGES = ("python", "go", "java", "rust", "javascript", "typescript", "jsx", "tsx", "json")
REGIONS = "html"
"""The language whose scripts and styles are in other languages; `test_served_regions` judges them."""
BALANCED_LANGUAGES = tuple(
    name for name in Language.names() if read_builtin(name).guarantee == "balanced" and name != REGIONS
)
LANGUAGES = EXACT_LANGUAGES + BALANCED_LANGUAGES
SUFFIXES = {name: next(one for one in read_builtin(name).suffixes if one.startswith(".")) for name in LANGUAGES}
SAMPLES = "tests/cases/files/*"
"""Files of this repository in languages of token trees, one of each."""
OWN = {
    "python": "fim_server/**/*.py",
    "go": "fim_server/datasets/judging/programs/go/*.go",
    "java": "fim_server/datasets/judging/programs/java/*.java",
    "rust": "rust_core/**/src/**/*.rs",
    "javascript": "fim_server/datasets/judging/programs/javascript/*.mjs",
    "typescript": "vscode-extension/src/**/*.ts",
    "jsx": "tests/cases/components/*.jsx",
    "tsx": "tests/cases/components/*.tsx",
    "json": "docs/editors/**/*.json",
}
"""Files of this repository."""
LARGEST_FILE = 60_000
SIZES = (200, 400, 800, 1600)
"""Most characters of a text."""
INDENTATIONS = ("\t", "  ", "    ", "        ")
LEXEMES_PER_CUT = 6
KINDS = ("boundary", "inside", "kept", "tail", "start", "blank", "body", "prose", "past end")


@dataclass(frozen=True)
class Place:
    """A cursor, and what stood there.

    Attributes:
        language: Its name.
        kind: How the line was cut, one of :data:`KINDS`.
        left: The text before the cursor.
        closers: Closing brackets and quotes that the editor has added right of it.
        rest: The true rest, for which ``closers`` stand.
        right: The text after that.
        column: Columns beyond the line's end at which the cursor is said to be.
        broken: Whether the file is broken elsewhere.
        command: A line of IPython's with which a notebook's cell begins; the parser reads `pass` for it.
    """

    language: str
    kind: str
    left: str
    closers: str
    rest: str
    right: str
    column: int = 0
    broken: bool = False
    command: str = ""

    def program(self, text: str) -> str:
        """A text of this place as the language's parser reads it."""
        return "pass\n" + text.removeprefix(self.command) if self.command else text

    @property
    def text(self) -> str:
        """The file as the editor has it."""
        return self.left + self.closers + self.right

    @property
    def truth(self) -> str:
        """The file with the true rest."""
        return self.left + self.rest + self.right

    @property
    def indentation(self) -> str:
        """The blanks that stand before the cursor on its line, where nothing else does."""
        line = self.left[self.left.rfind("\n") + 1 :]
        return line if not line.strip() else ""


# --- files ---------------------------------------------------------------------------------------------------------


def files(language: str, draw: random.Random, own: bool) -> Iterator[str]:
    """Texts of real files without end; ``own``: of this repository alone, which are the same everywhere."""
    paths = [path for path in sorted(ROOT.glob(OWN.get(language, SAMPLES))) if "target" not in path.parts]
    if language in BALANCED_LANGUAGES:
        paths = [path for path in paths if path.name.endswith(SUFFIXES[language])]
    archive = None if own or language != "java" else java_sources()
    if not own:
        paths += [path for folder in folders(language) for path in sorted(folder.rglob(f"*{SUFFIXES[language]}"))]
    names = [] if archive is None else sorted(name for name in archive.namelist() if name.endswith(".java"))
    while True:
        if language == "json" and draw.random() < 0.7:
            yield json_documents.document(draw.randrange(1 << 30))
        elif names and draw.random() < 0.8:
            assert archive is not None
            yield archive.read(draw.choice(names)).decode("utf-8", "replace")
        else:
            path = draw.choice(paths)
            if path.is_file() and path.stat().st_size <= LARGEST_FILE:
                yield path.read_bytes().decode("utf-8", "replace")


def folders(language: str) -> list[Path]:
    """Return the folders in which a language's tools keep sources on this machine.

    Those of npm's languages, and of languages of token trees, are below the folder that FIM_SERVER_PACKAGES names.
    """
    if (language in NPM or language in BALANCED_LANGUAGES) and (packages := os.environ.get("FIM_SERVER_PACKAGES")):
        return [Path(packages)]
    if language == "python":
        return [Path(re.__file__).parents[1]]
    if language == "go":
        found = subprocess.run(["go", "env", "GOROOT"], capture_output=True, text=True, check=True)
        return [Path(found.stdout.strip()) / "src" / name for name in ("strings", "net", "go", "encoding", "os")]
    if language == "rust":
        crates = Path.home() / ".cargo" / "registry" / "src"
        return [crates] if crates.is_dir() else []
    return []


def java_sources() -> zipfile.ZipFile | None:
    """The class library's sources, where the tools have them."""
    found = subprocess.run(
        ["java", "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=False
    )
    home = re.search(r"java\.home = (.*)", found.stderr)
    path = Path(home[1].strip()) / "lib" / "src.zip" if home else Path()
    return zipfile.ZipFile(path) if path.is_file() else None


class Texts:
    """Small programs of a language that its judge takes, cut from real files."""

    def __init__(self, language: str, looks: Looks, judge: Judge, seed: int, count: int, own: bool) -> None:
        draw = random.Random(f"texts {language} {seed}")
        self.found: list[str] = []
        for text in files(language, draw, own):
            plain = text.replace("\r\n", "\n").replace("\r", "\n")
            small = window(draw, looks, judge, plain, draw.choice(SIZES)) if "\0" not in plain else None
            if small and small.strip() and len(small) <= 2 * SIZES[-1]:
                self.found.append(reindented(draw, small, judge))
            if len(self.found) == count:
                break


def reindented(draw: random.Random, text: str, judge: Judge) -> str:
    """A text with another indentation, where the judge still takes it."""
    widths = [len(found[1]) for found in re.finditer(r"(?m)^( +)\S", text)]
    step = min(widths, default=0)
    unit = draw.choice(INDENTATIONS)
    if draw.random() < 0.4 or (not step and "\t" not in text):
        return text

    def changed(found: re.Match[str]) -> str:
        blanks = found[0]
        if set(blanks) == {"\t"}:
            return unit * len(blanks)
        return unit * (len(blanks) // step) if step and set(blanks) == {" "} and not len(blanks) % step else blanks

    other = re.sub(r"(?m)^[ \t]+(?=\S)", changed, text)
    return other if judge.verdict(other) is True else text


# --- cuts ----------------------------------------------------------------------------------------------------------


class Cutter:
    """Cuts texts of a language as an editor would leave them."""

    def __init__(self, looks: Looks) -> None:
        self.looks = looks
        self.closing = dict(looks.brackets)

    def place(self, draw: random.Random, language: str, text: str, kind: str) -> Place | None:
        """A place of a kind; None where the text has none."""
        lines = list(line_spans(text))
        full = [span for span in lines if text[span[0] : span[1]].strip()]
        if not full:
            return None
        start, end = draw.choice(full)
        first = end - len(text[start:end].lstrip())
        if kind == "start":
            return Place(language, kind, text[:first], "", text[first:end], text[end:])
        if kind == "blank":
            below = next((text[a:b] for a, b in full if a > end), "")
            blanks = max(
                text[start:first], below[: len(below) - len(below.lstrip())], key=len
            )  # a block's, if one begins
            return Place(language, kind, f"{text[:end]}\n{blanks}", "", "", text[end:])
        if kind == "past end":
            return Place(language, kind, text[:end], "", "", text[end:], column=draw.randint(1, 9))
        if kind == "body":
            return self._body(draw, language, text, full)
        if kind == "prose":
            found = [*spans(self.looks, text, "string"), *spans(self.looks, text, "comment")]
            at = draw.randint(*draw.choice(found)) if found else None
            return None if at is None else self._rest(draw, language, kind, text, at)
        inside = [span for span in spans(self.looks, text) if start <= span[0] and span[1] <= end]
        if not inside:
            return None
        token = draw.choice(inside)
        at = draw.choice(token)
        if kind == "inside" or (kind in ("kept", "tail") and draw.random() < 0.3):
            at = draw.randint(*token)
        if kind == "kept":
            return Place(language, kind, text[:at], "", "", text[at:])
        if kind == "tail":
            ends = [span[1] for span in inside if span[1] > at][:LEXEMES_PER_CUT]
            cut = draw.choice(ends) if ends else at
            return Place(language, kind, text[:at], "", text[at:cut], text[cut:])
        if draw.random() < 0.25:  # the blank is typed as well
            at += len(text[at:end]) - len(text[at:end].lstrip(" "))
        return self._rest(draw, language, kind, text, at)

    def _rest(self, draw: random.Random, language: str, kind: str, text: str, at: int) -> Place:
        """The rest of the line deleted, what was opened on it closed as an editor does."""
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        closers = self.closers(text[text.rfind("\n", 0, at) + 1 : at]) if draw.random() < 0.8 else ""
        if closers and text[at - 1 : at] == " " and draw.random() < 0.5:
            closers = " " + closers  # the cursor stands between two blanks
        return Place(language, kind, text[:at], closers, text[at:end], text[end:])

    def closers(self, line: str) -> str:
        """The closing brackets and quotes that an editor has added while a line was typed."""
        expected: list[str] = []
        quote = ""
        at = 0
        while at < len(line):
            character = line[at]
            if quote:
                at += character == "\\"
                quote = "" if character == quote else quote
            elif character in self.looks.quotes and len(character) == 1:
                quote = character
            elif character in self.closing:
                expected.append(self.closing[character])
            elif expected and character == expected[-1]:
                expected.pop()
            at += 1
        return quote + "".join(reversed(expected))

    def _body(self, draw: random.Random, language: str, text: str, full: list[tuple[int, int]]) -> Place | None:
        """The lines of a block deleted: the cursor stands where the first began, the closing bracket below."""
        blocks = []
        for index, (start, end) in enumerate(full[:-2]):
            line = text[start:end]
            wide = len(line) - len(line.lstrip())
            inner = list(_deeper(text, full[index + 1 :], wide))
            if inner and line.rstrip()[-1:] in self.closing:
                blocks.append((inner[0], inner[-1]))
        if not blocks:
            return None
        (begin, first_end), (_, last_end) = draw.choice(blocks)
        first = first_end - len(text[begin:first_end].lstrip())
        return Place(language, "body", text[:first], "", text[first:last_end], text[last_end:])


def _deeper(text: str, lines: list[tuple[int, int]], wide: int) -> Iterator[tuple[int, int]]:
    """The lines up to the first that is not indented by more."""
    for start, end in lines:
        line = text[start:end]
        if len(line) - len(line.lstrip()) <= wide:
            return
        yield start, end


def line_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the beginning and the end of each line."""
    start = 0
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1


def broken(draw: random.Random, place: Place, cutter: Cutter) -> Place:
    """A place in a file that another line breaks."""
    lines = place.right.split("\n")
    at = [number for number, line in enumerate(lines) if number and set(line) & set(cutter.closing)]
    if not at:
        return place
    number = draw.choice(at)
    line = lines[number]
    where = draw.choice([index for index, character in enumerate(line) if character in cutter.closing])
    lines[number] = line[:where] + line[where + 1 :]
    return replace(place, right="\n".join(lines), broken=True)
