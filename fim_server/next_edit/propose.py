"""Choice of the next edit: places of the latest change and uses of renamed names, with their confidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fim_server.next_edit.analogies import Place, places
from fim_server.next_edit.calls import call_edits, changed_header
from fim_server.next_edit.change import Change, change_of
from fim_server.next_edit.confidence import NAMES, Around, call_features, confidence, features, likeness, span_of
from fim_server.next_edit.edit_memory import Edit
from fim_server.next_edit.line_tokens import Lines, lines_of
from fim_server.next_edit.renames import FindUses, line_of, rename_of, uses

LONGEST_DOCUMENT = 300_000
"""Longest document that is looked at, in characters."""


LATEST_HEADERS = 8
"""Latest edits among which a function's header is looked for."""

LEAST_OF_USES = 0.6
"""Least confidence of a use of a renamed name. Of 24 first uses in the releases that the weights
were fitted to, 19 changed."""

RENAMED = NAMES.index("renamed")


@dataclass(frozen=True, slots=True)
class Proposal:
    """Proposed edit.

    Attributes:
        start: Offset of the replaced text.
        end: Its end.
        text: The new text.
        confidence: Probability that the edit is right as far as it goes.
        is_use: Whether it is a use of a name that was renamed where it is bound.
        needs_whole: Whether it counts only in a document that parses as a whole.
    """

    start: int
    end: int
    text: str
    confidence: float
    is_use: bool = False
    needs_whole: bool = False


def proposals(edits: Sequence[Edit], uri: str, text: str, find: FindUses | None = None) -> list[Proposal]:
    """Return the edits that may follow the latest edit of a document, the best first.

    Args:
        edits: The latest edits, the latest last; the last one of the document stands in ``text``.
        uri: The document.
        text: Its text.
        find: Knows the uses of names in the document's language, if anything does.
    """
    found = [
        Proposal(*place.span, place.text, confidence(features), features[RENAMED] > 0)
        for place, features in rated(edits, uri, text, find)
    ]
    # The uses of a renamed name are one decision. They come before the same name elsewhere.
    surest = max((one.confidence for one in found if one.is_use), default=0.0)
    found = [replace(one, confidence=max(surest, LEAST_OF_USES)) if one.is_use else one for one in found]
    return in_order(found)


def in_order(found: Sequence[Proposal]) -> list[Proposal]:
    """Return proposals, the best first."""
    return sorted(found, key=lambda one: (not one.is_use, -round(one.confidence, 1)))


def rated(edits: Sequence[Edit], uri: str, text: str, find: FindUses | None = None) -> list[tuple[Place, list[float]]]:
    """Return the places where an edit may follow, with the features of their confidence.

    Places below the edit come first, then those above it, each in their order. Arguments as of :func:`proposals`.
    """
    mine = standing([edit for edit in edits if edit.uri == uri])
    if not mine or len(text) > LONGEST_DOCUMENT:
        return []
    lines = lines_of(text)
    changes = [change for edit in mine if (change := change_of(edit)) is not None]
    others = [change for edit in edits if edit.uri != uri and (change := change_of(edit)) is not None]
    latest = changes[-1] if changes and changes[-1].edit == mine[-1] else None
    around = Around(mine[-1], latest, [*others, *(changes if latest is None else changes[:-1])], lines)
    calls = called(mine, lines, around)
    found = [(call, call_features(call, len(calls), around)) for call in calls]
    if latest is not None:
        known = {call.span for call in calls}
        found += [(place, of) for place, of in carried(latest, changes, lines, around, find) if place.span not in known]
    return sorted(found, key=lambda pair: (pair[0].start < around.done[1], pair[0].start))


def standing(edits: Sequence[Edit]) -> list[Edit]:
    """Return the edits of a document without those that were undone; none if the latest one undoes another."""
    found: list[Edit] = []
    is_undo = False
    for edit in edits:
        last = found[-1] if found else None
        is_undo = last is not None and (edit.line, edit.old, edit.new) == (last.line, last.new, last.old)
        if is_undo:
            found.pop()
        else:
            found.append(edit)
    return [] if is_undo else found


def called(edits: Sequence[Edit], lines: Lines, around: Around) -> list[Place]:
    """Return the calls of the function whose header was edited last."""
    for edit in edits[: -LATEST_HEADERS - 1 : -1]:
        line = edit.line if edit is edits[-1] else line_of(edit, lines)
        changed = None if line is None else changed_header(edit, lines.text, span_of(edit, line, lines))
        if changed is not None:
            made = (
                Place(one.start, one.end, one.text, False, 0, 0, is_call=True) for one in call_edits(changed, lines)
            )
            return [place for place in made if not around.done[0] <= place.start <= around.done[1]]
    return []


def carried(
    latest: Change, changes: Sequence[Change], lines: Lines, around: Around, find: FindUses | None
) -> list[tuple[Place, list[float]]]:
    """Return the places of the latest change with their features; ``changes``: all those of the document."""
    if "\n" in latest.new and not latest.old.strip() and not around.times:
        return []  # new lines rarely come again elsewhere, unless they just did
    found = places(latest, lines, around.done)
    rename = rename_of(changes, lines)
    if rename is None:
        alike = Counter(map(likeness, found))
        return [(place, features(latest, place, alike, around, None)) for place in found]
    renamed = uses(rename, lines, find)
    if renamed.is_all:
        found = [place for place in found if place.span in renamed.spans]
    found = [place for place in found if not any(place.start in block for block in renamed.apart)]
    known = {place.span for place in found}
    found += [
        Place(start, end, rename.new, False, 0, 0)
        for start, end in renamed.spans
        if (start, end) not in known and not around.done[0] <= start <= around.done[1]
    ]
    alike = Counter(map(likeness, found))
    return [(place, features(latest, place, alike, around, place.span in renamed.spans)) for place in found]
