"""Random programs and a vocabulary of any language of two files: all that the suites of made-up languages need to know.

Programs are sentences of the grammar, with a blank between symbols and, where there are blocks, indented by the step.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fim_server import Language
from fim_server.language.definition import compile as definitions
from support.languages.grammar_sentences import Sampler

FOLDER = Path(__file__).resolve().parents[2] / "languages"
PLACES = definitions.places(FOLDER)
NAMES = sorted(PLACES)


@cache
def language(name: str) -> Language:
    return Language.from_files(*files(name), variant=PLACES[name][1])


def files(name: str) -> tuple[Path, Path]:
    """The grammar and the TOML file."""
    spec, _ = PLACES[name]
    return spec.with_suffix(".lark"), spec


def lowered(name: str) -> dict[str, Any]:
    return definitions.lower(definitions.read(*files(name), variant=PLACES[name][1]))


def token_texts(name: str) -> list[str]:
    """Tokens for a language: its literals with and without a blank, in halves and letters, brackets joined, blanks."""
    own = lowered(name)
    literals = [lexeme["literal"] for lexeme in own["lexemes"] if "literal" in lexeme]
    step = " " * (own["layout"] or {"step": 1})["step"]
    found = ["\n", " ", step, f"\n{step}", "7", own["placeholder"], f" {own['placeholder']}", *literals]
    found += [f" {literal}" for literal in literals if literal.isalpha()]
    found += [half for literal in literals for half in (literal[: len(literal) // 2], literal[len(literal) // 2 :])]
    found += [character for literal in literals for character in literal]
    found += [quote * times for quote in own["quotes"] for times in (1, 2)]
    found += [comment[end] for comment in own["comments"] for end in ("prefix", "suffix") if end in comment]
    closers = [closing for _, closing in language(name).spelling.brackets]
    found += [one + other for one in closers for other in closers]
    return sorted({text for text in found if text})


@dataclass
class Programs:
    """Draws programs of one language."""

    lowered: dict[str, Any]

    @classmethod
    def of(cls, name: str) -> Programs:
        return cls(lowered(name))

    def __post_init__(self) -> None:
        self.rules: dict[str, list[list[str]]] = defaultdict(list)
        for rule in self.lowered["rules"]:
            self.rules[rule["lhs"]].append(rule["rhs"])
        self.lexemes = {lexeme["name"]: lexeme for lexeme in self.lowered["lexemes"]}
        self.layout = self.lowered["layout"]
        self.depth: dict[str, int] = {}
        while len(self.depth) < len(self.rules):  # the least depth of a derivation of each rule
            for name, expansions in self.rules.items():
                known = [self._depth(rhs) for rhs in expansions if all(self._is_known(symbol) for symbol in rhs)]
                if known and name not in self.depth:
                    self.depth[name] = 1 + min(known)

    def draw(self, rng: random.Random, size: int, least: int = 2) -> str:
        """A program of at least so many words; ``size``: rules drawn freely, before the shallowest are taken."""
        while True:
            self._left = size
            text = self._write(rng, self._expand(rng, self.lowered["start"]))
            if len(text.split()) >= least:
                return text

    def _is_known(self, symbol: str) -> bool:
        return symbol in self.lexemes or symbol in self.depth

    def _depth(self, rhs: list[str]) -> int:
        return max((self.depth.get(symbol, 0) for symbol in rhs), default=0)

    def _expand(self, rng: random.Random, symbol: str) -> list[str]:
        if symbol in self.lexemes:
            return [symbol]
        self._left -= 1
        expansions = self.rules[symbol]
        if self._left < 0:
            shallowest = min(map(self._depth, expansions))
            expansions = [rhs for rhs in expansions if self._depth(rhs) == shallowest]
        elif symbol == self.lowered["start"]:
            expansions = [max(expansions, key=len)]
        return [lexeme for part in rng.choice(expansions) for lexeme in self._expand(rng, part)]

    def _write(self, rng: random.Random, lexemes: list[str]) -> str:
        text, column = "", 0
        layout = self.layout or {}
        for name in lexemes:
            if name == layout.get("indent"):
                column += layout["step"]
            elif name == layout.get("dedent"):
                column -= layout["step"]
            elif name == layout.get("newline"):
                text += "\n"
            else:
                lexeme = self.lexemes[name]
                literal = lexeme.get("literal")
                written = literal if literal is not None else Sampler(lexeme["pattern"]).sample(rng)
                between = " " if self.layout else rng.choice("    \n")
                text += (" " * column if text.endswith("\n") or not text else between) + written
        return text if self.layout else text + "\n"
