"""Which of several suggestions are made, and where one may end."""

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
    from fim_server.suggest.answer_cache import Suggestion
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


def others_of(suggestions: Iterable[Suggestion], further: Iterable[Suggestion]) -> list[Suggestion]:
    """Those of further suggestions that say something else, each text once.

    Continuations of a project's lines that are different may be the same as far as they fit.
    """
    known = {suggestion.text for suggestion in suggestions}
    found: dict[str, Suggestion] = {}
    for suggestion in further:
        if suggestion.text not in known:
            found.setdefault(suggestion.text, suggestion)
    return list(found.values())


def best_of(
    said: Sequence[Recalled],
    suggestion_of: Callable[[Recalled], Suggestion | None],
    value: Callable[[Suggestion], float],
    most: int,
) -> tuple[Suggestion, ...]:
    """The suggestions, at most so many, that are worth most of what a memory says, the best first.

    Made are those only that may be among them: that takes most of the time.

    ``suggestion_of``: makes one, or None where it does not fit; ``value``: what it is worth, at most
    :attr:`.Recalled.most_worth`.
    """
    found: list[tuple[float, int, Suggestion]] = []
    for place in sorted(range(len(said)), key=lambda place: -said[place].most_worth):
        if len(found) >= most and said[place].most_worth < -found[most - 1][0]:
            break
        suggestion = suggestion_of(said[place])
        if suggestion is not None:
            insort(found, (-value(suggestion), place, suggestion), key=itemgetter(0, 1))
    return tuple(suggestion for _, _, suggestion in found[:most])


def together(written: list[Suggestion], recalled: list[Suggestion], closers: str, most: int) -> list[Suggestion]:
    """Alternatives for somebody who asks: the model's first, then what is worth most, something recalled among it."""
    if not written or most == 1:
        return (written + recalled)[:most]
    ranked = sorted(written[1:] + recalled, key=lambda suggestion: -worth(suggestion, closers, 0.0))
    kept = ranked[: most - 1]
    if recalled and not any(suggestion in recalled for suggestion in kept):
        kept[-1] = next(suggestion for suggestion in ranked if suggestion in recalled)
    return written[:1] + kept
