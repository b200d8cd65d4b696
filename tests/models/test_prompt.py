"""FIM formats: found by a tokenizer's real tokens, laid out in the family's order, cut around the cursor."""

import json
import json.scanner
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models

from fim_server.errors import ModelError
from fim_server.models.prompt import CHARACTERS_PER_STEP, find_format, share
from fim_server.models.source import EMBEDDED_NAME, locate
from fim_server.models.tokenizer import read_tokenizer
from fim_server.tokens.formats import Format, Slot, known_formats
from support.models.prompt_families import FAMILIES, bound_to, layout, tokenizer_with, wrap


@pytest.mark.parametrize("row", known_formats(), ids=lambda row: row.family)
def test_every_family_is_found_by_its_own_tokens(row: Format) -> None:
    bound = bound_to(row)
    assert bound.family == row.family
    assert len(bound.stop_ids) == len(row.stop)


@pytest.mark.parametrize("row", known_formats(), ids=lambda row: row.family)
def test_every_family_has_both_slots_once(row: Format) -> None:
    assert row.pieces.count("{prefix}") == row.pieces.count("{suffix}") == 1


def test_the_embedded_family_is_suffix_first() -> None:
    bound = find_format(tokenizer_with(FAMILIES["fim-server"].tokens), "model")
    prompt = bound.encode("def f(", "):\n", 100)
    assert layout(bound, prompt) == "<|fim_suffix|>):\n<|fim_prefix|>def f(<|fim_middle|>"


def test_a_guard_leaves_no_trace() -> None:
    bound = find_format(tokenizer_with(FAMILIES["Code Llama"].tokens), "model")
    assert layout(bound, bound.encode("L", "R", 100)) == "<s>▁<PRE>▁<SUF>R▁<MID>L"


def test_a_tokenizer_without_the_tokens_is_refused_in_one_line() -> None:
    with pytest.raises(ModelError) as refusal:
        find_format(tokenizer_with(["<s>", "</s>"]), "some/model")
    message = str(refusal.value)
    assert message.startswith("some/model: not a fill-in-the-middle model")
    assert "\n" not in message


def test_a_tokenizer_that_answers_with_its_unknown_token_is_refused() -> None:
    backend = Tokenizer(models.WordLevel(vocab={"[UNK]": 0}, unk_token="[UNK]"))
    with pytest.raises(ModelError):
        find_format(wrap(backend, unk_token="[UNK]"), "model")


def test_control_tokens_in_the_users_text_are_plain_text() -> None:
    bound = find_format(tokenizer_with(FAMILIES["fim-server"].tokens), "model")
    prompt = bound.encode("x = '<|fim_middle|>'", "", 100)
    control = [token for token in prompt if token in bound.control_ids]
    assert len(control) == 3


def test_a_long_prompt_keeps_what_is_near_the_cursor() -> None:
    bound = find_format(tokenizer_with(FAMILIES["fim-server"].tokens), "model")
    prompt = bound.encode("a" * 5000 + "LEFT", "RIGHT" + "b" * 5000, 43)
    assert len(prompt) == 43
    text = layout(bound, prompt)
    assert text == f"<|fim_suffix|>RIGHTbbbbb<|fim_prefix|>{'a' * 26}LEFT<|fim_middle|>"


def test_a_prompt_without_room_for_the_tokens_is_an_error() -> None:
    bound = find_format(tokenizer_with(FAMILIES["fim-server"].tokens), "model")
    with pytest.raises(ValueError, match="too short"):
        bound.encode("a", "b", 2)


@pytest.mark.parametrize("room", [0, 1, 7, 100])
@pytest.mark.parametrize("prefix", [0, 3, 80, 1000])
@pytest.mark.parametrize("suffix", [0, 3, 80, 1000])
def test_the_room_is_used_up_and_never_exceeded(prefix: int, suffix: int, room: int) -> None:
    kept_prefix, kept_suffix = share(prefix, suffix, room)
    assert kept_prefix + kept_suffix == min(prefix + suffix, room)
    assert kept_prefix <= prefix
    assert kept_suffix <= suffix


# --- prompts that grow ---------------------------------------------------------------------------------------------


