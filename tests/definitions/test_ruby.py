"""Ruby against a plain reader, on random texts and cuts of them.

The long form (FIM_SERVER_LONG=1) reads 60,000 texts; FIM_SERVER_SEED draws others.
"""

from __future__ import annotations

import os
import random
import tomllib
from pathlib import Path

import pytest

from fim_server import Language
from support.languages.ruby_twin import Reader

TEXTS = 60_000 if os.environ.get("FIM_SERVER_LONG") == "1" else 3_000
SEED = int(os.environ.get("FIM_SERVER_SEED", "0"))
WRITTEN = tomllib.loads(Path(__file__).with_name("token_tree_texts.toml").read_text(encoding="utf-8"))["ruby"]
PIECES = (
    *(
        "a",
        "a ",
        "b? ",
        "if ",
        "end ",
        "x:",
        "A::",
        ".then ",
        "$'",
        "@a",
        ":b",
        ":/",
        "1",
        "=",
        ",",
        "|",
        ".",
        "..",
        "\\\n",
        "# '",
    ),
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "()",
        '"',
        '"',
        "'",
        "'\\''",
        "`",
        '"#{',
        "#{",
        "/",
        "/ ",
        "/'/i",
        "/#{",
        "%",
        "% ",
        "?'",
        "? ",
        "<",
        "<<",
    ),
    *("%(", "%w[", "%q{", "%r!'!", "%<'>", "%,", "\n", "\n", "\n", " ", "\t", "é", "\\"),
    *("\n=begin '\n", "\n=end '", "\n__END__", "=begin", "class << self", "def /", "def `"),
)
HEADS = ("<<~SQL", "<<-EOS", "<<~'RUBY'", '<<~"A"', "<<B", "<<~eos", "<<-c", "<<~`A`")
LINES = ("\nSQL", "\n EOS", "\nRUBY", "\n\tA", "\nB", "\neos", "\nc", "\nend", "\n'", "\nSQL x", "\nA\r")
WHOLE = (
    *(
        "f(<<~SQL, 1)\n'\n SQL\n",
        "f <<-EOS, [\n(\nEOS\n1]\n",
        "g(<<~A, <<~B)\n(\nA\n'\nB\n",
        "x =~ /'/\n",
        "y / 2\n",
        '"#{a("b")}"',
    ),
    *(
        "%w[a [b] ']",
        "%(a#{%q{}})\n",
        "c ? d : e\n",
        "?'\n",
        '{a: /"/}\n',
        "h(g(<<~A), k(<<~eos))\n'\nA\n(\neos\n",
        "\n=begin\n'\n=end\n",
    ),
    *("i <<~c do |j|\n'\nend\nc\n", "\n__END__\n'"),
)


def text_of(rng: random.Random) -> str:
    """Return a random text; half of them are made of lines that are whole, with at most a few changes."""
    if rng.random() < 0.5:
        return "".join(rng.choice((*PIECES, *PIECES, *HEADS, *LINES)) for _ in range(rng.randrange(9)))
    parts = [rng.choice(WHOLE) for _ in range(rng.randrange(1, 4))]
    for _ in range(rng.choice((0, 0, 1, 2))):
        at = rng.randrange(len(parts))
        cut = rng.randrange(len(parts[at]) + 1)
        piece = rng.choice((*PIECES, *HEADS, *LINES, ""))
        parts[at] = parts[at][:cut] + piece + parts[at][cut + rng.randrange(2) :]
    return "".join(parts)


def test_ruby_as_a_plain_reader_reads_it() -> None:
    language, rng = Language.load("ruby"), random.Random(f"ruby {SEED}")
    counts = {True: 0, False: 0}
    for _ in range(TEXTS):
        text = text_of(rng)
        expected = Reader(text).takes()
        counts[expected] += 1
        start, end = sorted(rng.choices(range(len(text) + 1), k=2))
        assert language.open("", "").check(text).complete == expected, text
        cut = language.open(text[:start], text[end:]).check(text[start:end])
        assert cut.complete == expected, (text[:start], text[start:end], text[end:])
    assert min(counts.values()) > TEXTS / 6, counts


@pytest.mark.parametrize("text", WRITTEN["accepted"])
def test_the_reader_takes(text: str) -> None:
    assert Reader(text).takes()


@pytest.mark.parametrize("text", WRITTEN["refused"])
def test_the_reader_refuses(text: str) -> None:
    assert not Reader(text).takes()
