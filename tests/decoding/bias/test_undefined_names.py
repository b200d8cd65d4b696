"""Texts that load no unbound name: the judge, the tracker, their masks, and what is decoded under them."""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from fim_server import Language, Vocabulary
from fim_server.decoding.bias.undefined_names import TrackedNames, UndefinedNames
from fim_server.decoding.complete import complete
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.strategies.alternatives import alternatives
from fim_server.language_support.protocol import UndefinedNameError
from fim_server.language_support.python import model as names_model
from fim_server.language_support.python import required
from fim_server.language_support.python.lexemes import LEXEME
from fim_server.language_support.python.support import PythonSupport
from fim_server.language_support.python.tracking import as_bytes
from fim_server.recovery.recovery import Recovery
from fim_server.text.document import Split
from support import naming as decoding
from support import tree_names
from support.engine import corpus
from support.models.scripted_models import network

LONG = bool(os.environ.get("FIM_SERVER_LONG"))
CUTS = 10_000 if LONG else 100
TRUE_MIDDLES = 20_000 if LONG else 200
STATES = 200 if LONG else 8

# --- the judge -----------------------------------------------------------------------------------------------------

JUDGED = [
    ("def f(a):\n    return ", "a + b", "\n", ["b"]),
    ("", "print(later)\n", "later = 1\n", []),
    ("def f():\n    ", "x", "\n\ndef g():\n    x = 1\n", ["x"]),
    ("def f():\n    global x\n    x = 1\n", "print(x)", "\n", []),
    ("class A:\n    y = 1\n    def m(self):\n        ", "return y", "\n", ["y"]),
    ("class A:\n    y = 1\n    ", "z = y", "\n", []),
    ("class A:\n    y = [1]\n    ", "z = [q for q in y]", "\n", []),
    ("class A:\n    y = [1]\n    ", "z = [y for q in y]", "\n", ["y"]),
    ("class A:\n    def m(self):\n        ", "return __class__", "\n", []),
    ("", "print(__class__)", "\n", ["__class__"]),
    ("", "[x for x in y for y in z]", "\n", ["y", "z"]),
    ("", "[y := 1 for x in '']\nprint(y, x)", "\n", ["x"]),
    ("try:\n    pass\nexcept E", "rror as e:\n    print(e)", "\n", ["Error"]),
    ("del ", "gone\ngone", "\n", []),
    ("", "note: int\nnote", "\n", []),
    ("", "lambda a, *b, c=d: (a, b, c)", "\n", ["d"]),
    ("match 1:\n    case ", "[a, *b] | {'k': c, **d} if a and b and c and d:\n        e", "\n", ["e"]),
    ("from os import *\n", "anything", "\n", []),
    ("from os import\\\n  *\n", "anything", "\n", []),
    ("from os import\t*\n", "anything", "\n", []),
    ("'from os import *'\nx = 2 * 3\n", "anything", "\n", ["anything"]),
    ("def f():\n    global x\n    x = 1\n", "x", "\n", []),
    ("def f():\n    x = 'global x'\n", "x", "\n", ["x"]),
    ("def f(a: ", "'Nothing'", "): pass\n", []),
    ("x = f'{", "ab", "c}'\n", ["abc"]),
    ("pri", "nt(prin", "t)\n", []),
    ("b", "", "c\n", []),
    ("b", "1", "\n", ["b1"]),
    ("b", " + 1", "c\n", []),
    ("x = 1", "2", "c\n", []),
    ("x = ", "_", "\n", ["_"]),
    ("x = ", "é", "\n", ["é"]),
    (
        "class A:\n    __p = 1\n    q = __p\n    def m(self):\n        global __g\n        __g = 1\n",
        "__p",
        "\n",
        ["__p"],
    ),
]


@pytest.mark.parametrize(("left", "middle", "right", "names"), JUDGED)
def test_names_that_nothing_binds_are_found(left: str, middle: str, right: str, names: list[str]) -> None:
    assert sorted(names_model.unbound(left, middle, right)) == names


