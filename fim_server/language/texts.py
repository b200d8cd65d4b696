"""Texts as the engine takes them: UTF-8."""

from __future__ import annotations

import re

from fim_server.language.argument_types import expect_text

_SURROGATES = re.compile("[\ud800-\udfff]")


def encodable(text: str, name: str) -> str:
    """Lone surrogates are no text; as NUL, which no language takes, they are refused instead of raising.

    Raises TypeError for what is no str; ``name``: the argument that it is.
    """
    expect_text(name, text)
    return text if text.isascii() else _SURROGATES.sub("\0", text)


def characters(encoded: bytes, offset: int) -> int:
    """An offset in bytes as an offset in characters; a character that it cuts does not count."""
    return len(encoded[:offset].decode("utf-8", "ignore"))


def is_word(character: str) -> bool:
    """Return whether a character can be inside a name; False for an empty text."""
    return character == "_" or character.isalnum()
