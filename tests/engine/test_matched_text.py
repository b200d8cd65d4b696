"""Matched text against brute force: a rule binds a text, and where it has to come again, nothing else may stand.

The oracle parses by spans and by the text that is bound around each; it knows nothing of marks and slots.
"""

import os
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import regex

from fim_server import Language, Session, Vocabulary, _core
from fim_server.errors import LanguageError, StoppedError
from fim_server.language.definition.matching import Matching
from fim_server.language.shapes import SINGLE_LINE
from fim_server.language.stop import Stop
from fim_server.text.reuse import Sessions
from fim_server.tokens import masks
from support.languages.definitions import compiled_or_none
from support.languages.toys import Oracle, Toy, check_contexts, contexts

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
LANGUAGES = 1500 if LONG else 12

LEXEMES: tuple[tuple[str, str | None, str | None, int], ...] = (
    ("OPEN", "d", None, 0),
    ("CLOSE", "e", None, 0),
    ("MARK", "f", None, 0),
    ("NAME", None, "[ab]+", 0),
)


Fact = tuple[str, int, int, str | None]
"""A nonterminal, from which symbol to which, and the text that is bound there."""


@dataclass(frozen=True)
class MatchedToy(Toy):
    """A language of names, in which `x` binds and `m` matches."""

    @property
    def alphabet(self) -> str:
        return "abcdef"


class MatchedOracle(Oracle):
    """Brute force over a language with matched text."""

    def _member(self, text: str) -> bool:
        symbols = self.lex(text)
        if symbols is None:
            return False
        self.symbols, self.names = symbols, self.texts_of(text)
        self.known: set[Fact] = set()
        whole: Fact = ("s", 0, len(symbols), None)
        while True:
            before = len(self.known)
            self.tried: set[Fact] = set()
            if self.proves(whole):
                return True
            if len(self.known) == before:
                return False

    def proves(self, fact: Fact) -> bool:
        """Return whether a nonterminal derives some symbols where a text is bound; facts under trial count as false."""
        if fact in self.known:
            return True
        if fact in self.tried:
            return False
        self.tried.add(fact)
        lhs, begin, end, name = fact
        if any(self.derives(lhs, rhs, begin, end, name) for rhs in self.rules_of(lhs)):
            self.known.add(fact)
            return True
        return False

    def rules_of(self, lhs: str) -> list[tuple[str, ...]]:
        return [rhs for name, rhs in self.toy.rules if name == lhs]

    def texts_of(self, text: str) -> list[str]:
        """The texts of the symbols."""
        found, rest = [], text
        for symbol in self.lex(text) or []:
            rest = rest.lstrip("c")
            length = len(rest) - len(rest.lstrip("ab")) if symbol == {"NAME"} else 1
            found.append(rest[:length])
            rest = rest[length:]
        return found

    def derives(self, lhs: str, rhs: tuple[str, ...], begin: int, end: int, name: str | None) -> bool:
        if not rhs:
            return begin == end
        first, rest = rhs[0], rhs[1:]
        if first == "n":
            if begin >= end or self.symbols[begin] != {"NAME"} or (lhs == "m" and self.names[begin] != name):
                return False
            own = self.names[begin] if lhs == "x" else name
            return self.derives(lhs, rest, begin + 1, end, own)
        if first.isupper():
            return begin < end and self.symbols[begin] == {first} and self.derives(lhs, rest, begin + 1, end, name)
        return any(
            self.derives(lhs, rest, split, end, name) and self.proves((first, begin, split, name))
            for split in range(begin, end + 1)
        )


def random_language(rng: random.Random) -> MatchedToy:
    """Names are bound behind a bracket and stay bound up to the one that closes it, so that no two are at once."""
    inner = ["b", "b", "y", "m", "x", "NAME", "MARK", "n"]

    def some(symbols: list[str], most: int) -> tuple[str, ...]:
        return tuple(rng.choice(symbols) for _ in range(rng.randint(0, most)))

    rules: set[tuple[str, tuple[str, ...]]] = {("n", ("NAME",))}
    for _ in range(rng.randint(1, 2)):
        rules.add(("x", ("OPEN", "n", *some(["MARK", "NAME", "k"], 1), "b", "CLOSE")))
        rules.add(("m", (*some(["MARK", "k"], 1), "n", *some(["MARK", "MARK", "k"], 1))))
    for _ in range(rng.randint(1, 3)):
        rules.add(("b", some(inner, 3)))
        rules.add(("y", (*some(inner, 1), rng.choice(["m", "n", "MARK"]), *some(inner, 1))))
    rules.add(("b", rng.choice([(), ("b", "m"), ("b", "y"), ("m", "b"), ("b", "m", "MARK")])))
    for _ in range(rng.randint(1, 2)):
        rules.add(("k", rng.choice([("MARK", "MARK"), ("NAME",), ("x",), ("OPEN", "CLOSE"), ()])))
        rules.add(("s", some(["x", "x", "s", "NAME", "k"], 2)))
    rules.add(("s", ("x",)))
    return MatchedToy(LEXEMES, tuple(sorted(rules)), True)


