"""Ends of texts in languages whose definition does not say where an expression may end."""

from __future__ import annotations

import pytest

from fim_server.language import Language
from fim_server.suggest.postprocess.ends import boundaries, continued_cuts, finished_cuts, without_members_cut_off
from fim_server.suggest.suggestion import Ends


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("$t += $x;", ["$t", "$t += $x", "$t += $x;"]),
        ("i++ - 1", ["i", "i++", "i++ - 1"]),
        ("a & b | c", ["a", "a & b", "a & b | c"]),
        ("p -> q", ["p", "p ->", "p -> q"]),
        ("w: 50% b", ["w", "w:", "w: 50", "w: 50%", "w: 50% b"]),
        ("a % b * c", ["a", "a % b", "a % b * c"]),
        ("f(x).y", ["f", "f(", "f(x", "f(x)", "f(x).y"]),
        ("b --", ["b", "b --"]),
        ("do |x|", ["do", "do |x", "do |x|"]),
        ("npm -", ["npm"]),
        ("=", ["="]),
    ],
)
def test_no_text_ends_behind_a_sign_that_wants_an_operand(text: str, ends: list[str]) -> None:
    cuts = tuple(end for end in (*boundaries(text), len(text)) if text[:end] not in ("$", "i+", "b -"))
    found = finished_cuts(Ends(cuts, ()), text, takes_dots=False)
    assert [text[:end] for end in found.cuts] == ends


def test_a_sentence_ends_with_a_dot() -> None:
    ends = Ends((4, 5), ())
    assert finished_cuts(ends, "Done.", takes_dots=True).cuts == (4, 5)
    assert finished_cuts(ends, "Done.", takes_dots=False).cuts == (4,)


@pytest.mark.parametrize(
    ("text", "following", "ends"),
    [
        (
            "c.Flags().Lookup(n)",
            "",
            ["c.", "c.Flags", "c.Flags(", "c.Flags().", "c.Flags().Lookup", "c.Flags().Lookup(", "c.Flags().Lookup(n"],
        ),
        ("a->b, c::d", "", ["a-", "a->", "a->b", "a->b,", "a->b, c:", "a->b, c::"]),
        ("a?.b + c!.d", "", ["a?.", "a?.b", "a?.b +", "a?.b + c!."]),
        ("Vec::<u8>::new", "", ["Vec:", "Vec::", "Vec::<", "Vec::<u8", "Vec::<u8>:", "Vec::<u8>::"]),
        ("a\n  .b()", "", ["a\n  .", "a\n  .b", "a\n  .b("]),
        ("0..n + 1.5", "", ["0", "0.", "0..", "0..n", "0..n +", "0..n + 1."]),
        ("x, c.Flags", "(", ["x", "x,", "x, c."]),
        ("x, c.Flags", ".F", ["x", "x,", "x, c."]),
    ],
)
def test_no_text_ends_where_a_chain_of_members_goes_on(text: str, following: str, ends: list[str]) -> None:
    whole = without_members_cut_off(Ends((*boundaries(text), len(text)), ()), text + following)
    expected = [*ends, text] if following != ".F" else ends
    assert [text[:end] for end in whole.cuts] == expected


def test_a_chain_that_has_no_other_end_is_cut() -> None:
    assert without_members_cut_off(Ends((1, 3), ()), "c.b.a").cuts == (1, 3)


def test_calls_indexes_and_strings_continue_an_expression_in_every_language() -> None:
    text = 'vec![a(b)[c], (d), f"e'
    cuts = tuple(boundaries(text))
    found = continued_cuts(cuts, text, "", Language.load("c").open("", "").spelling)
    assert [text[:end] for end in found] == ["vec", "vec!", "vec![a", "vec![a(b)", "vec![a(b)[c], (d), f"]
