"""Tokenizer of a GGUF file: its tokens' bytes, and texts as llama.cpp encodes them.

Transformers reads such files, too, but ignores how a text is split before byte-pair encoding (``tokenizer.ggml.pre``).
It encoded one of two files that were tried as the model has never seen them.
"""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fim_server.errors import ModelError
from fim_server.tokens.formats import Kind, known_formats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.models.gguf.context import Network

UNKNOWN, UNUSED, CONTROL = 1 << 0, 1 << 1, 1 << 3
"""Kinds of tokens that are never text (``llama_token_attr``)."""

LONGEST_PIECE = 64
"""Bytes that suffice for nearly all tokens; the library tells the length of a longer one."""


class GgufTokenizer:
    """Tokenizer (:class:`..prompt.Tokenizer`) of the library that has loaded the file."""

    def __init__(self, library: Any, vocabulary: int, owner: Network) -> None:
        """Wrap the library's vocabulary. ``vocabulary``: its address; ``owner``: model that frees it."""
        self._library, self._vocabulary, self._owner = library, vocabulary, owner
        self.size = int(library.llama_vocab_n_tokens(vocabulary))

    def kind(self, name: str) -> Kind:
        """Return what the file says of its model's family. ``name``: the file's name."""
        says = self._owner.said
        return Kind((name, says("general.name"), says("general.basename")), says("general.architecture"))

    @cached_property
    def names(self) -> list[str]:
        text = self._library.llama_vocab_get_text
        return [(text(self._vocabulary, number) or b"").decode(errors="replace") for number in range(self.size)]

    @cached_property
    def _ids(self) -> dict[str, int]:
        """Ids by name; the first of equal names."""
        return {name: number for number, name in reversed(list(enumerate(self.names)))}

    @cached_property
    def end_ids(self) -> tuple[int, ...]:
        """Tokens that end a text, as the file says."""
        is_end = self._library.llama_vocab_is_eog
        return tuple(number for number in range(self.size) if is_end(self._vocabulary, number))

    @property
    def begin_ids(self) -> tuple[int, ...]:
        """Tokens at the beginning of a text, as the file says."""
        vocabulary, library = self._vocabulary, self._library
        return (int(library.llama_vocab_bos(vocabulary)),) if library.llama_vocab_get_add_bos(vocabulary) else ()

    def get_vocab(self) -> dict[str, int]:
        return dict(self._ids)

    def convert_tokens_to_ids(self, token: str) -> int | None:
        return self._ids.get(token)

    def convert_ids_to_tokens(self, number: int) -> str | None:
        return self.names[number] if 0 <= number < self.size else None

    def encode(self, text: str, *, add_special_tokens: bool, split_special_tokens: bool) -> list[int]:
        """Encode a text. ``split_special_tokens``: encode the names of special tokens like any other text."""
        return self.ids(text.encode(), add_special_tokens, not split_special_tokens)

    def ids(self, data: bytes, add_special: bool = False, parse_special: bool = False) -> list[int]:
        """Encode bytes. Raises RuntimeError where the library cannot."""
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
        """Return each token's bytes; None for control tokens, unknown and unused ones, and those of prompt formats."""
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
        """Decode ids; tokens without text appear by their names."""
        return b"".join(self._piece(number) or self.names[number].encode() for number in ids).decode(errors="replace")
