"""Sessions that go on from an earlier one answer as sessions opened afresh: typing, deleting and jumping in real files.

The long form (FIM_SERVER_LONG=1) takes more of everything; FIM_SERVER_SEED draws others.
"""

import random
import re
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest

from fim_server import Language, Session, Vocabulary
from fim_server.errors import SearchLimitError
from fim_server.language.shapes import SINGLE_LINE, Shape
from fim_server.text.reuse import OWN_SHARE, SessionMemory, Sessions
from support.engine.corpus import python, sources
from support.languages.random_vocabularies import LONG, PYTHON_FRAGMENTS, difference, filled, random_vocabulary, seeded

TYPED = ["x", "(", ")", "\n", "\n    ", " ", "'", '"""', "# c", "é", "f'{", "}", "=", ":", "if x:\n  ", "$", "\\", ","]
PROBES = ["", "x", ")", "\n", "'", '"', "}", "]", " = 1\n", "\n    x\n", "x)\n", "é"]
SHAPES: list[Shape | None] = [None, SINGLE_LINE, Shape.lines(3), Shape.regex("[a-z ]*")]


@cache
def small_vocabulary() -> Vocabulary:
    return random_vocabulary(seeded("reuse"), PYTHON_FRAGMENTS, 250)


def canonical(grammar: str) -> Counter[tuple[str, ...]]:
    """A grammar without the numbers in its names, which count sets: names by what they derive, some steps deep."""
    name = re.compile(r'"(?:[^"\\]|\\.)*"|(<[^\W\d][^>]*>)')
    rules = dict(rule.split(" ::= ", 1) for rule in re.split(r"\n(?! )", grammar) if rule)
    colours = {known: re.sub(r"(@\d+)?( \d+| at a line start)?>$", "", known) for known in rules}

    def coloured(text: str) -> str:
        return name.sub(lambda found: colours[found[1]] if found[1] else found[0], text)

    for _ in range(5):
        derived = {known: tuple(sorted(coloured(rules[known]).split("\n    | "))) for known in rules}
        colours = {known: f"{colours[known].split(' #')[0]} #{hash(derived[known]):x}" for known in rules}
    return Counter((colours[known], *derived[known]) for known in rules)


@dataclass(frozen=True)
class Opened:
    """A session that may go on from another, and what it was opened with."""

    language: Language
    left: str
    right: str
    session: Session

    def compare(self, rng: random.Random, deeply: bool = False) -> None:
        """Every answer is that of a session opened afresh."""
        fresh = self.language.open(self.left, self.right)
        own = self.session
        where = (self.left[-200:], self.right[:100])
        for question in ("guarantee", "diagnostics", "broken_at", "inside"):
            assert getattr(own, question) == getattr(fresh, question), (question, where)
        assert own._core.is_loose() == fresh._core.is_loose() or own.guarantee == "none", where
        middles = [*rng.sample(PROBES, 4), "".join(rng.choices(TYPED, k=4)), self.right[: rng.randrange(20)]]
        for middle in middles:
            assert own.check(middle) == fresh.check(middle), (middle, where)
            assert own.start().explain(middle) == fresh.start().explain(middle), (middle, where)
        shape = rng.choice(SHAPES)
        matchers = [each.matcher(small_vocabulary(), shape) for each in (own, fresh)]
        for _ in range(3):
            one, other = (filled(matcher.fill_mask, small_vocabulary()) for matcher in matchers)
            assert (one == other).all(), (where, shape, difference(one, other, small_vocabulary()))
            assert matchers[0].forced() == matchers[1].forced()
            allowed = np.flatnonzero(matchers[0].mask())
            if not len(allowed):
                break
            token = int(rng.choice(allowed))
            for matcher in matchers:
                matcher.commit(token)
        if deeply:
            assert distance(own) == distance(fresh), where
            assert canonical(own.quotient_grammar()) == canonical(fresh.quotient_grammar()), where


def distance(session: Session) -> str | int | None:
    try:
        return session.start().distance()
    except SearchLimitError:
        return "too far"


def edits(rng: random.Random, left: str, steps: int) -> list[str]:
    """Left contexts, each of them made of the one before by typing, deleting or jumping."""
    found = [left]
    text = left
    for _ in range(steps):
        match rng.randrange(8):
            case 0:
                text = text[: max(0, len(text) - rng.randrange(1, 30))]
            case 1:
                text = left[: rng.randrange(len(left) + 1)]
            case 2:
                at = rng.randrange(len(text) + 1)
                text = text[:at] + rng.choice(TYPED) + text[at:]
            case 3:
                at = rng.randrange(len(text) + 1)
                text = text[:at] + text[at + rng.randrange(1, 10) :]
            case 4:
                text = text + left[len(text) : len(text) + rng.randrange(1, 60)]
            case _:
                text += rng.choice(TYPED)
        found.append(text)
    return found


