"""f-strings under the grammars up to 3.11, against the parser of the running Python where it is one of those.

The long form (FIM_SERVER_LONG=1) draws many more of them; FIM_SERVER_SEED draws others.
"""

from __future__ import annotations

import ast
import os
import random
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import fim_server
from fim_server import Language, Vocabulary
from support.languages.f_strings import FStrings, is_excused

OLD = sys.version_info < (3, 12)
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
OLDEST_JUDGED = RUNNING if OLD else "3.11"
COUNT = 100_000 if os.environ.get("FIM_SERVER_LONG") == "1" else 2_000
TOKENIZER = Path(fim_server.__file__).parent / "models" / "embedded" / "tokenizer.json"
SEED = int(os.environ.get("FIM_SERVER_SEED", "8"))


def python() -> Language:
    return Language.load("python", OLDEST_JUDGED)


def parses(text: str) -> bool:
    return python().open("", "").check(text).complete


def is_python(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            return False
    return True


@pytest.mark.skipif(not OLD, reason="the running Python reads f-strings as 3.12 does")
def test_random_ones_are_judged_as_by_cpython() -> None:
    source = FStrings(SEED)
    wrong, accepted = [], 0
    for text in (source.draw() for _ in range(COUNT)):
        expected, found = is_python(text), parses(text)
        accepted += expected
        if expected != found and not is_excused(text, found, parses):
            wrong.append((text, found))
    assert COUNT // 4 < accepted < COUNT * 3 // 4  # the draw holds enough of both
    assert not wrong, wrong[:5]


@pytest.mark.skipif(not OLD, reason="the running Python reads f-strings as 3.12 does")
def test_strings_that_touch_are_the_known_difference() -> None:
    texts = ["f\"{'a'''}\"", "f\"{'a' ''}\""]
    assert [(parses(text), is_python(text)) for text in texts] == [(False, True), (True, True)]


def test_a_cut_anywhere_changes_no_verdict() -> None:
    """Every prefix of a right middle is viable; every verdict on a middle is that on the whole text."""
    source, rng = FStrings(SEED + 1), random.Random(SEED + 1)
    language = python()
    wrong = []
    for text in (f"x = {source.draw()}\n" for _ in range(COUNT // 4)):
        begin, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        left, middle, right = text[:begin], text[begin:end], text[end:]
        session = language.open(left, right)
        expected, verdict = parses(text), session.check(middle)
        prefix = middle[: rng.randint(0, len(middle))]
        if verdict.complete != expected or (expected and not session.check(prefix).viable):
            wrong.append((left, middle, right, expected, verdict))
    assert not wrong, wrong[:5]


@pytest.mark.skipif(not OLD, reason="the running Python reads f-strings as 3.12 does")
def test_what_is_viable_can_be_completed_to_what_cpython_takes() -> None:
    source, rng = FStrings(SEED + 2), random.Random(SEED + 2)
    language = python()
    wrong, found = [], 0
    for text in (f"x = {source.draw()}\n" for _ in range(COUNT // 4)):
        begin = rng.randrange(len(text) + 1)
        left, right = text[:begin], text[begin + rng.randrange(6) :] if rng.random() < 0.7 else "\n"
        session = language.open(left, right)
        if session.guarantee != "exact" or "\\N{" in text:
            continue
        middle = session.start().shortest_completion()
        found += 1
        if middle is None or not is_python(left + middle + right):
            wrong.append((left, middle, right))
    assert found > COUNT // 8
    assert not wrong, wrong[:5]


def test_masks_in_fields_are_those_of_the_plain_walk() -> None:
    source, rng = FStrings(SEED + 3), random.Random(SEED + 3)
    language, vocabulary = python(), Vocabulary.from_file(TOKENIZER)
    masks, allowed = 0, 0
    while masks < COUNT // 50:
        text = f"x = {source.draw()}\n"
        begin = rng.randrange(len(text) + 1)
        session = language.open(text[:begin], rng.choice(("", "\n", text[begin + rng.randrange(6) :])))
        if session.guarantee != "exact":
            continue
        matcher = session.matcher(vocabulary)
        for _ in range(3):
            mask, plain = np.zeros((2, (vocabulary.size + 31) // 32), np.uint32)
            matcher.fill_mask(mask)
            matcher.fill_mask_plain(plain)
            assert (mask == plain).all(), (text, begin)
            masks += 1
            tokens = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            allowed += len(tokens)
            token = int(rng.choice(tokens.tolist() or [-1]))
            if token < 0 or token in vocabulary.end_token_ids:
                break
            matcher.commit(token)
    assert allowed > masks


@pytest.mark.parametrize(
    ("left", "right", "taken", "refused"),
    [
        # A field that is opened can be closed, and its string not ended before.
        ('x = f"a {', '"\n', ["a}", "a!r:>{b}} c", "d['k']}"], ["", "a", "a} {b", 'd["k"]}', "d['k]}"]),
        ("x = f'{', '.join(", ")}'\n", [], ["a"]),  # the string ends at the quote
        ("x = f'''\n{", "\n}'''\n", ["\na\n", "'b'", "''"], ["'''b'''", "a # b", "a \\\n", ""]),
        # Within brackets the same holds.
        (
            "x = f'{f(",
            ")}'\n",
            ["a, k=b, *c", '"d"', "lambda: {1: 2}", 'f"{e}"'],
            ["'d'", '"\\n"', "a\n", "a)", "f'{e}'"],
        ),
        # The string around the string around it.
        ('x = f"""{f\'{', '}\'}"""\n', ["a", 'b["c"]'], ["'a'", '"""a"""', "a\n"]),
        # Spec, and fields in it.
        ("x = f'{a:", "}'\n", ["{b}", "{b!r:c}", "=5", "{{1}}", "\\\n"], ["{b:{c}}", "}", "'"]),
        ("x = f'{a!r", "}'\n", ["", ":", ":>5", "}{b"], [" ", "\n", "=", "r"]),
        # All of an expression's forms, but for a colon outside of brackets.
        (
            "x = f'{",
            "}'\n",
            ["a for a in b", "*a, b", "yield", "a=", "(b := 1)", " {1: 2}"],
            ["*a", "lambda: 1", " "],
        ),
    ],
)
def test_fields_by_hand(left: str, right: str, taken: list[str], refused: list[str]) -> None:
    session = python().open(left, right)
    assert [middle for middle in taken if not session.check(middle).complete] == []
    assert [middle for middle in refused if session.check(middle).complete] == []
    if OLD:
        assert [middle for middle in taken if not is_python(left + middle + right)] == []
        assert [middle for middle in refused if is_python(left + middle + right)] == []


@pytest.mark.parametrize("left", ["x = f'{", "x = f'{f(a[", "x = f'{a:{", "x = f'''{\nf\"{a!r:"])
def test_what_is_open_in_a_field_is_told(left: str) -> None:
    session = python().open(left, "\n")
    assert session.guarantee == "exact"
    assert [found.name for found in session.open_constructs()][:1] == ["formatted string"]


@pytest.mark.skipif(not OLD, reason="the running Python reads f-strings as 3.12 does")
def test_plans_in_fields_end_them() -> None:
    source, rng = FStrings(SEED + 4), random.Random(SEED + 4)
    language, vocabulary = python(), Vocabulary.from_file(TOKENIZER)
    wrong, found = [], 0
    for text in (f"x = {source.draw()}\n" for _ in range(COUNT // 10)):
        begin = rng.randrange(len(text) + 1)
        left, right = text[:begin], text[begin:] if rng.random() < 0.5 else "\n"
        session = language.open(left, right)
        plan = session.matcher(vocabulary).plan() if session.guarantee == "exact" and "\\N{" not in text else None
        if plan is not None:
            found += 1
            middle = b"".join(map(vocabulary.token_bytes, plan)).decode()
            if not is_python(left + middle + right):
                wrong.append((left, middle, right))
    assert found > COUNT // 20
    assert not wrong, wrong[:5]


def test_what_may_come_in_a_field_is_told_as_it_is_written() -> None:
    explanation = python().open("x = f'{f(a", "}'\n").start().explain("'")
    assert explanation.rejected_at == 0
    assert {'")"', '","', '"for"', '"=="', '"."'} <= set(explanation.expected)
    assert not [entry for entry in explanation.expected if entry.startswith("O_")]
