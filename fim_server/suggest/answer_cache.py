"""Recent answers, so that typing along with a suggestion, or accepting a word of it, costs no model call.

A suggestion stands for a whole document: ``left + text + right[covered:]``. It still holds after each edit that leads
towards that document. The new left side is then a beginning of ``left + text``. The new right side ends with
``right[covered:]``, and only closers that the editor inserted stand before that.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fim_server.language.texts import is_word
from fim_server.suggest.context.cursor import MOST_CLOSERS, contains_in_order
from fim_server.suggest.context.placeholders import StandIn
from fim_server.suggest.ranking.red_flags import NO_DOUBT, Doubt
from fim_server.system.one_thread import OneThread

if TYPE_CHECKING:
    from fim_server.decoding.results import Completion, Written
    from fim_server.text.document import Split

CAPACITY = 64
"""Suggestions that are remembered, all documents together."""

NEAR = 64
"""Characters before a cursor that are compared before all of the text is, which may be long."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A text to be inserted, with the closers right of the cursor that it stands for."""

    identity: str
    """Names it towards the editor; what is left of a text that was typed in part keeps its name."""
    text: str
    covered: int
    """Characters right of the cursor, on its line, that the text replaces and contains."""
    guarantee: str
    completion: Completion
    """Where it comes from."""
    closers: frozenset[str] = frozenset()
    """The characters that editors put right of the cursor in its language."""
    covered_lines: tuple[range, ...] = ()
    """The document's lines, from 0, that the guarantee covers as they stand, if it is `partial`."""
    stand_in: StandIn | None = None
    """Text that has to follow for the lines from the cursor's on to parse, where it is missing."""
    cuts: tuple[int, ...] = ()
    """The lengths at which it may end, in characters; the whole is the last."""
    lexemes: tuple[int, ...] = ()
    """The lengths at which lexemes of it end."""
    going_on: tuple[int, ...] = ()
    """Those of the cuts at which an expression goes on: with a call, an index, an attribute."""
    written: tuple[Written, ...] = ()
    """The tokens of the text."""
    unknown: tuple[int, ...] = ()
    """The ends of names in it that it loads and nobody knows, in characters."""
    doubt: Doubt = NO_DOUBT
    """From where on it is hardly meant."""
    fresh: bool = False
    """Whether the cursor is in a pair of brackets with nothing in it."""
    recalled: bool = False
    """Whether it is the project's memory's, and no model's."""
    header: bool = False
    """Whether the cursor's line is one that a block belongs to."""
    owes_block: bool = False
    """Whether the cursor's line needs a block, of which there is nothing yet."""
    calibrated: bool = False
    """Whether the probabilities of its tokens are shares of such texts that were right, and need no map to be."""
    confidence: float | None = None
    """How likely its first lexeme is right, where that was asked for."""
    seen: int = 0
    """How many characters of it somebody has before their eyes."""
    alone: tuple[Written, ...] = ()
    """The tokens as the memory has them, where a model has written, too; empty where :attr:`written` are those."""

    def document(self, split: Split) -> tuple[str, str]:
        """The document after acceptance, cut behind the text."""
        return split.left + self.text, split.right[self.covered :]


@dataclass(frozen=True, slots=True)
class Answer:
    """The suggestions for one cursor."""

    key: tuple[str, str]
    """Document and language: suggestions for one are none for another."""
    left: str
    right: str
    single_line: bool
    suggestions: tuple[Suggestion, ...]
    complete: bool
    """Whether somebody asked, so that alternatives were looked for."""
    prefetched: bool = False
    """Whether nobody had asked yet."""
    moved: bool = False
    """Whether it was given at another cursor, and what was typed since is what it offered."""
    reason: str | None = None
    """Why there is no suggestion, in words."""
    word_ends: bool = False
    """Whether the word left of the cursor was whole, so that none of the suggestions makes it longer."""
    above: int = 0
    """Number of lines of the left side that are other cells of a notebook."""
    lasting: bool = True
    """Whether the same question would be answered the same; not after a deadline, or without a model."""

    def as_prefetched(self) -> Answer:
        """This answer, marked as prepared before anybody asked."""
        return replace(self, prefetched=True)


