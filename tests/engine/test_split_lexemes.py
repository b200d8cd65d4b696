"""Split lexemes against brute force: each lexeme of a text is taken whole, or in parts, in all ways.

The oracle lexes as it always does, and then tries every way to split what it has read; it knows nothing of triples.
"""

import itertools
import os
import random
from pathlib import Path

import pytest

from fim_server import Language
from fim_server.errors import LanguageError
from fim_server.language.definition.splitting import split
from support.languages.definitions import compiled_or_none
from support.languages.toys import Oracle, Toy, check_contexts, contexts

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
LANGUAGES = 1000 if LONG else 45

PARTS = {
    "aa": ("a", "a"),
    "ab": ("a", "b"),
    "bb": ("b", "b"),
    "aab": ("a", "ab"),
    "aaa": ("aa", "a"),
    "bba": ("bb", "a"),
}
"""Splittable lexemes, by their text; the parts of some are split in turn."""

PATTERNS = {"ba+": ("Tb", "a+"), "ab+": ("Ta", "b+"), "aa[ab]": ("Taa", "[ab]")}
"""Splittable patterns, each with a literal part and the pattern of the other part."""


class SplitOracle(Oracle):
    """Brute force over a language with split lexemes."""

    def __init__(self, toy: Toy, parts: dict[str, tuple[str, ...]]) -> None:
        super().__init__(toy)
        self.parts = parts

    def _member(self, text: str) -> bool:
        symbols = self.lex(text)
        if symbols is None:
            return False
        ways = [[way for name in names for way in self.ways(name)] for names in symbols]
        readings = (list(itertools.chain(*reading)) for reading in itertools.product(*ways))
        return any(self.parses([frozenset([name]) for name in reading]) for reading in readings)

    def ways(self, name: str) -> list[tuple[str, ...]]:
        if name not in self.parts:
            return [(name,)]
        inner = itertools.product(*(self.ways(part) for part in self.parts[name]))
        return [(name,), *(tuple(itertools.chain(*way)) for way in inner)]


def random_language(rng: random.Random) -> tuple[Toy, dict[str, tuple[str, ...]]]:
    """A language of a few literals and patterns, and the parts of what can be split, by their names."""
    texts = ["a", "b", *rng.sample(sorted(PARTS), rng.randint(1, 3))]
    lexemes: list[tuple[str, str | None, str | None, int]] = [(f"T{text}", text, None, 0) for text in texts]
    if rng.random() < 0.3:
        lexemes.append(("P", None, rng.choice(["ba+", "a+b", "b+"]), 0))
    parts = {
        f"T{text}": tuple(f"T{part}" for part in PARTS[text])
        for text in texts
        if text in PARTS and all(part in texts for part in PARTS[text])
    }
    if rng.random() < 0.5:
        whole, (literal, rest) = rng.choice(sorted(PATTERNS.items()))
        if literal[1:] in texts:
            lexemes += [("WHOLE", None, whole, rng.choice([0, 1])), ("REST", None, rest, 0)]
            parts["WHOLE"] = (literal, "REST")
    nonterminals = ["s", "x", "y", "z"][: rng.randint(2, 4)]
    # The parser may take the whole of a pattern, as of a literal, or only its parts.
    taken = [name for name, *_ in lexemes if name != "WHOLE" or rng.random() < 0.5]
    symbols = [*taken, "Ta", "Ta", "Tb", *nonterminals]
    rules = {
        (nonterminal, tuple(rng.choice(symbols) for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))))
        for nonterminal in nonterminals
        for _ in range(rng.randint(1, 3))
    }
    return Toy(tuple(lexemes), tuple(sorted(rules)), rng.random() < 0.5), parts


