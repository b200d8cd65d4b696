"""Judge and trackers of middles that must load no unbound name."""

from __future__ import annotations

import re
from functools import lru_cache

from fim_server.language_support.protocol import UndefinedNameError
from fim_server.language_support.python import model
from fim_server.language_support.python.lexemes import NOWHERE
from fim_server.language_support.python.model import Model
from fim_server.language_support.python.tracking import Beyond, Tracker, Visible, as_bytes

WORD = re.compile(r"(?<!\w)[^\W\d]\w*")


def track(left: str, right: str, healing: str, is_whole: bool) -> Tracker:
    """Return a tracker before a middle, of which the caller moves copies alone.

    Args:
        left: The text left of the cursor.
        right: The text right of the cursor.
        healing: The end of the left text that the tracker reads again before the middle.
        is_whole: Whether the texts parse with some middle. If not, every word of them counts as bound.
    """
    tracker = at_end(left.removesuffix(healing)).copy()
    tracker.checked_from = len(as_bytes(left))
    tracker.beyond = beyond(left, right) if is_whole else by_words(left, right)
    return tracker


def unbound(left: str, middle: str, right: str, is_whole: bool) -> tuple[str, ...]:
    """Return the names that a middle loads and nothing binds, at least one of them if there are any.

    If the texts are not whole, return the first name that stands nowhere else in them.
    """
    if is_whole:
        return model.unbound(left, middle, right)
    tracker = track(left, right, "", is_whole=False)
    line, _, _ = right.partition("\n")
    try:
        tracker.feed(as_bytes(middle))
        tracker.checked_from = NOWHERE
        tracker.feed(as_bytes(line) + "\n")
    except UndefinedNameError as error:
        return (str(error),)
    return ()


@lru_cache(maxsize=4)
def at_end(left: str) -> Tracker:
    """Return a tracker at a text's end, of which the caller moves copies alone."""
    start = left.rfind("\n") + 1
    above = above_of(left[:start])
    tracker = Tracker()
    at = above.starts[-1] if above.lines[-1].is_open else start
    tracker.position = len(as_bytes(left[:at]))
    tracker.takes_all = above.takes_all
    scope = above.scopes[-1] if above.lines[-1].is_open else above.innermost
    for one in reversed(list(scope.around())):
        names = {*one.bound, *(one.header.types if one.header is not None else ())}
        if one is above.module:
            names |= above.declared
            tracker.scopes = []
        tracker.scopes.append(Visible(one.kind == "class", one.column, names, tracker.owner))
    tracker.feed(as_bytes(left[at:]))
    return tracker


@lru_cache(maxsize=4)
def above_of(text: str) -> Model:
    """Return the model of the lines above the cursor's, of which the last may be open; empty, or with a last break."""
    return Model(text.removesuffix("\n"), may_be_open=True)


@lru_cache(maxsize=4)
def by_words(left: str, right: str) -> Beyond:
    """Return the words of a text without scopes, except one that the cursor cuts."""
    start = len(left) - len(re.search(r"\w*$", left)[0])  # type: ignore[index]  # the empty text matches
    words = {found[0] for text in (left[:start], right) for found in WORD.finditer(text)}
    return Beyond({}, frozenset(words), False)


@lru_cache(maxsize=4)
def beyond(left: str, right: str) -> Beyond:
    """Return the names that are bound right of a cursor.

    The rest of the cursor's statement is read twice: after the text left of it, and by itself, since a middle may end
    the brackets that are open.
    """
    found: dict[str, set[int | None]] = {}
    takes_all = False
    done: set[int] = set()
    texts = right.split("\n")
    alone = Tracker()
    alone.is_margin = False
    for begun in (at_end(left), alone):
        tracker, count = begun.copy(), 0
        while count < len(texts) and not (count and tracker.is_margin):
            tracker.feed(as_bytes(texts[count] + "\n"))
            count += 1
        takes_all |= tracker.takes_all
        for before, after in zip(begun.scopes, tracker.scopes, strict=False):
            for name in after.names - before.names:
                found.setdefault(name, set()).add(None)
        if count in done:
            continue
        done.add(count)
        below = Model("\n".join(texts[count:]))
        takes_all |= below.takes_all
        lowest: int | None = None
        for one, scope in zip(below.lines, below.scopes, strict=True):
            if one.column >= 0:
                lowest = one.column if lowest is None else min(lowest, one.column)
            for number, part in enumerate(one.parts):
                if scope is below.module and not number:
                    for name in part.bound:
                        found.setdefault(name, set()).add(lowest)
                for name in part.globals:
                    found.setdefault(name, set()).add(None)
    return Beyond({name: frozenset(places) for name, places in found.items()}, None, takes_all)
