"""Exactness on real files: random cuts, mutated middles, shortest completions and refused characters.

The short form takes a few files of at most 40 kB; the long form (FIM_SERVER_LONG=1) takes 2,000 random cuts and
2,000 mutated middles. FIM_SERVER_SEED draws others. Each test prints what it found.
"""

import os
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

import pytest

from fim_server import Verdict
from fim_server.errors import SearchLimitError
from support.engine.corpus import (
    MUTATIONS,
    Cut,
    Reproduction,
    cause_of,
    causes,
    cuts,
    mutated,
    python,
    reference,
    shrunk,
    walk,
)

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = int(os.environ.get("FIM_SERVER_SEED", "1"))
CUTS = 2000 if LONG else 200
MUTANTS = 2000 if LONG else 400
SMALL_TEXTS = 100_000 if LONG else 4_000
POINTS = 1000 if LONG else 80
LIMIT = 150_000 if LONG else 40_000  # bytes of a file
SMALL = 6_000  # the same, where CPython parses the file again and again
PER_FILE = 4
CHARACTERS = [chr(code) for code in range(32, 127)] + ["\n", "\t", "\r", "\f", "\0", "é", "·", "\u3000", "😀"]


def report(title: str, counts: Counter[str], failures: list[str]) -> None:
    print(f"{title}:", dict(counts.most_common()))
    if failures:
        pytest.fail(f"{len(failures)} failures\n" + "\n".join(failures[:20]), pytrace=False)


def described(left: str, middle: str, right: str, cause: str) -> str:
    """A disagreement in its smallest form, as it can be put into tests/cases/found.toml."""
    case = shrunk(Reproduction(left, middle, right), lambda it: cause_of(it.left, it.middle, it.right) == cause)
    verdict = python().open(case.left, case.right).check(case.middle)
    truth = reference(case.left + case.middle + case.right)
    return f"{cause}: complete={verdict.complete}, ast.parse={truth}\n  {case}"


def true_middle_refused(left: str, middle: str, right: str) -> str | None:
    """Return the wrong answers on a complete middle."""
    session = python().open(left, right)
    if session.guarantee != "exact":
        return f"guarantee {session.guarantee}: {session.diagnostics}"
    refused = walk(session, middle)
    if refused is not None:
        return f"refused at {refused}"
    state = session.start()
    if state.advance(middle) != len(middle.encode()) or not state.is_complete():
        return "not complete"
    verdict = session.check(middle)
    return None if verdict == Verdict(viable=True, complete=True, rejected_at=None) else str(verdict)


def test_cuts_admit_their_own_middle() -> None:
    rng = random.Random(SEED)
    counts: Counter[str] = Counter()
    failures = []
    for cut in islice(cuts(rng, LIMIT, PER_FILE), CUTS):
        wrong = true_middle_refused(cut.left, cut.middle, cut.right)
        counts[wrong.split()[0] if wrong else "admitted"] += 1
        counts["characters"] += len(cut.middle)
        if wrong:
            smaller = shrunk(
                Reproduction(cut.left, cut.middle, cut.right),
                lambda case: (
                    reference(case.left + case.middle + case.right)
                    and true_middle_refused(case.left, case.middle, case.right) is not None
                ),
            )
            failures.append(f"{cut}: {wrong}\n  {smaller}")
    report(f"{CUTS} cuts", counts, failures)


