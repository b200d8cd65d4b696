"""Floors on real files: texts drawn under one are judged by tokenize, which knows nothing of the engine."""

from __future__ import annotations

import ast
import io
import json
import os
import random
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from fim_server import Language, Vocabulary
from fim_server.errors import SearchLimitError
from fim_server.language.session import Session

CUTS = 4000 if os.environ.get("FIM_SERVER_LONG") else 150

PIECES = [
    *(chr(code) for code in range(32, 127) if code != 92),  # tokenize reads a joined line's column otherwise
    "\n", "\n    ", "\n        ", "\n\n", "):\n", ")\n", ")", "]", "}", "(", "[", "{", ")(", "])", "),",
    "x", "self", "def f(", "if x:\n", "else:\n", "return ", "for x in ", "# ", '"', '"a"', "x)\n    x(", ")\nx(",
    "\nx = (",
]  # fmt: skip

VOCABULARY = Vocabulary([b"<end>", *(piece.encode() for piece in PIECES)], [0])


def sources() -> list[str]:
    folder = Path(ast.__file__).parent
    texts = [path.read_text(encoding="utf-8", errors="ignore") for path in sorted(folder.glob("*.py"))]
    return [text for text in texts if 300 < len(text) < 9000 and text.isascii() and "\f" not in text]


def drawn(session: Session, rng: random.Random) -> str | None:
    """A complete middle: some random tokens of the mask, then a shortest end."""
    matcher, state = session.matcher(VOCABULARY), session.start()
    middle = b""
    for _ in range(rng.randrange(12)):
        allowed = [token for token in matcher.mask().nonzero()[0].tolist() if token]
        brackets = [token for token in allowed if set(PIECES[token - 1]) & set("()[]{}\n")]
        token = rng.choice(brackets if brackets and rng.random() < 0.6 else allowed)
        matcher.commit(token)
        middle += PIECES[token - 1].encode()
    assert state.advance(middle) == len(middle), "what masks allow is viable"
    try:
        end = state.shortest_completion()
    except SearchLimitError:
        return None
    assert end is not None, "what is viable can be completed"
    return middle.decode() + end


class Tokens:
    """The brackets and lines of a program."""

    def __init__(self, text: str) -> None:
        starts = [0]
        for line in io.StringIO(text):
            starts.append(starts[-1] + len(line))
        self.brackets: list[tuple[int, int]] = []
        """End of each bracket, and its effect on the depth."""
        self.lines: list[tuple[int, int]] = []
        """Offset of the first symbol of each logical line, and its column."""
        self.blocks: list[tuple[int, list[int]]] = []
        """By line as well: the columns of the open blocks."""
        self.strings: list[tuple[int, int]] = []
        stack, first = [0], True
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            begin, end = (starts[row - 1] + column for row, column in (token.start, token.end))
            if token.type == tokenize.INDENT:
                stack = [*stack, token.end[1]]
            elif token.type == tokenize.DEDENT:
                stack = stack[:-1]
            elif token.type == tokenize.NEWLINE:
                first = True
            elif token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.ENDMARKER):
                if first:
                    self.lines.append((begin, token.start[1]))
                    self.blocks.append((begin, stack))
                first = False
                if token.type == tokenize.STRING:
                    self.strings.append((begin, end))
                elif token.type == tokenize.OP and token.string in "()[]{}":
                    self.brackets.append((end, 1 if token.string in "([{" else -1))

    def depth(self, at: int) -> int:
        return sum(opens for end, opens in self.brackets if end <= at)


