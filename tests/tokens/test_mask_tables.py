"""Masks by the token table, and cached masks, are those of the plain walk over the vocabulary.

`fill_mask` looks a state up among the known masks, or walks the token table with the parser. `fill_mask_plain` tries
every token byte by byte and keeps nothing. The two are compared where tables could go wrong: vocabularies of everything
that lexemes consist of, random languages, states at every limit and inside every construct.

The long form (FIM_SERVER_LONG=1) takes more of everything, and the large vocabulary that FIM_SERVER_TOKENIZER names;
FIM_SERVER_SEED draws others. Each test prints its figures.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fim_server import Language, Matcher, Session, Vocabulary, _core
from fim_server.errors import SearchLimitError
from fim_server.tokens import masks
from support.engine.corpus import cuts, python
from support.engine.odd_files import posix, put, worst
from support.languages.definitions import compiled_or_none
from support.languages.json_texts import NUMBERS, PIECES, POOL
from support.languages.json_texts import document as json_document
from support.languages.moded_language import GRAMMAR, SPEC
from support.languages.moded_language import load as load_small
from support.languages.random_vocabularies import (
    BYTES,
    LONG,
    PARTS,
    PYTHON_FRAGMENTS,
    Words,
    bits,
    difference,
    filled,
    random_vocabulary,
    seeded,
    vocabulary_of,
)
from support.languages.toys import random_toy

EMBEDDED = Path(__file__).parents[2] / "fim_server" / "models" / "embedded" / "tokenizer.json"


# ---------------------------------------------------------------- languages and vocabularies


@dataclass(frozen=True)
class Subject:
    """A language as the engine has it: random ones have no files."""

    name: str
    core: _core.Language

    def open(self, left: str, right: str) -> Session:
        return Session(self.core.open(left, right))


@cache
def the_python() -> Subject:
    return Subject("python", python().core)


@cache
def the_json() -> Subject:
    return Subject("json", Language.load("json").core)


@cache
def the_modes(folder: Path) -> Subject:
    return Subject("modes", load_small(folder, GRAMMAR, SPEC).core)


def file_vocabulary(path: Path, folder: Path | None = None) -> Vocabulary:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIM_SERVER_CACHE", "" if folder is None else str(folder))
        return Vocabulary.from_file(path)


@cache
def embedded() -> Vocabulary:
    return file_vocabulary(EMBEDDED)


@cache
def ids_of(vocabulary: Vocabulary) -> dict[bytes, int]:
    return {vocabulary.token_bytes(token): token for token in range(vocabulary.size)}


JSON_FRAGMENTS: list[str | bytes] = [
    *PIECES, *NUMBERS, *POOL, *POOL, "{", "}", "[", "]", ",", ":", '"', '":', '",', '","', '":"', '"},{"',
    "]]", "[[", "}}",
    "[" * 100, "]" * 100, '{"a":' * 40, "}" * 90, " " * 300, "1" * 300, '"' + "a" * 300, "[1,2,3]",
    '{"a":[{"b":null}]}', ", ", *PARTS,
]  # fmt: skip


# ---------------------------------------------------------------- the comparison


def compare(matcher: Matcher, vocabulary: Vocabulary, where: object) -> Words:
    """The mask of a state, which is the same by the table, from what is known and by the plain walk."""
    words = filled(matcher.fill_mask, vocabulary)
    plain = filled(matcher.fill_mask_plain, vocabulary)
    again = filled(matcher.fill_mask, vocabulary)
    if (words != plain).any():
        pytest.fail(f"{where}: {difference(words, plain, vocabulary)}")
    if (again != plain).any():
        pytest.fail(f"{where}: another mask the second time: {difference(again, plain, vocabulary)}")
    return words


def commit_text(matcher: Matcher, vocabulary: Vocabulary, text: bytes) -> None:
    for byte in text:
        matcher.commit(ids_of(vocabulary)[bytes([byte])])


def chosen(rng: random.Random, allowed: NDArray[np.bool_], vocabulary: Vocabulary) -> int | None:
    """An allowed token, more often than not one of several bytes."""
    tokens = np.flatnonzero(allowed)
    tokens = tokens[~np.isin(tokens, vocabulary.end_token_ids)]
    if not len(tokens):
        return None
    drawn = [int(tokens[rng.randrange(len(tokens))]) for _ in range(3)]
    return max(drawn, key=lambda token: len(vocabulary.token_bytes(token))) if rng.random() < 0.6 else drawn[0]


def walk(
    rng: random.Random, session: Session, vocabulary: Vocabulary, middle: bytes, steps: int, where: object
) -> tuple[bytes, Counter[str]]:
    """Random allowed tokens after a middle, some of them taken back again; every mask on the way is compared."""
    counts: Counter[str] = Counter()
    matcher = session.matcher(vocabulary)
    commit_text(matcher, vocabulary, middle)
    known = [compare(matcher, vocabulary, (where, middle))]
    walked: list[int] = []

    def text() -> bytes:
        return middle + b"".join(vocabulary.token_bytes(token) for token in walked)

    for _ in range(steps):
        token = chosen(rng, bits(known[-1], vocabulary), vocabulary)
        if token is None:
            counts["ends"] += 1
            break
        matcher.commit(token)
        walked.append(token)
        known.append(compare(matcher, vocabulary, (where, text())))
        counts["states"] += 1
        counts["allowed"] += int(bits(known[-1], vocabulary).sum())
        if rng.random() < 0.2:
            back = rng.randint(1, len(walked))
            matcher.rollback(back)
            del walked[len(walked) - back :], known[len(known) - back :]
            again = filled(matcher.fill_mask, vocabulary)
            assert (again == known[-1]).all(), (where, text(), "after a rollback")
    if vocabulary.end_token_ids and matcher.is_complete():
        matcher.commit(rng.choice(vocabulary.end_token_ids))
        assert not compare(matcher, vocabulary, (where, text(), "ended")).any()
        assert matcher.forced() == b""
        matcher.rollback(1)
        assert (filled(matcher.fill_mask, vocabulary) == known[-1]).all(), (where, text())
        counts["complete"] += 1
    counts["loose"] += session._core.is_loose()
    counts["tight"] += not session._core.is_loose()
    return text(), counts


def check_twin(subject: Subject, left: str, right: str, vocabulary: Vocabulary, middle: bytes) -> None:
    """A session in which R has no say answers as one that asks R at every step."""
    session, tight = subject.open(left, right), subject.open(left, right)
    tight._core.tighten()
    assert not tight._core.is_loose()
    where = (subject.name, left[-300:], middle, right[:300])
    matchers = [each.matcher(vocabulary) for each in (session, tight)]
    for matcher in matchers:
        commit_text(matcher, vocabulary, middle)
    one, other = (compare(matcher, vocabulary, (where, index)) for index, matcher in enumerate(matchers))
    assert (one == other).all(), (where, "loose and tight", difference(one, other, vocabulary))
    # What bytes may come says more than a mask does, and so do texts of one more than can be.
    text = middle.decode("utf-8", "ignore")
    for more in ("", ")", "\n", "x", "'", "}", "\n  x", " $"):
        assert session.check(text + more) == tight.check(text + more), (where, more)


def completed(session: Session, middle: bytes) -> bytes | None:
    """A shortest text that completes a middle, in bytes; None where the search gives up."""
    state = session.start()
    assert state.advance(middle) == len(middle)
    try:
        return state._core.shortest_completion()
    except SearchLimitError:
        return None


def explore(
    rng: random.Random, subject: Subject, vocabulary: Vocabulary, left: str, right: str, steps: int, twin: bool = True
) -> Counter[str]:
    """Walks from a place; then again from another place in the text that came of it, with what is right of it as R."""
    session = subject.open(left, right)
    where = (subject.name, left[-300:], right[:300])
    if session.guarantee == "none":
        assert not compare(session.matcher(vocabulary), vocabulary, where).any()
        assert session.matcher(vocabulary).forced() == b""
        return Counter({"none": 1})
    middle, counts = walk(rng, session, vocabulary, b"", steps, where)
    if twin:
        check_twin(subject, left, right, vocabulary, middle)
    rest = completed(session, middle) if steps else None
    if rest is None:
        return counts
    whole = left + (middle + rest).decode() + right
    indentations = [line[: len(line) - len(line.lstrip())] for line in whole.split("\n")]
    if any(len(blanks) > (20 if "\t" in blanks else 200) for blanks in indentations):
        return counts  # right of the cursor, columns take long and have a lower limit
    if not subject.open("", "").check(whole).complete:
        counts["beyond a limit"] += 1  # blocks of R are not counted with those around the cursor
        return counts
    start = rng.randint(max(0, len(left) - 8), len(whole) - len(right))
    end = rng.randint(start, min(len(whole), start + 25))
    again = subject.open(whole[:start], whole[end:])
    assert again.guarantee == "exact", (subject.name, left, middle, rest, right, start, end)
    assert again.check(whole[start:end]).complete, (subject.name, left, middle, rest, right, start, end)
    cut = whole[start : rng.randint(start, end)].encode()
    middle, more = walk(
        rng, again, vocabulary, cut, steps // 2, (subject.name, whole[:start][-300:], whole[end:][:300])
    )
    if twin:
        check_twin(subject, whole[:start], whole[end:], vocabulary, cut)
    return counts + more


# ---------------------------------------------------------------- places


def f_string_places() -> list[tuple[str, str]]:
    """Inside every mode of every kind of formatted string, nested ones among them."""
    insides = [
        "", "a", "a{{", "{", "{x", "{x ", "{x!", "{x!r", "{x!r:", "{x:", "{x:>", "{x:>{", "{x:>{w", "{x:>{w}",
        "{x:{{", "{x}}}", "{x:%Y-{m}-", "{lambda", "{(lambda x: ", "{x=", "{x = !r:", "{x:{y:{", "{x if y else",
        "{[a for a in", "{{{", "\\N{", "\\", "{'", "{f'", '{f"{', "{x!r:{f'{y:", "{x}", "{x} {", "{x, ", "{*",
        "{yield", "{x:=", "{x==", "{x!=", "}}", "{x:}}",
    ]  # fmt: skip
    found = []
    for prefix, quote in product(("f", "rf", "F"), ("'", '"', "'''", '"""')):
        for inside in insides:
            more = ["{x\n", "a\n", "{x:\n", "{x:a\n{", "\n{{"] if len(quote) == 3 else ["\\\n", "{x\n"]
            for text in (inside, *(more if inside == "" else [])):
                found += [
                    (f"x = {prefix}{quote}{text}", end) for end in ("", f"{quote}\n", f"}}{quote}\n", f"}}}}{quote}\n")
                ]
    return found


