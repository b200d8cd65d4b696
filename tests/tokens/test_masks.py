"""Masks are exact: at middles in progress in real files, the mask is the check of every single token.

The short form takes 60 states with the embedded vocabulary; the long form (FIM_SERVER_LONG=1) takes 500, and 500 with a
large one, whose `tokenizer.json` FIM_SERVER_TOKENIZER names. FIM_SERVER_SEED draws others. Each test prints what it
found.
"""

import os
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.engine.positions import F_STRING_PREFIX, f_string_parts
from fim_server import Matcher, State, Vocabulary
from support.engine.corpus import Source, python, sources

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = int(os.environ.get("FIM_SERVER_SEED", "1"))
STATES = 500 if LONG else 60
TWIN_STATES = 20 if LONG else 4
COMMITTED = 40  # tokens of a state that are committed and taken back
LIMIT = 40_000  # bytes of a file
LONGEST = 40  # characters of the middle on either side of the cursor
EMBEDDED = Path(__file__).parents[2] / "fim_server" / "models" / "embedded" / "tokenizer.json"

KINDS = ("field", "spec", "text", "string", "comment", "indentation", "bracket", "anywhere", "half", "walk")
"""Ends of middles: in a field, a format spec or a text of an f-string, in another string, or in a comment.

The others are in an indentation, in brackets, anywhere, inside a character, and after a few random tokens.
"""

