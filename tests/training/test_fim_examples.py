"""Examples of the FIM adapter's training: what a branch sees is what a server would send."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from tokenizers import Tokenizer

from fim_server.training.cutting import line_end
from fim_server.training.fim.cuts import Kinds, beginnings, block_end, in_docstring, region
from fim_server.training.fim.examples import (
    END,
    MIDDLE,
    NEIGHBOUR,
    PATH,
    PREFIX,
    SUFFIX,
    TRUNK,
    Example,
    Mixture,
    Source,
    encode,
    pack,
    pieces,
    windows,
)
from fim_server.training.packages import SourceFile
from small_llama import SOURCE, small_tokenizer

FILES = [SourceFile("made", f"made/one{number}.py", SOURCE.replace("total", f"total_{number}")) for number in range(3)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return small_tokenizer()


def seen_by(example: Example, branch: int) -> list[int]:
    """What the last token of a branch sees, in order: the trunk up to its limit, and the branch."""
    places = [i for i, one in enumerate(example.branches) if one == branch]
    limit = example.limits[places[0]]
    return example.ids[: limit + 1] + [example.ids[i] for i in places]


def parts(ids: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Prefix, suffix and middle of a suffix-first or prefix-first prompt with its middle."""
    prefix, suffix, middle = ids.index(PREFIX), ids.index(SUFFIX), ids.index(MIDDLE)
    if suffix < prefix:
        return ids[prefix + 1 : middle], ids[suffix + 1 : prefix], ids[middle + 1 :]
    return ids[prefix + 1 : suffix], ids[suffix + 1 : middle], ids[middle + 1 :]


@pytest.mark.parametrize("suffix_first", [1.0, 0.0])
def test_a_branch_is_a_cut_of_a_file_and_ends(tokenizer: Tokenizer, suffix_first: bool) -> None:
    mixture = Mixture(suffix_first=suffix_first, with_path=0.0, no_suffix=0.0)
    source = Source(FILES, tokenizer, mixture, 5)
    cuts = 0
    for _ in range(150):
        example = source.draw(220)
        for branch in sorted(set(example.branches) - {TRUNK}):
            prefix, suffix, middle = parts(seen_by(example, branch))
            assert middle[-1] == END
            text = tokenizer.decode(prefix + middle[:-1] + suffix, skip_special_tokens=False)
            assert any(text in file.text for file in FILES)
            cuts += 1
    assert cuts >= 150


def test_the_tokens_of_a_cut_are_those_a_server_sends(tokenizer: Tokenizer) -> None:
    """The prefix is tokenised by itself when served, and the model has to write the middle on from there."""
    source = Source(FILES, tokenizer, Mixture(with_path=0.0, suffix_first=1.0), 6)
    same = total = 0
    for _ in range(150):
        example = source.draw(220)
        for branch in sorted(set(example.branches) - {TRUNK}):
            prefix, suffix, _ = parts(seen_by(example, branch))
            again = encode(tokenizer, tokenizer.decode(suffix, skip_special_tokens=False))
            assert suffix[:-3] == again[: len(suffix[:-3])]  # its far end may be cut within a word
            same += prefix == encode(tokenizer, tokenizer.decode(prefix, skip_special_tokens=False))
            total += 1
    # A quarter of the weight is on beginnings within a word, where a server that heals by words never cuts.
    assert same > 0.7 * total


def test_positions_are_those_of_the_prompt(tokenizer: Tokenizer) -> None:
    source = Source(FILES, tokenizer, Mixture(), 7)
    for _ in range(60):
        example = source.draw(220)
        for branch in sorted(set(example.branches) - {TRUNK}):
            places = [i for i, one in enumerate(example.branches) if one == branch]
            first = example.limits[places[0]] + 1
            assert [example.positions[i] for i in places] == list(range(first, first + len(places)))


def test_every_middle_token_counts_and_nothing_before_it(tokenizer: Tokenizer) -> None:
    source = Source(FILES, tokenizer, Mixture(), 8)
    for _ in range(60):
        example = source.draw(220)
        for branch in sorted(set(example.branches) - {TRUNK}):
            places = [i for i, one in enumerate(example.branches) if one == branch]
            middle = next(n for n, i in enumerate(places) if example.ids[i] == MIDDLE)
            weights = [example.weights[i] for i in places]
            assert weights == [0.0] * (middle + 1) + [1.0] * (len(places) - middle - 1)
            assert [example.origins[i] for i in places[1:]] == places[:-1]


def test_the_front_names_the_file_and_its_neighbours(tokenizer: Tokenizer) -> None:
    source = Source(FILES, tokenizer, Mixture(with_path=1.0, with_neighbours=1.0), 9)
    neighbours = 0
    for _ in range(40):
        example = source.draw(300)
        at = example.ids.index(PATH)
        rest = example.ids[at + 1 : example.ids.index(SUFFIX)] if SUFFIX in example.ids[:300] else example.ids[at + 1 :]
        assert tokenizer.decode(rest, skip_special_tokens=False).startswith("made/one")
        neighbours += NEIGHBOUR in example.ids[:at]
    assert neighbours


