"""A language's syntax stands in its two files, and nowhere in the engine or in the package.

Every literal of the sources, Rust's and Python's, is read as each language of the package would read it. A literal of
nothing but keywords, brackets, quotes, comments and operators is a piece of syntax. A literal with another word (a
message, a key, a name) is not.
"""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from fim_server.language.definition import compile as definitions

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path("fim_server")
ENGINE = Path("rust_core")

# What the engine's layers are tested by, which is on languages made for it.
OWN_TESTS = ("tests.rs", "test_languages.rs")

OF_ONE_LANGUAGE = {
    "datasets": "cuts holes into Python files, and runs their tests; fetches packages; compares languages with parsers",
    "language_support": "knows names, scopes and notebooks of single languages: optional code",
    "evaluation": "judges Python files with CPython, all others with the judges of datasets",
}
"""Parts of the package that are about one language by their purpose, each with what that is."""

ALLOWED = {
    ("rust_core/src/planning", "_"): "a character of names in any language, as letters and digits are",
    ("fim_server/server", "_"): "the same",
    ("fim_server/decoding", "_"): "the same",
    ("fim_server/language", "_"): "the same",
    ("fim_server/language", '"'): "around a fixed text where lexemes are listed",
    ("rust_core/py/src", "{:?}"): "a format",
    ("rust_core/src/language", "!"): "the first printable character of ASCII but the blank",
    ("rust_core/src/language", "x"): "the letter that stands for any, where a language names none",
    ("rust_core/src/language", "~"): "the last printable character of ASCII",
    ("rust_core/src/diagnostics", "{}…"): "a format",
    ("rust_core/src/diagnostics", "{} ::= {}"): "a format: a rule of BNF",
    ("rust_core/src/grammar", "{"): "what Lark puts between a template's name and its arguments",
    ("fim_server/cli", "[]"): "around an IPv6 address",
    ("fim_server/cli", "--from"): "an option",
    ("fim_server/cli", "--out"): "an option",
    ("fim_server/cli", "  {}, number {} ({}): "): "a format",
    ("fim_server/cli", "--unsafe"): "an option",
    ("fim_server/cli", ", not open"): "English: of a licence",
    ("fim_server/server", "type"): "a key of an OpenAPI page, and of errors",
    ("fim_server/server", "enum"): "a key of an OpenAPI page",
    ("fim_server/server", "$ref"): "the same",
    ("fim_server/server", "object"): "a field of OpenAI's responses",
    ("fim_server/server", "true"): "a label of a metric",
    ("fim_server/server", "false"): "the same",
    ("fim_server/models", "type"): "a key of a model's configuration",
    ("fim_server/models", "raw"): "a field of Ollama's requests",
    ("fim_server/models", "string*"): "a type of protocol buffers",
    ("fim_server/models", "--target"): "an option of pip",
    ("fim_server/models", "#"): "before the fragment of an address",
    ("fim_server/language", "x"): "the letter that stands for any, where a language names none",
    ("fim_server/language", "\\/.^$*+?()[]{}|-&~#"): "the signs of regular expressions",
    ("fim_server/language", "%import"): "a statement of the notation that grammars are written in",
    ("fim_server/language", "("): "a bracket of that notation",
    ("fim_server/language", "{"): "what that notation puts between a template's name and its arguments",
    ("fim_server/language", "[\ud800-\udfff]"): "a regular expression",
    ("fim_server/recovery", r"(?:<{7}|\|{7}|={7}|>{7})(?: |$)"): "a regular expression: git's marks of a conflict",
    ("fim_server/server", "}"): "LSP's snippets",
    ("fim_server/server", r"\}"): "the same",
    ("fim_server/text", "["): "around a set of characters in a regular expression",
    ("fim_server/text", "]"): "the same",
    ("fim_server/text", "_"): "a character of names in any language, as letters and digits are",
    ("fim_server/tokens", "type"): "a key of a tokenizer's file",
    ("fim_server/tokens", "("): "a sign: before which of a letter, a sign and a digit does a tokenizer cut?",
    ("fim_server/tokens", "_"): "the same",
}
"""Literals that are no syntax of a language, by the folder they stand in, each with what they are instead."""