STRING = re.compile(r"(?:[rub]|rb|br)?('''|\"\"\"|'|\")", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    """A middle in progress.

    Attributes:
        middle: UTF-8, which may end inside a character.
        steps: Random tokens to be committed after the middle.
    """

    kind: str
    path: str
    left: str
    middle: bytes
    right: str
    steps: int = 0

    def __str__(self) -> str:
        return f"{self.kind} in {self.path}: {self.left[-60:]!r} | {self.middle!r} | {self.right[:60]!r}"


# ---------------------------------------------------------------- places


def offsets(source: Source) -> dict[str, list[int]]:
    """Return the offsets at which a cursor may stand in a file, by kind."""
    found: dict[str, list[int]] = {kind: [] for kind in KINDS}
    text = source.text
    depth = 0
    for start, end in source.tokens:
        token = text[start:end]
        if f_string := F_STRING_PREFIX.match(text, start, end):
            for kind, at in f_string_parts(text, f_string.end(), f_string[1]):
                found[kind].append(at)
        elif STRING.match(token):
            found["string"].extend(range(start + 1, end))
        elif token.startswith("#"):
            found["comment"].extend(range(start + 1, end + 1))
        elif token in ("(", "[", "{"):
            depth += 1
            found["bracket"].append(end)
        elif token in (")", "]", "}"):
            depth -= 1
        elif depth:
            found["bracket"].append(end)
    for blanks in re.finditer(r"(?<=\n)[ \t]+", text):
        found["indentation"].extend(range(blanks.start(), blanks.end() + 1))
    found["half"] = [other.start() for other in re.finditer(r"[^\x00-\x7f]", text)]
    found["anywhere"] = found["walk"] = [*range(len(text) + 1)]
    return found


def places(rng: random.Random) -> Iterator[Place]:
    """One place of each kind that a file has and of which there are not more than of the rarest, without end.

    Every other one has the text to its right, the others have nothing there.
    """
    counts = dict.fromkeys(KINDS, 0)
    for source in sources(rng, LIMIT):
        if min(counts.values()) == counts["half"] and source.text.isascii():
            continue
        found = offsets(source)
        for kind in KINDS:
            if found[kind] and counts[kind] == min(counts.values()):
                counts[kind] += 1
                yield place(rng, kind, source, rng.choice(found[kind]), right=counts[kind] % 2 == 1)


def place(rng: random.Random, kind: str, source: Source, cursor: int, right: bool) -> Place:
    text = source.text
    start = rng.randint(max(0, cursor - LONGEST), cursor)
    end = rng.randint(cursor + (kind == "half"), min(len(text), cursor + LONGEST))
    middle = text[start:cursor].encode()
    if kind == "half":
        character = text[cursor].encode()
        middle += character[: rng.randrange(1, len(character))]
    steps = rng.randint(1, 6) if kind == "walk" else 0
    return Place(kind, source.path, text[:start], middle, text[end:] if right else "", steps)


# ---------------------------------------------------------------- vocabularies


@cache
def vocabulary_of(path: Path) -> Vocabulary:
    return Vocabulary.from_file(path)


@cache
def tokens_of(path: Path) -> list[bytes]:
    """Byte strings by token id; empty for tokens that are never allowed."""
    vocabulary = vocabulary_of(path)
    return [vocabulary.token_bytes(token) for token in range(vocabulary.size)]


@cache
def ids_of(path: Path) -> dict[bytes, int]:
    return {token: index for index, token in enumerate(tokens_of(path))}


@cache
def partial_tokens(path: Path) -> NDArray[np.intp]:
    """Tokens that are no UTF-8 by themselves: parts of characters."""

    def is_partial(token: bytes) -> bool:
        try:
            token.decode()
        except UnicodeDecodeError:
            return True
        return False

    return np.flatnonzero([is_partial(token) for token in tokens_of(path)])


def matcher_at(place: Place, path: Path, walked: Iterable[int] = ()) -> Matcher:
    """A matcher in a session of its own, so that nothing it knows comes from an earlier answer."""
    matcher = python().open(place.left, place.right).matcher(vocabulary_of(path))
    for byte in place.middle:
        matcher.commit(ids_of(path)[bytes([byte])])
    for token in walked:
        matcher.commit(token)
    return matcher


def walk(rng: random.Random, place: Place, path: Path) -> list[int]:
    """Random allowed tokens after a place's middle."""
    matcher = matcher_at(place, path)
    walked: list[int] = []
    for _ in range(place.steps):
        allowed = np.flatnonzero(matcher.mask())
        allowed = allowed[~np.isin(allowed, vocabulary_of(path).end_token_ids)]
        if not len(allowed):
            break
        walked.append(int(rng.choice(allowed)))
        matcher.commit(walked[-1])
    return walked


# ---------------------------------------------------------------- tests


def check_states(path: Path, count: int) -> None:
    """Compares masks with the checks of all tokens, and prints what they were."""
    rng = random.Random(SEED)
    vocabulary, tokens = vocabulary_of(path), tokens_of(path)
    partial = partial_tokens(path)
    ends = vocabulary.end_token_ids
    assert len(partial) >= 128
    assert ends
    counts: Counter[str] = Counter()
    for place in islice(places(rng), count):
        walked = walk(rng, place, path)
        text = place.middle + b"".join(tokens[token] for token in walked)
        state = python().open(place.left, place.right).start()
        assert state.advance(text) == len(text), place
        complete = state.is_complete()

        matcher = matcher_at(place, path, walked)
        mask = matcher.mask()
        single = matcher_at(place, path, walked)
        checks = np.fromiter(map(single.allows, range(vocabulary.size)), np.bool_, vocabulary.size)
        wrong = [tokens[token] for token in np.flatnonzero(mask != checks)]
        assert not wrong, f"{place} + {walked}: {wrong[:10]}"
        assert [bool(mask[end]) for end in ends] == [complete] * len(ends), f"{place} + {walked}"
        assert (matcher.mask() == mask).all(), f"{place} + {walked}: another mask the second time"
        check_commits(rng, matcher, mask)

        counts[place.kind] += 1
        counts["empty right side"] += not place.right
        counts["complete"] += complete
        counts["tokens allowed"] += int(mask.sum())
        counts["tokens refused"] += int((~mask).sum())
        counts["parts of characters allowed"] += int(mask[partial].sum())
        counts["parts of characters refused"] += int((~mask[partial]).sum())
    print(f"{count} states, {vocabulary.size} tokens, {len(partial)} of them parts of characters:", dict(counts))
    assert all(counts[kind] for kind in KINDS)
    assert all(counts[what] for what in counts)
    assert 0 < counts["complete"] < count


def check_commits(rng: random.Random, matcher: Matcher, mask: NDArray[np.bool_]) -> None:
    """The mask's tokens and no others can be committed; neither changes the mask."""
    chosen = rng.sample(range(len(mask)), COMMITTED // 2)
    allowed = np.flatnonzero(mask).tolist()
    for token in chosen + rng.sample(allowed, min(len(allowed), COMMITTED // 2)):
        if mask[token]:
            matcher.commit(token)
            matcher.rollback(1)
        else:
            with pytest.raises(ValueError, match="not allowed"):
                matcher.commit(token)
    assert (matcher.mask() == mask).all()


def test_the_mask_of_the_embedded_vocabulary_is_the_check_of_every_token() -> None:
    check_states(EMBEDDED, STATES)


@pytest.mark.skipif(not LONG, reason="the long form has this: FIM_SERVER_LONG=1")
def test_the_mask_of_a_large_vocabulary_is_the_check_of_every_token() -> None:
    path = os.environ.get("FIM_SERVER_TOKENIZER")
    if not path:
        pytest.skip("no large vocabulary: FIM_SERVER_TOKENIZER is to name a tokenizer.json")
    check_states(Path(path), STATES)


def is_possible(state: State, token: bytes) -> bool:
    """The plain twin of a token's check: a fresh fork takes every byte, one after the other."""
    fork = state.fork()
    return bool(token) and all(fork.advance(bytes([byte])) == 1 for byte in token)


def test_the_mask_equals_states_byte_by_byte() -> None:
    rng = random.Random(SEED + 1)
    tokens = tokens_of(EMBEDDED)
    ends = set(vocabulary_of(EMBEDDED).end_token_ids)
    for place in islice(places(rng), TWIN_STATES):
        state = python().open(place.left, place.right).start()
        assert state.advance(place.middle) == len(place.middle), place
        mask = matcher_at(place, EMBEDDED).mask()
        for index, token in enumerate(tokens):
            expected = state.is_complete() if index in ends else is_possible(state, token)
            assert mask[index] == expected, f"{place}: {token!r}"


def test_places_are_of_their_kind() -> None:
    text = "x = f'a{b[1:2]:>{w}}c' 'd'\nif x:\n    y = (1, 'é')  # ö\n"
    spans = ["x", "=", "f'a{b[1:2]:>{w}}c'", "'d'", "if", "y", "=", "(", "1", ",", "'é'", ")", "# ö"]
    tokens: list[tuple[int, int]] = []
    for span in spans:
        start = text.index(span, tokens[-1][1] if tokens else 0)
        tokens.append((start, start + len(span)))
    found = {
        kind: [text[at : at + 1] for at in chosen] for kind, chosen in offsets(Source("", text, tuple(tokens))).items()
    }
    assert found["text"] == ["a", "{", "c", "'"]
    assert found["field"] == ["b", "[", ":", "w", "}"]
    assert found["spec"] == [">", "{", "}"]
    assert found["string"] == ["d", "'", "é", "'"]
    assert found["comment"] == [" ", "ö", "\n"]
    assert found["indentation"] == [" "] * 4 + ["y"]
    assert found["half"] == ["é", "ö"]
    assert {"1", ","} < set(found["bracket"])
