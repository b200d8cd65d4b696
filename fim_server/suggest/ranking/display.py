"""Decide whether a suggestion is shown, how much of it, and why not.

:func:`silent` decides for a language, :func:`quiet` for a place, :func:`refusal_of_text` for a text, :func:`verdict`
for a suggestion, and :func:`display` for an answer.

A suggestion is kept whole. The displayed part ends at one of its cuts. The user can accept the first word alone, so a
suggestion is shown if its first lexeme is confident enough. It is shown up to the cut with the highest value:
characters times the probability that they are right.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.suggest.constants import RANKING
from fim_server.suggest.context.cursor import contains_in_order
from fim_server.suggest.ranking.confidence import confidence, first_confidence, first_lexeme
from fim_server.suggest.ranking.reasons import Reason, Suppression
from fim_server.text.hidden import hidden_in, known_at
from fim_server.text.regions import ENDS_CODE

if TYPE_CHECKING:
    from collections.abc import Collection

    from fim_server.suggest.answer_cache import Answer
    from fim_server.suggest.context.cursor import Place
    from fim_server.suggest.request import Request
    from fim_server.suggest.settings import ServerSettings
    from fim_server.suggest.suggestion import Suggestion
    from fim_server.text.document import Split
    from fim_server.text.notebook import CellContexts


LAST_SIGNS = re.compile(r"[ \t]*[;:,)\]}>]+[ \t;:,)\]}>]*")
"""Signs that may follow the last word of a line."""

NOT_SURE = "the model is not sure enough (setting minConfidence)"
NO_NAME = "it would load an undefined name"
DISMISSED = Suppression(Reason.DISMISSED, "it was dismissed here; it may come again once the line changes")
CHANGES_COMMANDS = Suppression(Reason.CHANGES_COMMANDS, "it would change which lines of the cell are commands")
ENDS_REGION = Suppression(Reason.ENDS_REGION, ENDS_CODE)


def silent(
    language: str, invoked: bool, settings: ServerSettings, learnt: Collection[str] | None = None, file: str = ""
) -> Suppression | None:
    """Return the reason for which a language gets no suggestions, or None.

    Args:
        language: The language.
        invoked: Whether the request is explicit.
        settings: The settings.
        learnt: The languages that the model knows; None for all.
        file: Path of the file below the workspace's folder.
    """
    match settings.trigger_of(language, learnt, file):
        case "off":
            named = "this file" if settings.trigger_by_file(file) else language
            message = f"switched off for {named}" if settings.enabled else "switched off"
            return Suppression(Reason.SWITCHED_OFF, message)
        case "manual" if not invoked:
            message = "only when asked (setting trigger)"
            if settings.trigger_of(language, None, file) != "manual":
                message = f"only when asked: the model does not know {language} (setting languages)"
            return Suppression(Reason.ONLY_ON_REQUEST, message)
        case _:
            return None


def quiet(place: Place, inside: str | None, invoked: bool, settings: ServerSettings) -> Suppression | None:
    """Return the reason for which a place gets no suggestions, or None.

    ``inside``: `comment`, `string` or None, the kind of text around the cursor.
    """
    if invoked:
        return None
    if inside == "comment" and not settings.inside_comments:
        return Suppression(Reason.IN_COMMENT, "inside a comment (setting insideComments)")
    if inside == "string" and not settings.inside_strings:
        return Suppression(Reason.IN_STRING, "inside a string (setting insideStrings)")
    return Suppression(Reason.IN_WORD, "inside a word") if place.is_inside_a_word else None


def refusal_of_text(text: str, split: Split, covered: int) -> Suppression | None:
    """Return the reason for which a finished text is no suggestion, or None.

    ``covered``: characters right of the cursor that the text replaces.
    """
    if not text.strip():
        return Suppression(Reason.NO_TEXT, "the model inserts nothing here")
    if hidden_in(text, known_at(split.left, split.right)) is not None:
        return Suppression(Reason.HIDDEN_CHARACTER, "it has a hidden character")
    return missing_closer(text, split, covered)


def missing_closer(text: str, split: Split, covered: int) -> Suppression | None:
    """Return the refusal of a text without the closers that it replaces: an editor could not show it."""
    closers = split.right[:covered]
    if contains_in_order(text, closers):
        return None
    return Suppression(Reason.MISSING_CLOSER, f"it lacks the {closers} right of the cursor")


def least_first(least: float, is_fresh: bool, is_seen: bool = False) -> float:
    """Return the threshold for the first lexeme of an unrequested suggestion, which is ``least`` elsewhere."""
    return least * (RANKING.fresh_share if is_fresh else 1) * (RANKING.seen_share if is_seen else 1)


def value(suggestion: Suggestion, end: int) -> float:
    """Return the value of a suggestion up to a cut: its characters and its line's end, times a power of the confidence.

    The power is above 1, because a reader loses more by a wrong end than by a missing one.
    """
    sure = math.pow(confidence(suggestion, end), RANKING.confidence_power)
    characters = len(suggestion.text[:end].strip())
    if end in suggestion.ends.continued:
        return sure * characters * RANKING.continued_share
    return sure * (characters + RANKING.line_end_characters * (end >= first_line(suggestion)))


def first_line(suggestion: Suggestion) -> int:
    """Return the length of a suggestion's first line."""
    return len(suggestion.text.partition("\n")[0])


