"""What of an offer is shown unasked, and whether: as far as the model is sure of it.

An offer is kept whole; what is shown of it ends at one of its *cuts*, where the program is complete and no word is cut.
How likely the text up to a cut is right is said by the probabilities that its tokens had, before the grammar refused
any, and by whether it loads names that exist: mapped to the share of such texts that were right in held-out files. Of
the cuts that are sure enough, the one is shown that is worth most: characters times that probability.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from fim_server.server.place import contains_in_order, is_word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fim_server.decoding.results import Written
    from fim_server.language import Session
    from fim_server.server.memory import Offer
    from fim_server.server.work import Request

LINES_CONFIDENCE = 0.6
"""How sure an offer of several lines has to be."""

FRESH_SHARE = 0.02
"""How sure an offer has to be in a pair of brackets with nothing in it, as a share of elsewhere: something belongs
there more often than not, and whoever stops there to look wants to be told what may."""

LEAST_LIKELIHOOD, LEAST_IN_FRESH = 0.02, 0.002
"""Where all that is written is less likely, nothing more is written: none of it would be shown. In such a pair."""

PROSE = ("comment", "string")
"""What a cursor may be inside of that is no code."""

MOST_CUTS = 64
"""Places at which a text may end that are asked about."""

INTERCEPT, PER_LOG_ODDS, PER_UNKNOWN_NAME = 0.67, 0.93, -1.67
"""The logistic map: from the logarithm of the odds, and whether a name is loaded that nobody knows. Fitted to 1,775
texts at 1,390 cursors in the packages for tuning, as `fim_server/bench/suggestions/calibration.py` fits them."""


def least_likelihood(request: Request, fresh: bool) -> float:
    """``DecodeOptions.least_likelihood`` of a request; ``fresh``: in a pair of brackets with nothing in it."""
    if request.invoked or not request.settings.min_confidence:
        return 0.0
    return LEAST_IN_FRESH if fresh else LEAST_LIKELIHOOD


def cuts_of(text: str, session: Session, no_comments: bool = False) -> tuple[int, ...]:
    """The lengths, in characters, at which a text may end: the program is complete, no word or string is cut.

    Of a text that a model has written the whole is the last of them. Where nothing is guaranteed, completeness is not
    asked for. ``no_comments``: none that ends in a comment, which would take in the rest of the cursor's line.
    """
    state = session.start() if session.guarantee != "none" else None
    found: list[int] = []
    at = 0
    for end in (*islice(boundaries(text), MOST_CUTS), len(text)):
        if state is not None:
            piece = text[at:end]
            if state.advance(piece) < len(piece.encode()):
                break  # what stood elsewhere does not fit here any further
            at = end
            # Within prose words are no units that anybody would take one by one.
            if not state.is_complete() or (state.inside in PROSE and end < len(text)):
                continue
            if no_comments and state.inside == "comment":
                continue
        found.append(end)
    return tuple(found)


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
    if not offer.written:
        return 1.0
    share = min(max(likelihood(offer.written, end), 1e-6), 1 - 1e-6)
    if offer.calibrated:
        return share
    unknown = any(name <= end for name in offer.unknown)
    odds = INTERCEPT + PER_LOG_ODDS * math.log(share / (1 - share)) + PER_UNKNOWN_NAME * unknown
    return 1 / (1 + math.exp(-odds))


def worth(offer: Offer, closers: str, least: float) -> float:
    """What is shown of an offer, in characters that are right; -1 where nothing is."""
    found = shown(offer, closers, least)
    if found is None:
        return -1.0
    return len(found.text.strip()) * confidence(found, len(found.text))


def shown(offer: Offer, closers: str, least: float) -> Offer | None:
    """What of an offer is shown unasked, or None.

    ``closers``: those right of the cursor that it stands for. ``least``: how sure it has to be, from 0 to 1.
    """
    if not offer.written or least <= 0:
        return offer
    best = None
    least *= FRESH_SHARE if offer.fresh else 1
    for end in offer.cuts or (len(offer.text),):
        text = offer.text[:end]
        sure = confidence(offer, end)
        needed = max(least, LINES_CONFIDENCE) if "\n" in text else least
        if sure < needed or not text.strip() or not contains_in_order(text, closers):
            continue
        worth = sure * len(text.strip())
        if best is None or worth >= best[0]:
            best = worth, text, sure
    return None if best is None else replace(offer, text=best[1], confidence=best[2])
