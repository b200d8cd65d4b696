"""Copies of rules for flags, against the definition of flags: what each nonterminal derives under each assignment."""

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import pytest

from fim_server import Language
from fim_server.errors import LanguageError
from fim_server.language.definition.flags import with_copies

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = int(os.environ.get("FIM_SERVER_SEED", "1"))
LANGUAGES = 20_000 if LONG else 400
LONGEST = 4

Text = tuple[str, ...]
Rules = list[tuple[str, tuple[str, ...]]]
Scopes = Mapping[str, str]


def sums(parts: Sequence[set[Text]]) -> set[Text]:
    """Return the texts that are put together of one text of each part."""
    found: set[Text] = {()}
    for part in parts:
        found = {(*before, *text) for before in found for text in part if len(before) + len(text) <= LONGEST}
    return found


def plain_texts(start: str, rules: Rules) -> set[Text]:
    """Return the short texts of rules without flags."""
    texts: dict[str, set[Text]] = {name: set() for name, _ in rules}
    changed = True
    while changed:
        changed = False
        for name, symbols in rules:
            more = sums([texts.get(symbol, {(symbol,)}) for symbol in symbols])
            changed |= not more <= texts[name]
            texts[name] |= more
    return texts.get(start, set())


def flagged_texts(start: str, rules: Rules, scopes: Scopes) -> set[Text]:
    """Return the short texts of rules with flags, of each nonterminal under every assignment."""
    flags = sorted(scopes)
    assignments = [frozenset(flag for flag, on in zip(flags, values, strict=True) if on)
                   for values in product((True, False), repeat=len(flags))]  # fmt: skip
    texts = {(name, on): set[Text]() for name, _ in rules for on in assignments}
    bodies = dict(rules)

    def derived(symbol: str, at: int, count: int, on: frozenset[str]) -> set[Text]:
        scoped = {"all"} | ({"first"} if at == 0 else set()) | ({"last"} if at == count - 1 else set())
        inherited = {flag for flag in flags if flag in on or scopes[flag] not in scoped}
        while symbol.startswith(("set{", "clear{")):
            kind, _, rest = symbol.partition("{")
            change = rest.partition(",")[0]
            inherited = inherited | {change} if kind == "set" else inherited - {change}
            (symbol,) = bodies[symbol]
        return texts.get((symbol, frozenset(inherited)), {(symbol,)})

    changed = True
    while changed:
        changed = False
        for (name, symbols), on in product(rules, assignments):
            conditions = [symbol for symbol in symbols if symbol.startswith(("on{", "off{"))]
            if any((symbol.partition("{")[2][:-1] in on) != symbol.startswith("on{") for symbol in conditions):
                continue
            own = [symbol for symbol in symbols if symbol not in conditions]
            more = sums([derived(symbol, at, len(own), on) for at, symbol in enumerate(own)])
            changed |= not more <= texts[name, on]
            texts[name, on] |= more
    return texts[start, frozenset(flags)]


def random_rules(rng: random.Random, scopes: Scopes) -> Rules:
    names = ["s", "a", "b", "c"][: rng.randrange(2, 5)]
    lexemes = ["X", "Y", "Z"]
    rules: dict[tuple[str, tuple[str, ...]], None] = {}

    def symbol(depth: int = 0) -> str:
        if depth < 2 and rng.random() < 0.35:
            kind, flag = rng.choice(["set", "clear"]), rng.choice(sorted(scopes))
            inner = symbol(depth + 1)
            name = f"{kind}{{{flag},{inner}}}"
            rules[name, (inner,)] = None
            return name
        return rng.choice(names) if rng.random() < 0.5 else rng.choice(lexemes)

    for name in names:
        for _ in range(rng.randrange(1, 5)):
            symbols = [symbol() for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))]
            if rng.random() < 0.4:
                condition = f"{rng.choice(['on', 'off'])}{{{rng.choice(sorted(scopes))}}}"
                symbols.insert(rng.randrange(len(symbols) + 1), condition)
            rules[name, tuple(symbols)] = None
    return list(rules)


def cases() -> Iterator[tuple[Rules, Scopes]]:
    rng = random.Random(SEED)
    for _ in range(LANGUAGES):
        flags = ["f", "g", "h"][: rng.randrange(1, 4)]
        scopes = {flag: rng.choice(["all", "first", "last"]) for flag in flags}
        yield random_rules(rng, scopes), scopes


