"""What of an offer is shown unasked, and whether: where it is likely to begin right, and as far as that is worth it.

An offer is kept whole; what is shown of it ends at one of its *cuts*, where the program is complete and no word is cut.
How likely the text up to some place is right is said by the probabilities that its tokens had, before the grammar
refused any, and by whether it loads names that exist: mapped to the share of such texts that were right in held-out
files. What somebody can take of an offer is its first word at least; so it is shown where its first lexeme is sure
enough. Of its cuts the one is shown that is worth most: characters times the probability that they are right.
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
    from fim_server.suggest.answer_cache import Offer
    from fim_server.suggest.job import Request
    from fim_server.text.document import Split

LINES_CONFIDENCE = 0.6
"""How sure an offer of several lines has to be."""

FRESH_SHARE, FRESH_WHOLE_SHARE = 0.6, 0.02
"""How sure the first lexeme has to be in a pair of brackets with nothing in it, and all that is shown, as shares of
elsewhere: something belongs there more often than not, and whoever stops there to look wants to be told what may. Of
the offers in the packages for tuning none was right whose first lexeme was less sure than that."""

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
"""How sure an offer has to be of which more is shown already than was typed, as a share of another: somebody who types
along reads it, and its going away is one more thing to read."""

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


def confidence(offer: Offer, end: int) -> float:
    """How likely the first ``end`` characters of an offer are right; 1 where nothing is known of it."""
    return mapped(offer, end, INTERCEPT, PER_LOG_ODDS, PER_UNKNOWN_NAME)


def first_confidence(offer: Offer) -> float:
    """How likely the first lexeme of an offer is right; 1 where nothing is known of it."""
    return mapped(offer, first_lexeme(offer), FIRST_INTERCEPT, FIRST_PER_LOG_ODDS, FIRST_PER_UNKNOWN_NAME)


def first_lexeme(offer: Offer) -> int:
    """Where the first lexeme of an offer ends, in characters."""
    return offer.lexemes[0] if offer.lexemes else len(offer.text)


def possible(probability: float) -> float:
    """A probability between those of which nothing can be told: nothing that may be said is impossible, or certain."""
    return min(max(probability, LEAST_LIKELY), 1 - LEAST_LIKELY)


def mapped(offer: Offer, end: int, intercept: float, per_log_odds: float, per_unknown_name: float) -> float:
    """The probability of an offer's first ``end`` characters, as a share of such texts that were right."""
    if not offer.written:
        return 1.0
    if 0 < offer.doubt.end <= end:
        return offer.doubt.confidence
    share = possible(likelihood(offer.written, end))
    if offer.calibrated:
        return share
    unknown = any(name <= end for name in offer.unknown)
    odds = intercept + per_log_odds * math.log(share / (1 - share)) + per_unknown_name * unknown
    return 1 / (1 + math.exp(-odds))


def worth(offer: Offer, closers: str, least: float) -> float:
    """What is shown of an offer, in characters that are right; -1 where nothing is."""
    found = shown(offer, closers, least)
    if found is None:
        return -1.0
    return len(found.text.strip()) * confidence(found, len(found.text))


def asked_for(offer: Offer, closers: str, least: float) -> Offer:
    """What of an offer is shown to somebody who has asked: something in any case, as far as it is worth most.

    What is seen already stays.

    ``closers``: those right of the cursor that it stands for. ``least``: how sure an offer has to be where nobody has
    asked; 0 shows all.
    """
    if not offer.written or least <= 0:
        return offer
    begun = end_of_begun(offer) if offer.owes_block else 0
    cuts = (
        end
        for end in offer.cuts
        if end >= max(begun, offer.seen)
        and ("\n" not in offer.text[:end] or offer.text[end : end + 1] in ("\n", ""))  # no part of a further line
        and offer.text[:end].strip()
        and contains_in_order(offer.text[:end], closers)
    )
    end = max(cuts, key=lambda end: value(offer, end), default=len(offer.text))
    return replace(offer, text=offer.text[:end])


def value(offer: Offer, end: int) -> float:
    """Characters of an offer up to one of its cuts, as many as are likely to be right."""
    going_on = GOING_ON_SHARE if end in offer.going_on else 1
    return confidence(offer, end) * len(offer.text[:end].strip()) * going_on


def end_of_begun(offer: Offer) -> int:
    """Where the first line ends after which an offer may end: of a line that needs a block, the block's first."""
    first = offer.text[: next(iter(offer.cuts), 0)].count("\n")
    return max((end for end in offer.cuts if offer.text[:end].count("\n") == first), default=0)


def least_first(least: float, fresh: bool, seen: bool = False) -> float:
    """How sure the first lexeme of an offer has to be to be shown unasked, where it has to be ``least`` elsewhere."""
    return least * (FRESH_SHARE if fresh else 1) * (SEEN_SHARE if seen else 1)


def shown(offer: Offer, closers: str, least: float) -> Offer | None:
    """Return what of an offer is shown unasked, or None: nothing that loads an unbound name or defines one again.

    ``closers``: those right of the cursor that it stands for. ``least``: how sure its first lexeme has to be, 0 to 1.
    """
    if not offer.written or least <= 0:
        return offer
    first = first_confidence(offer)
    if first < least_first(least, offer.fresh, bool(offer.seen)):
        return None
    begun = end_of_begun(offer) if offer.owes_block else 0
    best = None
    for end in offer.cuts or (len(offer.text),):
        text = offer.text[:end]
        sure = confidence(offer, end)
        relief = FRESH_WHOLE_SHARE if offer.fresh else HEADER_SHARE if offer.header and end == offer.cuts[0] else 1
        needed = LINES_CONFIDENCE if "\n" in text else LEAST_WHOLE * relief
        if end == begun:
            needed = LEAST_BEGUN
        if sure < needed or not text.strip() or not contains_in_order(text, closers):
            continue
        if offer.doubt.hides and end >= offer.doubt.whole:
            continue
        found = value(offer, end)
        if best is None or found >= best[0]:
            best = found, text
    return None if best is None else replace(offer, text=best[1], confidence=first)
