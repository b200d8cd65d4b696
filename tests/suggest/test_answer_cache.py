"""Recent answers: the cursors and requests for which they hold."""

from __future__ import annotations

import pytest

from fim_server.suggest.answer_cache import moved
from fim_server.text.document import Split
from support.editors.answers import KEY, answered, changed, find, remembering, suggestion


def test_an_answer_holds_at_its_cursor_and_while_the_user_types_along() -> None:
    memory = remembering(answered("x = ", "\n", suggestion("call(a)")))
    assert find(memory, "x = ", "\n") == [("call(a)", 0)]
    assert find(memory, "x = ca", "\n") == [("ll(a)", 0)]
    assert find(memory, "x = call(a", "\n") == [(")", 0)]
    assert find(memory, "x = call(a)", "\n") is None  # nothing is left of it
    assert find(memory, "x = b", "\n") is None
    assert find(memory, "x =", "\n") is None
    assert find(memory, "y = ", "\n") is None
    assert find(memory, "x = ", "z\n") is None


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("x = call(", ")\n", [("a)", 1)]),  # the editor has closed the bracket
        ("x = call(a", ")\n", [(")", 1)]),
        ("x = call(", ")]\n", None),  # the text does not hold the second one
        ("x = call(", "b)\n", None),  # the user has written something
        ("x = call(", "}\n", None),
        ("x = call(", "\n", [("a)", 0)]),
    ],
)
def test_inserted_closers_are_covered(left: str, right: str, expected: object) -> None:
    assert find(remembering(answered("x = ", "\n", suggestion("call(a)"))), left, right) == expected


def test_covered_closers_stay_covered() -> None:
    memory = remembering(answered("f(", ")\n", suggestion("a)", covered=1)))
    assert find(memory, "f(a", ")\n") == [(")", 1)]
    assert find(memory, "f(a", "\n") == [(")", 0)]  # the editor has taken its bracket back
    assert find(memory, "f(", ")\n") == [("a)", 1)]


def test_typing_keeps_the_alternatives_that_fit() -> None:
    suggestions = (suggestion("alpha"), suggestion("alto", identity="2"), suggestion("beta", identity="3"))
    memory = remembering(answered("x = ", "\n", *suggestions, complete=True))
    assert find(memory, "x = al", "\n", alternatives=True) == [("pha", 0), ("to", 0)]
    assert find(memory, "x = b", "\n") == [("eta", 0)]
    found = memory.find(KEY, "x = alt", "\n", True, True)
    assert found is not None
    assert [one.identity for one in found.suggestions] == ["2"]


def test_an_automatic_request_gets_one_suggestion() -> None:
    memory = remembering(answered("x = ", "\n", suggestion("alpha"), suggestion("beta", identity="2"), complete=True))
    assert find(memory, "x = ", "\n") == [("alpha", 0)]
    assert find(memory, "x = ", "\n", alternatives=True) == [("alpha", 0), ("beta", 0)]


def test_an_explicit_request_needs_alternatives() -> None:
    memory = remembering(answered("x = ", "\n", suggestion("alpha")))
    assert find(memory, "x = ", "\n", alternatives=True) is None
    memory.add(answered("x = ", "\n", suggestion("alpha"), suggestion("beta"), complete=True))
    memory.add(answered("x = ", "\n", suggestion("alpha")))  # an answer with less does not take its place
    assert find(memory, "x = ", "\n", alternatives=True) == [("alpha", 0), ("beta", 0)]


def test_an_empty_answer_holds_only_at_its_cursor() -> None:
    memory = remembering(answered("x = ", "\n", reason="nothing"))
    assert find(memory, "x = ", "\n") == []
    assert find(memory, "x = a", "\n") is None
    assert find(memory, "x = ", "\n", single_line=False) is None


def test_single_line_answers_are_separate() -> None:
    memory = remembering(answered("if a:", "\n", suggestion("\n    b\n    c"), single_line=False))
    assert find(memory, "if a:\n    b", "\n", single_line=False) == [("\n    c", 0)]
    assert find(memory, "if a:\n    b", "\n", single_line=True) is None  # more than one line is left
    assert find(memory, "if a:\n    b\n    ", "\n", single_line=True) == [("c", 0)]
    assert find(memory, "if a:", "\n", single_line=True) is None


def test_a_header_keeps_its_block_until_it_is_typed() -> None:
    header = changed(suggestion("or a in b:\n    c(d)\n    e(f)"), cuts=(19, 28), owes_block=True)
    memory = remembering(answered("f", "\n", header))
    assert find(memory, "fo", "\n", single_line=True) == [("r a in b:\n    c(d)\n    e(f)", 0)]
    assert find(memory, "for a in b:\n    c(", ")\n", single_line=True) == [("d)", 1)]


def test_inside_a_word_the_first_line_is_left() -> None:
    several = changed(suggestion("call(a)\ny = 1"), cuts=(4, 7, 13))
    memory = remembering(answered("x = ", "\n", several, single_line=False))
    assert find(memory, "x = c", "\n", single_line=True) == [("all(a)", 0)]
    assert find(memory, "x = c", "\n", single_line=False) == [("all(a)\ny = 1", 0)]
    assert find(memory, "x = call(", ")\n", single_line=True) == [("a)", 1)]
    unbroken = changed(suggestion("(a,\n  b)"), cuts=(9,))
    assert find(remembering(answered("x = f", "\n", unbroken)), "x = f(", "\n", single_line=True) is None


