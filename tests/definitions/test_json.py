"""JSON against `json.loads`, and viable texts against a hand-written automaton.

The automaton shares nothing with the engine, the grammar or its twin. Every test compares its accepted texts with
`json.loads`. Viable texts come from a search through all of its configurations, exact for texts that nest no deeper
than those below (`Oracle` says why).

The long form (FIM_SERVER_LONG=1) takes more and longer texts; FIM_SERVER_SEED draws others.
"""

import json
import os
import random
from collections import Counter
from functools import cache
from itertools import accumulate, product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fim_server import Language, LanguageError, Session, State, Vocabulary
from fim_server.cli import program as cli
from support.languages.json_judge import judge
from support.languages.json_texts import NUMBERS, PIECES, POOL, document

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = int(os.environ.get("FIM_SERVER_SEED", "1"))
LONGEST = 7 if LONG else 6  # characters of the texts that are all tried
PAIRS = 60_000 if LONG else 8_000  # pairs of short contexts
DOCUMENTS = 5_000 if LONG else 200
CUTS = 6  # of each document
MUTATED = 20_000 if LONG else 1_000  # documents, several mutations of each
MASKS = 1_000 if LONG else 60


@cache
def language() -> Language:
    return Language.load("json")


@cache
def whole() -> Session:
    """Nothing on either side: the middle is the whole text."""
    return language().open("", "")


# ---------------------------------------------------------------- the automaton

Config = tuple[str, str]
"""Open brackets, outermost first, as a string of `[` and `{`; and the place in or between lexemes."""

BLANKS = " \t\n\r"
CLOSED_BY = {"]": "[", "}": "{"}
HEX = frozenset("0123456789abcdefABCDEF")
DIGITS = dict.fromkeys("0123456789", "digits")
FRACTION, EXPONENT = dict.fromkeys("0123456789", "fraction"), dict.fromkeys("0123456789", "exponent")
NUMBER = {
    "-": {**DIGITS, "0": "0"},
    "0": {".": ".", "e": "e", "E": "e"},
    "digits": {**DIGITS, ".": ".", "e": "e", "E": "e"},
    ".": FRACTION,
    "fraction": {**FRACTION, "e": "e", "E": "e"},
    "e": {**EXPONENT, "+": "sign", "-": "sign"},
    "sign": EXPONENT,
    "exponent": EXPONENT,
}
WHOLE = frozenset({"0", "digits", "fraction", "exponent"})
KEYWORDS = {"t": "rue", "f": "alse", "n": "ull"}
START: Config = ("", "value")


def step(config: Config, character: str) -> Config | None:
    """One character further; None where no text begins so."""
    stack, at = config
    if at in NUMBER:
        if character in NUMBER[at]:
            return stack, NUMBER[at][character]
        if at not in WHOLE:
            return None
        at = "after"
    kind, _, within = at.partition(" ")
    if kind == "word":
        if character != within[0]:
            return None
        return stack, f"word {within[1:]}" if within[1:] else "after"
    if kind in ("name", "string"):
        return _in_string(stack, kind, within, character)
    if character in BLANKS:
        return stack, at
    if at == "colon":
        return (stack, "value") if character == ":" else None
    if character == '"' and at in ("first name", "next name"):
        return stack, "name "
    if at in ("value", "first value"):
        if character in "[{":
            return stack + character, "first value" if character == "[" else "first name"
        if character == '"':
            return stack, "string "
        if character in KEYWORDS:
            return stack, f"word {KEYWORDS[character]}"
        if character in "-0123456789":
            return stack, "-" if character == "-" else NUMBER["-"][character]
    may_close = (at, character) in (("after", "]"), ("after", "}"), ("first value", "]"), ("first name", "}"))
    if may_close and CLOSED_BY.get(character) == stack[-1:]:
        return stack[:-1], "after"
    if at == "after" and stack and character == ",":
        return stack, "value" if stack[-1] == "[" else "next name"
    return None