NESTED = [
    "", "\n", "\f", " ", "    ", "\t", "if x:\n", "if x:\n    ", "if x:\n\t", "if x:\n \t", "if x:\n        a\n\t",
    "if x:\n\ta\n", "if x:\n    a\n  ", "if x:\n    if y:\n        a\n    # c", "if x:\n    a\n# c",
    "if x:\n    a\\\n", "if x:\n  \\\n", "\\\n", "  \\\n", "if x:\n  \\\n  ", "if x:\n\t\\\n", "x = 1 \\\n",
    "x = 1\\", "if x:\n   \\", "\\", "x = (\n", "x = [\n  # c", "x = [\n  # c\n", "x = {a: 'b', ", "def f(",
    'class A:\n    "', 'class A:\n    """', "def f():\n    '''doc", "x = rb", "x = f", "x = r", "x = Rb'", 'x = ""',
    "x = ''", "x = '''", 'x = """a"', "x = b'\\", "x = '\\x4", "x = '\\", "'", '"""', "'a' ", "f", "rb", "x = 1",
    "x = 1.", "x = 1e", "x = 1_", "x = 0x", "x = 0", "x = 1.e+", "x.", "x..", "x = .", "from .", "from ..",
    "from ...", "from . import (", "x -", "x :", "x = y !", "async", "async ", "await ", "match", "match ",
    "match x:\n", "match x:\n    case", "match x:\n    case y", "type", "type X", "type X = ", "print(f'", "@",
    "@a\n", "x = lambda: (yield", "x = y if", "for x in", "try:\n    a\n", "try:\n    a\nexcept", "with (a as b, ",
    "*a, b", "x: int", "del (", "é", "x = 'é", "x # é", "# é", "global a", "x;", "x; ", "if x: a", "if x: a;",
    "if x:\n    a\nelse", "x = 1if", "x = 1or", "x = 0xfor", "not", "not ", "x is", "x is ", "x not ",
    "x = (a\n  \\\n", "x = [a,\n\n# c\n", "if x: # c\n  # d\n", "if x:\n\n    \n", "def f(a, *, b=", "class A(",
    "x = {**", "[x async", "if x:\n  if y:\n    if z:\n      a\n ", "if x:\n  if y:\n    a\n  else:\n    b\n   ",
    "while x:\n    a\n\f", "x\r", "x\r\n", "if x:\r",
]  # fmt: skip
RIGHTS = [
    "", "\n", "\n\n", "x\n", "    x\n", "  x\n", "\tx\n", ")\n", "]\n", "}\n", "'\n", '"\n', "'''\n", '"""\n', " y\n",
    "0\n", " # c\n", "\n    y\n", "\n    y\nz\n", "    y\n  z\n", "\n\ty\n", ":\n    y\n", "else:\n    z\n", "= 1\n",
    "\\\n y\n", "# c\n", ")\n]\n", "'''\n)\n", "}'\n", '}"""\n', "if y:\n    z\n", "\n        y\n    z\n  w\n",
    ";y\n", "\r\n", "n\n", "f'{x}'\n", ".y\n", ",\n)\n", "=1)\n",
]  # fmt: skip


BROKEN = [
    (")", ""),
    ("a b", "\n"),
    ("", "\n?\n"),
    ("if a:\n    b\n  c\n", ""),
    ("x = f'{", "}}}'\n?"),
    ("x = '", "\n)$\n"),
]


