"""Healing: what is written again, against a session that was opened before it, and against the tokenizer itself."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from fim_server.decoding.complete import complete
from fim_server.decoding.loop.healing import Healing
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.strategies.alternatives import complete_session
from fim_server.errors import SearchLimitError
from fim_server.language import Language, Session
from fim_server.language.matcher import Matcher
from fim_server.language.shapes import SINGLE_LINE
from fim_server.models.backend import PREFILL_CHUNK
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.reading import Reading
from fim_server.recovery.recovery import Recovery
from fim_server.text.document import Split
from fim_server.tokens.vocabulary import MOST_UNSETTLED, Vocabulary

SOURCES = sorted(Path(json.__file__).parent.glob("*.py"))
LONG = 8 if os.environ.get("FIM_SERVER_LONG") else 1

PLACES = [
    ("x = fo", "o(1)\n"),
    ("def f(a):\n    return ", "\n"),
    ("def f(a):\n    ", "\n"),
    ("x = f(", ")\n"),
    ("x = 'naï", "ve'\n"),
    ("x = 12", "3\n"),
    ("x = f'{a", "}'\n"),
    ("if x:\n    pass\nel", "\n"),
    ("x = [self.ch", "]\n"),
    ("", "x = 1\n"),
    ("x =\n", "\n"),  # no program begins like that
]


@pytest.fixture(scope="module")
def python() -> Language:
    return Language.load("python")


@pytest.fixture(scope="module")
def model() -> FimModel:
    return load_model()


def words_of(text: str, generator: random.Random, lacking: bool) -> Vocabulary:
    """All bytes, or some of them, and pieces of a text; token 0 ends a middle."""
    data = text.encode()
    tokens: list[bytes | None] = [
        None,
        *(bytes([byte]) for byte in range(256) if not lacking or generator.random() < 0.6),
    ]
    for _ in range(80):
        at = generator.randrange(len(data))
        tokens.append(data[at : at + generator.randint(2, 7)])
    tokens += [b"x)", b"oo", b"o(", b"  ", b"\n ", b"lse", b"lif x", b")]", b"]\n"]
    return Vocabulary(tokens, [0])


class Before:
    """The plain twin: a session opened before what is to be written again."""

    def __init__(self, session: Session, vocabulary: Vocabulary, text: bytes, written: bytes) -> None:
        self.state = session.start()
        self.viable = session.start().advance(text) == len(text) and session.guarantee == "exact"
        self.state.advance(written)
        self.vocabulary = vocabulary
        self.rest = text[len(written) :] if len(written) < len(text) else b""

    def takes(self, data: bytes) -> bool:
        """Return whether some bytes may follow; the rest of the healed text has to be possible in tokens."""
        if not data or not self.viable:
            return False
        if self.rest and not (self.rest.startswith(data) or data.startswith(self.rest)):
            return False
        taken = self.state.advance(data)
        self.state.rollback(taken)
        return taken == len(data) and (len(data) >= len(self.rest) or self.goes_on(data))

    def goes_on(self, written: bytes) -> bool:
        """Return whether tokens lead on from inside the healed text."""
        taken, rest = self.state.advance(written), self.rest
        self.rest = rest[len(written) :]
        tokens = (self.vocabulary.token_bytes(token) for token in self.vocabulary.tokens_towards(self.rest))
        found = any(self.takes(data) for data in tokens)
        self.state.rollback(taken)
        self.rest = rest
        return found

    def allowed(self) -> list[bool]:
        ends = self.vocabulary.end_token_ids
        return [
            self.viable and not self.rest and self.state.is_complete()
            if token in ends
            else self.takes(self.vocabulary.token_bytes(token))
            for token in range(self.vocabulary.size)
        ]


def masks_of(matcher: Matcher, size: int) -> list[list[bool]]:
    """The mask, its plain twin, and each token asked about alone."""
    found = []
    for fill in (matcher.fill_mask, matcher.fill_mask_plain):
        words = np.zeros(-(-size // 32), dtype=np.uint32)
        fill(words)
        found.append([bool(words[token // 32] >> np.uint32(token % 32) & 1) for token in range(size)])
    return [*found, [matcher.allows(token) for token in range(size)]]


@pytest.mark.parametrize("seed", range(30 * LONG))
def test_masks_equal_those_of_a_fresh_session(python: Language, seed: int) -> None:
    """At every token of random walks, forward and back; texts of any bytes, a half of a character among them."""
    generator = random.Random(seed)
    left, right = generator.choice(PLACES)
    data = left.encode()
    text = data[len(data) - generator.randint(0, min(6, len(data))) :]
    try:
        before = python.open(data.removesuffix(text).decode() if text else left, right)
    except UnicodeDecodeError:  # a text that begins inside a character
        text = b"\xc3" + text
        before = python.open(data.removesuffix(text).decode(), right)
    vocabulary = words_of("".join(part for place in PLACES for part in place), generator, lacking=seed % 3 == 0)
    session = python.open(left, right)
    matcher = session.matcher(vocabulary, healing=text)
    written: list[int] = []
    for _ in range(12):
        so_far = b"".join(vocabulary.token_bytes(token) for token in written)
        expected = Before(before, vocabulary, text, so_far).allowed()
        assert session.guarantee == "exact" or not any(expected)
        assert masks_of(matcher, vocabulary.size) == [expected] * 3, (left, text, so_far)
        assert matcher.is_complete() == expected[0]
        check_plan(matcher, expected)
        choices = [token for token, allowed in enumerate(expected) if allowed and token]
        if written and generator.random() < 0.3:
            count = generator.randint(1, len(written))
            matcher.rollback(count)
            del written[-count:]
        elif choices:
            written.append(generator.choice(choices))
            matcher.commit(written[-1])
        else:
            break
        refused = [token for token in range(vocabulary.size) if not matcher.allows(token)]
        if refused:
            with pytest.raises(ValueError, match="not allowed"):
                matcher.commit(generator.choice(refused))


def check_plan(matcher: Matcher, expected: Sequence[bool]) -> None:
    """A plan completes the middle, with what is still to be written again; it lands as it says."""
    try:
        plan = matcher.plan()
    except SearchLimitError:
        return
    if plan is None:
        assert not any(expected)
        return
    assert not plan or matcher.lands(plan[0], len(plan) - 1)
    for token in plan:
        matcher.commit(token)
    assert matcher.is_complete()
    matcher.rollback(len(plan))


def test_a_landing_mask_while_healing_lands(python: Language) -> None:
    vocabulary = Vocabulary([None, *(bytes([byte]) for byte in range(128)), b"o)", b"o", b"x))"], [0])
    matcher = python.open("x = f(fo", "\n").matcher(vocabulary, healing="fo")
    words = np.zeros(-(-vocabulary.size // 32), dtype=np.uint32)
    for left in range(6):
        matcher.fill_landing_mask(words, left)
        for token in range(vocabulary.size):
            landing = bool(words[token // 32] >> np.uint32(token % 32) & 1)
            assert landing == (matcher.allows(token) and matcher.lands(token, left) is True), (left, token)
            assert not landing or left >= (1 if token == 1 + ord("f") else 0)
    assert matcher.lands(1 + ord("f"), 1)  # then `o)`
    assert matcher.lands(1 + ord("f"), 0) is not True


def test_a_shape_is_of_what_comes_after(python: Language) -> None:
    """A line break may be written again where the middle has none."""
    vocabulary = Vocabulary([None, *(bytes([byte]) for byte in range(128)), b"\n    x", b"    \n"], [0])
    matcher = python.open("if a:\n    ", "\n").matcher(vocabulary, SINGLE_LINE, healing="\n    ")
    assert matcher.allows(129)
    assert not matcher.allows(1 + ord("x"))
    for character in "\n    ":
        assert matcher.allows(1 + ord(character))
        matcher.commit(1 + ord(character))
    assert not matcher.allows(1 + ord("\n"))
    assert matcher.allows(1 + ord("x"))


# --- what is unsettled ----------------------------------------------------------------------------------------------


def trained(kind: str) -> Vocabulary:
    """A byte-level BPE trained on a few files, with the pre-tokenizer of some family."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    first: list[Any] = [byte_level]
    if kind == "smollm":
        first = [pre_tokenizers.Digits(individual_digits=True), byte_level]
    elif kind == "cl100k":
        regex = Regex(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
            r"|\s*[\r\n]+|\s+(?!\S)|\s+"
        )
        plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        first = [pre_tokenizers.Split(regex, "isolated"), plain]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(first)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1500,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([path.read_text() for path in SOURCES], trainer)
    return Vocabulary(*tokens_of(tokenizer), definition=tokenizer.to_str().encode())