def _in_string(stack: str, kind: str, within: str, character: str) -> Config | None:
    """`within` a string: after a backslash, or the number of hexadecimal digits that an escape still needs."""
    if within == "\\":
        if character == "u":
            return stack, f"{kind} 4"
        return (stack, f"{kind} ") if character in '"\\/bfnrt' else None
    if within:
        left = int(within) - 1
        return (stack, f"{kind} {left or ''}") if character in HEX else None
    if character == '"':
        return stack, "colon" if kind == "name" else "after"
    if character == "\\":
        return stack, f"{kind} \\"
    return (stack, f"{kind} ") if character >= " " and not "\ud800" <= character <= "\udfff" else None


def run(text: str) -> tuple[Config, int]:
    """Return the configuration to which a text leads, and the number of its viable characters."""
    config = START
    for index, character in enumerate(text):
        following = step(config, character)
        if following is None:
            return config, index
        config = following
    return config, len(text)


def is_whole(config: Config) -> bool:
    return not config[0] and (config[1] == "after" or config[1] in WHOLE)


# One character for each thing that characters can do; `x` stands for all that only strings hold.
LETTERS = '{}[],:" \\01-.e+truefalsnx'
INFINITE = 1 << 30
DEAD = 0


class Oracle:
    """All paths of the automaton up to a nesting, so that continuations need no bound on their length.

    Let p·x·q be a document. Where x begins, the brackets that p leaves open are open; where it ends, those that q
    closes. Whatever x opens and closes beyond both is a value, and `0` may stand there instead, which is shorter. So a
    shortest x nests no deeper than the deeper of its two ends. A search through the finitely many configurations up to
    there (`NESTING`) is exact. Only q may nest deeper, up to `DEEPEST`.
    """

    NESTING = 4
    DEEPEST = 7

    def __init__(self, letters: str = LETTERS) -> None:
        self.letters = letters
        ends = {START[1]}
        pending, found = [START], {START}
        while pending:
            config = pending.pop()
            for letter in LETTERS:
                following = step(config, letter)
                if following is not None and len(following[0]) <= 1 and following not in found:
                    found.add(following)
                    pending.append(following)
                    ends.add(following[1])
        stacks = ["".join(stack) for depth in range(self.DEEPEST + 1) for stack in product("[{", repeat=depth)]
        # No text leads to some of these (a name outside of an object), so no distance to them is finite.
        self.configs = [(stack, end) for stack in stacks for end in sorted(ends)]
        self.number = {config: number for number, config in enumerate(self.configs, DEAD + 1)}
        self.whole = np.array([False, *map(is_whole, self.configs)])
        self.shallow = 1 + sum(len(stack) <= self.NESTING for stack, _ in self.configs)
        self._tables: dict[str, NDArray[np.int64]] = {}
        self._distances: dict[Config, NDArray[np.int64]] = {}
        self._accepting: tuple[str, NDArray[np.bool_]] = ("", self.whole[: self.shallow])

    def table(self, character: str) -> NDArray[np.int64]:
        """Numbers of the configurations' successors by a character. Shape: [1 + number of configurations]."""
        if character not in self._tables:
            following = (step(config, character) for config in self.configs)
            numbers = [DEAD, *(DEAD if config is None else self.number.get(config, DEAD) for config in following)]
            self._tables[character] = np.array(numbers)
        return self._tables[character]

    def distances(self, config: Config) -> NDArray[np.int64]:
        """Least number of characters from a configuration to each that is not too deep."""
        if config not in self._distances:
            known = np.full(self.shallow, INFINITE)
            front, distance = np.array([self.number[config]]), 0
            while len(front):
                known[front] = distance
                reached = np.unique(np.concatenate([self.table(letter)[front] for letter in self.letters]))
                reached = reached[(reached != DEAD) & (reached < self.shallow)]
                front, distance = reached[known[reached] == INFINITE], distance + 1
            self._distances[config] = known
        return self._distances[config]

    def accepting(self, right: str) -> NDArray[np.bool_]:
        """The configurations, of those not too deep, from which a text ends a document."""
        if right != self._accepting[0]:
            reached = np.arange(self.shallow)
            for character in right:
                reached = self.table(character)[reached]
            self._accepting = (right, self.whole[reached])
        return self._accepting[1]

    def answers(self, left: str, right: str) -> bool:
        """Return whether the contexts are shallow enough."""
        closed, deepest = nesting_of(right)
        return len(run(left)[0][0]) <= self.NESTING and closed <= self.NESTING and deepest <= self.DEEPEST

    def distance(self, left: str, right: str) -> int | None:
        """Least characters between two texts; None if nothing may stand there."""
        assert self.answers(left, right), (left, right)
        config, read = run(left)
        if read < len(left):
            return None
        least = int(self.distances(config)[self.accepting(right)].min(initial=INFINITE))
        return None if least == INFINITE else least


