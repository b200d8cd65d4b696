"""Tokens that need no model: the text is forced, and so is the way in which the tokenizer would write it.

Where every continuation of a middle begins with the same bytes F, the bytes are known, but not yet their tokens: the
tokenizer may join the end of F with what comes after it, and a model continues badly after tokens that its tokenizer
would never have given (guidance calls the remedies *token healing* and *fast-forwarding*; the guidance library by
Lundberg et al. backs the last token up for the same reason). So only those tokens are taken that come out the same
whatever follows.

The criterion. Let F·x be any continuation. One of its tokens begins in F and reaches beyond it, or F's end is a
boundary of tokens: let p be the offset in F where that token begins, or F's length. The token has F[p:] as a proper
prefix, so there are few such p: where the vocabulary has a token of that kind which the grammar allows after F[:p]. A
tokenisation cut at one of its own boundaries is the tokenisation of the text before it; hence the tokens before p are
those of F[:p] alone. What the tokens of all these F[:p] begin with in common is therefore what the tokens of every F·x
begin with.

The step about boundaries holds for BPE (Berglund & van der Merwe, *Formalizing BPE Tokenization*, arXiv 2309.08715) and
Unigram (part of a best path is a best path), and for pre-tokenizers that look at most at whether a blank follows. It
would fail for one that counts from the end, as those that group digits from the right do. Only how likely the tokens
are depends on it, never the text: the tokens returned are part of F, and allowed.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from fim_server.tokens.vocabulary import Vocabulary

MOST_CANDIDATES = 512
"""Tokens asked of the matcher at one place. Where more could reach beyond the forced bytes (after a blank, half of the
vocabulary could), it is taken for granted that one does: that gives fewer forced tokens, not wrong ones."""


@runtime_checkable
class ForcedMatcher(Protocol):
    """A matcher that knows what must come next."""

    def forced(self) -> bytes:
        """The bytes that every continuation begins with; none where the middle may end."""
        ...

    def allows(self, token_id: int, /) -> bool: ...
    def commit(self, token_id: int, /) -> None: ...
    def rollback(self, n_tokens: int, /) -> None: ...


def forced_tokens(matcher: ForcedMatcher, vocabulary: Vocabulary) -> list[int]:
    """The tokens with which every continuation begins, as the tokenizer itself would write it; often none.

    They are allowed one after the other; the matcher is left as it was. That the tokenizer might have joined the first
    of them with the token before does not count: that one is written already.
    """
    text = _whole_characters(matcher.forced())
    if not text:
        return []
    try:
        tokens = vocabulary.encode(text)
    except ValueError:  # the vocabulary cannot write it at all
        return []
    for at in range(max(0, len(text) - vocabulary.longest_token + 1), len(text)):
        if not tokens:
            return []
        before = _tokens_before(matcher, vocabulary, text, at)
        if before is not None:
            tokens = [
                token for token, _ in takewhile(lambda pair: pair[0] == pair[1], zip(tokens, before, strict=False))
            ]
    return _commit_all(matcher, tokens, keep=False)


def _tokens_before(matcher: ForcedMatcher, vocabulary: Vocabulary, text: bytes, at: int) -> list[int] | None:
    """The tokens before a place where a token may begin that reaches beyond the text; None if none may."""
    longer = vocabulary.longer_tokens(text[at:])
    if not longer:
        return None
    try:
        before = vocabulary.encode(text[:at])
    except ValueError:
        return None  # no tokens end there
    if len(longer) <= MOST_CANDIDATES:
        committed = _commit_all(matcher, before, keep=True)
        reached = len(committed) < len(before) or any(matcher.allows(token) for token in longer)
        matcher.rollback(len(committed))
        if not reached:
            return None
    return before


def _commit_all(matcher: ForcedMatcher, tokens: list[int], keep: bool) -> list[int]:
    """Commit tokens up to the first that is refused, and say which; take them back unless they are to be kept."""
    committed: list[int] = []
    for token in tokens:
        if not matcher.allows(token):
            break
        matcher.commit(token)
        committed.append(token)
    if not keep:
        matcher.rollback(len(committed))
    return committed


def _whole_characters(text: bytes) -> bytes:
    """A text without the last character if that has not all its bytes."""
    for back in range(1, min(4, len(text)) + 1):
        first = text[-back]
        if first < 0x80:
            break
        if first >= 0xC0:
            needed = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
            return text if back >= needed else text[:-back]
    return text
