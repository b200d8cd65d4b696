"""Verdicts of RFC 8259 on a text, by way of the standard library's reader."""

from __future__ import annotations

import json


def judge(text: str) -> bool:
    """RFC 8259's verdict, by way of `json.loads`, with what differs made up for.

    It takes NaN, Infinity and -Infinity (`parse_constant` gets them and nothing else), and lone surrogates that are not
    escaped, which no UTF-8 text can hold. It refuses integers of over 4,300 digits (not where they stay texts), and
    nesting beyond the interpreter's stack: a RecursionError, let through as a mistake of the test. Without help
    it refuses a byte order mark, which no text begins with, and takes names that occur twice.
    """
    try:
        text.encode()
        json.loads(text, parse_constant=_refuse, parse_int=str, parse_float=str)
    except ValueError:  # JSONDecodeError and UnicodeEncodeError are both
        return False
    return True


def _refuse(constant: str) -> None:
    raise ValueError(constant)
