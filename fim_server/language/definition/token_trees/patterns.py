"""Regular expressions for comments and strings, built from their delimiters.

The lexer has no look-around and no lazy repetition, so "up to the first `*/`" has to be written out. :func:`up_to` does
that for several words at once. It builds the automaton of Aho and Corasick (1975), for one word that of Knuth, Morris
and Pratt. Eliminating the automaton's states gives the expression.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from fim_server.language.definition.limits import TREE_STATES, TREE_WRITTEN

ANY = r"[\s\S]"
"""Pattern of any character."""

LINE_BREAK = "\n"

LINE_ENDS = "\n\v"
"""Characters that end a line comment. Vertical tabs are in no lexeme but a blank, so that one ends every lexeme."""

NAMED_BY = "0-9A-Za-z_"
"""Characters of the words of here-documents, as they stand in a class."""

_END = "\0"
"""Mark of the state behind a word that ends a text; no word contains it."""

_NAMED = {"\n": r"\n", "\t": r"\t", "\r": r"\r", "\f": r"\f", "\v": r"\v"}
_SPECIAL = frozenset(r"\/.^$*+?()[]{}|-&~#")


def literal(text: str) -> str:
    """Return the pattern of a text."""
    return "".join(_NAMED.get(one, f"\\{one}" if one in _SPECIAL else one) for one in text)


def any_of(characters: Iterable[str]) -> str:
    """Return the pattern of one of some characters."""
    distinct = list(dict.fromkeys(characters))
    return literal(distinct[0]) if len(distinct) == 1 else f"[{literal(''.join(distinct))}]"


def none_of(characters: Iterable[str]) -> str:
    """Return the pattern of one character that is none of some."""
    distinct = list(dict.fromkeys(characters))
    return f"[^{literal(''.join(distinct))}]" if distinct else ANY


def either(patterns: Iterable[str]) -> str:
    """Return the pattern of the texts of some patterns."""
    distinct = list(dict.fromkeys(patterns))
    return distinct[0] if len(distinct) == 1 else f"({'|'.join(distinct)})"


def repeated(patterns: Iterable[str]) -> str:
    """Return the pattern of any number of texts of some patterns."""
    distinct = list(dict.fromkeys(patterns))
    return f"({'|'.join(distinct)})*" if distinct else ""


def up_to(
    ends: Collection[str],
    *,
    escape: str = "",
    escaped: str = ANY,
    skipped: Mapping[str, str | None] | None = None,
    without: str = "",
) -> dict[str, str]:
    """Return, for each of some words, the pattern of the texts that end with it, and in which no such word ends before.

    Where one word begins another one, the longer one counts.

    Args:
        ends: The words.
        escape: Word after which the next character is ordinary, unless the two begin a longer word; empty for none.
        escaped: Pattern of such a character, if it begins no longer word.
        skipped: Words that end nothing, each with the pattern of the text behind it; None where no text may have it.
        without: Characters that the texts lack, except in those words.

    Raises ValueError if a word is empty or has a null character, or if one word stands inside another one. An end may
    begin a longer word, and an escape a word of one more character.
    """
    automaton = _Automaton(ends, escape, skipped or {}, without)
    return automaton.patterns(escaped)


class _Automaton:
    """Automaton that stops at the first of several words; its states are the beginnings of the words."""

    def __init__(self, ends: Collection[str], escape: str, skipped: Mapping[str, str | None], without: str) -> None:
        self._ends, self._escape, self._skipped, self._without = ends, escape, skipped, without
        self._words = {*ends, *skipped, *([escape] if escape else [])}
        self._check()
        self._states = sorted({word[:size] for word in self._words for size in range(len(word) + 1)}, key=len)
        if len(self._states) > TREE_STATES:
            raise ValueError(f"characters of its delimiters: {len(self._states)} is over the limit of {TREE_STATES}")
        self._alphabet = sorted({*"".join(self._words), *without})

    def patterns(self, escaped: str) -> dict[str, str]:
        edges = self._edges(escaped)
        for state in reversed(self._states[1:]):  # the longest first; the empty one is the root
            _eliminate(edges, state)
        around = repeated(edges["", ""])
        return {end: around + either(edges["", end + _END]) for end in self._ends}

    def _edges(self, escaped: str) -> defaultdict[tuple[str, str], list[str]]:
        """Return the alternatives that lead from a state to another one, or to the end of a word."""
        edges: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for state in self._states:
            is_final = any(word in state for word in self._words)
            by_target: defaultdict[str, list[str]] = defaultdict(list)
            for character in self._alphabet:
                if state + character in self._states:
                    by_target[state + character].append(character)
                elif not is_final and character not in self._without:
                    by_target[self._longest(state + character)].append(character)
            taken = [character for target, found in by_target.items() if target for character in found]
            for target, found in by_target.items():
                if target:
                    edges[state, target].append(any_of(found))
            if not is_final:
                edges[state, ""].append(none_of([*taken, *self._without]))
            elif state == self._escape:
                edges[state, ""].append(_but(escaped, taken))
            if state in self._ends:
                edges[state, state + _END].append("")
            behind = self._skipped.get(state)
            if behind is not None:
                edges[state, ""].append(behind)
        return edges

    def _longest(self, text: str) -> str:
        """Return the longest end of a text that is a state."""
        return next(text[at:] for at in range(len(text) + 1) if text[at:] in self._states)

    def _check(self) -> None:
        if self._escape in {*self._ends, *self._skipped}:
            raise ValueError(f"{self._escape!r} is an escape and a delimiter")
        for word in self._words:
            if not word or _END in word:
                raise ValueError(f"{word!r} is no delimiter")
            others = self._words - {word}
            if any(other in word[1:-1] and not word.startswith(other) for other in others):
                raise ValueError(f"another delimiter stands inside {word!r}")
            longer = [other for other in others if other.startswith(word)]
            most = len(word) + (word == self._escape)
            if word not in self._ends and any(len(other) > most for other in longer):
                raise ValueError(f"{word!r} begins {longer[0]!r}")


def _but(pattern: str, characters: Collection[str]) -> str:
    """Return the pattern of a character (any, or all but some) without some more."""
    if not characters:
        return pattern
    return none_of(characters) if pattern == ANY else f"{pattern[:-1]}{literal(''.join(characters))}]"


def _eliminate(edges: defaultdict[tuple[str, str], list[str]], state: str) -> None:
    """Replace the ways through a state by direct ones."""
    loop = edges.pop((state, state), [])
    around = repeated(loop)
    into = [(source, found) for (source, target), found in edges.items() if target == state and found]
    out_of = [(target, found) for (source, target), found in edges.items() if source == state and found]
    for source, before in into:
        for target, after in out_of:
            way = either(before) + around + either(after)
            if len(way) > TREE_WRITTEN:
                raise ValueError(f"a pattern of its delimiters is over the limit of {TREE_WRITTEN} characters")
            edges[source, target].append(way)
    for key in [key for key in edges if state in key]:
        del edges[key]


def nested(opening: str, closing: str, depth: int) -> str:
    """Return the pattern of a comment in which such comments nest, up to a depth, without its opening.

    Raises ValueError if a delimiter is empty, or stands inside the other one.
    """
    behind = None if depth == 1 else nested(opening, closing, depth - 1)
    return up_to([closing], skipped={opening: behind})[closing]


def rest_of_line(excluded: Collection[str], without_first: str = "") -> str:
    """Return the pattern of the texts without line breaks that begin with none of some words.

    Args:
        excluded: The words.
        without_first: Characters that do not begin a text.
    """
    return _rest({word for word in excluded if word}, without_first)


def _rest(excluded: Collection[str], without_first: str = "") -> str:
    rest = f"{none_of(LINE_ENDS)}*"
    if not excluded and not without_first:
        return rest
    firsts = sorted({word[0] for word in excluded})
    ways = [f"{none_of([*firsts, *without_first, *LINE_ENDS])}{rest}"]
    for first in firsts:
        behind = {word[1:] for word in excluded if word[0] == first}
        if "" not in behind:
            ways.append(literal(first) + _rest(behind))
    return f"({'|'.join(ways)})?"


def here_head(opening: str, word: str) -> str:
    """Return the pattern of the first line of a here-document, whose word may stand between quotes."""
    name = literal(word)
    named = f"({name}|\"{name}\"|'{name}')"
    return f"{literal(opening)}{named}([^{NAMED_BY}\"'\\n\\v]{none_of(LINE_ENDS)}*)?"


def here_document(opening: str, word: str, indented: bool) -> str:
    """Return the pattern of a here-document: an opening with a word, a rest of line, lines, and the word again.

    The last line begins with the word, which no further character of a name follows.

    Args:
        opening: Text before the first word.
        word: The word, quoted or not.
        indented: Blanks may stand before the last word.
    """
    blanks, behind = (" \t", r"[ \t]*") if indented else ("", "")
    line = f"{none_of(LINE_ENDS)}*"
    inner = f"{behind}({rest_of_line([word], blanks)}|{literal(word)}[{NAMED_BY}]{line})"
    return f"{here_head(opening, word)}\\n({inner}\\n)*{behind}{literal(word)}"
