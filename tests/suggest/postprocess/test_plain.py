"""Lines of languages without a grammar: what may stand at a cursor, and where a text may end."""

from __future__ import annotations

import pytest

from fim_server.language.plain import OTHER, PlainText, plain_name
from fim_server.language.shapes import Shape
from fim_server.suggest.postprocess.plain import CUTS_WORD, STANDS_THERE, closed_cuts, plain_line
from fim_server.suggest.ranking.reasons import Suppression
from fim_server.suggest.suggestion import Ends
from fim_server.text.document import Split

LANGUAGE = PlainText("foo")
SESSION = LANGUAGE.open("", "")


def line_at(marked: str, text: str) -> str | Suppression:
    left, right = marked.split("‸")
    return plain_line(text, Split(left, right), SESSION)


@pytest.mark.parametrize(
    ("marked", "text", "line"),
    [
        ("a = ‸\n", "b + c\nd = e\n", "b + c"),
        ("f(‸", "a, b)", "a, b)"),
        ("f(‸)", "a, b)", "a, b"),
        ("f(g(‸)", "a), b) c", "a), b"),
        ("f(g(‸))", "a), b)", "a"),
        ("f(g(a‸) + 1", ", b) + 2)", ", b) + 2"),
        ("‸", "a) b", "a"),
        ("x[f(‸]", "a)] + 1", "a)"),
        ('say "‸"', 'hello" + "you', "hello"),
        ('say ‸"x"', 'a "b', 'a "b'),
        ("let a‸ = 1;", " = 1;", STANDS_THERE),
        ("let a‸ = 1;", "b = 1; c", "b"),
        ("key: ‸ # unit", "10 # unit", "10"),
        ("a‸\nsecond line here\n", "\nsecond line here", STANDS_THERE),
        ("‸\n  - item: two\n", "- item: two", STANDS_THERE),
        ("{\n‸\n}\n", "}", STANDS_THERE),
        ("{\n‸\n}\n", "x }", "x "),
        ("{\n    ‸\n}\n", "x;", "x;"),
        ("re‸turn a", "place, ", "place, "),
        ("re‸turn a", " = ", CUTS_WORD),
        ("a ‸b", "not c", "not "),
        ("a ‸b", "c.", "c."),
        ("a ‸b", "c", STANDS_THERE),
        ("a‸", "", ""),
    ],
)
def test_a_line_repeats_nothing_and_closes_nothing_twice(marked: str, text: str, line: str | Suppression) -> None:
    assert line_at(marked, text) == line


def test_long_lines_are_looked_at_near_the_cursor_alone() -> None:
    assert line_at("(" * 300_000 + "‸" + ")" * 300_000, "a)") == "a"


@pytest.mark.parametrize(
    ("text", "cuts"),
    [
        ("f(a) + b", ["f", "f(a)", "f(a) +", "f(a) + b"]),
        ("f(a", ["f", "f(a"]),
        ('x "y z" w', ["x", 'x "y z"', 'x "y z" w']),
        ("it's ours", ["it's", "it's ours"]),
    ],
)
def test_a_part_of_a_text_leaves_no_bracket_and_no_quote_open(text: str, cuts: list[str]) -> None:
    every = Ends(tuple(range(1, len(text) + 1)), ())
    found = [text[:end] for end in closed_cuts(every, text, SESSION.spelling).cuts]
    assert [one for one in found if not one.endswith(" ") and one in cuts] == cuts
    assert all(one.count("(") == one.count(")") and one.count('"') % 2 == 0 for one in found[:-1])


@pytest.mark.parametrize(
    ("path", "editor_id", "name"),
    [
        ("/a/b.foo", "", "foo"),
        ("/a/b.FOO", "plaintext", "plaintext"),
        ("/a/README", "", OTHER),
        ("", "makefile", "makefile"),
        ("", "", OTHER),
        ("/a/b.py", "plaintext", None),
        ("/a/b.foo", "python", None),
        ("/a/b.d.ts", "", None),
    ],
)
def test_a_file_that_no_language_has_is_plain(path: str, editor_id: str, name: str | None) -> None:
    assert plain_name(path, editor_id) == name


@pytest.mark.parametrize(("left", "right"), [("", ""), ("a", "b\n"), ("\0\x01", "\x01"), ("(" * 10_000, "")])
def test_nothing_is_promised_of_a_plain_text(left: str, right: str) -> None:
    session = LANGUAGE.open(left, right)
    assert session.guarantee == "none"
    assert session.diagnostics == ["there is no grammar for foo: any text may come here"]
    assert session.check("x)").viable
    assert session.inside is None
    assert session.open_constructs() == []
    assert not session.start("[a-z]+").is_complete()


def test_languages_without_a_grammar_share_their_compiled_form() -> None:
    other, shape = PlainText("bar"), Shape.regex("[a-z]+")
    assert (other.name, LANGUAGE.name) == ("bar", "foo")
    assert other.core is LANGUAGE.core
    assert other.shaped(shape) is LANGUAGE.shaped(shape)
