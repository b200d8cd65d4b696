"""Patterns of comments and strings against plain readers, on all short texts of a few characters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import pytest

from fim_server.language.definition.token_trees.patterns import (
    ANY,
    any_of,
    here_document,
    literal,
    nested,
    none_of,
    rest_of_line,
    up_to,
)


def texts(alphabet: str, longest: int) -> Iterator[str]:
    for size in range(longest + 1):
        yield from map("".join, product(alphabet, repeat=size))


def longest_at(text: str, at: int, words: Sequence[str]) -> str:
    return max((word for word in words if text.startswith(word, at)), key=len, default="")


def first_end(
    text: str,
    ends: Sequence[str],
    escape: str = "",
    joined: bool = True,
    skipped: Sequence[str] = (),
    without: str = "",
) -> str | None:
    """The word that ends a text, if it is the first one and the text's end."""
    at = 0
    while at < len(text):
        word = longest_at(text, at, [*ends, *skipped, *([escape] if escape else [])])
        if word in ends:
            return word if at + len(word) == len(text) else None
        if word and word == escape:
            after = text[at + len(word) : at + len(word) + 1]
            if not after or (after == "\n" and not joined):
                return None
            at += len(word) + 1
        elif word:
            at += len(word)
        elif text[at] in without:
            return None
        else:
            at += 1
    return None


KINDS = [
    ("*/a", 8, {"ends": ["*/"]}),
    ("-]a", 8, {"ends": ["]]"]}),
    ("]=a", 8, {"ends": ["]=]"]}),
    ("ab", 10, {"ends": ["aabaa"]}),
    ('"\\a', 7, {"ends": ['"'], "escape": "\\"}),
    ('"\\a\n', 6, {"ends": ['"'], "escape": "\\", "without": "\n"}),
    ('"\\a\n', 6, {"ends": ['"'], "escape": "\\", "without": "\n", "joined": False}),
    ("'a", 9, {"ends": ["'"], "skipped": ["''"]}),
    ("'\\a", 7, {"ends": ["'"], "skipped": ["''"], "escape": "\\"}),
    ('"\\a', 7, {"ends": ['"""'], "escape": "\\"}),
    ('"${a', 6, {"ends": ['"', "${"]}),
    ('"${\\', 6, {"ends": ['"', "${"], "escape": "\\"}),
    ('"$%{a', 5, {"ends": ['"', "${", "%{"], "escape": "\\"}),
    ('"{a', 8, {"ends": ['"', "{"], "skipped": ["{{"]}),
    ('"{a', 8, {"ends": ['"', "{"], "skipped": ["{{", '""']}),
    ('"\\(a', 6, {"ends": ['"', "\\("], "escape": "\\"}),
    ('"\\(a\n', 5, {"ends": ['"', "\\("], "escape": "\\", "without": "\n", "joined": False}),
    ('"\\#(', 6, {"ends": ['"#', "\\#("]}),
    ('"${a', 7, {"ends": ['"', "${"], "skipped": ["$${"]}),
    ("$_a", 8, {"ends": ["$_$"]}),
]


@pytest.mark.parametrize(("alphabet", "longest", "kind"), KINDS, ids=[repr(kind[2])[1:-1] for kind in KINDS])
def test_texts_up_to_the_first_of_some_words(alphabet: str, longest: int, kind: dict[str, object]) -> None:
    given: dict[str, object] = {key: value for key, value in kind.items() if key not in ("joined", "skipped")}
    found = up_to(
        skipped=dict.fromkeys(kind.get("skipped", ()), ""),  # type: ignore[call-overload]
        escaped=ANY if kind.get("joined", True) else none_of("\n"),
        **given,  # type: ignore[arg-type]
    )
    patterns = {end: re.compile(pattern) for end, pattern in found.items()}
    ended = 0
    for text in texts(alphabet, longest):
        expected = first_end(text, **kind)  # type: ignore[arg-type]
        ended += expected is not None
        assert [end for end, pattern in patterns.items() if pattern.fullmatch(text)] == [expected] * (
            expected is not None
        ), text
    assert ended > 3


