"""Refusal of tokens that write characters which readers do not see (:mod:`fim_server.text.hidden`).

A grammar allows them in strings and comments. A token may hold a part of a character, so the check reads it together
with the bytes before it.
"""

from __future__ import annotations

import re
from codecs import utf_8_decode
from typing import TYPE_CHECKING

from fim_server.text.hidden import hidden_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.tokens.vocabulary import Vocabulary

DEAD_BEGINNING = re.compile(b"\xee|\xef[\x80-\xa3]|\xf3[\xa0\xb0-\xbf]|\xf4")
"""Beginnings of UTF-8 characters that lead to hidden characters only."""

MOST_BEGUN = 3
"""Most bytes of an unfinished character."""


class Visible:
    """Check of tokens for hidden characters."""

    def __init__(self, vocabulary: Vocabulary, known: frozenset[str] = frozenset()) -> None:
        """Take the hidden characters that the middle may have (``known``)."""
        self._vocabulary = vocabulary
        self._known = known

    def refuses(self, written: Sequence[int], token: int, healing: bytes = b"") -> bool:
        """Return whether a token after others writes a hidden character, or begins one.

        ``healing``: healed text that is still to be written.
        """
        text = self._vocabulary.token_bytes(token)
        if text.isascii() and not healing:
            # Most tokens; a character that was begun before is not whole then, and no text of the grammar.
            return hidden_in(text.decode()) is not None
        text = text[len(healing) :] if healing else self._begun(written) + text
        characters, length = utf_8_decode(text, "replace", False)
        if hidden_in(characters, self._known) is not None:
            return True
        rest = text[length:]
        may_go_on = any(one.encode("utf-8", "replace").startswith(rest) for one in self._known)
        return DEAD_BEGINNING.match(rest) is not None and not may_go_on

    def allowed_of(self, written: Sequence[int], forced: Sequence[int]) -> list[int]:
        """Return the leading forced tokens without hidden characters."""
        so_far = list(written)
        for token in forced:
            if self.refuses(so_far, token):
                break
            so_far.append(token)
        return so_far[len(written) :]

    def _begun(self, written: Sequence[int]) -> bytes:
        """Return the bytes of the unfinished character that some tokens end with."""
        before = b""
        for token in reversed(written[-MOST_BEGUN:]):
            before = self._vocabulary.token_bytes(token) + before
            if len(before) >= MOST_BEGUN:
                break
        for length in range(1, min(MOST_BEGUN, len(before)) + 1):
            byte = before[-length]
            if byte < 0x80:
                return b""
            if byte >= 0xC0:
                whole = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
                return before[-length:] if whole > length else b""
        return b""
