"""Random languages of files: lists of lines with a head, which may end with a comment without a line break."""

from __future__ import annotations

import random
from dataclasses import dataclass

from support.languages.toys import Toy

COMMENT = "d[abcd]*"
BREAK = "(d[abcd]*)?e"
"""A line break with the comment before it: what the comment of a last line lacks is `e`."""


@dataclass(frozen=True)
class FileToy(Toy):
    """A random language of files."""

    @property
    def alphabet(self) -> str:
        return "abcde"


HEADS = [(), ("A",), ("A", "B"), ("x",)]
ENTRIES = [(("A",),), (("A", "B"), ("B",)), (("A", "file", "B"),), (("A", "entry", "A"), ("B",)), (("x", "A"), ("A",))]
X = [(("A", "A"),), (("B",), ("x", "B")), ((), ("A",))]


def random_files(rng: random.Random) -> FileToy:
    """Lines of entries after a head, each ended by a line break or a semicolon, perhaps beside another kind of file."""
    rules: set[tuple[str, tuple[str, ...]]] = {
        ("s", ("lines",)), ("lines", rng.choice(HEADS)), ("lines", ("ended", "entry")), ("ended", ("lines", "BREAK")),
    }  # fmt: skip
    if rng.random() < 0.8:
        rules |= {("s", ("ended",)), ("ended", ("ended", "BREAK"))}
    if rng.random() < 0.4:
        rules.add(("ended", ("lines", "A", "A")))  # a text that ends an entry without its being known from one symbol
    if rng.random() < 0.8:
        rules |= {("s", ("commented",)), ("commented", ("lines", "COMMENT"))}
        if rng.random() < 0.5:
            rules.add(("commented", ("ended", "COMMENT")))
    if rng.random() < 0.4:
        rules |= {("s", ("module",)), ("module", rng.choice([("B", "B"), ("lines", "B", "B"), ("x", "B")]))}
    rules |= {("file", ("lines",))} if rng.random() < 0.5 else {("file", ("entry",))}
    rules |= {("entry", right) for right in rng.choice(ENTRIES)}
    rules |= {("x", right) for right in rng.choice(X)}
    if rng.random() < 0.5:
        rules = _behind_a_choice(rng, rules)
    lexemes: list[tuple[str, str | None, str | None, int]] = [
        ("A", "a", None, 0), ("B", None, rng.choice(["b+", "b", "ba"]), 0), ("BREAK", None, BREAK, 0)
    ]  # fmt: skip
    if any("COMMENT" in right for _, right in rules):
        lexemes.append(("COMMENT", None, COMMENT, 0))
    return FileToy(tuple(lexemes), tuple(sorted(rules)), separated=True)


def _behind_a_choice(rng: random.Random, rules: set[tuple[str, tuple[str, ...]]]) -> set[tuple[str, tuple[str, ...]]]:
    """Return rules of a file that is one of several nonterminals, perhaps none, and may end with a comment."""
    files = {right for left, right in rules if left == "s"} | ({()} if rng.random() < 0.5 else set())
    inner = {("inner", right) for right in files if rng.random() < 0.5}
    chosen = {("choice", right) for right in files if ("inner", right) not in inner} | {("choice", ("inner",))}
    changed = {rule for rule in rules if rule[0] != "s"} | inner | chosen | {("s", ("choice",))}
    if rng.random() < 0.7:
        changed.add(("s", ("choice", "COMMENT")))
    return changed if inner else rules
