"""Modes against brute force: a small language of two kinds of formatted strings, every short text of it, every cut.

The oracle is a hand-written automaton with a stack; it shares nothing with the engine, the grammar or its twin.
"""

import os
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from fim_server import Language, LanguageError, Stop
from support.languages.moded_language import GRAMMAR, SPEC, load

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
ALPHABET = "a`'{}( ):"
LONGEST = 8 if LONG else 6
PAIRS = 60_000 if LONG else 4_000


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Language:
    return load(tmp_path_factory.mktemp("small"), GRAMMAR, SPEC)


CLOSES = {")": ("(",), "}": ("{", "ticked field")}


def is_small(text: str) -> bool:
    return opened(text) == []


def opened(text: str) -> list[str] | None:
    """Return the open constructs after a text, in one pass; None where no text begins so."""
    stack: list[str] = []
    named = False  # the field has a name already
    at = 0
    while at < len(text):
        character, top = text[at], stack[-1] if stack else ""
        at += 1
        if top == "`":
            if character == "{" and text[at : at + 1] == "{":
                at += 1
            elif character == "{":
                stack.append("ticked field")
            elif character == "`":
                stack.pop()
            elif character == "}":
                return None
        elif top == "'":
            if character == "{":
                stack.append("quoted field")
                named = False
            elif character == "'":
                stack.pop()
            elif character == "}":
                return None
        elif top == "spec":
            if character == "}":
                stack.pop()
            elif character in "{'":
                return None
        elif top == "quoted field":
            if character == "a":
                named = True
            elif character == "}" and named:
                stack.pop()
            elif character == ":" and named:
                stack[-1] = "spec"
            elif character != " ":
                return None
        elif character in "({`'":
            stack.append(character)
        elif character in ")}" and (not stack or stack.pop() not in CLOSES[character]):
            return None
    return stack


def texts() -> Iterator[str]:
    """Every text of the language up to the longest, by extending what can still become one."""
    layer = [""]
    for _ in range(LONGEST + 1):
        yield from (text for text in layer if is_small(text))
        layer = [longer for text in layer for one in ALPHABET if opened(longer := text + one) is not None]


@cache
def distances() -> dict[tuple[str, str], int]:
    """The length of the shortest middle between two contexts, where the whole is short."""
    found: dict[tuple[str, str], int] = {}
    for text in texts():
        for start in range(len(text) + 1):
            for end in range(start, len(text) + 1):
                key = text[:start], text[end:]
                found[key] = min(found.get(key, LONGEST), end - start)
    return found


def test_distances_of_small_contexts(small: Language) -> None:
    """Completable texts with their least bytes, and texts that no short middle completes."""
    rng = random.Random(1)
    known = distances()
    keys = sorted(key for key in known if len(key[0]) + len(key[1]) < LONGEST)
    pairs = rng.sample(keys, min(len(keys), PAIRS))
    for _ in range(PAIRS):
        left, right = ("".join(rng.choice(ALPHABET) for _ in range(rng.randrange(5))) for _ in range(2))
        if len(left) + len(right) <= LONGEST:
            pairs.append((left, right))
    wrong: list[tuple[object, ...]] = []
    hopeless = 0
    for left, right in pairs:
        session = small.open(left, right)
        found = session.start().distance() if session.guarantee == "exact" else None
        expected = known.get((left, right))
        hopeless += expected is None
        if expected is None and found is not None and found <= LONGEST - len(left) - len(right):
            wrong.append((left, right, found, expected))
        if expected is not None and found != expected:
            wrong.append((left, right, found, expected))
        if found is not None:
            middle = session.start().shortest_completion()
            if middle is None or not is_small(left + middle + right) or not session.check(middle).complete:
                wrong.append((left, right, found, middle))
    print(f"{len(pairs)} pairs of contexts, {hopeless} without a short middle, {len(known)} known")
    assert not wrong, wrong[:10]
    assert len(known) > 10_000
    assert 0 < hopeless < len(pairs)


