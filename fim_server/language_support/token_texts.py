"""Texts of a vocabulary's tokens, grouped for masks of names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WORD_TOKEN = re.compile(rb"( ?)([A-Za-z_][A-Za-z0-9_]*)")


class TokenTexts:
    """Tokens by their texts: most are a word, or a blank and a word.

    Attributes:
        words: Tokens by the text before their word, and by the word.
        others: All other tokens with their texts, a character for each byte.
        after: All tokens of ``words`` by the text before their word.
    """

    def __init__(self, tokens: Sequence[bytes]) -> None:
        self.words: dict[str, dict[str, list[int]]] = {"": {}, " ": {}}
        self.others: list[tuple[int, str]] = []
        for token, text in enumerate(tokens):
            found = WORD_TOKEN.fullmatch(text)
            if found is not None:
                blank, word = (part.decode() for part in found.groups())
                self.words[blank].setdefault(word, []).append(token)
            elif text:
                self.others.append((token, text.decode("latin-1")))
        self.after = {
            blank: [token for tokens in words.values() for token in tokens] for blank, words in self.words.items()
        }
