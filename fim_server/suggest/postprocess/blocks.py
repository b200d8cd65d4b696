"""Headers without a block yet: a suggestion there must begin the block, because no program is complete before."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.decoding.results import StopReason
from fim_server.language.texts import is_word
from fim_server.suggest.constants import POSTPROCESS
from fim_server.suggest.context.cursor import MOST_BLANK, Place, indentation
from fim_server.suggest.context.placeholders import empty_block
from fim_server.suggest.postprocess.identifiers import own_names
from fim_server.suggest.postprocess.shorten import tokens_within, with_text
from fim_server.suggest.suggestion import likelihood

if TYPE_CHECKING:
    from fim_server.decoding.results import Completion
    from fim_server.language import Session
    from fim_server.text.document import Split

FIRST_WORD = re.compile(r"\s*(\w+)\W")
"""First word of a line, once it is typed."""

NAMED = re.compile(r"\s*(?:[=,]|\.(?![.\d]))")
"""Text after a name, and after no word that begins a block. `...` or `.5` may follow such a word."""


def once_typed(split: Split, text: str) -> Split:
    """Return the cursor behind the first line of a text."""
    return replace(split, left=split.left + text.split("\n", 1)[0])


def is_header(split: Split, language: str) -> bool:
    """Return whether the cursor's line begins like a header, so that it is complete at its end at the earliest.

    The cursor stands at that end, except for closers of the editor.
    """
    own = own_names(language)
    place = Place.of(split)
    first = FIRST_WORD.match(place.before)
    if own is None or first is None or first[1] not in own.block_words or any(map(is_word, place.after)):
        return False
    if own.header_end and own.header_end in place.after:
        return False  # the header is complete before the block
    return NAMED.match(place.before, first.end(1)) is None  # `match` may be a name as well


def owes_block(split: Split, language: str) -> bool:
    """Return whether the cursor's line begins like a header, and no block follows it."""
    if not is_header(split, language):
        return False
    place = Place.of(split)
    following = next((line for line in split.right.split("\n", MOST_BLANK + 1)[1:] if line.strip()), "")
    return indentation(following) <= indentation(place.before)


def likelihood_of_block(completion: Completion) -> float | None:
    """Return the probability of a block's first line after its header; None without a block."""
    header, newline, block = (completion.text or "").partition("\n")
    if not newline or not block.strip():
        return None
    first = len(header) + 1 + len(block.split("\n", 1)[0])
    of_header = likelihood(completion.written, len(header))
    return likelihood(completion.written, first) / of_header if of_header else 0.0


def without_unsure_block(completion: Completion, session: Session, split: Split) -> Completion:
    """Return a completion with a block that does nothing if the block's first line is too unlikely.

    The first line is there only because no program is complete before it. A first line that became unlikely before its
    end is replaced, too.
    """
    likely = likelihood_of_block(completion)
    unlikely = completion.stop_reason is StopReason.UNLIKELY and (completion.text or "").count("\n") == 1
    if likely is None or (likely >= POSTPROCESS.block_likelihood and not unlikely):
        return completion
    header = (completion.text or "").split("\n", 1)[0]
    without = replace(completion, text=None, begun=header)
    found = with_empty_block(without, session, split)
    return completion if found is without else found


def with_empty_block(completion: Completion, session: Session, split: Split) -> Completion:
    """Return the header of a completion without a text, with a block that does nothing.

    The header may be likely although the block's first line is not. Return the completion as it is if it has no header,
    or if the two are not complete together.
    """
    nothing = session.spelling.stand_ins[:1]
    if not nothing or completion.text is not None:
        return completion
    header = completion.begun.split("\n", 1)[0].rstrip()
    if not header:
        return completion
    text = f"{header}\n{empty_block(split, session.spelling)}"
    if not session.check(text).complete:
        return completion
    kept = tokens_within(completion.written, len(header))
    return with_text(completion, text, kept, POSTPROCESS.empty_block_likelihood)