def situations(name: str, count: int) -> list[tuple[str, str]]:
    """Left and right contexts of real files, some of them broken on one side."""
    rng = seeded(name)
    found = []
    for source in islice(sources(rng, 6_000), count):
        cut = rng.randrange(len(source.text) + 1)
        left, right = source.text[:cut], source.text[cut:]
        match rng.randrange(5):
            case 0:
                right = right.replace("\n", "\n$\n", 1)
            case 1:
                at = rng.randrange(len(left) + 1)
                left = left[:at] + rng.choice([" $ ", "'", "("]) + left[at:]
            case 2:
                right = rng.choice(["", "\n", ")\n", "'''\n"])
            case _:
                pass
        found.append((left, right))
    return found


@pytest.mark.parametrize("number", range(60 if LONG else 12))
def test_sessions_answer_as_fresh_ones(number: int) -> None:
    rng = seeded(f"reuse {number}")
    left, right = situations(f"situation {number}", 1)[0]
    sessions = Sessions()
    old: list[Opened] = []
    for index, text in enumerate(edits(rng, left, 24)):
        opened = Opened(python(), text, right, sessions.open(python(), text, right))
        opened.compare(rng, deeply=index % 8 == 0)
        old.append(opened)
        rng.choice(old).compare(rng)
    rng.choice(old).compare(rng, deeply=True)


def test_json_and_other_versions() -> None:
    rng = seeded("reuse of others")
    sessions = Sessions()
    for language, left, right in (
        (Language.load("json"), '{"a": [1, 2, {"b": "c", "d": 1}, null', '], "e": {}}'),
        (Language.load("json"), '{"a": [1, 2, {"b": "c", "d": 1}, null', ""),
        (Language.load("python", "3.9"), "with a as b:\n    x = f'{y}'\n    match", "\n"),
        (python(), "with a as b:\n    x = f'{y}'\n    match", "\n"),
    ):
        for text in edits(rng, left, 20):
            opened = Opened(language, text, right, sessions.open(language, text, right))
            fresh = language.open(text, right)
            for question in ("guarantee", "diagnostics", "broken_at", "inside"):
                assert getattr(opened.session, question) == getattr(fresh, question), (question, text)
            for middle in (*PROBES, '"b": 1}', "1]"):
                assert opened.session.check(middle) == fresh.check(middle), (middle, text)
            one, other = (
                filled(each.matcher(small_vocabulary()).fill_mask, small_vocabulary())
                for each in (opened.session, fresh)
            )
            assert (one == other).all(), text


def test_the_right_context_is_not_read_again() -> None:
    sessions = Sessions()
    right = "\n" + "y = f(1)\n" * 50
    one = sessions.open(python(), "x = ", right)
    other = sessions.open(python(), "x = 1", right)
    lattice = one._core.sizes()[1]
    assert other._core.sizes() == one._core.sizes(), "one engine"
    assert one.moved("x = 12") is not None
    assert one._core.sizes()[1] == lattice
    assert one.check("1").complete
    assert other.check("2").complete


def test_a_session_whose_right_context_decides_is_not_moved() -> None:
    """Looseness is an engine's: where it is another for the new left context, there is no going on."""
    tight = python().open("x = ", "\ny\n")
    tight._core.tighten()
    assert tight.moved("x = 1") is None
    broken = python().open("x = = ", "\ny\n")
    moved = broken.moved("x = ")
    assert moved is not None
    assert moved._core.is_loose()


def test_an_engine_is_given_up_when_it_has_grown() -> None:
    rng = seeded("growth")
    first = session = python().open("", "\n")
    for _ in range(400):
        # Every other order of brackets is another stack.
        moved = session.moved("".join(rng.choices("([{", k=190)))
        if moved is None:
            break
        session = moved
    else:
        pytest.fail(f"nothing was given up: {session._core.sizes()}")
    assert 10_000 < session._core.sizes()[0] < 20_000
    assert session.check("x").viable
    assert first.check("x").complete


def test_the_wanted_number_of_sessions_is_kept() -> None:
    sessions = Sessions(2)
    for right in ("\n", "\n\n", "\n\n\n"):
        sessions.open(python(), "x = ", right)
    assert [right for _, right in sessions._known] == ["\n\n", "\n\n\n"]


def lines_right(number: int) -> str:
    """A right context that takes about as much memory as any other of these."""
    return "\n" * (1 + number) + "y = f(1)\n" * 200


def bytes_of_one() -> int:
    """Memory of one of their sessions; the first one of a process brings the language's caches too."""
    python().open("x = ", lines_right(0))
    return python().open("x = ", lines_right(0)).held


