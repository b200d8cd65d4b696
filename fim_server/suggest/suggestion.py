"""A suggestion: its text, the positions at which it may end, its likelihoods, its origin, and its display."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fim_server.suggest.constants import RANKING
from fim_server.suggest.ranking.red_flags import NO_FLAG, RedFlag

if TYPE_CHECKING:
    from fim_server.decoding.results import Completion, Written
    from fim_server.suggest.context.placeholders import StandIn
    from fim_server.text.document import Split


@dataclass(frozen=True, slots=True)
class Ends:
    """Lengths of beginnings of a text, in characters.

    Attributes:
        cuts: Lengths at which the text may end: the program is complete there, and no word or string is cut.
        lexemes: Lengths at which no word or string is cut.
        continued: The cuts after which the expression continues with a call or an index, or the list with an element.
    """

    cuts: tuple[int, ...] = ()
    lexemes: tuple[int, ...] = ()
    continued: tuple[int, ...] = ()

    def after(self, typed: int) -> Ends:
        """Return the ends of the rest after ``typed`` characters."""
        return Ends(*(shifted(lengths, typed) for lengths in (self.cuts, self.lexemes, self.continued)))


@dataclass(frozen=True, slots=True)
class Likelihoods:
    """Tokens of a text, and all that changes its confidence.

    Attributes:
        tokens: The tokens with their probabilities.
        unknown: Ends of loaded names that the document does not have, in characters.
        new_words: Ends of words that neither document nor project has, in characters, where the language's names are
            unknown.
        flag: The suspicious part of the text.
        is_calibrated: Whether the probabilities are shares of right texts already.
        recalled: The tokens as the project's memory has them, if the model's text changed :attr:`tokens`.
        shift: Log odds that are added to the confidence of the first lexeme, since a part of the text was typed.
    """

    tokens: tuple[Written, ...] = ()
    unknown: tuple[int, ...] = ()
    flag: RedFlag = NO_FLAG
    is_calibrated: bool = False
    recalled: tuple[Written, ...] = ()
    new_words: tuple[int, ...] = ()
    shift: float = 0.0

    def after(self, typed: int) -> Likelihoods:
        """Return the likelihoods of the rest after ``typed`` characters."""
        return Likelihoods(
            tokens_after(self.tokens, typed),
            shifted(self.unknown, typed),
            self.flag.after(typed),
            self.is_calibrated,
            tokens_after(self.recalled, typed),
            shifted(self.new_words, typed),
            RANKING.typed_shift if typed else self.shift,
        )


@dataclass(frozen=True, slots=True)
class Origin:
    """Source of a suggestion, and its guarantee.

    Attributes:
        completion: The decoded text, or the recalled one in the same form.
        guarantee: The guarantee of the session at the cursor.
        covered_lines: The document's lines, from 0, that a `partial` guarantee covers as they stand.
        stand_in: Missing text after the cursor's line with which the program parses.
        is_recalled: Whether the project's memory made the text, and not the model.
    """

    completion: Completion
    guarantee: str
    covered_lines: tuple[range, ...] = ()
    stand_in: StandIn | None = None
    is_recalled: bool = False


@dataclass(frozen=True, slots=True)
class Display:
    """Facts that decide whether a suggestion is shown.

    Attributes:
        is_fresh: Whether the cursor is between empty brackets.
        is_header: Whether the cursor's line is the header of a block.
        owes_block: Whether that block is missing.
        seen: Number of characters of the text that are on the screen.
        confidence: Confidence of the first lexeme, once it was compared with the threshold.
    """

    is_fresh: bool = False
    is_header: bool = False
    owes_block: bool = False
    seen: int = 0
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Text to insert at the cursor in place of the closers on its right.

    Attributes:
        identity: Name of the suggestion for the editor. The rest of a suggestion typed in part keeps it.
        text: The text.
        covered: Number of characters right of the cursor that the text replaces and contains.
        origin: Its source and guarantee.
        closers: Characters that editors insert right of the cursor in this language.
        ends: Positions at which it may end.
        likelihoods: Its tokens and their confidence.
        display: Facts that decide whether it is shown.
    """

    identity: str
    text: str
    covered: int
    origin: Origin
    closers: frozenset[str] = frozenset()
    ends: Ends = field(default_factory=Ends)
    likelihoods: Likelihoods = field(default_factory=Likelihoods)
    display: Display = field(default_factory=Display)

    @property
    def tokens(self) -> tuple[Written, ...]:
        return self.likelihoods.tokens

    @property
    def flag(self) -> RedFlag:
        return self.likelihoods.flag

    @property
    def is_recalled(self) -> bool:
        return self.origin.is_recalled

    def document(self, split: Split) -> tuple[str, str]:
        """Return the document after acceptance, cut behind the text."""
        return split.left + self.text, split.right[self.covered :]

    def after(self, typed: int, covered: int) -> Suggestion:
        """Return the rest after ``typed`` characters, which replaces ``covered`` characters right of the cursor."""
        display = replace(self.display, is_fresh=False, seen=max(0, self.display.seen - typed))
        return replace(
            self,
            text=self.text[typed:],
            covered=covered,
            ends=self.ends.after(typed),
            likelihoods=self.likelihoods.after(typed),
            display=display,
        )


def shifted(lengths: tuple[int, ...], typed: int) -> tuple[int, ...]:
    """Return the lengths of what remains of longer beginnings after ``typed`` characters."""
    return tuple(length - typed for length in lengths if length > typed)


def tokens_after(tokens: tuple[Written, ...], typed: int) -> tuple[Written, ...]:
    """Return the tokens of the rest of a text after ``typed`` characters.

    The rest of a token typed in part is likelier than the token, in proportion to its length.
    """
    rest, start = [], 0
    for token in tokens:
        if token.end > typed:
            share = min(1.0, (token.end - typed) / max(1, token.end - start))
            rest.append(replace(token, end=token.end - typed, probability=token.probability**share))
        start = token.end
    return tuple(rest)


def likelihood(tokens: tuple[Written, ...], end: int) -> float:
    """Return the probability of the first ``end`` characters of a text: that of the tokens that they are in."""
    found, start = 1.0, 0
    for token in tokens:
        if start >= end:
            break
        found *= token.probability
        start = token.end
    return found
