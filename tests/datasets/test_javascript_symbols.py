"""Symbols of JavaScript, JSX, TypeScript and TSX, and holes between them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fim_server.datasets.defined import constructions
from fim_server.datasets.defined.text import DefinedText, ToldSymbols
from fim_server.datasets.holes import Refused
from fim_server.datasets.judging import programs
from fim_server.datasets.judging.judge import Judge

pytestmark = pytest.mark.skipif(programs.unavailable("javascript") is not None, reason="no Node, or no npm")

BRACKETS = {"(": ")", "[": "]", "{": "}"}

CODE = """\
#!node
// a {
export class A {
  #b = `c {${d}\u2028 ${{ e: /[/}]/g }} }`;
  static f = '😀{' / 2 / (3
  );
}
"""


@contextmanager
def reader(language: str) -> Iterator[ToldSymbols]:
    symbols = ToldSymbols(programs.symbols(language), BRACKETS)
    yield symbols
    symbols.close()


def texts(symbols: ToldSymbols, text: str) -> tuple[list[str], list[str]]:
    """Symbols and comments of a text."""
    found = list(symbols.of(text))
    assert all(start < end for start, end, _ in found)
    return tuple([text[start:end] for start, end, is_symbol in found if is_symbol is kind] for kind in (True, False))  # type: ignore[return-value]


def test_symbols_of_javascript() -> None:
    with reader("javascript") as symbols:
        own, comments = texts(symbols, CODE)
        assert comments == ["#!node", "// a {"]
        assert own[:7] == ["export", "class", "A", "{", "#b", "=", "`c {${"]
        assert own[7:17] == ["d", "}\u2028 ${", "{", "e", ":", "/[/}]/g", "}", "} }`", ";", "static"]
        assert own[17:] == ["f", "=", "'😀{'", "/", "2", "/", "(", "3", ")", ";", "}"]
        assert texts(symbols, "``;`${a}`") == (["``", ";", "`${", "a", "}`"], [])
        assert texts(symbols, "return/a/ /* b\n */") == (["return", "/a/"], ["/* b\n */"])
        assert list(symbols.of("")) == []
        with pytest.raises(Refused):
            list(symbols.of("`${"))


def test_symbols_of_typescript_and_elements() -> None:
    with reader("typescript") as symbols:
        assert texts(symbols, "let a: B<C<`d${E}`>>")[0] == [
            "let",
            "a",
            ":",
            "B",
            "<",
            "C",
            "<",
            "`d${",
            "E",
            "}`",
            ">",
            ">",
        ]
    with reader("tsx") as symbols:
        own = ["<", "a", "b", "=", "{", "c", "as", "D", "}", ">", " e ", "<", "f", "/", ">", "<", "/", "a", ">"]
        assert texts(symbols, "<a b={c as D}> e <f/>\n</a>")[0] == own


def test_holes_lie_between_symbols_of_a_block() -> None:
    digest = hashlib.sha256(CODE.encode()).hexdigest()
    with reader("javascript") as symbols:
        file = DefinedText(CODE, symbols)
        assert [CODE[block.start : block.end].strip()[:2] for block in file.blocks] == ["#b", "3"]
        cuts = [cut for seed in range(40) for cut in constructions.cuts("stack-boundary", file, seed, digest, 20)]
        middles = {CODE[cut.start : cut.end] for cut in cuts}
        assert {"class A ", "/ 2 "} <= middles
        # A hole ends where a symbol begins, and no symbol's inside is one.
        begins = {start for start, _, is_symbol in symbols.of(CODE) if is_symbol}
        assert {cut.end for cut in cuts} <= begins
        lines = {CODE[cut.start : cut.end] for cut in constructions.cuts("line", file, 0, digest, 20)}
        assert lines == {"export class A {", "static f = '😀{' / 2 / (3", ");", "}", CODE.split("\n")[3].strip()}


def test_holes_of_code_that_has_no_symbols_are_refused() -> None:
    with reader("javascript") as symbols, pytest.raises(Refused, match="refused by tokenize"):
        list(constructions.cuts("stack-boundary", DefinedText("`${", symbols), 0, "", 1))


def test_unknown_variants_have_no_symbols() -> None:
    with Judge([*programs.symbols("javascript")[:-1], "strict"]) as judge:
        assert judge.answer("a") == (None, "no language or variant strict")
