"""Loops: phrases and groups of lines that a suggestion repeats.

Each repetition makes the next one likelier to a model, so its probabilities say nothing against a loop.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from operator import eq
from typing import TYPE_CHECKING

from fim_server.decoding.constants import TRIMMING
from fim_server.language.texts import is_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from fim_server.language.spelling import Spelling

LEXEME = re.compile(r"[\\%]\w+|\w+|[^\w\s]|\n+")
"""A word, a sign, or line breaks. An escape or a format (`\\x00`, `%s`) is a sign."""

NAME = re.compile(r"_*[^\W\d_]")
"""Beginning of a word that is no number."""

MOST_PERIOD = 64
"""Most lexemes of a phrase."""

MOST_LEXEMES = 512
"""Most lexemes of a text that are searched."""

MOST_JOINING = 3
"""Lexemes of a word with what joins it to the one before."""

MOST_LINES = 12
"""Most lines of a group that is compared as a whole."""

MOST_ENUMERATED = 12
"""Most lexemes of a phrase that only counts on."""

LONGEST_NUMBER = 9
"""Digits of a number that is counted on."""

MOST_NESTED = 8
"""Most lexemes of a phrase that nests in itself, such as `List[` in `List[List[int]]`."""

SEPARATORS = frozenset(",;\n")
"""Lexemes between phrases, where nothing nests."""

REPEATED_PART = re.compile(r"([^\W\d]{3,40}?)\1{2,}")
"""Part of a name that comes three times in a row."""

EQUAL = re.compile(b"\x01+")
"""Words in a row that are equal to others."""

DIGITS = re.compile(r"\d+")
WORD = re.compile(r"\w+")
NAMES = re.compile(r"\b[^\W\d_]\w*")
COMMA = ","


@dataclass(frozen=True, slots=True)
class Lexeme:
    """Lexeme of a text; line breaks in a row are one."""

    text: str
    start: int

    @property
    def is_name(self) -> bool:
        """Return whether the lexeme is a word and no number."""
        return NAME.match(self.text) is not None


def start_of_loop(text: str, before: str, spelling: Spelling) -> int | None:
    """Return the offset at which a text's first repeated phrase begins for the second time; None without a repetition.

    ``before``: the cursor's line, up to the cursor.
    """
    starts = [*repeated_phrases(text, spelling, not before.strip()), *repeated_lines(text, before)]
    starts += [found.end(1) for found in REPEATED_PART.finditer(text) if is_part(found[1])]
    return min(starts, default=None)


def is_part(text: str) -> bool:
    """Return whether a part of a name is too long to come three times in a row."""
    letters = sum(character != "_" for character in text)
    return letters >= (TRIMMING.part_letters if letters < len(text) else TRIMMING.plain_part_letters)


def repeated_phrases(text: str, spelling: Spelling, begins_line: bool) -> Iterator[int]:
    """Yield offsets at which phrases of a text begin again; ``begins_line``: whether the text begins a line."""
    pieces = [Lexeme(found[0][:1] if found[0][0] == "\n" else found[0], found.start()) for found in lexemes(text)]
    yield from repeated(pieces, [piece.text for piece in pieces], spelling, begins_line, False)
    flat = flattened(pieces)
    if len(flat) < len(pieces):
        yield from repeated(flat, [piece.text for piece in flat], spelling, begins_line, False)
    yield from enumerated(pieces)
    if any(piece.text.isdigit() for piece in pieces):
        counted = ["0" if piece.text.isdigit() else piece.text for piece in pieces]
        yield from repeated(pieces, counted, spelling, begins_line, True)


def repeated(
    pieces: Sequence[Lexeme], words: Sequence[str], spelling: Spelling, begins_line: bool, counts: bool
) -> Iterator[int]:
    """Yield offsets at which phrases begin for the second time, those of whole lines with a line.

    The first word may be the end of one, and the last word the beginning of one.

    Args:
        pieces: Lexemes of the text.
        words: What to compare of each lexeme.
        spelling: Brackets and operators of the language.
        begins_line: Whether the text begins a line.
        counts: Whether the phrases have other numbers each time.
    """
    for period in range(1, min(MOST_PERIOD, len(words) // 2 + 1) + 1):
        equal = bytearray(map(eq, words, words[period:]))
        if len(words) > period + 1:
            equal[0] |= words[period].endswith(words[0])
            equal[-1] |= words[-1 - period].startswith(words[-1])
        for found in EQUAL.finditer(equal):
            at, end = found.span()
            length = end - at + period
            if 2 * length < 3 * period:
                continue
            phrase = pieces[at : at + period]
            if is_counted(phrase, length) if counts else is_loop(phrase, length, spelling):
                breaks = (place for place in range(at, end) if words[place - 1 : place] == ["\n"])
                line = at if begins_line and not at else next(breaks, at)
                yield pieces[line + period].start
                break


def enumerated(pieces: Sequence[Lexeme]) -> Iterator[int]:
    """Yield offsets at which phrases that only count on begin again: `b, c, d` or `row 2, row 3, row 4`."""
    for period in range(2, min(MOST_ENUMERATED, len(pieces) // (TRIMMING.enumerated_times - 1)) + 1):
        at = run = 0
        while at + period < len(pieces):
            if pieces[at].text == pieces[at + period].text or is_next(pieces[at].text, pieces[at + period].text):
                run += 1
            else:
                run = 0
            at += 1
            if run == (TRIMMING.enumerated_times - 2) * period + 1:
                first = pieces[at - run : at - run + period]
                second = pieces[at - run + period : at - run + 2 * period]
                if any(piece.is_name for piece in first) and any(
                    one.text != other.text for one, other in zip(first, second, strict=True)
                ):
                    yield second[0].start
                    return


def is_next(text: str, other: str) -> bool:
    """Return whether a letter, or a number, comes after another one."""
    if len(text) == len(other) == 1 and text.isalpha():
        return ord(other) == ord(text) + 1
    return text.isdecimal() and other.isdecimal() and len(text) < LONGEST_NUMBER and int(other) == int(text) + 1


def flattened(pieces: Sequence[Lexeme]) -> list[Lexeme]:
    """Return lexemes with each nested phrase once, so that a phrase which nests deeper each time repeats.

    `x[int]`, `x[x[int]]` and `x[x[x[int]]]` all become `x[int]`.
    """
    flat: list[Lexeme] = []
    texts: list[str] = []
    for piece in pieces:
        flat.append(piece)
        texts.append(piece.text)
        for period in range(1, min(MOST_NESTED, len(flat) // 2) + 1):
            if texts[-period:] == texts[-2 * period : -period] and SEPARATORS.isdisjoint(texts[-period:]):
                del flat[-period:], texts[-period:]
                break
    return flat


def lexemes(text: str) -> list[re.Match[str]]:
    """Return the first lexemes of a text."""
    found = []
    for piece in LEXEME.finditer(text):
        found.append(piece)
        if len(found) == MOST_LEXEMES:
            break
    return found


def is_loop(phrase: Sequence[Lexeme], length: int, spelling: Spelling) -> bool:
    """Return whether a phrase that repeats over ``length`` lexemes is a loop."""
    times, rest = divmod(length, len(phrase))
    names = [piece.is_name for piece in phrase]
    if any(names[:rest]) and (2 * rest >= len(phrase) or not any(names[rest:])):
        times += times >= TRIMMING.prose_times  # the last one lacks signs alone, or less than half
    texts = [piece.text for piece in phrase]
    count = sum(is_word(one[0]) for one in texts)
    if not any(names) or times < TRIMMING.prose_times:
        return False
    closed_by = dict(spelling.brackets)
    opened = [at for at, text in enumerate(texts) if text in closed_by]
    if any(closed_by[texts[at]] not in texts for at in opened):
        is_call = len(opened) == 1 and follows(phrase, opened[0]) and spelling.operators.isdisjoint(texts)
        nests = is_call and count < TRIMMING.prose_words and COMMA not in texts
        return times >= (TRIMMING.nested_times if nests else TRIMMING.words_times)
    if COMMA in texts:
        return length >= TRIMMING.words_times * len(phrase)
    if count >= TRIMMING.prose_words and "\n" not in texts:
        return times >= TRIMMING.prose_times
    if count == 1 and 1 < len(texts) <= MOST_JOINING and spelling.operators.isdisjoint(texts):
        return times >= TRIMMING.word_times
    return times >= TRIMMING.words_times


def follows(phrase: Sequence[Lexeme], at: int) -> bool:
    """Return whether no blank stands before a lexeme of a phrase, other than its first."""
    return not at or phrase[at - 1].start + len(phrase[at - 1].text) == phrase[at].start


def is_counted(phrase: Sequence[Lexeme], length: int) -> bool:
    """Return whether a phrase that repeats over ``length`` lexemes, each time with other numbers, is a loop."""
    return length >= TRIMMING.counted_phrase_times * len(phrase) and sum(piece.is_name for piece in phrase) > 1


def repeated_lines(text: str, before: str) -> Iterator[int]:
    """Yield offsets at which lines begin for the second time: a group in a row, or one line with others between.

    ``before``: as in :func:`start_of_loop`; if it is no indentation, the first line is the rest of one.
    """
    starts, at = [], 0
    for line in text.split("\n"):
        starts.append(at)
        at += len(line) + 1
    whole = [text[start:].split("\n", 1)[0].rstrip() for start in starts]
    if not before.strip():
        whole[0] = before + whole[0]
    places = [place for place, line in enumerate(whole) if line.strip() and (place or not before.strip())]
    lines = [whole[place] for place in places]
    for at in range(1, len(lines)):
        for count in range(1, min(at, MOST_LINES) + 1):
            group = lines[at : at + count]
            if group == lines[at - count : at] and any(map(is_telling, group)):
                yield starts[places[at]]
                return
    times, seen = Counter(lines), set[str]()
    for at, line in enumerate(lines):
        if times[line] >= TRIMMING.line_times and line in seen and len(WORD.findall(line)) >= TRIMMING.line_words:
            yield starts[places[at]]
            return
        seen.add(line)
    counted = [DIGITS.sub("0", line) for line in lines]
    for at in range(len(counted) - TRIMMING.counted_line_times + 1):
        if (
            len(set(counted[at : at + TRIMMING.counted_line_times])) == 1
            and len(NAMES.findall(counted[at])) >= TRIMMING.line_words
        ):
            yield starts[places[at + 1]]
            return


def is_telling(line: str, least: int = TRIMMING.line_characters) -> bool:
    """Return whether a line is too specific to be written twice in a row: it has a name or a value."""
    return sum(character.isalnum() for character in line) >= least


def first_complete(text: str, start: int, is_complete: Callable[[str], bool], most: int) -> str | None:
    """Return the shortest complete beginning longer than ``start`` of the first ``most``; None if none is complete.

    It ends with no part of a word.
    """
    return complete_beginning(text, range(start + 1, len(text) + 1), is_complete, most)


def last_complete(text: str, end: int, is_complete: Callable[[str], bool], most: int) -> str | None:
    """Return the longest complete beginning up to ``end`` of the last ``most``; None if none is complete.

    It ends with no part of a word.
    """
    return complete_beginning(text, range(end, 0, -1), is_complete, most)


def complete_beginning(text: str, ends: Iterable[int], is_complete: Callable[[str], bool], most: int) -> str | None:
    """Return the first complete beginning of at most ``most`` that end with a whole lexeme."""
    whole = (
        end
        for end in ends
        if not text[end - 1].isspace() and not (is_word(text[end - 1]) and is_word(text[end : end + 1]))
    )
    return next((text[:end] for end in islice(whole, most) if is_complete(text[:end])), None)