def test_names_of_a_broken_file_are_judged_by_its_words() -> None:
    left, right = "def f(:\n    known = 1\n    ", "\nother = 2\n"
    assert required.unbound(left, "known + other", right, False) == ()
    assert required.unbound(left, "known + nobody", right, False) == ("nobody",)


def test_the_judge_agrees_with_the_symbol_table() -> None:
    """Names of real files renamed, so that some are bound nowhere."""
    rng = random.Random(5)
    drawn = corpus.cuts(rng, 20_000, 4)
    judged = unbound = 0
    while judged < (2000 if LONG else 40):
        cut = next(drawn)
        words = [found for found in LEXEME.finditer(cut.middle) if found.lastgroup == "word"]
        if not words or "\r" in cut.source.text or not cut.source.text.isascii():
            continue
        word = rng.choice(words)
        middle = cut.middle[: word.start()] + rng.choice(["qux", "self", "os"]) + cut.middle[word.end() :]
        if (said := decoding.verdict(cut.left, middle, cut.right)) is None:
            continue
        judged += 1
        unbound += bool(said.unbound)
        mine = set(names_model.unbound(cut.left, middle, cut.right))
        # Of formatted strings the table's judge says nothing.
        assert said.unbound <= mine, (cut, middle)
        private = {name for name in mine if name.startswith("__")}  # the table's judge takes these for bound
        assert not (mine & said.loaded) - said.unbound - private, (cut, middle)
    assert unbound > judged / 30


# --- the tracker ---------------------------------------------------------------------------------------------------


def refused_at(left: str, middle: str, right: str, rng: random.Random) -> int | None:
    """Return the byte offset at which a middle, fed in pieces, is refused, or None if it is not."""
    tracker = required.track(left, right, "", True)
    data, at = as_bytes(middle), 0
    while at < len(data):
        size = rng.choice((1, 1, 2, 3, 5, 8))
        tracker = tracker.copy()
        try:
            tracker.feed(data[at : at + size])
        except UndefinedNameError:
            return at
        at += size
    return None


def is_documented(left: str, middle: str, right: str, at: int) -> bool:
    """Return whether the refused name is bound later than it is loaded, or is an assignment's second target.

    The text itself decides: without all that comes after the statement, nothing binds the name any more.
    """
    start = middle.rfind("\n", 0, at) + 1
    line = (left + middle)[(left + middle).rfind("\n", 0, len(left) + at) + 1 :]
    found = middle.find("\n", at)
    end = len(middle) if found < 0 else found
    shorter = tree_names.unbound(left, middle[:end], "\n")
    chained = (
        line.split("\n")[0].count("=") > 1 or (left.rpartition("\n")[2] + middle[start:end] + right).count("=") > 1
    )
    return chained or shorter is None or bool(shorter)


def test_true_middles_of_real_files_are_not_refused() -> None:
    rng = random.Random(11)
    drawn = corpus.cuts(rng, 20_000, 5)
    counts: Counter[str] = Counter()
    while counts["middles"] < TRUE_MIDDLES:
        cut = next(drawn)
        left, middle, right = (part.replace("\r\n", "\n") for part in (cut.left, cut.middle, cut.right))
        if tree_names.unbound(left, middle, right) != ():
            continue
        counts["middles"] += 1
        at = refused_at(left, middle, right, rng)
        if at is not None:
            counts["documented"] += 1
            assert is_documented(left, middle, right, at), f"{left[-100:]!r} | {middle!r} at {at} | {right[:60]!r}"
    print(dict(counts))
    assert counts["documented"] < counts["middles"] / 100


