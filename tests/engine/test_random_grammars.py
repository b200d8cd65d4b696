"""Random small grammars with random lexers, against brute force.

The languages and the oracle are in `support.languages.toys`. Where the engine says viable, the oracle checks the
engine's own shortest completion. Where it says not viable, the oracle looks for a completion among all short texts.
"""

import itertools
import json
import os
import random
from typing import Any

import pytest
import regex

from support.languages.definitions import compiled_or_none
from support.languages.toys import SEPARATOR, Oracle, Toy, check_contexts, contexts, random_toy

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
GRAMMARS = 4000 if LONG else 250


def toys(count: int, seed: int) -> list[tuple[int, Toy]]:
    return [(index, random_toy(random.Random(seed * 1_000_003 + index))) for index in range(count)]


@pytest.mark.parametrize("chunk", range(10))
def test_random_grammars_agree_with_brute_force(chunk: int) -> None:
    verdicts = {"complete": 0, "viable": 0, "refused": 0, "languages": 0}
    for index, toy in toys(GRAMMARS // 10, chunk):
        language = compiled_or_none(toy.spec())
        if language is None:
            continue
        oracle = Oracle(toy)
        members = [text for text in oracle.texts(5) if oracle.member(text)]
        if not members:
            continue
        verdicts["languages"] += 1
        rng = random.Random(index)
        for left, right in contexts(oracle, rng, members):
            check_contexts(language, oracle, left, right, rng, verdicts, toy)
    assert min(verdicts.values()) > 0, verdicts


def test_quotient_grammar_agrees_with_brute_force() -> None:
    """With separators around the cursor the quotient grammar is over whole lexemes: compare it word by word."""
    compared = {True: 0, False: 0}
    for index, toy in toys(GRAMMARS // 2, 77):
        if not toy.separated or toy.soft:
            continue
        language = compiled_or_none(toy.spec())
        if language is None:
            continue
        oracle = Oracle(toy)
        spellings = {name: shortest_spelling(oracle, name) for name, *_ in toy.lexemes}
        words = {name: text for name, text in spellings.items() if text is not None}
        rng = random.Random(index)
        for _ in range(3):
            left = "".join(rng.choice(list(words.values())) + SEPARATOR for _ in range(rng.randint(0, 2)))
            right = "".join(SEPARATOR + rng.choice(list(words.values())) for _ in range(rng.randint(0, 2)))
            accepts = bnf_acceptor(language.open(left, right).quotient_grammar(), toy)
            for length in range(4):
                for names in itertools.product(words, repeat=length):
                    middle = SEPARATOR.join(words[name] for name in names)
                    expected = oracle.member(left + middle + right)
                    assert accepts(names) == expected, (toy, left, names, right)
                    compared[expected] += 1
    assert min(compared.values()) > 100, compared


def shortest_spelling(oracle: Oracle, name: str) -> str | None:
    return next((text for text in oracle.texts(4) if oracle.lex(text) == [frozenset([name])]), None)


def bnf_acceptor(text: str, toy: Toy) -> Any:
    """Reads the BNF that the engine writes; returns a recogniser of lexeme names."""
    names = {json.dumps(literal): name for name, literal, *_ in toy.lexemes if literal}
    rules: list[tuple[str, tuple[str, ...]]] = []
    pieces = regex.compile(r"<[^>]*>|[^\s]+")
    for block in regex.split(r"\n(?=<)", text.strip()):
        lhs, _, body = block.partition(" ::= ")
        for alternative in body.split("\n    | "):
            rhs = tuple(names.get(piece, piece) for piece in pieces.findall(alternative) if piece != "ε")
            if "::=" in block:
                rules.append((lhs, rhs))
    renamed = Toy((), tuple(("s" if lhs == "<middle>" else lhs, rhs) for lhs, rhs in rules), False)
    oracle = Oracle(renamed)
    return lambda sequence: oracle.parses([frozenset([name]) for name in sequence])
