"""Shift of the threshold by what one person accepts and dismisses.

A suggestion with confidence p is right with probability p. If a person takes suggestions as often as they are right,
p less the accepted share is 0 on average, and the threshold stays. The shift follows a share of that difference over
the latest decisions; older ones fade. Dismissals of sure suggestions raise the threshold most, acceptances of unsure
ones lower it most.
"""

from __future__ import annotations

from fim_server.suggest.constants import RANKING


def shifted_threshold(least: float, shift: float) -> float:
    """Return a threshold with the shift of its language. One of 0 or 1 was chosen to show all or nothing, and stays."""
    return least + shift if 0 < least < 1 else least


def decided(shift: float, confidence: float, is_accepted: bool) -> float:
    """Return the shift after a decision on an unrequested suggestion. ``confidence``: of its first lexeme."""
    target = RANKING.personal_share * (confidence - is_accepted)
    moved = shift + (target - shift) / RANKING.personal_decisions
    return limited(moved)


def limited(shift: float) -> float:
    """Return a shift within its bounds."""
    return min(max(shift, -RANKING.personal_most), RANKING.personal_most)
