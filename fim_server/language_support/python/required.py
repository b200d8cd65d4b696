"""What of names is asked while a text is decoded that must load no unbound one; the judge and the tracker, together."""

from __future__ import annotations

import re
from functools import lru_cache

from fim_server.language_support.protocol import UndefinedNameError
from fim_server.language_support.python import binding
from fim_server.language_support.python.scanning import NOWHERE
from fim_server.language_support.python.tracking import Tracker, as_bytes
from fim_server.language_support.python.visible import Beyond

WORD = re.compile(r"(?<!\w)[^\W\d]\w*")


def begin(left: str, right: str, healing: str, is_whole: bool) -> Tracker:
    """A tracker before a middle, to be moved by copies alone.

    Args:
        left: The text left of the cursor.
        right: The text right of it.
        healing: The end of the left text, which the tracker is told once more, before the middle.
        is_whole: Whether the texts parse with some middle; where not, a name is known that stands anywhere in them.
    """
    tracker = at_end(left.removesuffix(healing)).copy()
    tracker.checked_from = len(as_bytes(left))
    tracker.beyond = beyond(left, right) if is_whole else by_words(left, right)
    return tracker


@lru_cache(maxsize=4)
def by_words(left: str, right: str) -> Beyond:
    """What is known of a text of which scopes are not: its words, but for that which the cursor cuts."""
    start = len(left) - len(re.search(r"\w*$", left)[0])  # type: ignore[index]  # it matches nothing as well
    words = {found[0] for text in (left[:start], right) for found in WORD.finditer(text)}
    return Beyond({}, frozenset(words), False)


def unbound(left: str, middle: str, right: str, is_whole: bool) -> tuple[str, ...]:
    """The names that a middle loads and nothing binds, at least one of them where there are any.

    Exact where all of it parses with this Python in bounded time. Where it does not, because of something else in the
    file, the names that stand nowhere else in it.
    """
    found = binding.unbound(left, middle, right)
    if found is not None:
        return tuple(dict.fromkeys(one.name for one in found))
    tracker = begin(left, right, "", is_whole=False)
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
    """A tracker at a text's end; to be copied, not to be moved."""
    start = left.rfind("\n") + 1
    tracker = Tracker() if not start else at_line(left[:start]).copy()
    tracker.feed(as_bytes(left[start:]))
    return tracker


@lru_cache(maxsize=4)
def at_line(left: str) -> Tracker:
    """The same for a line's beginning, which stays the same while it is typed in."""
    tracker = Tracker()
    tracker.feed(as_bytes(left))
    return tracker


@lru_cache(maxsize=4)
def beyond(left: str, right: str) -> Beyond:
    """What a text binds right of a cursor: read on from the left of it, and by itself as long as that is another."""
    found: dict[str, set[int | None]] = {}
    whole, alone = at_end(left).copy(), Tracker()
    alone.leave_margin()
    whole.record()
    alone.record()
    differ = True
    for line in as_bytes(right).split("\n"):
        whole.feed(line + "\n")
        if differ:
            alone.feed(line + "\n")
            differ = not len(whole.frames) == len(alone.frames) == 1
    for tracker in (whole, alone):
        for name, places in tracker.recorded.items():
            found.setdefault(name, set()).update(places)
    names = {name: frozenset(places) for name, places in found.items()}
    return Beyond(names, None, whole.takes_all or alone.takes_all)