def test_sessions_hold_no_more_bytes_than_they_may() -> None:
    each = bytes_of_one()
    assert each > 50_000
    memory = SessionMemory(8 * each)
    sessions = Sessions(64, memory)
    opened = []
    for number in range(20):
        opened.append(weakref.ref(sessions.open(python(), "x = ", lines_right(number))))
        sessions.rest()
        assert memory.held <= 8 * each // OWN_SHARE
        assert sessions.knows(python(), lines_right(number))
    kept = [session() is not None for session in opened]
    assert kept == [number >= 20 - sum(kept) for number in range(20)], "those used last"
    assert 3 <= sum(kept) <= 4
    memory.most = 1
    assert memory.held < 2 * each, "what was used last is kept, however much it holds"
    assert sessions.knows(python(), lines_right(19))


def test_sessions_in_use_are_kept() -> None:
    memory = SessionMemory(1)
    here, there = Sessions(64, memory), Sessions(64, memory)
    used = [here.open(python(), "x = ", lines_right(number)) for number in range(3)]
    used.append(there.open(python(), "x = ", lines_right(3)))
    assert [here.knows(python(), lines_right(number)) for number in range(3)] == [True] * 3
    assert memory.held == sum(session.held for session in used)
    here.rest()
    assert [here.knows(python(), lines_right(number)) for number in range(3)] == [False] * 3
    assert there.knows(python(), lines_right(3))


def test_documents_share_the_memory() -> None:
    memory = SessionMemory(7 * bytes_of_one() // 2)
    documents = [Sessions(64, memory) for _ in range(5)]
    for document in documents:
        document.open(python(), "x = ", lines_right(0))
        document.rest()
        assert memory.most is not None
        assert memory.held <= memory.most
    kept = [document.knows(python(), lines_right(0)) for document in documents]
    assert kept == [False, False, True, True, True], "those used last, of whatever document"
    del document, documents
    assert memory.held == 0, "a document that is gone has nothing"


class Large:
    """A session that notes, when it is freed, whether the others' lock is held meanwhile."""

    held = 10

    def __init__(self, memory: SessionMemory, found: list[bool]) -> None:
        self.memory, self.found = memory, found

    def __del__(self) -> None:
        self.found.append(self.memory.lock.locked())

    def open(self, left: str, right: str) -> "Large":
        return Large(self.memory, self.found)

    def moved(self, left: str) -> "Large":
        return Large(self.memory, self.found)


def test_sessions_are_freed_while_no_other_document_waits() -> None:
    """Freeing one may take long, and its lock is that of all documents."""
    memory, found = SessionMemory(45), list[bool]()
    language: Any = Large(memory, found)
    here, there = Sessions(2, memory), Sessions(64, memory)
    freed = 0
    for what in ("moved", "too many", "rest", "ahead", "most"):
        match what:
            case "moved":
                here.open(language, "", "0")
                here.open(language, "x", "0")
            case "too many":
                here.open(language, "", "1")
                here.open(language, "", "2")
            case "rest":
                for number in range(4):
                    there.open(language, "", str(number))
                there.rest()
            case "ahead":
                there.open_ahead(language, "", "ahead")
            case "most":
                memory.most = 21
        assert len(found) > freed, what
        freed = len(found)
    del here, there
    assert memory.held == 0
    assert len(found) > freed
    assert not any(found)


def test_a_session_opened_ahead_is_not_in_use() -> None:
    sessions = Sessions(64, SessionMemory(1))
    sessions.open_ahead(python(), "x = ", lines_right(0))
    sessions.open(python(), "x = ", lines_right(1))
    assert not sessions.knows(python(), lines_right(0))
    assert sessions.knows(python(), lines_right(1))
    sessions.open_ahead(python(), "x = 1", lines_right(1))
    sessions.open(python(), "x = ", lines_right(2))
    assert sessions.knows(python(), lines_right(1)), "it was in use before"


def test_a_sessions_bytes_are_those_of_its_shapes_as_well() -> None:
    session = python().open("x = ", lines_right(0))
    before = session.held
    session.matcher(small_vocabulary(), Shape.lines(4))
    shaped = session.held
    assert shaped > before + 50_000
    moved = session.moved("x = 1")
    assert moved is not None
    assert moved.held >= shaped, "its shapes go on from the earlier ones"


def test_lone_surrogates_do_not_raise() -> None:
    sessions = Sessions()
    for left in ("x = '\ud800", "x = '\ud800a", "x = 'a"):
        session = sessions.open(python(), left, "\ud800'\n")
        assert session.guarantee == "none"


def test_threads() -> None:
    """Several threads type into the same files; each also uses the others' sessions."""
    sessions = Sessions(4)
    known = situations("threads", 3)

    def work(number: int) -> None:
        rng = seeded(f"thread {number}")
        left, right = rng.choice(known)
        for text in edits(rng, left, 12):
            Opened(python(), text, right, sessions.open(python(), text, right)).compare(rng)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, number) for number in range(8)]:
            done.result()
