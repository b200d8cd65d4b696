"""Texts in the engine's form: UTF-8."""

from __future__ import annotations

import re

from fim_server.language.argument_types import expect_text

_SURROGATES = re.compile("[\ud800-\udfff]")


def encodable(text: str, name: str) -> str:
    """Return a text with lone surrogates as NUL, which every language refuses, so that encoding it raises nothing.

    Raises TypeError if it is no str; ``name``: the argument's name.
    """
    expect_text(name, text)
    return text if text.isascii() else _SURROGATES.sub("\0", text)


def characters(encoded: bytes, offset: int) -> int:
    """Return an offset in bytes as an offset in characters; a character that it cuts does not count."""
    return len(encoded[:offset].decode("utf-8", "ignore"))


def is_word(character: str) -> bool:
    """Return whether a character can be inside a name; False for an empty text."""
    return character == "_" or character.isalnum()