def test_packed_examples_do_not_see_each_other(tokenizer: Tokenizer) -> None:
    source = Source(FILES, tokenizer, Mixture(), 10)
    examples = [source.draw(120) for _ in range(2)]
    window = pack(examples, 256, 0.0, 0.4, random.Random(0))
    first = len(examples[0].ids)
    assert not window.mask[first:, :first].any()
    assert not window.mask[:first, first:].any()
    assert not np.triu(window.mask, 1).any()
    assert window.mask.diagonal().all()
    own = pack(examples[1:], 256, 0.0, 0.4, random.Random(0))
    length = len(examples[1].ids)
    assert (window.mask[first : first + length, first : first + length] == own.mask[:length, :length]).all()


def test_targets_are_the_tokens_after_their_origins(tokenizer: Tokenizer) -> None:
    source = Source(FILES, tokenizer, Mixture(), 11)
    for window in (next(windows(source, 256, random.Random(1))) for _ in range(5)):
        for origin, target, weight in zip(window.origins, window.targets, window.weights, strict=True):
            place = window.positions[origin] + 1
            after = [i for i in np.flatnonzero(window.positions == place) if window.mask[i, origin]]
            assert target in window.ids[after]
            assert weight in (np.float32(1.0), np.float32(0.4))


def test_draws_are_the_same_for_a_seed(tokenizer: Tokenizer) -> None:
    first, second = (Source(FILES, tokenizer, Mixture(), 12) for _ in range(2))
    assert [first.draw(200).ids for _ in range(10)] == [second.draw(200).ids for _ in range(10)]


def test_a_word_s_beginning_is_told_from_a_token_s(tokenizer: Tokenizer) -> None:
    found = pieces(tokenizer, "self.chunk_size = 12\n")
    starts = [start for start, is_word in zip(found.starts, found.words, strict=True) if is_word]
    assert starts == [0, 4, 5, 10, 11, 15, 17, 18, 19, 20]


def test_beginnings_stand_in_the_region(tokenizer: Tokenizer) -> None:
    text = "def f(total):\n    return total + total.count\n"
    found = pieces(tokenizer, text)
    first = text.index(" return")
    for seed in range(30):
        drawn = beginnings(found, first, 4, random.Random(seed))
        assert 1 <= len(drawn) <= 4
        assert drawn == sorted(set(drawn))
        assert all(found.starts[token] >= first for token in drawn)
    assert beginnings(found, len(text) + 5, 4, random.Random(0)) == []


def test_regions_are_of_their_kind() -> None:
    generator = random.Random(3)
    text = SOURCE
    for _ in range(300):
        place = generator.randrange(len(text))
        whole = region(text, place, Kinds(rest_of_line=1.0, prose=1.0), generator)
        if whole is not None:
            assert whole.end == line_end(text, place)
            assert "\n" not in text[whole.start : whole.end]
        within = region(text, place, Kinds(0.0, 0.0, 0.0, 1.0, 1.0), generator)
        if within is not None:
            assert "\n" not in text[within.start : within.end]


def test_prose_is_left_out_where_none_is_wanted() -> None:
    text = '"""Words.\n\nmore words\n"""\n# a comment\nx = 1\n'
    generator = random.Random(4)
    kept = {region(text, place, Kinds(prose=0.0, rest_of_line=1.0), generator) for place in range(len(text))}
    assert {text[one.start : one.end] for one in kept if one is not None} == {"x = 1"}
    assert in_docstring(text, text.index("more"))
    assert not in_docstring(text, text.index("x ="))


def test_a_block_ends_where_its_indentation_does() -> None:
    text = "if a:\n    b\n\n    c\nd\n"
    assert text[: block_end(text, text.index("b"))] == "if a:\n    b\n\n    c"
    assert block_end(text, 0) == len(text) - 1


def test_a_hidden_suffix_changes_nothing_else(tokenizer: Tokenizer) -> None:
    mixture = Mixture(suffix_first=1.0, with_path=0.0, no_suffix=0.0)
    both = Source(FILES, tokenizer, mixture, 13)
    left = Source(FILES, tokenizer, replace(mixture, hidden_suffix=True), 13)
    hidden = 0
    for _ in range(40):
        whole, half = both.draw(220), left.draw(220)
        branches = sorted(set(whole.branches) - {TRUNK})
        assert branches == sorted(set(half.branches) - {TRUNK})
        for branch in branches:
            prefix, suffix, middle = parts(seen_by(whole, branch))
            assert parts(seen_by(half, branch)) == (prefix, [], middle)
            hidden += bool(suffix)
    assert hidden
