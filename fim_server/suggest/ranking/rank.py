"""Which of several offers are made, and where one may end."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from fim_server.suggest.postprocess.trailing_comma import COMMA
from fim_server.suggest.ranking.display import worth

if TYPE_CHECKING:
    from fim_server.decoding.results import Completion
    from fim_server.language.spelling import Spelling
    from fim_server.suggest.answer_cache import Offer
    from fim_server.suggest.postprocess.identifiers import OwnNames
    from fim_server.suggest.sources.project import Recalled


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
