"""Vocabularies to measure with: a model's, read from its tokenizer, or one made from a text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import fim_server
from fim_server.errors import BenchError, VocabularyError
from fim_server.tokens.vocabulary import Vocabulary

SYNTHETIC_SIZE = 151_669
"""Tokens of the vocabulary made from the library's text: as many as a large code model has."""

SYNTHETIC_CORPUS_CHARACTERS = 4_000_000
SYNTHETIC_LONGEST_TOKEN = 16
SYNTHETIC_PIECE = re.compile(r" ?[^\W\d_]+|_+[^\W\d_]*|\d|\s*\n\s*| ?[^\w\s]+|\s+")
"""Tokens do not cross these: words with the blank before them, digits, runs of punctuation, line breaks, blanks."""

EMBEDDED_TOKENIZER = Path(fim_server.__file__).parent / "models" / "embedded" / "tokenizer.json"


@dataclass(frozen=True)
class Tokens:
    """A vocabulary, and its tokens once more as byte strings."""

    name: str
    vocabulary: Vocabulary
    tokens: list[bytes | None] = field(repr=False)

    @property
    def label(self) -> str:
        """The name with the size."""
        return f"{self.name} {self.vocabulary.size // 1000}k"

    @cached_property
    def ids(self) -> dict[bytes, int]:
        """Token ids by byte string."""
        return {token: index for index, token in reversed(list(enumerate(self.tokens))) if token}

    @cached_property
    def longest(self) -> int:
        """Bytes of the longest token."""
        return max(map(len, self.ids), default=0)

    def tokenise(self, text: str) -> list[int]:
        """A text's tokens, the longest that fits first; stops where none fits."""
        return longest_first(self.ids, self.longest, text.encode())


def longest_first(ids: Mapping[bytes, int], longest: int, text: bytes) -> list[int]:
    """A text's tokens, the longest that fits first; stops where none fits.

    Args:
        ids: Token ids by byte string.
        longest: Bytes of the longest.
        text: The text.
    """
    found: list[int] = []
    start = 0
    while start < len(text):
        for length in range(min(longest, len(text) - start), 0, -1):
            if (token := ids.get(text[start : start + length])) is not None:
                found.append(token)
                start += length
                break
        else:
            break
    return found


def read_tokens(name: str, path: Path) -> Tokens:
    """The vocabulary of a tokenizer.json.

    Raises:
        BenchError: It cannot be read.
    """
    try:
        vocabulary = Vocabulary.from_file(path)
    except VocabularyError as error:
        raise BenchError(str(error)) from error
    return Tokens(name, vocabulary, [vocabulary.token_bytes(index) or None for index in range(vocabulary.size)])


def synthetic_tokens(text: str, size: int) -> Tokens:
    """A vocabulary from a text: an end token, every byte, and the commonest substrings of its words.

    It stands in for a large model's in size and in the shape of its trie, not in its very tokens.
    """
    counts: Counter[str] = Counter()
    for piece, count in Counter(SYNTHETIC_PIECE.findall(text)).items():
        for start in range(min(len(piece), SYNTHETIC_LONGEST_TOKEN)):
            for end in range(start + 2, min(len(piece), start + SYNTHETIC_LONGEST_TOKEN) + 1):
                counts[piece[start:end]] += count
    commonest = sorted(counts, key=lambda substring: (-counts[substring], substring))
    tokens: list[bytes | None] = [None, *(bytes([byte]) for byte in range(256))]
    tokens += [substring.encode() for substring in commonest[: max(size - len(tokens), 0)]]
    return Tokens("synthetic", Vocabulary(tokens, [0]), tokens)
