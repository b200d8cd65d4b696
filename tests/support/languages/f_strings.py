"""Random f-strings, right ones and wrong ones, for the rules that they had up to Python 3.11."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

_PREFIXES = ("f", "f", "F", "rf", "fr", "Rf", "fR")
_QUOTES = ("'", '"', "'''", '"""')
_ATOMS = ("a", "b", "_", "1", "0x1f", "1.5", "1j", "None", "True", "...", "match", "é", "type", "1_0")
_PARAMETERS = ("", "x", "x, y", "*a", "**k", "x=1", "x, /", "*, y", "x, /, y=2, *z, w, **k", "/", "x=1, y", "*")
_TARGETS = ("x", "x,", "x, y", "*x, y", "(x)", "(x, y)", "[x]", "a.b", "a[1]", "()", "'a'.b")
_CONVERSIONS = ("!r", "!s", "!a", "!r", "!x", "! r", "!r ", "!", "!rr", "!r\n", "!\u02b3")
_SPECS = (">10", ".2f", "=5", "%H:%M", "'", '"', "{{", "}}", "\\n", "\n", " ", "#", "::", "\\x41", "\\x4", "\\")
_TEXTS = ("a", " b ", "{{", "}}", "é", "#", "'", '"', "''", '""', ":", "!", "{{}}", "}", "{")
_ESCAPED = ("\\n", "\\{", "\\\n", "\\\\", "\\}}")
_STRING_TEXTS = ("", "", "a", "b c", "é", "{", "}", "#", "!", ":", "1")
_RARE_TEXTS = (*_QUOTES, "''", '""', "\\n", "\\", "\n", "\\'")
_CHANGES = "'\"{}()[]:=!,.\\#\n \tabfr1<>*+-_;@$é"
_CLOSE_QUOTES = re.compile(r"(?<=['\"])(?=['\"])")


