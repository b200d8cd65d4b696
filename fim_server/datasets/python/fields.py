"""Replacement fields of f-strings, where Python's own tokens and syntax tree do not place them."""

from __future__ import annotations

from fim_server.datasets.python.text import is_expression


def replacement_fields(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the offsets of the expressions in the outermost replacement fields of the f-string at ``text[start:end]``.

    Blanks around them, ``!r``, ``=`` and format specifications are outside. Other strings and unknown forms of fields
    have none. Python 3.11 has no tokens for fields, and its syntax tree does not place them reliably.
    """
    quote_at = next((at for at in range(start, end) if text[at] in "\"'"), end)
    prefix = text[start:quote_at].lower()
    if "f" not in prefix:
        return []
    scanner = _FieldScanner(text, end)
    try:
        scanner.string(quote_at, prefix)
    except IndexError:
        return []
    return [span for span in scanner.fields if is_expression(text[slice(*span)])]


_PREFIXES = frozenset({"b", "br", "f", "fr", "r", "rb", "rf", "t", "tr", "rt", "u"})


class _FieldScanner:
    """Reads one f-string; IndexError at its end says that it was not understood."""

    def __init__(self, text: str, end: int) -> None:
        self._text = text[:end]
        self.fields: list[tuple[int, int]] = []

    def string(self, at: int, prefix: str, inner: bool = False) -> int:
        """Read a string from its opening quote on; returns the offset after its closing quote."""
        text = self._text
        quote = text[at] * 3 if text.startswith(text[at] * 3, at) else text[at]
        at += len(quote)
        while not text.startswith(quote, at):
            if "f" in prefix:
                at = self._literal(at, "r" in prefix, inner)
            else:
                at += 2 if text[at] == "\\" else 1
        return at + len(quote)

    def _literal(self, at: int, raw: bool, inner: bool, specification: bool = False) -> int:
        """Read one character, escape or field of the literal part; returns where it ends."""
        text = self._text
        if text[at] == "\\":
            if not raw and text.startswith("N{", at + 1):
                return text.index("}", at) + 1 if "}" in text[at:] else len(text)
            return at + (1 if text[at + 1] in "{}" else 2)
        if text[at] == "{" and (specification or text[at + 1] != "{"):
            return self._field(at + 1, raw, inner or specification)
        return at + (2 if text[at] in "{}" else 1)

    def _field(self, start: int, raw: bool, inner: bool) -> int:
        """Read a field from its expression on; returns the offset after its closing brace."""
        text, at = self._text, self._expression(start)
        if not inner:
            expression = text[start:at]
            blanks = len(expression) - len(expression.lstrip())
            self.fields.append((start + blanks, start + len(expression.rstrip())))
        while text[at] not in ":}":
            at += 1  # "=", blanks, "!r"
        if text[at] == ":":
            at += 1
            while text[at] != "}":
                at = self._literal(at, raw, inner, specification=True)
        return at + 1

    def _expression(self, at: int) -> int:
        """Read an expression; returns the offset of what ends it: "}", ":", "!" or the "=" of a debugging field."""
        text, depth = self._text, 0
        while True:
            character = text[at]
            if character in "\"'":
                letters = at
                while text[letters - 1].isalpha():
                    letters -= 1
                prefix = text[letters:at].lower()
                at = self.string(at, prefix if prefix in _PREFIXES else "", inner=True)
            elif character == "#":
                at = text.index("\n", at) if "\n" in text[at:] else len(text)
            elif character in "([{":
                depth += 1
                at += 1
            elif depth:
                depth -= character in ")]}"
                at += 1
            elif text.startswith(("==", "!=", "<=", ">="), at):
                at += 2
            elif character in "}:!" or (character == "=" and text[at + 1 :].lstrip()[:1] in ("}", ":", "!")):
                return at
            else:
                at += 1
