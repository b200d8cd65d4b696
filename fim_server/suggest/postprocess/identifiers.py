"""Names of a document, and loads of names that it does not have.

A model that invents a name mostly went wrong before. Names are words of the text, without scopes, so that a broken file
has names as well.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from fim_server.language import Language
from fim_server.language.definition.compile import builtin_files
from fim_server.language.texts import is_word
from fim_server.suggest.context.cursor import PROSE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fim_server.language import Session
    from fim_server.text.document import Split

WORD = re.compile(r"(?<!\w)[^\W\d]\w*(?![\w\"'`])")
"""A word that is no exponent of a number and no prefix of a string."""

AT_ONCE = 1 << 14
"""Characters that are searched for words at once, which takes a millisecond."""


@dataclass(frozen=True, slots=True)
class OwnNames:
    """Names of a language that need no definition, and the syntax of definitions.

    Attributes:
        known: Keywords and built-in names.
        binding_words: A name after one of them is new.
        binding_texts: A name before one of them is new.
        loading_texts: Texts that begin like a binding text and bind nothing.
        defining_words: A line that begins with one of them, or with a word before it, defines the name after it.
        comment: The mark of a comment; empty if the language has none.
        block_words: A line that begins with one of them is the header of a block.
        trailers: Texts that continue an expression that could end before them.
        declaring_texts: A line declares its first word if one of them follows the word. A block declares it once.
        text_marks: The quotes of a string of several lines.
        instance_words: Names of the instance, or of the class, in the code of a class.
        header_end: The end of a header.
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
        """Return whether the word from ``start`` to ``end`` is defined there, and not loaded."""
        before = text[:start].rstrip(" \t")
        if before[word_start(before, len(before)) :] in self.binding_words:
            return True
        after = text[end:].lstrip(" \t")
        return after.startswith(self.binding_texts) and not after.startswith(self.loading_texts)


NO_NAMES = OwnNames(frozenset())
"""Names of a language of which none is known."""


def own_names(language: str) -> OwnNames | None:
    """Return the own names of a language; None if they are unknown. Clients may name any language."""
    return _read_names(language) if language in Language.names() else None


@cache
def _read_names(language: str) -> OwnNames | None:
    path = builtin_files(language)[0].with_name("names.toml")
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


class NameCounts:
    """Counts of a document's names. After an edit, only the changed part is read."""

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
        """Return the ends of names that a ``text`` loads and the document does not have, in characters.

        A name that the text defines is known after that. Words of strings and comments are no names. Where the
        language's names are unknown, every word counts as a loaded name. ``is_known``: returns whether a word is known
        elsewhere.
        """
        own = own_names(language) or NO_NAMES
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
        self._read(split.joined(""))

    def _words_beside(self, split: Split, start: int) -> Callable[[str], bool]:
        """Return a test for words of the document other than the one between ``start`` and the cursor."""
        document = split.joined("")
        self._read(document)
        if start == len(split.left):
            return lambda word: word in self._counts
        # The cursor cuts a word in two. The part right of it counts as a word.
        cut, rest = WORD.match(document, start), WORD.match(split.right)
        begun, after = (None if match is None else match[0] for match in (cut, rest))
        return lambda word: word == after or self._counts[word] > (word == begun)

    def _read(self, text: str) -> None:
        """Count the words of a text in place of those of the last one. Only the part that differs is read."""
        old, counts = self._text, self._counts
        if text == old:
            return
        start = common_beginning(old, text)
        kept = common_ending(old, text, min(len(old), len(text)) - start)
        start = max(text.rfind(" ", 0, start), text.rfind("\n", 0, start)) + 1
        ends = [at for at in (text.find(blank, len(text) - kept) for blank in " \n") if at >= 0]
        kept = len(text) - min(ends, default=len(text))
        self._text = text
        if len(old) + len(text) - 2 * (start + kept) > len(text):  # reading all is faster
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
    """Yield the words of a part of a text, which begins and ends beside blanks.

    They come in groups, because no other thread runs during the search of a pattern.
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
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def common_ending(one: str, other: str, most: int) -> int:
    """Return the length of the common ending of two texts, at most ``most``."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one.endswith(other[len(other) - middle : len(other) - low], 0, len(one) - low):
            low = middle
        else:
            high = middle - 1
    return low


def word_start(text: str, end: int) -> int:
    """Return the start of the word that ends at an offset, or the offset if none does."""
    while end > 0 and is_word(text[end - 1]):
        end -= 1
    return end


def is_in_prose(session: Session, middle: str) -> bool:
    """Return whether a middle ends inside a string or a comment."""
    state = session.start()
    state.advance(middle)
    return state.inside in PROSE
