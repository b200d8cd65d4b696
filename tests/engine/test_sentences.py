"""Sentences of the Python grammar (support/grammar_sentences.py): what it derives is Python, and cuts change nothing.

The long form (FIM_SERVER_LONG=1) draws many more of them; FIM_SERVER_SEED draws others.
"""

from __future__ import annotations

import os
import random
from functools import cache

import pytest

from fim_server import Language
from support.engine.exactness import documented
from support.engine.judge import Judge, unavailable
from support.languages.grammar_sentences import Sentences
from support.languages.grammar_twin import Grammar, language
from support.languages.python_twin import reference, running_language

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = int(os.environ.get("FIM_SERVER_SEED", "6"))
SIZES = (5, 15, 30, 60, 200) if LONG else (5, 10, 20)


def drawn(grammar: Grammar, rng: random.Random, more: int) -> list[str]:
    """A sentence for every rule, and more."""
    sentences = Sentences(grammar, rng)
    texts = [text for _ in range(5 if LONG else 1) for text in sentences.one_of_each_rule(rng.choice(SIZES))]
    texts += [sentences.sentence(rng.choice(SIZES)) for _ in range(more)]
    assert all(sentences.used[number] for number, (_, right) in enumerate(grammar.rules) if right)
    return texts


@cache
def newest() -> tuple[str, ...]:
    return tuple(drawn(language("python"), random.Random(SEED), 20_000 if LONG else 100))


def test_sentences_are_in_their_own_grammar() -> None:
    assert not [(text, str(refused)) for text in newest() if (refused := language("python").check(text)) is not None]


def test_sentences_are_what_the_newest_cpython_takes() -> None:
    if (reason := unavailable()) is not None:
        pytest.skip(reason)
    with Judge() as judge:
        refused = [text for text, verdict in zip(newest(), judge.verdicts(newest()), strict=True) if verdict is False]
        assert not [text for text in refused if documented(judge, text, True) is None]


def test_sentences_of_the_running_version_are_what_the_running_cpython_takes() -> None:
    grammar = running_language()
    texts = drawn(grammar, random.Random(SEED + 1), 20_000 if LONG else 50)
    assert not [text for text in texts if grammar.check(text) is not None or not reference(text)]


@pytest.mark.parametrize("version", Language.versions("python") if LONG else (None,))
def test_sentences_are_complete_wherever_they_are_cut(version: str | None) -> None:
    """Every sentence is complete, as a whole and as the middle between two parts of it, and its prefixes are viable."""
    rng = random.Random(SEED + 2)
    python = Language.load("python", version)
    texts = list(newest()) if version is None else drawn(language("python", version), rng, 2000)
    wrong = []
    for text in rng.sample(texts, len(texts) if LONG else 300):
        begin, end = sorted(rng.choices(range(len(text) + 1), k=2))
        for left, middle, right in (("", text, ""), (text[:begin], text[begin:end], text[end:])):
            session = python.open(left, right)
            verdict = session.check(middle)
            cut = rng.randint(0, len(middle))
            if not verdict.viable or not verdict.complete or not session.check(middle[:cut]).viable:
                wrong.append((left, middle, right, verdict, cut))
    assert not wrong, wrong[:5]


def test_sentences_say_the_same_in_engine_and_twin_once_they_are_changed() -> None:
    """One character left out, doubled or put in somewhere, and the rest kept on both sides of it."""
    rng = random.Random(SEED + 3)
    python = Language.load("python")
    wrong = []
    for text in rng.sample(newest(), len(newest()) if LONG else 200):
        at = rng.randrange(len(text))
        middle = rng.choice(["", text[at] * 2, rng.choice("'\"{}()[]:=!\\#.,\n \tfrt*0x")])
        left, right = text[:at], text[at + rng.randint(0, 1) :]
        complete = python.open(left, right).check(middle).complete
        if complete != (language("python").check(left + middle + right) is None):
            wrong.append((left, middle, right, complete))
    assert not wrong, wrong[:5]
