"""Confidence in a proposed edit: a logistic model, with its weights from ``weights.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from math import log2

from fim_server.memory.weights import dot, logistic
from fim_server.next_edit.analogies import Place
from fim_server.next_edit.change import Change
from fim_server.next_edit.edit_memory import Edit, line_end
from fim_server.next_edit.line_tokens import Lines, tokens_of

NAMES = (
    *("bias", "alike", "alike_equal", "alike_same", "alike_words", "alike_beside", "alike_mapped", "alike_left"),
    *("alike_parallel", "alike_right", "alike_times", "alike_name", "found_left", "found_right", "found_both"),
    *("found_name", "renamed", "outside", "times", "name_times", "same_places", "distance", "below", "alike_inserts"),
    *("found_inserts", "deletes", "old_tokens", "new_tokens", "new_lines", "old_lines"),
    *("call", "call_adds", "call_removes", "calls"),
)
"""Names of the features, in their order."""

Likeness = tuple[object, ...]


class Around:
    """Surroundings of an edit.

    Attributes:
        times: How often the same change was made before.
        done: First and last offset of the lines that the edit wrote.
    """

    def __init__(self, edit: Edit, change: Change | None, before: Sequence[Change], lines: Lines) -> None:
        """``change``: that of the edit, if it has one; ``before``: the earlier changes."""
        self._lines = lines
        self.times = 0
        if change is not None:
            self.times = sum((one.old, one.new) == (change.old, change.new) for one in before)
        self.done = span_of(edit, edit.line, lines)

    def distance(self, place: Place) -> float:
        """Return the feature of the lines between the edit's end and a place."""
        return log2(1 + abs(self._lines.line_at(place.start) - self._lines.line_at(self.done[1])))


def span_of(edit: Edit, line: int, lines: Lines) -> tuple[int, int]:
    """Return first and last offset of the lines of an edit that begin at a line now.

    The document may have become shorter by a change that was too large to remember.
    """
    start = lines.line_starts[min(line, len(lines.lines) - 1)]
    return start, line_end(lines.text, min(len(lines.text), start + len(edit.new)))


def call_features(place: Place, calls: int, around: Around) -> list[float]:
    """Return the features of a call of a function whose parameters changed; ``calls``: number of such calls."""
    found_by = {
        "call": 1.0,
        "call_adds": place.start == place.end,
        "call_removes": not place.text,
        "calls": log2(1 + calls),
        "distance": around.distance(place),
    }
    return [float(found_by.get(one, 0.0)) for one in NAMES]


def features(
    change: Change, place: Place, alike_places: Mapping[Likeness, int], around: Around, renamed: bool | None
) -> list[float]:
    """Return the features of a place, in the order of :data:`NAMES`.

    ``alike_places``: number of places of each likeness. ``renamed``: whether the place is a use of a name that was
    renamed where it is bound; None if none was.
    """
    alike, found, name = place.is_alike, not place.is_alike, change.names is not None
    times = log2(1 + min(around.times, 4))
    found_by = {
        "bias": 1.0,
        "alike": alike,
        "alike_equal": alike * place.equal,
        "alike_same": alike and place.equal == 1.0,
        "alike_words": alike * min(place.words, 4),
        "alike_beside": alike * place.beside,
        "alike_parallel": alike and place.is_parallel,
        "alike_mapped": alike * min(place.mapped, 4),
        "alike_left": alike * min(place.left, 3),
        "alike_right": alike * min(place.right, 3),
        "alike_times": alike * times,
        "alike_name": alike and name,
        "found_left": found * min(place.left, 3),
        "found_right": found * min(place.right, 3),
        "found_both": found * min(place.left, place.right, 2),
        "found_name": found and name,
        "renamed": renamed is True,
        "outside": renamed is False,
        "times": times,
        "name_times": name * times,
        "same_places": log2(alike_places[likeness(place)]),
        "distance": around.distance(place),
        "below": place.start > around.done[1],
        "alike_inserts": alike and not change.old,
        "found_inserts": found and not change.old,
        "deletes": not change.new,
        "old_tokens": min(len(tokens_of(change.old)), 6),
        "new_tokens": min(len(tokens_of(change.new)), 12),
        "new_lines": "\n" in change.new,
        "old_lines": change.edit.old.count("\n"),
    }
    return [float(found_by.get(one, 0.0)) for one in NAMES]


def likeness(place: Place) -> Likeness:
    """Return the key that places equally similar to the change share."""
    return (place.is_alike, place.equal) if place.is_alike else (place.is_alike, place.left, place.right)


def confidence(features: Sequence[float]) -> float:
    """Return the probability that a change is due at a place, and right as far as it goes."""
    return logistic(dot(fitted_weights(), features))


@cache
def fitted_weights() -> tuple[float, ...]:
    """Return the package's weights (``./dev bench next-edits --fit`` fits them)."""
    file = resources.files("fim_server.next_edit").joinpath("weights.toml")
    table = tomllib.loads(file.read_text(encoding="utf-8"))["weights"]
    return tuple(float(table[name]) for name in NAMES)