REFUSED = [
    ("def f(a):\n    return ", "qu", "x", "\n"),
    ("def f(a):\n    return ", "ab", "c", "\n"),
    ("x = [", "qux", ", 2", "]"),
    ("f(", "qux", ")", ")\n"),
    ("", "qux", "(1)", "\n"),
    ("x = ", "[a for a in b", "]", "\n"),
    ("[x for ", "x in ", "x]", "\n"),
    ("def g():\n    loc = 1\n\n", "print(loc", ")", "\n"),
    ("def h():\n    y = ", "z", "ed", "\ndef k():\n    zed = 2\n"),
    ("class A:\n    y = 1\n    def m(self):\n        return [", "y", "]", "\n"),
    ("s = f'{", "qu", "x", "}'\n"),
    ("match 1:\n    case ", "Fo", "o(x)", ":\n        pass\n"),
    ("", "import a.b\nprint(b", ")", "\n"),
    ("a, ", "b", "\n", "x = 1\n"),
]
"""A left text, what is taken after it, what is refused after that, and the right text."""

TAKEN = [
    ("x = [", "qux.a for qux in ''", "]\n"),
    ("x = {", "k: v for k, v in '' if k", "}\n"),
    ("f(", "qux=1", ")\n"),
    ("f(", "qux(x) for qux in dir() for x in qux", ")\n"),
    ("", "qux, (b, *c) = 1, 2\nprint(qux, b, c)", "\n"),
    ("", "for i, (a, x.y) in z: print(i)", "\nx = z = 1\n"),
    ("if ", "(n := len('')) > n", ": pass\n"),
    ("def f", "(a, b: int = 1, *c, **d) -> int:\n    return a + b + c + d", "\n"),
    ("def g():\n    loc = 1\n\n", "    print(loc)", "\nprint(2)\n"),
    ("x = 1\ny = ", "zed", "\nzed = 2\n"),
    ("", "import a.b as c, d.e\nprint(c, d)", "\n"),
    ("from x import ", "(a,\n    b as c)\nprint(a, c)", "\n"),
    ("with ", "open('') as f, f.x() as (g, h):\n    print(g, h)", "\n"),
    ("lam = ", "lambda q, *r, s=1: q + r + s", "\n"),
    ("match = 1\n", "match(match)\nmatch = match", "\n"),
    ("match 1:\n    case ", "int(real=r, imag=[i, *j]) if r and i and j", ":\n        pass\n"),
    ("class A(", "metaclass=type", "): pass\n"),
    ("try: pass\nexcept ", "Exception as e: print(e)", "\n"),
    ("s = f'{1} ", "qux {len(str(2)):>{3}} {id!r}", "'\n"),
    ('s = """', "qux", '"""\n'),
    ("x = 1  # ", "qux", "\n"),
    ("", "type = 3\ntype(type)", "\n"),
    ("async def f():\n    ", "return [x async for x in aiter(y)]", "\ny = 1\n"),
    ("def f():\n    ", "yield from dir()", "\n"),
    ("", "a: int = 1\na += a", "\n"),
    ("foo", "d = food", "\nfood = 1\n"),
]


@pytest.mark.parametrize(("left", "taken", "refused", "right"), REFUSED)
def test_a_name_that_can_no_longer_be_bound_is_refused(left: str, taken: str, refused: str, right: str) -> None:
    tracker = required.track(left, right, "", True)
    tracker.feed(as_bytes(taken))
    with pytest.raises(UndefinedNameError):
        tracker.feed(as_bytes(refused))


@pytest.mark.parametrize(("left", "middle", "right"), TAKEN)
def test_a_name_that_may_be_bound_is_not_refused(left: str, middle: str, right: str) -> None:
    for seed in range(5):
        assert refused_at(left, middle, right, random.Random(seed)) is None


def test_names_before_the_middle_do_not_count() -> None:
    tracker = required.track("nobody(nothing", ")\n", "", True)
    tracker.feed(", 1")
    assert required.unbound("nobody(nothing", ", 1", ")\n", True) == ()


def test_names_in_healed_text_do_not_count() -> None:
    tracker = required.track("nobody = nothing", "\n", " nothing", True)
    tracker.feed(" nothing")
    with pytest.raises(UndefinedNameError):
        tracker.feed("_at_all")


# --- masks ---------------------------------------------------------------------------------------------------------


