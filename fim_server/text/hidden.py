"""Characters that readers do not see, or that change the text they see: refused in suggestions, escaped in output.

They are controls, format characters, and other characters without a shape (Unicode's *Default_Ignorable*): escape
sequences of terminals, directions of writing (CVE-2021-42574, *Trojan Source*), zero-width and tag characters,
variation selectors, fillers. Tabs and line feeds are not among them. A carriage return is: within a document it is
part of a line break, and the engine's texts have line feeds alone.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import takewhile
from typing import Any

RANGES = (
    (0x00, 0x08),
    (0x0B, 0x1F),
    (0x7F, 0x9F),
    (0xAD, 0xAD),
    (0x034F, 0x034F),
    (0x0600, 0x0605),
    (0x061C, 0x061C),
    (0x06DD, 0x06DD),
    (0x070F, 0x070F),
    (0x0890, 0x0891),
    (0x08E2, 0x08E2),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xD800, 0xF8FF),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
    (0xF0000, 0x10FFFF),
)
"""First and last code points: Unicode 15's categories Cc, Cf, Zl, Zp, Cs and Co, which fonts draw as they like, and the
fillers and selectors of other categories."""

HIDDEN = re.compile("[" + "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in RANGES) + "]")

LOOKED_AT = 256
"""Most characters of a word to look at on either side of a cursor."""

MOST_SHOWN = 2_000
"""Most characters of a name or a message in output."""

BYTE_ORDER_MARK = "\ufeff"


def hidden_in(text: str, known: frozenset[str] = frozenset()) -> str | None:
    """Return the first hidden character of a text that is not one of the ``known``, if there is one.

    >>> hidden_in("a\\tb\\n"), hidden_in("a\\u202eb"), hidden_in("a\\u200cb", frozenset("\\u200c"))
    (None, '\\u202e', None)
    """
    if text.isascii() and text.isprintable():
        return None
    return next((found[0] for found in HIDDEN.finditer(text) if found[0] not in known), None)


def known_at(left: str, right: str) -> frozenset[str]:
    """Return the hidden characters of the word at a cursor between two texts; a suggestion may have these.

    Words of some languages, and emoji, need characters that join or separate others.
    """
    before, after = left[-LOOKED_AT:], right[:LOOKED_AT]
    word = [*takewhile(is_of_word, reversed(before)), *takewhile(is_of_word, after)]
    if len(left) <= LOOKED_AT and left.startswith(BYTE_ORDER_MARK) and len(word) >= len(left):
        word.remove(BYTE_ORDER_MARK)  # the document's mark, and no part of a word
    return frozenset(character for character in word if HIDDEN.match(character))


def is_of_word(character: str) -> bool:
    """Return whether a character is part of a word or an emoji, or joins such parts."""
    if character.isascii():
        return character == "_" or character.isalnum()
    return not character.isspace() and unicodedata.category(character) not in ("Cc", "Zl", "Zp", "Cs")


def escaped(text: str, most: int | None = None) -> str:
    """Return a text with its hidden characters as escapes; of a longer one the beginning and the count of the rest.

    >>> escaped("a\\x1b[31m\\u202e\\n")
    'a\\\\x1b[31m\\\\u202e\\n'
    >>> escaped("abc", 2)
    'ab… (1 more characters)'
    """
    if most is not None and len(text) > most:
        text = f"{text[:most]}… ({len(text) - most} more characters)"
    if text.isascii() and text.isprintable():
        return text
    return HIDDEN.sub(lambda found: ascii(found[0])[1:-1], text)


def escaped_values(value: Any, most: int, kept: frozenset[str] = frozenset()) -> Any:
    """Return a JSON value with :func:`escaped` texts, except in the fields ``kept``."""
    if isinstance(value, str):
        return escaped(value, most)
    if isinstance(value, dict):
        return {key: one if key in kept else escaped_values(one, most, kept) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [escaped_values(one, most, kept) for one in value]
    return value


def on_one_line(text: str, most: int = MOST_SHOWN) -> str:
    """Return a text as :func:`escaped`, with blanks in place of its line breaks and tabs."""
    rest = len(text) - most
    return escaped(" ".join(text[:most].split())) + (f"… ({rest} more characters)" if rest > 0 else "")
