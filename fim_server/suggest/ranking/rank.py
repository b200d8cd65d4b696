"""Choose among several suggestions."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from fim_server.suggest.ranking.display import worth
from fim_server.suggest.ranking.rescore import given_written

if TYPE_CHECKING:
    from fim_server.suggest.sources.project import Recalled
    from fim_server.suggest.suggestion import Suggestion


def others_of(suggestions: Iterable[Suggestion], further: Iterable[Suggestion]) -> list[Suggestion]:
    """Return the further suggestions with other texts, each text once: different lines may fit equally far."""
    known = {suggestion.text for suggestion in suggestions}
    found: dict[str, Suggestion] = {}
    for suggestion in further:
        if suggestion.text not in known:
            found.setdefault(suggestion.text, suggestion)
    return list(found.values())


def best_of(
    recalled: Sequence[Recalled],
    make: Callable[[Recalled], Suggestion | None],
    value: Callable[[Suggestion], float],
    most: int,
) -> tuple[Suggestion, ...]:
    """Return the recalled suggestions with the highest values, the best first.

    Making a suggestion takes most of the time, so only those are made that may be among the best.

    Args:
        recalled: Continuations from the project's memory.
        make: Makes a suggestion, or None if the text does not fit.
        value: The value of a suggestion, at most :attr:`.Recalled.most_worth`.
        most: The number of suggestions.
    """
    found: list[tuple[float, int, Suggestion]] = []
    for place in sorted(range(len(recalled)), key=lambda place: -recalled[place].most_worth):
        if len(found) >= most and recalled[place].most_worth < -found[most - 1][0]:
            break
        suggestion = make(recalled[place])
        if suggestion is not None:
            insort(found, (-value(suggestion), place, suggestion), key=itemgetter(0, 1))
    return tuple(suggestion for _, _, suggestion in found[:most])


def together(
    written: list[Suggestion], recalled: list[Suggestion], closers: str, most: int, is_written: bool = True
) -> list[Suggestion]:
    """Return alternatives for an explicit request: the model's first, then the most valuable, one recalled at least.

    ``is_written``: whether the model wrote the first one to its end; a text that the engine ended is ranked by value.
    """

    def value(one: Suggestion) -> float:
        return worth(one, closers, 0.0)

    if not is_written:
        return sorted(recalled + written, key=value, reverse=True)[:most]
    if not written or most == 1:
        return (written + recalled)[:most]
    ranked = sorted(written[1:] + recalled, key=value, reverse=True)
    kept = ranked[: most - 1]
    if recalled and not any(one in recalled for one in kept):
        kept[-1] = next(one for one in ranked if one in recalled)
    return written[:1] + kept


def ranked_for_display(
    written: list[Suggestion], recalled: list[Suggestion], closers: str, least: float
) -> list[Suggestion]:
    """Return the suggestions of an unrequested answer, the most valuable first. Arguments as of `display.verdict`."""
    rescored = [given_written(one, written) for one in recalled]
    return sorted(written + rescored, key=lambda one: -worth(one, closers, least))