def compiled(toy: Toy) -> _core.Language | None:
    matching = Matching("toy", "s", toy.rules, {"symbol": "n", "binds": ["x"], "matches": ["m"]})
    spec = toy.spec()
    spec["rules"] = [{"lhs": lhs, "rhs": list(rhs)} for lhs, rhs in matching.rules]
    spec["lexemes"] += [{"name": mark["name"]} for mark in matching.marks()]
    spec["marks"], spec["slotted"] = matching.marks(), matching.slotted()
    return compiled_or_none(spec)


def sentence(toy: MatchedToy, rng: random.Random, symbol: str, name: str, depth: int) -> list[str] | None:
    """The texts of a sentence; None where it nests too deeply."""
    if symbol.isupper():
        return [{"OPEN": "d", "CLOSE": "e", "MARK": "f"}.get(symbol) or rng.choice(["a", "b", "ab", "ba"])]
    if depth == 0:
        return None
    rules = [rhs for lhs, rhs in toy.rules if lhs == symbol]
    if not rules:
        return None
    found: list[str] = []
    own = name
    for part in rng.choice(rules):
        if part == "n":
            text = name if symbol == "m" else rng.choice(["a", "b", "ab", "ba"])
            own = text if symbol == "x" else own
            found.append(text)
            continue
        inner = sentence(toy, rng, part, own, depth - 1)
        if inner is None:
            return None
        found.extend(inner)
    return found


def members_of(toy: MatchedToy, oracle: MatchedOracle, rng: random.Random) -> list[str]:
    """Some texts of the language."""
    found = set()
    for _ in range(300):
        pieces = sentence(toy, rng, "s", "none", 7)
        if pieces is None or not 2 <= len(pieces) <= 12:
            continue
        text = pieces[0]
        for piece in pieces[1:]:
            apart = (text[-1] in "ab" and piece[0] in "ab") or rng.random() < 0.3
            text += ("c" if apart else "") + piece
        assert "none" in text or oracle.member(text), (toy, text)
        if "none" not in text:
            found.add(text)
    return sorted(found)


