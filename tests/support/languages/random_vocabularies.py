"""Random vocabularies, and masks that are compared."""

import os
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fim_server import Vocabulary

LONG = os.environ.get("FIM_SERVER_LONG") == "1"

SEED = int(os.environ.get("FIM_SERVER_SEED", "1"))

BYTES = [bytes([byte]) for byte in range(256)]

Words = NDArray[np.uint32]


def seeded(name: str) -> random.Random:
    return random.Random(f"{SEED} {name}")


def vocabulary_of(tokens: Sequence[bytes | None], ends: Iterable[int] = (), folder: Path | None = None) -> Vocabulary:
    """A vocabulary whose tables are kept in a folder, or not at all: nothing of another run is to be found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIM_SERVER_CACHE", "" if folder is None else str(folder))
        return Vocabulary(list(tokens), ends)


def random_vocabulary(rng: random.Random, fragments: Sequence[str | bytes], count: int) -> Vocabulary:
    """Tokens of joined fragments, between them every byte, holes, special tokens and some tokens twice."""
    pieces = [piece.encode() if isinstance(piece, str) else piece for piece in fragments]
    tokens: list[bytes | None] = [*BYTES]
    while len(tokens) < 256 + count:
        token = b"".join(rng.choice(pieces) for _ in range(rng.choice((1, 1, 2, 2, 3, 4, 6))))
        match rng.randrange(40):
            case 0:
                token = token[: rng.randrange(len(token) + 1)]
            case 1:
                token = token[rng.randrange(len(token) + 1) :]
            case 2:
                token = rng.choice(pieces) * rng.choice((3, 8, 17))
            case 3 if len(tokens) % 4 == 0:
                token = b"".join(rng.choice(pieces) for _ in range(rng.choice((40, 120))))
            case 4:
                token = rng.choice(tokens) or b""
        tokens.append(token[:1_200] or None)  # longer ones have tests of their own
    ends = list(range(len(tokens), len(tokens) + rng.choice((0, 1, 1, 2))))
    tokens += [rng.choice((None, b"<end>")) for _ in ends] + [None] * rng.randrange(40)
    order = rng.sample(range(len(tokens)), len(tokens))
    place = {old: new for new, old in enumerate(order)}
    return vocabulary_of([tokens[old] for old in order], [place[end] for end in ends])


PUNCTUATION = [
    "(", ")", "[", "]", "{", "}", ",", ":", ".", ";", "@", "=", "->", "+=", "-=", "*=", "/=", "//=", "%=", "@=", "&=",
    "|=", "^=", ">>=", "<<=", "**=", ":=", "==", "!=", "<", ">", "<=", ">=", "<<", ">>", "+", "-", "*", "/", "//",
    "%", "**", "&", "|", "^", "~", "!", "$", "?", "`", "\\", "..", "...", "((", "))", "[[", "]]", "{{", "}}", "()",
    "[]", "{}", "),", "):", "]:", "}:", "))", ")(", "=[", "={", "({", "})", "('", "')", '["', '"]', ".(", ",)", "*(",
    "**{", "}}}", "{{{", ")]", "])", ",)", ":]", ":)", "::",
]  # fmt: skip

WORDS = [
    "a", "x", "b1", "_", "__", "é", "变", "self", "False", "None", "True", "and", "as", "assert", "async", "await",
    "break", "class", "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if",
    "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with",
    "yield", "match", "case", "type", "print", "r", "b", "f", "rb", "Rb", "fr", "RF", "u", "t", "e", "E", "j", "J",
    "o", "X0", "_1", "not-in",
]  # fmt: skip

DIGITS = [
    "0", "1", "00", "07", "1e", "1e+", "1e-1", "1_", "1_0", "0x", "0xf", "0x_", "0b", "0b2", "0o", "1.", ".1", "1..",
    "1.e", "1j", "1e5j", "1if", "0xfor", "1_000.5_0", "9999", "1__0", "0_",
]  # fmt: skip

PREFIXES = ("r", "b", "f", "rb", "fr", "Rf", "u", "B", "F")

QUOTES = [
    "'", '"', "''", '""', "'''", '"""', "''''", '"""""', "'\"'", '"\'"', "'\n", '"\n', "'''\n", '"""\n', "\\'", '\\"',
    *(prefix + quote for prefix in PREFIXES for quote in ("'", '"', "'''", '"""')),
    "'a'", '"b"', "b''", "f''", "f'{", 'f"{x}', "'''a\n", '"""doc\n    """', "f'''{x\n}'''", "'\\\n", "rb'\\'",
    "'\\x4", "\\N{", "\\N{DASH}", "\\u12", "\\\\", "\\", "\\n", "\\{",
]  # fmt: skip