def tokens_of(tokenizer: Tokenizer) -> tuple[list[bytes | None], list[int]]:
    from fim_server.tokens.tokenizer_file import read_tokens

    tokens, ends = read_tokens(tokenizer.to_str().encode())
    return tokens, ends


@pytest.fixture(scope="module", params=["gpt2", "smollm", "cl100k", "embedded"])
def vocabulary(request: pytest.FixtureRequest, model: FimModel) -> Vocabulary:
    return model.vocabulary if request.param == "embedded" else trained(request.param)


def test_tokens_before_the_unsettled_end_stay_the_same(vocabulary: Vocabulary) -> None:
    """The tokens of a whole line begin with those of what is settled of its beginning, wherever it is cut."""
    generator = random.Random(0)
    unhealed = runs = 0
    for _ in range(600 * LONG):
        text = generator.choice(SOURCES).read_text() + "\nnaïve = 'Größe ☃' + f'{1.25:>10}'\n"
        if generator.random() < 0.5:
            text = text.replace(" " * 4, "\t")
        at = generator.randrange(len(text))
        if text[at].isspace():
            continue
        line, end = max(0, text.rfind("\n", 0, at)), text.find("\n", at)
        if text[:at].endswith("\n"):
            line = len(text[:at].rstrip("\n"))
        left = text[line:at]  # with the line break before it, at its beginning with all of them
        unsettled = vocabulary.unsettled(text[:at])
        assert left.endswith(unsettled)
        assert "\n" not in unsettled or left == unsettled
        if len(vocabulary.encode(unsettled)) >= MOST_UNSETTLED:
            continue  # it may have been cut
        runs += 1
        whole = vocabulary.encode(text[line:end])
        settled = vocabulary.encode(left.removesuffix(unsettled))
        assert whole[: len(settled)] == settled, (left, unsettled)
        alone = vocabulary.encode(left)
        unhealed += whole[: len(alone)] != alone
    assert unhealed > runs / 4  # tokens that nothing is taken from do change