@pytest.mark.parametrize("chunk", range(3))
def test_matched_text_agrees_with_brute_force(chunk: int) -> None:
    verdicts = {"complete": 0, "viable": 0, "refused": 0, "languages": 0, "matched": 0, "masks": 0, "loose": 0}
    for index in range(LANGUAGES // 3):
        rng = random.Random(chunk * 1_000_003 + index)
        toy = random_language(rng)
        language = compiled(toy)
        if language is None:
            continue
        oracle = MatchedOracle(toy)
        members = members_of(toy, oracle, rng)
        if not members:
            continue
        vocabulary = vocabulary_of(rng)  # one for all names: what is kept of a state is shared
        verdicts["languages"] += 1
        verdicts["matched"] += any(text.count("d") and len(text) > 6 for text in members)
        for left, right in contexts(oracle, rng, sorted(members, key=len)[-8:]):
            if len(set(regex.findall("[ab]+", right))) > 2:
                continue  # more texts than R may ask for without having bound them
            check_contexts(language, oracle, left, right, rng, verdicts, toy)
            check_masks(language, vocabulary, left, right, rng, verdicts, toy)
    print(verdicts)
    assert min(verdicts[key] for key in ("complete", "viable", "refused", "languages", "matched", "masks")) > 0, (
        verdicts
    )


def vocabulary_of(rng: random.Random) -> Vocabulary:
    pieces = [
        "a",
        "b",
        "ab",
        "d",
        "e",
        "f",
        "c",
        "da",
        "eb",
        "dab",
        "cf",
        "aca",
        "dace",
        "bcaf",
        "abab",
        "daca",
        "daec",
    ]
    more = ["".join(rng.choice("abcdef") for _ in range(rng.randint(2, 6))) for _ in range(60)]
    tokens: list[bytes | None] = [piece.encode() for piece in dict.fromkeys([*pieces, *more])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIM_SERVER_CACHE", "")
        return Vocabulary(tokens, [])


def check_masks(
    language: _core.Language,
    vocabulary: Vocabulary,
    left: str,
    right: str,
    rng: random.Random,
    verdicts: dict[str, int],
    toy: Toy,
) -> None:
    """Masks are those of every token by itself, on the way through a middle."""
    core = language.open(left, right)
    session = Session(core)
    verdicts["loose"] += core.is_loose()
    for _ in range(3):
        matcher = session.matcher(vocabulary)
        for _ in range(5):
            mask = [int(token) for token in matcher.mask().nonzero()[0]]
            one_by_one = [token for token in range(vocabulary.size) if matcher.allows(token)]
            different = [vocabulary.token_bytes(token) for token in set(mask) ^ set(one_by_one)]
            assert mask == one_by_one, (toy, left, right, different)
            verdicts["masks"] += 1
            if not one_by_one:
                break
            matcher.commit(rng.choice(one_by_one))


@cache
def java() -> Language:
    return Language.load("java")


@cache
def embedded() -> Vocabulary:
    return Vocabulary.from_file(Path(__file__).parents[2] / "fim_server" / "models" / "embedded" / "tokenizer.json")


@pytest.mark.parametrize("name", ["Point", "P", "Pub", "Line", "Constructor"])
def test_masks_of_any_name_are_those_of_the_plain_walk(name: str) -> None:
    text = f"class {name} {{ public {name}(int x) {{ }} private Pointer y; class Q {{ Q() {{ }} }} {name}() {{ }} }}"
    vocabulary = embedded()
    for at in range(0, len(text), 3):
        session = java().open(text[:at], text[min(len(text), at + 9) :])
        if session.guarantee == "exact":
            words = [np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32) for _ in range(2)]
            matcher = session.matcher(vocabulary)
            matcher.fill_mask(words[0])
            matcher.fill_mask_plain(words[1])
            assert (words[0] == words[1]).all(), (text[:at], np.flatnonzero(words[0] ^ words[1]))


def test_names_count_in_single_lines_after_keystrokes_and_where_plans_end() -> None:
    line = java().open("class Point { public ", "(int x) { } }").matcher(embedded(), shape=SINGLE_LINE)
    of_line = {embedded().token_bytes(int(token)).strip() for token in line.mask().nonzero()[0]}
    assert b"P" in of_line
    for token in map(int, line.mask().nonzero()[0]):
        assert line.allows(token)
    plan = java().open("class Point { public ", "(int x) { } }").matcher(embedded()).plan()
    assert plan is not None
    assert b"".join(embedded().token_bytes(token) for token in plan).strip() == b"Point"
    sessions = Sessions()
    for end in range(len("class Point { Point() { }")):
        typed = "class Point { Point() { }"[: end + 1]
        kept, fresh = sessions.open(java(), typed, " }"), java().open(typed, " }")
        for middle in ("", "Point() { }", " Point() { }", "Line() { }", "nt() { }"):
            assert kept.check(middle) == fresh.check(middle), (typed, middle)


def test_what_is_stopped_leaves_names_as_they_are() -> None:
    vocabulary = embedded()
    java().open("", "").matcher(vocabulary).mask()
    stopped = 0
    for index in range(300):
        masks.clear(java(), vocabulary)
        session = java().open("class Point { " + "static " * (index % 5), " }")
        try:
            with Stop(within=index % 30 * 2e-5):
                session.matcher(vocabulary).mask()
        except StoppedError:
            stopped += 1
        assert session.check("Line a; Point() { }").complete
        assert not session.check("Line a; Line() { }").complete
    assert stopped > 0


DEFINITION = """
start: class*
class: "class" name "{" member* "}"
member: name "(" ")" | NAME NAME ";"
name: NAME
NAME: /[A-Za-z]+/
BLANK: / +/
%ignore BLANK
"""


def written(folder: Path, table: str) -> Language:
    (folder / "classes.lark").write_text(DEFINITION)
    (folder / "classes.toml").write_text(
        f'name = "classes"\nsuffixes = [".c"]\nstart = "start"\n{table}\n[layout]\nrule = "none"\n'
    )
    return Language.from_files(folder / "classes.lark", folder / "classes.toml")


def test_a_definition_says_what_is_matched(tmp_path: Path) -> None:
    language = written(tmp_path, '[matched]\nsymbol = "name"\nbinds = ["class"]\nmatches = ["member"]\n')
    assert language.open("class A { ", " }").check("A() B c; A()").complete
    assert not language.open("class A { ", " }").check("B()").viable
    assert not written(tmp_path, "").open("class A { ", " }").check("1").viable
    assert written(tmp_path, "").open("class A { ", " }").check("B()").complete


@pytest.mark.parametrize(
    ("left", "right", "completion"),
    [
        ("<long-element-name><other-element-name>", "", "</other-element-name></long-element-name>"),
        ("", "</other-element-name></long-element-name>", "<long-element-name><other-element-name>"),
        ("<a>", "</other-element-name></one-more-element></a>", "<one-more-element><other-element-name>"),
    ],
)
def test_the_search_for_a_completion_knows_how_long_names_are(left: str, right: str, completion: str) -> None:
    assert Language.load("xml").open(left, right).start().shortest_completion() == completion


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('symbol = "nam"\nbinds = ["class"]\nmatches = ["member"]', "symbol: there is no rule nam"),
        ('symbol = "member"\nbinds = ["class"]\nmatches = ["member"]', "none of these rules has member in it"),
        ('symbol = "name"\nbinds = ["clas"]\nmatches = ["member"]', "binds: none of these rules has name in it"),
        ('symbol = "name"\nbinds = ["member"]\nmatches = ["class"]', "binds: lexemes have to stand before name"),
        ('symbol = "name"\nbinds = ["class"]', "missing field `matches`"),
        ('symbol = "name"\nbinds = "class"\nmatches = ["member"]', "matched.binds: invalid type: string"),
        ('symbol = "name"\nbinds = ["class"]\nmatches = ["member"]\nmore = 1', "matched.more: unknown field"),
    ],
)
def test_a_wrong_table_is_named(table: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(LanguageError, match=message):
        written(tmp_path, f"[matched]\n{table}\n")