def nesting_of(right: str) -> tuple[int, int]:
    """Return how many unopened brackets a text closes and how deep it nests, wherever the cursor cuts."""
    closed = deepest = 0
    for in_string, escaped in ((False, False), (True, False), (True, True)):
        changes = [0]
        for character in right:
            if in_string:
                in_string = escaped or character != '"'
                escaped = not escaped and character == "\\"
            elif character == '"':
                in_string = True
            else:
                changes.append((character in "[{") - (character in "]}"))
        depths = list(accumulate(changes))
        closed = max(closed, -min(depths))
        deepest = max(deepest, max(depths) - min(depths))
    return closed, deepest


@cache
def oracle() -> Oracle:
    return Oracle()


# ---------------------------------------------------------------- comparing


def compare(session: Session, left: str, middle: str, right: str) -> bool:
    """The engine's word on a middle against the judge's and the oracle's; whether the middle is viable."""
    verdict = session.check(middle)
    shown = (left, middle, right, verdict)
    distance = oracle().distance(left + middle, right)
    assert verdict.complete == (distance == 0) == judge(left + middle + right), shown
    assert verdict.viable == (distance is not None), shown
    if distance is None:
        at = verdict.rejected_at
        assert at is not None, shown
        assert oracle().distance(left + middle[: at + 1], right) is None, shown
        assert at == 0 or oracle().distance(left + middle[:at], right) is not None, shown
    else:
        assert verdict.rejected_at is None, shown
    return verdict.viable


def compare_distance(session: Session, left: str, middle: str, right: str) -> None:
    """A shortest completion completes, is as short as the oracle says, and is there if there is one."""
    expected = oracle().distance(left + middle, right)
    state = session.start()
    if expected is None:
        if session.guarantee == "none":
            assert state.shortest_completion() is None
        return
    assert state.advance(middle) == len(middle.encode())
    shortest = state.shortest_completion()
    assert shortest is not None, (left, middle, right)
    assert len(shortest.encode()) == state.distance() == expected, (left, middle, right, shortest)
    assert judge(left + middle + shortest + right), (left, middle, right, shortest)
    assert session.check(middle + shortest).complete


# ---------------------------------------------------------------- texts

PIECES += [
    "\\n",
    "\\t",
    '\\"',
    "\\\\",
    "\\/",
    "\\b\\f\\r",
    "\\u00e9",
    "\\uD83D\\uDE00",
    "\\ud800",
    "\\u0000",
    "\\uFFFF",
]
POOL += [
    "true",
    "false",
    "null",
    "NaN",
    "Infinity",
    "-Infinity",
    '""',
    '"a"',
    "'a'",
    "01",
    "1.",
    ".5",
    "//",
    "/**/",
    "#",
]
POOL += ["\\u12", "\\x", "\\u", "\ufeff", "\xa0", "\x0b", "\f", "\x7f", "😀", ",,", "{}", "[]", '"a":']


