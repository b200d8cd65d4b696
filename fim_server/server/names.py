"""Names that exist: where a suggestion loads one that stands nowhere in the document and is not the language's own.

A model that invents a name has mostly gone wrong before (docs/results/suggestions.md). Names are words, taken from the
text without regard to scopes: what is a name where is not asked, so that a broken file has names as well.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import fim_server.languages

if TYPE_CHECKING:
    from collections.abc import Callable

    from fim_server.language import Session
    from fim_server.text.document import Split

WORD = re.compile(r"(?<!\w)[^\W\d]\w*(?![\w\"'`])")
"""No number's exponent, and no prefix of a string."""
LAST_WORD = re.compile(r"\w+\Z")


@dataclass(frozen=True, slots=True)
class OwnNames:
    """A language's names that need no definition, and how others are told to be defined.

    Attributes:
        known: Keywords and names that are there by themselves.
        binding_words: A name after one of them is new.
        binding_texts: A name before one of them is new.
        loading_texts: Texts that begin like those and are none.
        defining_words: A line that begins with one of them, or with a word before it, defines the name after it.
        comment: What makes a line of text a comment; nothing where the language has none.
    """

    known: frozenset[str]
    binding_words: frozenset[str] = frozenset()
    binding_texts: tuple[str, ...] = ()
    loading_texts: tuple[str, ...] = ()
    defining_words: tuple[str, ...] = ()
    comment: str = ""

    def binds(self, text: str, start: int, end: int) -> bool:
        """Whether the word from ``start`` to ``end`` is not loaded there but defined."""
        before = LAST_WORD.search(text[:start].rstrip(" \t"))
        if before is not None and before[0] in self.binding_words:
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
    )


class Names:
    """The names of a document. Other lines than the cursor's are read once while somebody types in one."""

    def __init__(self) -> None:
        self._around = ("", "")
        self._words: frozenset[str] = frozenset()

    def unknown(
        self,
        language: str,
        split: Split,
        text: str,
        session: Session,
        is_known: Callable[[str], bool] = lambda word: False,
    ) -> tuple[int, ...]:
        """The ends, in characters of a suggestion's ``text``, of the names that it loads and nobody knows.

        A name that it defines itself is known after that; words of a string's text are no names. ``is_known``: whether
        a word is known elsewhere.
        """
        own = own_names(language)
        if own is None:
            return ()
        begun = LAST_WORD.search(split.left)
        start = len(split.left) if begun is None else begun.start()
        line = split.left.rfind("\n") + 1
        line_end = split.right.find("\n") if "\n" in split.right else len(split.right)
        words = self._words_around(split.left[:line], split.right[line_end:])
        beside = {*WORD.findall(split.left[line:start]), *WORD.findall(split.right[:line_end])}
        whole = split.left[start:] + text
        found = []
        for match in WORD.finditer(whole):
            end = match.end() - (len(whole) - len(text))
            word = match[0]
            if end <= 0 or word in own.known or word in beside or word in words or is_known(word):
                continue
            if own.binds(split.left[line:start] + whole, match.start() + start - line, match.end() + start - line):
                beside.add(word)
                continue
            if not is_in_string(session, text[:end]):
                found.append(end)
        return tuple(found)

    def _words_around(self, left: str, right: str) -> frozenset[str]:
        if (left, right) != self._around:
            self._around = left, right
            self._words = frozenset(WORD.findall(left)).union(WORD.findall(right))
        return self._words


def is_in_string(session: Session, middle: str) -> bool:
    """Whether a middle's end is inside of a string's text."""
    state = session.start()
    state.advance(middle)
    return state.inside == "string"
