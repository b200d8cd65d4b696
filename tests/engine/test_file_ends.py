"""Files that are lists with a head, that end with a comment without a line break, or that begin in several ways.

Random languages of that kind are compared with brute force. Sessions in which R has no say are compared with sessions
that ask R at every step (`language/follow`).
"""

import os
import random
from collections import Counter
from dataclasses import dataclass

from fim_server import Session
from support.languages.definitions import compiled_or_none
from support.languages.toys import Oracle, Toy, check_contexts, contexts

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
LANGUAGES = 800 if LONG else 22

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
    lexemes: list[tuple[str, str | None, str | None, int]] = [
        ("A", "a", None, 0), ("B", None, rng.choice(["b+", "b", "ba"]), 0), ("BREAK", None, BREAK, 0)
    ]  # fmt: skip
    if any("COMMENT" in right for _, right in rules):
        lexemes.append(("COMMENT", None, COMMENT, 0))
    return FileToy(tuple(lexemes), tuple(sorted(rules)), separated=True)


def test_files_with_heads_and_last_comments_agree_with_brute_force() -> None:
    verdicts = {"complete": 0, "viable": 0, "refused": 0, "languages": 0}
    loose: Counter[bool] = Counter()
    for index in range(LANGUAGES):
        rng = random.Random(f"files {index}")
        toy = random_files(rng)
        language = compiled_or_none(toy.spec())
        if language is None:
            continue
        oracle = Oracle(toy)
        members = [text for text in oracle.texts(5) if oracle.member(text)]
        if not members:
            continue
        verdicts["languages"] += 1
        for left, right in contexts(oracle, rng, members):
            check_contexts(language, oracle, left, right, rng, verdicts, toy)
            session, tight = Session(language.open(left, right)), Session(language.open(left, right))
            loose[session._core.is_loose()] += bool(right)
            tight._core.tighten()
            for middle in oracle.texts(3):
                assert session.check(middle) == tight.check(middle), (toy, left, middle, right)
    assert min(verdicts.values()) > 0, verdicts
    assert min(loose[True], loose[False]) > 20, loose
