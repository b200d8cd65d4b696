"""Matched text against brute force: a rule binds a text, and where it has to come again, nothing else may stand.

The oracle parses by spans and by the text that is bound around each; it knows nothing of marks and slots.
"""

import os
import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from definitions import compiled_or_none
from fim_server import Language, Session, Vocabulary, _core
from fim_server.errors import LanguageError
from fim_server.language.matching import Matching
from toys import Oracle, Toy, check_contexts, contexts

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
LANGUAGES = 1500 if LONG else 18

LEXEMES: tuple[tuple[str, str | None, str | None, int], ...] = (
    ("OPEN", "d", None, 0),
    ("CLOSE", "e", None, 0),
    ("MARK", "f", None, 0),
    ("NAME", None, "[ab]+", 0),
)


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
        texts = self.texts_of(text)
        count = len(symbols)
        names: list[str | None] = [None, *dict.fromkeys(texts)]
        self.symbols, self.names = symbols, texts
        spans: dict[tuple[int, int], set[tuple[str, str | None]]] = {}
        for length in range(count + 1):
            for begin in range(count - length + 1):
                found = spans[begin, begin + length] = set()
                changed = True
                while changed:
                    changed = False
                    for lhs, rhs in self.toy.rules:
                        for name in names:
                            if (lhs, name) not in found and self.derives(spans, lhs, rhs, begin, begin + length, name):
                                found.add((lhs, name))
                                changed = True
        return ("s", None) in spans[0, count]

    def texts_of(self, text: str) -> list[str]:
        """The texts of the symbols."""
        found, rest = [], text
        for symbol in self.lex(text) or []:
            rest = rest.lstrip("c")
            length = len(rest) - len(rest.lstrip("ab")) if symbol == {"NAME"} else 1
            found.append(rest[:length])
            rest = rest[length:]
        return found

    def derives(
        self,
        spans: dict[tuple[int, int], set[tuple[str, str | None]]],
        lhs: str,
        rhs: tuple[str, ...],
        begin: int,
        end: int,
        name: str | None,
    ) -> bool:
        if not rhs:
            return begin == end
        first, rest = rhs[0], rhs[1:]
        if first == "n":
            if begin >= end or self.symbols[begin] != {"NAME"} or lhs == "m" and self.names[begin] != name:
                return False
            own = self.names[begin] if lhs == "x" else name
            return self.derives(spans, lhs, rest, begin + 1, end, own)
        if first.isupper():
            is_it = begin < end and self.symbols[begin] == {first}
            return is_it and self.derives(spans, lhs, rest, begin + 1, end, name)
        return any(
            (first, name) in spans.get((begin, split), ()) and self.derives(spans, lhs, rest, split, end, name)
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
    spec["marks"] = matching.marks()
    return compiled_or_none(spec)


def members_of(oracle: MatchedOracle, rng: random.Random) -> list[str]:
    """Texts of the language in which something matches, as far as chance finds some."""
    names = ["a", "b", "ab", "ba"]
    found = []
    for _ in range(400):
        pieces = [rng.choice([*names, "d", "e", "e", "f", "d" + (name := rng.choice(names)), name]) for _ in range(9)]
        text = "c".join(pieces[: rng.randint(1, 9)]).replace("ed", "e d".replace(" ", ""))
        if len(text) <= 16 and oracle.member(text):
            found.append(text)
    return found


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
        members = members_of(oracle, rng)
        if not members:
            continue
        verdicts["languages"] += 1
        verdicts["matched"] += any(text.count("d") and len(text) > 6 for text in members)
        for left, right in contexts(oracle, rng, sorted(members, key=len)[-8:]):
            check_contexts(language, oracle, left, right, rng, verdicts, toy)
            check_masks(language, left, right, rng, verdicts, toy)
    print(verdicts)
    assert min(verdicts[key] for key in ("complete", "viable", "refused", "languages", "matched", "masks")) > 0, verdicts


def check_masks(
    language: _core.Language, left: str, right: str, rng: random.Random, verdicts: dict[str, int], toy: Toy
) -> None:
    """Masks are those of every token by itself, on the way through a middle."""
    core = language.open(left, right)
    session = Session(core)
    verdicts["loose"] += core.is_loose()
    pieces = ["a", "b", "ab", "d", "e", "f", "c", "da", "eb", "dab", "cf", "aca", "dace", "bcaf", "abab", "daca", "daec"]
    more = ["".join(rng.choice("abcdef") for _ in range(rng.randint(2, 6))) for _ in range(60)]
    tokens = [piece.encode() for piece in dict.fromkeys([*pieces, *more])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIM_SERVER_CACHE", "")
        vocabulary = Vocabulary(tokens, [])
    for _ in range(3):
        matcher = session.matcher(vocabulary)
        for _ in range(5):
            mask = [int(token) for token in matcher.mask().nonzero()[0]]
            one_by_one = [token for token in range(len(tokens)) if matcher.allows(token)]
            assert mask == one_by_one, (toy, left, right, [tokens[token] for token in set(mask) ^ set(one_by_one)])
            verdicts["masks"] += 1
            if not one_by_one:
                break
            matcher.commit(rng.choice(one_by_one))