def mutation(rng: random.Random, text: str) -> str:
    """The text with something put in, left out, replaced, exchanged or doubled."""
    first, second, third = sorted(rng.choices(range(len(text) + 1), k=3))
    second, third = min(second, first + 3), min(third, first + 6)
    match rng.randrange(6):
        case 0:
            return text[:first] + rng.choice(POOL) + text[first:]
        case 1:
            return text[:first] + text[first + 1 :]
        case 2:
            return text[:first] + text[second:]
        case 3:
            return text[:first] + rng.choice(POOL) + text[first + 1 :]
        case 4:
            return text[:first] + text[second:third] + text[first:second] + text[third:]
        case _:
            return text[:second] + text[first:]


def cut(rng: random.Random, text: str, longest: int = 30) -> tuple[str, str, str]:
    start = rng.randint(0, len(text))
    end = rng.randint(start, min(len(text), start + longest))
    return text[:start], text[start:end], text[end:]


# ---------------------------------------------------------------- whole texts

ACCEPTED = [
    # Any value may stand at the top, with blanks around it.
    "0", '""', "true", "false", "null", "[]", "{}", " 1 ", "\t\n\r true\r\n\t ", "\n[ ]\n", "{ }",
    # Numbers.
    "-0", "-1", "10", "1234567890", "0.0", "-0.0", "1.50", "0e0", "1e5", "1E5", "1e+5", "1e-5", "1e05", "0E-0",
    "1.5e300",
    "1e999", "-1.0E+9999", "123456789012345678901234567890", "0.1234567890123456789012345678901234567890",
    # Strings.
    '"a"', '" "', '"\\""', '"\\\\"', '"\\/"', '"/"', '"\\b\\f\\n\\r\\t"', '"\\u0000"', '"\\uabcd\\uABCD\\u0a9F"',
    '"\'"',
    '"\x7f"', '"\x80"', '"\x9f"', '"\xa0"', '"é"', '"\u2028\u2029"', '"\ufeff"', '"\ufffe\uffff"', '"😀"',
    '"\U0010ffff"',
    '"\\ud800"', '"\\udc00\\ud800"', '"\\uD83D\\uDE00"', '"// no comment"', '"/* none */"', '"[{"', '"\\\\u12"',
    '"\\u12345"',
    # Arrays and objects.
    "[1]", "[1,2]", "[[],[[]],{}]", "[ 1 , 2 ]", '[null,true,"",-0,{}]', '{"":0}', '{"a":1,"a":2}', '{"a":{"a":[]}}',
    '{"a" : 1 , "b" : [ ] }', '{"\\ud800":"\\u0000"}', '[[[[[[[[[["deep"]]]]]]]]]]',
]  # fmt: skip
REFUSED = [
    # No value, or more than one.
    "", " ", "\n", "1 2", "1,2", "[][]", "{}{}", '""""', '"" ""', "truefalse", "true false", "1true", "true1",
    "nulll", '1""', '""1',
    "[1 2]", "[1true]", '["a""b"]', "[[][]]", '{"a":1 2}', '{"a":1"b":2}', '{"a" "b":1}', "[1]]", "{}}", "][", "}{",
    "0]",
    # Numbers.
    "01", "-01", "00", "-", "--1", "- 1", "+1", "+0", "1.", "-1.", ".5", "-.5", ".", "1.e5", "1e", "1E", "1e+", "1e-",
    "e5",
    "1e5.5", "1.2.3", "1e5e5", "1e 5", "1 .5", "1. 5", "1_000", "1,000", "0x10", "0b1", "0o7", "1f", "1L", "1n", "²",
    "١", "１", "1/2",
    "NaN", "-NaN", "nan", "Infinity", "-Infinity", "+Infinity", "inf", "[NaN]", '{"a":Infinity}', "1e1١",
    # Keywords.
    "True", "FALSE", "Null", "None", "undefined", "tru", "fals", "nul", "t", "nullnull", "tr ue", "\\u0074rue",
    "truе",
    # Strings.
    '"', '"a', 'a"', "'a'", "`a`", "a", '"\\"', '"\\', '"\\x41"', '"\\a"', '"\\v"', '"\\0"', '"\\\'"',
    '"\\U00000041"', '"\\N{DIGIT ONE}"',
    '"\\u"', '"\\u1"', '"\\u12"', '"\\u123"', '"\\u123g"', '"\\u{61}"', '"\\u 123"', '"\\u+123"', '"\\u1_23"',
    '"\\u１２３４"', '"\\\n"', '"\\é"',
    '"\n"', '"\t"', '"\r"', '"\x00"', '"\x01"', '"\b"', '"\f"', '"\x1b"', '"\x1f"', '"a" "b"', '"""a"""', '"\ud800"',
    '"\udfff"', 'u"a"',
    # Arrays and objects.
    "[", "]", "{", "}", "[1", "[1,", "[1,]", "[,]", "[,1]", "[1,,2]", "[1;2]", "[1:2]", "[1}", "{]", "[}", "(1)",
    "[1)", "...", "[...]",
    '{"a"}', '{"a":}', '{"a":1', '{"a":1,', '{"a":1,}', "{,}", '{,"a":1}', '{:1}', '{"a"::1}', '{"a"=1}', '{"a",1}',
    '{"a":1:2}', '{"a":1;"b":2}',
    "{a:1}", "{'a':1}", "{1:1}", "{null:1}", "{[]:1}", '{"a":1,,"b":2}', '{"a":1]', '["a":1]', '{"a":1,2}', "{1}",
    '{"a":a}',
    # What stands around and between.
    "\ufeff1", "1\ufeff", "\ufeff", "[\ufeff]", "\xa01", "1\x0b", "\f1", "1\x00", "\x00", "\u20281", "1\u2029",
    "\u30001", "\x851", "\x1f1", "\x7f1",
    "// a\n1", "1 // a", "/* a */ 1", "[1 /* a */]", "# a\n1", "<!-- -->1", "1;", "1,", ",1", ":", ",", "\\", "\\n1",
    "[1]\\", "/", "[1]/",
]  # fmt: skip