def test_recalled_lines_on_the_screen_stay_while_the_user_types_along() -> None:
    several = changed(suggestion("call(a)\ny = 1"), cuts=(4, 7, 13))
    whole, line = changed(several, is_recalled=True, seen=13), changed(several, is_recalled=True, seen=7)
    for known, rest in ((whole, "all(a)\ny = 1"), (line, "all(a)"), (changed(whole, is_recalled=False), "all(a)")):
        memory = remembering(answered("x = ", "\n", known, single_line=False))
        assert find(memory, "x = c", "\n", single_line=True) == [(rest, 0)]


def test_requested_lines_stay_while_the_user_types_along() -> None:
    given = answered("x = ", "\ny", suggestion("call(a)\nif a:\n    b"), single_line=False, complete=True)
    memory = remembering(given)
    assert find(memory, "x = ca", "\ny", single_line=True) == [("ll(a)\nif a:\n    b", 0)]  # within a word
    assert find(memory, "x = call(", ")\ny", single_line=True) == [("a)\nif a:\n    b", 1)]  # the editor has closed it
    assert find(memory, "x = call(", ") + 1\ny", single_line=True) is None


def test_documents_and_languages_have_separate_answers() -> None:
    memory = remembering(answered("x = ", "\n", suggestion("a")))
    assert find(memory, "x = ", "\n", key=("file:///b.py", "python")) is None
    assert find(memory, "x = ", "\n", key=("file:///a.py", "json")) is None
    memory.forget("file:///b.py")
    assert find(memory, "x = ", "\n") == [("a", 0)]
    memory.forget("file:///a.py")
    assert find(memory, "x = ", "\n") is None


def test_the_least_recently_used_answer_is_dropped() -> None:
    answers = [answered(f"x{number} = ", "\n", suggestion("a")) for number in range(4)]
    memory = remembering(*answers[:3], capacity=3)
    assert find(memory, "x0 = ", "\n")
    memory.add(answers[3])
    assert [find(memory, f"x{number} = ", "\n") is None for number in range(4)] == [False, True, False, False]
    memory.clear()
    assert find(memory, "x0 = ", "\n") is None


def test_a_rest_keeps_its_identity_and_origin() -> None:
    answer = answered("x = ", "\n", suggestion("call", identity="17")).as_prefetched()
    rest = moved(answer, "x = c", "\n", True)
    assert rest is not None
    assert rest.prefetched
    assert rest.suggestions[0].identity == "17"
    assert (rest.left, rest.right) == ("x = c", "\n")


def test_the_document_after_acceptance() -> None:
    assert suggestion("a)", covered=1).document(Split("f(", ")\n")) == ("f(a)", "\n")


def test_an_automatic_empty_answer_does_not_serve_an_explicit_request() -> None:
    memory = remembering(answered("# a", "\n"))
    assert find(memory, "# a", "\n") == []
    assert find(memory, "# a", "\n", asked=True) is None
    memory.add(answered("# b", "\n", complete=True))
    assert find(memory, "# b", "\n", asked=True) == []


def test_answers_that_extend_a_word_do_not_follow_a_list_entry() -> None:
    memory = remembering(
        answered("x.stock", "\n", suggestion("er_of(a)")), answered("x.stock", "\n", suggestion("(a)"))
    )
    assert find(memory, "x.stock", "\n") == [("(a)", 0)]
    assert find(memory, "x.stock", "\n", word_ends=True) is None
    memory.add(answered("x.stock", "\n", suggestion(".of(b)"), word_ends=True))
    assert find(memory, "x.stock", "\n", word_ends=True) == [(".of(b)", 0)]
    assert find(memory, "x.stock", "\n") == [("(a)", 0)]
    assert find(memory, "x.stock.o", "\n") == [("f(b)", 0)]  # what was typed since is no part of that word
    memory = remembering(answered("x.", "\n", suggestion("stock(a)")), answered("x.st", "\n", suggestion("ocked(a)")))
    assert find(memory, "x.stock", "\n") == [("ed(a)", 0)]
    assert find(memory, "x.stock", "\n", word_ends=True) == [("(a)", 0)]


def test_recalled_suggestions_alone_do_not_serve_an_explicit_request() -> None:
    recalled = changed(suggestion("call(a)", identity="2"), is_recalled=True)
    memory = remembering(answered("x = ", "\n", recalled))
    assert find(memory, "x = ", "\n") == [("call(a)", 0)]
    assert find(memory, "x = ", "\n", asked=True) is None
    assert find(memory, "x = c", "\n", asked=True) is None
    memory.add(answered("x = ", "\n", recalled, suggestion("cost")))
    assert find(memory, "x = c", "\n") == [("all(a)", 0)]
    assert find(memory, "x = ", "\n", asked=True) == [("cost", 0)]
    assert find(memory, "x = c", "\n", asked=True) == [("ost", 0)]
    assert find(memory, "x = ca", "\n", asked=True) is None
    memory.add(answered("x = ", "\n", recalled, complete=True))  # an explicit request that no model answered
    assert find(memory, "x = ", "\n", asked=True) == [("call(a)", 0)]
