"""Shapes: middles in a regular language, against brute force.

The `regex` package judges shapes. The random languages' own oracle judges programs. In Python and JSON, sessions
without a shape judge them, which other tests compare with the parsers.

Three things are claimed, and each test names the one it is about:

- *complete* is exact both ways: the shape has the middle, and the language has left + middle + right.
- A viable middle is never refused, whatever the shape.
- A middle that is not viable is refused, if a blank can stand anywhere without changing the shape's state (as in
  `Shape.lines`). Other shapes may hold more texts viable, because two lexemes may need a blank between them.

The long form (FIM_SERVER_LONG=1) takes more of everything.
"""

from __future__ import annotations

import itertools
import json
import os
import random
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import regex
from numpy.typing import NDArray

from fim_server import Language, LanguageError, Matcher, Session, Vocabulary, _core
from fim_server.errors import SearchLimitError
from fim_server.language.definition import compile as grammar
from fim_server.language.shapes import SINGLE_LINE, Shape
from support.engine.corpus import cuts, python
from support.languages.file_starts import StartOracle, compiled, random_language
from support.languages.toys import SEPARATOR, Oracle, Toy, random_toy

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = 11
TOYS = 3_000 if LONG else 120
TOKENIZER = Path(__file__).parents[2] / "fim_server" / "models" / "embedded" / "tokenizer.json"
BYTES = 256  # the end token of `byte_vocabulary`, whose other tokens are the bytes


@cache
def byte_vocabulary() -> Vocabulary:
    return Vocabulary([*(bytes([byte]) for byte in range(256)), None], [BYTES])


@cache
def embedded_vocabulary() -> Vocabulary:
    return Vocabulary.from_file(TOKENIZER)


@cache
def json_language() -> Language:
    return Language.load("json")


OTHER_BREAKS = frozenset("\r\u2028\u2029")
"""Line breaks that no shape of lines has."""


def has_shape(shape: Shape | str, text: str) -> bool:
    if isinstance(shape, str):
        shape = Shape.regex(shape)
    if shape.most_lines is not None:
        return text.count("\n") < shape.most_lines and not OTHER_BREAKS.intersection(text)
    # Rust's `\w` and `\s` are those of `regex`, and `.` leaves out the line feed alone in both.
    return regex.fullmatch(shape.pattern or "", text) is not None


def allowed_bytes(matcher: Matcher) -> list[int]:
    """Return the bytes that may follow, by a matcher over `byte_vocabulary`, without the end token."""
    return [int(token) for token in np.flatnonzero(matcher.mask()) if token != BYTES]


def commit_all(matcher: Matcher, text: bytes) -> int:
    """Commits a text byte by byte up to the first one that is refused; returns how many there were."""
    for index, byte in enumerate(text):
        if not matcher.allows(byte):
            with pytest.raises(ValueError, match="not allowed"):
                matcher.commit(byte)
            return index
        matcher.commit(byte)
    return len(text)


def forced_by_definition(matcher: Matcher, most: int) -> bytes:
    """Return the bytes that follow while there is one only and the middle is incomplete."""
    found = b""
    while len(found) < most and not matcher.is_complete():
        allowed = allowed_bytes(matcher)
        if len(allowed) != 1:
            break
        found += bytes(allowed)
        matcher.commit(allowed[0])
    matcher.rollback(len(found))
    return found


def search(matcher: Matcher, letters: str, longest: int, expansions: int) -> bytes | None:
    """A text that completes the middle, of the shortest: breadth first over what the matcher itself allows.

    The matcher is left as it was.
    """
    queue: deque[bytes] = deque([b""])
    while queue and expansions:
        expansions -= 1
        text = queue.popleft()
        assert commit_all(matcher, text) == len(text)
        whole = matcher.is_complete()
        if not whole and len(text) < longest:
            queue.extend(text + letter.encode() for letter in letters if matcher.allows(ord(letter)))
        matcher.rollback(len(text))
        if whole:
            return text
    return None


# ---------------------------------------------------------------- random languages

LONGEST = 5  # letters of a middle that brute force knows to be whole
TRIED = 4  # letters of the middles that are tried in every order
WITNESS = 9  # letters of a completion that the search goes on to at first


@dataclass(frozen=True)
class ToyShape:
    """A shape over a random language's letters.

    Attributes:
        shape: The shape.
        exact: A blank can stand anywhere in it without changing its state.
    """

    shape: Shape
    exact: bool


def random_regex(rng: random.Random, letters: str, gap: str, depth: int = 3) -> str:
    """A regular expression over some letters, with `gap` after each."""
    match rng.randrange(7) if depth else 0:
        case 0 | 1:
            return rng.choice(letters) + gap
        case 2 | 3:
            return "".join(random_regex(rng, letters, gap, depth - 1) for _ in range(rng.randint(2, 3)))
        case 4:
            return f"(?:{random_regex(rng, letters, gap, depth - 1)}|{random_regex(rng, letters, gap, depth - 1)})"
        case 5:
            return f"(?:{random_regex(rng, letters, gap, depth - 1)}){rng.choice('*+?')}"
        case _:
            return f"(?:{'|'.join(letter + gap for letter in letters)})*"


def random_shape(rng: random.Random) -> ToyShape:
    if rng.random() < 0.5:
        # The blank loops in each state: those are the shapes of which viability is exact.
        gap = f"{SEPARATOR}*"
        return ToyShape(Shape.regex(gap + random_regex(rng, "ab", gap)), exact=True)
    return ToyShape(Shape.regex(random_regex(rng, "ab" + SEPARATOR, "")), exact=False)


class LineOracle(Oracle):
    """Random languages in which a line feed is a blank like `c`."""

    def __init__(self, toy: Toy) -> None:
        super().__init__(toy)
        self.compiled[-1] = ("GAP", False, 0, regex.compile(f"[{SEPARATOR}\n]+"))


