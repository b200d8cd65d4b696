"""What of names is asked while a text is decoded that must load no unbound one; the judge and the tracker, together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from fim_server.language_support.python import binding, tracking
from fim_server.language_support.python.scanning import NOWHERE
from fim_server.language_support.python.tracking import RefusedError, Tracker, as_bytes
from fim_server.language_support.python.visible import Beyond

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["RefusedError", "Texts", "Tracker", "allow", "begin", "unbound"]

WORD = re.compile(r"(?<!\w)[^\W\d]\w*")
WORD_TOKEN = re.compile(rb"( ?)([A-Za-z_][A-Za-z0-9_]*)")


def begin(left: str, right: str, healing: str, is_whole: bool) -> Tracker:
    """A tracker before a middle, to be moved by copies alone.

    Args:
        left: The text left of the cursor.
        right: The text right of it.
        healing: The end of the left text, which the tracker is told once more, before the middle.
        is_whole: Whether the texts parse with some middle; where not, a name is known that stands anywhere in them.
    """
    tracker = tracking.at_end(left.removesuffix(healing)).copy()
    tracker.checked_from = len(as_bytes(left))
    tracker.beyond = tracking.beyond(left, right) if is_whole else by_words(left, right)
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
    except RefusedError as error:
        return (str(error),)
    return ()


class Texts:
    """A vocabulary's tokens, sorted by what is asked about them: most are a word, or a blank and a word."""

    def __init__(self, tokens: Sequence[bytes]) -> None:
        self.size = len(tokens)
        self.words: dict[str, dict[str, list[int]]] = {"": {}, " ": {}}
        """By what stands before the word, and by the word."""
        self.others: list[tuple[int, str]] = []
        for token, text in enumerate(tokens):
            found = WORD_TOKEN.fullmatch(text)
            if found is not None:
                blank, word = (part.decode() for part in found.groups())
                self.words[blank].setdefault(word, []).append(token)
            elif text:
                self.others.append((token, text.decode("latin-1")))
        self.numbers = {
            blank: [token for tokens in words.values() for token in tokens] for blank, words in self.words.items()
        }


def allow(tracker: Tracker, texts: Texts, mask: NDArray[np.bool_]) -> None:
    """Set in a mask, of zeros, which tokens may come after what a tracker has read: as feeding each to a copy says.

    ``mask``: [tokens].
    """
    if tracker.position < tracker.checked_from:  # what is written again depends on how long tokens are
        for blank, words in texts.words.items():
            for word, tokens in words.items():
                mask[tokens] = takes(tracker, blank + word)
    for token, text in texts.others:
        mask[token] = takes(tracker, text)
    if tracker.position < tracker.checked_from:
        return
    for blank, words in texts.words.items():
        begun = tracker.copy()
        try:
            begun.feed(blank)
        except RefusedError:
            continue
        beginnings = begun.words_to_come()
        if beginnings is None:
            mask[texts.numbers[blank]] = True
            continue
        for beginning in beginnings:
            for token in words.get(beginning, ()):
                mask[token] = True


def takes(tracker: Tracker, text: str) -> bool:
    """Whether a text may come after what a tracker has read."""
    copy = tracker.copy()
    try:
        copy.feed(text)
    except RefusedError:
        return False
    return True