def limit_places() -> list[tuple[str, str]]:
    """Return contexts with brackets, blocks or columns at their limit, or next to it."""
    found = []
    for count in (197, 198, 199, 200):
        for opening, closing in (("(", ")"), ("[", "]"), ("(a, {", "})"), ("f(", ")")):
            brackets = count // (opening.count("{") + 1)
            inside = "x = " + opening * brackets
            for tail in ("", "x", "f'", "f'{", "f'{x:", "f'a{x", "1, ", "lambda ", "\n"):
                found += [(inside + tail, "")]
            found += [(inside, closing * brackets + "\n"), (inside + "x", closing * (brackets // 2) + "\n")]
            found.append((inside + "f'{x", "}'" + closing * brackets + "\n"))
            found.append((inside + "f'", "}'" + closing * brackets + "\n"))
    for count in (96, 97, 98, 99):
        blocks = "".join(" " * depth + "if x:\n" for depth in range(count))
        for tail in (
            "",
            " " * count,
            " " * (count - 1),
            " " * count + "if y:",
            " " * count + "y\n",
            " " * count + "if y:\n",
        ):
            for right in ("", "\n", "z\n", " " * count + "z\n", " " * (count - 3) + "z\nw\n"):
                found.append((blocks + tail, right))
        found.append((blocks + " " * count + "class A:", " " * (count + 3) + "z\n"))
        found.append((blocks + " " * count + "match x", "\n"))
        found.append((blocks + " " * count + "x = (f'{", "}')\n"))
    for blanks in (
        " " * 7_000,
        " " * 9_990,
        " " * 10_000,
        "\t" * 1_249,
        "\t" * 1_250,
        " " * 9_000 + "\t",
        "\t" * 1_249 + "\f",
    ):
        found += [(f"if x:\n{blanks}", ""), (f"if x:\n{blanks}\\\n", ""), (f"if x:\n{blanks}x\n", "")]
    return found


def real_places(rng: random.Random, count: int) -> Iterator[tuple[str, str]]:
    for index, cut in enumerate(islice(cuts(rng, 8_000, 3), count)):
        yield cut.left, ("" if index % 3 == 0 else cut.right)


def python_places(rng: random.Random, count: int) -> list[tuple[str, str]]:
    """A sample of everything, more of what is rare."""
    nested = [
        (left, rng.choice(RIGHTS) if rng.random() < 0.7 else "") for left in rng.sample(NESTED, min(count, len(NESTED)))
    ]
    strings, limits = f_string_places(), limit_places()
    found = nested + rng.sample(strings, min(count, len(strings))) + rng.sample(limits, min(count // 3, len(limits)))
    found += real_places(rng, count // 3)
    found += rng.sample(BROKEN, 2)
    rng.shuffle(found)
    return found


def exact_places(subject: Subject, places: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [place for place in places if subject.open(*place).guarantee == "exact"]


# ---------------------------------------------------------------- vocabularies against the plain walk


@pytest.mark.parametrize("number", range(24 if LONG else 3))
def test_python_with_random_vocabularies(number: int) -> None:
    rng = seeded(f"python {number}")
    counts: Counter[str] = Counter()
    vocabulary = random_vocabulary(rng, PYTHON_FRAGMENTS, rng.choice((80, 300, 900)))
    for left, right in python_places(rng, 160 if LONG else 36):
        counts += explore(rng, the_python(), vocabulary, left, right, rng.choice((0, 3, 8)), twin=rng.random() < 0.5)
    print(number, dict(counts), masks.statistics(python(), vocabulary))
    assert all(counts[kind] for kind in ("none", "states", "allowed", "loose"))


def test_python_with_bytes_alone() -> None:
    rng = seeded("bytes")
    vocabulary = vocabulary_of([*BYTES, None], [256])
    counts: Counter[str] = Counter()
    for left, right in python_places(rng, 150 if LONG else 30):
        counts += explore(rng, the_python(), vocabulary, left, right, 12)
    print(dict(counts))
    assert all(counts[kind] for kind in ("none", "states", "allowed", "loose"))


@pytest.mark.parametrize("number", range(60 if LONG else 6))
def test_json_with_random_vocabularies(number: int) -> None:
    rng = seeded(f"json {number}")
    vocabulary = random_vocabulary(rng, JSON_FRAGMENTS, rng.choice((50, 300, 1000)))
    counts: Counter[str] = Counter()
    for _ in range(25):
        text = json_document(rng)
        start, end = sorted(rng.randint(0, len(text)) for _ in range(2))
        right = rng.choice((text[end:], text[end:], "", "]", "}", '"', "1]", '":1}', ',"a":[]}'))
        counts += explore(rng, the_json(), vocabulary, text[:start], right, 6)
    print(number, dict(counts))
    assert counts["tight"]
    assert counts["loose"]


def check_large(path: Path, count: int) -> None:
    rng = seeded("large")
    vocabulary = file_vocabulary(path) if path != EMBEDDED else embedded()
    counts: Counter[str] = Counter()
    for left, right in python_places(rng, count):
        counts += explore(rng, the_python(), vocabulary, left, right, 3, twin=rng.random() < 0.2)
    print(dict(counts), masks.statistics(python(), vocabulary))
    assert all(counts[kind] for kind in ("none", "states", "allowed", "loose"))


def test_python_with_the_embedded_vocabulary() -> None:
    check_large(EMBEDDED, 300 if LONG else 15)


@pytest.mark.skipif(not LONG, reason="the long form has this: FIM_SERVER_LONG=1")
def test_python_with_a_large_vocabulary() -> None:
    path = os.environ.get("FIM_SERVER_TOKENIZER")
    if not path:
        pytest.skip("no large vocabulary: FIM_SERVER_TOKENIZER is to name a tokenizer.json")
    check_large(Path(path), 60)


# ---------------------------------------------------------------- small languages


@pytest.mark.parametrize("chunk", range(4))
def test_random_languages(chunk: int) -> None:
    """Most of them have no separators, so that guards run beside whatever is read."""
    counts: Counter[str] = Counter()
    for number in range(1500 if LONG else 30):
        rng = seeded(f"toy {chunk} {number}")
        toy = random_toy(rng)
        core = compiled_or_none(toy.spec())
        if core is None:
            continue
        subject = Subject(repr(toy), core)
        fragments = [*toy.alphabet, *(name[1] or "ab" for name in toy.lexemes), "aa", "ab", "ba", "bb"]
        vocabulary = random_vocabulary(rng, fragments, rng.choice((10, 60)))
        for _ in range(6):
            left, right = ("".join(rng.choice(toy.alphabet) for _ in range(rng.randrange(4))) for _ in range(2))
            counts += explore(rng, subject, vocabulary, left, rng.choice((right, "")), 4)
    print(chunk, dict(counts))
    assert counts["states"] > 100
    assert counts["tight"]


def layout_language(rng: random.Random) -> Subject | None:
    """Lines and blocks around random lexemes, with brackets, comments, joins and limits or without them."""
    toy = random_toy(rng)
    lexemes = [lexeme for lexeme in toy.spec()["lexemes"] if lexeme["name"] != "GAP"]
    # The layout stage takes each of these bytes for a blank or a newline, whatever the lexeme is.
    blank, newline = "[ \\t\\x0c]+", rng.choice(("\\n", "\\r\\n|\\r|\\n"))
    lexemes += [
        {"name": "NEWLINE", "pattern": newline},
        {"name": "BLANK", "pattern": blank},
        {"name": "COMMENT", "pattern": "#[^\\r\\n]*"},
        {"name": "COLON", "literal": ":"},
        {"name": "OPEN", "literal": "("},
        {"name": "CLOSE", "literal": ")"},
        {"name": "INDENT"},
        {"name": "DEDENT"},
    ]
    rules = [{"lhs": lhs, "rhs": list(rhs)} for lhs, rhs in toy.rules]
    rules += [
        {"lhs": "file", "rhs": []},
        {"lhs": "file", "rhs": ["lines"]},
        {"lhs": "lines", "rhs": ["line"]},
        {"lhs": "lines", "rhs": ["lines", "line"]},
        {"lhs": "line", "rhs": ["s", "NEWLINE"]},
        {"lhs": "line", "rhs": ["OPEN", "s", "CLOSE", "NEWLINE"]},
        {"lhs": "line", "rhs": ["COLON", "block"]},
        {"lhs": "block", "rhs": ["NEWLINE", "INDENT", "lines", "DEDENT"]},
    ]
    if rng.random() < 0.5:
        rules.append({"lhs": "block", "rhs": ["s", "NEWLINE"]})
    if rng.random() < 0.5:
        rules.append({"lhs": "s", "rhs": ["OPEN", "s", "CLOSE"]})
    layout = {"newline": "NEWLINE", "indent": "INDENT", "dedent": "DEDENT", "blank": "BLANK", "comment": "COMMENT"}
    ignored = ["BLANK", "COMMENT"]
    if rng.random() < 0.6:
        lexemes.append({"name": "JOIN", "pattern": f"\\\\({newline})"})
        layout["join"] = "JOIN"
        ignored.append("JOIN")
    limits = rng.choice(({}, {"brackets": 1, "blocks": 2}, {"brackets": 2, "blocks": 1}, {"brackets": 0, "blocks": 0}))
    spec = {
        **toy.spec(),
        "name": "layout",
        "start": "file",
        "lexemes": lexemes,
        "ignore": ignored,
        "rules": rules,
        "layout": layout,
        "brackets": [["OPEN", "CLOSE"]],
        "limits": limits,
    }
    core = compiled_or_none(spec)
    return None if core is None else Subject(json.dumps(spec), core)


LAYOUT_PIECES = [
    "\n", "\n ", "\n  ", "\n\t", "\n   ", "\n\n", "\r\n", "\r", " ", "  ", "\t", "\x0c", "#", "# a\n", "\n # b\n  ",
    ":", ":\n ", ":\n  ", "(", ")", "()", "(\n", "\n)", "(a\n  )", "a", "b", "ab", "ba", "aa", "a\n", "b\n  a",
    "\\\n", "\\\r\n", "\n\\\n", "\n \\\n  a", "\\", "a\n b", ":a", ":\n a\n", "a:\n", "\n:", "\n(", " a", "b ", "a b",
    "((", "))", "\n  :\n    ", "a\nb", "\n\n  a", " \\\n ", "#\n", "\\\n#",
]  # fmt: skip


@pytest.mark.parametrize("chunk", range(4))
def test_random_languages_with_layout(chunk: int) -> None:
    counts: Counter[str] = Counter()
    for number in range(600 if LONG else 8):
        rng = seeded(f"layout {chunk} {number}")
        subject = layout_language(rng)
        if subject is None:
            continue
        vocabulary = random_vocabulary(rng, LAYOUT_PIECES, rng.choice((30, 150)))
        for _ in range(8):
            left = "".join(rng.choice(LAYOUT_PIECES) for _ in range(rng.randrange(5)))
            right = "".join(rng.choice(LAYOUT_PIECES) for _ in range(rng.randrange(4)))
            counts += explore(rng, subject, vocabulary, left, rng.choice((right, "")), 5)
    print(chunk, dict(counts))
    assert counts["states"] > 30


@pytest.mark.parametrize("count", [70, 200, 250, 400])
def test_languages_of_many_lexemes(count: int) -> None:
    """More kinds of lexemes than the quick ways have room for."""
    rng = seeded(f"many {count}")
    words = sorted({"".join(rng.choice("ab") for _ in range(rng.randint(1, 9))) for _ in range(count)})
    lexemes: list[dict[str, Any]] = [{"name": f"W{index}", "literal": word} for index, word in enumerate(words)]
    # After a word comes one of a few others; lists of them stand in brackets.
    rules = [["s", []], ["s", ["s", "x"]], ["x", ["OPEN", "s", "CLOSE"]]]
    rules += [["x", [f"W{index}", f"W{rng.randrange(len(words))}"]] for index in range(len(words)) for _ in range(2)]
    spec = {
        "name": "many",
        "start": "s",
        "lexemes": [
            *lexemes,
            {"name": "OPEN", "literal": "("},
            {"name": "CLOSE", "literal": ")"},
            {"name": "GAP", "pattern": " +"},
            {"name": "REST", "pattern": "[ab]+", "priority": -1},
        ],
        "ignore": ["GAP"],
        "rules": [{"lhs": lhs, "rhs": rhs} for lhs, rhs in rules],
        "brackets": [["OPEN", "CLOSE"]],
        "limits": {"brackets": 3},
        "soft_keywords": [f"W{index}" for index in range(0, len(words), 7)],
    }
    subject = Subject("many", _core.Language(json.dumps(spec)))
    vocabulary = random_vocabulary(rng, [*words, *(f"{word} " for word in words), " ", "(", ")", ") ", "a", "b"], 400)
    counts: Counter[str] = Counter()
    for _ in range(60 if LONG else 10):
        left, right = (" ".join(rng.choice([*words, "(", ")"]) for _ in range(rng.randrange(4))) for _ in range(2))
        counts += explore(rng, subject, vocabulary, rng.choice((left, "", "(", "(( ")), rng.choice((right, "", ")")), 5)
    print(count, dict(counts))
    assert counts["states"] > 20


def test_modes(tmp_path: Path) -> None:
    subject = the_modes(tmp_path)
    pieces = [
        *"a`'{}():", "{{", "}}", "`{", "}`", "'{", "}'", "a:", "::", "`a{a}`", "'{a:(}'", "{`", "`}", "((", "))",
        "'a'",
    ]  # fmt: skip
    counts: Counter[str] = Counter()
    for number in range(300 if LONG else 10):
        rng = seeded(f"modes {number}")
        vocabulary = random_vocabulary(rng, pieces, rng.choice((20, 100, 300)))
        for _ in range(15):
            left, right = ("".join(rng.choice(pieces) for _ in range(rng.randrange(5))) for _ in range(2))
            counts += explore(rng, subject, vocabulary, left, rng.choice((right, "")), 6)
    print(dict(counts))
    assert counts["states"] > 100


# ---------------------------------------------------------------- masks that are kept


def places_of_one_shape() -> list[list[tuple[str, str]]]:
    """Left contexts that end in the same parse stack, or all but, with right contexts that say more or less."""
    found = []
    for tail, rights in (
        ("x = (1, ", ("", ")\n", ")\n)\n", "2)\n", "\n", "]\n", "for y in z)\n")),
        ("if x:\n    ", ("", "y\n", "    y\n", "y\nz\n", "else:\n    y\n", "\n", "  y\n", "):\n        y\n")),
        ("f(x for x", ("", " in y)\n", ")\n", "z in y)\n", "\n")),
        ("x = f'{y", ("", "}'\n", "!r}'\n", ":>{z}}'\n", "'\n", "}}'\n")),
        ("x = '", ("", "'\n", "\n'\n", "''\n", "\"'\n")),
        ("if x:\n    y\n", ("", "else:\n    z\n", "    z\n", "  z\n", "elif x:\n    y\n", "z\n")),
        ("match x", ("", ":\n    case y:\n        z\n", " = 1\n", "\n", ".y\n")),
    ):
        lefts = [tail, "y = 1\n" + tail, "# c\n" + tail, "def g(): pass\n\n" + tail, tail.replace("x", "xyz")]
        found.append([(left, right) for left in lefts for right in rights])
    return found


def test_masks_are_shared_between_sessions() -> None:
    """Known from another session or not, before and after they are forgotten: a mask is the same."""
    rng = seeded("shared")
    vocabulary = random_vocabulary(rng, PYTHON_FRAGMENTS, 150)
    places = [place for places in places_of_one_shape() for place in places]
    rng.shuffle(places)
    expected: dict[tuple[str, str], bytes] = {}
    for turn in range(3):
        for left, right in places:
            found = compare(python().open(left, right).matcher(vocabulary), vocabulary, (left, right)).tobytes()
            assert expected.setdefault((left, right), found) == found, (turn, left, right)
        before = masks.statistics(python(), vocabulary)
        assert before["hits"] > before["misses"] > 0
        if turn == 1:
            masks.clear(python(), vocabulary)
            after = masks.statistics(python(), vocabulary)
            assert (after["masks"], after["distinct"], after["hits"], after["misses"], after["bytes"]) == (
                0,
                0,
                0,
                0,
                0,
            )
            assert after["table"] == before["table"]
    # Blocks at another column, and as many brackets of another kind, are other states.
    deep = [("if x:\n" + " " * count + "y\n" + blanks, "") for count in range(1, 9) for blanks in ("", " ", "    ")]
    for left, right in deep + [(f"x = {opening * 3}", "") for opening in "([{"]:
        compare(python().open(left, right).matcher(vocabulary), vocabulary, (left, right))


def test_one_session_with_several_vocabularies() -> None:
    """A session's own caches belong to one vocabulary, with unconstrained stacks or without."""
    rng = seeded("several")
    sizes = (*((20, 20) if not LONG else (20, 20, 20, 500)), 200)
    vocabularies = [random_vocabulary(rng, JSON_FRAGMENTS, size) for size in sizes]
    vocabularies += [vocabulary_of([*BYTES, b"[["]), vocabulary_of([b"[[", *BYTES])]
    for left, right in (("[", "]"), ("[", ""), ('{"a', '":1}'), ("[1", ",2]"), ("", "")):
        session = the_json().open(left, right)
        for vocabulary in vocabularies * 2:
            compare(session.matcher(vocabulary), vocabulary, (left, right, vocabulary.size))
    session = python().open("x = (", ")\n")
    for vocabulary in vocabularies * 2:
        compare(session.matcher(vocabulary), vocabulary, ("python", vocabulary.size))


def test_a_vocabulary_of_several_languages() -> None:
    rng = seeded("languages")
    vocabulary = random_vocabulary(rng, [*JSON_FRAGMENTS, *PYTHON_FRAGMENTS], 100)
    subjects = [the_json(), the_python(), Subject("python 3.9", Language.load("python", "3.9").core)]
    for left in ("", "[", "[1, ", '{"a": ', "[f'"):
        for subject in subjects * 2:
            compare(subject.open(left, "").matcher(vocabulary), vocabulary, (subject.name, left))


def test_a_session_whose_right_context_begins_to_decide_is_not_moved() -> None:
    rng = seeded("tighten")
    vocabulary = random_vocabulary(rng, PYTHON_FRAGMENTS, 100)
    for left, right in exact_places(the_python(), python_places(rng, 12)):
        session = python().open(left, right)
        matcher = session.matcher(vocabulary)
        loose = compare(matcher, vocabulary, (left, right))
        token = chosen(rng, bits(loose, vocabulary), vocabulary)
        if token is None:
            continue
        matcher.commit(token)
        later = compare(matcher, vocabulary, (left, right, token))
        session._core.tighten()
        assert (compare(matcher, vocabulary, (left, right, token)) == later).all()
        matcher.rollback(1)
        assert (compare(matcher, vocabulary, (left, right)) == loose).all()


def test_masks_do_not_outgrow_their_memory() -> None:
    """Few masks of two million tokens fit: old ones are forgotten, also where all are asked for again and again."""
    rng = seeded("memory")
    size = 1 << 21
    tokens: list[bytes | None] = [None] * size
    # Closing brackets by the hundred make the masks of all depths different.
    for index, token in enumerate([*BYTES, *(b"]" * count for count in range(2, 331))]):
        tokens[index * 7_919 % size] = token
    vocabulary = vocabulary_of(tokens)
    budget = 32 << 20
    known: list[Matcher] = []
    words = np.zeros(size // 32, np.uint32)
    plain: dict[int, bytes] = {}
    for depth in range(1, 330):
        known.append(the_json().open("[" * depth, "").matcher(vocabulary))
        for matcher in known[-300:] if depth % 30 == 0 else known[-40:]:
            matcher.fill_mask(words)
        if depth % 60 == 1:
            chosen_depths = [depth, *rng.sample(range(1, depth + 1), min(depth, 4))]
            for again in chosen_depths:
                known[again - 1].fill_mask_plain(words)
                assert plain.setdefault(again, words.tobytes()) == words.tobytes()
                known[again - 1].fill_mask(words)
                assert words.tobytes() == plain[again], again
    found = masks.statistics(Language.load("json"), vocabulary)
    print(found)
    assert found["bytes"] <= budget + (2 << 20), "more is kept than the budget for masks"
    assert found["masks"] > 25


def test_a_session_keeps_few_masks_of_its_own() -> None:
    size = 1 << 18
    tokens: list[bytes | None] = [None] * size
    for index, token in enumerate(BYTES):
        tokens[index * 997 % size] = token
    vocabulary = vocabulary_of(tokens)
    session = the_json().open("[", "]" * 3)
    assert not session._core.is_loose()
    matcher = session.matcher(vocabulary)
    for step in range(120):
        compare(matcher, vocabulary, step)
        commit_text(matcher, vocabulary, b"[" if step < 60 else b"1" if step == 60 else b"]" if step < 110 else b" ")
    assert masks.statistics(Language.load("json"), vocabulary)["masks"] == 0, "masks that R has a say in are not shared"


def test_statistics() -> None:
    vocabulary = vocabulary_of([*BYTES, None], [256])
    language = Language.load("json")
    assert set(masks.statistics(language, vocabulary)) == {"masks", "distinct", "hits", "misses", "bytes", "table"}
    prepared = masks.prepare(language, vocabulary)
    found = masks.statistics(language, vocabulary)
    assert prepared.bytes == found["table"] > 0
    assert prepared.seconds >= 0
    assert not prepared.cached
    matchers = [language.open(left, "").matcher(vocabulary) for left in ("[", "[[", "[", "[1", "[12", "[[12")]
    words = np.zeros(9, np.uint32)
    for matcher in matchers:
        matcher.fill_mask(words)
    once = masks.statistics(language, vocabulary)
    assert (once["hits"], once["misses"], once["masks"]) == (2, 4, 4), "[ and [1 come twice"
    assert once["distinct"] <= once["masks"]
    assert once["bytes"] >= once["masks"] * 4 * 9
    for matcher in matchers:
        matcher.fill_mask(words)
        matcher.fill_mask_plain(words)
    again = masks.statistics(language, vocabulary)
    assert again == {**once, "hits": once["hits"] + 6}
    matchers[0].mask()
    assert masks.statistics(language, vocabulary)["hits"] == again["hits"] + 1
    masks.clear(language, vocabulary)
    for matcher in matchers:
        matcher.fill_mask(words)
    assert masks.statistics(language, vocabulary) == once


# ---------------------------------------------------------------- threads and batches


def batch_matchers(rng: random.Random, vocabulary: Vocabulary) -> list[Matcher]:
    """Matchers of the same and of different sessions, languages and guarantees, one of them after its end."""
    found: list[Matcher] = []
    for left, right in python_places(rng, 9):
        session = python().open(left, right)
        found += [session.matcher(vocabulary) for _ in range(2)]
    for left, right in (("[", "]"), ("[", ""), ('{"a', ""), ("]", ""), ('"', '"')):
        session = the_json().open(left, right)
        found += [session.matcher(vocabulary) for _ in range(2)]
    for matcher in found[::3]:
        token = chosen(rng, bits(filled(matcher.fill_mask_plain, vocabulary), vocabulary), vocabulary)
        if token is not None:
            matcher.commit(token)
    ended = the_json().open("1", "").matcher(vocabulary)
    ended.commit(vocabulary.end_token_ids[0])
    rng.shuffle(found)
    return [*found, ended]


@pytest.mark.parametrize("number", range(12 if LONG else 2))
def test_batches_on_any_number_of_threads(number: int) -> None:
    rng = seeded(f"batches {number}")
    vocabulary = random_vocabulary(rng, [*PYTHON_FRAGMENTS, *JSON_FRAGMENTS], 200)
    while not vocabulary.end_token_ids:
        vocabulary = random_vocabulary(rng, PYTHON_FRAGMENTS, 200)
    matchers = batch_matchers(rng, vocabulary)
    needed = (vocabulary.size + 31) // 32
    expected = np.stack([filled(matcher.fill_mask_plain, vocabulary) for matcher in matchers])
    for threads, padding in product((1, 2, 5, None), (0, 1, 7)):
        words = np.full((len(matchers), needed + padding), 0xDEADBEEF, np.uint32)
        masks.fill_masks(matchers, words, threads)
        wrong = np.flatnonzero((words[:, :needed] != expected).any(axis=1))
        assert not len(wrong), (threads, padding, wrong)
        assert not words[:, needed:].any()
        if padding == 1:
            masks.clear(python(), vocabulary)
    # One matcher in several rows is asked once for each.
    words = np.full((5, needed), 0xDEADBEEF, np.uint32)
    masks.fill_masks([matchers[0]] * 5, words, 3)
    assert (words == expected[0]).all()


def test_batches_of_arrays_that_do_not_fit() -> None:
    vocabulary, other = vocabulary_of([*BYTES, None]), vocabulary_of([*BYTES] * 2)
    matchers = [python().open("x = ", "").matcher(vocabulary) for _ in range(3)]
    masks.fill_masks([], np.zeros((0, 9), np.uint32))
    masks.fill_masks([], np.zeros((0, 0), np.uint32), 2)
    shapes: tuple[tuple[int, ...], ...] = ((3, 8), (2, 9), (4, 9), (27,), (3, 9, 1), (3, 0), (0, 9))
    for shape in shapes:
        with pytest.raises(ValueError, match=r"^[^\n]+$"):
            masks.fill_masks(matchers, np.zeros(shape, np.uint32), 2)
    for threads in (0, -1):
        with pytest.raises(ValueError, match="threads"):
            masks.fill_masks(matchers, np.zeros((3, 9), np.uint32), threads)
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        masks.fill_masks(matchers, np.zeros((3, 18), np.uint32)[:, ::2])
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        masks.fill_masks(matchers, np.zeros((9, 3), np.uint32).T)
    with pytest.raises(ValueError, match="different sizes"):
        masks.fill_masks([*matchers, python().open("", "").matcher(other)], np.zeros((4, 16), np.uint32), 2)
    fixed = np.zeros((3, 9), np.uint32)
    fixed.flags.writeable = False
    wrong: tuple[NDArray[Any], ...] = (fixed, np.zeros((3, 9), np.float32), np.zeros((3, 9), np.int64))
    for array in wrong:
        with pytest.raises(BufferError):
            masks.fill_masks(matchers, array)
    # A row of another array is as good as an array.
    words = np.full((5, 9), 7, np.uint32)
    masks.fill_masks(matchers, words[1:4])
    assert (words[[0, 4]] == 7).all()
    assert (words[1:4] == filled(matchers[0].fill_mask_plain, vocabulary)).all()


def test_masks_from_several_threads_at_once() -> None:
    """Sessions wait for each other's answers, tables are built once, and nothing is mixed up."""
    rng = seeded("threads")
    vocabulary = random_vocabulary(rng, [*PYTHON_FRAGMENTS, *JSON_FRAGMENTS], 150)
    places = [*exact_places(the_python(), python_places(rng, 9)), ("x = (", ""), ("", "")]
    sessions = [python().open(*place) for place in places] + [the_json().open("[", "]"), the_json().open("[", "")]
    walks = [(session, rng.random()) for session in sessions for _ in range(3)]

    def masks_of(session: Session, seed: float) -> list[bytes]:
        own = random.Random(seed)
        matcher = session.matcher(vocabulary)
        found = [filled(matcher.fill_mask, vocabulary)]
        for _ in range(6):
            token = chosen(own, bits(found[-1], vocabulary), vocabulary)
            if token is None:
                break
            matcher.commit(token)
            found.append(filled(matcher.fill_mask, vocabulary))
            if own.random() < 0.2:
                masks.clear(python(), vocabulary)
        return [mask.tobytes() for mask in found]

    with ThreadPoolExecutor(5) as pool:
        parallel = list(pool.map(lambda each: masks_of(*each), walks))
    fresh = vocabulary_of([vocabulary.token_bytes(token) or None for token in range(vocabulary.size)])
    for (session, seed), found in zip(walks, parallel, strict=True):
        own = random.Random(seed)
        matcher = session.matcher(fresh)
        for index, mask in enumerate(found):
            plain = bits(filled(matcher.fill_mask_plain, fresh), fresh)
            plain[vocabulary.end_token_ids] = matcher.is_complete()
            assert (bits(np.frombuffer(mask, np.uint32), vocabulary) == plain).all(), (seed, index)
            if index < len(found) - 1:
                token = chosen(own, plain, vocabulary)
                assert token is not None
                matcher.commit(token)
                own.random()


# ---------------------------------------------------------------- files


TABLE_PLACES = [
    ("x = (", ""),
    ("if x:\n    y\n", ""),
    ("", ""),
    ("x = f'{", "}'\n"),
    ("if x:\n  \\\n", ""),
    ("x = '", "'\n"),
]


def table_file(folder: Path) -> Path:
    (path,) = folder.glob("*.spanner")
    return path


def answers(vocabulary: Vocabulary) -> bytes:
    return b"".join(
        compare(python().open(left, right).matcher(vocabulary), vocabulary, (left, right)).tobytes()
        for left, right in TABLE_PLACES
    )


def test_a_table_is_kept(tmp_path: Path) -> None:
    rng = seeded("kept")
    built = random_vocabulary(rng, PYTHON_FRAGMENTS, 120)
    tokens = [built.token_bytes(token) or None for token in range(built.size)]
    folder = tmp_path / "a" / "b"
    first, second = (vocabulary_of(tokens, [], folder) for _ in range(2))
    assert not masks.prepare(python(), first).cached
    assert masks.prepare(python(), second).cached
    assert not masks.prepare(python(), first).cached, "what was built is not asked for again"
    assert (
        masks.prepare(python(), first).bytes
        == masks.prepare(python(), second).bytes
        == table_file(folder).stat().st_size
    )
    assert answers(first) == answers(second) == answers(vocabulary_of(tokens))
    # End tokens have no say in the table, other tokens and another order have.
    assert masks.prepare(python(), vocabulary_of(tokens, [], folder)).cached
    for other in (tokens[:-1], [*tokens, b"a"], tokens[::-1]):
        assert not masks.prepare(python(), vocabulary_of(other, [], folder)).cached
    assert not [path for path in folder.iterdir() if path.suffix != ".spanner"], "nothing else is left there"


def test_a_table_of_another_process(tmp_path: Path) -> None:
    tokens = [*BYTES, *(text.encode() for text in ("if", "\n    ", "))", "{x}'", "\\\n", "  # c\n", "'''"))]
    code = (
        "from fim_server import Language, Vocabulary; from fim_server.tokens import masks;"
        f"vocabulary = Vocabulary({tokens!r}, []); language = Language.load('python');"
        "print(masks.prepare(language, vocabulary).cached);"
        f"print(*(language.open(*place).matcher(vocabulary).core.mask().hex() for place in {TABLE_PLACES!r}), sep='')"
    )
    environment = {**os.environ, "FIM_SERVER_CACHE": str(tmp_path)}
    run = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    (built, one), (loaded, other) = (output.splitlines() for output in run)
    assert (built, loaded) == ("False", "True")
    assert one == other
    vocabulary = vocabulary_of(tokens, [], tmp_path)
    assert masks.prepare(python(), vocabulary).cached
    assert answers(vocabulary).hex() == one


def damages(rng: random.Random, good: bytes) -> Iterator[tuple[str, bytes]]:
    """Everything that can be wrong with a file, each section of it touched."""
    words = np.frombuffer(good, np.uint32)
    yield "empty", b""
    for length in (1, 3, 4, 31, 32, 103, 104, len(good) // 2, len(good) // 2 // 4 * 4, len(good) - 4, len(good) - 1):
        yield f"cut at {length}", good[:length]
    yield "longer", good + b"\0\0\0\0"
    yield "longer by a byte", good + b"\0"
    yield "zeros", bytes(len(good))
    yield "other magic", b"XXXX" + good[4:]
    yield "other format", good[:4] + b"\xff\0\0\0" + good[8:]
    yield "text", b"hello\n" * 100
    count = (int(words[8]) - 8) // 2  # of sections: their table begins after the header, the first of them after it
    sections = [(f"section {index}", *words[8 + 2 * index : 10 + 2 * index]) for index in range(count)]
    assert int(sections[-1][1] + sections[-1][2]) * 4 == len(good)
    for name, begin, length in [("header", 0, 8), ("offsets", 8, 2 * count), *sections]:
        for _ in range(4 if LONG else 1) if length else ():
            place, bit = 4 * int(begin) + rng.randrange(4 * int(length)), rng.randrange(8)
            flipped = bytearray(good)
            flipped[place] ^= 1 << bit
            yield f"{name}, bit {bit} of byte {place}", bytes(flipped)


def test_a_damaged_table_is_built_again(tmp_path: Path) -> None:
    rng = seeded("damaged")
    tokens = [
        *BYTES,
        *(text.encode() for text in ("if", "\n    ", "))", "{x}'", "\\\n", "  # c\n", "'''", "\n\t x", "1.")),
    ]
    assert not masks.prepare(python(), vocabulary_of(tokens, [], tmp_path)).cached
    path = table_file(tmp_path)
    good = path.read_bytes()
    expected = answers(vocabulary_of(tokens))
    for what, bad in damages(rng, good):
        assert bad != good, what
        path.write_bytes(bad)
        vocabulary = vocabulary_of(tokens, [], tmp_path)
        assert not masks.prepare(python(), vocabulary).cached, what
        assert answers(vocabulary) == expected, what
        again = vocabulary_of(tokens, [], tmp_path)
        assert masks.prepare(python(), again).cached, (what, "the bad file is replaced")
        assert table_file(tmp_path) == path
        assert answers(again) == expected, what


@posix
@worst
def test_pipes_and_devices_in_place_of_tables_are_not_waited_for(tmp_path: Path, kind: str) -> None:
    tokens = [*BYTES, b"if"]
    masks.prepare(python(), vocabulary_of(tokens, [], tmp_path))
    put(kind, table_file(tmp_path))
    vocabulary = vocabulary_of(tokens, [], tmp_path)
    assert not masks.prepare(python(), vocabulary).cached
    assert answers(vocabulary) == answers(vocabulary_of(tokens))


def test_another_table_under_a_name(tmp_path: Path) -> None:
    one, other = [*BYTES, b"if"], [*BYTES, b"[]"]
    for language, tokens, folder in (("python", one, "1"), ("python", other, "2"), ("json", one, "3")):
        masks.prepare(Language.load(language), vocabulary_of(tokens, [], tmp_path / folder))
    path = table_file(tmp_path / "1")
    for folder in ("2", "3"):
        path.write_bytes(table_file(tmp_path / folder).read_bytes())
        vocabulary = vocabulary_of(one, [], tmp_path / "1")
        assert not masks.prepare(python(), vocabulary).cached
        answers(vocabulary)
        assert masks.prepare(python(), vocabulary_of(one, [], tmp_path / "1")).cached


def test_folders_that_keep_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [*BYTES, b"if"]
    masks.prepare(python(), vocabulary_of(tokens, [], tmp_path))
    path = table_file(tmp_path)
    expected = answers(vocabulary_of(tokens))

    def check(folder: Path) -> None:
        for _ in range(2):
            vocabulary = vocabulary_of(tokens, [], folder)
            assert not masks.prepare(python(), vocabulary).cached
            assert answers(vocabulary) == expected

    path.unlink()
    path.mkdir()
    check(tmp_path)
    (path / "in the way").touch()
    check(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [path.name], "nothing else is left there"
    file = tmp_path / "file"
    file.touch()
    check(file)
    check(file / "below")
    # A superuser may write anywhere but there.
    check(Path("/proc/nowhere"))
    unwritable = tmp_path / "unwritable"
    unwritable.mkdir(mode=0o500)
    if not os.access(unwritable, os.W_OK):
        check(unwritable)
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "nothing" / "there")
    for _ in range(2):
        answers(vocabulary_of(tokens, [], dangling))
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for _ in range(2):
        assert not masks.prepare(python(), vocabulary_of(tokens)).cached
    assert sorted(tmp_path.rglob("*")) == before


def test_a_table_is_not_changed_by_those_who_build_it_again(tmp_path: Path) -> None:
    """Several vocabularies that find no file build it at once; whatever file is there then is whole."""
    tokens = [*BYTES, b"if", b"\n    ", b"\\\n", b"\n\t", b"\n  \t", b"'''", b"1."]
    for _ in range(20 if LONG else 4):
        vocabularies = [vocabulary_of(tokens, [], tmp_path) for _ in range(6)]
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda vocabulary: masks.prepare(python(), vocabulary), vocabularies))
        assert len({answers(vocabulary) for vocabulary in vocabularies}) == 1
        assert masks.prepare(python(), vocabulary_of(tokens, [], tmp_path)).cached
        table_file(tmp_path).unlink()


# ---------------------------------------------------------------- forced bytes


def forced_by_hand(session: Session, middle: bytes, limit: int) -> bytes:
    """Bytes that are the only ones to follow, one after the other, as long as the middle is not complete."""
    state = session.start()
    assert state.advance(middle) == len(middle)
    forced = b""
    while len(forced) < limit and not state.is_complete():
        following = [byte for byte in BYTES if state.fork().advance(byte)]
        if len(following) != 1:
            break
        forced += following[0]
        state.advance(following[0])
    return forced


FORCED = [
    *(
        ("x = fals", "e\n"),
        ("impor", ""),
        ("x = 1 i", "f y else z\n"),
        ("class A(B):", "\n    x\n"),
        ("from . impor", " a\n"),
    ),
    *(
        ("x = (a no", " b)\n"),
        ("if x:\n    y\nels", ":\n    z\n"),
        ("x = '\\N{DAS", "}'\n"),
        ("x = '\\x4", "'\n"),
        ("x = 'é", "'\n"),
    ),
    *(
        ("async", " f():\n    pass\n"),
        ("try:\n    a\n", "\n"),
        ("try:\n    a\nfin", "\n"),
        ("x !", "\n"),
        ("match x:", "y\n"),
    ),
    *(
        ("def f(a): retur", "\n"),
        ("(" * 200, ""),
        ("x = 0x", "\n"),
        ("x = f'{a!", "}'\n"),
        ("from", ""),
        ("if x:\n \\", "\n"),
    ),
    *(
        ("if x:\n" + " " * 10_000, ""),
        ("if x:\n" + " " * 9_999, ""),
        ("if x:\n" + "\t" * 1_250 + "\\\n", ""),
        ("\\", ""),
        ("x\\", ""),
    ),
    *(("x = " + "(" * 200 + "f'{x", ""), ("x = " + "(" * 199 + "f'", "")),
]


def test_forced_bytes_are_the_only_ones() -> None:
    rng = seeded("forced")
    counts: Counter[str] = Counter()
    json_places = [
        (text[:start], text[end:])
        for text in (json_document(rng) for _ in range(30))
        for start in (len(text) // 2,)
        for end in (start, len(text))
    ]
    json_places += [
        ("", ""),
        ("t", ""),
        ("[fa", "]"),
        ('{"a"', ""),
        ('{"a":nul', "}"),
        ("-", ""),
        ("tru", "e"),
        ("[" * 300, ""),
    ]
    python_ones = FORCED + python_places(rng, 60 if LONG else 12)
    for subject, places in ((the_python(), python_ones), (the_json(), json_places)):
        vocabulary = vocabulary_of([*BYTES, None], [256])
        for left, right in places:
            session = subject.open(left, right)
            if session.guarantee == "none":
                assert session.matcher(vocabulary).forced() == b""
                continue
            matcher = session.matcher(vocabulary)
            middle = b""
            for _ in range(4):
                forced = matcher.forced()
                where = (subject.name, left[-200:], right[:200], middle)
                assert len(forced) <= 256, where
                assert forced == forced_by_hand(session, middle, 256), where
                if matcher.is_complete():
                    assert forced == b"", where
                counts["places"] += 1
                counts["forced"] += bool(forced)
                mask = bits(compare(matcher, vocabulary, where), vocabulary)
                assert not forced or np.flatnonzero(mask).tolist() == [forced[0]], where
                token = chosen(rng, mask, vocabulary)
                if token is None:
                    break
                matcher.commit(token)
                middle += vocabulary.token_bytes(token)
    print(dict(counts))
    assert counts["forced"] > 20


def test_forced_bytes_are_no_more_than_their_limit() -> None:
    lexemes = [{"name": "A", "literal": "ab" * 400}, {"name": "B", "literal": "b"}]
    core = _core.Language(
        json.dumps(
            {"name": "long", "start": "s", "lexemes": lexemes, "ignore": [], "rules": [{"lhs": "s", "rhs": ["A"]}]}
        )
    )
    vocabulary = vocabulary_of(BYTES)
    session = Subject("long", core).open("", "")
    assert session.matcher(vocabulary).forced() == b"ab" * 128
    matcher = session.matcher(vocabulary)
    commit_text(matcher, vocabulary, b"ab" * 399)
    assert matcher.forced() == b"ab"
    commit_text(matcher, vocabulary, b"ab")
    assert matcher.is_complete()
    assert matcher.forced() == b""


# ---------------------------------------------------------------- found by these tests


@pytest.mark.parametrize("backwards", [False, True])
def test_masks_at_the_limit_of_blocks_are_not_shared(backwards: bool) -> None:
    """R constrains an unconstrained stack too where no block may be opened.

    A comment may swallow the beginning of R, up to a block that R opens, which does not count.
    """
    vocabulary = vocabulary_of([*BYTES, b" #", b":\n", b":", b"y:", b"  x: #", b"\n" + b" " * 99 + b"if z:"])
    blocks = "".join(" " * depth + "if x:\n" for depth in range(99))
    block = "\n" + " " * 100 + "y\n"
    rights = ["", "\\" + block, block, "#" + block, " " + block, "y:" + block, "y\n" + " " * 99 + "z\n"]
    for tail in ("if y: ", "if y:", "if y", "if y:#", "if y: \\", "class A:", "if y:\\\n", "y\n", ""):
        for right in rights[::-1] if backwards else rights:
            session = python().open(blocks + " " * 99 + tail, right)
            compare(session.matcher(vocabulary), vocabulary, (tail, right))


@pytest.mark.parametrize("blanks", [b"\t" * 1_251, b"\t" * 1_250 + b" ", *([b" " * 10_001] if LONG else [])])
def test_a_token_that_indents_further_than_columns_go(blanks: bytes) -> None:
    """Columns have a limit inside a token too, where its line begins in it."""
    tokens = [*BYTES, b"\n" + blanks, b"\n" + blanks + b"x", blanks, b"x\n" + blanks + b"#", b"\\\n" + blanks + b"x"]
    vocabulary = vocabulary_of(tokens)
    for left in ("x = 1", "x = 1\n", "if x:", "if x:\n", "if x:\n    ", "", "x = (", "x", "if x:\n  \\\n"):
        compare(python().open(left, "").matcher(vocabulary), vocabulary, left)


def test_a_token_of_thousands_of_lexemes() -> None:
    """The walk over the table goes as deep as a token has lexemes, on threads with small stacks as well."""
    code = (
        "import numpy as np; from fim_server import Language, Vocabulary; from fim_server.tokens import masks;"
        "vocabulary = Vocabulary([*(bytes([byte]) for byte in range(256)), b'1,' * 5_000], []);"
        "language = Language.load('json');"
        "words = np.zeros((2, 9), np.uint32);"
        "masks.fill_masks([language.open('[' * (1 + index), '').matcher(vocabulary) for index in range(2)], words, 2);"
        "print(words[:, 8].tolist())"
    )
    environment = {**os.environ, "FIM_SERVER_CACHE": ""}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[1, 1]\n"), done.stderr[-300:]


@pytest.mark.skipif(sys.platform == "win32", reason="no fork on this system")
def test_a_forked_process_fills_batches() -> None:
    """The threads that a batch left behind are not there after a fork."""
    vocabulary = embedded()
    matchers = [the_json().open("[" * depth, "").matcher(vocabulary) for depth in (1, 2, 3)]
    words = np.zeros((3, (vocabulary.size + 31) // 32), np.uint32)
    masks.fill_masks(matchers, words, threads=2)
    if sys.platform != "win32":
        child = os.fork()
        if child == 0:
            masks.fill_masks(matchers, words, threads=2)
            os._exit(0)
        deadline = time.monotonic() + 60
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                pytest.fail("the child hangs")
            time.sleep(0.01)
        assert os.waitstatus_to_exitcode(ended[1]) == 0
