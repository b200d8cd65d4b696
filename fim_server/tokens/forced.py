"""Forced tokens: tokens that need no model, because both their text and the tokenizer's way to write it are forced.

Where every continuation of a middle begins with the same bytes F, the bytes are known, but not yet their tokens. The
tokenizer may join the end of F with the text after it, and a model continues badly after tokens that its tokenizer
would never have given. (The guidance library by Lundberg et al. backs up the last token for the same reason; its
remedies are *token healing* and *fast-forwarding*.) So only those tokens are taken that come out the same whatever
follows.

The criterion. Let F·x be any continuation. One of its tokens begins in F and reaches beyond it, or F's end is a
boundary of tokens. Let p be the offset in F where that token begins, or F's length. The token has F[p:] as a proper
prefix, so there are few such p. The vocabulary has a token of that kind, and the grammar allows it after F[:p]. A
tokenisation cut at one of its own boundaries is the tokenisation of the text before it; hence the tokens before p are
those of F[:p] alone. So the common prefix of the tokens of all these F[:p] is a prefix of the tokens of every F·x.

The step about boundaries holds for BPE (Berglund & van der Merwe, *Formalizing BPE Tokenization*, arXiv 2309.08715) and
Unigram (part of a best path is a best path). It also needs a pre-tokenizer that looks ahead at most for a blank. One
that counts from the end fails it, such as one that groups digits from the right. This affects only the likelihood of
the tokens, never the text: the returned tokens are part of F, and allowed.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from fim_server.tokens.vocabulary import Vocabulary

MOST_CANDIDATES = 512
"""Most tokens to check with the matcher at one place. If more could reach beyond the forced bytes (after a blank, half
of the vocabulary could), one of them counts as allowed: that gives fewer forced tokens, not wrong ones."""


@runtime_checkable
class ForcedMatcher(Protocol):
    """Matcher that knows the bytes that must come next."""

    def forced(self) -> bytes:
        """Return the bytes that every continuation begins with; none where the middle may end."""
        ...

    def allows(self, token_id: int, /) -> bool: ...
    def commit(self, token_id: int, /) -> None: ...
    def rollback(self, n_tokens: int, /) -> None: ...


def forced_tokens(matcher: ForcedMatcher, vocabulary: Vocabulary) -> list[int]:
    """Return the tokens with which every continuation begins, as the tokenizer itself would write it; often none.

    They are allowed one after the other, and the matcher is left as it was. The tokenizer might have joined the first
    with the token before it; that does not count, because that token is written already.
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
    """Return the tokens before a place where a token may begin that reaches beyond the text; None if none may."""
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
    """Commit tokens up to the first that is refused and return them; take them back unless ``keep`` is set."""
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
    """Return a text without an unfinished last character."""
    for back in range(1, min(4, len(text)) + 1):
        first = text[-back]
        if first < 0x80:
            break
        if first >= 0xC0:
            needed = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
            return text if back >= needed else text[:-back]
    return text