def test_copies_derive_the_texts_that_the_flags_allow() -> None:
    refused = texts = 0
    for rules, scopes in cases():
        try:
            copies = with_copies("made up", "s", rules, scopes)
        except LanguageError:  # the first or the last symbol is not certain
            refused += 1
            continue
        expected = flagged_texts("s", rules, scopes)
        if expected:
            assert plain_texts("s", copies) == expected, (rules, scopes)
            texts += len(expected)
        assert not any(
            symbol.startswith(("on{", "off{", "set{", "clear{")) for _, symbols in copies for symbol in symbols
        )
    assert refused < LANGUAGES / 2
    assert texts > LANGUAGES


def test_equal_copies_are_merged() -> None:
    rules: Rules = [
        ("s", ("a", "X", "clear{f,a}")),
        ("clear{f,a}", ("a",)),
        ("a", ("b", "Y")),
        ("a", ("b",)),
        ("b", ("on{f}", "Z")),
        ("b", ("off{f}", "Z")),
    ]
    assert {name for name, _ in with_copies("made up", "s", rules, {"f": "all"})} == {"s", "a", "b"}


def test_a_rule_whose_first_symbol_may_be_empty_is_refused() -> None:
    rules: Rules = [("s", ("a", "b")), ("a", ()), ("b", ("on{f}", "X")), ("b", ("Y",))]
    with pytest.raises(LanguageError, match=r"flags\.f: rule s has b as its first symbol only where a is empty"):
        with_copies("made up", "s", rules, {"f": "first"})


GRAMMAR = """
start: clear{in, statement}
statement: "for" "(" clear{in, sum} "in" set{in, sum} ")" statement | set{in, clear{brace, sum}} ";"
sum: value | sum "+" value | sum on{in} "in" value
value: NAME | "(" set{in, sum} ")" | on{brace} "{" sum "}"
NAME: /[a-z]+/
BLANK: / +/
%ignore BLANK
"""
SPEC = """
name = "flagged"
suffixes = [".flagged"]
start = "start"
[flags]
in = "all"
brace = "first"
"""


def written(folder: Path, grammar: str, spec: str) -> Language:
    (folder / "flagged.lark").write_text(grammar, encoding="utf-8")
    (folder / "flagged.toml").write_text(spec, encoding="utf-8")
    return Language.from_files(folder / "flagged.lark", folder / "flagged.toml")


@pytest.mark.parametrize(
    ("text", "is_complete"),
    [
        ("a in b;", True),
        ("for (a in b in c) d in e;", True),
        ("for ((a in b) in c) d;", True),
        ("for (a in b) c in d", False),
        ("{a};", False),
        ("a + {b};", True),
        ("for ({a} in b) c;", True),
        ("for (a + b) c;", False),
    ],
)
def test_a_grammar_reads_and_changes_flags(tmp_path: Path, text: str, is_complete: bool) -> None:
    language = written(tmp_path, GRAMMAR, SPEC)
    assert language.open(text, "").check("").complete == is_complete
    for cut in range(len(text) + 1):
        assert language.open(text[:cut], text[cut:]).check("").complete == is_complete


@pytest.mark.parametrize(
    ("grammar", "spec", "message"),
    [
        (GRAMMAR.replace("on{in}", "on{brackets}") + "\nbrackets:\n", SPEC, "on: there is no flag brackets"),
        (GRAMMAR, SPEC.replace('"first"', '"front"'), "flags.brace: expected one of all, first, last"),
        (GRAMMAR, SPEC.partition("[flags]")[0] + "flags = 1\n", "flags: expected a table"),
        (GRAMMAR + "\nin: NAME\n", SPEC, "Rule 'in' defined more than once"),
        (GRAMMAR, SPEC.replace('"start"', '"begin"'), "no text at all derives from begin"),
        (GRAMMAR.replace("start:", "start: off{in}"), SPEC, "no text at all derives from start"),
    ],
)
def test_a_wrong_flag_is_one_line(tmp_path: Path, grammar: str, spec: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message) as caught:
        written(tmp_path, grammar, spec)
    assert "\n" not in str(caught.value)