@pytest.mark.parametrize("text", ACCEPTED)
def test_documents(text: str) -> None:
    assert judge(text)
    assert is_whole(run(text)[0])
    assert run(text)[1] == len(text)
    assert whole().check(text).complete
    for at in range(len(text) + 1):
        for end in range(at, len(text) + 1):
            session = language().open(text[:at], text[end:])
            assert session.guarantee == "exact"
            assert session.check(text[at:end]).complete, (text[:at], text[at:end], text[end:])


@pytest.mark.parametrize("text", REFUSED)
def test_texts_that_are_no_documents(text: str) -> None:
    assert not judge(text)
    config, read = run(text)
    assert read < len(text) or not is_whole(config)
    verdict = whole().check(text)
    assert not verdict.complete
    assert verdict.rejected_at == (read if read < len(text) else None)
    for at in range(len(text) + 1):
        session = language().open(text[:at], text[at:])
        assert not session.check("").complete, (text[:at], text[at:])
        if oracle().answers(text[:at], text[at:]):
            compare(session, text[:at], "", text[at:])
            compare_distance(session, text[:at], "", text[at:])


def test_documents_beyond_what_json_loads_reads() -> None:
    """Neither depth nor length is limited by the RFC, or here."""
    digits = "1" * 10_000
    assert judge(digits)
    for text in (digits, f"-0.{digits}e-{digits}", "[" * 5_000 + "]" * 5_000, '{"a":' * 5_000 + "1" + "}" * 5_000):
        half = len(text) // 2
        assert whole().check(text).complete
        assert language().open(text[:half], text[half:]).check("").complete
        assert not whole().check(text[:-1] + "]]").complete
    session = language().open("[" * 5_000, "]" * 4_999)
    assert session.check("").rejected_at is None
    assert (session.check("]").complete, session.check("1").complete, session.check("{").viable) == (True, False, True)


