"""Decide whether a suggestion is shown, and how much of it.

A suggestion is kept whole. The displayed part ends at one of its *cuts*: the program is complete there, and no word is
cut. The confidence of a beginning comes from the probabilities of its tokens, before the grammar refused any, and from
the names that it loads. A logistic map turns them into the share of such texts that were right in held-out files.

The user can accept the first word alone. So a suggestion is shown if its first lexeme is confident enough, up to the
cut with the highest value: characters times the probability that they are right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from fim_server.decoding.ending.trimming.below import without_line_below
from fim_server.language.texts import is_word
from fim_server.suggest.context.cursor import PROSE, contains_in_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fim_server.decoding.results import Written
    from fim_server.language import Session
    from fim_server.suggest.answer_cache import Suggestion
    from fim_server.suggest.job import Request
    from fim_server.text.document import Split

LINES_CONFIDENCE = 0.6
"""How sure a suggestion of several lines has to be."""

FRESH_SHARE, FRESH_WHOLE_SHARE = 0.6, 0.02
"""How sure the first lexeme has to be in a pair of brackets with nothing in it, and all that is shown, as shares of
elsewhere: something belongs there more often than not, and whoever stops there to look wants to be told what may. Of
the suggestions in the packages for tuning none was right whose first lexeme was less sure than that."""

LEAST_LIKELIHOOD, LEAST_IN_FRESH, LEAST_OF_BLOCK = 0.02, 0.002, 0.0002
"""Where all that is written is less likely, nothing more is written: none of it would be shown. In such a pair, and
where a line cannot end before a block has begun."""

LEAST_ASKED = 1e-4
"""The same for somebody who has asked, and wants to see something: only where a part of the text is a whole already."""

NEAR = 1000
"""Characters on either side of the cursor that cuts are compared with."""

MOST_CUTS = 64
"""Places at which a text may end that are asked about."""

INTERCEPT, PER_LOG_ODDS, PER_UNKNOWN_NAME = 0.55, 0.73, -0.72
FIRST_INTERCEPT, FIRST_PER_LOG_ODDS, FIRST_PER_UNKNOWN_NAME = 0.48, 1.02, -1.76
"""The logistic maps, of texts and of first lexemes: from the logarithm of the odds, and whether a name is loaded that
nobody knows. Fitted to texts in the packages for tuning, as `benchmarks/suggestions/calibration.py` fits them
with 150 cursors in each."""

LEAST_LIKELY = 1e-6
"""The least probability of what may be said, and that of the contrary of what is said to be certain."""

SEEN_SHARE = 0.5
"""Share of the threshold for a suggestion that is on the screen already: the user reads it while typing along."""

GOING_ON_SHARE = 0.5
"""What a text is worth that ends where its expression goes on with a call, an index or an attribute, as a share: a
function that is not called is another text than its call."""

HEADER_SHARE = 0.1
"""How sure a line with a block has to be as a whole, as a share of others: it is complete at its colon, not before, and
its first word is worth seeing."""

LEAST_WHOLE, LEAST_BEGUN = 0.05, 0.0005
"""How likely all that is shown has to be right; a line with the first of the block that it needs. Nothing can be left
out of that, although its first word is worth seeing."""


def least_likelihood(request: Request, fresh: bool, owes_block: bool = False, header: bool = False) -> float:
    """``DecodeOptions.least_likelihood`` of a request.

    ``fresh``: in a pair of brackets with nothing in it; ``header``: in a line that begins one with a block;
    ``owes_block``: of which there is nothing yet, see :mod:`.blocks`.
    """
    if not request.settings.min_confidence:
        return 0.0
    if request.invoked:
        return LEAST_ASKED
    if owes_block:
        return LEAST_OF_BLOCK
    return LEAST_IN_FRESH if fresh or header else LEAST_LIKELIHOOD


@dataclass(frozen=True, slots=True)
class Ends:
    """Lengths of beginnings of a text, in characters.

    Attributes:
        cuts: Where it may end: the program is complete, no word or string is cut.
        lexemes: Where no word or string is cut.
    """

    cuts: tuple[int, ...]
    lexemes: tuple[int, ...]


def ends_of(text: str, session: Session, no_comments: bool = False, right: str = "") -> Ends:
    """Where a text may end.

    Of a text that a model has written the whole is the last cut. Where nothing is guaranteed, completeness is not asked
    for. ``no_comments``: no cut in a comment, which would take in the rest of the cursor's line. ``right``: the text
    right of the cursor, whose first word no cut lengthens.
    """
    state = session.start() if session.guarantee != "none" else None
    found: list[int] = []
    lexemes: list[int] = []
    at = 0
    for end in (*islice(boundaries(text), MOST_CUTS), len(text)):
        if state is not None:
            piece = text[at:end]
            if state.advance(piece) < len(piece.encode()):
                break  # what stood elsewhere does not fit here any further
            at = end
            if state.inside != "string":
                lexemes.append(end)
            # Within prose words are no units that anybody would take one by one.
            if not state.is_complete() or (state.inside in PROSE and end < len(text)):
                continue
            if no_comments and state.inside == "comment":
                continue
            if end < len(text) and is_word(text[end - 1]) and is_word(right[:1]):
                continue
        else:
            lexemes.append(end)
        found.append(end)
    return Ends(tuple(found), tuple(lexemes))


def without_lines_below(ends: Ends, text: str, split: Split) -> Ends:
    """Return the ends of a text without the cuts at which its beginning repeats the line below the cursor."""
    near = replace(split, left=split.left[-NEAR:], right=split.right[:NEAR])

    def repeats(end: int) -> bool:
        return end < len(text) and without_line_below(text[:end], near, bool) != text[:end]

    return Ends(tuple(end for end in ends.cuts if not repeats(end)), ends.lexemes)


def boundaries(text: str) -> Iterator[int]:
    """Where a text may be cut: after something that is no blank, not within a word; not at its end."""
    for end in range(1, len(text)):
        before, after = text[end - 1], text[end]
        if not before.isspace() and not (is_word(before) and is_word(after)):
            yield end


def likelihood(written: tuple[Written, ...], end: int) -> float:
    """Probability of the first ``end`` characters of a text: of the tokens that they are in."""
    found, at = 1.0, 0
    for token in written:
        if at >= end:
            break
        found *= token.probability
        at = token.end
    return found


def confidence(suggestion: Suggestion, end: int) -> float:
    """How likely the first ``end`` characters of a suggestion are right; 1 where nothing is known of it."""
    return mapped(suggestion, end, INTERCEPT, PER_LOG_ODDS, PER_UNKNOWN_NAME)


def first_confidence(suggestion: Suggestion) -> float:
    """How likely the first lexeme of a suggestion is right; 1 where nothing is known of it."""
    return mapped(suggestion, first_lexeme(suggestion), FIRST_INTERCEPT, FIRST_PER_LOG_ODDS, FIRST_PER_UNKNOWN_NAME)


def first_lexeme(suggestion: Suggestion) -> int:
    """Where the first lexeme of a suggestion ends, in characters."""
    return suggestion.lexemes[0] if suggestion.lexemes else len(suggestion.text)


def possible(probability: float) -> float:
    """A probability between those of which nothing can be told: nothing that may be said is impossible, or certain."""
    return min(max(probability, LEAST_LIKELY), 1 - LEAST_LIKELY)


def mapped(suggestion: Suggestion, end: int, intercept: float, per_log_odds: float, per_unknown_name: float) -> float:
    """The probability of a suggestion's first ``end`` characters, as a share of such texts that were right."""
    if not suggestion.written:
        return 1.0
    if 0 < suggestion.doubt.end <= end:
        return suggestion.doubt.confidence
    share = possible(likelihood(suggestion.written, end))
    if suggestion.calibrated:
        return share
    unknown = any(name <= end for name in suggestion.unknown)
    odds = intercept + per_log_odds * math.log(share / (1 - share)) + per_unknown_name * unknown
    return 1 / (1 + math.exp(-odds))


