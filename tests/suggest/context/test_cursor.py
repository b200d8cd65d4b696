"""Cursors: their place, their brackets, placeholders below them, and the length of their prompts."""

from __future__ import annotations

import ast
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fim_server.language import Language
from fim_server.models.pace import Pace
from fim_server.suggest.context.cursor import Place, contains_in_order, wants_single_line
from fim_server.suggest.context.prompts import options_of
from fim_server.suggest.context.sessions import DocumentSessions
from fim_server.suggest.postprocess.blocks import is_header
from fim_server.suggest.ranking.display import missing_closer, quiet, silent
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.text.brackets import before_unopened, unmatched
from fim_server.text.document import Split
from fim_server.tokens.vocabulary import MOST_UNSETTLED


def place(text: str) -> Place:
    left, right = text.split("|")
    return Place.of(Split(left, right))


@pytest.mark.parametrize(
    ("text", "before", "after", "closers", "at_end", "in_word"),
    [
        ("|", "", "", "", True, False),
        ("a\n  b|\nc", "  b", "", "", True, False),
        ("f(|)", "f(", ")", ")", False, False),
        ("f([{'|'}]) # x", "f([{'", "'}]) # x", "'}])", False, False),
        ("f(a| )", "f(a", " )", " )", False, False),
        ("f({ | }) ", "f({ ", " }) ", " })", False, False),
        ("f(a| b)", "f(a", " b)", "", False, False),
        ("nam|e", "nam", "e", "", False, True),
        ("_|_", "_", "_", "", False, True),
        ("größ|e = 1", "größ", "e = 1", "", False, True),
        ("a|  \n", "a", "  ", "", True, False),
        ("(|" + ")" * 40, "(", ")" * 40, ")" * 16, False, False),
    ],
)
def test_the_place_of_a_cursor(text: str, before: str, after: str, closers: str, at_end: bool, in_word: bool) -> None:
    here = place(text)
    assert (here.before, here.after, here.closers(Language.load("python"))) == (before, after, closers)
    assert (here.is_at_line_end, here.is_inside_a_word) == (at_end, in_word)


def test_places_without_automatic_suggestions() -> None:
    settings = ServerSettings(inside_strings=False)
    code, word = place("x = |"), place("na|me")
    assert quiet(code, None, False, settings) is None
    found = quiet(word, None, False, settings)
    assert found is not None
    assert found.message == "inside a word"
    assert quiet(word, "string", True, settings) is None
    for inside, name in [("comment", "inside_comments"), ("string", "inside_strings")]:
        assert quiet(code, inside, False, settings) is not None
        assert quiet(code, inside, False, settings.having(name, True)) is None
        assert quiet(code, inside, True, settings) is None


@pytest.mark.parametrize(
    ("settings", "language", "automatic", "invoked"),
    [
        ({}, "python", True, True),
        ({}, "json", False, False),
        ({"trigger": "manual"}, "python", False, True),
        ({"trigger": "manual", "languages": {"python": "automatic"}}, "python", True, True),
        ({"languages": {"python": "manual"}}, "python", False, True),
        ({"languages": {"python": "off"}}, "python", False, False),
        ({"enabled": False, "languages": {"python": "automatic"}}, "python", False, False),
        ({"languages": {}}, "json", True, True),
    ],
)
def test_which_languages_are_answered(settings: dict[str, Any], language: str, automatic: bool, invoked: bool) -> None:
    made = replace(ServerSettings(), **settings)
    assert (silent(language, False, made) is None) == automatic
    assert (silent(language, True, made) is None) == invoked


@pytest.mark.parametrize(
    ("settings", "language", "automatic", "remembered"),
    [
        ({}, "python", True, True),
        ({}, "go", False, False),
        ({"languages": {"go": "automatic"}}, "go", True, True),
        ({"languages": {"go": "manual"}}, "go", False, True),
        ({"languages": {"python": "off"}}, "python", False, False),
        ({"trigger": "manual"}, "go", False, False),
    ],
)
def test_unlearnt_languages_are_completed_on_explicit_requests(
    settings: dict[str, Any], language: str, automatic: bool, remembered: bool
) -> None:
    made, learnt = replace(ServerSettings(), **settings), frozenset({"python"})
    assert (silent(language, False, made, learnt) is None) == automatic
    assert (silent(language, True, made, learnt) is None) == (made.languages.get(language) != "off")
    assert made.remembers(language, learnt) == remembered
    reason = silent("go", False, ServerSettings(), learnt)
    assert reason is not None
    assert reason.message == "only when asked: the model does not know go (setting languages)"


def test_places_for_a_single_line() -> None:
    middle, end = place("f(|)"), place("if a:|\n")
    for multiline, expected in [("auto", (True, False)), ("never", (True, True)), ("always", (False, False))]:
        settings = ServerSettings(multiline=multiline)
        assert (wants_single_line(middle, settings), wants_single_line(end, settings)) == expected