def test_all_short_texts() -> None:
    """Every text over four alphabets up to a length, of which all but the last character can be."""
    checked = complete = 0
    for letters in ('{}[],:" 01', "[],- 019.eE+", '"\\u0aG/\x1fé', "truefalsn[ ]"):
        front = [("", START)]
        for _ in range(LONGEST):
            extended = []
            for text, config in front:
                for letter in letters:
                    longer, following = text + letter, step(config, letter)
                    verdict = whole().check(longer)
                    checked += 1
                    complete += verdict.complete
                    assert verdict.complete == (following is not None and is_whole(following)) == judge(longer), longer
                    assert verdict.rejected_at == (None if following else len(text)), longer
                    if following is not None:
                        extended.append((longer, following))
            front = extended
    print(f"{checked} texts, {complete} of them documents")
    assert complete


def test_mutated_documents() -> None:
    rng = random.Random(SEED)
    counts: Counter[str] = Counter()
    for _ in range(MUTATED):
        text = document(rng)
        assert judge(text)
        for _ in range(8):
            mutated = mutation(rng, text)
            if rng.random() < 0.3:
                mutated = mutation(rng, mutated)
            config, read = run(mutated)
            verdict = whole().check(mutated)
            assert verdict.complete == judge(mutated) == (read == len(mutated) and is_whole(config)), mutated
            assert verdict.rejected_at == (read if read < len(mutated) else None), mutated
            counts["complete" if verdict.complete else "viable" if verdict.viable else "refused"] += 1
    print(dict(counts))
    assert min(counts.values()) > 20


# ---------------------------------------------------------------- between contexts


def test_the_oracle_is_what_json_says() -> None:
    """The search between contexts of one alphabet finds the cuts of its documents, as judging every text does."""
    letters, length = '{}[],:"0 ', 6 if LONG else 5
    texts = ["".join(text) for count in range(length + 1) for text in product(letters, repeat=count)]
    least: dict[tuple[str, str], int] = {}
    for text in filter(judge, texts):
        for start in range(len(text) + 1):
            for end in range(start, len(text) + 1):
                pair = (text[:start], text[end:])
                least[pair] = min(least.get(pair, length), end - start)
    small, compared = Oracle(letters), 0
    for left, right in product((text for text in texts if len(text) <= 3), repeat=2):
        if len(left) + len(right) > length or (len(left) + len(right) > 4 and not LONG and (left, right) not in least):
            continue
        compared += 1
        found, expected = small.distance(left, right), least.get((left, right))
        assert found == expected or (expected is None and found is not None and len(left) + found + len(right) > length)
    print(f"{compared} pairs, {len(least)} of all pairs are cuts of documents")