def cuts(rng: random.Random, count: int) -> Iterator[tuple[str, int, int, Tokens]]:
    texts = sources()
    known: dict[str, Tokens] = {}
    for _ in range(count):
        text = rng.choice(texts)
        tokens = known[text] = known.get(text) or Tokens(text)
        begin = rng.randrange(len(text))
        if tokens.brackets and rng.random() < 0.7:
            begin = min(len(text), max(0, rng.choice(tokens.brackets)[0] + rng.randrange(-3, 8)))
        end = min(len(text), begin + int(rng.expovariate(1 / 15)))
        if not any(first < at < last for first, last in tokens.strings for at in (begin, end)):
            yield text, begin, end, tokens


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("floor", ["brackets", "block"])
def test_python_texts_keep_the_floor(floor: str) -> None:
    rng = random.Random(17)
    language = Language.load("python", "{}.{}".format(*sys.version_info))  # as ast and tokenize read it
    limited = refused = 0
    for text, begin, end, tokens in cuts(rng, CUTS):
        left, right = text[:begin], text[end:]
        session = language.open(left, right)
        floored = session.floored(floor)
        if floored.floor == "off" or not floored.kept:
            continue
        limited += 1
        for under, judged in ((floored, True), (session, False)):
            middle = drawn(under, rng)
            if middle is None or "\\" in middle:  # tokenize reads a joined line's column otherwise
                continue
            program = left + middle + right
            ast.parse(program)
            found = Tokens(program)
            last = begin + len(middle)
            if floor == "brackets":
                own = [end for end, opens in found.brackets if begin < end <= last and opens < 0]
                kept = all(found.depth(at) >= floored.kept for at in own)
            else:
                column = next((stack for at, stack in reversed(tokens.blocks) if at < begin), [0])
                line = left[left.rfind("\n") + 1 :]
                if not tokens_open(tokens, begin) and not line.strip(" "):
                    column = [block for block in column if block <= len(line)]
                kept = all(at >= last or at < begin or own >= column[-1] for at, own in found.lines)
            assert kept or not judged, (floor, left[-80:], middle, right[:80])
            refused += not kept
            verdict = floored.check(middle)
            assert verdict.complete == kept, (floor, left[-80:], middle, right[:80])
    assert limited > CUTS // 10
    assert refused > CUTS // 50


def tokens_open(tokens: Tokens, at: int) -> bool:
    return tokens.depth(at) > 0


def test_the_floor_is_what_left_opens_and_right_closes() -> None:
    language = Language.load("python")
    rng = random.Random(5)
    asked = 0
    for text, begin, end, tokens in cuts(rng, CUTS):
        floored = language.open(text[:begin], text[end:]).floored("brackets")
        expected = min(tokens.depth(begin), tokens.depth(end))
        if floored.floor == "off" or expected == 0:
            continue
        asked += 1
        assert floored.kept == expected, (text[begin - 80 : begin], text[end : end + 80])
    assert asked > CUTS // 20


def test_json_texts_keep_the_floor() -> None:
    rng = random.Random(3)
    language = Language.load("json")
    value = {"a": [1, {"b": [[2, 3], {}, []], "c": {"d": [4, {"e": None}]}}], "f": [[[5]], {"g": True}]}
    text = json.dumps(value)
    limited = refused = 0
    for _ in range(CUTS):
        begin = rng.randrange(len(text))
        end = min(len(text), begin + rng.randrange(20))
        left, right = text[:begin], text[end:]
        session = language.open(left, right)
        floored = session.floored("brackets")
        level = floored.kept
        limited += level > 0
        for under in (floored, session):
            middle = drawn(under, rng)
            if middle is None:
                continue
            json.loads(left + middle + right)
            depths = depths_of(left + middle + right)
            kept = all(
                depths[at] >= level for at in range(begin + 1, begin + len(middle) + 1) if depths[at] < depths[at - 1]
            )
            assert floored.check(middle).complete == kept, (left, middle, right, level)
            refused += not kept
    assert limited > CUTS // 4
    assert refused > 3


def depths_of(text: str) -> list[int]:
    """Depths after each number of characters of a JSON text."""
    depths, in_string, at = [0], False, 0
    while at < len(text):
        char = text[at]
        step = 2 if in_string and char == "\\" else 1
        if char == '"':
            in_string = not in_string
        opens = 0 if in_string else (char in "[{") - (char in "]}")
        depths.extend([depths[-1] + opens] * step)
        at += step
    return depths


def test_where_no_middle_keeps_the_floor_the_session_says_off() -> None:
    session = Language.load("python").open("x = (a", "]\n")
    floored = session.floored("brackets")
    assert session.guarantee == "exact"
    assert floored is session
    assert floored.floor == "off"


def test_an_escape_is_refused_with_the_floor_alone() -> None:
    session = Language.load("python").open("def f():\n    x = g(a, ", ")\n    return x\n")
    assert session.check("b)\n    y = h(c").complete
    brackets = session.floored("brackets")
    assert brackets.floor == "brackets"
    assert not brackets.check("b)\n    y = h(c").viable
    assert brackets.check("h(b)(c), d").complete
    block = session.floored("block")
    assert block.check("b)\n    y = h(c").complete
    assert session.check("b)\ndef k():\n    x = g(a").complete
    assert not block.check("b)\ndef k():\n    x = g(a").viable
    assert session.floored("off") is session
    with pytest.raises(ValueError, match="brackets"):
        session.floored("braces")