ENGLISH = frozenset(
    {
        *("auto", "byte", "default", "float", "get", "meta", "never", "new", "number", "of", "open", "out", "package"),
        *("range", "require", "self", "set", "short", "string", "symbol", "target", "unknown"),
    }
)
"""Keywords of some language that, alone in a literal, are names of ours: keys, fields, commands, units."""

TELLING = frozenset("()[]{}#\"'")
"""Signs that hardly stand for anything but syntax where nothing else is in a literal."""


@dataclass(frozen=True)
class Literal:
    path: str
    line: int
    text: str

    @property
    def folder(self) -> str:
        """The part of the engine or of the package that it stands in: `rust_core/src/grammar`, `fim_server/tokens`."""
        parts = self.path.split("/")
        return "/".join(parts[: 3 if parts[0] == ENGINE.name else 2])


@cache
def syntax() -> tuple[frozenset[str], frozenset[str]]:
    """The fixed texts of all languages that come with the package: words, and all others."""
    texts: set[str] = set()
    for name in definitions.names():
        definition = definitions.read_builtin(name)
        lowered = definitions.lower(definition)
        texts.update(lexeme["literal"] for lexeme in lowered["lexemes"] if "literal" in lexeme)
        texts.update(comment["prefix"] for comment in lowered.get("comments", []))
        texts.update(lowered.get("quotes", []))
        texts.update(filter(None, [lowered.get("placeholder"), definition.spec.get("layout", {}).get("block_opener")]))
    words = frozenset(text for text in texts if text.isidentifier())
    return words, frozenset(texts - words)


@cache
def symbols() -> re.Pattern[str]:
    others = syntax()[1]
    longest_first = sorted(others, key=len, reverse=True)
    return re.compile("|".join([r"\w+", *map(re.escape, longest_first), r"\s+", "."]), re.DOTALL)


def is_syntax(text: str, of_bytes: bool) -> bool:
    """Return whether a text has no words but keywords, and some keyword or sign of a language.

    Some signs are common in prose and paths (`,`, `:`, `.`, `=`, `-`). They count only in literals of characters or
    bytes, which texts are compared with (``of_bytes``).
    """
    words, others = syntax()
    if text in ENGLISH:
        return False
    found = [symbol for symbol in symbols().findall(text) if not symbol.isspace()]
    if any(re.match(r"\w", symbol) and symbol not in words and not symbol.isdigit() for symbol in found):
        return False
    signs = others if of_bytes else others & TELLING
    return any(symbol in words or symbol in signs for symbol in found)


# --- reading sources -----------------------------------------------------------------------------------------------

