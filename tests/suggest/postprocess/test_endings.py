"""Endings of lines that become unlikely before they are complete."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fim_server.decoding.results import Completion, StopReason, Won, Written
from fim_server.language import Language
from fim_server.language.state import State
from fim_server.suggest.constants import POSTPROCESS
from fim_server.suggest.context.cursor import contains_in_order
from fim_server.suggest.postprocess.endings import (
    MOST_COVERED,
    with_any_ending,
    with_shortest_ending,
)
from fim_server.text.document import Split


def begun(*tokens: tuple[str, float]) -> Completion:
    """Return a completion that became unlikely and was complete nowhere."""
    text, written = "", []
    for token, probability in tokens:
        text += token
        written.append(Written(len(text), probability))
    return Completion(None, "exact", StopReason.UNLIKELY, "why", won=Won.POINT, written=tuple(written), begun=text)


@pytest.mark.parametrize(
    ("left", "right", "owes_block", "tokens", "expected"),
    [
        ("if ", "\n    pass\n", False, [("x.y", 0.9), (" is", 0.01), (" not", 0.9)], "x.y:"),
        ("if ", "\n    pass\n", False, [("x", 0.9), (".ready", 0.9), (" and", 0.9), (" o", 0.01)], "x.ready:"),
        ("def f(a: ", "\n    pass\n", False, [("list[int]", 0.9), (" = [", 0.1)], "list[int]):"),
        ("x = f(", "\n", False, [("a", 0.9), (", b", 0.01)], "a)"),
        ("if ", "\nx = 1\n", True, [("x", 0.9), (" is", 0.01)], "x:\n    pass"),
        ("x = f(", "\n", False, [("a", 0.9), (",", 0.9), (" b.", 0.1)], "a)"),
        ("x = f(\n    g(", "\n    b,\n)\n", False, [("a", 0.9), (".c", 0.1)], "a),"),
        ("x = f(\n    ", "\n    b,\n)\n", False, [("a", 0.9), (" for", 0.1)], "a,"),
        ("x = f(", ")\n    b,\n)\n", False, [("a", 0.9), (", b", 0.1)], None),  # but for a comment that hides a bracket
        ("x = ", "\n", False, [("lambda", 0.9), (" a", 0.01)], None),  # what ends it has a word
        ("if ", "\n    pass\n", False, [("wor", 0.9)], None),  # the word may go on
        ("if ", "\n    pass\n", False, [("'a", 0.9), (" b", 0.1)], None),  # in a string
    ],
)
def test_the_likely_beginning_of_a_line_gets_an_ending(
    left: str, right: str, owes_block: bool, tokens: list[tuple[str, float]], expected: str | None
) -> None:
    session = Language.load("python").open(left, right)
    given = begun(*tokens)
    found = with_shortest_ending(given, session, Split(left, right), owes_block)
    assert found.text == expected
    if expected is None:
        assert found is given
        return
    assert session.check(expected).complete
    assert found.written[0].probability == tokens[0][1]
    assert found.written[-1].end == len(expected)
    assert found.written[-1].probability == POSTPROCESS.ending_likelihood
    assert [token.end for token in found.written] == sorted({token.end for token in found.written})


def test_a_complete_text_is_unchanged() -> None:
    session = Language.load("python").open("x = f(", "\n")
    given = replace(begun(("a", 0.9), (", b", 0.1)), text="a)")
    assert with_shortest_ending(given, session, Split("x = f(", "\n"), False) is given


@pytest.mark.parametrize(
    ("language", "left", "covered", "right", "tokens"),
    [
        ("rust", "impl<'a> ", "'", "\n}\n", [("PartialEq", 0.9), (" for", 0.9)]),
        ("python", 'x = f("', '")', "\n", [("a", 0.9), (" b", 0.9)]),
        ("python", 'x = "a"', '"]', "\n", [(" +", 0.9)]),
        ("python", "x = [", ")" * MOST_COVERED, "\n", []),
    ],
)
def test_an_ending_contains_the_covered_closers(
    language: str, left: str, covered: str, right: str, tokens: list[tuple[str, float]]
) -> None:
    session = Language.load(language).open(left, right)
    found = with_any_ending(begun(*tokens), session, covered)
    assert found.text is not None
    assert contains_in_order(found.text, covered)
    assert session.check(found.text).complete


def test_an_ending_is_checked_together_with_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test that the blank behind a word stays where the text needs it: `1.real` is no program."""
    monkeypatch.setattr(State, "shortest_completion", lambda state: ".")
    session = Language.load("python").open("x = ", "real\n")
    assert session.check("1 .").complete
    assert not session.check("1.").complete
    given = begun(("1", 0.9), (" +", 0.1))
    assert with_any_ending(given, session) is given


def test_many_closers_get_no_ending() -> None:
    session = Language.load("python").open("x = [", "\n")
    given = begun(("a", 0.9))
    assert with_any_ending(given, session, ")" * 1_000_000) is given
