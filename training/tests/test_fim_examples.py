"""Examples of the FIM adapter's training: what the model sees is what a server would send."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from tokenizers import Tokenizer

from fim_server.errors import TrainingError
from fim_server.models.prompt import bind
from fim_server.tokens.formats import known_formats
from support.models.small_llama import SOURCE, small_tokenizer
from training.data.cutting import line_end
from training.data.packages import SourceFile
from training.data.windows import take_window
from training.fim.cuts import Kinds, block_end, comments_of, first_token, in_docstring, region
from training.fim.examples import (
    END,
    MIDDLE,
    NEIGHBOUR,
    PATH,
    PREFIX,
    SUFFIX,
    Example,
    Mixture,
    Source,
    encode,
    pack,
    pieces,
    windows,
)
from training.fim.step import mixed

FILES = [SourceFile("made", f"made/one{number}.py", SOURCE.replace("total", f"total_{number}")) for number in range(3)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return small_tokenizer()


def parts(example: Example) -> tuple[list[int], list[int], list[int]]:
    """Prefix, suffix and middle of an example, whose weights say where the middle begins."""
    ids = example.ids
    first = next(index for index, weight in enumerate(example.weights) if weight)
    prefix, suffix = ids.index(PREFIX), ids.index(SUFFIX)
    if suffix < prefix:
        return ids[prefix + 1 : first], ids[suffix + 1 : prefix], ids[first:]
    return ids[prefix + 1 : suffix], ids[suffix + 1 : first - 1], ids[first:]


@pytest.mark.parametrize("suffix_first", [1.0, 0.0])
def test_an_example_is_a_cut_of_a_file_and_ends(tokenizer: Tokenizer, suffix_first: float) -> None:
    source = Source(FILES, tokenizer, Mixture(suffix_first=suffix_first, with_path=0.0, no_suffix=0.0), 5)
    for _ in range(150):
        example = source.draw(220)
        prefix, suffix, middle = parts(example)
        assert middle[-1] == END
        assert (MIDDLE in example.ids) == (suffix_first == 0.0)
        text = tokenizer.decode(prefix + middle[:-1] + suffix, skip_special_tokens=False)
        assert any(text in file.text for file in FILES)


def test_prompts_are_those_that_are_served(tokenizer: Tokenizer) -> None:
    """Through the row of formats.toml that the model folder is bound to."""
    row = next(row for row in known_formats() if row.family == "SmolLM2")
    ids = {"<|fim_prefix|>": PREFIX, "<|fim_suffix|>": SUFFIX, "<|endoftext|>": END, "<file_sep>": NEIGHBOUR}

    class Named:
        """The small tokenizer under the names of the folder's."""

        def convert_tokens_to_ids(self, name: str, /) -> int | None:
            return ids.get(name)

        def convert_ids_to_tokens(self, number: int, /) -> str | None:
            return {number: name for name, number in ids.items()}.get(number)

        def encode(self, text: str, /, *, add_special_tokens: bool, split_special_tokens: bool) -> list[int]:
            return encode(tokenizer, text)

    bound = bind(row, Named())
    assert bound is not None
    source = Source(FILES, tokenizer, Mixture(with_path=0.0, suffix_first=1.0), 6)
    same = 0
    for _ in range(100):
        example = source.draw(220)
        prefix, suffix, middle = parts(example)
        left, right = (tokenizer.decode(part, skip_special_tokens=False) for part in (prefix, suffix))
        served = bound.encode(left, right, 10_000)
        same += served == example.ids[: len(example.ids) - len(middle)]
    assert same > 80  # the far end of a suffix may be cut within a word


def test_every_token_of_the_middle_counts_and_the_end_more(tokenizer: Tokenizer) -> None:
    source = Source(FILES, tokenizer, Mixture(), 8)
    for _ in range(60):
        example = source.draw(220)
        middle = len(parts(example)[2])
        context = len(example.ids) - middle
        assert example.weights == [0.0] * context + [1.0] * (middle - 1) + [2.0]


def test_the_front_names_the_file_and_its_neighbours(tokenizer: Tokenizer) -> None:
    source = Source(FILES, tokenizer, Mixture(with_path=1.0, with_neighbours=1.0, suffix_first=1.0), 9)
    neighbours = 0
    for _ in range(40):
        ids = source.draw(300).ids
        at = ids.index(PATH)
        assert tokenizer.decode(ids[at + 1 : ids.index(SUFFIX)], skip_special_tokens=False).startswith("made/one")
        neighbours += NEIGHBOUR in ids[:at]
    assert neighbours