def test_the_unsettled_end_of_a_text(model: FimModel) -> None:
    vocabulary = model.vocabulary
    cases = {
        "self.ch": ".ch",
        "x = tokeniz": " tokeniz",
        "x = ": " ",
        "x =   ": " ",
        "if x:\n        ": "",  # a line break and the indentation after it are one token
        "x[12": "",  # each digit is one
        "f(": "(",
        "x = naï": " naï",
        "<|endoftext|>": "|>",
        "x\n": "\n",
        "x\n\n": "\n\n",
        "": "",
    }
    assert {text: vocabulary.unsettled(text) for text in cases} == cases
    smollm = trained("smollm")
    assert smollm.unsettled("x:\n") == "\n"
    assert [smollm.unsettled(f"if x:\n{blanks}") for blanks in ("\t", "\t\t", " \t", "\t  ")] == ["\t", "\t", "\t", " "]
    assert trained("cl100k").unsettled("x:\n") == ""  # there a break is a piece of its own


def test_vocabularies_without_a_tokenizer_have_their_last_token() -> None:
    vocabulary = Vocabulary([None, b"a", b"ab", b" ", b"  ", b"\xc3", b"("], [0])
    cases = {"ab": "ab", "a(": "(", "a  ": " ", "   ": "", "x": "", "ab é": "", "": ""}
    assert {text: vocabulary.unsettled(text) for text in cases} == cases


