"""Forced tokens: those with which the tokenizer begins every continuation, and no others."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from fim_server.tokens.forced import ForcedMatcher, _whole_characters, forced_tokens
from fim_server.tokens.vocabulary import Vocabulary
from support.engine.corpus import sources

SEED = 5
EMBEDDED = Path(__file__).parents[2] / "fim_server" / "models" / "embedded" / "tokenizer.json"


def shared_start(texts: Sequence[bytes]) -> bytes:
    length = 0
    while len({text[: length + 1] for text in texts}) == 1 and length < min(map(len, texts)):
        length += 1
    return texts[0][:length] if texts else b""


class FiniteMatcher:
    """Exact over a few texts. Stands in for the engine's matcher."""

    def __init__(self, texts: list[bytes], vocabulary: Vocabulary) -> None:
        self.texts = texts
        self.vocabulary = vocabulary
        self.tokens: list[int] = []

    @property
    def middle(self) -> bytes:
        return b"".join(self.vocabulary.token_bytes(token) for token in self.tokens)

    def forced(self) -> bytes:
        middle = self.middle
        return shared_start([text[len(middle) :] for text in self.texts if text.startswith(middle)])

    def allows(self, token_id: int) -> bool:
        token = self.vocabulary.token_bytes(token_id)
        return bool(token) and any(text.startswith(self.middle + token) for text in self.texts)

    def commit(self, token_id: int) -> None:
        assert self.allows(token_id)
        self.tokens.append(token_id)

    def rollback(self, n_tokens: int) -> None:
        assert 0 <= n_tokens <= len(self.tokens)
        del self.tokens[len(self.tokens) - n_tokens :]


@cache
def vocabulary_of(path: Path) -> Vocabulary:
    return Vocabulary.from_file(path)


def forced(texts: Sequence[str | bytes], vocabulary: Vocabulary | None = None) -> list[bytes]:
    """The forced tokens' bytes."""
    vocabulary = vocabulary or vocabulary_of(EMBEDDED)
    data = [text.encode() if isinstance(text, str) else text for text in texts]
    matcher = FiniteMatcher(data, vocabulary)
    tokens = forced_tokens(matcher, vocabulary)
    assert not matcher.tokens, "the matcher is left as it was"
    return [vocabulary.token_bytes(token) for token in tokens]


def test_the_stub_is_a_matcher_with_forced_bytes() -> None:
    assert isinstance(FiniteMatcher([], vocabulary_of(EMBEDDED)), ForcedMatcher)


def test_texts_without_a_common_beginning_force_nothing() -> None:
    assert forced(["a", "b"]) == []
    assert forced(["", "abc"]) == []


def test_a_single_text_is_forced_as_a_whole() -> None:
    assert b"".join(forced(["return self.value"])) == b"return self.value"


def test_a_token_that_may_merge_with_the_next_is_not_forced() -> None:
    vocabulary = Vocabulary([b"a", b"b", b"c", b"ab", b"bc", b"x"], [])
    assert forced(["xab", "xac"], vocabulary) == [b"x"]  # the a goes on as ab in the one
    assert forced(["xax", "xac"], vocabulary) == [b"x", b"a"]  # neither goes on as a token
    assert forced(["xabx", "xabc"], vocabulary) == [b"x"]  # ab, c or a, bc: how it chooses is not asked
    assert forced(["xabab", "xabac"], vocabulary) == [b"x", b"ab"]


def test_a_possible_merge_limits_the_forced_tokens() -> None:
    """Nothing of abc is certain if abc is split as ab, c and abcd as a, bcd."""
    vocabulary = Vocabulary([b"a", b"b", b"c", b"d", b"bcd"], [])
    assert forced(["abcd", "abcx"], vocabulary) == [b"a"]
    vocabulary = Vocabulary([b"a", b"b", b"c", b"d", b"ab", b"bcd", b"x"], [])
    assert forced(["abcd", "abcx"], vocabulary) == []
    assert forced(["abcx", "abca"], vocabulary) == [b"ab", b"c"]


def test_blanks_belong_to_the_word_after_them() -> None:
    assert forced(["x = 1", "x = y"])[0] == b"x"
    for tokens in (forced(["return value", "return other"]), forced(["a\n    b", "a\n    c"])):
        assert not tokens or not tokens[-1].endswith(b" ")


def test_characters_are_never_cut() -> None:
    for texts in (["ü", "ö"], ["日本", "日月"], ["a😀", "a😁"], [b"\xf0\x9f\x98", b"\xf0\x9f\x99"]):
        b"".join(forced(texts)).decode()


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (b"", b""),
        (b"a", b"a"),
        ("é".encode(), "é".encode()),
        (b"a\xc3", b"a"),
        (b"\xe6\x97", b""),
        ("日".encode(), "日".encode()),
        (b"a\xf0\x9f\x98", b"a"),
        ("😀".encode(), "😀".encode()),
        (b"\x98\x80", b"\x98\x80"),  # the end of a character that was begun before
    ],
)
def test_whole_characters(text: bytes, whole: bytes) -> None:
    assert _whole_characters(text) == whole


def test_a_text_that_the_vocabulary_cannot_write_forces_nothing() -> None:
    vocabulary = Vocabulary([b"a", b"bc"], [])
    assert forced(["ab"], vocabulary) == []


def check_every_continuation(path: Path, count: int) -> None:
    """Texts that begin alike: the forced tokens are what the tokenizer makes of each of them."""
    rng = random.Random(SEED)
    vocabulary = vocabulary_of(path)
    texts = [source.text for source in islice(sources(rng, 40_000), 40) if source.text]
    kept = dropped = 0
    for _ in range(count):
        text = rng.choice(texts)
        start = rng.randrange(len(text))
        common = text[start : start + rng.randint(1, 60)]
        continuations = [common + text[start + len(common) :][:20]]
        for _ in range(rng.randint(1, 6)):
            other = rng.choice(texts)
            at = rng.randrange(len(other))
            continuations.append(common + rng.choice(("", other[at : at + 20], rng.choice("\n \t)]'\"éab01_"))))
        matcher = FiniteMatcher([continuation.encode() for continuation in continuations], vocabulary)
        tokens = forced_tokens(matcher, vocabulary)
        assert not matcher.tokens
        for continuation in continuations:
            assert vocabulary.encode(continuation)[: len(tokens)] == tokens, (common, continuation)
        kept, dropped = kept + len(tokens), dropped + len(vocabulary.encode(matcher.forced())) - len(tokens)
    print(f"{kept} tokens of {count} common beginnings forced, {dropped} left to the model")
    assert kept > dropped > 0


def test_forced_tokens_begin_the_tokenisation_of_every_continuation() -> None:
    check_every_continuation(EMBEDDED, 300)


def test_forced_tokens_of_a_large_vocabulary() -> None:
    path = os.environ.get("FIM_SERVER_TOKENIZER")
    if not path:
        pytest.skip("no large vocabulary: FIM_SERVER_TOKENIZER is to name a tokenizer.json")
    check_every_continuation(Path(path), 300)