def test_parts_in_their_order() -> None:
    assert contains_in_order("a)b]", ")]")
    assert not contains_in_order("a]b)", ")]")
    assert not contains_in_order(")", "))")
    assert contains_in_order("", "")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("r}", "r"),
        ("%] = 1", "%"),
        ("f(a)[0]", "f(a)[0]"),
        ("f(a))", "f(a)"),
        ("(]", "("),
        ("", ""),
        ("a, (b", "a, (b"),
    ],
)
def test_without_a_grammar_a_text_ends_before_a_foreign_closer(text: str, kept: str) -> None:
    assert before_unopened(text, Language.load("python").spelling.brackets) == kept


def test_covered_lines_do_not_include_the_cursors() -> None:
    left, right = '{"a": [1,\n 2],\n "b": [', " 1 2 :: ]\n}"
    opened = DocumentSessions().open("file:///a.json", Language.load("json"), Split(left, right))
    assert opened.guarantee == "partial"
    assert [(group.line, group.count) for group in opened.ignored] == [(2, 1)]
    assert [opened.line_in_document(line) for line in range(4)] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("settings", "window", "tokens_per_second", "prompt", "chunk"),
    [
        ({}, 8192, 0, 192, 256),  # nothing is known
        ({}, 8192, 650, 192, 32),
        ({}, 8192, 2000, 576, 96),
        ({}, 1024, 6000, 1024 - 128 - MOST_UNSETTLED, 256),
        ({"prompt_tokens": 700}, 8192, 650, 700, 32),
        ({"prompt_tokens": 5000}, 4096, 650, 4096 - 128 - MOST_UNSETTLED, 32),
        ({"max_tokens": 4096}, 512, 6000, 256 - MOST_UNSETTLED, 256),
    ],
)
def test_a_prompt_is_as_long_as_there_is_time_and_room_for(
    settings: dict[str, Any], window: int, tokens_per_second: int, prompt: int, chunk: int
) -> None:
    pace = Pace()
    model: Any = SimpleNamespace(window=window)
    pace.note(tokens_per_second, 1.0)
    for single_line in (False, True):
        request = Request(
            "file:///a.py", Split("x = ", "\n"), "python", "", False, single_line, ServerSettings(**settings)
        )
        options = options_of(request, model, pace, 0, None)
        assert (options.max_prompt_tokens, options.prefill_chunk) == (prompt, chunk)
        assert 1 <= options.prompt_grid <= max(1, prompt // 8)


@pytest.mark.parametrize(
    ("marked", "covered"),
    [
        ("class A:\n    def f(self, |)\n        return 1\n", 1),  # its colon comes after the closer
        ("if isinstance(|)\n    x = 1\n", 1),
        ("for a in f(g(|))\n    pass\n", 2),
        ("x = [a for a in (|)]\n", 0),
        ("x = f(|)\ny = 2\n", 0),
        ("x = f(a, g(|)\ny = 2\n", 0),  # one of the two is owed
        ("def f(|):\n    pass\n", 0),
        ("d = {a[|]}\n", 0),
        ("class A(|)\n\nx = 1\n", 1),
        ("f(\n    'a|'\n    b=1,\n)\n", 1),  # its comma comes after the quote
        ("if x == 'a|'\n    pass\n", 1),
        ("d = {'a|'\n    b: 2}\n", 1),
        ("x = ['a|'\n    'b']\n", 0),  # two strings side by side are one
        ("x = ['a', 'b|']\n", 0),
        ("f'a {b} c|'\nx = 1\n", 0),
        ("assert f(a|)\n    b,\n    c,\n)\n", 1),  # what the lines below are in is opened behind the closer
        ("assert f(a, b|)\n    c\n)\n", 1),
        ("assert f(a) == (b|)  # c\n", 0),
    ],
)
def test_closers_before_a_required_rest_are_left_to_the_middle(marked: str, covered: int) -> None:
    left, right = marked.split("|")
    opened = DocumentSessions().open("file:///a.py", Language.load("python"), Split(left, right))
    assert (opened.covered, opened.guarantee) == (covered, "exact")


BELOW = "\n        g();\n    }\n}\n"
BROKEN_ABOVE = "void f() {\n    if (x)\n    g();}\n}\n"


@pytest.mark.parametrize(
    ("language", "marked", "covered", "guarantee", "middle"),
    [
        # The closer closes what the editor closed: the middle ends before it.
        ("c", "int f() {\n    for (|)\n}\n", 0, "balanced", "int i = 0; i < n; i++"),
        ("c", "int f() {\n    for (|)\n        g();\n}\n", 0, "balanced", "int i = 0; i < n; i++"),
        ("c", "int f() {\n    g(h(|));\n}\n", 0, "balanced", "x"),
        # A block below is begun behind the closer, never before it.
        ("c", "int f() {\n    for (|)" + BELOW, 1, "balanced", "int i = 0; i < n; i++) {"),
        ("cpp", "int f() {\n    if (g(|))" + BELOW, 2, "balanced", "x)) {"),
        ("cpp", "void f(|)\n    g();\n}\n", 1, "balanced", "int x) {"),
        ("php", "<?php\nfunction f() {\n    if (|)\n        g($x);\n    }\n}\n", 1, "balanced", "$x) {"),
        ("csharp", "class A {\n    void F(|)\n        G();\n    }\n}\n", 1, "balanced", "int x) {"),
        ("kotlin", "fun f() {\n    while (|)\n        g()\n    }\n}\n", 1, "balanced", "x) {"),
        # The same in a file that is broken elsewhere.
        ("c", BROKEN_ABOVE + "int h() {\n    for (|)" + BELOW, 1, "partial", "int i = 0; i < n; i++) {"),
        ("c", BROKEN_ABOVE + "int h() {\n    for (|)\n}\n", 0, "partial", "int i = 0; i < n; i++"),
        ("python", "def g():\n    h(]\n\ndef f():\n    if g(|)\n        h()\n", 1, "partial", "x):"),
        (
            "java",
            "class A {\n void g() {\n  h(;\n }\n void f() {\n  if (|)\n   h();\n  }\n }\n}\n",
            1,
            "partial",
            "x) {",
        ),
        # Text behind the closer stays, so nothing opens a block before it.
        ("c", "int f() {\n    g(|);\n    }\n}\n", 0, "none", "x"),
    ],
)
def test_the_middle_opens_nothing_for_a_closer(
    language: str, marked: str, covered: int, guarantee: str, middle: str
) -> None:
    left, right = marked.split("|")
    opened = DocumentSessions().open("file:///a", Language.load(language), Split(left, right))
    assert (opened.covered, opened.guarantee) == (covered, guarantee)
    assert opened.session.check(middle).complete
    assert guarantee == "none" or not opened.session.check("x) { g(").complete


@pytest.mark.parametrize(
    ("marked", "middle"),
    [
        ("def f():\n    try:\n        data = lo|\n\nx = 1\n", "ad(path)"),
        ("@app.route(|)\n", "'/'"),
        ("@pytest.mark.p|\n", "arametrize"),
        ("def save(\n    path: s|\n)\n", "tr,"),
        ("class A(\n    js|\n)\n", "on.Encoder"),
        ("if (\n    a|\n):\n    pass\n", " == b"),
        ("for x in load(\n    pa|\n    )\n", "th"),
        ("with (\n    open(pat|)\n    )\n", "h"),
    ],
)
def test_a_missing_block_gets_a_placeholder(marked: str, middle: str) -> None:
    left, right = marked.split("|")
    contexts, python = DocumentSessions(), Language.load("python")
    split = Split(left, right)
    opened = contexts.open("file:///a.py", python, split, stands_in=True)
    assert opened.session.check(middle).complete
    ast.parse(opened.left + middle + opened.right)  # what is promised: with the stand-in it is a program
    assert missing_closer(middle, split, opened.covered) is None
    whole = contexts.open("file:///a.py", python, split)
    assert (whole.guarantee, opened.guarantee) in (("exact", "partial"), ("exact", "exact"))
    if opened.guarantee == "partial":
        assert not whole.session.check(middle).complete
        assert opened.diagnostics[0].endswith("the text that has to follow is missing")
        assert opened.session.check("").viable


@pytest.mark.parametrize(
    "marked",
    [
        "x = f(a|)\n",
        "if x:|\n    pass\n",
        "try:\n    a|\nexcept E:\n    pass\n",
        "x = {\n    a|\n}\n",
        "|",
        "try:\n    foo(|\n        a,\n        b,\n    )\n",  # the lines below are the line's own
        "@foo(|\n    a,\n)\n",
        "try:\n    x = [|\n        1,\n    ]\n",
        "try:\n    if a|\n        b()\n    c()\n",
        "match x|\n",  # its block is the middle's business
    ],
)
def test_no_placeholder_where_nothing_is_missing(marked: str) -> None:
    left, right = marked.split("|")
    opened = DocumentSessions().open("file:///a.py", Language.load("python"), Split(left, right), stands_in=True)
    assert (opened.guarantee, opened.right) == ("exact", right)


def test_lines_below_a_placeholder_are_the_documents() -> None:
    contexts, python = DocumentSessions(), Language.load("python")
    opened = contexts.open("file:///a.py", python, Split("try:\n    a", "\n\nx = 1\n"), stands_in=True)
    assert list(opened.stood_in) == [2]
    assert [opened.line_in_document(line) for line in range(5)] == [0, 1, 2, 2, 3]
    assert opened.covered_lines == (range(1), range(2, 5))


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("match = f(", False),
        ("match.group(", False),
        ("match x", True),
        ("case _", True),
        ("for a in b", True),
        ("else:", True),
        ("while ...:", True),
        ("if .5 < x", True),
    ],
)
def test_a_name_that_may_begin_a_block_does_not_where_it_is_a_name(line: str, is_one: bool) -> None:
    assert is_header(Split(line, "\n"), "python") == is_one


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a) + (b", (1, 1)), ("f(a)[b]", (0, 0)), ("))", (2, 0)), ("([", (0, 2)), ("(]", (1, 1)), ("", (0, 0))],
)
def test_brackets_without_a_partner_are_counted(text: str, expected: tuple[int, int]) -> None:
    assert unmatched(text, Language.load("python").spelling.brackets) == expected
