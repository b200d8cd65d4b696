"""Names of a suggestion that the document, the language or the suggestion itself knows."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterator
from random import Random

import pytest

from fim_server.language import Language
from fim_server.suggest.postprocess import identifiers
from fim_server.suggest.postprocess.identifiers import WORD, NameCounts, OwnNames, own_names
from fim_server.suggest.ranking.red_flags import defined_again
from fim_server.text.document import Split


def unknown(marked: str, text: str, language: str = "python", known: tuple[str, ...] = ()) -> list[str]:
    """Return the beginnings of a text at the mark `|` that end with an unknown name."""
    left, right = marked.split("|")
    session = Language.load(language).open(left, right)
    ends = NameCounts().unknown(language, Split(left, right), text, session, known.__contains__)
    return [text[:end] for end in ends]


@pytest.mark.parametrize(
    ("marked", "text", "expected"),
    [
        ("value = 1\nx = |\n", "value + other", ["value + other"]),
        ("x = |\nother = 2\n", "value + other", ["value"]),
        ("x = |\n", "len(self.items)", ["len(self.items"]),  # a name of the language, and an unknown one
        ("x = lo|\n", "cal", ["cal"]),  # what was typed of a word is part of it
        ("local = 1\nx = lo|\n", "cal", []),
        ("x = lo|cal\n", "w + 1", ["w"]),
        ("|\n", "fresh = 1\nprint(fresh)", []),  # bound, then known
        ("|\n", "print(fresh)\nfresh = 1", ["print(fresh"]),
        ("|\n", "fresh == 1", ["fresh"]),
        ("|\n", "for item in values: item", ["for item in values"]),
        ("def |\n    pass\n", "name():", []),
        ("import |\n", "os as system", []),
        ("x = |\n", "f(name=1)", ["f"]),  # keyword arguments are the callable's
        ("x = |\n", "'some words'", []),
        ("x = |\n", "f'words {name}'", ["f'words {name"]),
        ("x = |\n", "1e5 + 0xff", []),
        ("x = (|\n", "other", ["other"]),  # a broken file has names
        ("x = 1|\n", "  # unknown words", []),
    ],
)
def test_unknown_names_of_a_text(marked: str, text: str, expected: list[str]) -> None:
    assert unknown(marked, text) == expected


def test_names_known_elsewhere_are_known() -> None:
    assert unknown("x = |\n", "first + second", known=("first",)) == ["first + second"]


def test_a_language_without_names_has_no_unknown_names() -> None:
    assert own_names("tarn") is None
    assert unknown('{"a": |}\n', "true", "json") == []


def test_where_no_name_is_known_every_word_of_code_is_one() -> None:
    marked = "int count;\n// total\nint f(void) {\n  return |;\n}\n"
    assert own_names("c") is None
    assert unknown(marked, "count + total", "c") == []
    assert unknown(marked, "count + length(total)", "c") == ["count + length"]
    assert unknown(marked, 'count("some words")', "c") == []
    assert unknown(marked, "while", "c") == ["while"]
    assert unknown("int co|\nint count;\n", "unt", "c") == []


def test_changed_lines_are_read_again() -> None:
    names, session = NameCounts(), Language.load("python").open("", "")
    for name in ("first", "second"):
        split = Split(f"{name} = 1\nx = ", "\n")
        assert names.unknown("python", split, name, session) == ()
        assert names.unknown("python", split, "third", session) == (5,)


def test_keywords_and_builtins_are_the_languages_own() -> None:
    own = own_names("python")
    assert own is not None
    assert own.known.issuperset(keyword.kwlist)
    of_the_shell = {"copyright", "credits", "exit", "license", "quit"}
    assert own.known.issuperset({name for name in dir(builtins) if not name.startswith("_")} - of_the_shell)


def words_by_themselves(marked: str, text: str) -> list[str]:
    """Return the names of a text that stand nowhere else in a document, counted afresh."""
    left, right = marked.split("|")
    start = re.search(r"\w*\Z", left)
    assert start is not None
    around = {*WORD.findall(left[: start.start()]), *WORD.findall(right)}
    found = WORD.finditer(start.group() + text)
    ends = [match.end() - len(start.group()) for match in found if match[0] not in around]
    return [text[:end] for end in ends if end > 0]


def test_counts_after_edits_equal_a_fresh_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fim_server.suggest.postprocess.identifiers.is_in_prose", lambda session, middle: False)
    monkeypatch.setattr("fim_server.suggest.postprocess.identifiers.AT_ONCE", 7)
    monkeypatch.setattr("fim_server.suggest.postprocess.identifiers.own_names", lambda language: OwnNames(frozenset()))
    random, names = Random(4), NameCounts()
    session = Language.load("python").open("", "")
    pieces = [
        "ab",
        "b",
        "a",
        "1a",
        "b2",
        "é",
        "\u0301",
        " ",
        "  ",
        "\n",
        "\n\n",
        '"',
        "'",
        "`",
        "(",
        ".",
        "_",
        "\t",
        "日",
    ]

    def some(most: int) -> str:
        return "".join(random.choice(pieces) for _ in range(random.randrange(most)))

    text, seen = some(60), 0
    for _ in range(3_000):
        start, end = sorted(random.randrange(len(text) + 1) for _ in range(2))
        edit = random.random()
        if edit < 0.05:
            text = some(60)
        elif edit < 0.6:
            text = text[:start] + some(4) + text[start + (end - start) % 4 :]
        at = random.randrange(len(text) + 1)
        split = Split(text[:at], text[at:])
        suggested = "".join(random.choice([*pieces, "ab ", "a ", "b."]) for _ in range(4))
        ends = names.unknown("python", split, suggested, session)
        expected = words_by_themselves(f"{text[:at]}|{text[at:]}", suggested)
        assert [suggested[:end] for end in ends] == expected, (split, suggested)
        seen += bool(ends)
    assert 300 < seen < 2_700


def test_a_key_in_a_long_text_reads_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"    value_{line} = other(value_{line // 2})\n" for line in range(20_000))
    names, session = NameCounts(), Language.load("python").open("", "")
    read = 0
    plain = identifiers.words_of

    def counted(text: str, start: int, end: int) -> Iterator[list[str]]:
        nonlocal read
        read += end - start
        return plain(text, start, end)

    monkeypatch.setattr(identifiers, "words_of", counted)
    for at in (len(text) // 2, len(text) // 2 + 1, 1_000, len(text)):
        for typed in ("va", "val", "val\n"):
            text = text[:at] + typed + text[at:]
            split = Split(text[: at + len(typed)], text[at + len(typed) :])
            assert names.unknown("python", split, "value_7 + value_x", session)
    assert read < len(text) * 1.1


AREA = "def area(a):\n    return a\n"


@pytest.mark.parametrize(
    ("left", "text", "right", "expected"),
    [
        ("def ", "area(b):", "\n\n" + AREA, "area"),
        (AREA + "\ndef ", "area(b):", "\n", "area"),
        (AREA + "\ndef ar", "ea(b):", "\n", "ea"),
        (AREA + "\n", "async def area(b):", "\n", "async def area"),
        (AREA + "\n", "def areas(b):", "\n", None),
        (AREA + "\nclass A:\n    def ", "area(self):", "\n", None),  # another block
        ("class A:\n    def ", "f(self):", "\n\n    def f(self):\n        pass\n", "f"),
        ("class A:\n    def ", "f(self):", "\n\nclass B:\n    def f(self):\n        pass\n", None),
        (AREA + "\n@overload\ndef ", "area(b):", "\n", None),
        (AREA + "\nx = ", "area(b)", "\n", None),
        (AREA + "\ndef area", "(b):", "\n", None),  # typed, not suggested
    ],
)
def test_a_name_that_is_defined_again(left: str, text: str, right: str, expected: str | None) -> None:
    defining = Language.load("python").spelling.defining
    end = defined_again(own_names("python"), defining, Split(left, right), text)
    assert (None if end is None else text[:end]) == expected


def test_a_name_is_defined_again_in_languages_without_known_names() -> None:
    assert own_names("go") is None
    defining, split = Language.load("go").spelling.defining, Split("func St", "\n\nfunc Stop() {}\n")
    assert defined_again(None, defining, split, "op(x int) {}") == 2
    assert defined_again(None, defining, split, "art(x int) {}") is None