class FStrings:
    """A source of them: `draw` gives the next one."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def draw(self) -> str:
        """An f-string of any kind and depth; of three about one is spoilt."""
        rng = self._rng
        text = self._formatted(rng.choice((0, 1, 1, 2, 2, 3)), _QUOTES, outermost=True)
        kind = rng.random()
        if kind < 0.35:
            return self._spoilt(text)
        if kind < 0.4:
            return text + rng.choice(("", " ")) + self._formatted(1, _QUOTES, outermost=True)
        return text

    def _spoilt(self, text: str) -> str:
        rng = self._rng
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(("", rng.choice(_CHANGES))) + text[at + rng.randint(0, 1) :]
        return text

    def _formatted(self, depth: int, allowed: tuple[str, ...], outermost: bool = False) -> str:
        rng = self._rng
        quote = self._quote(allowed)
        inside = tuple(each for each in allowed if each != quote and (len(quote) == 3 or quote not in each))
        parts = [rng.choice(_PREFIXES), quote]
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            if rng.random() < 0.2:
                parts.append(rng.choice(_TEXTS + (_ESCAPED if outermost else ())))
            parts.append(self._field(depth, inside, 0, quote))
        return "".join(parts) + quote

    def _field(self, depth: int, allowed: tuple[str, ...], level: int, quote: str) -> str:
        rng = self._rng
        blanks = ("", "", "", " ", "\t", "\n" if len(quote) == 3 else " ")
        parts = ["{", rng.choice(blanks), self._expression(depth, allowed), rng.choice(blanks)]
        if rng.random() < 0.15:
            parts.append("=" + rng.choice(blanks))
        if rng.random() < 0.15:
            parts.append(rng.choice(_CONVERSIONS))
        if rng.random() < (0.3 if level == 0 else 0.2):
            parts.append(":")
            for _ in range(rng.randint(0, 2)):
                parts.append(rng.choice(_SPECS if rng.random() < 0.5 else _SPECS[:2]))
                if rng.random() < 0.4:
                    parts.append(self._field(depth - 1, allowed, level + 1, quote))
        return "".join(parts) + "}"

    def _quote(self, allowed: tuple[str, ...]) -> str:
        return self._rng.choice(allowed if allowed and self._rng.random() < 0.93 else _QUOTES)

    def _string(self, allowed: tuple[str, ...]) -> str:
        rng = self._rng
        quote = self._quote(allowed)
        text = "".join(rng.choice(_STRING_TEXTS) for _ in range(rng.randint(0, 3)))
        if rng.random() < 0.15:
            text += rng.choice(_RARE_TEXTS) + rng.choice(("", "z"))
        return rng.choice(("", "", "", "b", "Rb", "u", "r")) + quote + text + quote

    def _expression(self, depth: int, allowed: tuple[str, ...]) -> str:
        rng = self._rng
        if depth <= 0 or rng.random() < 0.22:
            return rng.choice(_ATOMS)

        def e() -> str:
            return self._expression(depth - 1, allowed)

        def clause() -> str:
            conditions = "".join(f" if {e()}" for _ in range(rng.choice((0, 0, 1, 2))))
            return f"{rng.choice(('', '', 'async '))}for {rng.choice(_TARGETS)} in {e()}{conditions}"

        def arguments() -> str:
            kinds = (e, e, e, lambda: f"k={e()}", lambda: f"*{e()}", lambda: f"**{e()}", lambda: f"x:={e()}")
            return ", ".join(rng.choice(kinds)() for _ in range(rng.randint(0, 3))) + rng.choice(("", "", ","))

        def subscripts() -> str:
            kinds = (e, e, e, lambda: f"{e()}:", lambda: f":{e()}:{e()}", lambda: "::", lambda: f"*{e()}")
            return ", ".join(rng.choice(kinds)() for _ in range(rng.choice((1, 1, 2))))

        operators = ("+", "-", "*", "//", "%", "@", "&", "^", "<", ">", "**", "<<", "==", "!=", "<=", ">=")
        words = ("and", "or", "in", "not in", "is", "is not")
        ways: tuple[Callable[[], str], ...] = (
            lambda: e() + rng.choice(operators) + e(),
            lambda: f"{e()} {rng.choice(words)} {e()}",
            lambda: rng.choice(("not ", "-", "+", "~", "await ")) + e(),
            lambda: f"{e()} if {e()} else {e()}",
            lambda: f"lambda {rng.choice(_PARAMETERS)}: {e()}",
            lambda: f"(lambda {rng.choice(_PARAMETERS)}: {e()})",
            lambda: f"{e()}.b",
            lambda: f"{e()}({arguments()})",
            lambda: f"{e()}({e()} {clause()})",
            lambda: f"{e()}[{subscripts()}]",
            lambda: rng.choice(("()", "(yield)", "[]", " {}", "{}", "[*a]", "*a,", "*a", "x := 1", "(x := 1)")),
            lambda: f"({e()})",
            lambda: f"({e()}, {e()}{rng.choice(('', ','))})",
            lambda: f"[{e()} {clause()}]",
            lambda: f" {{{e()}: {e()}}} ",
            lambda: f" {{{e()}, {e()}}} ",
            lambda: f" {{**{e()}}} ",
            lambda: f" {{{e()}:{e()} {clause()}}} ",
            lambda: f"{e()} {clause()}",
            lambda: f"({e()} {clause()})",
            lambda: f"yield {e()}",
            lambda: f"yield from {e()}",
            lambda: f"{e()}, {e()}",
            lambda: self._string(allowed),
            lambda: self._string(allowed),
            lambda: self._formatted(depth - 1, allowed),
            lambda: self._formatted(depth - 1, allowed),
            lambda: self._string(allowed) + rng.choice(("", " ")) + self._formatted(depth - 1, allowed),
            lambda: rng.choice(("\n", " ", "\t", "\f")) + e() + rng.choice(("", " ", "\n")),
        )
        return rng.choice(ways)()


def is_excused(text: str, ours: bool, parses: Callable[[str], bool]) -> bool:
    """Return whether a verdict differs from CPython's for a known reason: a character's name, or adjacent strings.

    Args:
        text: What was judged.
        ours: The verdict.
        parses: The verdict's own function.
    """
    if ours:
        return "\\N{" in text
    # With a blank between them it is taken.
    return any(parses(f"{text[: found.start()]} {text[found.start() :]}") for found in _CLOSE_QUOTES.finditer(text))
