"""Names that exist: where a suggestion loads one that stands nowhere in the document and is not the language's own.

A model that invents a name has mostly gone wrong before (docs/results/suggestions.md). Names are words, taken from the
text without regard to scopes: what is a name where is not asked, so that a broken file has names as well.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import fim_server.languages
from fim_server.language.texts import is_word
from fim_server.suggest.context.cursor import PROSE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fim_server.language import Session
    from fim_server.text.document import Split

WORD = re.compile(r"(?<!\w)[^\W\d]\w*(?![\w\"'`])")
"""No number's exponent, and no prefix of a string."""

AT_ONCE = 1 << 14
"""Characters that are searched for words at once: a millisecond's work."""


@dataclass(frozen=True, slots=True)
class OwnNames:
    """A language's names that need no definition, and how others are told to be defined.

    Attributes:
        known: Keywords and names that are there by themselves.
        binding_words: A name after one of them is new.
        binding_texts: A name before one of them is new.
        loading_texts: Texts that begin like those and are none.
        defining_words: A line that begins with one of them, or with a word before it, defines the name after it.
        declaring_texts: A line whose first word one of them follows, and is none of those that are known, declares it,
            which a block does once.
        text_marks: What a text of several lines begins and ends with.
        trailers: What an expression goes on with that could end before it.
        block_words: A line that begins with one of them is followed by a block.
        header_end: End of such a line.
        instance_words: What code of a class calls its instance, or the class itself, by.
        comment: What makes a line of text a comment; nothing where the language has none.
    """

    known: frozenset[str]
    binding_words: frozenset[str] = frozenset()
    binding_texts: tuple[str, ...] = ()
    loading_texts: tuple[str, ...] = ()
    defining_words: tuple[str, ...] = ()
    comment: str = ""
    block_words: frozenset[str] = frozenset()
    trailers: tuple[str, ...] = ()
    declaring_texts: tuple[str, ...] = ()
    text_marks: tuple[str, ...] = ()
    instance_words: frozenset[str] = frozenset()
    header_end: str = ""

    def binds(self, text: str, start: int, end: int) -> bool:
        """Whether the word from ``start`` to ``end`` is not loaded there but defined."""
        before = text[:start].rstrip(" \t")
        if before[word_start(before, len(before)) :] in self.binding_words:
            return True
        after = text[end:].lstrip(" \t")
        return after.startswith(self.binding_texts) and not after.startswith(self.loading_texts)


@cache
def own_names(language: str) -> OwnNames | None:
    """Those of a language that comes with the package; None where nothing is known of its names."""
    path = Path(fim_server.languages.__path__[0]) / language / "names.toml"
    if not path.is_file():
        return None
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    known = frozenset().union(*(data.get(key, ()) for key in ("words", "builtin", "special")))
    return OwnNames(
        known,
        frozenset(data.get("binding_words", ())),
        tuple(data.get("binding_texts", ())),
        tuple(data.get("loading_texts", ())),
        tuple(data.get("defining_words", ())),
        data.get("comment", ""),
        frozenset(data.get("block_words", ())),
        tuple(data.get("trailers", ())),
        tuple(data.get("declaring_texts", ())),
        tuple(data.get("text_marks", ())),
        frozenset(data.get("instance_words", ())),
        data.get("header_end", ""),
    )


class Names:
    """The names of a document, counted: of an edited text what has changed is read, not all of it again."""

    def __init__(self) -> None:
        self._text = ""
        self._counts: Counter[str] = Counter()

    def unknown(
        self,
        language: str,
        split: Split,
        text: str,
        session: Session,
        is_known: Callable[[str], bool] = lambda word: False,
    ) -> tuple[int, ...]:
        """The ends, in characters of a suggestion's ``text``, of the names that it loads and nobody knows.

        A name that it defines itself is known after that; words of strings and comments are no names. ``is_known``:
        whether a word is known elsewhere.
        """
        own = own_names(language)
        if own is None:
            return ()
        start = word_start(split.left, len(split.left))
        line = split.left.rfind("\n") + 1
        stands = self._words_beside(split, start)
        bound: set[str] = set()
        whole = split.left[start:] + text
        found = []
        for match in WORD.finditer(whole):
            end = match.end() - (len(whole) - len(text))
            word = match[0]
            if end <= 0 or word in own.known or word in bound or stands(word) or is_known(word):
                continue
            if own.binds(split.left[line:start] + whole, match.start() + start - line, match.end() + start - line):
                bound.add(word)
                continue
            if not is_in_prose(session, text[:end]):
                found.append(end)
        return tuple(found)

    def read(self, split: Split) -> None:
        """Count a document's names, so that nobody waits for that when a suggestion is there."""
        self._read(split.joined(""))

    def _words_beside(self, split: Split, start: int) -> Callable[[str], bool]:
        """Whether a word stands in the document besides the one that is begun at ``start`` and ends at the cursor."""
        document = split.joined("")
        self._read(document)
        if start == len(split.left):
            return lambda word: word in self._counts
        # The cursor cuts a word in two, of which what stands right of it counts, as a word of its own.
        cut, rest = WORD.match(document, start), WORD.match(split.right)
        begun, after = (None if match is None else match[0] for match in (cut, rest))
        return lambda word: word == after or self._counts[word] > (word == begun)

    def _read(self, text: str) -> None:
        """Count a text's words in place of those of the one before: what of the two differs, up to blanks."""
        old, counts = self._text, self._counts
        if text == old:
            return
        start = common_beginning(old, text)
        kept = common_ending(old, text, min(len(old), len(text)) - start)
        start = max(text.rfind(" ", 0, start), text.rfind("\n", 0, start)) + 1
        ends = [at for at in (text.find(blank, len(text) - kept) for blank in " \n") if at >= 0]
        kept = len(text) - min(ends, default=len(text))
        self._text = text
        if len(old) + len(text) - 2 * (start + kept) > len(text):  # it is quicker from the beginning
            counts.clear()
            start = kept = 0
        else:
            for words in words_of(old, start, len(old) - kept):
                counts.subtract(words)
                for word in {word for word in words if not counts[word]}:
                    del counts[word]
        for words in words_of(text, start, len(text) - kept):
            counts.update(words)


def words_of(text: str, start: int, end: int) -> Iterator[list[str]]:
    """The words of a part of a text, which begins and ends beside blanks.

    Some at a time: while a pattern is looked for, no other thread runs.
    """
    while start < end:
        stop = end
        if end - start > AT_ONCE:
            blank = max(text.rfind(" ", start, start + AT_ONCE), text.rfind("\n", start, start + AT_ONCE))
            stop = start + AT_ONCE if blank < 0 else blank + 1
            while stop < end and not text[stop - 1].isspace():
                stop += 1
        yield WORD.findall(text, start, stop)
        start = stop


def common_beginning(one: str, other: str) -> int:
    """The length of what two texts both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def common_ending(one: str, other: str, most: int) -> int:
    """The length of what two texts both end with, at most so much."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one.endswith(other[len(other) - middle : len(other) - low], 0, len(one) - low):
            low = middle
        else:
            high = middle - 1
    return low


def word_start(text: str, end: int) -> int:
    """Where the word begins that ends at a place; there, where none does."""
    while end > 0 and is_word(text[end - 1]):
        end -= 1
    return end


def is_in_prose(session: Session, middle: str) -> bool:
    """Whether a middle's end is inside of a string's text or a comment, whose words are no names."""
    state = session.start()
    state.advance(middle)
    return state.inside in PROSE
