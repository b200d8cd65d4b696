"""Matched text beside modes: small random languages against brute force, at every cut of random texts."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import regex

from fim_server import Language, _core
from fim_server.errors import LanguageError
from fim_server.tokens.vocabulary import Vocabulary
from support.languages.matched_modes import MatchedModed, MatchedOracle, random_matched
from support.languages.united_checks import check_cut

EMBEDDED = Path(__file__).parents[2] / "fim_server" / "models" / "embedded" / "tokenizer.json"
LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = int(os.environ.get("FIM_SERVER_SEED", "0"))
LANGUAGES = 3_000 if LONG else 40
LONGEST = 11
REFUSALS = ("no text at all", "is not matched as outside of the mode", "need a blank that ends")

TOKENS = [
    "a",
    "b",
    "ab",
    "(",
    ")",
    "=",
    "/",
    "`",
    "{",
    " ",
    "(a",
    "a)",
    "ab)",
    " b",
    "(a(b",
    "b)a)",
    "a=",
    "/a",
    "` a)",
]
TOKENS += ["(ab", "ab ab)", "a a)", "(b=", "a a) ", "b b))"]


def compiled(moded: MatchedModed) -> _core.Language | None:
    """The language; None for a definition that is refused, for one of the known reasons."""
    try:
        return _core.Language(json.dumps(moded.spec))
    except LanguageError as error:
        message = str(error)
    assert any(reason in message for reason in REFUSALS), (message, moded)
    return None


def sample(oracle: MatchedOracle, rng: random.Random) -> list[str]:
    """Random texts: sentences of the grammar, and these with a change."""
    found = set()
    for _ in range(60):
        text = oracle.sentence_of(rng)
        if text is not None and 0 < len(text) <= LONGEST:
            at = rng.randrange(len(text))
            found |= {text, text[:at] + rng.choice(oracle.alphabet) + text[at + rng.randrange(2) :]}
    longest = sorted(found, key=len)[-12:]
    return sorted(longest)


def distinguished(right: str) -> bool:
    """Return whether R can tell all names apart that it may match."""
    return len(set(regex.findall("[ab]+", right))) <= 2


@pytest.mark.parametrize("pairs", [True, False])
def test_verdicts_are_those_of_brute_force(pairs: bool) -> None:
    counts: Counter[str] = Counter()
    for seed in range(SEED, SEED + LANGUAGES):
        rng = random.Random(seed)
        moded = random_matched(rng, pairs)
        language = compiled(moded)
        if language is None:
            continue
        counts["languages"] += 1
        oracle = MatchedOracle(moded)
        whole, twin = language.open("", ""), compiled(moded.reordered(rng))
        assert twin is not None
        vocabulary = _core.Vocabulary([None, *(text.encode() for text in TOKENS)], [0])
        for text in sample(oracle, rng):
            assert whole.check(text)[1] == oracle.member(text), (seed, moded, text)
            counts["members"] += oracle.member(text)
            counts["matched"] += oracle.member(text) and "(" in text
            for start in range(len(text) + 1):
                end = rng.randint(start, len(text))
                cut = text[:start], text[start:end], text[end:]
                if not pairs and not distinguished(cut[2]):
                    continue
                verdict = language.open(cut[0], cut[2]).check(cut[1])
                assert twin.open(cut[0], cut[2]).check(cut[1]) == verdict, (seed, moded, cut)
                try:
                    check_cut(language, oracle, cut, counts, rng)
                except AssertionError as error:
                    raise AssertionError(seed, *error.args) from error
            left = text[: rng.randrange(len(text) + 1)]
            right = text[rng.randint(len(left), len(text)) :]
            check_masks(language, vocabulary, (left, right), rng, (seed, moded))
            counts["masks"] += 1
    print(dict(counts))
    assert counts["languages"] > LANGUAGES // 4
    assert min(counts[key] for key in ("matched", "viable", "complete", "refused", "masks")) > LANGUAGES


def check_masks(
    language: _core.Language,
    vocabulary: _core.Vocabulary,
    cut: tuple[str, str],
    rng: random.Random,
    where: object,
) -> None:
    """The mask by the token table, by the plain walk, and by single tokens, on the way through a middle."""
    state = language.open(*cut).start()
    for _ in range(4):
        by_table, plain, single = (np.zeros((len(vocabulary) + 31) // 32, np.uint32) for _ in range(3))
        matcher = state.matcher(vocabulary)
        matcher.fill_mask(by_table)
        matcher.fill_mask_plain(plain)
        allowed = [token for token in TOKENS if state.fork().advance(token.encode()) == len(token)]
        for token in allowed:
            number = TOKENS.index(token) + 1
            single[number // 32] |= np.uint32(1 << number % 32)
        single[0] |= by_table[0] & 1
        assert by_table.tolist() == plain.tolist() == single.tolist(), (where, cut, allowed)
        if not allowed:
            return
        state.advance(rng.choice(allowed).encode())


GRAMMAR = """
start: element{"<"}
element{left}: left name RIGHT children END SLASH name RIGHT | left name SLASH RIGHT
children: | children element{END} | children END SLASH note RIGHT
note: "(" name ")"
name: NAME | DOTTED
NAME: /[a-z]+/
DOTTED: /[a-z]+(\\.[a-z]+)+/
RIGHT: ">"
SLASH: "/"
END: /[^<]*</
BLANK: / +/
%ignore BLANK
"""

SPEC = """
name = "elements"
suffixes = [".e"]
start = "start"
[[modes]]
name = "tag"
lexemes = LEXEMES
code = true
[[modes]]
name = "text"
lexemes = ["END"]
[matched]
symbol = "name"
binds = BINDS
matches = MATCHES
"""


def written(folder: Path, lexemes: str, binds: str, matches: str, more: str = "") -> Language:
    spec = SPEC.replace("LEXEMES", lexemes).replace("BINDS", binds).replace("MATCHES", matches)
    (folder / "elements.lark").write_text(GRAMMAR)
    (folder / "elements.toml").write_text(spec + (more or '[layout]\nrule = "none"\n'))
    return Language.from_files(folder / "elements.lark", folder / "elements.toml")


TAGS = "<{0}><{0}a id='{0}'>{0}</{0}a><b:{0}>b</b:{0}></{0}>"


@pytest.mark.parametrize("language", ["xml", "jsx"])
@pytest.mark.parametrize("name", ["a", "aa", "div", "span"])
def test_masks_in_tags_are_those_of_the_plain_walk(language: str, name: str) -> None:
    text = TAGS.format(name)
    before, after = ("let x = (", ");\n") if language == "jsx" else ("", "\n")
    vocabulary = Vocabulary.from_file(EMBEDDED)
    by_table, plain = (np.zeros((vocabulary.size + 31) // 32, np.uint32) for _ in range(2))
    compared = 0
    for at in range(len(text)):
        # R goes on in the same name, or behind it, or lacks what closes.
        for end in (at, min(len(text), at + 3), len(text)):
            session = Language.load(language).open(before + text[:at], text[end:] + after)
            if session.guarantee == "none":
                continue
            matcher = session.matcher(vocabulary)
            matcher.fill_mask(by_table)
            matcher.fill_mask_plain(plain)
            assert (by_table == plain).all(), (text[:at], text[end:], np.flatnonzero(by_table ^ plain)[:5])
            compared += 1
    assert compared > 2 * len(text)


OWN = '["NAME", "DOTTED", "RIGHT", "SLASH"]'


def test_a_rule_matches_the_text_that_it_binds(tmp_path: Path) -> None:
    language = written(tmp_path, OWN, '["element"]', '["element"]')
    names = ["abcdefghijklmnopq"[at:] for at in range(16)]
    left = "".join(f"<{name}>text" for name in names)
    right = "".join(f"</{name}>" for name in reversed(names))
    assert language.open(left, right).check("").complete
    swapped = left.replace("<efghijklmnopq>", "<x>").replace("<fghijklmnopq>", "<efghijklmnopq>")
    assert not language.open(swapped.replace("<x>", "<fghijklmnopq>"), right).check("").complete
    assert language.open(left, right).check("<x></x>").complete
    assert not language.open(left, right).check("<x></y").viable
    assert language.open("<a", "b.c ></ab.c>").check("").complete
    assert not language.open("<a", "b.c ></ab>").check("").complete
    assert language.open("<", "></ab.c>").start().shortest_completion() == "ab.c"


@pytest.mark.parametrize(
    ("lexemes", "binds", "matches", "message"),
    [
        (
            '["NAME", "RIGHT", "SLASH"]',
            '["element"]',
            '["element"]',
            "symbol: the lexemes of name differ in lexemes of",
        ),
        (OWN, '["note"]', '["note"]', "matches: none of these rules has name in it"),
        (OWN, '["note"]', '["element"]', "matches: a rule has name in it too often"),
    ],
)
def test_a_wrong_table_is_named(lexemes: str, binds: str, matches: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(LanguageError, match=message):
        written(tmp_path, lexemes, binds, matches)
