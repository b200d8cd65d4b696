"""Random short texts of a language of token trees: its delimiters, escapes, quotes, line breaks and words."""

from __future__ import annotations

import random

from fim_server.language.definition.token_trees.data import StringKind, TokenTrees

COMMON = ["\n", "\n", " ", "a", "b\n", "\t", "\v", "1", "1e", ".", "-", "+", "=", "$", "<", "\\", '"', "'", "é", "x y"]
OWN = {
    "c": ["#", "\n#", "\n #", "#if", "0'1"],
    "csharp": ["#", "\n#", "\n #", "@a"],
    "css": ["url(", "url( ", "url('", "--"],
    "lua": ["\\z", "#!", "]", "]=", "="],
    "php": ["?>", "<?php", "<?=", "?", "<?", ">", "<?xml", "<?php "],
    "r": ["%", "%", "%%"],
    "swift": ["#", '"#'],
}
"""Pieces of what a language's data writes as patterns, by definitions."""
BEGINNINGS = {"php": ("<?php ", "<?php ", "")}


class Drawer:
    """Draws texts of a language."""

    def __init__(self, definition: str, data: TokenTrees) -> None:
        self.beginnings = BEGINNINGS.get(definition, ("",))
        self.whole = [*COMMON, *OWN.get(definition, []), *data.no_operators, *data.letters]
        self.themes: list[tuple[str, list[str], str]] = []
        for line in data.line_comments:
            self._add([line.open, line.open, "\\\n", "\\"])
        for block in data.block_comments:
            self._add(
                [block.open, block.close, block.open[:1], block.close[:1], block.close[-1:]], block.open, block.close
            )
        for kind in data.strings:
            self._add(of_string(kind), kind.open, kind.close)
        for here in data.here_documents:
            word = here.words[0]
            heads = [f"{here.open}{quote}{word}{quote}" for quote in ("", "'", '"')]
            lines = [f"\n{word}", f"\n {word}", f"\n{word}x", *here.words, here.open]
            self._add([*heads, *(f"{head}\n" for head in heads), *lines])
        for opening, closing in data.brackets:
            self._add([opening, closing, opening + closing])
        self.whole = list(dict.fromkeys(self.whole))

    def _add(self, pieces: list[str], opening: str = "", closing: str = "") -> None:
        self.whole += pieces
        self.themes.append((opening, [*pieces, *pieces, "a", "\n", " "], closing))

    def text(self, rng: random.Random) -> str:
        """A text of all pieces, or mainly of those of one kind of comment, string or bracket."""
        opening, theme, closing = rng.choice((("", self.whole, ""), *[rng.choice(self.themes)] * 2))
        count = rng.randrange(rng.choice((6, 12)))
        pieces = "".join(rng.choice(theme if rng.random() < 0.9 else self.whole) for _ in range(count))
        ends = (opening, closing) if rng.random() < 0.5 else ("", "")
        return rng.choice(self.beginnings) + pieces.join(ends)


def of_string(kind: StringKind) -> list[str]:
    """The pieces of a kind of string."""
    pieces = [kind.open, kind.close, kind.open + kind.close, kind.close[0], kind.close[-1], *kind.plain]
    if kind.escape:
        pieces += [kind.escape, kind.escape + kind.close, kind.escape + "\n"]
    for hole in kind.holes:
        pieces += [hole.open, hole.close, kind.open + hole.open, hole.close + kind.close]
    return pieces
