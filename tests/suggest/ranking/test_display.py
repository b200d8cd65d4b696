"""Displayed part of a suggestion: cuts, confidence, and both while the user types along."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

import pytest

from fim_server.decoding.ending.trimming.indentation import step_of
from fim_server.decoding.results import Completion, StopReason, Written
from fim_server.language import Language
from fim_server.server.requests.known_answers import look_up
from fim_server.suggest.answer_cache import AnswerCache, rest_of
from fim_server.suggest.constants import RANKING
from fim_server.suggest.postprocess.blocks import is_header, owes_block, with_empty_block, without_unsure_block
from fim_server.suggest.postprocess.ends import boundaries, continued_cuts, ends_of, without_lines_below
from fim_server.suggest.ranking.confidence import confidence, first_confidence
from fim_server.suggest.ranking.display import asked_for, display, shown, worth
from fim_server.suggest.ranking.reasons import Reason
from fim_server.suggest.ranking.red_flags import DEFINED_AGAIN, NO_FLAG, REPEATED_LINE, RedFlag
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.suggest.suggestion import Suggestion, likelihood, tokens_after
from fim_server.text.document import Split
from support.editors.answers import changed
from support.editors.answers import suggestion as made

ENDED = Completion("", "exact", StopReason.END_TOKEN, None)


def written(*tokens: tuple[str, float]) -> tuple[Written, ...]:
    ends = accumulate(len(text) for text, _ in tokens)
    return tuple(Written(end, share) for end, (_, share) in zip(ends, tokens, strict=True))


def suggestion(*tokens: tuple[str, float], left: str = "x = ", right: str = "\n", covered: int = 0) -> Suggestion:
    """Return a suggestion of tokens with probabilities."""
    text = "".join(text for text, _ in tokens)
    session = Language.load("python").open(left, right[covered:])
    ends = ends_of(text, session)
    found = made(text, covered, cuts=ends.cuts, lexemes=ends.lexemes, tokens=written(*tokens))
    return changed(found, continued=tuple(end for end in ends.cuts if text[end : end + 1] in ("(", ".")))


def text_of(found: Suggestion | None) -> str | None:
    return None if found is None else found.text


def test_cuts_are_behind_whole_words() -> None:
    assert [("ab.c_1 + 22, d"[:end]) for end in boundaries("ab.c_1 + 22, d")] == [
        "ab",
        "ab.",
        "ab.c_1",
        "ab.c_1 +",
        "ab.c_1 + 22",
        "ab.c_1 + 22,",
    ]


def test_a_lone_comma_before_a_bracket_is_not_shown() -> None:
    spelling = Language.load("python").open("", "").spelling
    for right, wanted in ((")\n", "ab.c"), (" }'\n", "ab.c"), ("\n)\n", "ab.c,"), ("", "ab.c,")):
        found = suggestion(("ab.c", 0.9), (",", 0.9), left="f(", right=")")
        ends = continued_cuts(found.ends.cuts, found.text, right, spelling)
        assert text_of(shown(changed(found, continued=ends), "", 0.45)) == wanted
    more = suggestion(("a", 0.9), (",", 0.9), (" b", 0.9), left="f(", right=")")
    assert continued_cuts(more.ends.cuts, more.text, ")", spelling) == (2,)
    assert text_of(shown(changed(more, continued=(2,)), "", 0.45)) == "a, b"


def test_the_signs_that_end_a_line_are_shown_with_its_last_word() -> None:
    def shown_of(text: str, *ends: int, flag: RedFlag = NO_FLAG) -> str | None:
        tokens = tuple(Written(end, 0.9 if end == ends[0] else 0.4) for end in ends)
        return text_of(shown(changed(suggestion((text, 0.9)), tokens=tokens, cuts=ends, flag=flag), "", 0.45))

    assert shown_of("total", 5) == "total"
    assert shown_of("total;", 5, 6) == "total;"
    assert shown_of("total);\nnext", 5, 7, 12) == "total);", "of the first line alone"
    assert shown_of("total + rest;", 5, 12, 13) == "total", "a word stands before its end"
    assert shown_of("total;", 5, 6, flag=RedFlag(6, REPEATED_LINE, reason=Reason.UNDEFINED_NAME)) == "total"


def test_a_longer_text_is_shown_if_it_is_nearly_as_sure() -> None:
    def shown_of(probability: float, *further: tuple[str, float]) -> str | None:
        return text_of(shown(suggestion(("some_name", 0.95), (" + another", probability), *further), "", 0.45))

    assert shown_of(0.9, (" + a_third", 0.1)) == "some_name + another"
    assert shown_of(0.5, (" + a_third", 0.1)) == "some_name"
    assert shown_of(0.5) == "some_name + another", "the end of the line counts"


def test_repeats_are_hidden_until_requested() -> None:
    sure = suggestion(("import", 0.99), (" os", 0.99), left="", right="\nimport os\n")
    assert text_of(shown(sure, "", 0.45)) == "import os"
    for again in (
        changed(sure, flag=RedFlag(9, DEFINED_AGAIN)),
        changed(sure, flag=RedFlag(9, 0.001), is_calibrated=True),
    ):
        assert first_confidence(again) > 0.9
        assert shown(again, "", 0.45) is None
        assert worth(again, "", 0.45) < 0
        assert text_of(asked_for(again, "", 0.45)) == "import os"
    block = changed(
        suggestion(("def", 0.9), (" f():", 0.9), ("\n    pass", 0.9), left=""), owes_block=True, is_header=True
    )
    assert text_of(shown(block, "", 0.45)) == block.text
    assert shown(changed(block, flag=RedFlag(5, DEFINED_AGAIN)), "", 0.45) is None
    beyond = RedFlag(11, DEFINED_AGAIN)  # it begins behind the text
    assert text_of(shown(changed(sure, flag=beyond), "", 0.45)) == "import os"


def test_no_cut_repeats_the_line_below() -> None:
    split = Split("", "\nfrom typing import Any\n")
    text = "from typing import Any, Callable"
    ends = ends_of(text, Language.load("python").open(split.left, split.right))
    assert len("from typing import Any") in ends.cuts
    kept = without_lines_below(ends, text, split)
    assert len("from typing import Any") not in kept.cuts
    assert kept.cuts[-1] == len(text)


def test_no_cut_extends_the_word_right_of_the_cursor() -> None:
    session = Language.load("python").open("a.", "b(c)\n")
    assert [("d.e."[:end]) for end in ends_of("d.e.", session, right="b(c)\n").cuts] == ["d.", "d.e."]
    assert ends_of("d.e.", session).cuts == (1, 2, 3, 4)


def test_a_text_that_was_right_so_far_is_likelier() -> None:
    found = suggestion(("a", 0.99), (" +", 0.6), (" b", 0.9))
    rest = found.after(1, 0)
    fresh = changed(rest, shift=0.0)

    def odds(one: Suggestion) -> float:
        return math.log(first_confidence(one) / (1 - first_confidence(one)))

    assert odds(rest) == pytest.approx(odds(fresh) + RANKING.typed_shift)
    assert rest.after(1, 0).likelihoods.shift == RANKING.typed_shift  # once, however much is typed
    assert found.after(0, 0).likelihoods.shift == 0
    assert confidence(rest, 4) == confidence(fresh, 4)
    assert first_confidence(changed(rest, is_calibrated=True)) == pytest.approx(0.6)


def test_typing_along_keeps_the_red_flag() -> None:
    flag = RedFlag(1, REPEATED_LINE, 7)
    assert flag.after(0) == flag
    assert flag.after(3) == RedFlag(1, REPEATED_LINE, 4)
    assert flag.after(7) == flag.after(9) == NO_FLAG
    assert RedFlag(5, REPEATED_LINE).after(2) == RedFlag(3, REPEATED_LINE, 3)
    assert NO_FLAG.after(2) == NO_FLAG
    sure = changed(suggestion(("self", 0.99), (".rate", 0.99), left="x = "), flag=RedFlag(1, REPEATED_LINE, 9))
    rest = rest_of(sure, "", "s", "")
    assert rest is not None
    assert (rest.text, rest.flag) == ("elf.rate", RedFlag(1, REPEATED_LINE, 8))
    assert shown(rest, "", 0.45) is None


def test_a_repeated_line_is_shown_up_to_the_repeat() -> None:
    several = suggestion(("a", 0.99), (".b", 0.99), (".c", 0.99), left="")
    assert text_of(shown(several, "", 0.45)) == "a.b.c"
    assert text_of(shown(changed(several, flag=RedFlag(5, REPEATED_LINE)), "", 0.45)) == "a.b"
    one = suggestion(("import", 0.99), (" os", 0.99), left="")
    assert text_of(shown(changed(one, flag=RedFlag(9, REPEATED_LINE)), "", 0.45)) == "import os"


def test_text_with_an_undefined_name_is_hidden() -> None:
    several = suggestion(("a", 0.99), (".b", 0.99), (" + c", 0.99), (" + d", 0.99), left="x = ")
    assert (
        text_of(shown(changed(several, flag=RedFlag(7, REPEATED_LINE, reason=Reason.UNDEFINED_NAME)), "", 0.45))
        == "a.b"
    )
    one = suggestion(("import", 0.99), (" os", 0.99))
    assert shown(changed(one, flag=RedFlag(9, REPEATED_LINE, reason=Reason.UNDEFINED_NAME)), "", 0.45) is None


def test_cuts_are_where_the_program_is_complete() -> None:
    session = Language.load("python").open("x = ", "\n")
    text = "first(a, b).c\ny = 2"
    assert [text[:end] for end in ends_of(text, session).cuts] == [
        "first",
        "first(a, b)",
        "first(a, b).c",
        "first(a, b).c\ny",
        text,
    ]
    for end in ends_of(text, session).cuts:
        assert session.check(text[:end]).complete


def test_no_cut_is_behind_text_that_does_not_fit() -> None:
    session = Language.load("python").open("x = ", "\n")
    text = "first(a, b): c"
    assert [text[:end] for end in ends_of(text, session).cuts] == ["first", "first(a, b)"]
    assert ends_of(") + 1", session).cuts == ()


def test_no_cut_is_in_a_comment_that_absorbs_the_rest_of_the_line() -> None:
    session = Language.load("python").open("x = ", " + 1\n")
    text = "first + second  # a comment"
    assert [text[:end] for end in ends_of(text, session, no_comments=True).cuts] == [
        "first",
        "first +",
        "first + second",
    ]
    assert ends_of(text, session).cuts[-1] == len(text)


def test_strings_have_no_cuts() -> None:
    session = Language.load("python").open("x = 'some ", "'\n")
    assert [("words here"[:end]) for end in ends_of("words here", session).cuts] == ["words here"]
    assert [("words', 1, 'b"[:end]) for end in ends_of("words', 1, 'b", session).cuts] == ["words', 1, 'b"]


def test_without_a_guarantee_every_boundary_is_a_cut() -> None:
    session = Language.load("python").open("x = )(", "\n")
    assert session.guarantee == "none"
    assert ends_of("a(b", session).cuts == (1, 2, 3)


def test_the_likelihood_of_a_text_is_that_of_its_tokens() -> None:
    tokens = written(("fir", 0.5), ("st(", 0.8), ("a)", 0.1))
    assert likelihood(tokens, 3) == 0.5
    assert likelihood(tokens, 5) == pytest.approx(0.4)
    assert likelihood(tokens, 8) == pytest.approx(0.04)


def test_typed_tokens_are_certain() -> None:
    tokens = written(("abcd", 0.0625), ("ef", 0.5))
    assert tokens_after(tokens, 4) == (Written(2, 0.5),)
    assert tokens_after(tokens, 3) == (Written(1, 0.5), Written(3, 0.5))  # the fourth root: a fourth of it is left
    assert tokens_after(tokens, 6) == ()


def test_a_character_of_several_tokens_can_be_typed() -> None:
    tokens = (Written(3, 0.9), Written(3, 0.9), Written(4, 0.5))
    assert [token.end for token in tokens_after(tokens, 1)] == [2, 2, 3]
    assert tokens_after(tokens, 3) == (Written(1, 0.5),)


def test_without_a_threshold_the_likeliest_text_comes_first() -> None:
    short, long = suggestion(("call", 0.95), ("(a)", 0.99)), suggestion(("other_and_longer", 0.01), ("(a, b)", 0.5))
    assert worth(short, "", 0.0) > worth(long, "", 0.0)


def test_a_likely_text_is_shown_whole_and_an_unlikely_one_is_hidden() -> None:
    assert text_of(shown(suggestion(("call", 0.99), ("(a)", 0.98)), "", 0.5)) == "call(a)"
    assert shown(suggestion(("call", 0.05), ("(a)", 0.98)), "", 0.5) is None


def test_the_shown_part_ends_before_unlikely_tokens() -> None:
    unsure = suggestion(("call", 0.99), ("(a)", 0.98), (".other", 0.02))
    assert text_of(shown(unsure, "", 0.5)) == "call(a)"
    assert text_of(shown(suggestion(("call", 0.99), ("(", 0.98), ("a", 0.02), (")", 0.98)), "", 0.5)) == "call"


def test_a_suggestion_with_a_likely_first_lexeme_is_shown() -> None:
    unsure = suggestion(("first", 0.95), ("(a", 0.1), (", b", 0.5), (")", 0.9))
    assert text_of(shown(unsure, "", 0.6)) == "first"  # a likely word is worth more than an unlikely call
    likelier = suggestion(("first", 0.95), ("(a", 0.4), (", b", 0.5), (")", 0.9))
    assert text_of(shown(likelier, "", 0.6)) == "first(a, b)"  # a function and its call are different texts
    needed = suggestion(("ready", 0.95), (" and", 0.4), (" b", 0.5), (":", 0.9), left="if ", right="\n    pass\n")
    assert text_of(shown(needed, "", 0.6)) == "ready and b:"  # the line needs its colon
    assert shown(suggestion(("ready", 0.4), (":", 0.99), left="if ", right="\n    pass\n"), "", 0.6) is None
    hopeless = suggestion(("ready", 0.95), (" and", 0.05), (" b", 0.1), (":", 0.9), left="if ", right="\n    pass\n")
    assert shown(hopeless, "", 0.6) is None


def test_a_new_word_needs_to_be_likelier() -> None:
    unsure, sure = suggestion(("call", 0.45), ("(a)", 0.98)), suggestion(("call", 0.7), ("(a)", 0.98))
    assert text_of(shown(unsure, "", 0.45)) == "call(a)"
    assert shown(changed(unsure, new_words=(4,)), "", 0.45) is None
    assert text_of(shown(changed(unsure, new_words=(6,)), "", 0.45)) == "call(a)"  # only the first lexeme counts
    assert text_of(shown(changed(sure, new_words=(4,)), "", 0.45)) == "call(a)"
    assert changed(sure, new_words=(4, 6)).likelihoods.after(2).new_words == (2, 4)


def test_a_header_is_shown_with_the_first_line_of_its_block() -> None:
    tokens = ("item", 0.9), (" in items:", 0.2), ("\n    print", 0.2), ("(item)", 0.3), ("\n    x", 0.9)
    begun = suggestion(*tokens, left="for ", right="\nx = 1\n")
    assert shown(begun, "", 0.6) is None
    begun = changed(begun, owes_block=True)
    assert text_of(shown(begun, "", 0.6)) == "item in items:\n    print(item)"
    assert shown(changed(begun, tokens=written(("item", 0.2), *tokens[1:])), "", 0.6) is None


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("for |\nx = 1\n", True),
        ("    if |\n\n    x = 1\n", True),
        ("class A(|)\n", True),  # the editor's bracket
        ("async |\n", True),
        ("if x:|\n", True),
        ("for |\n    x = 1\n", False),  # the block is there
        ("for|\nx = 1\n", False),  # perhaps another word
        ("x = 1 if |\n", False),
        ("for | in x:\n    pass\n", False),
        ("return |\n", False),
        ("|\n", False),
    ],
)
def test_which_lines_need_a_block(marked: str, expected: bool) -> None:
    left, right = marked.split("|")
    assert owes_block(Split(left, right), "python") is expected
    assert not owes_block(Split(left, right), "json")


def test_headers_have_a_lower_threshold() -> None:
    header = suggestion(("self", 0.9), (".a", 0.05), (" or b:", 0.1), (" f()", 0.9), left="if ", right="\n    c\n")
    assert [header.text[:end] for end in header.ends.cuts] == ["self.a or b:"]
    assert shown(header, "", 0.5) is None
    assert text_of(shown(changed(header, is_header=True), "", 0.5)) == "self.a or b:"
    assert shown(changed(header, is_header=True, tokens=written(("self", 0.1), (".a or b:", 0.9))), "", 0.5) is None


@pytest.mark.parametrize(
    ("marked", "expected"), [("if |\n    x = 1\n", True), ("x = |\n", False), ("if x|y:\n", False)]
)
def test_which_lines_are_headers(marked: str, expected: bool) -> None:
    left, right = marked.split("|")
    assert is_header(Split(left, right), "python") is expected
    assert not is_header(Split(left, right), "json")


def begun(*tokens: tuple[str, float]) -> Completion:
    """Return a line with its block that became unlikely and was complete nowhere."""
    text = "".join(text for text, _ in tokens)
    return replace(ENDED, text=None, stop_reason=StopReason.UNLIKELY, begun=text, written=written(*tokens))


@pytest.mark.parametrize(
    ("left", "tokens", "expected"),
    [
        ("    for ", [("x in y:", 0.5), ("\n", 0.9), ("        ", 0.9)], "x in y:\n        pass"),
        ("class A(", [("B):", 0.5)], "B):\n    pass"),
        ("class A(", [("B)", 0.5)], None),  # no header above a block
        ("for ", [("x in y", 0.5)], None),
    ],
)
def test_a_likely_header_with_an_unlikely_block_gets_an_empty_one(
    left: str, tokens: list[tuple[str, float]], expected: str | None
) -> None:
    around = "if a:\n" if left.startswith(" ") else ""
    split = Split(around + left, "\n\nz = 1\n")
    session = Language.load("python").open(split.left, split.right)
    found = with_empty_block(begun(*tokens), session, split)
    assert found.text == expected
    if expected is not None:
        assert session.check(expected).complete
        assert found.written[-1].end == len(expected)
        assert found.written[0].probability == tokens[0][1]
        assert with_empty_block(found, session, split) is found
    other = Language.load("json").open("", "")  # JSON has no blocks
    assert with_empty_block(begun(*tokens), other, split).text is None


@pytest.mark.parametrize(
    ("tokens", "stop_reason", "expected"),
    [
        ([("x in y:", 0.9), ("\n        a", 0.31), (" = 1", 0.99)], StopReason.END_TOKEN, None),  # sure enough
        ([("x in y:", 0.9), ("\n        a", 0.31), (" = 1", 0.9)], StopReason.END_TOKEN, "x in y:\n        pass"),
        ([("x in y:", 0.1), ("\n        a", 0.9), (" = 1", 0.9)], StopReason.END_TOKEN, None),  # the header was not
        ([("x in y:", 0.9), ("\n        a", 0.9)], StopReason.UNLIKELY, "x in y:\n        pass"),  # a line's beginning
        ([("x in y:", 0.9), ("\n        a = 1", 0.9), ("\n        b", 0.01)], StopReason.UNLIKELY, None),
        ([("x in (1, ", 0.9), ("\n        2):", 0.1), ("\n        a = 1", 0.9)], StopReason.END_TOKEN, None),
    ],
)
def test_an_unlikely_first_line_of_a_block_is_left_out(
    tokens: list[tuple[str, float]], stop_reason: StopReason, expected: str | None
) -> None:
    split = Split("if a:\n    for ", "\n\nz = 1\n")
    session = Language.load("python").open(split.left, split.right)
    text = "".join(text for text, _ in tokens)
    completion = replace(ENDED, text=text, stop_reason=stop_reason, written=written(*tokens))
    found = without_unsure_block(completion, session, split)
    assert found.text == (expected or text)
    assert found.stop_reason is stop_reason
    if expected is None:
        assert found is completion
    else:
        assert session.check(expected).complete
        assert found.written[0].probability == tokens[0][1]
        assert found.written[-1].end == len(expected)


@pytest.mark.parametrize(
    ("document", "step"),
    [("", "    "), ("def f():\n  return 1\n", "  "), ("f(a,\n        b)\nif x:\n\ty\n", "\t")],
)
def test_a_block_is_indented_like_other_blocks_of_the_document(document: str, step: str) -> None:
    spelling = Language.load("python").spelling
    assert step_of(Split(document + "for ", "\n"), spelling) == step
    assert step_of(Split("for ", "\n" + document), spelling) == step


def test_a_string_is_one_lexeme() -> None:
    text = "some words' + b"
    session = Language.load("python").open("x = '", "\n")
    assert [text[:end] for end in ends_of(text, session).lexemes] == ["some words'", "some words' +", text]
    unsure = suggestion(("some", 0.99), (" words", 0.2), ("'", 0.9), left="x = '")
    assert first_confidence(unsure) < 0.5 < first_confidence(suggestion(("some", 0.99), ("'", 0.9), left="x = '"))


def test_after_typing_the_next_lexeme_is_the_first() -> None:
    whole = suggestion(("call", 0.95), ("(a)", 0.2))
    rest = rest_of(whole, "\n", "call", "\n")
    assert rest is not None
    assert [rest.text[:end] for end in rest.ends.lexemes] == ["(", "(a", "(a)"]
    assert first_confidence(rest) < 0.5 < first_confidence(whole)


def test_a_shown_suggestion_stays_while_the_user_types_along() -> None:
    memory = AnswerCache()
    request = asked("x = ", "\n")
    whole = suggestion(("call", 0.95), ("(a)", 0.35))
    memory.add(request.answered((whole,)))
    key = request.key

    def at(left: str) -> Suggestion | None:
        found = memory.find(key, left, "\n", True, alternatives=False)
        return None if found is None else shown(found.suggestions[0], "", 0.6)

    assert text_of(at("x = ")) == "call(a)"
    assert text_of(at("x = call")) is None  # the user has not seen it
    memory.saw(whole, "x = ")
    assert text_of(at("x = c")) == "all(a)"
    assert text_of(at("x = call")) == "(a)"
    memory.saw(replace(whole, text="call"), "x = ")
    assert text_of(at("x = call")) is None  # all that was seen is typed


def test_threshold_zero_and_unknown_tokens_show_everything() -> None:
    unsure = suggestion(("call", 0.05), ("(a)", 0.1))
    assert shown(unsure, "", 0.0) is unsure
    unknown = changed(unsure, tokens=())
    assert shown(unknown, "", 0.9) is unknown


def test_several_lines_need_more_confidence_than_one() -> None:
    lines = suggestion(("first", 0.99), ("\nsecond", 0.3))
    assert text_of(shown(lines, "", 0.1)) == "first"
    assert text_of(shown(suggestion(("first", 0.99), ("\nsecond", 0.97)), "", 0.1)) == "first\nsecond"


def test_the_shown_part_contains_the_covered_closers() -> None:
    covering = suggestion(("a", 0.99), (")", 0.9), (" + b", 0.01), left="x = f(", right=")\n", covered=1)
    assert text_of(shown(covering, ")", 0.5)) == "a)"


def test_typing_along_raises_the_confidence() -> None:
    whole = suggestion(("cal", 0.3), ("l", 0.9), ("(a)", 0.9))
    assert shown(whole, "", 0.5) is None
    rest = rest_of(whole, "\n", "cal", "\n")
    assert rest is not None
    assert [rest.text[:end] for end in rest.ends.cuts] == ["l", "l(a)"]
    assert text_of(shown(rest, "", 0.5)) == "l(a)"
    assert confidence(rest, 1) > confidence(whole, 4)


def test_empty_brackets_have_a_lower_threshold() -> None:
    fresh = changed(suggestion(("a", 0.3), (", b", 0.3), left="f(", right=")\n"), is_fresh=True)
    assert text_of(shown(fresh, "", 0.5)) == "a, b"
    assert shown(changed(fresh, is_fresh=False), "", 0.5) is None
    rest = rest_of(fresh, ")\n", "a", ")\n")
    assert rest is not None
    assert shown(rest, "", 0.5) is None


def test_confidence_grows_with_the_probability_and_stays_between_0_and_1() -> None:
    shares = [confidence(suggestion(("a", share)), 1) for share in (0.0, 1e-9, 0.1, 0.5, 0.9, 1.0)]
    assert shares == sorted(shares)
    assert all(0 < share < 1 and math.isfinite(share) for share in shares)


def asked(left: str, right: str, invoked: bool = False) -> Request:
    settings = ServerSettings()
    return Request("file:///a.py", Split(left, right), "python", "/a.py", invoked, single_line=True, settings=settings)


def remembered(request: Request, *suggestions: Suggestion) -> Any:
    """Return a server with a cached answer to a request."""
    memory = AnswerCache()
    memory.add(request.answered(suggestions))
    return SimpleNamespace(answers=memory)


def test_a_hidden_answer_is_requested_again_after_typing() -> None:
    first = asked("x = ", "\n")
    server = remembered(first, suggestion(("call", 0.1), ("(a)", 0.1)))
    there = look_up(server, first)
    assert there is not None  # the same request gets the same answer
    assert display(there, first).suggestions == ()
    assert look_up(server, asked("x = c", "\n")) is None
    assert look_up(server, asked("x = c", "\n", invoked=True)) is None  # the answer has no alternatives
    sure = remembered(first, suggestion(("call", 0.9), ("(a)", 0.9)))
    found = look_up(sure, asked("x = c", "\n"))
    assert found is not None
    assert [one.text for one in display(found, asked("x = c", "\n")).suggestions] == ["all(a)"]


def test_a_requested_suggestion_stays_while_the_user_types_along() -> None:
    first = asked("x = ", "\n", invoked=True)
    server = remembered(first, suggestion(("call", 0.1), ("(a)", 0.9)), suggestion(("catch", 0.1)))
    for left, rest in (("x = c", "all(a)"), ("x = call(", "a)"), ("x = cat", "ch")):
        request = asked(left, "\n")
        found = look_up(server, request)
        assert found is not None
        assert [one.text for one in display(found, request).suggestions] == [rest]


def test_a_requested_suggestion_ends_at_the_most_valuable_cut() -> None:
    first = asked("x = ", "\n", invoked=True)
    unsure = suggestion(("call", 0.6), ("(a)", 0.9), ("\ny = 1\nz = 2", 0.01))
    server = remembered(first, unsure, suggestion(("call", 0.6), ("(a)", 0.9), ("\nz", 0.01)), suggestion(("b", 0.001)))
    found = look_up(server, first)
    assert found is not None
    assert [one.text for one in display(found, first).suggestions] == ["call(a)", "b"]  # the same is shown once
    everything = replace(first, settings=ServerSettings(min_confidence=0.0))
    assert len(display(found, everything).suggestions[0].text) == len(unsure.text)


def test_a_requested_suggestion_keeps_the_text_on_the_screen() -> None:
    text = suggestion(("call", 0.6), ("(a)", 0.001), (" + b", 0.1))
    assert asked_for(text, "", 0.5).text == "call"
    assert asked_for(changed(text, seen=7), "", 0.5).text == "call(a)"
    assert (
        asked_for(suggestion(("a, b", 0.6), (")", 0.01), right=")\n", left="f(", covered=1), ")", 0.5).text == "a, b)"
    )


def test_one_suggestion_is_shown_and_the_others_are_cached() -> None:
    first = asked("x = ", "\n")
    server = remembered(first, suggestion(("call", 0.9), ("(a)", 0.9)), suggestion(("other", 0.9)))
    found = look_up(server, first)
    assert found is not None
    assert len(display(found, first).suggestions) == 1
    other = look_up(server, asked("x = o", "\n"))
    assert other is not None
    assert [one.text for one in other.suggestions] == ["ther"]