def test_a_mask_is_the_check_of_every_token() -> None:
    rng = random.Random(2)
    drawn = corpus.cuts(rng, 20_000, 3)
    words = {found[0] for cut in (next(drawn) for _ in range(20)) for found in LEXEME.finditer(as_bytes(cut.middle))}
    texts = [
        *(word.encode("latin-1") for word in sorted(words)),
        *(b" " + text.encode() for text in ("os", "if", "x y")),
    ]
    texts += [bytes([byte]) for byte in range(256)] + [piece.encode() for piece in decoding.PIECES]
    vocabulary = Vocabulary([b"", b"", *dict.fromkeys(texts)], [1])
    refusing = 0
    for _ in range(STATES):
        cut = next(drawn)
        left, middle, right = (part.replace("\r\n", "\n") for part in (cut.left, cut.middle, cut.right))
        followed = TrackedNames(UndefinedNames(PythonSupport(), left, right, True), vocabulary, "")
        tokens = vocabulary.encode(middle)[: rng.randrange(20)]
        bits = np.unpackbits(followed.mask(tokens).view(np.uint8), bitorder="little")[: vocabulary.size]
        plain = [False, not followed.unbound(tokens)]
        plain += [not followed.refuses(tokens, token) for token in range(2, vocabulary.size)]
        assert bits.tolist() == plain
        refusing += not all(plain[2:])
    assert refusing


def test_a_name_mask_while_healing() -> None:
    vocabulary = Vocabulary([b"", *(text.encode() for text in ("no", "nobody", "x", " x", "\n", "_", "body"))], [0])
    followed = TrackedNames(UndefinedNames(PythonSupport(), "y = no", "\n", True), vocabulary, "no")
    bits = np.unpackbits(followed.mask([]).view(np.uint8), bitorder="little")[: vocabulary.size]
    assert bits.tolist()[1:] == [not followed.refuses([], token) for token in range(1, vocabulary.size)]
    assert not followed.refuses([], 1)
    assert followed.refuses([], 2)


# --- decoding ------------------------------------------------------------------------------------------------------


def test_no_text_loads_an_unbound_name() -> None:
    found = decoding.examined(CUTS, 4, 8_000 if LONG else 4_000)
    print(found)
    assert found.failures == []
    assert found.unbound["off"] > 0, "the model writes such names without the option"
    assert found.loading["require"] > 0
    assert found.texts["require"] > 0.6 * found.texts["off"]


PYTHON = Language.load("python")


def wanted(*pieces: str) -> tuple[Vocabulary, list[int]]:
    """A vocabulary, and some of its tokens."""
    return decoding.VOCABULARY, [token for piece in pieces for token in decoding.VOCABULARY.encode(piece)]


def preferring(tokens: list[int]) -> torch.Tensor:
    """Logits that prefer what comes first."""
    logits = torch.full((decoding.VOCABULARY.size,), -50.0)
    for place, token in enumerate(tokens):
        logits[token] = max(float(logits[token]), 40.0 - place)
    return logits


@pytest.mark.parametrize("single_line", [False, True])
@pytest.mark.parametrize("landing", [False, True])
def test_another_name_is_taken_where_the_first_is_unbound(single_line: bool, landing: bool) -> None:
    vocabulary, (zebra, value, end) = decoding.VOCABULARY, [*wanted("zebra", "value")[1], 0]
    model = network(vocabulary, lambda middle: preferring([end, zebra, value] if middle else [zebra, value, end]))
    split = Split("value = 1\nx = ", "\n")
    options = DecodeOptions(single_line=single_line, landing=landing, heal=False, max_new_tokens=8)
    assert complete(model, PYTHON, split, options).text == "zebra"
    assert complete(model, PYTHON, split, replace(options, names="require")).text == "value"


def test_without_an_allowed_name_the_reason_names_the_undefined_one() -> None:
    vocabulary, (zebra, end) = decoding.VOCABULARY, [*wanted("zebra")[1], 0]
    model = network(vocabulary, lambda middle: preferring([end] if middle else [zebra]))
    options = DecodeOptions(names="require", heal=False, landing=False, max_new_tokens=1)
    found = complete(model, PYTHON, Split("", "\n"), options)
    assert found.text is None
    assert found.reason == "wherever the text was complete it would load an undefined name"