class AnswerCache:
    """The last answers. Used by one thread: the protocol's."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._thread = OneThread()
        self._capacity = capacity
        self._answers: OrderedDict[tuple[tuple[str, str], str, str, bool, bool], Answer] = OrderedDict()

    def add(self, answer: Answer) -> None:
        """Remember an answer; the least recently used one is forgotten beyond the capacity."""
        assert self._thread.is_current()
        place = (answer.key, answer.left, answer.right, answer.single_line, answer.word_ends)
        known = self._answers.pop(place, None)
        if known is not None and known.complete and not answer.complete:
            answer = known
        self._answers[place] = answer
        while len(self._answers) > self._capacity:
            self._answers.popitem(last=False)

    def find(
        self,
        key: tuple[str, str],
        left: str,
        right: str,
        single_line: bool,
        alternatives: bool,
        asked: bool = False,
        word_ends: bool = False,
    ) -> Answer | None:
        """Return the latest answer that holds at a cursor, or None.

        An answer without suggestions holds only where it was given.

        Args:
            key: Document and language.
            left: The text before the cursor.
            right: The text after it.
            single_line: Whether one line is wanted.
            alternatives: Return an answer with alternatives only. Without this, the first suggestion is enough.
            asked: Whether the request is explicit. The model's suggestions then come first; an answer without any of
                them counts only for the same request.
            word_ends: The word before the cursor is whole; no suggestion may extend it.
        """
        assert self._thread.is_current()
        for place, answer in reversed(self._answers.items()):
            if answer.key != key or (alternatives and not answer.complete):
                continue
            if answer.left == left and answer.word_ends != word_ends:
                continue
            if (answer.left, answer.right) == (left, right):
                if answer.single_line != single_line:
                    continue
                found: Answer | None = answer
            else:
                found = moved(answer, left, right, single_line)
            if found is None or (word_ends and any(is_word(suggestion.text[:1]) for suggestion in found.suggestions)):
                continue
            if asked and (found.moved or not found.complete):
                if all(suggestion.recalled for suggestion in found.suggestions):
                    continue
                found = replace(found, suggestions=tuple(sorted(found.suggestions, key=lambda one: one.recalled)))
            self._answers.move_to_end(place)
            return found if alternatives else replace(found, suggestions=found.suggestions[:1])
        return None

    def saw(self, suggestion: Suggestion, left: str) -> None:
        """Note how much of a suggestion is shown at a cursor."""
        assert self._thread.is_current()
        end = len(left) + len(suggestion.text)
        for place, answer in self._answers.items():
            if any(known.identity == suggestion.identity for known in answer.suggestions):
                suggestions = (
                    replace(known, seen=end - len(answer.left)) if known.identity == suggestion.identity else known
                    for known in answer.suggestions
                )
                self._answers[place] = replace(answer, suggestions=tuple(suggestions))

    def forget(self, uri: str) -> None:
        """Forget what belongs to a document."""
        assert self._thread.is_current()
        for place in [place for place in self._answers if place[0][0] == uri]:
            del self._answers[place]

    def clear(self) -> None:
        """Forget everything."""
        assert self._thread.is_current()
        self._answers.clear()


def moved(answer: Answer, left: str, right: str, single_line: bool) -> Answer | None:
    """What an answer says at another cursor, or None if that leads elsewhere.

    Where one line is wanted (within a word, before a bracket that the editor has closed), several lines are cut to the
    first, unless somebody asked for them, the first needs a block, or somebody sees them and they are the project's
    memory's: what is asked for, and what is mostly right, does not shrink while it is typed.
    """
    near = max(0, len(answer.left) - NEAR)
    if not left.startswith(answer.left[near:], near) or not left.startswith(answer.left):
        return None
    typed = left[len(answer.left) :]
    suggestions = []
    for suggestion in answer.suggestions:
        rest = rest_of(suggestion, answer.right, typed, right)
        owes = rest is not None and rest.owes_block and "\n" not in typed
        if rest is not None and single_line and not (answer.complete or owes or is_seen_with_lines(rest)):
            rest = first_line(rest)
        if rest is not None:
            lines = moved_down(rest.covered_lines, answer.left.count("\n") - answer.above, typed.count("\n"))
            suggestions.append(replace(rest, covered_lines=lines))
    if not suggestions:
        return None
    if all(suggestion.recalled for suggestion in suggestions):
        # What the model has written is not what is typed, so that it says nothing against the others any more.
        suggestions = [
            replace(suggestion, written=suggestion.alone, alone=()) if suggestion.alone else suggestion
            for suggestion in suggestions
        ]
    return replace(answer, left=left, right=right, single_line=single_line, suggestions=tuple(suggestions), moved=True)


def moved_down(stretches: tuple[range, ...], at: int, count: int) -> tuple[range, ...]:
    """Return stretches of a document's lines as they are once the line ``at`` has become ``count`` more.

    >>> moved_down((range(2), range(3, 5)), 2, 1), moved_down((range(5),), 2, 1)
    ((range(0, 2), range(4, 6)), (range(0, 6),))
    """
    if not count:
        return stretches
    return tuple(
        range(stretch.start + count * (stretch.start > at), stretch.stop + count * (stretch.stop > at))
        for stretch in stretches
    )


def is_seen_with_lines(suggestion: Suggestion) -> bool:
    """Whether somebody has lines of a suggestion before their eyes that the project's memory has."""
    return suggestion.recalled and 0 <= suggestion.text.find("\n") < suggestion.seen


