"""Lines with which a block begins, where there is none yet: what is offered there has to begin it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.decoding.results import StopReason, Won, Written
from fim_server.language.texts import is_word
from fim_server.suggest.context.cursor import MOST_BLANK, Place, indentation
from fim_server.suggest.context.placeholders import empty_block
from fim_server.suggest.postprocess.identifiers import own_names
from fim_server.suggest.ranking.display import likelihood

if TYPE_CHECKING:
    from fim_server.decoding.results import Completion
    from fim_server.language import Session
    from fim_server.text.document import Split

FIRST_WORD = re.compile(r"\s*(\w+)\W")
"""A line's, once it is typed."""

NAMED = re.compile(r"\s*(?:[=,]|\.(?![.\d]))")
"""What comes after a name and after no word that begins a block, which `...` or `.5` may."""

EMPTY_BLOCK_LIKELIHOOD = 0.1
"""So that nothing is offered any more of what stands only for a block once the line above it is typed."""

LEAST_OF_FIRST_LINE = 0.3
"""How likely the first line of a block has to be once its header is written. In the packages for tuning 15 of 241 that
were less likely were right, and 6 of 21 others (`benchmarks/suggestions/blocks.py`)."""


def once_typed(split: Split, text: str) -> Split:
    """The cursor behind the first line of a text: what it begins with may be written by that."""
    return replace(split, left=split.left + text.split("\n", 1)[0])


def is_header(split: Split, language: str) -> bool:
    """Whether the cursor's line begins like one with a block, so that it is complete at its end at the earliest.

    The cursor stands there, but for closers that an editor has put there.
    """
    own = own_names(language)
    place = Place.of(split)
    first = FIRST_WORD.match(place.before)
    if own is None or first is None or first[1] not in own.block_words or any(map(is_word, place.after)):
        return False
    if own.header_end and own.header_end in place.after:
        return False  # complete before the block
    return NAMED.match(place.before, first.end(1)) is None  # `match` may be a name as well


def owes_block(split: Split, language: str) -> bool:
    """Whether the cursor's line begins like one with a block, and no block follows it.

    Such a line can only be completed together with a first line of the block: no program is complete before.
    """
    if not is_header(split, language):
        return False
    place = Place.of(split)
    following = next((line for line in split.right.split("\n", MOST_BLANK + 1)[1:] if line.strip()), "")
    return indentation(following) <= indentation(place.before)


def likelihood_of_block(completion: Completion) -> float | None:
    """How likely a block's first line was once the header above it was written; None where there is no block."""
    header, newline, block = (completion.text or "").partition("\n")
    if not newline or not block.strip():
        return None
    first = len(header) + 1 + len(block.split("\n", 1)[0])
    of_header = likelihood(completion.written, len(header))
    return likelihood(completion.written, first) / of_header if of_header else 0.0


def without_unsure_block(completion: Completion, session: Session, split: Split) -> Completion:
    """A header with a block that does nothing, where the block's first line is too unlikely to be worth reading.

    Nobody has asked for that line: it is there because no program is complete before it. Nor is the beginning of a line
    worth reading that the model went on with until it became unlikely.
    """
    likely = likelihood_of_block(completion)
    unlikely = completion.stop_reason is StopReason.UNLIKELY and (completion.text or "").count("\n") == 1
    if likely is None or (likely >= LEAST_OF_FIRST_LINE and not unlikely):
        return completion
    header = (completion.text or "").split("\n", 1)[0]
    without = replace(completion, text=None, begun=header)
    found = with_empty_block(without, session, split)
    return completion if found is without else found


def with_empty_block(completion: Completion, session: Session, split: Split) -> Completion:
    """A completion that has no text because the block's first line became unlikely, with a block that does nothing.

    The line above it may be sure all the same. The completion as it is where there is no such line, or the two are not
    complete together.
    """
    nothing = session.spelling.stand_ins[:1]
    if not nothing or completion.text is not None:
        return completion
    header = completion.begun.split("\n", 1)[0].rstrip()
    kept = [token for token in completion.written if token.end <= len(header)]
    if not header:
        return completion
    text = f"{header}\n{empty_block(split, session.spelling)}"
    if not session.check(text).complete:
        return completion
    written = (*kept, Written(len(text), EMPTY_BLOCK_LIKELIHOOD))
    return replace(completion, text=text, reason=None, truncated=True, won=Won.POINT, written=written, begun="")
