"""``./dev bench resolve``: what counts as hidden, cut and lost."""

from __future__ import annotations

import pytest

from benchmarks.report import lines
from benchmarks.suggestions.resolving import Report, Trial, row_of
from fim_server.suggest.ranking.findings import Kind


def trial(before: str, after: str | None, rest: str = "value.a + 1", kinds: tuple[str, ...] = ()) -> Trial:
    return Trial(rest, before, after, kinds, 10.0, True, 100.0, 10.0)


@pytest.mark.parametrize(
    ("before", "after", "is_saved", "is_lost"),
    [
        ("other.a", None, True, False),
        ("value.b", "value", True, False),
        ("value.b.c", "value.b", False, False),
        ("value.b", "value.b", False, False),
        ("value.a", None, False, True),
        ("value.a", "value", False, False),
        ("value.a + 1\nnext", None, False, True),
        ("value.a\nnext", None, True, False),
    ],
)
def test_offers_are_saved_or_lost(before: str, after: str | None, is_saved: bool, is_lost: bool) -> None:
    found = trial(before, after)
    assert (found.is_saved, found.is_lost) == (is_saved, is_lost)


def test_a_report_counts_offers_and_kinds() -> None:
    trials = [trial("value.b", None, kinds=(str(Kind.MEMBER),)), trial("other", "other"), trial("value", "value")]
    assert row_of("p", trials)[1:] == (
        *("3", "2", "1 (50.0 %)", "1 (50.0 %)", "1", "0 (0.0 %)"),
        *("10.0 / 10.0", "100 / 110"),
    )
    told = [line.split() for line in lines(Report({"machine": "m"}, "python", {"p": trials}))]
    assert ["unknown", "member", "1", "0"] in told