def worth(suggestion: Suggestion, closers: str, least: float) -> float:
    """What is shown of a suggestion, in characters that are right; -1 where nothing is."""
    found = shown(suggestion, closers, least)
    if found is None:
        return -1.0
    return len(found.text.strip()) * confidence(found, len(found.text))


def asked_for(suggestion: Suggestion, closers: str, least: float) -> Suggestion:
    """What of a suggestion is shown to somebody who has asked: something in any case, as far as it is worth most.

    What is seen already stays.

    ``closers``: those right of the cursor that it stands for. ``least``: the threshold for an unrequested suggestion;
    0 shows all.
    """
    if not suggestion.written or least <= 0:
        return suggestion
    begun = end_of_begun(suggestion) if suggestion.owes_block else 0
    cuts = (
        end
        for end in suggestion.cuts
        if end >= max(begun, suggestion.seen)
        and (
            "\n" not in suggestion.text[:end] or suggestion.text[end : end + 1] in ("\n", "")
        )  # no part of a further line
        and suggestion.text[:end].strip()
        and contains_in_order(suggestion.text[:end], closers)
    )
    end = max(cuts, key=lambda end: value(suggestion, end), default=len(suggestion.text))
    return replace(suggestion, text=suggestion.text[:end])


def value(suggestion: Suggestion, end: int) -> float:
    """Characters of a suggestion up to one of its cuts, as many as are likely to be right."""
    going_on = GOING_ON_SHARE if end in suggestion.going_on else 1
    return confidence(suggestion, end) * len(suggestion.text[:end].strip()) * going_on