@pytest.mark.parametrize("chunk", range(2))
def test_split_lexemes_agree_with_brute_force(chunk: int) -> None:
    verdicts = {"complete": 0, "viable": 0, "refused": 0, "languages": 0, "split": 0, "patterns": 0}
    for index in range(LANGUAGES // 2):
        rng = random.Random(chunk * 1_000_003 + index)
        toy, parts = random_language(rng)
        if not parts:
            continue
        spec = toy.spec()
        spec["rules"] = [{"lhs": lhs, "rhs": list(rhs)} for lhs, rhs in split("toy", "s", toy.rules, parts)]
        language = compiled_or_none(spec)
        if language is None:
            continue
        oracle, plain = SplitOracle(toy, parts), Oracle(toy)
        members = [text for text in oracle.texts(5) if oracle.member(text)]
        if not members:
            continue
        verdicts["languages"] += 1
        verdicts["split"] += any(not plain.member(text) for text in members)
        verdicts["patterns"] += "WHOLE" in parts and any(not plain.member(text) for text in members)
        for left, right in contexts(oracle, rng, members):
            check_contexts(language, oracle, left, right, rng, verdicts, toy)
    assert min(verdicts.values()) > 0, verdicts


def test_only_triples_that_a_text_goes_through_are_made() -> None:
    rules = [
        ("s", ("list",)),
        ("s", ("s", "SHIFT", "list")),
        ("list", ("NAME",)),
        ("list", ("NAME", "LESS", "list", "MORE")),
    ]
    found = split("test", "s", rules, {"SHIFT": ["MORE", "MORE"]})
    assert set(found) - set(rules) == {
        ("list", ("NAME", "LESS", "list{; MORE}")),
        ("list{; MORE}", ("NAME", "LESS", "list", "SHIFT")),
    }


GRAMMAR = """
start: type NAME | start ">>" NAME
type: NAME | NAME "<" types ">"
types: type | types "," type
NAME: /[a-z]+/
BLANK: / +/
%ignore BLANK
"""


def written(folder: Path, split_table: str) -> Language:
    (folder / "generics.lark").write_text(GRAMMAR)
    (folder / "generics.toml").write_text(
        f'name = "generics"\nsuffixes = [".g"]\nstart = "start"\n{split_table}\n[layout]\nrule = "none"\n'
        '[constructs]\n"type <" = "type arguments"\n'
    )
    return Language.from_files(folder / "generics.lark", folder / "generics.toml")


def test_a_definition_says_what_is_split(tmp_path: Path) -> None:
    language = written(tmp_path, '[split]\n">>" = [">", ">"]\n')
    session = language.open("a<b<", " x >> y")
    assert session.check("c>>").complete
    assert session.check("c> >").complete
    assert not session.check("c>>>").viable
    assert language.open("a<b<c>", "> x").check("").complete  # what is split may be cut as well
    assert not language.open("", "").check("a < b >> c").complete


CONDITIONAL = r"""
start: value
value: value "?." NAME | value "?" value ":" value | NAME | NUMBER
NAME: /[a-z]+/
NUMBER: /[0-9]*\.?[0-9]+/
CONDITION: /\?\.[0-9]+/
BLANK: / +/
%ignore BLANK
"""


def test_a_pattern_is_split(tmp_path: Path) -> None:
    (tmp_path / "a.lark").write_text(CONDITIONAL)
    spec = 'name = "conditional"\nsuffixes = [".c"]\nstart = "start"\n[layout]\nrule = "none"\n'
    (tmp_path / "a.toml").write_text(f'{spec}[split]\nCONDITION = ["?", "NUMBER"]\n')
    language = Language.from_files(tmp_path / "a.lark", tmp_path / "a.toml")
    texts = {"a?.5:1": True, "a?.b": True, "a?.b:1": False, "a?.5": False, "a ? .5 : b?.c": True, "a?.5 ?.b:1": True}
    for text, whole in texts.items():
        for start in range(len(text) + 1):
            for end in range(start, len(text) + 1):
                verdict = language.open(text[:start], text[end:]).check(text[start:end])
                assert verdict.complete == whole, (text, start, end)
                assert verdict.viable or not whole, (text, start, end)
    (tmp_path / "a.toml").write_text(f'{spec}[split]\nCONDITION = ["?", "DIGITS"]\n')
    with pytest.raises(LanguageError, match=r"split\.CONDITION: no rule uses the literal 'DIGITS'"):
        Language.from_files(tmp_path / "a.lark", tmp_path / "a.toml")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('[split]\n">>" = [">", "<"]\n', r"split\.>>: its parts, put together, are not '>>'"),
        ('[split]\n">>" = [">>"]\n', r"split\.>>: its parts, put together, are not '>>'"),
        ('[split]\n"<<" = ["<", "<"]\n', r"split: no rule uses the literal '<<'"),
        ('[split]\nNAME = ["NAME", ">"]\n', r"split\.NAME: it is among its own parts"),
        ('[split]\nNAME = ["BLANK", ">"]\nBLANK = ["<", "NAME"]\n', r"split\.NAME: it is among its own parts"),
        ('[split]\n">>" = ">"\n', r"split\.>>: invalid type: string"),
    ],
)
def test_a_wrong_table_is_named(table: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(LanguageError, match=message):
        written(tmp_path, table)
