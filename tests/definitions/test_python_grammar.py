"""The Python grammar against CPython's own parser, by way of the plain twin in grammar_twin.py.

The long form (FIM_SERVER_LONG=1) takes the whole standard library and many more mutations and sentences.
"""

from __future__ import annotations

import ast
import os
import random
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.languages.cpython_tests import LIBRARY, read, texts_in_cpythons_own_tests, words
from support.languages.grammar_sentences import Sentences
from support.languages.grammar_twin import language
from support.languages.python_twin import RUNNING, disagreement, reference, running_language

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
CASES = Path(__file__).parents[1] / "cases" / "python_snippets.toml"
TABLE: dict[str, Any] = tomllib.loads(CASES.read_text(encoding="utf-8"))


def sources(pattern: str = "**/*.py") -> list[Path]:
    return sorted(path for path in LIBRARY.glob(pattern) if "site-packages" not in path.parts)


def functions(rng: random.Random, count: int) -> Iterator[str]:
    """Small functions of the standard library."""
    paths = sources("*.py") + sources("[a-s]*/*.py")
    found = 0
    while found < count:
        text = read(rng.choice(paths))
        if text is None or not reference(text):
            continue
        lines = text.splitlines(keepends=True)
        nodes = [
            node
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.stmt) and 1 <= (node.end_lineno or 0) - node.lineno <= 12
        ]
        if not nodes or len(lines) > 5000:
            continue
        node = rng.choice(nodes)
        piece = textwrap.dedent("".join(lines[node.lineno - 1 : node.end_lineno]))
        if reference(piece):
            found += 1
            yield piece


POOL = words(
    "False None True and as assert async await break class continue def del elif else except finally for from global "
    "if import in is lambda nonlocal not or pass raise return try while with yield match case type _ print "
    "+ - * ** / // % @ << >> & | ^ ~ := < > <= >= == != ( ) [ ] { } , : . ; = -> ... += -= *= /= //= %= @= &= |= ^= "
    ">>= <<= **= x y.z f(x) x[0] 0 1.5 2j 'a' b'a' f'{x}' r'\\' \"\"\"a\"\"\" # \\ ` $ ! ?"
)
POOL += ["\n", " ", "\n    ", "\n  ", "\t", "\\\n", "(yield)", "*x", "**x", "x=1", "x for x in y", "x as y", "'", '"']


def mutations(rng: random.Random, text: str) -> Iterator[str]:
    """The text with one of its symbols deleted, replaced, doubled, moved, or one put in, or a line moved sideways."""
    symbols = [symbol for symbol in running_language().lex(text) if symbol.end > symbol.start]
    while True:
        index = rng.randrange(len(symbols))
        start, end = symbols[index].start, symbols[index].end
        match rng.randrange(7):
            case 0:
                yield text[:start] + text[end:]
            case 1:
                yield text[:start] + rng.choice(POOL) + text[end:]
            case 2:
                yield text[:start] + rng.choice(POOL) + " " + text[start:]
            case 3:
                yield text[:end] + " " + rng.choice(POOL) + text[end:]
            case 4 if index + 1 < len(symbols):
                after = symbols[index + 1]
                yield (
                    text[:start]
                    + text[after.start : after.end]
                    + text[end : after.start]
                    + text[start:end]
                    + text[after.end :]
                )
            case 5:
                lines = text.splitlines(keepends=True)
                number = rng.randrange(len(lines))
                line = lines[number]
                lines[number] = line[1:] if line[:1] in " \t" and rng.random() < 0.5 else rng.choice(" \t") + line
                yield "".join(lines)
            case 6:
                at = rng.randrange(len(text))
                yield text[:at] + rng.choice("()[]{}'\"\\:=,.*_0aif \n\t#é") + text[at + rng.randrange(2) :]
            case _:
                yield text[:start] + text[start:end] + " " + text[start:]


def snippets() -> list[tuple[str, dict[str, Any]]]:
    return [(str(group), case) for group, cases in TABLE["snippets"].items() for case in cases]


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def test_every_snippet() -> None:
    wrong = []
    for group, case in snippets():
        refused = language("python").check(case["source"])
        if (refused is None) != case["valid"]:
            wrong.append((group, case, refused))
    assert not wrong


def test_the_table_of_snippets_is_what_cpython_says() -> None:
    wrong = []
    for group, case in snippets():
        if version(case.get("since", "3.11")) <= RUNNING and reference(case["source"]) != case["valid"]:
            wrong.append((group, case))
    assert not wrong


def test_known_differences_are_differences() -> None:
    """Each known difference still is one; one that went away belongs to the snippets."""
    gone = []
    for case in TABLE["known_differences"]:
        accepted = language("python").check(case["source"]) is None
        if accepted == case["valid"]:
            gone.append(case)
        if version(case.get("since", "3.11")) <= RUNNING:
            assert reference(case["source"]) == case["valid"], case
    assert not gone


def test_standard_library() -> None:
    paths = sources()
    if not LONG:
        rng = random.Random(1)
        paths = [path for path in rng.sample(paths, 50) if path.stat().st_size < 30_000]
    checked, wrong = 0, {}
    for path in paths:
        text = read(path)
        if text is None:
            continue
        checked += 1
        if cause := disagreement(text):
            wrong[path.relative_to(LIBRARY).as_posix()] = cause
    print(f"{checked} files, {len(wrong)} disagreements", wrong or "")
    assert not wrong


def test_texts_in_cpythons_own_tests() -> None:
    texts = list(texts_in_cpythons_own_tests())
    if not texts:
        pytest.skip("the interpreter's tests are not installed")
    report(texts if LONG else random.Random(2).sample(texts, 2000))


def report(texts: list[str]) -> None:
    """Compare, say how many were compared and why some differ, and fail at what no known cause explains."""
    causes: Counter[str] = Counter()
    unexplained = []
    valid = 0
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            continue
        cause = disagreement(text)
        valid += reference(text)
        causes[cause or "same verdict"] += 1
        if cause == "unexplained":
            unexplained.append((text, str(running_language().check(text)), reference(text)))
    print(f"{len(texts)} texts, {valid} valid:", dict(causes))
    assert not unexplained, unexplained[:20]


def test_mutations() -> None:
    rng = random.Random(int(os.environ.get("FIM_SERVER_SEED", "3")))
    pieces = list(functions(rng, 2000 if LONG else 40))
    sentences = Sentences(running_language(), rng)
    pieces += [sentences.sentence(rng.choice((10, 30))) for _ in range(2000 if LONG else 40)]
    texts = []
    for piece in pieces:
        mutated = mutations(rng, piece)
        texts += [next(mutated) for _ in range(25 if LONG else 12)]
    report(texts)


def test_errors_show_where_they_are() -> None:
    refused = language("python").check("x = (1,\n  2))\n")
    assert refused is not None
    assert refused.offset == 12
    refused = language("python").check("x = 'a\n")
    assert refused is not None
    assert refused.offset == 4