def before_signs(suggestion: Suggestion, end: int) -> int:
    """Return the last cut on the first line if only closers and ends of a statement stand before it, else ``end``."""
    last = max((cut for cut in suggestion.ends.cuts if cut <= first_line(suggestion)), default=end)
    if last in suggestion.ends.continued or (suggestion.flag.hides and last >= suggestion.flag.whole):
        return end
    return last if LAST_SIGNS.fullmatch(suggestion.text, end, last) else end


def end_of_begun_block(suggestion: Suggestion) -> int:
    """Return the last cut on the first line that has one: the first line of a missing block, or 0."""
    if not suggestion.display.owes_block:
        return 0
    text, cuts = suggestion.text, suggestion.ends.cuts
    first = text[: next(iter(cuts), 0)].count("\n")
    return max((end for end in cuts if text[:end].count("\n") == first), default=0)


def verdict(suggestion: Suggestion, closers: str, least: float) -> Suggestion | Suppression:
    """Return the displayed part of an unrequested suggestion, or the reason for hiding it.

    Args:
        suggestion: The suggestion.
        closers: The closers right of the cursor that it replaces.
        least: The threshold of its first lexeme; 0 shows everything.
    """
    if not suggestion.tokens or least <= 0:
        return suggestion
    flag, display = suggestion.flag, suggestion.display
    first = first_confidence(suggestion)
    if first < least_first(least, display.is_fresh, bool(display.seen)):
        return hidden(suggestion, first, 0 < flag.end <= first_lexeme(suggestion))
    begun = end_of_begun_block(suggestion)
    best = None
    for end in suggestion.ends.cuts or (len(suggestion.text),):
        text = suggestion.text[:end]
        if confidence(suggestion, end) < needed_at(suggestion, end, begun):
            continue
        if not text.strip() or not contains_in_order(text, closers) or (flag.hides and end >= flag.whole):
            continue
        found = value(suggestion, end)
        if best is None or found >= best[0]:
            best = found, end
    if best is None:
        return hidden(suggestion, first, flag.end > 0)
    text = suggestion.text[: before_signs(suggestion, best[1])]
    return replace(suggestion, text=text, display=replace(display, confidence=first))


def needed_at(suggestion: Suggestion, end: int, begun: int) -> float:
    """Return the threshold of a displayed text that ends at a cut. ``begun``: end of the first line of its block."""
    if end == begun:
        return RANKING.begun_block_confidence
    if "\n" in suggestion.text[:end]:
        return RANKING.lines_confidence
    if suggestion.display.is_fresh:
        return RANKING.whole_confidence * RANKING.fresh_whole_share
    is_header = suggestion.display.is_header and end == suggestion.ends.cuts[0]
    return RANKING.whole_confidence * (RANKING.header_share if is_header else 1)


def hidden(suggestion: Suggestion, first: float, is_flagged: bool) -> Suppression:
    """Return the reason for hiding a suggestion: its red flag, or the confidence of its ``first`` lexeme."""
    reason = (is_flagged and suggestion.flag.reason) or Reason.LOW_CONFIDENCE
    return Suppression(reason, NOT_SURE if reason is Reason.LOW_CONFIDENCE else f"it {reason}", first)