def engine_language(toy: Toy, lines: bool) -> _core.Language | None:
    spec = toy.spec()
    if lines:
        spec["lexemes"][-1]["pattern"] = f"[{SEPARATOR}\n]+"
    try:
        return _core.Language(json.dumps(spec))
    except LanguageError as error:
        if "no text at all" not in str(error):
            raise
        return None


def separated_toys(count: int, seed: int) -> Iterator[tuple[int, Toy]]:
    for index in itertools.count():
        toy = random_toy(random.Random(seed * 1_000_003 + index))
        if toy.separated:
            yield index, toy
            count -= 1
        if not count:
            return


def texts_over(letters: str, longest: int) -> Iterator[str]:
    for length in range(longest + 1):
        yield from ("".join(chosen) for chosen in itertools.product(letters, repeat=length))


def shaped_core(language: _core.Language, shape: Shape) -> _core.Language:
    return language.matching(shape.pattern or "") if shape.most_lines is None else language.lines(shape.most_lines)


@dataclass
class Tree:
    """All short middles of one pair of contexts in the engine: those that it allows, and whether they are whole."""

    matcher: Matcher
    unshaped: _core.Session
    shape: Shape
    letters: str
    whole: frozenset[str]

    def shortest(self, text: str) -> bytes | None:
        """The shortest completion without a shape, if it happens to have the shape: it may be a long one."""
        state = self.unshaped.start()
        assert state.advance(text.encode()) == len(text)
        found = state.shortest_completion()
        assert found is not None
        return found if has_shape(self.shape, text + found.decode()) else None

    def walk(self, text: str, exact: bool, where: tuple[Any, ...], counts: Counter[str]) -> None:
        """Compares a middle that the matcher stands at, and all that follow."""
        matcher = self.matcher
        complete = matcher.is_complete()
        assert complete == (text in self.whole), (where, text)
        assert bool(matcher.mask()[BYTES]) == complete, (where, text)
        assert matcher.forced() == forced_by_definition(matcher, 256), (where, text)
        counts["complete"] += complete
        if text not in self.prefixes and not complete:
            # Brute force found nothing of `LONGEST` letters: a longer completion is searched for.
            completion = self.shortest(text) or search(matcher, self.letters, WITNESS, 500)
            if completion is None and exact:
                completion = search(matcher, self.letters, 2 * WITNESS, 60_000)
            counts["held viable" if completion is None else "late"] += 1
            assert completion is not None or not exact, (where, text, "nothing completes it")
        counts["viable"] += 1
        if len(text) == TRIED:
            return
        allowed = {chr(byte) for byte in allowed_bytes(matcher)}
        assert allowed <= set(self.letters), (where, text)
        for letter in self.letters:
            if letter in allowed:
                matcher.commit(ord(letter))
                self.walk(text + letter, exact, where, counts)
                matcher.rollback(1)
            else:
                counts["refused"] += 1
                assert text + letter not in self.prefixes, (where, text + letter, "is viable")

    def __post_init__(self) -> None:
        self.prefixes = {text[:end] for text in self.whole for end in range(len(text) + 1)}


def check_toy(
    language: _core.Language,
    oracle: Oracle,
    letters: str,
    found: ToyShape,
    contexts: tuple[str, str],
    counts: Counter[str],
) -> None:
    left, right = contexts
    where = (oracle.toy, found, left, right)
    whole = frozenset(
        text
        for text in texts_over(letters, LONGEST)
        if has_shape(found.shape, text) and oracle.member(left + text + right)
    )
    session = shaped_core(language, found.shape).open(left, right)
    matcher = Matcher(session.start().matcher(byte_vocabulary().core), byte_vocabulary())
    if session.guarantee == "none":
        counts["none"] += 1
        assert not whole, where
        assert not matcher.mask().any(), where
        assert matcher.forced() == b"", where
        return
    for text in whole:
        # The longest of them are not in the tree.
        assert commit_all(matcher, text.encode()) == len(text), (where, text)
        assert matcher.is_complete(), (where, text)
        matcher.rollback(len(text))
    Tree(matcher, language.open(left, right), found.shape, letters, whole).walk("", found.exact, where, counts)


def random_contexts(oracle: Oracle, rng: random.Random) -> tuple[str, str]:
    members = [text for text in oracle.texts(4) if oracle.member(text)]
    if not members or rng.random() < 0.2:
        wild = oracle.texts(2)
        return rng.choice(wild), rng.choice(wild)
    text = rng.choice(members)
    begin, end = sorted(rng.randint(0, len(text)) for _ in range(2))
    return text[:begin], text[end:]