def test_a_word_that_no_text_may_have() -> None:
    pattern = re.compile(up_to(["*/"], skipped={"/*": None})["*/"])
    for text in texts("*/a", 8):
        assert bool(pattern.fullmatch(text)) == (first_end(text, ["*/", "/*"]) == "*/"), text


def end_of_comment(text: str, at: int, opening: str, closing: str, depth: int) -> int | None:
    """The end of a comment after its opening; None if it is not closed, or nests too deeply."""
    while at < len(text):
        if text.startswith(closing, at):
            return at + len(closing)
        if text.startswith(opening, at):
            if depth == 1:
                return None
            inner = end_of_comment(text, at + len(opening), opening, closing, depth - 1)
            if inner is None:
                return None
            at = inner
        else:
            at += 1
    return None


@pytest.mark.parametrize(
    ("opening", "closing", "alphabet", "longest"),
    [("/*", "*/", "/*a", 9), ("(*", "*)", "(*)", 9), ("{-", "-}", "{-}", 9), ("<", ">", "<>a", 8)],
)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_nested_comments(opening: str, closing: str, alphabet: str, longest: int, depth: int) -> None:
    pattern = re.compile(nested(opening, closing, depth))
    ended = 0
    for text in texts(alphabet, longest):
        expected = end_of_comment(text, 0, opening, closing, depth) == len(text) > 0
        ended += expected
        assert bool(pattern.fullmatch(text)) == expected, text
    assert ended > 5


@pytest.mark.parametrize("words", [[], ["[["], ["[[", "[=["], ["a", "ab", "ba"], ["EOF"]])
@pytest.mark.parametrize("blanks", ["", " "])
def test_lines_that_begin_with_none_of_some_words(words: list[str], blanks: str) -> None:
    pattern = re.compile(rest_of_line(words, blanks))
    for text in texts("".join(sorted({*"".join(words), *" \n"})), 5):
        expected = "\n" not in text and not text.startswith((*words, *blanks))
        assert bool(pattern.fullmatch(text)) == expected, text


def is_here_document(text: str, opening: str, word: str, indented: bool) -> bool:
    """Return whether a text is one: the word follows the opening, and begins the last line, but none before."""
    head, *lines = text.split("\n")
    quoted = re.fullmatch(re.escape(opening) + f"([\"']?){word}\\1([^\\w\"'].*)?", head)
    if quoted is None or not lines:
        return False
    stripped = [line.lstrip(" \t") if indented else line for line in lines]
    ends = [re.match(rf"{word}(?!\w)", line) is not None for line in stripped]
    return stripped[-1] == word and not any(ends[:-1])


@pytest.mark.parametrize("indented", [False, True])
def test_here_documents(indented: bool) -> None:
    pattern = re.compile(here_document("<<", "E", indented))
    found = 0
    for text in texts("E \na'", 6):
        for whole in (f"<<E{text}", f"<<'E{text}"):
            expected = is_here_document(whole, "<<", "E", indented)
            found += expected
            assert bool(pattern.fullmatch(whole)) == expected, whole
    assert found > 20


@pytest.mark.parametrize("character", [*map(chr, range(1, 128)), "é", "€", "😀"])
def test_every_character_stands_for_itself(character: str) -> None:
    assert re.fullmatch(literal(character), character)
    assert re.fullmatch(any_of([character, "]"]), character)
    assert not re.fullmatch(none_of([character, "^"]), character)
    assert not re.fullmatch(none_of(["^", character]), character)


WRONG: list[tuple[list[str], dict[str, object]]] = [
    ([""], {}),
    (["a\0"], {}),
    (["abcd", "bc"], {}),
    (['"', "\\ab"], {"escape": "\\"}),
    (['"'], {"escape": '"'}),
    (['"', "{{{"], {"skipped": {"{{": ""}}),
]


@pytest.mark.parametrize(("ends", "given"), WRONG)
def test_words_that_do_not_fit_each_other(ends: list[str], given: Mapping[str, object]) -> None:
    with pytest.raises(ValueError, match=r"delimiter|begins|escape"):
        up_to(ends, **given)  # type: ignore[arg-type]
