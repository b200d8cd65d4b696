"""Texts as the engine takes them: UTF-8."""

from __future__ import annotations

import re

_SURROGATES = re.compile("[\ud800-\udfff]")


def encodable(text: str) -> str:
    """Lone surrogates are no text; as NUL, which no language takes, they are refused instead of raising."""
    return text if text.isascii() else _SURROGATES.sub("\0", text)


def characters(encoded: bytes, offset: int) -> int:
    """An offset in bytes as an offset in characters; a character that it cuts does not count."""
    return len(encoded[:offset].decode("utf-8", "ignore"))