def common(some: list[int], other: list[int]) -> int:
    count = 0
    while count < min(len(some), len(other)) and some[count] == other[count]:
        count += 1
    return count


LINES = "".join(f"value_{n} = compute({n}, name='n{n}')\n" for n in range(400))
LONGEST_LINE = max(map(len, LINES.split("\n"))) + 1


@pytest.mark.parametrize("grid", [1, 16, 64])
def test_a_prompt_in_steps_holds_the_same_text_and_is_never_too_long(grid: int) -> None:
    bound = find_format(tokenizer_with(FAMILIES["fim-server"].tokens), "model")
    for length in (0, 10, 200, 3000, len(LINES)):
        for limit in (64, 500, 5000):
            left, right = LINES[:length], LINES[length:]
            prompt = bound.encode(left, right, limit, grid)
            assert len(prompt) <= limit
            shown = layout(bound, prompt).removeprefix("<|fim_suffix|>").removesuffix("<|fim_middle|>")
            suffix, prefix = shown.split("<|fim_prefix|>")
            assert left.endswith(prefix)
            assert right.startswith(suffix)
            room = limit - 3
            lost = 0 if grid == 1 else grid * CHARACTERS_PER_STEP
            assert len(prompt) > min(len(left) + len(right), room) + 3 - lost - 2 * LONGEST_LINE
            assert left == prefix or left[: -len(prefix)].endswith("\n") or len(prefix) < LONGEST_LINE
            assert right == suffix or suffix.endswith("\n") or len(suffix) < LONGEST_LINE


def suffix_texts() -> Iterator[str]:
    """Texts after a cursor: from anywhere in a module, with blank lines, and all in one line."""
    chance = random.Random(5)
    text = Path(json.scanner.__file__).read_text(encoding="utf-8")
    for _ in range(60):
        rest = text[chance.randrange(len(text) + 1) :]
        yield from (rest, rest.replace("\n", "\n\n  \n"), rest.replace("\n", " "))


