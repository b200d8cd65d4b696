"""Value of a suggestion for a user who knows which text comes.

Pure: a text with a cursor, a suggestion, and the truth.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.server.played_editor import QUOTES, Editor, first_word
from benchmarks.server.scenarios import Item
from benchmarks.suggestions.typed_language import TypedLanguage, typed
from fim_server.datasets.python.text import LANGUAGE as PYTHON
from fim_server.language.texts import is_word

BELOW_LINES = 3
"""Number of lines that count as standing just below."""

LINE_END = "end of the line"
LINE_START = "beginning of the line"
BRACKETS, EMPTY_BRACKETS = "fresh brackets", "fresh brackets, nothing belongs there"
STRING, DOT, IN_WORD, AFTER_WORD, ELSEWHERE = "in a string", "after a dot", "in a word", "after a word", "elsewhere"
BESIDE = "beside the way"

KINDS = (LINE_START, IN_WORD, AFTER_WORD, DOT, BRACKETS, EMPTY_BRACKETS, STRING, ELSEWHERE, LINE_END, BESIDE)
"""Kinds of place. At a line's end nothing of the line is missing; beside the way a key has to be taken back first."""

MEMBERS = (".", "->", "::")
"""Texts that a member stands behind."""


@dataclass(frozen=True)
class Truth:
    """Wanted document: ``text``, which the user writes up to ``end``."""

    text: str
    end: int
    language: TypedLanguage = field(default_factory=lambda: typed(PYTHON), repr=False)

    def rest(self, cursor: int) -> str:
        """Return the missing text at a cursor whose left side is written."""
        return self.text[cursor : self.end]

    def below(self) -> list[str]:
        """The lines that stand just below what is missing, without indentation; blank ones left out."""
        lines = (line.strip() for line in self.text[self.end : self.end + 2000].split("\n")[1:])
        return [line for line in lines if line][:BELOW_LINES]


@dataclass(frozen=True)
class Judgement:
    """Value of a suggestion.

    Attributes:
        lexeme: True if its first lexeme is the next one of the line.
        line: True if accepting its first line completes the line.
        agrees: True if it is right as far as it goes.
        word: Its first word, where that is right.
        lines: Number of its lines after the first.
        right: Number of these that follow in the truth, up to the first that does not.
        below: Number of these that stand just below already.
    """

    lexeme: bool
    line: bool
    agrees: bool
    word: str
    lines: int
    right: int
    below: int


def judge(editor: Editor, truth: Truth, item: Item) -> Judgement:
    """Judge an offer at a cursor whose left side is as in the truth."""
    cursor = editor.cursor
    rest = truth.rest(cursor)
    further = item.text.split("\n")[1:]
    to_come = rest.split("\n")[1:]
    matching = 0
    while matching < min(len(further), len(to_come)) and further[matching].rstrip() == to_come[matching].rstrip():
        matching += 1
    below = truth.below()
    word = first_word(item.text, item.covered)
    return Judgement(
        *_line(editor, truth, item),
        rest.startswith(item.text)
        and _spare(editor.closers[item.covered :], rest[len(item.text) :]) <= _spare(editor.closers, rest),
        word if word and rest.startswith(word) else "",
        len(further),
        matching,
        sum(line.strip() in below for line in further),
    )


def _line(editor: Editor, truth: Truth, item: Item) -> tuple[bool, bool]:
    """Return whether the first lexeme is right, and the whole line."""
    left, lexeme_end = editor.line, truth.language.lexeme_end
    wanted = left + truth.text[editor.cursor :].partition("\n")[0]  # what stays right of the edit is of the line, too
    offered, several, _ = item.text.partition("\n")
    following = editor.text[editor.cursor + item.covered :].partition("\n")[0]
    if "\n" in truth.rest(editor.cursor):
        following = following.removeprefix(editor.closers[item.covered :])  # they go down with the next Enter
    found = left + offered + ("" if several else following)
    end = lexeme_end(wanted, len(left))
    reached = len(left) + len(offered)
    if not several and item.covered < len(editor.closers) and following[:1] in QUOTES:
        reached += 1  # the quote that came by itself ends the string that the offer goes on with
    lexeme = end is not None and reached >= end and found[:end] == wanted[:end] and lexeme_end(found, len(left)) == end
    return lexeme, found.rstrip() == wanted.rstrip()


def _spare(closers: str, rest: str) -> int:
    """Return the number of closers that remain after typing ``rest``, which types over some in their order."""
    for character in rest:
        if closers.startswith(character):
            closers = closers[1:]
    return len(closers)


def kind_of(editor: Editor, truth: Truth) -> str:
    """The kind of place at a cursor."""
    if not truth.text.startswith(editor.text[: editor.cursor]):
        return BESIDE
    rest, line = truth.rest(editor.cursor), editor.line
    if not rest or rest.startswith("\n"):
        return LINE_END
    if not line.strip():
        return LINE_START
    last = line[-1]
    if last not in QUOTES and editor.closers and editor.keyboard.closer_of(last) == editor.closers[0]:
        return EMPTY_BRACKETS if rest.lstrip()[:1] == editor.closers[0] else BRACKETS
    if editor.keyboard.is_inside_a_string_or_comment(line):
        return STRING
    if line.endswith(MEMBERS):
        return DOT
    if is_word(last):
        return IN_WORD if is_word(rest[0]) else AFTER_WORD
    return ELSEWHERE