def test_a_cut_between_characters_of_one_file_everywhere() -> None:
    """Every offset of one small file, empty middle and one character: nothing is special about where the cursor is."""
    source = next(cuts(random.Random(SEED), SMALL, 1)).source
    step = 1 if LONG else max(1, len(source.text) // 200)
    for at in range(0, len(source.text) + 1, step):
        for end in (at, min(at + 1, len(source.text))):
            left, middle, right = source.text[:at], source.text[at:end], source.text[end:]
            assert true_middle_refused(left, middle, right) is None, Reproduction(left, middle, right)


PIECES = [
    " ",
    "  ",
    "    ",
    "\t",
    "\n",
    "\n",
    "\n ",
    "\n  ",
    "\n    ",
    "\n\t",
    "\\\n",
    "\\\n  ",
    "\\",
    "\f",
    "\r\n",
    "\r",
]
PIECES += [
    "#",
    "# c",
    "a",
    "b",
    "if a:",
    "if a:\n  ",
    "else:",
    "def f():",
    "try:",
    "except:",
    "match a:",
    "case b:",
    "@a",
]
PIECES += [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    ";",
    "=",
    "'",
    '"',
    '"""',
    "'''",
    "f'",
    "b'",
    "1",
    "0",
    "o",
    "in",
    "not",
    "é",
    ".",
]


def test_cuts_of_random_small_texts_agree_with_cpython() -> None:
    """Pieces of layout and of symbols in any order: mostly no programs, and cut anywhere."""
    rng = random.Random(SEED + 4)
    counts: Counter[str] = Counter()
    failures = []
    for _ in range(SMALL_TEXTS):
        pieces = PIECES[: rng.choice((24, 36, len(PIECES)))]
        text = "".join(rng.choice(pieces) for _ in range(rng.randrange(1, 14)))
        start, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        left, middle, right = text[:start], text[start:end], text[end:]
        session = python().open(left, right)
        verdict = session.check(middle)
        valid = reference(text)
        counts["valid" if valid else "invalid"] += 1
        if verdict.viable != (walk(session, middle) is None) or (verdict.complete and not verdict.viable):
            failures.append(f"inconsistent {verdict}\n  {Reproduction(left, middle, right)}")
        if verdict.complete != valid:
            cause = cause_of(left, middle, right)
            counts[f"cause: {cause}"] += 1
            if cause is None or cause not in causes():
                failures.append(described(left, middle, right, str(cause)))
    report(f"{SMALL_TEXTS} small texts", counts, failures)


def mutants() -> Iterator[tuple[Cut, str, str]]:
    rng = random.Random(SEED + 1)
    for cut in cuts(rng, LIMIT, PER_FILE):
        for kind in rng.sample(MUTATIONS, 3):
            yield cut, kind, mutated(rng, cut, kind)


def test_mutated_middles_agree_with_cpython() -> None:
    counts: Counter[str] = Counter()
    failures = []
    for cut, kind, middle in islice(mutants(), MUTANTS):
        session = python().open(cut.left, cut.right)
        verdict = session.check(middle)
        valid = reference(cut.left + middle + cut.right)
        counts["valid" if valid else "invalid"] += 1
        counts[kind] += 1
        if verdict.viable != (walk(session, middle) is None) or (verdict.complete and not verdict.viable):
            failures.append(f"{kind}: inconsistent {verdict}\n  {Reproduction(cut.left, middle, cut.right)}")
        if verdict.complete != valid:
            cause = cause_of(cut.left, middle, cut.right)
            counts[f"cause: {cause}"] += 1
            if cause is None or cause not in causes():
                failures.append(f"{kind} {described(cut.left, middle, cut.right, str(cause))}")
    report(f"{MUTANTS} mutated middles", counts, failures)


@pytest.mark.parametrize("name", sorted(causes()))
def test_mutated_middles_causes_are_still_causes(name: str) -> None:
    """Every cause that excuses a disagreement has an example that is one, unless the interpreter is too new for it."""
    cause = causes()[name]
    found = {cause_of(example["left"], example["middle"], example["right"]) for example in cause["examples"]}
    until = tuple(map(int, cause.get("until", "99").split(".")))
    assert found <= ({name} if sys.version_info[: len(until)] <= until else {None})
    assert cause["explanation"]


def points() -> Iterator[tuple[str, str, str, str]]:
    """Left, viable part of a true or a mutated middle, the rest of the true one, and right, without end."""
    rng = random.Random(SEED + 2)
    for cut in cuts(rng, SMALL, PER_FILE):
        middle = cut.middle if rng.random() < 0.5 else mutated(rng, cut, rng.choice(MUTATIONS))
        rejected = python().open(cut.left, cut.right).check(middle).rejected_at
        at = rng.randint(0, len(middle) if rejected is None else rejected)
        rest = cut.middle[at:] if cut.middle.startswith(middle[:at]) else ""
        yield cut.left, middle[:at], rest, cut.right


def known_cause(left: str, middle: str, right: str) -> bool:
    return cause_of(left, middle, right) in causes()


def test_cuts_shortest_completions_parse() -> None:
    counts: Counter[str] = Counter()
    failures = []
    for left, middle, rest, right in islice(points(), POINTS):
        session = python().open(left, right)
        state = session.start()
        assert state.advance(middle) == len(middle.encode())
        try:
            found = state.shortest_completion()
        except SearchLimitError:
            counts["over the search's limit"] += 1
            continue
        assert found is not None, Reproduction(left, middle, right)
        distance = len(found.encode())
        counts[f"{min(distance, 9)} bytes"] += 1
        case = f"{found!r}\n  {Reproduction(left, middle, right)}"
        if state.distance() != distance:
            failures.append(f"distance {state.distance()} of {case}")
        if state.is_complete() != (distance == 0) or not session.check(middle + found).complete:
            failures.append(f"complete {case}")
        if rest and distance > len(rest.encode()):
            failures.append(f"not the shortest, {rest!r} is shorter: {case}")
        if not reference(left + middle + found + right) and not known_cause(left, middle + found, right):
            failures.append(f"no completion: {case}")
        shorter = [""] * (distance > 0) + [one for one in CHARACTERS if len(one.encode()) < distance]
        failures += [
            f"{text!r} is shorter than {case}"
            for text in shorter
            if reference(left + middle + text + right) and not known_cause(left, middle + text, right)
        ]
    if counts["over the search's limit"] > POINTS // 20:
        failures.append("the search gives up too often")
    report(f"{POINTS} shortest completions", counts, failures)


def test_cuts_distances_fit_together() -> None:
    """One more byte brings the end nearer by one byte at most, and the shortest completion's bytes do so each."""
    rng = random.Random(SEED + 5)
    counts: Counter[str] = Counter()
    failures = []
    for left, middle, _, right in islice(points(), POINTS):
        state = python().open(left, right).start()
        state.advance(middle)
        try:
            distance, shortest = state.distance(), state.shortest_completion()
            assert distance is not None
            assert shortest is not None
            steps = [(character, False) for character in rng.sample(CHARACTERS, 12)]
            steps += [(shortest[: end + 1], True) for end in range(len(shortest))]
            for text, exactly in steps:
                after = state.fork()
                if after.advance(text) < len(text.encode()):
                    continue
                counts["steps"] += 1
                least, found = distance - len(text.encode()), after.distance()
                assert found is not None
                if found < least or (exactly and found > least):
                    failures.append(f"{distance} before {text!r}, {found} after\n  {Reproduction(left, middle, right)}")
        except SearchLimitError:
            counts["over the search's limit"] += 1
    report(f"{POINTS} points", counts, failures)


def test_cuts_refused_characters_have_no_completion() -> None:
    """A refused text leads nowhere: the rest of the true middle, its tails and single tokens complete none of it."""
    rng = random.Random(SEED + 3)
    counts: Counter[str] = Counter()
    failures = []
    for left, middle, rest, right in islice(points(), POINTS):
        state = python().open(left, right).start()
        state.advance(middle)
        refused = [one for one in CHARACTERS if state.fork().advance(one) < len(one.encode())]
        counts["characters refused"] += len(refused)
        counts["characters allowed"] += len(CHARACTERS) - len(refused)
        for character in rng.sample(refused, min(len(refused), 6)):
            for completion in completions(rng, rest):
                counts["completions tried"] += 1
                text = middle + character + completion
                if reference(left + text + right) and not known_cause(left, text, right):
                    failures.append(f"{character!r} refused\n  {Reproduction(left, text, right)}")
    report(f"{POINTS} points", counts, failures)


def completions(rng: random.Random, rest: str) -> Iterable[str]:
    tails = [rest[at:] for at in range(len(rest) + 1)]
    chosen = {"", rest, rest[1:], *rng.sample(tails, min(len(tails), 4))}
    words = [
        "\n",
        "\n    ",
        ")",
        "]",
        "}",
        "'",
        '"',
        '"""',
        ":",
        " x",
        ": x",
        ")\n",
        " pass",
        " x: pass\n",
        "#",
        "x = 0\n",
    ]
    chosen.update(rng.sample(words, 6))
    return sorted(chosen)