def end_of_begun(suggestion: Suggestion) -> int:
    """Where the first line ends after which a suggestion may end: of a line that needs a block, the block's first."""
    first = suggestion.text[: next(iter(suggestion.cuts), 0)].count("\n")
    return max((end for end in suggestion.cuts if suggestion.text[:end].count("\n") == first), default=0)


def least_first(least: float, fresh: bool, seen: bool = False) -> float:
    """Return the threshold for the first lexeme of an unrequested suggestion, which is ``least`` elsewhere."""
    return least * (FRESH_SHARE if fresh else 1) * (SEEN_SHARE if seen else 1)


def shown(suggestion: Suggestion, closers: str, least: float) -> Suggestion | None:
    """Return what of a suggestion is shown unasked, or None: nothing that loads an unbound name or defines one again.

    ``closers``: those right of the cursor that it stands for. ``least``: how sure its first lexeme has to be, 0 to 1.
    """
    if not suggestion.written or least <= 0:
        return suggestion
    first = first_confidence(suggestion)
    if first < least_first(least, suggestion.fresh, bool(suggestion.seen)):
        return None
    begun = end_of_begun(suggestion) if suggestion.owes_block else 0
    best = None
    for end in suggestion.cuts or (len(suggestion.text),):
        text = suggestion.text[:end]
        sure = confidence(suggestion, end)
        relief = (
            FRESH_WHOLE_SHARE
            if suggestion.fresh
            else HEADER_SHARE
            if suggestion.header and end == suggestion.cuts[0]
            else 1
        )
        needed = LINES_CONFIDENCE if "\n" in text else LEAST_WHOLE * relief
        if end == begun:
            needed = LEAST_BEGUN
        if sure < needed or not text.strip() or not contains_in_order(text, closers):
            continue
        if suggestion.doubt.hides and end >= suggestion.doubt.whole:
            continue
        found = value(suggestion, end)
        if best is None or found >= best[0]:
            best = found, text
    return None if best is None else replace(suggestion, text=best[1], confidence=first)