# --- what comes of it -----------------------------------------------------------------------------------------------


def plain_text(model: FimModel, language: Language, split: Split, budget: int) -> str | None:
    """The greedy text by a session opened before what is healed, a whole mask at every step: the plain twin."""
    healing = Healing.of(model, split)
    rest = healing.text.encode()
    matcher = language.open(healing.split.left, split.right).matcher(model.vocabulary)
    limit = min(1024, model.window - budget - (MOST_UNSETTLED if rest else 0))
    prompt = model.format.encode(healing.split.left, split.right, limit)
    reading = Reading(model)
    for begin in range(0, len(prompt), PREFILL_CHUNK):
        logits = np.array(reading.forward(prompt[begin : begin + PREFILL_CHUNK]))
    data = b""
    for _ in range(budget):
        allowed = matcher.mask()[: len(logits)]
        if rest:
            towards = np.zeros(len(logits), dtype=bool)
            towards[model.vocabulary.tokens_towards(rest)] = True
            allowed = allowed & towards
        token = int(np.where(allowed, logits[: len(allowed)], -np.inf).argmax())
        if token in model.vocabulary.end_token_ids:
            return data.decode()[len(healing.text) :]
        matcher.commit(token)
        written = model.vocabulary.token_bytes(token)
        data += written
        rest = rest[len(written) :]
        logits = np.array(reading.forward([token]))
    return None


def test_the_text_is_that_of_a_session_before_it(model: FimModel, python: Language) -> None:
    generator = random.Random(1)
    text = SOURCES[1].read_text()
    budget, compared, healed = 24, 0, 0
    for _ in range(16 * LONG):
        at = generator.randrange(200, len(text))
        end = at + generator.randrange(30)
        split = Split(text[max(0, at - 600) : at], text[end : end + 300])
        if python.open(split.left, split.right).guarantee != "exact":
            split = Split(text[:at], text[at:])
        expected = plain_text(model, python, split, budget)
        if expected is None or split.right[:1] in python.spelling.closers:  # which may end it
            continue
        options = DecodeOptions(max_new_tokens=budget, landing=False)
        found = complete(model, python, split, options)
        assert found.text == expected, split.left[-40:]
        compared += 1
        healed += bool(Healing.of(model, split).text)
    assert compared >= 3 * LONG
    assert healed >= 2 * LONG


def test_a_broken_file_is_healed_as_well(model: FimModel, python: Language) -> None:
    """The session's left context need not end as the document's does if lines are left out."""
    split = Split("def broken(:\n    pass\n\nvalues = 1\nx = f(val", ")\n")
    session = Recovery(python.open).open(split.left, split.right)
    assert session.guarantee == "partial"
    healing = Healing.of(model, split)
    assert healing.text == "(val"
    options = DecodeOptions(max_new_tokens=6)
    found = healing.undo(complete_session(model, session, healing.split, options, healing=healing.text))
    assert found.text is not None
    assert session.check(found.text).complete
    assert complete(model, Recovery(python.open), split, options).text == found.text


def test_without_the_grammar_the_text_begins_with_it_as_well(model: FimModel, python: Language) -> None:
    split = Split("def first(values):\n    return val", "\n")
    healing = Healing.of(model, split)
    assert healing.text == " val"
    options = DecodeOptions(max_new_tokens=8, constrained=False)
    session = python.open(split.left, split.right)
    completion = complete_session(model, session, healing.split, options, healing=healing.text)
    assert completion.text is not None
    assert completion.text.startswith(" val")
    assert healing.undo(completion).text == completion.text.removeprefix(" val")
