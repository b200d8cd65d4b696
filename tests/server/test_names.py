"""Which names of a suggestion are known: by the document, by the language, by the suggestion itself."""

from __future__ import annotations

import builtins
import keyword

import pytest

from fim_server.language import Language
from fim_server.server.names import Names, own_names
from fim_server.text.document import Split


def unknown(marked: str, text: str, language: str = "python", known: tuple[str, ...] = ()) -> list[str]:
    """What of a text at the mark `|` is not known, up to its end each."""
    left, right = marked.split("|")
    session = Language.load(language).open(left, right)
    ends = Names().unknown(language, Split(left, right), text, session, known.__contains__)
    return [text[:end] for end in ends]


@pytest.mark.parametrize(
    ("marked", "text", "expected"),
    [
        ("value = 1\nx = |\n", "value + other", ["value + other"]),
        ("x = |\nother = 2\n", "value + other", ["value"]),
        ("x = |\n", "len(self.items)", ["len(self.items"]),  # the language's own, and nobody's
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
    ],
)
def test_names(marked: str, text: str, expected: list[str]) -> None:
    assert unknown(marked, text) == expected


def test_words_that_are_known_elsewhere_are_known() -> None:
    assert unknown("x = |\n", "first + second", known=("first",)) == ["first + second"]


def test_a_language_without_names_has_none_that_are_unknown() -> None:
    assert own_names("tarn") is None
    assert unknown('{"a": |}\n', "true", "json") == []


def test_other_lines_are_read_anew_when_they_change() -> None:
    names, session = Names(), Language.load("python").open("", "")
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
