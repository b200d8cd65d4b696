"""Which of several offers are made, and where one may end."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING

from fim_server.server.commas import COMMA
from fim_server.server.doubts import NO_DOUBT
from fim_server.server.showing import first_confidence, likelihood, worth

if TYPE_CHECKING:
    from fim_server.decoding.results import Completion
    from fim_server.language.spelling import Spelling
    from fim_server.server.memory import Offer
    from fim_server.server.names import OwnNames
    from fim_server.server.project import Recalled

LEAST_LIKELY = 1e-6
"""How likely anything is that may be said, and what is said to be certain is not."""


def goes_on(
    cuts: Iterable[int], text: str, completion: Completion, own: OwnNames | None, right: str, spelling: Spelling
) -> tuple[int, ...]:
    """Those of the cuts of a completion's text at which an expression goes on, or a list that has no more yet.

    The latter is after a comma, where a bracket closes in the cursor's line (``right``: what stands right of it):
    but in a tuple of one nobody means it alone, and in an f-string's field it makes another value of the one before.
    """
    whole = text + completion.following if text == completion.text else text
    trailers = () if own is None else own.trailers
    closing = tuple(closer for _, closer in spelling.brackets)
    separator = COMMA if right.lstrip(" \t").startswith(closing) else None
    return tuple(
        end
        for end in cuts
        if whole.startswith(trailers, end) or (separator is not None and text.endswith(separator, 0, end))
    )


def cuts_of_lines(text: str, cuts: Sequence[int]) -> tuple[int, ...]:
    """Those of the cuts of a text that are in its first line, or at the end of a further one."""
    first = text.find("\n")
    return tuple(end for end in cuts if first < 0 or end <= first or text[end : end + 1] in ("", "\n"))


def others_of(offers: Iterable[Offer], further: Iterable[Offer]) -> list[Offer]:
    """Those of further offers that say something else, each text once.

    Continuations of a project's lines that are different may be the same as far as they fit.
    """
    known = {offer.text for offer in offers}
    found: dict[str, Offer] = {}
    for offer in further:
        if offer.text not in known:
            found.setdefault(offer.text, offer)
    return list(found.values())


def given_written(recalled: Offer, written: Sequence[Offer]) -> Offer:
    """What the memory says, as likely as it is once a model has written at the same place.

    The model has been told what the memory foretells, so that where both begin with the same lexeme it knows better how
    likely that is; where they do not, only one of them is right. The tokens as they were are kept beside
    (`Offer.alone`), for when what is typed rules the model's text out.

    Args:
        recalled: An offer of the memory.
        written: The model's: one, or a doubted one and what the model wrote once it knew that, which alone counts then.
    """
    told = first_confidence(recalled)
    if 0 < recalled.doubt.end <= first_lexeme(recalled) or not 0 < told < 1:
        return recalled
    known = [offer for offer in written if 0 < likelihood(offer.written, first_lexeme(offer)) < 1 and offer.written]
    if not known:
        return recalled  # it does not say how likely its text is
    offer = known[-1]
    # A doubt of more than the first lexeme is none of that.
    sure = first_confidence(offer if offer.doubt.whole <= first_lexeme(offer) else replace(offer, doubt=NO_DOUBT))
    is_same = beginning(offer) == beginning(recalled)
    now = max(sure if is_same else (1 - sure) * told, LEAST_LIKELY)
    # The tokens that the first lexeme is in, as `likelihood` counts them.
    tokens = recalled.written
    within = next((at for at, token in enumerate(tokens, 1) if token.end >= first_lexeme(recalled)), len(tokens))
    shares = [min(max(token.probability, LEAST_LIKELY), 1 - LEAST_LIKELY) for token in tokens[:within]]
    power = math.log(now) / sum(map(math.log, shares))
    first = (replace(token, probability=share**power) for token, share in zip(tokens, shares, strict=False))
    return replace(recalled, written=(*first, *tokens[within:]), alone=tokens)


def beginning(offer: Offer) -> str:
    """The first lexeme of an offer, without the blanks before it."""
    return offer.text[: first_lexeme(offer)].lstrip(" \t")


def first_lexeme(offer: Offer) -> int:
    """Where the first lexeme of an offer ends."""
    return offer.lexemes[0] if offer.lexemes else len(offer.text)


def best_of(
    said: Sequence[Recalled], offer_of: Callable[[Recalled], Offer | None], value: Callable[[Offer], float], most: int
) -> tuple[Offer, ...]:
    """The offers, at most so many, that are worth most of what a memory says, the best first.

    Made are those only that may be among them: that takes most of the time.

    ``offer_of``: makes one, or None where it does not fit; ``value``: what it is worth, :attr:`.Recalled.most_worth` at
    most.
    """
    found: list[tuple[float, int, Offer]] = []
    for place in sorted(range(len(said)), key=lambda place: -said[place].most_worth):
        if len(found) >= most and said[place].most_worth < -found[most - 1][0]:
            break
        offer = offer_of(said[place])
        if offer is not None:
            insort(found, (-value(offer), place, offer), key=itemgetter(0, 1))
    return tuple(offer for _, _, offer in found[:most])


def together(written: list[Offer], recalled: list[Offer], closers: str, most: int) -> list[Offer]:
    """Alternatives for somebody who asks: the model's first, then what is worth most, something recalled among it."""
    if not written or most == 1:
        return (written + recalled)[:most]
    ranked = sorted(written[1:] + recalled, key=lambda offer: -worth(offer, closers, 0.0))
    kept = ranked[: most - 1]
    if recalled and not any(offer in recalled for offer in kept):
        kept[-1] = next(offer for offer in ranked if offer in recalled)
    return written[:1] + kept