_RUST = re.compile(
    r"""
      (?P<comment> //[^\n]* | /\*.*?\*/ )
    | b?r(?P<hashes>\#*)"(?P<raw>.*?)"(?P=hashes)
    | b?"(?P<text>(?:[^"\\]|\\.)*)"
    | b?'(?P<character>[^'\\\n]|\\(?:x[0-9a-fA-F]{2}|u\{[0-9a-fA-F]+\}|.))'
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}


def unescaped(text: str) -> str:
    return re.sub(r"\\(x[0-9a-fA-F]{2}|.)", lambda found: _unescape(found[1]), text, flags=re.DOTALL)


def _unescape(code: str) -> str:
    return chr(int(code[1:], 16)) if len(code) == 3 else _ESCAPES.get(code, code)


def rust_literals(root: Path, path: Path) -> Iterator[tuple[Literal, bool]]:
    """Literals of a Rust source without its tests, and whether each is one of characters or bytes."""
    source = path.read_text(encoding="utf-8")
    tests = re.search(r"^#\[cfg\(test\)\]\nmod ", source, re.MULTILINE)
    source = source[: tests.start()] if tests else source
    for found in _RUST.finditer(source):
        raw, text, character = found["raw"], found["text"], found["character"]
        if found["comment"] is None:
            content = raw if raw is not None else unescaped(text if text is not None else character)
            literal = Literal(path.relative_to(root).as_posix(), source.count("\n", 0, found.start()) + 1, content)
            yield literal, found[0].startswith("b") or character is not None


def python_literals(root: Path, path: Path) -> Iterator[Literal]:
    """String constants of a Python source, but for docstrings and the words of f-strings."""
    tree = ast.parse(path.read_bytes())
    prose = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    prose |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in prose:
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            yield Literal(path.relative_to(root).as_posix(), node.lineno, text)


def syntax_in(root: Path) -> list[Literal]:
    """Literals of the engine and the package that are syntax of a language."""
    found = []
    for folder in (ENGINE / "src", ENGINE / "py" / "src"):
        sources = (path for path in (root / folder).rglob("*.rs") if path.name not in OWN_TESTS)
        for path in sorted(sources):
            found += [literal for literal, bytes_ in rust_literals(root, path) if is_syntax(literal.text, bytes_)]
    for path in sorted((root / PACKAGE).rglob("*.py")):
        part = path.relative_to(root / PACKAGE).parts[0]
        if part not in OF_ONE_LANGUAGE and part != "languages":
            found += [literal for literal in python_literals(root, path) if is_syntax(literal.text, of_bytes=False)]
    return found


@cache
def found_here() -> list[Literal]:
    return syntax_in(ROOT)


# --- the test ------------------------------------------------------------------------------------------------------


def test_no_syntax_of_a_language_stands_outside_of_its_files() -> None:
    assert [literal for literal in found_here() if (literal.folder, literal.text) not in ALLOWED] == []


def test_nothing_is_allowed_that_is_not_there() -> None:
    assert ALLOWED.keys() <= {(literal.folder, literal.text) for literal in found_here()}
    assert all((ROOT / PACKAGE / part).is_dir() for part in OF_ONE_LANGUAGE)


PLANTED = [
    ("rust_core/src/lib.rs", 'const CLOSERS: [&[u8]; 2] = [b")", b"x)"];\n', [")", "x)"]),
    ("rust_core/src/lib.rs", "fn opens(line: &str) -> bool { line.ends_with(':') }\n", [":"]),
    ("rust_core/src/lib.rs", 'const COMMENT: &str = "x#";\n', ["x#"]),
    ("rust_core/src/lib.rs", "const COMMENT: u8 = b'#';\n", ["#"]),
    ("rust_core/src/lib.rs", 'const OPERATORS: &[u8] = b"%&*+-/<>@^|~!?$`";\n', ["%&*+-/<>@^|~!?$`"]),
    ("rust_core/src/lib.rs", 'const LINE: &str = r#"if x:"#;\n', ["if x:"]),
    ("rust_core/py/src/lib.rs", "const QUOTE: char = '\\'';\n", ["'"]),
    ("fim_server/__init__.py", 'STAND_INS = ("pass", "if 1:", "(")\n', ["pass", "if 1:", "("]),
    ("fim_server/__init__.py", 'CLOSERS = frozenset(")]}\\"\'`>")\n', [")]}\"'`>"]),
    ("fim_server/__init__.py", 'COMMENT = b"#"\n', ["#"]),
    ("fim_server/__init__.py", 'HEADERS = ["match 1:\\n case _:pass"]\n', ["match 1:\n case _:pass"]),
]


@pytest.mark.parametrize(("path", "line", "expected"), PLANTED, ids=[planted[1].strip() for planted in PLANTED])
def test_what_is_planted_is_found(path: str, line: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    shutil.copy(ROOT / path, tmp_path / path)
    before = syntax_in(tmp_path)
    with (tmp_path / path).open("r+", encoding="utf-8") as file:
        text = file.read()
        file.seek(0)
        file.write(line + text if path.endswith(".rs") else text + line)
    found = [literal.text for literal in syntax_in(tmp_path)]
    for literal in before:
        found.remove(literal.text)
    assert found == expected


HARMLESS = [
    ("rust_core/src/session.rs", "// A comment may say `#` and \"if x:\" and '('.\n"),
    ("rust_core/src/session.rs", "const MESSAGE: &str = \"no (real) text: {name}\";\nstruct Lifetime<'a>(&'a str);\n"),
    (
        "fim_server/recovery/texts.py",
        'def f() -> str:\n    """Not `if x:` nor "(" nor #."""\n    return ", ".join(["a-b", "/"])\n',
    ),
]


@pytest.mark.parametrize(("path", "lines"), HARMLESS)
def test_comments_docstrings_and_prose_are_none(path: str, lines: str, tmp_path: Path) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(lines, encoding="utf-8")
    assert syntax_in(tmp_path) == []