def first_line(suggestion: Suggestion) -> Suggestion | None:
    """The first line of a suggestion, as far as it may end there; None where it may not."""
    end = suggestion.text.find("\n")
    if end < 0:
        return suggestion
    cut = max((cut for cut in suggestion.cuts if cut <= end), default=0)
    return replace(suggestion, text=suggestion.text[:cut]) if suggestion.text[:cut].strip() else None


def rest_of(suggestion: Suggestion, was_right: str, typed: str, right: str) -> Suggestion | None:
    """What is left of a suggestion after a part of it was typed."""
    if not suggestion.text.startswith(typed):
        return None
    text = suggestion.text[len(typed) :]
    kept = was_right[suggestion.covered :]
    covered = len(right) - len(kept)
    if not text or not 0 <= covered <= MOST_CLOSERS or not right.endswith(kept):
        return None
    closers = right[:covered]
    if not suggestion.closers.issuperset(closers) or not contains_in_order(text, closers):
        return None
    return replace(
        suggestion,
        text=text,
        covered=covered,
        cuts=tuple(cut - len(typed) for cut in suggestion.cuts if cut > len(typed)),
        going_on=tuple(end - len(typed) for end in suggestion.going_on if end > len(typed)),
        lexemes=tuple(end - len(typed) for end in suggestion.lexemes if end > len(typed)),
        written=without_typed(suggestion.written, len(typed)),
        alone=without_typed(suggestion.alone, len(typed)),
        fresh=False,
        unknown=tuple(end - len(typed) for end in suggestion.unknown if end > len(typed)),
        doubt=suggestion.doubt.after(len(typed)),
        seen=max(0, suggestion.seen - len(typed)),
    )


def without_typed(written: tuple[Written, ...], typed: int) -> tuple[Written, ...]:
    """The tokens of what is left of a text after its first ``typed`` characters.

    Of a token that was typed in part, the rest is likelier than the whole: by as much as it is shorter.
    """
    rest, at = [], 0
    for token in written:
        if token.end > typed:
            share = min(1.0, (token.end - typed) / max(1, token.end - at))
            rest.append(replace(token, end=token.end - typed, probability=token.probability**share))
        at = token.end
    return tuple(rest)