@pytest.mark.parametrize("chunk", range(4))
def test_random_shapes_of_random_languages(chunk: int) -> None:
    """All claims, on shapes of both kinds."""
    counts: Counter[str] = Counter()
    for index, toy in separated_toys(TOYS // 4, SEED + chunk):
        language = engine_language(toy, lines=False)
        if language is None:
            continue
        oracle = Oracle(toy)
        rng = random.Random(index)
        for _ in range(3):
            found = random_shape(rng)
            try:
                check_toy(language, oracle, "ab" + SEPARATOR, found, random_contexts(oracle, rng), counts)
            except ValueError as error:
                # A blank that a lexeme goes on with, or a shape of too many states.
                assert "a blank can stand" in str(error) or "states" in str(error), (toy, found)  # noqa: PT017
                counts["refused shapes"] += 1
    print(dict(counts))
    assert min(counts[kind] for kind in ("complete", "viable", "refused", "none")) > 0, counts


def test_shapes_where_a_file_begins() -> None:
    """All claims, in languages with lexemes that stand at the first byte of a file alone."""
    counts: Counter[str] = Counter()
    for index in range(TOYS // 2):
        rng = random.Random(f"{SEED} starts {index}")
        toy, first, ignored = random_language(rng)
        language = compiled(toy, first, ignored) if toy.separated else None
        if language is None:
            continue
        oracle = StartOracle(toy, first, ignored)
        found = random_shape(rng)
        for _ in range(3):
            left, right = random_contexts(oracle, rng)
            try:
                check_toy(language, oracle, "ab" + SEPARATOR, found, (rng.choice(["", left]), right), counts)
            except ValueError as error:
                assert "a blank can stand" in str(error) or "states" in str(error), (toy, found)  # noqa: PT017
                counts["refused shapes"] += 1
    print(dict(counts))
    assert min(counts[kind] for kind in ("complete", "viable", "refused", "none")) > 0, counts


def test_lines_of_random_languages() -> None:
    """All claims: a blank changes nothing in a shape of some lines."""
    counts: Counter[str] = Counter()
    for index, toy in separated_toys(TOYS // 4, SEED + 50):
        language = engine_language(toy, lines=True)
        if language is None:
            continue
        oracle = LineOracle(toy)
        rng = random.Random(index)
        found = ToyShape(Shape.lines(rng.randint(1, 3)), exact=True)
        check_toy(language, oracle, "abc\n", found, random_contexts(oracle, rng), counts)
    print(dict(counts))
    assert min(counts[kind] for kind in ("complete", "viable", "refused")) > 0, counts


# ---------------------------------------------------------------- Python, brute force over pieces

# Layout, comments, joined lines, strings and fields, in few letters.
PIECES = ("a", " ", "\n", "    ", "(", ")", "+", ":", "if ", "#", "\\\n", '"', "{", "}", "=", "0")
NASTY = [
    ("", ""),
    ("x = (", ")\n"),
    ("x = (1", "\n"),
    ("if a:", "\nx = 1\n"),
    ("if a:\n", "\nx = 1\n"),
    ("if a:\n    ", "\nx = 1\n"),
    ("if a:\n  ", "  b\nelse:\n    c\n"),
    ("if a:\n    b\n", "else:\n    c\n"),
    ("if a:\n    b\n", "    c\n"),
    ("if a:\n    b", "    c\n"),
    ("x = 1", "y = 1\n"),
    ("x = 1 + \\\n", "\n"),
    ("x = [1, \\\n", "2]\n"),
    ("x = [ # a", "\n]\n"),
    ("x = 1 # a", "\nb\n"),
    ('x = """', '"""\n'),
    ('x = """a\n', 'b"""\n'),
    ("x = '", "'\n"),
    ("x = '\\", "'\n"),
    ('x = f"', '"\n'),
    ('x = f"{', '}"\n'),
    ('x = f"{a:', '}"\n'),
    ('x = f"""{a', '}\n{b}"""\n'),
    ("def f(", "):\n    pass\n"),
    ("def f(a", "\n    return a\n"),
    ("x = {", "1: 2}\n"),
    ("x", "x\n"),
    ("if a:\n    if b:\n        ", "\n    c\n"),
]
SHAPES: list[Shape | str] = [
    SINGLE_LINE,
    Shape.lines(2),
    Shape.lines(3),
    r"[^\r\n]*",
    "[^#]*",
    r"\w*",
    r"a \+ a",
    r" a",
    r"\w+(?: \+ \w+)*",
    r"\)?\n\s*\w+",
    r"(?s:.{0,4})",
    r"a\n",
    "\\s*a\\s*",
    r"\n    \w+",
    r"[^\S\n]*\n?[^\n]*",
    "",
]


LONGER = ("a + a", "a + a + a", "\n    a", "\n    a0", ")\n    a", "\n  a", "a  +  a", " a + a ")


@cache
def python_middles(left: str, right: str) -> tuple[str, ...]:
    """Middles of a few pieces that are whole, by a session without a shape."""
    session = python().open(left, right)
    found: list[str] = []
    seen = {""}
    queue = deque([("", session.start())])
    most = 60_000 if LONG else 1_500
    while queue and len(seen) < most:
        text, state = queue.popleft()
        if state.is_complete():
            found.append(text)
        for piece in PIECES:
            if text + piece not in seen:
                fork = state.fork()
                if fork.advance(piece) == len(piece):
                    seen.add(text + piece)
                    queue.append((text + piece, fork))
    # The search does not get as far as these.
    found += [middle for middle in LONGER if session.check(middle).complete]
    return tuple(found)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_whole_middles_of_python_are_taken(shape: Shape | str) -> None:
    """A viable middle is never refused, and complete is exact: middles of a few pieces in every order."""
    taken = 0
    wrong = []
    for left, right in NASTY:
        session = python().open(left, right)
        matcher = session.matcher(byte_vocabulary(), shape)
        for middle in python_middles(left, right):
            data = middle.encode()
            accepted = commit_all(matcher, data)
            complete = accepted == len(data) and matcher.is_complete()
            matcher.rollback(accepted)
            if complete != has_shape(shape, middle):
                wrong.append((left, right, middle, data[:accepted]))
            taken += complete
    wrong.sort(key=lambda case: sum(map(len, case)))
    assert not wrong, f"{len(wrong)} of {taken + len(wrong)}; {wrong[:3]}"
    assert taken


# ---------------------------------------------------------------- real files

CUTS = 400 if LONG else 30
LIMIT = 6_000


def tokens_of(text: str) -> list[int]:
    """A text as tokens: the longest that fits, one after the other."""
    ids = token_ids()
    data, at, found = text.encode(), 0, []
    while at < len(data):
        length = next(length for length in range(min(16, len(data) - at), 0, -1) if data[at : at + length] in ids)
        found.append(ids[data[at : at + length]])
        at += length
    return found


@cache
def token_ids() -> dict[bytes, int]:
    vocabulary = embedded_vocabulary()
    return {vocabulary.token_bytes(token): token for token in range(vocabulary.size) if vocabulary.token_bytes(token)}


def test_true_middles_of_files_are_taken() -> None:
    """Token by token, as SINGLE_LINE or the fewest lines that they have; with one line less they are refused."""
    vocabulary = embedded_vocabulary()
    counts: Counter[int] = Counter()
    for cut in islice(cuts(random.Random(SEED), LIMIT, 2), CUTS):
        lines = cut.middle.count("\n") + 1
        if lines > 5:
            continue
        session = python().open(cut.left, cut.right)
        # A cut before a lone surrogate or a form feed may be no program to the engine; what it takes is compared.
        whole = session.check(cut.middle).complete
        matcher = session.matcher(vocabulary, SINGLE_LINE if lines == 1 else Shape.lines(lines))
        if whole:
            for token in tokens_of(cut.middle):
                assert matcher.allows(token), f"{cut}: {vocabulary.token_bytes(token)!r}"
                matcher.commit(token)
            assert matcher.is_complete(), cut
            counts[lines] += 1
        if lines > 1:
            fewer = session.matcher(byte_vocabulary(), Shape.lines(lines - 1))
            last = cut.middle.rindex("\n")
            assert commit_all(fewer, cut.middle.encode()) <= len(cut.middle[:last].encode()), cut
    print(dict(counts))
    assert counts[1]


# ---------------------------------------------------------------- nothing gets stuck

ENDINGS = (
    *("", "0", "a", "pass", ": pass", ":pass", "=0", " = 0", "()", "a: pass", "(): pass", "''", "\n", "\n0\n"),
    *("ass A", "ss A", "s A"),  # a cut may stand between `cl` and `():`
)
PIECES_OF_ENDINGS = (
    *(")", "]", "}", "'", '"', "'''", '"""', "0", "a", ":0", "=0", "}'", '}"', " else 0", " ", " in a", " import a"),
    *("(", "[", "{", ",", ";", ":", "=", "\n", "*", "#"),
)


def witness(session: Session, shape: Shape | str, middle: bytes, matcher: Matcher, letters: str) -> bytes | None:
    """A text that ends a middle in its shape.

    Cheap ones first: the shortest of all without a shape, usual endings; then a search over the matcher's own bytes.
    """
    state = session.start()
    assert state.advance(middle) == len(middle)

    def fits(candidate: str) -> bool:
        taken = commit_all(matcher, candidate.encode())
        found = taken == len(candidate.encode()) and matcher.is_complete()
        matcher.rollback(taken)
        return found

    candidates = list(ENDINGS)
    for before in ("", "\n", ";", "; "):
        fork = state.fork()
        if fork.advance(before) == len(before):
            try:
                shortest = before + (fork.shortest_completion() or "")
            except SearchLimitError:
                continue
            # Statements can stand on one line.
            candidates += [shortest.replace("\n", instead) for instead in ("\n", ";", "\r")]
    for candidate in candidates:
        if fits(candidate):
            return candidate.encode()
    # Pieces first, as they go far in few steps; then letters.
    queue: deque[str] = deque([""])
    for _ in range(1_500):
        if not queue:
            break
        text = queue.popleft()
        if fits(text):
            return text.encode()
        for piece in PIECES_OF_ENDINGS:
            taken = commit_all(matcher, (text + piece).encode())
            if taken == len((text + piece).encode()):
                queue.append(text + piece)
            matcher.rollback(taken)
    return search(matcher, letters, 12, 3_000)


# Shapes in which a blank can stand anywhere: viability is exact.
EXACT: list[Shape | str] = [SINGLE_LINE, Shape.lines(2), Shape.lines(4), r"[^\r\n]*", "[^;]*", r"[^\r\n#]*"]
LETTERS = ")]}'\"0a:= \n,e"


def finish(state_of: bytes, matcher: Matcher) -> bytes:
    """The bytes that a character needs to be whole: a lead byte's least followers, by what the matcher allows."""
    found = b""
    while True:
        try:
            (state_of + found).decode()
        except UnicodeDecodeError:
            byte = next(byte for byte in allowed_bytes(matcher) if byte >= 0x80)
            matcher.commit(byte)
            found += bytes([byte])
        else:
            return found


def check_walk(rng: random.Random, session: Session, shape: Shape | str, steps: int, where: str) -> int:
    """A walk along allowed tokens: from each state something completes it, and its text never leaves the shape."""
    if session._with(shape).guarantee == "none":
        return 0  # no middle of the shape connects these contexts: nothing is allowed from the start
    vocabulary = embedded_vocabulary()
    matcher = session.matcher(vocabulary, shape)
    bytewise = session.matcher(byte_vocabulary(), shape)
    text = b""
    for step in range(steps):
        mask = matcher.mask()
        assert mask[list(vocabulary.end_token_ids)].all() == matcher.is_complete()
        allowed = [t for t in np.flatnonzero(mask).tolist() if t not in vocabulary.end_token_ids]
        if not allowed:
            assert matcher.is_complete(), f"{where} {shape}: stuck after {text!r}"
            return step
        # Short tokens are more of the kinds that open and close.
        token = rng.choice(
            allowed if rng.random() < 0.6 else [t for t in allowed if len(token_bytes(t)) < 2] or allowed
        )
        data = token_bytes(token)
        matcher.commit(token)
        assert commit_all(bytewise, data) == len(data), f"{where} {shape}: {text!r} + {data!r}"
        text += data
        rest = finish(text, bytewise)
        found = witness(session, shape, text + rest, bytewise, LETTERS)
        bytewise.rollback(len(rest))
        assert found is not None, f"{where} {shape}: nothing seems to complete {text + rest!r}"
        whole = (text + rest + found).decode()
        assert has_shape(shape, whole), f"{where} {shape}: {whole!r}"
        assert session.check(whole).complete, f"{where} {shape}: {whole!r}"
    return steps


def token_bytes(token: int) -> bytes:
    return embedded_vocabulary().token_bytes(token)


@pytest.mark.parametrize("shape", EXACT, ids=str)
def test_walks_in_nasty_contexts_never_get_stuck(shape: Shape | str) -> None:
    rng = random.Random(SEED)
    stuck = []
    for left, right in NASTY:
        if right.startswith("else"):
            continue  # `def f()->b` before `else:` is whole: no list of likely endings has all such
        session = python().open(left, right)
        for _ in range(20 if LONG else 2):
            try:
                check_walk(rng, session, shape, 4, f"{left!r} | {right!r}")
            except AssertionError as error:
                stuck.append(str(error).split("\n")[0])
    assert not stuck, "\n".join([str(len(stuck)), *sorted(stuck, key=len)[:8]])


def test_walks_in_files_never_get_stuck() -> None:
    rng = random.Random(SEED + 1)
    stuck = []
    for cut in islice(cuts(rng, 3_000, 2), 200 if LONG else 16):
        session = python().open(cut.left, cut.right)
        if session.guarantee == "none":
            continue
        try:
            check_walk(rng, session, rng.choice(EXACT), 5, str(cut))
        except AssertionError as error:
            stuck.append(str(error).split("\n")[0])
    assert not stuck, "\n".join([str(len(stuck)), *sorted(stuck, key=len)[:8]])


def python_verdict(left: str, right: str, shape: Shape | str, middle: str) -> tuple[int, bool]:
    """Return the number of accepted bytes of a middle, and whether it is complete."""
    matcher = python().open(left, right).matcher(byte_vocabulary(), shape)
    return commit_all(matcher, middle.encode()), matcher.is_complete()


def test_single_line_has_no_line_break_of_python() -> None:
    """A carriage return alone breaks lines in Python as well: the middle would be two statements."""
    assert python().open("x = 1", "\n").check("\ry = 2").complete
    assert python_verdict("x = 1", "\n", SINGLE_LINE, "\ry = 2")[0] == 0


# Found by the tests above, and minimised.
REFUSED_THOUGH_VIABLE = [
    # A blank that moves the shape on.
    ("x = (", ")\n", r"a \+ b", "a + b"),
    ("x = (", ")\n", " a", " a"),
    ("", "", " ", " "),
    # A line break in brackets, where it is a blank, that moves the shape on.
    ("x = (", ")\n", "a\n", "a\n"),
    # A line's start past the shape's first state.
    ("x = (1", "\n", r"\)\nb = 1", ")\nb = 1"),
    ("if a:", "\nx = 1\n", r"\n    b", "\n    b"),
    ("", "", r"\na", "\na"),
    # A comment up to the cursor, where R begins with the line break or is empty: no line break is needed in the middle.
    ("x = 1 # a", "\nb\n", r"[^\r\n]*", ""),
    ("x = 1 # a", "", r"[^\r\n]*", " b"),
    ("", "", r"[^\r\n]*", "a#"),
    # The cursor at the start of a line of a block, or in its indentation, and no line break in the shape.
    ("if a:\n    b\n", "    c\n", "", ""),
    ("if a:\n    b\n", "    c\n", r"[^\r\n]*", ""),
    ("if a:\n    b\n    ", "c\n", r"[^\r\n]*", ""),
    ("if a:\n    b\n  ", "  c\n", r"[^\r\n]*", ""),
]
TAKEN_THOUGH_STUCK = [
    # A comment or a backslash where a line begins needs the end of its line.
    ("if a:\n    ", "\nx = 1\n", r"[^\r\n]*", "#"),
    ("if a:\n", "\nx = 1\n", r"[^\r\n]*", "    #"),
    ("a\n", "b\n", r"[^\r\n]*", "\\"),
]


@pytest.mark.parametrize(("left", "right", "shape", "middle"), REFUSED_THOUGH_VIABLE)
def test_viable_middles_that_were_refused(left: str, right: str, shape: str, middle: str) -> None:
    taken, complete = python_verdict(left, right, shape, middle)
    assert taken == len(middle)
    assert complete == (has_shape(shape, middle) and python().open(left, right).check(middle).complete)


@pytest.mark.parametrize(("left", "right", "shape", "middle"), TAKEN_THOUGH_STUCK)
def test_stuck_middles_that_were_taken(left: str, right: str, shape: str, middle: str) -> None:
    assert python_verdict(left, right, shape, middle)[0] < len(middle)


# ---------------------------------------------------------------- JSON

JSON_CONTEXTS = [
    ("[1", "]"),
    ("[", ", 2]"),
    ('{"a": ', "}"),
    ('{"a": [', '], "b": 1}'),
    ('["', '"]'),
    ('{"a', '": 1}\n'),
    ("[1,\n", "\n]"),
    ("", "ue"),
    ("-", ".5"),
    ('"\\u0', '0"'),
]
JSON_PIECES = ("1", " ", "\n", ",", '"', "[", "]", "{", "}", ":", "a", "t", "r", "0", ".", "é")
JSON_SHAPES: list[tuple[Shape | str, bool]] = [
    (SINGLE_LINE, True),
    (Shape.lines(2), True),
    (r"[^\n]*", True),
    (r"[^,]*", True),
    (r"\d+(?:, \d+)*", False),
    (r"\s*\d\s*", False),
    ("[^ \n]*", False),
    ("", False),
    (", 1", False),
    ("é?1*", False),
]


@pytest.mark.parametrize(("shape", "exact"), JSON_SHAPES, ids=str)
def test_json(shape: Shape | str, exact: bool) -> None:
    """All claims, where right is not empty."""
    counts: Counter[str] = Counter()
    wrong = []
    for left, right in JSON_CONTEXTS:
        session = json_language().open(left, right)
        matcher = session.matcher(byte_vocabulary(), shape)
        queue = deque([("", session.start())])
        visited = 0
        while queue and visited < (20_000 if LONG else 300):
            visited += 1
            middle, state = queue.popleft()
            data = middle.encode()
            taken = commit_all(matcher, data)
            whole = has_shape(shape, middle) and state.is_complete()
            if whole != (taken == len(data) and matcher.is_complete()):
                wrong.append((left, right, middle, "whole" if whole else "not whole"))
            counts["whole"] += whole
            if taken == len(data) and not whole:
                shortest = state.shortest_completion()
                assert shortest is not None
                found = shortest.encode() if has_shape(shape, middle + shortest) else None
                if found is None:
                    found = search(matcher, '}]"10:,true \n', 8, 300)
                if found is not None:
                    assert has_shape(shape, middle + found.decode())
                elif exact:
                    wrong.append((left, right, middle, "stuck"))
            matcher.rollback(taken)
            for piece in JSON_PIECES:
                fork = state.fork()
                if fork.advance(piece) == len(piece.encode()) and (exact or len(middle) < 4):
                    queue.append((middle + piece, fork))
    wrong.sort(key=lambda case: sum(map(len, case)))
    assert not wrong, f"{len(wrong)}: {wrong[:4]}"
    assert counts["whole"] or shape == ", 1"


# ---------------------------------------------------------------- masks

MASK_SHAPES: list[Shape | str] = [
    *(Shape.lines(most) for most in range(1, 5)),
    "[a-z_][a-z0-9_]*",
    r"\w+(?: \+ \w+)*",
    "[^;]*",
    ".{0,20}",
    r"(?s:.{0,5})",
    "self",
    "a",
    "",
    "[éü]*",
    "(?:é|x)+ ?=? ?[ßa0]*",
    r"[^\r\n]*",
    r"(?:[^\n]*\n)*",
    "(?s:.*)",
]


@cache
def odd_vocabulary() -> Vocabulary:
    """Tokens of several lines, runs of blanks, parts of characters, and tokens that are the same bytes."""
    texts = [
        "\n", "\n\n", "\n\n\n", "\n    ", "\n        ", "\n    \n", "\n    a\n", "a\nb", "a\nb\nc", "\n#", "#\n", "# a",
        "\\\n", "\\\n\\\n", " \\\n ", "\r\n", "\r", "\r\n\r\n", ")\n", "):\n    ", "(\n", ":\n", ": \n ", '"""\n"""',
        '"""\n', "'\n", "pass\n", "pass", "else:\n", "\nelse:\n    ", " ", "  ", "    ", "\t", "\t\t", " \t ", "\f",
        "a", "ab", " a", "a ", "self", "sel", "f", "a + b", " + ", "+ ", " +", "x = 1; y", ";", "=", " = ", "==", "0",
        "00", "0.", ".", "é", "éé", "éa", "aé", "ü", "ß", "€", "😀", "\n😀", "f'", "f\"{", "{", "}", "}}", "{{", "}'",
        "'", '"', "''", '""', "return", "return ", "not in", "lambda: 0", "[0]", "](", ")]}", "()", "a(b)\n    c", "",
    ]  # fmt: skip
    parts = ["é".encode()[1:] + b"a", "a€".encode()[:-1], "a€".encode()[:-2], "€".encode()[1:], b"\x98\x80\n", b"\xff"]
    singles = [bytes([byte]) for byte in range(256)]
    return Vocabulary([*singles, *(text.encode() or None for text in texts), *parts, b"a", b"\n", None], [256 + 1])


def both_masks(matcher: Matcher, vocabulary: Vocabulary) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    size = (vocabulary.size + 31) // 32
    fast, plain = np.zeros(size, np.uint32), np.zeros(size, np.uint32)
    matcher.fill_mask(fast)
    matcher.fill_mask_plain(plain)
    return fast, plain


def assert_same(matcher: Matcher, vocabulary: Vocabulary, where: str) -> NDArray[np.uint32]:
    fast, plain = both_masks(matcher, vocabulary)
    wrong = np.flatnonzero(np.unpackbits((fast ^ plain).view(np.uint8), bitorder="little"))
    shown = [
        (vocabulary.token_bytes(int(token)), "table" if fast[token // 32] >> (token % 32) & 1 else "plain")
        for token in wrong[:6]
    ]
    assert not len(wrong), f"{where}: {len(wrong)} tokens, allowed by: {shown}"
    return fast


def check_masks(
    rng: random.Random, session: Session, shape: Shape | str, vocabulary: Vocabulary, start: str, where: str
) -> None:
    """The masks of a walk: with nothing kept, kept, after a commit and after taking back."""
    matcher = session.matcher(vocabulary, shape)
    ids = {vocabulary.token_bytes(token): token for token in range(vocabulary.size - 1, -1, -1)}
    text = b""
    for byte in start.encode():
        if not matcher.allows(ids[bytes([byte])]):
            break
        matcher.commit(ids[bytes([byte])])
        text += bytes([byte])
    masks = [assert_same(matcher, vocabulary, f"{where} {shape} {text!r}")]
    for _ in range(4):
        mask = matcher.mask()
        mask[list(vocabulary.end_token_ids)] = False
        allowed = np.flatnonzero(mask)
        if not len(allowed):
            break
        token = int(rng.choice(allowed.tolist()))
        matcher.commit(token)
        text += vocabulary.token_bytes(token)
        masks.append(assert_same(matcher, vocabulary, f"{where} {shape} {text!r}"))
    while True:
        assert (assert_same(matcher, vocabulary, where) == masks.pop()).all(), (where, shape)
        if not masks:
            return
        matcher.rollback(1)


@pytest.mark.parametrize("shape", MASK_SHAPES, ids=str)
def test_masks_are_those_of_the_plain_walk(shape: Shape | str) -> None:
    rng = random.Random(SEED)
    wrong = []
    starts = ["", "a", "a ", "#", "\n", "\n  ", "é", "(", "a +", "'", "\\\n"]
    for left, right in NASTY:
        session = python().open(left, right)
        for start in starts if LONG else ["", *rng.sample(starts, 2)]:
            try:
                check_masks(rng, session, shape, odd_vocabulary(), start, f"{left!r} | {right!r}")
            except AssertionError as error:
                wrong.append(str(error).split("\n")[0])
    assert not wrong, "\n".join([str(len(wrong)), *sorted(wrong, key=len)[:6]])


def test_masks_of_the_embedded_vocabulary_are_those_of_the_plain_walk() -> None:
    rng = random.Random(SEED)
    wrong = []
    for index, cut in enumerate(islice(cuts(rng, LIMIT, 2), 200 if LONG else 12)):
        session = python().open(cut.left, cut.right)
        for shape in MASK_SHAPES if LONG else (MASK_SHAPES[index % 4], *rng.sample(MASK_SHAPES, 2)):
            try:
                check_masks(rng, session, shape, embedded_vocabulary(), cut.middle[: rng.randrange(20)], str(cut))
            except AssertionError as error:
                wrong.append(str(error).split("\n")[0])
    assert not wrong, "\n".join([str(len(wrong)), *sorted(wrong, key=len)[:6]])


def test_masks_of_json_are_those_of_the_plain_walk() -> None:
    rng = random.Random(SEED)
    for (left, right), shape in itertools.product(JSON_CONTEXTS, MASK_SHAPES):
        session = json_language().open(left, right)
        check_masks(rng, session, shape, odd_vocabulary(), rng.choice(["", "1", '"é', "[\n"]), f"{left!r} | {right!r}")


def test_no_allowed_token_leaves_the_shape() -> None:
    """Each allowed token begins some text of the shape; of shapes of lines that is a matter of counting."""
    vocabulary = odd_vocabulary()
    for left, right in NASTY:
        session = python().open(left, right)
        for most in (1, 2, 3):
            matcher = session.matcher(vocabulary, Shape.lines(most))
            for token in np.flatnonzero(matcher.mask()).tolist():
                assert vocabulary.token_bytes(token).count(b"\n") < most
        matcher = session.matcher(vocabulary, "[^;é]*")
        for token in np.flatnonzero(matcher.mask()).tolist():
            assert regex.fullmatch("[^;é]*", vocabulary.token_bytes(token).decode(errors="replace"))


def test_forced_bytes_are_those_of_the_definition() -> None:
    rng = random.Random(SEED)
    counts: Counter[bool] = Counter()
    for shape in ["", "a", "self", "é|ê", "abc(?:def)?", r"[^\n]*", "(?:x = 1)?", r"0\.5", "(?:ab)*", "aé?b"]:
        for left, right in rng.sample(NASTY, 8):
            matcher = python().open(left, right).matcher(byte_vocabulary(), shape)
            for _ in range(5):
                expected = forced_by_definition(matcher, 256)
                assert matcher.forced() == expected, (shape, left, right)
                counts[bool(expected)] += 1
                allowed = allowed_bytes(matcher)
                if not allowed:
                    break
                matcher.commit(rng.choice(allowed))
    assert min(counts[True], counts[False]) > 10, counts


# ---------------------------------------------------------------- any text at all


def test_any_text_is_no_shape() -> None:
    """Masks, completeness and forced bytes are those without a shape."""
    rng = random.Random(SEED)
    vocabulary = odd_vocabulary()
    places = [(python(), left, right) for left, right in NASTY]
    places += [(json_language(), left, right) for left, right in JSON_CONTEXTS]
    for language, left, right in places:
        session = language.open(left, right)
        plain, shaped = session.matcher(vocabulary), session.matcher(vocabulary, "(?s:.*)")
        for _ in range(8):
            mask = plain.mask()
            wrong = [vocabulary.token_bytes(int(token)) for token in np.flatnonzero(mask != shaped.mask())]
            assert not wrong, (left, right, wrong[:8])
            assert plain.is_complete() == shaped.is_complete()
            assert plain.forced() == shaped.forced()
            mask[list(vocabulary.end_token_ids)] = False
            if not mask.any():
                break
            token = int(rng.choice(np.flatnonzero(mask).tolist()))
            plain.commit(token)
            shaped.commit(token)


def test_any_text_is_no_shape_in_files() -> None:
    rng = random.Random(SEED + 2)
    vocabulary = embedded_vocabulary()
    for cut in islice(cuts(rng, LIMIT, 2), 200 if LONG else 16):
        session = python().open(cut.left, cut.right)
        plain, shaped = session.matcher(vocabulary), session.matcher(vocabulary, "(?s:.*)")
        for token in tokens_of(cut.middle)[:6]:
            wrong = [token_bytes(int(token)) for token in np.flatnonzero(plain.mask() != shaped.mask())]
            assert not wrong, (str(cut), wrong[:8])
            if not plain.allows(token):
                break
            plain.commit(token)
            shaped.commit(token)


def test_a_shape_leaves_other_sessions_as_they_are() -> None:
    """The first session of a language has a shape; what it computes and shares is no less than others need."""
    vocabulary = odd_vocabulary()
    for name in ("python", "json"):
        session = Language(grammar.read_builtin(name, None)).open("", "")
        session.matcher(vocabulary, "(?s:.*)").mask()
        assert_same(session.matcher(vocabulary), vocabulary, name)


def test_a_shape_leaves_the_session_as_it_was() -> None:
    session = python().open("x = (", ")\n")
    vocabulary = odd_vocabulary()
    before = session.matcher(vocabulary).mask()
    for shape in MASK_SHAPES:
        session.matcher(vocabulary, shape).mask()
        assert (session.matcher(vocabulary).mask() == before).all()


# ---------------------------------------------------------------- shapes themselves, errors

WRONG_SHAPES: dict[str, Shape | str] = {
    "bad syntax": "(",
    "bad class": "[z-a]",
    "brackets the wrong way round": "a)(b",
    "several lines of bad syntax": "a\nb(\nc",
    "no text": "[^\\s\\S]",
    "no text after some": "a[^\\s\\S]",
    "look-ahead": "(?=a)a",
    "look-behind": "(?<=a)a",
    "back reference": "(a)\\1",
    "too many states": "(?:a|b)*a(?:a|b){40}",
    "too many characters": ".{0,500}",
    "too much": "(?:[a-z]{1000}){1000}",
    "no UTF-8": "(?-u:\\xff)",
    "no lines": Shape.lines(0),
    "fewer than no lines": Shape.lines(-1),
    "many lines": Shape.lines(17),
    "lines beyond all numbers": Shape.lines(1 << 70),
}


@pytest.mark.parametrize("shape", WRONG_SHAPES.values(), ids=WRONG_SHAPES.keys())
def test_shapes_that_are_none(shape: Shape | str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        json_language().open("", "").matcher(byte_vocabulary(), shape)


def test_a_language_without_separators_takes_no_shape(tmp_path: Path) -> None:
    (tmp_path / "toy.lark").write_text('start: "a" start | "b"\n')
    (tmp_path / "toy.toml").write_text('name = "toy"\nsuffixes = []\nstart = "start"\n')
    session = Language.from_files(tmp_path / "toy.lark", tmp_path / "toy.toml").open("a", "b")
    assert session.matcher(byte_vocabulary()).mask().any()
    with pytest.raises(ValueError, match=r"^[^\n]*blank[^\n]*$"):
        session.matcher(byte_vocabulary(), SINGLE_LINE)


def test_line_counts_up_to_sixteen_are_shapes() -> None:
    session = json_language().open("[", "]")
    for most in (1, 16):
        matcher = session.matcher(byte_vocabulary(), Shape.lines(most))
        assert commit_all(matcher, b"\n" * 20) == most - 1
        assert matcher.is_complete()


def test_shapes_are_values() -> None:
    assert Shape.lines(1) == SINGLE_LINE
    assert hash(Shape.lines(1)) == hash(SINGLE_LINE)
    assert Shape.regex("a") == Shape.regex("a")
    assert len({Shape.regex("a"), Shape.regex("a"), Shape.regex("b"), Shape.lines(2), Shape.lines(2)}) == 3
    session = python().open("x = (", ")\n")
    for pattern in ("[a-z]+", "a|b", ""):
        one, other = (session.matcher(odd_vocabulary(), shape) for shape in (pattern, Shape.regex(pattern)))
        assert (one.mask() == other.mask()).all()
        assert one.is_complete() == other.is_complete()


def test_alternatives_are_of_the_whole_expression() -> None:
    """Anchors and groups are the shape's own: `a|b` is not `^a` or `b$`."""
    session = python().open("x = (", ")\n")
    for pattern, takes, refuses in (
        ("a|bc", "bc", "ab"),
        ("(?i)A", "a", "b"),
        ("^a$", "a", "b"),
        ("(?x)a b # c", "ab", "a b"),
        ("a{2}", "aa", "aaa"),
    ):
        matcher = session.matcher(byte_vocabulary(), pattern)
        assert commit_all(matcher, takes.encode()) == len(takes), pattern
        assert matcher.is_complete(), pattern
        matcher.rollback(len(takes))
        assert commit_all(matcher, refuses.encode()) < len(refuses), pattern


def test_more_shapes_than_are_kept() -> None:
    session = json_language().open("[", "]")
    first = session.matcher(byte_vocabulary(), "1{1}")
    for count in range(40):
        matcher = session.matcher(byte_vocabulary(), f"{count}")
        assert commit_all(matcher, str(count).encode()) == len(str(count))
        assert matcher.is_complete()
    assert commit_all(first, b"1") == 1
    assert first.is_complete()


def test_contexts_that_do_not_parse_allow_nothing() -> None:
    for left, right in (("x = )", "\n"), ("x = \x00", "\n"), ("if a:\nb", "\n")):
        session = python().open(left, right)
        assert session.guarantee == "none"
        for shape in (SINGLE_LINE, "(?s:.*)", "", "a"):
            matcher = session.matcher(odd_vocabulary(), shape)
            assert not matcher.mask().any()
            assert_same(matcher, odd_vocabulary(), left)
            assert not matcher.is_complete()
            assert matcher.forced() == b""
            with pytest.raises(ValueError, match="not allowed"):
                matcher.commit(ord("a"))


def test_contexts_that_no_middle_of_the_shape_joins_allow_nothing() -> None:
    """The session without a shape has middles; none of them has the shape."""
    for left, right, shape in (("x = (", "\n", r"\w*"), ("if a:\n", "\nb\n", r" *"), ("x = '", "\n", "a")):
        session = python().open(left, right)
        assert session.guarantee == "exact"
        matcher = session.matcher(odd_vocabulary(), shape)
        assert not matcher.mask().any()
        assert not matcher.is_complete()