def shown(suggestion: Suggestion, closers: str, least: float) -> Suggestion | None:
    """Return the displayed part of an unrequested suggestion; None if it is hidden. Arguments as of :func:`verdict`."""
    found = verdict(suggestion, closers, least)
    return None if isinstance(found, Suppression) else found


def worth(suggestion: Suggestion, closers: str, least: float) -> float:
    """Return the expected number of right characters that are shown of a suggestion; -1 if it is hidden."""
    found = shown(suggestion, closers, least)
    if found is None:
        return -1.0
    return len(found.text.strip()) * confidence(found, len(found.text))


def asked_for(suggestion: Suggestion, closers: str, least: float) -> Suggestion:
    """Return the displayed part of a suggestion for an explicit request, which hides none.

    Text on the screen stays there. Arguments as of :func:`verdict`.
    """
    if not suggestion.tokens or least <= 0:
        return suggestion
    text, begun = suggestion.text, end_of_begun_block(suggestion)
    cuts = (
        end
        for end in suggestion.ends.cuts
        if end >= max(begun, suggestion.display.seen)
        and ("\n" not in text[:end] or text[end : end + 1] in ("\n", ""))  # whole lines
        and text[:end].strip()
        and contains_in_order(text[:end], closers)
    )
    end = max(cuts, key=lambda end: value(suggestion, end), default=len(text))
    return replace(suggestion, text=text[:end])


def display(answer: Answer, request: Request) -> Answer:
    """Return the displayed part of an answer, with the suppressed suggestions and the reason if none is shown."""
    return kept_in_cell(not_dismissed(confident(answer, request), request), request.cell)


def not_dismissed(answer: Answer, request: Request) -> Answer:
    """Return an answer without what the user dismissed at this cursor. An explicit request may bring it back."""
    if request.invoked:
        return answer
    kept = tuple(one for one in answer.suggestions if not is_one_of(one.text, request.dismissed))
    if len(kept) == len(answer.suggestions):
        return answer
    reason = answer.reason if kept else DISMISSED.message
    return replace(answer, suggestions=kept, reason=reason, suppressed=(*answer.suppressed, DISMISSED))


def is_one_of(text: str, dismissed: tuple[str, ...]) -> bool:
    """Return whether a text continues a dismissed one or begins it."""
    return any(text.startswith(one) or one.startswith(text) for one in dismissed)


def confident(answer: Answer, request: Request) -> Answer:
    """Return the confident part of an answer.

    An explicit request gets a part of each suggestion. While the user types along, the first of its alternatives that
    still fits stays; any other request gets at most one suggestion.
    """
    closers = [request.split.right[: one.covered] for one in answer.suggestions]
    least = request.least
    if request.invoked or (answer.complete and answer.moved):
        parts: dict[str, Suggestion] = {}
        for suggestion, text in zip(answer.suggestions[: None if request.invoked else 1], closers, strict=False):
            part = asked_for(suggestion, text, least)
            parts.setdefault(part.text, part)
        return replace(answer, suggestions=tuple(parts.values()))
    found = [verdict(one, text, least) for one, text in zip(answer.suggestions, closers, strict=True)]
    kept = tuple(one for one in found if not isinstance(one, Suppression))
    suppressed = (*answer.suppressed, *(one for one in found if isinstance(one, Suppression)))
    if kept or not answer.suggestions:
        return replace(answer, suggestions=kept[:1], suppressed=suppressed)
    return replace(answer, suggestions=(), suppressed=suppressed, reason=suppressed[-len(found)].message)


def kept_in_cell(answer: Answer, cell: CellContexts | None) -> Answer:
    """Return an answer without the suggestions that change which lines of a cell are commands, or end a region.

    The grammar reads a cell with substitutes for its commands. A string or a bracket in a suggestion may make IPython
    read a line otherwise; then the verdict does not hold. A region's end counts without a guarantee as well.
    """
    if cell is None:
        return answer
    kept = tuple(
        one
        for one in answer.suggestions
        if (one.origin.guarantee == "none" and cell.region is None) or cell.keeps(one.text, one.covered)
    )
    if len(kept) == len(answer.suggestions):
        return answer
    refused = CHANGES_COMMANDS if cell.region is None else ENDS_REGION
    suppressed = (*answer.suppressed, refused)
    reason = answer.reason if kept else refused.message
    return replace(answer, suggestions=kept, reason=reason, suppressed=suppressed)