def test_packed_examples_stand_apart(tokenizer: Tokenizer) -> None:
    source = Source(FILES, tokenizer, Mixture(), 10)
    examples = [source.draw(120) for _ in range(2)]
    window = pack(examples, 256, 0.0, 0.4, random.Random(0))
    first, second = (len(example.ids) for example in examples)
    assert window.owners.tolist() == [0] * first + [1] * second + [-1] * (256 - first - second)
    assert window.positions[: first + second].tolist() == [*range(first), *range(second)]
    assert (window.targets == window.ids[window.origins + 1]).all()
    assert (window.owners[window.origins] == window.owners[window.origins + 1]).all()
    assert window.weights.sum() == sum(sum(example.weights) for example in examples)


def test_a_share_of_what_stands_before_counts_too(tokenizer: Tokenizer) -> None:
    source = Source(FILES, tokenizer, Mixture(), 11)
    counted = text = 0
    for window in (next(windows(source, 256, random.Random(1), 0.2, 0.4, (256,), (1.0,))) for _ in range(12)):
        counted += int((window.weights == np.float32(0.4)).sum())
        text += int((window.owners >= 0).sum()) - int((window.weights >= 1).sum())
        assert not set(window.targets[window.weights < 1].tolist()) & {PREFIX, SUFFIX, MIDDLE, PATH, NEIGHBOUR, END}
    assert 0.1 < counted / text < 0.3


def test_a_window_takes_the_longest_that_still_fits() -> None:
    waiting = [Example([number] * length, [0.0] * length) for number, length in enumerate((5, 9, 3, 4, 4, 1))]
    assert [one.ids[0] for one in take_window(waiting, 14)] == [0, 1]
    assert [one.ids[0] for one in take_window(waiting, 9)] == [2, 3, 5]
    assert [one.ids[0] for one in waiting] == [4]


def test_draws_are_the_same_for_a_seed(tokenizer: Tokenizer) -> None:
    first, second = (Source(FILES, tokenizer, Mixture(), 12) for _ in range(2))
    assert [first.draw(200).ids for _ in range(10)] == [second.draw(200).ids for _ in range(10)]


@pytest.mark.parametrize("blank", ["\n", "  \n", "\n\n\n    \n"])
def test_files_without_a_place_for_an_example_are_told(tokenizer: Tokenizer, blank: str) -> None:
    files = [SourceFile("made", "made/blank.py", blank * 500)]
    with pytest.raises(TrainingError, match="no place"):
        Source(files, tokenizer, Mixture(), 1).draw(200)
    with pytest.raises(TrainingError, match="none of 1 files"):
        Source([SourceFile("made", "made/short.py", "x = 1\n")], tokenizer, Mixture(), 1)
    assert Source([*files, *FILES], tokenizer, Mixture(), 1).draw(200).ids


def test_a_hidden_suffix_changes_nothing_else(tokenizer: Tokenizer) -> None:
    mixture = Mixture(suffix_first=1.0, with_path=0.0, no_suffix=0.0)
    both = Source(FILES, tokenizer, mixture, 13)
    left = Source(FILES, tokenizer, replace(mixture, hidden_suffix=True), 13)
    hidden = 0
    for _ in range(40):
        prefix, suffix, middle = parts(both.draw(220))
        assert parts(left.draw(220)) == (prefix, [], middle)
        hidden += bool(suffix)
    assert hidden


def test_a_middle_begins_with_the_blank_before_its_word(tokenizer: Tokenizer) -> None:
    text = "def f(total):\n    return total\n"
    found = pieces(tokenizer, text)
    first = first_token(found, text.index("return"))
    assert found.starts[first] == text.index(" return")
    assert first_token(found, 0) == 0


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


@pytest.mark.parametrize(
    ("path", "text"),
    [("a.c", "#define A\n// words\n"), ("a.sql", "-- words\nSELECT 1\n"), ("a.sh", "# words\nexit 1\n")],
)
def test_comments_are_those_of_the_files_language(path: str, text: str) -> None:
    generator = random.Random(4)
    kinds = Kinds(prose=0.0, rest_of_line=1.0)
    kept = {region(text, place, kinds, generator, comments_of(path)) for place in range(len(text))}
    assert ["words" in text[one.start : one.end] for one in kept if one is not None] == [False]


def test_files_are_drawn_by_their_weights(tokenizer: Tokenizer) -> None:
    longer = SourceFile("made", "made/longer.py", FILES[0].text + FILES[0].text.replace("total", "sum"))
    files = mixed({"python": [FILES[0], longer], "go": [FILES[1]]}, {"python": 1.0, "go": 3.0})
    assert files.weights is not None
    shares = [weight / sum(files.weights) for weight in files.weights]
    assert shares[2] == pytest.approx(0.75)
    assert shares[1] / shares[0] == pytest.approx(len(longer.text) / len(FILES[0].text))
    plain = Mixture(with_path=0.0)
    only, alone = Source(files.files, tokenizer, plain, 1, [0, 0, 1]), Source(files.files[2:], tokenizer, plain, 1, [1])
    assert [only.draw(200) for _ in range(9)] == [alone.draw(200) for _ in range(9)]
