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
from fim_server.system.one_thread import OneThread

if TYPE_CHECKING:
    from fim_server.suggest.ranking.reasons import Suppression
    from fim_server.suggest.suggestion import Suggestion

CAPACITY = 64
"""Answers that are kept, for all documents."""

NEAR = 64
"""Characters before the cursor that are compared before the whole text, which may be long."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Suggestions for one cursor.

    Attributes:
        key: Document and language. Answers hold for no other ones.
        left: The text before the cursor.
        right: The text after it.
        single_line: Whether one line was wanted.
        suggestions: The suggestions, the best first.
        complete: Whether the request was explicit, so that the answer has alternatives.
        prefetched: Whether the answer was prepared before a request.
        moved: Whether the answer was given at an earlier cursor, and the user typed along.
        reason: Reason for the absence of suggestions, in words.
        word_ends: Whether the word before the cursor was whole, so that no suggestion extends it.
        above: Number of lines before the cursor that are other cells of a notebook.
        lasting: Whether the same request gets the same answer. False after a deadline and without a model.
        suppressed: Suggestions that are not shown, and why.
    """

    key: tuple[str, str]
    left: str
    right: str
    single_line: bool
    suggestions: tuple[Suggestion, ...]
    complete: bool
    prefetched: bool = False
    moved: bool = False
    reason: str | None = None
    word_ends: bool = False
    above: int = 0
    lasting: bool = True
    suppressed: tuple[Suppression, ...] = ()

    def as_prefetched(self) -> Answer:
        """Return this answer, marked as prepared before a request."""
        return replace(self, prefetched=True)


class AnswerCache:
    """The most recent answers. Used by the protocol's thread alone."""

    def __init__(self, capacity: int = CAPACITY, covers: bool = True) -> None:
        """``covers``: whether a suggestion may replace closers right of the cursor."""
        self._thread = OneThread()
        self._capacity = capacity
        self.covers = covers
        self._answers: OrderedDict[tuple[tuple[str, str], str, str, bool, bool], Answer] = OrderedDict()

    def add(self, answer: Answer) -> None:
        """Keep an answer; beyond the capacity, drop the least recently used one."""
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
                found = moved(answer, left, right, single_line, MOST_CLOSERS if self.covers else 0)
            if found is None or (word_ends and any(is_word(one.text[:1]) for one in found.suggestions)):
                continue
            if asked and (found.moved or not found.complete):
                if all(one.is_recalled for one in found.suggestions):
                    continue
                found = replace(found, suggestions=tuple(sorted(found.suggestions, key=lambda one: one.is_recalled)))
            self._answers.move_to_end(place)
            return found if alternatives else replace(found, suggestions=found.suggestions[:1])
        return None

    def saw(self, suggestion: Suggestion, left: str) -> None:
        """Note how much of a suggestion is on the screen at a cursor."""
        assert self._thread.is_current()
        end = len(left) + len(suggestion.text)
        for place, answer in self._answers.items():
            if any(known.identity == suggestion.identity for known in answer.suggestions):
                seen = end - len(answer.left)
                suggestions = (
                    replace(known, display=replace(known.display, seen=seen))
                    if known.identity == suggestion.identity
                    else known
                    for known in answer.suggestions
                )
                self._answers[place] = replace(answer, suggestions=tuple(suggestions))

    def forget(self, uri: str) -> None:
        assert self._thread.is_current()
        for place in [place for place in self._answers if place[0][0] == uri]:
            del self._answers[place]

    def clear(self) -> None:
        assert self._thread.is_current()
        self._answers.clear()


def moved(answer: Answer, left: str, right: str, single_line: bool, most_covered: int = MOST_CLOSERS) -> Answer | None:
    """Return an answer at another cursor; None if the edit leads elsewhere.

    ``most_covered``: most characters right of the cursor that a suggestion may replace.

    Where one line is wanted (inside a word, before a bracket of the editor), several lines are cut to the first.
    Exceptions are explicit requests, a first line that needs a block, and recalled lines on the screen: what is
    mostly right does not shrink while the user types along.
    """
    near = max(0, len(answer.left) - NEAR)
    if not left.startswith(answer.left[near:], near) or not left.startswith(answer.left):
        return None
    typed = left[len(answer.left) :]
    suggestions = []
    for suggestion in answer.suggestions:
        rest = rest_of(suggestion, answer.right, typed, right, most_covered)
        owes = rest is not None and rest.display.owes_block and "\n" not in typed
        if rest is not None and single_line and not (answer.complete or owes or is_seen_with_lines(rest)):
            rest = first_line(rest)
        if rest is not None:
            lines = moved_down(rest.origin.covered_lines, answer.left.count("\n") - answer.above, typed.count("\n"))
            suggestions.append(replace(rest, origin=replace(rest.origin, covered_lines=lines)))
    if not suggestions:
        return None
    if all(suggestion.is_recalled for suggestion in suggestions):
        # The user types something else than the model wrote, so its text says nothing about the others.
        suggestions = [without_model(one) for one in suggestions]
    return replace(answer, left=left, right=right, single_line=single_line, suggestions=tuple(suggestions), moved=True)


def without_model(suggestion: Suggestion) -> Suggestion:
    """Return a recalled suggestion with the likelihoods of the project's memory alone."""
    likelihoods = suggestion.likelihoods
    if not likelihoods.recalled:
        return suggestion
    return replace(suggestion, likelihoods=replace(likelihoods, tokens=likelihoods.recalled, recalled=()))


def moved_down(stretches: tuple[range, ...], at: int, count: int) -> tuple[range, ...]:
    """Return stretches of a document's lines after ``count`` lines were inserted at line ``at``.

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
    """Return whether several lines of a recalled suggestion are on the screen."""
    return suggestion.is_recalled and 0 <= suggestion.text.find("\n") < suggestion.display.seen


def first_line(suggestion: Suggestion) -> Suggestion | None:
    """Return the first line of a suggestion up to its last cut; None if it has none."""
    end = suggestion.text.find("\n")
    if end < 0:
        return suggestion
    cut = max((cut for cut in suggestion.ends.cuts if cut <= end), default=0)
    return replace(suggestion, text=suggestion.text[:cut]) if suggestion.text[:cut].strip() else None


def rest_of(
    suggestion: Suggestion, was_right: str, typed: str, right: str, most_covered: int = MOST_CLOSERS
) -> Suggestion | None:
    """Return the rest of a suggestion after a part of it was typed; None if something else was typed."""
    if not suggestion.text.startswith(typed):
        return None
    text = suggestion.text[len(typed) :]
    kept = was_right[suggestion.covered :]
    covered = len(right) - len(kept)
    if not text or not 0 <= covered <= most_covered or not right.endswith(kept):
        return None
    closers = right[:covered]
    if not suggestion.closers.issuperset(closers) or not contains_in_order(text, closers):
        return None
    return suggestion.after(len(typed), covered)
