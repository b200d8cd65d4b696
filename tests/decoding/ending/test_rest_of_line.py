"""The rest of the cursor's line: where its being written ends a middle."""

from __future__ import annotations

import pytest

from fim_server import Language, Vocabulary
from fim_server.decoding.complete import complete
from fim_server.decoding.ending.rest_of_line import RestOfLine
from fim_server.decoding.options import DecodeOptions
from fim_server.text.document import Split
from support.models.listed_probabilities import texts_of
from support.models.scripted_models import network

PIECES = [" =", " b", " ==", " = b", " = c", "x.", ".y", ".z", "y(", " if", " ifs", "a", "b = ", "\n"]


@pytest.fixture(scope="module")
def python() -> Language:
    return Language.load("python")


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    texts = [*(bytes([byte]) for byte in range(128)), *(piece.encode() for piece in PIECES if len(piece) > 1)]
    return Vocabulary([*texts, None], [len(texts)])


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("a", " = b\n", RestOfLine(b" = b", b" =")),
        ("a", " = b", RestOfLine(b" = b", b" =")),
        ("a", ".b.c  \nd\n", RestOfLine(b".b.c", b".")),
        ("x", " == y\n", RestOfLine(b" == y", b" ==")),
        ("f(a", ", b)\n", RestOfLine(b", b)", b",")),
        ("f(a", " )\n", RestOfLine(b" )", b" )")),
        ("a = ", "b\n", RestOfLine(b"b", b"b")),
        ("a = b", "  # c\n", RestOfLine(b"  # c", b"  #")),
        ("f", "(a)\n", RestOfLine(b"(a)", b"(")),
        ("f(a", ")\n", None),  # a closer's own matter
        ("a = ", "'b'\n", None),
        ("a = b + ", " 'c'\n", None),
        ("f(", "rb'c')\n", None),
        ("a", " > b\n", RestOfLine(b" > b", b" >")),
        ("def f(a)", " -> int:\n    pass\n", RestOfLine(b" -> int:", b" ->")),
        ("a", " = b\r\n", RestOfLine(b" = b", b" =")),
        ("a = ", 300 * "b" + "\n", RestOfLine(256 * b"b", 256 * b"b")),
        ("a = 'b", " c'\n", None),
        ("a = b", "\n", None),
        ("a = b", "", None),
    ],
)
def test_the_rest_of_a_line_is_found_with_its_first_lexeme(
    python: Language, left: str, right: str, expected: RestOfLine | None
) -> None:
    assert RestOfLine.of(python.open(left, right), right) == expected


def test_without_a_guarantee_there_is_no_rest_of_line(python: Language) -> None:
    session = python.open("x = )", " + 1\n")
    assert session.guarantee == "none"
    assert RestOfLine.of(session, " + 1\n") is None


@pytest.mark.parametrize(
    ("token", "writes"),
    [
        *((token, True) for token in (" =", " = b", " = b\n", " = b  #")),
        *((token, False) for token in (" = b.c\n", " = bar", " = c", " ", " ==", "=", "")),
    ],
)
def test_a_token_writes_it(token: str, writes: bool) -> None:
    assert RestOfLine(b" = b", b" =").is_written_by(token.encode()) == writes


def test_writing_the_rest_ends_the_middle(python: Language, vocabulary: Vocabulary) -> None:
    split = ("", " = b\n")
    for end in (" =", " = b", "\n", ""):
        (found,) = texts_of(python, vocabulary, {b"": {"a": 1.0}, b"a": {end: 0.6, ".y": 0.4}}, split)
        assert found.text == "a"
    (several,) = texts_of(python, vocabulary, {b"": {"a": 1.0}, b"a": {" =": 1.0}}, split, single_line=False)
    assert several.text == "a"
    (without,) = texts_of(python, vocabulary, {b"": {"a": 1.0}, b"a": {" =": 1.0}}, split, rest_of_line=None)
    assert without.text is not None
    assert without.text.startswith("a =")


def test_the_rest_is_no_end_where_the_middle_may_not_end(python: Language, vocabulary: Vocabulary) -> None:
    steps = {b"": {"+": 1.0}, b"+": {"d": 1.0}, b"+d": {")": 1.0}, b"+d)": {"": 1.0}}
    (found,) = texts_of(python, vocabulary, steps, ("a = (b ", "+ c\n"))
    assert found.text == "+d)"


def test_writing_the_rest_at_once_leaves_the_middle_empty(python: Language, vocabulary: Vocabulary) -> None:
    (found,) = texts_of(python, vocabulary, {b"": {" =": 0.7, ".y": 0.3}}, ("a", " = b\n"))
    assert found.text == ""


def test_a_token_may_hold_the_beginning_of_the_rest(python: Language, vocabulary: Vocabulary) -> None:
    (found,) = texts_of(python, vocabulary, {b"": {"x.": 0.6, "a": 0.4}}, ("c = ", ".y\n"))
    assert found.text == "x"


@pytest.mark.parametrize(
    ("split", "token", "whole"),
    [
        (("foo(", "x)\n"), "index", "index"),
        (("foo(", "mber)\n"), "number", "number"),
        (("x = a", "*b\n"), " **", " **c"),
        (("a = ", ".b\n"), "x.y", "x.y"),
        (("a = ", "b\n"), "bar", "bar"),
    ],
)
def test_a_longer_word_or_sign_is_another(python: Language, split: tuple[str, str], token: str, whole: str) -> None:
    """A token that only begins like the rest of the line does not end the middle."""
    texts = [*(bytes([byte]) for byte in range(128)), token.encode()]
    vocabulary = Vocabulary([*texts, None], [len(texts)])
    steps = {b"": {token: 0.9, "(": 0.1}, token.encode(): {whole[len(token) :] or "": 1.0}, whole.encode(): {"": 1.0}}
    (found,) = texts_of(python, vocabulary, steps, split)
    assert found.text == whole


def test_writing_the_rest_while_healing_leaves_the_middle_empty(python: Language) -> None:
    texts = [*(bytes([byte]) for byte in range(128)), b").", b")\n"]
    vocabulary = Vocabulary([*texts, None], [len(texts)])
    after = {b")": {".": 0.2, "[": 0.8}}
    for token, split in ((").", ("f(x)", ".y\n")), (")\n", ("f(x)", "\n"))):
        (found,) = texts_of(python, vocabulary, {b"": {token: 0.9, ")": 0.1}, **after}, split, healing=")")
        assert found.text == ")"


def test_the_rest_is_no_end_below_the_first_line(python: Language, vocabulary: Vocabulary) -> None:
    steps = {b"": {"x": 1.0}, b"x": {"\n": 1.0}, b"x\n": {"y": 1.0}, b"x\ny": {",": 1.0}, b"x\ny,": {"z": 1.0}}
    steps[b"x\ny,z"] = {"": 1.0}
    (found,) = texts_of(python, vocabulary, steps, ("a = ", ", b\n"), single_line=False)
    assert found.text == "x\ny,z"


def test_complete_finds_it(python: Language, vocabulary: Vocabulary) -> None:
    import torch

    tokens = {0: "a", 1: " ="}

    def script(written: list[int]) -> torch.Tensor:
        logits = torch.zeros(vocabulary.size)
        token = vocabulary.token_at(tokens.get(len(written), "#").encode())
        assert token is not None
        logits[token] = 30.0
        return logits

    model = network(vocabulary, script)
    assert complete(model, python, Split("", " = b\n"), DecodeOptions(max_new_tokens=8)).text == "a"