def test_short_contexts() -> None:
    """Short texts on both sides, and between them everything of one letter and some of two.

    Half of the pairs are any texts, the left one being a beginning (all such pairs in the long form); half are parts of
    documents, broken ones among them.
    """
    rng = random.Random(SEED + 1)
    letters = '{}[],:"\\ 01-.etu'
    short = ["".join(text) for count in range(3) for text in product(letters, repeat=count)]
    lefts = [text for text in short if run(text)[1] == len(text)]
    every = [*product(lefts, short)]
    pairs = rng.sample(every, min(PAIRS // 2, len(every)))
    while len(pairs) < PAIRS:
        left, _, right = cut(rng, mutation(rng, document(rng, rng.randrange(3))), longest=6)
        right = right[-rng.randrange(1, 9) :] if rng.random() < 0.5 else right[: rng.randrange(9)]
        if len(left) < 12 and oracle().answers(left, right) and len(run(left)[0][0]) <= Oracle.NESTING - 2:
            pairs.append((left, right))
    counts: Counter[str] = Counter()
    for left, right in pairs:
        session = language().open(left, right)
        assert (session.guarantee == "exact") == (oracle().distance(left, right) is not None), (left, right)
        counts[session.guarantee] += 1
        compare(session, left, "", right)
        compare_distance(session, left, "", right)
        if session.guarantee == "none" and rng.random() < 0.9:
            continue
        for letter in letters:
            if compare(session, left, letter, right):
                counts["viable"] += 1
                compare(session, left, letter + rng.choice(letters), right)
                if rng.random() < 0.1:
                    compare_distance(session, left, letter, right)
            else:
                counts["refused"] += 1
    print(dict(counts))
    assert min(counts.values()) > 500


def test_cut_documents() -> None:
    """The true middle is viable throughout and complete at its end, byte by byte too; any other is judged exactly."""
    rng = random.Random(SEED + 2)
    counts: Counter[str] = Counter()
    for _ in range(DOCUMENTS):
        text = document(rng)
        for _ in range(CUTS):
            left, middle, right = cut(rng, text)
            session = language().open(left, right)
            assert session.guarantee == "exact"
            assert session.check(middle).complete
            state = session.start()
            for index, byte in enumerate(middle.encode()):
                assert state.is_viable()
                assert state.advance(bytes([byte])) == 1, (left, middle, right, index)
            assert state.is_complete()
            counts["cuts"] += 1
            if not oracle().answers(left, right):
                counts["too deep for the oracle"] += 1
                continue
            for end in range(len(middle)):
                assert compare(session, left, middle[:end], right)
            compare_distance(session, left, middle[: rng.randint(0, len(middle))], right)
            for other in (mutation(rng, middle), mutation(rng, middle), cut(rng, document(rng, 1))[1]):
                if len(run(left + other)[0][0]) <= Oracle.NESTING:
                    counts["viable" if compare(session, left, other, right) else "refused"] += 1
    print(dict(counts))
    assert counts["viable"] > 100
    assert counts["refused"] > 100
    assert counts["too deep for the oracle"] < counts["cuts"] / 10


def test_broken_contexts() -> None:
    """Something is wrong left or right of the cursor: then no middle fits, or another one than before."""
    rng = random.Random(SEED + 3)
    counts: Counter[str] = Counter()
    for _ in range(DOCUMENTS * 4):
        left, middle, right = cut(rng, document(rng))
        if rng.random() < 0.5:
            left = mutation(rng, left)
        else:
            right = mutation(rng, right)
        if not oracle().answers(left, right) or len(run(left + middle)[0][0]) > Oracle.NESTING:
            continue
        session = language().open(left, right)
        counts[session.guarantee] += 1
        assert (session.guarantee == "none") == (oracle().distance(left, right) is None) == bool(session.diagnostics)
        compare(session, left, middle, right)
        compare_distance(session, left, "", right)
    print(dict(counts))
    assert min(counts.values()) > 50


def test_explicit_grammar() -> None:
    """Rules of the texts that may stand between two contexts."""
    assert language().open("tr", "e").quotient_grammar() == '<middle> ::= …"true"…\n'
    assert language().open('{"a"', "null}").quotient_grammar().startswith('<middle> ::= …STRING ":"\n')


# ---------------------------------------------------------------- masks

TOKENS = [bytes([byte]) for byte in range(256)]
TOKENS += [piece.encode() for piece in dict.fromkeys(PIECES + NUMBERS + POOL) if len(piece.encode()) > 1]
TOKENS += [
    b'":',
    b'",',
    b'","',
    b'"}',
    b'"]',
    b"}]",
    b"]}",
    b"]]",
    b"}}",
    b"},{",
    b'},"',
    b'{"',
    b'["',
    b"[[",
    b"  ",
    b"\n  ",
    b",\n",
]
TOKENS += [
    b"\xc3\xa9\xc3",
    b"\xa9\xa9",
    b"\xf0\x9f",
    b"\x98\x80",
    b'\x80"',
    b"\xed\xa0\x80",
    b"\xc0\x80",
    b"\xf4\x90",
    b"u00",
    b"0.",
    b"e-",
]


def test_masks() -> None:
    """The mask is the check of every single token, in the middle of characters as well."""
    rng = random.Random(SEED + 4)
    vocabulary = Vocabulary([*TOKENS, None, None], [len(TOKENS)])
    counts: Counter[str] = Counter()
    for number in range(MASKS):
        left, middle, right = cut(rng, document(rng))
        encoded = middle.encode()[: rng.randint(0, len(middle.encode()))] if number % 2 else middle.encode()
        session = language().open(left, right if number % 3 else "")
        matcher = session.matcher(vocabulary)
        state = session.start()
        for byte in encoded:
            matcher.commit(byte)
        assert state.advance(encoded) == len(encoded)
        for _ in range(4):
            mask = matcher.mask()
            allowed = [index for index, token in enumerate(TOKENS) if takes(state, token)]
            shown = (left, encoded, right, number)
            assert np.flatnonzero(mask[: len(TOKENS)]).tolist() == allowed, shown
            assert [matcher.allows(index) for index in range(len(TOKENS))] == mask[: len(TOKENS)].tolist(), shown
            assert mask[len(TOKENS) :].tolist() == [state.is_complete(), False], shown
            assert matcher.is_complete() == state.is_complete(), shown
            counts["allowed"] += len(allowed)
            counts["refused"] += len(TOKENS) - len(allowed)
            if not allowed:
                break
            token = rng.choice(allowed)
            matcher.commit(token)
            state.advance(TOKENS[token])
    print(dict(counts))
    assert counts["allowed"] > 1000


def takes(state: State, token: bytes) -> bool:
    fork = state.fork()
    return all(fork.advance(bytes([byte])) == 1 for byte in token)


# ---------------------------------------------------------------- the definition and its uses


def test_the_definition_is_small() -> None:
    """Every value of a file goes through all of its rules, and every byte through its automaton."""
    states, symbols, rules = language().core.sizes()
    assert (states, symbols, rules) <= (45, 17, 15)


def test_a_blank_separates_any_two_lexemes() -> None:
    """No lexeme runs on over a blank, so one free state is enough for all that a middle can do."""
    for blank, lexeme in product(
        BLANKS, ["{", "}", "[", "]", ",", ":", "true", "false", "null", '""', '"a"', *NUMBERS]
    ):
        match = language().core.longest_match((lexeme + blank + lexeme).encode())
        assert match is not None
        assert match[0] == len(lexeme)


def test_files() -> None:
    assert "json" in Language.names()
    for path in ("x.json", Path("a") / "places.geojson", "context.jsonld", "site.webmanifest"):
        assert Language.for_path(path).name == "json"
    for path in ("x.json5", "x.jsonc", "x.jsonl", "x.JSON.txt", "json"):
        with pytest.raises(LanguageError, match="no language for files named"):
            Language.for_path(path)


def test_there_are_no_versions() -> None:
    assert Language.versions("json") == ()
    assert Language.load("json", version="newest") is language()
    assert language().version is None
    assert language().title == "json"
    for version in ("3.11", "8259"):
        with pytest.raises(LanguageError, match=f"json has no versions to choose from \\('{version}' was asked for\\)"):
            Language.load("json", version=version)
    # A version of Python says nothing about other languages, nor does the project's.
    assert Language.for_path("x.json", versions={"python": "3.9"}) is language()
    with pytest.raises(LanguageError, match="json has no versions"):
        Language.for_path("x.json", versions={"json": "3.9"})


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["languages"]) == 0
    assert "json\t.json" in capsys.readouterr().out
    path = tmp_path / "x.json"
    path.write_text('{\n  "tags": [1, ]\n}\n')
    assert cli.main(["check", str(path), "--python-version", "3.9"]) == 1
    assert f"{path}:2:15: ']' cannot come here; expected: \"[\"" in capsys.readouterr().out
    assert cli.main(["explain", str(path), "2:15", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["language"], answer["guarantee"], answer["shortest_completion"]) == ("json", "exact", "0")
    assert "version" not in answer
    assert {"array", "object"} <= set(answer["open_left"])
    assert cli.main(["explain", str(path), "2:15", "--text", '"a", {}']) == 0
    assert "is complete" in capsys.readouterr().out
    path.write_text('{\n  "tags": [1]\n}\n')
    assert cli.main(["check", str(path)]) == 0
