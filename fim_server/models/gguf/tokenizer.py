"""A GGUF file's own tokenizer: its tokens' bytes, and texts as llama.cpp encodes them.

Another library's reading of the file would not do: transformers' conversion passes over how a text is split before
byte-pair encoding (``tokenizer.ggml.pre``), and encodes one of two files as the model has never seen them (measured).
"""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fim_server.errors import ModelError
from fim_server.tokens.formats import known_formats

if TYPE_CHECKING:
    from collections.abc import Sequence

UNKNOWN, UNUSED, CONTROL = 1 << 0, 1 << 1, 1 << 3
"""Kinds of tokens that are never text (``llama_token_attr``)."""

LONGEST_PIECE = 64
"""Bytes that nearly all tokens have at most; of a longer one the library says how many."""


class GgufTokenizer:
    """What is asked of a tokenizer (:class:`..prompt.Tokenizer`), by the library that has loaded the file."""

    def __init__(self, library: Any, vocabulary: int, owner: object) -> None:
        """``vocabulary``: the address of the library's own; ``owner``: what frees it, and is to live as long."""
        self._library, self._vocabulary, self._owner = library, vocabulary, owner
        self.size = int(library.llama_vocab_n_tokens(vocabulary))

    @cached_property
    def names(self) -> list[str]:
        """Each token's name in the file."""
        text = self._library.llama_vocab_get_text
        return [(text(self._vocabulary, number) or b"").decode(errors="replace") for number in range(self.size)]

    @cached_property
    def _ids(self) -> dict[str, int]:
        """Ids by name; of several the first."""
        return {name: number for number, name in reversed(list(enumerate(self.names)))}

    @cached_property
    def end_ids(self) -> tuple[int, ...]:
        """The tokens that end a text by the file's own word."""
        is_end = self._library.llama_vocab_is_eog
        return tuple(number for number in range(self.size) if is_end(self._vocabulary, number))

    @property
    def begin_ids(self) -> tuple[int, ...]:
        """What the file wants its texts to begin with."""
        vocabulary, library = self._vocabulary, self._library
        return (int(library.llama_vocab_bos(vocabulary)),) if library.llama_vocab_get_add_bos(vocabulary) else ()

    def get_vocab(self) -> dict[str, int]:
        """Ids by name."""
        return dict(self._ids)

    def convert_tokens_to_ids(self, token: str) -> int | None:
        """The id of a token; None for none."""
        return self._ids.get(token)

    def convert_ids_to_tokens(self, number: int) -> str | None:
        """The token of an id; None for none."""
        return self.names[number] if 0 <= number < self.size else None

    def encode(self, text: str, *, add_special_tokens: bool, split_special_tokens: bool) -> list[int]:
        """The ids of a text; ``split_special_tokens``: the names of special tokens are text like any other."""
        return self.ids(text.encode(), add_special_tokens, not split_special_tokens)

    def ids(self, data: bytes, add_special: bool = False, parse_special: bool = False) -> list[int]:
        """The same of bytes. Raises RuntimeError where the library cannot."""
        room = len(data) + 8
        found = (ctypes.c_int32 * room)()
        take = self._library.llama_tokenize
        count = take(self._vocabulary, data, len(data), found, room, add_special, parse_special)
        if count < 0:  # so many are needed
            found = (ctypes.c_int32 * -count)()
            count = take(self._vocabulary, data, len(data), found, -count, add_special, parse_special)
        if count < 0:
            raise RuntimeError(f"llama.cpp does not encode a text of {len(data)} bytes")
        return list(found[:count])

    def tokens(self) -> list[bytes | None]:
        """Each token's bytes; None for what is never text: control tokens, unknown, unused, those of prompt formats."""
        controls = {name for row in known_formats() for name in row.tokens}
        attributes = self._library.llama_vocab_get_attr
        found: list[bytes | None] = []
        for number, name in enumerate(self.names):
            kind = int(attributes(self._vocabulary, number))
            is_text = not kind & (UNKNOWN | UNUSED | CONTROL) and name not in controls
            found.append(self._piece(number) or None if is_text else None)
        if not any(found):
            raise ModelError("its tokens have no text")
        return found

    def _piece(self, number: int) -> bytes:
        room = LONGEST_PIECE
        while True:
            buffer = ctypes.create_string_buffer(room)
            count = int(self._library.llama_token_to_piece(self._vocabulary, number, buffer, room, 0, False))
            if count >= 0:
                return buffer.raw[:count]
            room = -count

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, those that are none by their names."""
        return b"".join(self._piece(number) or self.names[number].encode() for number in ids).decode(errors="replace")
