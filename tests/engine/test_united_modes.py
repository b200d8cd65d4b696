"""Modes without layout: small random languages against brute force, at every cut of random texts."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from fim_server import _core
from fim_server.errors import LanguageError
from support.languages.united_checks import check_cut
from support.languages.united_modes import Mode, Moded, Oracle, random_moded

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = int(os.environ.get("FIM_SERVER_SEED", "0"))
LANGUAGES = 6_000 if LONG else 60
SENTENCES = 12
LONGEST = 9
REFUSALS = ("no text at all", "is not matched as outside of the mode", "need a blank that ends", "matches the empty")

TOKENS = ["".join(text) for length in (1, 2) for text in product("ab=/`{}() ", repeat=length)]
TOKENS += ["/a/", "/ab", "a/b", " =a", "a`b", "`{", "b} ", "/=/", "== ", "(a)"]


def compiled(moded: Moded) -> _core.Language | None:
    """The language; None for a definition that is refused, for one of the known reasons."""
    try:
        return _core.Language(json.dumps(moded.spec))
    except LanguageError as error:
        message = str(error)
    assert any(reason in message for reason in REFUSALS), (message, moded)
    assert "\n" not in message
    return None


def sample(oracle: Oracle, language: _core.Language, rng: random.Random) -> list[str]:
    """Random texts: sentences of the grammar, these with a change, and texts that the engine takes from the left."""
    found = {""}
    for _ in range(SENTENCES):
        text = oracle.sentence(rng)
        if text is not None and len(text) <= LONGEST:
            at = rng.randrange(len(text) + 1)
            found |= {text, text[:at] + rng.choice(oracle.alphabet) + text[at + rng.randrange(2) :]}
    state = language.open("", "").start()
    for _ in range(4):
        walk = state.fork()
        text = ""
        for _ in range(rng.randint(1, LONGEST - 2)):
            ways = [one for one in oracle.alphabet if walk.fork().advance(one.encode()) == 1]
            if not ways:
                break
            text += (one := rng.choice(ways))
            walk.advance(one.encode())
        found.add(text)
    return sorted(found)


def masks(
    language: _core.Language, left: str, right: str, vocabulary: _core.Vocabulary
) -> tuple[list[int], list[int], list[int]]:
    """Return the mask by the token table, by the plain walk, and by single tokens."""
    state = language.open(left, right).start()
    by_table, plain, single = (np.zeros((len(vocabulary) + 31) // 32, np.uint32) for _ in range(3))
    matcher = state.matcher(vocabulary)
    matcher.fill_mask(by_table)
    matcher.fill_mask_plain(plain)
    for token, text in enumerate(TOKENS, 1):
        if state.fork().advance(text.encode()) == len(text):
            single[token // 32] |= np.uint32(1 << token % 32)
    single[0] |= by_table[0] & 1
    return by_table.tolist(), plain.tolist(), single.tolist()


def test_verdicts_are_those_of_brute_force() -> None:
    counts: Counter[str] = Counter()
    for seed in range(SEED, SEED + LANGUAGES):
        rng = random.Random(seed)
        moded = random_moded(rng)
        language = compiled(moded)
        if language is None:
            counts["not compiled"] += 1
            continue
        counts["languages"] += 1
        oracle = Oracle(moded)
        twins = [compiled(moded.uncovered()), compiled(moded.reordered(rng))]
        whole = language.open("", "")
        vocabulary = _core.Vocabulary([None, *(text.encode() for text in TOKENS)], [0])
        for text in sample(oracle, language, rng):
            assert whole.check(text)[1] == oracle.member(text), (seed, moded, text)
            for start in range(len(text) + 1):
                end = rng.randint(start, len(text))
                cut = text[:start], text[start:end], text[end:]
                try:
                    check_cut(language, oracle, cut, counts, rng)
                except AssertionError as error:
                    raise AssertionError(seed, *error.args) from error
                for twin in twins:
                    assert twin is not None
                    session = twin.open(cut[0], cut[2])
                    verdict = session.check(cut[1])
                    assert verdict[1] == oracle.member(text), (seed, moded, twin, cut)
                    assert verdict == language.open(cut[0], cut[2]).check(cut[1]), (seed, moded, cut)
            left = text[: rng.randrange(len(text) + 1)]
            right = text[rng.randint(len(left), len(text)) :]
            by_table, plain, single = masks(language, left, right, vocabulary)
            assert by_table == plain == single, (seed, moded, left, right)
            counts["masks"] += 1
    print(dict(counts))
    assert counts["languages"] > LANGUAGES // 5
    assert counts["viable"] > LANGUAGES
    assert counts["complete"] > LANGUAGES
    assert counts["refused"] > LANGUAGES


SLASHES = Moded(
    lexemes=(
        ("NAME", None, "[ab]"),
        ("L(", "(", None),
        ("L)", ")", None),
        ("L=", "=", None),
        ("DIVIDE", None, "/"),
        ("REGEX", None, "/[ab]+/"),
        ("BLANK", None, " +"),
    ),
    modes=(Mode(("DIVIDE",), code=True), Mode(("REGEX",), code=True)),
    rules=(
        ("s", ("x",)),
        ("s", ("NAME", "L=", "x")),
        ("x", ("y",)),
        ("x", ("x", "DIVIDE", "y")),
        ("y", ("NAME",)),
        ("y", ("REGEX",)),
        ("y", ("L(", "x", "L)")),
    ),
)
"""Divisions and regular expressions."""


def test_a_cursor_before_a_slash_may_write_an_operand_or_nothing() -> None:
    language = compiled(SLASHES)
    assert language is not None
    divided, regex = language.open("a = ", " / b"), language.open("a = ", "/b/")
    assert (divided.check("a")[1], divided.check("")[1]) == (True, False)
    assert (regex.check("a")[1], regex.check("")[1], regex.check("a/")[1]) == (False, True, True)
    assert language.open("a / b", "").check("/ (a")[:2] == (True, False)


@pytest.mark.parametrize(
    ("left", "right", "closed"),
    [("a = (", " / b)", 1), ("a = (", "/b)/ (a)", 1), ("a = ((", ") / b) / (a)", 2), ("a = (", "/b/)", 1)],
)
def test_brackets_that_the_right_side_closes(left: str, right: str, closed: int) -> None:
    language = compiled(SLASHES)
    assert language is not None
    session = language.open(left, right)
    floored = session.floored("brackets", None)
    assert floored is not None
    assert floored.floor == closed
    assert floored.check("a")[0]
    assert (session.check("a) / (a")[0], floored.check("a) / (a")[0]) == (True, False)


def test_the_place_where_the_right_side_breaks() -> None:
    language = compiled(SLASHES)
    assert language is not None
    assert language.open("a = ", "/ b / / a").broken_at == ("right", 6)
    assert language.open("a = ", "b b").broken_at == ("right", 2)
    assert language.open("a = ", "/b/ / a").broken_at is None


@pytest.mark.parametrize(
    ("pattern", "without", "message"),
    [
        ("=a", (), "mode 1: L= is not matched as outside of the mode"),
        ("=a", ("L=",), None),
        ("[ab]+=", ("NAME",), None),
        ("[ab]+=", (), "mode 1: NAME is not matched as outside of the mode"),
        (" +/", (), "mode 1: BLANK is not matched as outside of the mode"),
        ("/[ab]+/", ("BLANK",), "mode 1: BLANK is ignored, so no mode can be without it"),
    ],
)
def test_shared_lexemes_are_matched_alike_or_refused(
    pattern: str, without: tuple[str, ...], message: str | None
) -> None:
    lexemes = tuple((name, text, pattern if name == "REGEX" else own) for name, text, own in SLASHES.lexemes)
    modes = (SLASHES.modes[0], Mode(("REGEX",), code=True, without=without))
    moded = replace(SLASHES, lexemes=lexemes, modes=modes)
    if message is None:
        assert _core.Language(json.dumps(moded.spec)).open("a = ", "").check("b")[1]
        return
    with pytest.raises(LanguageError) as raised:
        _core.Language(json.dumps(moded.spec))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_ignored_lexeme_belongs_to_no_mode() -> None:
    modes = (replace(SLASHES.modes[0], lexemes=("DIVIDE", "BLANK")), SLASHES.modes[1])
    with pytest.raises(LanguageError, match="mode 0: BLANK is ignored, so it cannot be a lexeme of one mode"):
        _core.Language(json.dumps(replace(SLASHES, modes=modes).spec))