def test_every_cut_of_every_short_text(small: Language) -> None:
    check_cuts(small, random.Random(2), PAIRS // 4)


def check_cuts(language: Language, rng: random.Random, count: int) -> None:
    valid = sorted(texts())
    chosen = rng.sample(valid, min(len(valid), count))
    chosen += ["".join(rng.choice(ALPHABET) for _ in range(rng.randrange(LONGEST))) for _ in range(count)]
    wrong = []
    for text in chosen:
        start, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        verdict = language.open(text[:start], text[end:]).check(text[start:end])
        expected = is_small(text)
        if verdict.complete != expected or (expected and not verdict.viable):
            wrong.append((text[:start], text[start:end], text[end:], expected))
    assert not wrong, wrong[:10]


def test_a_mode_names_lexemes_that_exist_once(tmp_path: Path) -> None:
    with pytest.raises(LanguageError, match=r"modes\.spec: there is no lexeme 'NOWHERE'"):
        load(tmp_path, GRAMMAR, SPEC.replace('["Q_CLOSE"], close', '["Q_CLOSE", "NOWHERE"], close'))
    with pytest.raises(LanguageError, match="lexeme T_OPEN is in two modes"):
        load(tmp_path, GRAMMAR, SPEC.replace('["Q_CLOSE"], close', '["Q_CLOSE", "T_OPEN"], close'))


TAGS = """
start: item*
item: NAME | "<" "!" TEXT? ">"
NAME: /a/
TEXT: /[a ]+/
BLANK: " "
%ignore BLANK
"""
TAG_MODE = 'name = "tags"\nsuffixes = [".tags"]\nstart = "start"\nmodes = [{ name = "tag", lexemes = [LEXEMES] }]\n'


@pytest.mark.parametrize("lexemes", ['"!", "TEXT", ">"', '"BANG", "TEXT", "END"', '"!", "TEXT", "END"'])
def test_a_mode_names_literals_by_their_text_as_well(tmp_path: Path, lexemes: str) -> None:
    terminals = 'BANG: "!"\nEND: ">"\n' if "END" in lexemes else ""
    language = load(tmp_path, TAGS + terminals, TAG_MODE.replace("LEXEMES", lexemes))
    for text, whole in {"a<! a >a": True, "<!>": True, "a ! a": False, "a>": False, "<! <!>": False}.items():
        for at in range(len(text) + 1):
            assert language.open(text[:at], text[at:]).check("").complete == whole, (text, at)


def test_a_mode_reads_code_without_a_pattern(tmp_path: Path) -> None:
    """The field's names are lexemes of its mode, and those of code are not read in it: the language is the same."""
    grammar = GRAMMAR.replace('field: NAME+ "}" | NAME+', 'field: FIELD_NAME+ "}" | FIELD_NAME+')
    spec = SPEC.replace('lexemes = ["FIELD_COLON"]', 'lexemes = ["FIELD_COLON", "FIELD_NAME"]')
    spec = spec.replace('without = [":", "::"]', 'without = [":", "::", "NAME"]')
    language = load(tmp_path, grammar + "FIELD_NAME: /a/\n", spec)
    check_cuts(language, random.Random(3), PAIRS // 16)
    with pytest.raises(LanguageError, match=r"modes\.field: without: no rule uses the literal 'NAMES'"):
        load(tmp_path, grammar + "FIELD_NAME: /a/\n", spec.replace('"NAME"]', '"NAMES"]'))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('lexemes = ["Q_CLOSE"], ', "", "modes\\[3\\]: missing field `lexemes`"),
        ('name = "spec", ', "", "missing field `name`"),
        ('close = ["Q_CLOSE"]', 'closes = ["Q_CLOSE"]', "unknown field `closes`"),
        ("\nmodes", "\nlimits = { braces = 3 }\nmodes", "unknown field `braces`"),
        ("\nmodes", "\nlimits = { brackets = -1 }\nmodes", "invalid value"),
    ],
)
def test_modes_and_limits_that_are_none(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in SPEC
    with pytest.raises(LanguageError, match=message):
        load(tmp_path, GRAMMAR, SPEC.replace(before, after, 1))


def test_without_layout_any_rule_may_end_a_mode(tmp_path: Path) -> None:
    grammar = GRAMMAR.replace(
        'ticked: TICK (T_OPEN start "}")* T_END', 'ticked: TICK rest\nrest: (T_OPEN start "}")* T_END'
    )
    assert grammar != GRAMMAR
    language = load(tmp_path, grammar, SPEC)
    rng = random.Random(3)
    ticked = [text for text in texts() if "`" in text]
    chosen = rng.sample(ticked, min(len(ticked), PAIRS // 20))
    for text in [*chosen, *("".join(rng.sample(text, len(text))) for text in chosen)]:
        start, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        verdict = language.open(text[:start], text[end:]).check(text[start:end])
        assert verdict.complete == is_small(text), (text[:start], text[start:end], text[end:])


@pytest.mark.parametrize("text", [("f'{", ""), ("f'{", "}'"), ("f'{(", ")}'"), ("f\"{f'{", "")], ids=repr)
def test_strings_in_strings_are_not_read_for_each_that_is_open(text: tuple[str, str]) -> None:
    """Looks at a Stop grow with the text: a string without an end, or with too many around it, is read once."""
    opener, closer = text
    language = Language.load("python")

    def looks(count: int) -> int:
        with Stop() as stop:
            language.open("", opener * count + "x" + closer * count)
        return stop.looks

    few, many = looks(1_000), looks(2_000)
    assert few > 200
    assert many < 2.5 * few
