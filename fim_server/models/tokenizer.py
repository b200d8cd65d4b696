"""A model's own tokenizer, read from its ``tokenizer.json`` by the `tokenizers` library alone."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from fim_server.errors import ModelError, first_line
from fim_server.language.limited_files import read_limited

if TYPE_CHECKING:
    from pathlib import Path

    from tokenizers import Tokenizer

TOKENIZER_FILE = "tokenizer.json"


class FileTokenizer:
    """Tokenizer with the interface of transformers (:class:`.prompt.Tokenizer`), without transformers.

    Attributes:
        backend_tokenizer: The library's tokenizer, under the name that transformers gives it. It always encodes the
            names of special tokens like any other text.
        definition: Bytes of its file.
    """

    def __init__(self, definition: bytes) -> None:
        """Raises Exception where the library cannot read the definition."""
        self.definition = definition
        self.backend_tokenizer = library_tokenizer(definition)
        self.backend_tokenizer.encode_special_tokens = True

    def convert_tokens_to_ids(self, token: str) -> int | None:
        number: int | None = self.backend_tokenizer.token_to_id(token)
        return number

    def convert_ids_to_tokens(self, number: int) -> str | None:
        token: str | None = self.backend_tokenizer.id_to_token(number)
        return token

    def encode(self, text: str, *, add_special_tokens: bool, split_special_tokens: bool) -> list[int]:
        """Encode a text. ``split_special_tokens``: encode the names of special tokens like any other text."""
        tokenizer = self.backend_tokenizer if split_special_tokens else self._finds_names
        ids: list[int] = tokenizer.encode(text, add_special_tokens=add_special_tokens).ids
        return ids

    def decode(self, ids: list[int]) -> str:
        """Decode ids; special tokens appear by their names."""
        text: str = self.backend_tokenizer.decode(ids, skip_special_tokens=False)
        return text

    def get_vocab(self) -> dict[str, int]:
        vocabulary: dict[str, int] = self.backend_tokenizer.get_vocab()
        return vocabulary

    @cached_property
    def _finds_names(self) -> Any:
        """Tokenizer that finds the names of special tokens in texts."""
        return library_tokenizer(self.definition)


def read_tokenizer(folder: Path, name: str) -> FileTokenizer:
    """Read the tokenizer of a model's folder. Raises :class:`ModelError` where it cannot be read."""
    try:
        return FileTokenizer(read_limited(folder / TOKENIZER_FILE))
    except Exception as error:  # the library raises Exception itself
        raise ModelError(f"{name}: its tokenizer cannot be loaded ({first_line(error)})") from error


def library_tokenizer(definition: bytes) -> Tokenizer:
    """Return the library's tokenizer of a definition. Raises Exception where the library cannot read it."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_buffer(definition)
    # A file may keep how texts were cut and filled up in training; transformers does neither unless it is asked to.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
