"""Findings of a checker in a suggestion: names, members, calls and assignments that the language refuses.

The text up to the end of the first finding is a red flag: the suggestion ends before it, or is hidden.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from fim_server.suggest.ranking.reasons import Reason
from fim_server.suggest.ranking.red_flags import BEGUN_TARGETS, LOADS_UNKNOWN, RedFlag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.suggest.suggestion import Suggestion


class Kind(StrEnum):
    """Kind of a finding. No other kinds count."""

    NAME = "undefined name"
    MEMBER = "unknown member"
    ARGUMENTS = "wrong arguments"
    ASSIGNMENT = "wrong assignment"


@dataclass(frozen=True, slots=True)
class Finding:
    """Part of a document that a checker refuses.

    Attributes:
        start: Offset of its first character.
        end: Offset behind its last one.
        kind: Its kind.
    """

    start: int
    end: int
    kind: Kind


class Checker(Protocol):
    """Source of findings."""

    async def findings(self, uri: str, text: str, lines: range, deadline: float) -> Sequence[Finding] | None:
        """Return the findings in some lines of a document that no other line has; None if there is no answer in time.

        Args:
            uri: The document.
            text: Its text with the suggestion.
            lines: The lines, from 0.
            deadline: Time of the event loop until which the caller waits.
        """


def with_findings(suggestion: Suggestion, left: str, findings: Sequence[Finding], shown: int) -> Suggestion:
    """Return a suggestion with the red flag of the first finding that its text causes.

    If the finding was to be shown, the suggestion ends before it only at a pause, and not where an expression
    continues: that would rarely be right.

    Args:
        suggestion: The suggestion.
        left: The text before the cursor.
        findings: Findings in the document with the suggestion.
        shown: The length of the part that is shown without them.
    """
    begun = left[left.rfind("\n") + 1 :]
    line, start = begun + suggestion.text.partition("\n")[0], len(left) - len(begun)
    counted = (
        one.end - len(left)
        for one in findings
        if one.end > len(left) and not (one.kind is Kind.NAME and may_bind(line, one.start - start, one.end - start))
    )
    end, flag, ends = min(counted, default=0), suggestion.flag, suggestion.ends
    if not end or (flag.hides and flag.whole <= end):
        return suggestion
    likelihoods = replace(suggestion.likelihoods, flag=RedFlag(end, LOADS_UNKNOWN, reason=Reason.FAILS_CHECK))
    if shown >= end:
        pauses = (" ", "\n", ",", *suggestion.closers)
        paused = {cut for cut in ends.cuts if suggestion.text.startswith(pauses, cut)}.difference(ends.continued)
        ends = replace(ends, cuts=tuple(cut for cut in ends.cuts if cut >= end or cut in paused))
    return replace(suggestion, likelihoods=likelihoods, ends=ends)


def may_bind(line: str, start: int, end: int) -> bool:
    """Return whether a line may bind the name between two columns: the rest of the line may come later.

    >>> may_bind("value", 0, 5), may_bind("a, value", 3, 8), may_bind("value.add()", 0, 5)
    (True, True, False)
    """
    after = line[end:].lstrip()
    return BEGUN_TARGETS.search(line[:start]) is not None and (not after or after.startswith(","))
