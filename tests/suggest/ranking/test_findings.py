"""Findings of a checker in suggestions: what is hidden, what is cut, and what does not count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fim_server.decoding.results import Written
from fim_server.suggest.ranking.display import shown, verdict
from fim_server.suggest.ranking.findings import Finding, Kind, with_findings
from fim_server.suggest.ranking.reasons import Reason, Suppression
from fim_server.suggest.suggestion import Ends, Likelihoods, Suggestion
from support.editors.answers import suggestion

LEFT = "def f(self):\n    return "


def offer(text: str, *cuts: int, continued: tuple[int, ...] = (), sure: int | None = None) -> Suggestion:
    """A suggestion that may end at some lengths, and is sure up to one."""
    tokens = (
        Written(len(text) if sure is None else sure, 0.99),
        *(() if sure is None else (Written(len(text), 0.01),)),
    )
    return replace(suggestion(text), ends=Ends(cuts, cuts, continued), likelihoods=Likelihoods(tokens))


def display_of(offered: Suggestion, *findings: tuple[int, int, Kind], left: str = LEFT) -> str | Reason:
    """The displayed text, or the reason for hiding it. Offsets of findings count from the cursor."""
    placed = [Finding(len(left) + start, len(left) + end, kind) for start, end, kind in findings]
    part = shown(offered, "", 0.45)
    assert part is not None
    found = verdict(with_findings(offered, left, placed, len(part.text)), "", 0.45)
    return found.reason if isinstance(found, Suppression) else found.text


def test_a_suggestion_ends_before_a_finding() -> None:
    offered = offer("self.a, missing", 6, 15)
    assert display_of(offered) == "self.a, missing"
    assert display_of(offered, (8, 15, Kind.NAME)) == "self.a"


def test_without_an_end_before_the_finding_it_is_hidden() -> None:
    assert display_of(offer("missing + 1", 7, 11), (0, 7, Kind.NAME)) == Reason.FAILS_CHECK


def test_it_does_not_end_inside_of_the_wrong_expression() -> None:
    assert display_of(offer("find(b)", 4, 7, continued=(4,)), (0, 7, Kind.ARGUMENTS)) == Reason.FAILS_CHECK
    assert display_of(offer("a + find(b)", 1, 8, 11, continued=(8,)), (4, 11, Kind.ARGUMENTS)) == "a"
    assert display_of(offer("a := b", 3, 6), (5, 6, Kind.NAME)) == Reason.FAILS_CHECK


def test_a_finding_after_the_displayed_part_changes_nothing() -> None:
    offered = offer("self.find(missing)", 9, 18, continued=(9,), sure=9)
    assert display_of(offered) == display_of(offered, (10, 17, Kind.NAME)) == "self.find"


def test_the_text_of_the_user_does_not_count() -> None:
    assert display_of(offer("self.a", 6), (-7, 0, Kind.NAME)) == "self.a"


@pytest.mark.parametrize(("kind", "counts"), [(Kind.NAME, False), (Kind.MEMBER, True)])
def test_a_lone_name_may_be_bound(kind: Kind, counts: bool) -> None:
    found = display_of(offer("value", 5), (0, 5, kind), left="def f():\n    ")
    assert found == (Reason.FAILS_CHECK if counts else "value")


def test_the_finding_moves_with_what_is_typed() -> None:
    flagged = with_findings(offer("self.missing", 12), LEFT, [Finding(len(LEFT), len(LEFT) + 12, Kind.MEMBER)], 12)
    assert flagged.after(5, 0).flag.end == 7
