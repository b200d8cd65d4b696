"""Optional breaks, against their definition: between any two symbols of an alternative, unless the grammar says no."""

import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from fim_server import Language
from fim_server.errors import LanguageError
from fim_server.language.definition.breaks import with_breaks

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = int(os.environ.get("FIM_SERVER_SEED", "1"))
LANGUAGES = 20_000 if LONG else 400
LONGEST = 4

Text = tuple[str, ...]
Rules = list[tuple[str, tuple[str, ...]]]


def sums(parts: Sequence[set[Text]]) -> set[Text]:
    """Return the texts that are put together of one text of each part."""
    found: set[Text] = {()}
    for part in parts:
        found = {(*before, *text) for before in found for text in part if len(before) + len(text) <= LONGEST}
    return found


def texts(rules: Rules) -> set[Text]:
    """Return the short texts of the nonterminal ``s``."""
    found: dict[str, set[Text]] = {name: set() for name, _ in rules}
    changed = True
    while changed:
        changed = False
        for name, symbols in rules:
            more = sums([found.get(symbol, {(symbol,)}) for symbol in symbols])
            changed |= not more <= found[name]
            found[name] |= more
    return found["s"]


def explicit(rules: Rules, direction: int) -> set[str]:
    """Return the symbols with a text that has the break as its first symbol; with direction -1, as its last one."""
    ends: dict[str, set[str]] = {name: set() for name, _ in rules}  # the outermost symbols of texts; "" for no symbol
    changed = True
    while changed:
        changed = False
        for name, symbols in rules:
            more, may_be_empty = set(), True
            own = [ends.get(symbol, {symbol}) for symbol in symbols[::direction]]
            if all(own):  # each derives some text
                for outermost in own:
                    more |= outermost - {""} if may_be_empty else set()
                    may_be_empty &= "" in outermost
                more |= {""} if may_be_empty else set()
            changed |= not more <= ends[name]
            ends[name] |= more
    return {"N"} | {name for name, outermost in ends.items() if "N" in outermost}


def written_out(rules: Rules) -> Rules:
    """Return the rules with a nonterminal of any number of breaks between symbols, where these may stand."""
    begins, ends = explicit(rules, 1), explicit(rules, -1)
    bodies = dict(rules)
    found: Rules = [("any_breaks", ()), ("any_breaks", ("any_breaks", "N"))]
    for name, symbols in rules:
        own: list[str] = []
        for at, symbol in enumerate(symbols):
            inner = bodies[symbol][0] if symbol.startswith("tight{") else symbol
            if at > 0 and inner == symbol:
                last = symbols[at - 1]
                last = bodies[last][0] if last.startswith("tight{") else last
                if last not in ends and inner not in begins:
                    own.append("any_breaks")
            own.append(inner)
        found.append((name, tuple(own)))
    return found


def random_rules(rng: random.Random) -> Rules:
    names = ["s", "a", "b", "c"][: rng.randrange(2, 5)]
    rules: dict[tuple[str, tuple[str, ...]], None] = {}

    def symbol(at: int) -> str:
        inner = rng.choice(names) if rng.random() < 0.4 else rng.choice(["X", "Y", "Z"])
        if at and rng.random() < 0.2:
            rules[f"tight{{{inner}}}", (inner,)] = None
            return f"tight{{{inner}}}"
        return "N" if rng.random() < 0.1 else inner

    for name in names:
        for _ in range(rng.randrange(1, 4)):
            rules[name, tuple(map(symbol, range(rng.choice([0, 1, 1, 2, 2, 3]))))] = None
    return list(rules)


def test_breaks_stand_between_all_symbols_but_where_the_grammar_says_no() -> None:
    rng = random.Random(SEED)
    with_texts = 0
    for _ in range(LANGUAGES):
        rules = random_rules(rng)
        expected = texts(written_out(rules))
        assert texts(with_breaks("made up", rules, "N")) == expected, rules
        with_texts += any("N" in text for text in expected)
    assert with_texts > LANGUAGES / 4


GRAMMAR = """
start: | statement | start end | start end statement
end: nl | ";"
statement: sum | "return" | "return" tight{sum}
sum: value | sum "+" value
value: NAME | "(" sum ")" | NAME tight{"++"}
nl: NL
NAME: /[a-z]+/
NL: /\\n/
BLANK: / +/
%ignore BLANK
"""
SPEC = """
name = "broken"
suffixes = [".broken"]
start = "start"
breaks = "nl"
"""


def written(folder: Path, grammar: str, spec: str) -> Language:
    (folder / "broken.lark").write_text(grammar, encoding="utf-8")
    (folder / "broken.toml").write_text(spec, encoding="utf-8")
    return Language.from_files(folder / "broken.lark", folder / "broken.toml")


@pytest.mark.parametrize(
    ("text", "is_complete"),
    [
        ("a +\n\nb\n", True),
        ("a\n+ b; c", True),
        ("(\na\n)\n", True),
        ("a\n++", False),
        ("return\na", True),
        ("return a\n", True),
        ("return a b", False),
        ("\n\na\n\n", True),
    ],
)
def test_a_grammar_has_breaks(tmp_path: Path, text: str, is_complete: bool) -> None:
    language = written(tmp_path, GRAMMAR, SPEC)
    for cut in range(len(text) + 1):
        assert language.open(text[:cut], text[cut:]).check("").complete == is_complete


@pytest.mark.parametrize(
    ("grammar", "spec", "message"),
    [
        (GRAMMAR, SPEC.replace('"nl"', "1"), "breaks: expected the name of a rule or lexeme"),
        (GRAMMAR, SPEC.replace('"nl"', '""'), "breaks: expected the name of a rule or lexeme"),
        (GRAMMAR, SPEC.replace('"nl"', '"no"'), "no"),
        (GRAMMAR.replace("tight{sum}", "once{tight{sum}}") + "\nonce{x}: x\n", SPEC, "begins with tight"),
        (GRAMMAR.replace("tight{sum}", "once{sum}") + "\nonce{x}: tight{x} | x\n", SPEC, "begins with tight"),
    ],
)
def test_wrong_breaks_are_one_line(tmp_path: Path, grammar: str, spec: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message) as caught:
        written(tmp_path, grammar, spec)
    assert "\n" not in str(caught.value)