def test_a_deadline_and_a_budget_cut_where_all_names_are_bound() -> None:
    vocabulary = decoding.VOCABULARY
    tokens = vocabulary.encode("value\nzebra.x")
    model = network(vocabulary, lambda middle: preferring([tokens[min(len(middle), len(tokens) - 1)]]))
    options = DecodeOptions(heal=False, landing=False, max_new_tokens=3, names="require")
    assert (complete(model, PYTHON, Split("value = 1\n", "\n"), options).text or "").strip() == "value"


def test_alternatives_load_no_undefined_name() -> None:
    model = network(decoding.VOCABULARY, lambda middle: decoding.noise(len(middle)) + preferring([0]) / 20)
    split = Split("value = 1\nprint(", ")\n")
    naming = UndefinedNames.of("python", split.left, split.right)
    options = DecodeOptions(undefined_names=naming, max_new_tokens=6)
    session = PYTHON.open(split.left, split.right)
    texts = [one.text for one in alternatives(model, session, split, 4, options) if one.text]
    assert texts
    assert all(tree_names.unbound(split.left, text, split.right) == () for text in texts)


def test_a_broken_file_goes_by_words() -> None:
    vocabulary, (zebra, value, end) = decoding.VOCABULARY, [*wanted("zebra", "value")[1], 0]
    model = network(vocabulary, lambda middle: preferring([end, zebra, value] if middle else [zebra, value, end]))
    split = Split("def f(:\n    value = 1\n\nx = ", "\n")
    options = DecodeOptions(names="require", heal=False, max_new_tokens=4)
    found = complete(model, Recovery(PYTHON.open, name="python"), split, options)
    assert found.guarantee == "partial"
    assert found.text == "value"


def test_a_language_without_name_rules_decodes_as_before() -> None:
    json = Language.load("json")
    model = network(decoding.VOCABULARY, lambda middle: preferring([*wanted("1")[1]] if not middle else [0]))
    assert complete(model, json, Split("[", "]"), DecodeOptions(names="require", heal=False)).text == "1"


def test_other_values_are_refused() -> None:
    model = network(decoding.VOCABULARY, lambda middle: preferring([0]))
    with pytest.raises(ValueError, match="names: one of off, require expected, not exist"):
        complete(model, PYTHON, Split("", ""), DecodeOptions(names="exist"))
    with pytest.raises(ValueError, match="the language has no name"):
        complete(model, Recovery(PYTHON.open), Split("", ""), DecodeOptions(names="require"))


class NothingObeys:
    """Rules of names that no text obeys."""

    def track(self, left: str, right: str, healing: str, is_whole: bool) -> NothingObeys:
        return self

    def copy(self) -> NothingObeys:
        return self

    def feed(self, text: str) -> None:
        raise UndefinedNameError("zebra")

    def allow(self, texts: object, mask: object) -> None:
        pass

    def unbound(self, left: str, middle: str, right: str, is_whole: bool) -> tuple[str, ...]:
        return ("zebra",)


@pytest.mark.parametrize("left", ["x = ", "x) = "])  # in a file that parses, and in one that does not
@pytest.mark.parametrize("word_ends", [False, True])
def test_if_names_refuse_every_token_there_is_a_reason_and_no_text(left: str, word_ends: bool) -> None:
    zebra = wanted("zebra")[1]
    model = network(decoding.VOCABULARY, lambda middle: preferring(zebra))
    split = Split(left, "\n")
    naming = UndefinedNames(NothingObeys(), split.left, split.right, False)
    options = DecodeOptions(max_new_tokens=8, names="require", undefined_names=naming, word_ends=word_ends, heal=False)
    found = complete(model, PYTHON, split, options)
    assert (found.text, found.guarantee) == (None, "exact" if left == "x = " else "none")
    assert found.reason is not None
    assert found.reason.endswith(
        ("would load an undefined name, or lengthen the word before the cursor", "load an undefined name")
    )