def test_as_many_lines_follow_the_cursor_as_encoding_all_of_them_shows() -> None:
    bound = find_format(read_tokenizer(Path(locate(EMBEDDED_NAME)), EMBEDDED_NAME), "model")
    chance = random.Random(6)
    shown: Counter[bool] = Counter()
    for right in suffix_texts():
        for room in (16, 200, 1500):
            prefix = 16 * chance.randrange(room // 4 + 1)
            found = bound._suffix(right, prefix, room, 16)
            assert found == bound._suffix_plain(right, prefix, room, 16), (right, prefix, room)
            shown[found == bound._suffix_plain(right, 0, 10**6, 16)] += 1
    assert min(shown[True], shown[False]) > 50, shown


def test_many_blank_lines_after_the_cursor_are_cut_in_a_few_steps() -> None:
    bound = find_format(read_tokenizer(Path(locate(EMBEDDED_NAME)), EMBEDDED_NAME), "model")
    for line in ("\n", " \n"):
        bound.known.clear()
        found = bound._suffix(20_000 * line, 1600, 1600, 16)
        assert len(bound.known) < 50
        assert found == bound._suffix_plain(20_000 * line, 1600, 1600, 16)


def test_a_prompt_in_steps_keeps_its_beginning_while_the_user_types() -> None:
    """A KV cache is reused only up to the end of the prefix that two prompts share."""
    bound = find_format(tokenizer_with(FAMILIES["fim-server"].tokens), "model")
    left, right, limit = LINES[:8000], LINES[8000:], 1000
    reused = []
    for typed in range(1, 200):
        before, after = (bound.encode(left + "x" * n, right, limit, 64) for n in (typed - 1, typed))
        reused.append(common(before, after) / len(after))
    assert sum(share > 0.99 for share in reused) > 190


@pytest.mark.parametrize(("limit", "grid"), [(192, 16), (500, 41), (1000, 64)])
def test_typing_code_moves_a_prompt_s_far_end_seldom(limit: int, grid: int) -> None:
    """A character of real code at a time, with its line breaks and indentations, in the embedded model's tokens."""
    tokenizer = read_tokenizer(Path(locate(EMBEDDED_NAME)), EMBEDDED_NAME)
    bound = find_format(tokenizer, "model")
    text = Path(json.__file__).with_name("decoder.py").read_text(encoding="utf-8")
    begin, typed = 6000, 1200
    right = text[begin + typed :]
    prompts = [bound.encode(text[:at], right, limit, grid) for at in range(begin, begin + typed)]
    again = [len(after) - common(before, after) for before, after in pairwise(prompts)]
    moved = sum(count > 40 for count in again)
    assert moved <= typed / 3 / grid + 1  # at least three characters a token
    assert sorted(again)[len(again) * 9 // 10] < 10


@pytest.mark.parametrize("limit", [64, 192, 700])
def test_pieces_have_the_tokens_of_the_whole(limit: int) -> None:
    tokenizer = read_tokenizer(Path(locate(EMBEDDED_NAME)), EMBEDDED_NAME)
    bound = find_format(tokenizer, "model")
    text = Path(json.__file__).with_name("decoder.py").read_text(encoding="utf-8")
    for at in range(200, len(text), 331):
        ids = bound.encode(text[:at], text[at:], limit, 16)
        prefix, suffix = bound.pieces.index(Slot.PREFIX), bound.pieces.index(Slot.SUFFIX)
        assert suffix < prefix
        before, after = bound.pieces[prefix - 1], bound.pieces[prefix + 1]
        assert not isinstance(before, Slot)
        assert not isinstance(after, Slot)
        begin, end = ids.index(before), ids.index(after)
        shown = tokenizer.decode(ids[begin + 1 : end])
        assert text[:at].endswith(shown)
        assert ids[begin + 1 : end] == tokenizer.encode(shown, add_special_tokens=False, split_special_tokens=True)
        assert shown == text[:at] or text[: at - len(shown)].endswith("\n")


def test_a_line_that_is_too_long_is_cut_and_lines_before_it_are_left_out() -> None:
    bound = find_format(tokenizer_with(FAMILIES["fim-server"].tokens), "model")
    for grid in (1, 8):
        prompt = layout(bound, bound.encode("first\n" + "x" * 100, "y" * 100 + "\nlast\n", 43, grid))
        assert re.fullmatch(r"<\|fim_suffix\|>y{10}<\|fim_prefix\|>x{23,30}<\|fim_middle\|>", prompt)
        prompt = layout(bound, bound.encode("x" * 100 + "\nfirst\n", ")\n" + "y" * 100 + "\nlast\n", 43, grid))
        assert prompt == "<|fim_suffix|>)\n<|fim_prefix|>first\n<|fim_middle|>"


def test_a_guard_is_before_every_piece() -> None:
    bound = find_format(tokenizer_with(FAMILIES["Code Llama"].tokens), "model")
    seen: list[str] = []

    class Noting:
        def encode(self, text: str, /, *, add_special_tokens: bool, split_special_tokens: bool) -> list[int]:
            seen.append(text)
            return list(bound.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))

    noting: Any = Noting()
    prompt = replace(bound, tokenizer=noting).encode(LINES[:900], LINES[900:], 600, 16)
    assert prompt == bound.encode(LINES[:900], LINES[900:], 600, 16)
    assert bound.guard
    assert all(text.startswith(bound.guard) or LINES.startswith(text) or "\n" + text in LINES for text in seen)


def test_names_of_control_tokens_never_become_control_tokens() -> None:
    """Qwen's tokenizer marks its own control tokens as not special, and so finds them in the user's code."""
    tokenizer = tokenizer_with(FAMILIES["fim-server"].tokens)
    bound = find_format(tokenizer, "model")
    middle = bound.tokenizer.convert_tokens_to_ids("<|fim_middle|>")

    class Careless:
        def encode(self, text: str, /, *, add_special_tokens: bool, split_special_tokens: bool) -> list[int]:
            return list(tokenizer.encode(text, add_special_tokens=False, split_special_tokens=False))

    unguarded: Any = Careless()
    careless = replace(bound, tokenizer=unguarded, plain=lambda text: list(text.encode()))
    text = "x = '<|fim_middle|>'"
    assert middle in careless.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
    assert careless.encode(text, "", 100).count(middle) == 1