F_STRINGS = [
    "{", "}", "{{", "}}", "{x}", "{x", "{x!", "{x!r", "{x!r}", "{x!r:", "{x!r:>{w}}", "{x:>{w}}}", "{x:{w}.{p}f}",
    ":>{", "}}'", "}'", '}"', "'}", '"}', "{x=}", "{x=", "=", "=!r}", "!r", "!s}", "!r:", ":%", "{'a'}", "{f'",
    '{f"{', '}}"}\'', "{{x}}", "{lambda", "{(lambda:", "x:", "{x:=5}", "{(x:=5)}", "{*a}", "{{{", "}}}", "%Y-%m",
    "{x}{y}", ":}}", ":{{", "{x!=y}", "{x:!r}", "{x!r=}",
]  # fmt: skip

BREAKS = [
    "\n", "\n\n", "\r\n", "\r", "\n ", "\n  ", "\n    ", "\n        ", "\n\t", "\n\t\t", "\n \t", "\n\t ", "\n\f",
    "\n  \f  ", "\n    \n", "\n\t\n  ", "\n# c\n", "\n  # c\n    ", "# c", " # c", "# é\n", "#", "#\n\n", "# '''\n",
    "\n\f# c\n  x", "\\\n", " \\\n", "\n\\\n", "\n  \\\n", "\n  \\\n  x", "\\\n\n", "\\\r\n", "\\\r",
    "\n\t\\\n \\\n  y", "\\\n\\\n", "\\\n#", "\n    x", "\n  y = 1\n", "\n\tz", "\nif x:\n", "\n    if x:\n        ",
    "\nelse:\n", "\n  else:", "\n)", "\n]", "\n    }", ":\n", ":\n    ", ":\n\t", ":\n        pass\n", ";\n",
    ": # c\n  ", "\nx\n  y", "\nif x:\n y\n  z", "(\n", ",\n    ", "\n@", "\n...", "\n'", '\n"""', "\n  f'",
    "\nmatch x:\n case", "\n  é", "\nfrom .. import", "\nlambda", "\n1", "\n  )",
]  # fmt: skip

BLANKS = [
    " ", "  ", "    ", " " * 8, " " * 16, "\t", "\t\t", " \t", "\t ", "\f", " \f", "\xa0", "\u3000", "\ufeff", "\0",
    "\x0b",
]  # fmt: skip

PARTS = [
    b"\xc3", b"\xa9", b"\xe5\x8f", b"\x98", b"\xf0\x9f", b"\x98\x80", b"\xff", b"\xc0\x80", b"\xed\xa0\x80",
    b"\xc3\xa9\xc3",
]  # fmt: skip

STATEMENTS = [
    "def f(", "def f():\n", "class A:\n    ", "if x:\n    y\nelse:\n    z\n", "import a.b as c", "from . import (",
    "x = 1\n", "return\n", "pass\n", "for x in y:\n  ", "try:\n    a\nexcept", "lambda x, *, y=1:", "x if y else z",
    "not in", "is not", "print(x)", "a.b.c", "[x for x in", "{a: b}", "async def f(): await", "global a\n",
    "del a, b\n", "raise x from", "x: int = ", "1,", "(" * 30, ")" * 30, "(" * 120, "[{(" * 25, ")}]" * 25, "a" * 300,
    "#" * 300, " " * 300, "\t" * 200, "\n" * 300, "- " * 150, "not " * 100, "1+" * 200, "'" + "a" * 300 + "'",
    "f'{x}'" * 60, "\\\n" * 100, ";" * 9, "a;" * 30, ".a" * 100,
]  # fmt: skip

PYTHON_FRAGMENTS: list[str | bytes] = [
    *(PUNCTUATION * 2 + WORDS + DIGITS + QUOTES + F_STRINGS * 2 + BREAKS * 2 + BLANKS + STATEMENTS),
    *PARTS,
]


def filled(fill: Callable[[Words], None], vocabulary: Vocabulary) -> Words:
    words = np.full((vocabulary.size + 31) // 32, 0xDEADBEEF, np.uint32)
    fill(words)
    return words


def bits(words: Words, vocabulary: Vocabulary) -> NDArray[np.bool_]:
    unpacked = np.unpackbits(words.view(np.uint8), bitorder="little")
    assert not unpacked[vocabulary.size :].any(), "bits beyond the vocabulary"
    return unpacked[: vocabulary.size].astype(np.bool_)


def difference(words: Words, plain: Words, vocabulary: Vocabulary) -> str:
    found, expected = bits(words, vocabulary), bits(plain, vocabulary)
    more = [vocabulary.token_bytes(int(token)) for token in np.flatnonzero(found & ~expected)]
    lost = [vocabulary.token_bytes(int(token)) for token in np.flatnonzero(~found & expected)]
    shown = [[(token[:40], len(token)) for token in tokens[:8]] for tokens in (more, lost)]
    return f"{len(more)} too many {shown[0]}, {len(lost)} lost {shown[1]}"
