"""Linter of prose in docstrings and comments: ``python -m support.prose [PATH...]``.

The rules are CONTRIBUTING.md's. Each finding is ``FILE:LINE: RULE: EXCERPT``; the exit status is 1 if there is one.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve()
while not (ROOT / "pyproject.toml").is_file():
    ROOT = ROOT.parent

BEGINNINGS = re.compile(
    r"(What|Where|Which|Why|Who|Whose|When|Of|That|How|Whether|From where|As|The same|Nothing but|All that)\b"
)
"""Words with which no docstring begins: a docstring begins with an imperative or a noun phrase."""
PERSONS = re.compile(r"\b(some|no|any)body\b", re.IGNORECASE)
MOST_WORDS = 30
"""Most words of a sentence in a docstring."""

SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]`]*\s+|\n\s*\n|\n\s*(?:[-*|>]|\d+\.)\s|\n\s+(?=\w+:)")
CODE = re.compile(r"``[^`]*``|`[^`\n]*`|https?://\S+")
WORD = re.compile(r"\w[\w'’./-]*")
FOLDERS = ("benchmarks", "docs", "fim_server", "rust_core", "tests", "training", "vscode-extension")
LEFT_OUT = ("tests/data/", "tests/cases/", "vscode-extension/e2e/situations/", "rust_core/benches/data/")


@dataclass(frozen=True)
class Comment:
    """A docstring or doc comment, and the line that it begins in."""

    path: Path
    line: int
    text: str


def docstrings(path: Path) -> Iterator[Comment]:
    """Yield docstrings of modules, classes and functions, and strings that stand below a constant or a field."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            for statement in node.body:
                match statement:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        yield Comment(path, statement.lineno, text)


def doc_comments(path: Path) -> Iterator[Comment]:
    """Yield the ``///`` and ``//!`` comments of a Rust file, and the ``/** */`` comments of a TypeScript file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".rs":
        for found in re.finditer(r"(?:^[ \t]*//[/!](?!/).*\n?)+", text, re.MULTILINE):
            lines = [re.sub(r"^\s*//[/!] ?", "", line) for line in found[0].splitlines()]
            yield Comment(path, text.count("\n", 0, found.start()) + 1, "\n".join(lines))
    else:
        for found in re.finditer(r"/\*\*(.*?)\*/", text, re.DOTALL):
            lines = [re.sub(r"^\s*\* ?", "", line) for line in found[1].splitlines()]
            yield Comment(path, text.count("\n", 0, found.start()) + 1, "\n".join(lines))


def line_comments(path: Path) -> Iterator[Comment]:
    """Yield the comments of a Python, Rust or TypeScript file that document no item."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield Comment(path, token.start[0], token.string)
    else:
        for found in re.finditer(r"(?:^|\s)//(?![/!]).*", text):
            yield Comment(path, text.count("\n", 0, found.start()) + 1, found[0])


def comments(path: Path) -> Iterator[Comment]:
    """Yield all docstrings or doc comments of a source file."""
    try:
        yield from docstrings(path) if path.suffix == ".py" else doc_comments(path)
    except SyntaxError:
        return


def without_code(text: str) -> str:
    """Return a text without its blocks of code, with one word for each inline code span."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"(?:^|(?<=\n\n))(?: {4,}|\t).*(?:\n(?: {4,}|\t).*)*", "", text) if "::" in text else text
    return CODE.sub("code", text)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, its list items and its paragraphs."""
    yield from (part for part in SENTENCE_END.split(without_code(text)) if part.strip())


def findings(comment: Comment) -> Iterator[str]:
    """Yield one line for each rule that a comment breaks."""
    place = f"{comment.path.relative_to(ROOT)}:{comment.line}"
    start = comment.text.strip()
    if BEGINNINGS.match(start):
        yield f"{place}: beginning: {start[:70].splitlines()[0]}"
    if (person := PERSONS.search(without_code(comment.text))) is not None:
        yield f"{place}: {person[0].lower()}: {comment.text[max(0, person.start() - 30) : person.end() + 30]!r}"
    for sentence in sentences(comment.text):
        if len(WORD.findall(sentence)) > MOST_WORDS and "|" not in sentence:
            yield f"{place}: {len(WORD.findall(sentence))} words: {' '.join(sentence.split())[:90]}"


def persons_in_line_comments(path: Path) -> Iterator[str]:
    """Yield one line for each comment with a nameless person."""
    for comment in line_comments(path):
        if PERSONS.search(without_code(comment.text)) is not None:
            yield f"{path.relative_to(ROOT)}:{comment.line}: nameless person: {comment.text.strip()[:90]}"


def findings_in(path: Path) -> Iterator[str]:
    """Yield one line for each rule that a comment of a file breaks."""
    for comment in comments(path):
        yield from findings(comment)
    yield from persons_in_line_comments(path)


def sources(arguments: list[str]) -> list[Path]:
    """Return the tracked source files below the paths that are given, or of the whole repository."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", *(arguments or FOLDERS)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    kinds = (".py", ".rs", ".ts", ".mjs")
    return [ROOT / name for name in listed if name.endswith(kinds) and not name.startswith(LEFT_OUT)]


def main(arguments: list[str]) -> int:
    """Print all findings, and return the exit status: 1 with findings, 2 for paths outside the repository."""
    outside = [name for name in arguments if not (ROOT / name).resolve().is_relative_to(ROOT)]
    if outside:
        print(f"{outside[0]}: not in the repository", file=sys.stderr)
        return 2
    found = [line for path in sources(arguments) if path.is_file() for line in findings_in(path)]
    print("\n".join(found) if found else "no findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
