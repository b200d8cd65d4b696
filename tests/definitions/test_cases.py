"""The engine-neutral cases of tests/cases/*.toml (fields: paper.toml), and CPython's word on them."""

import sys
import tomllib
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from fim_server import Language, Session
from support.engine.corpus import reference, walk

FOLDER = Path(__file__).parents[1] / "cases"
OTHER_TABLES = {"causes.toml", "python_snippets.toml", "versions.toml"}
# What is tried where no text may complete the middle.
ENDINGS = ["", "\n", "#", "x", " ", ")", "]", "}", "'", '"', "'''", '"""', ":", "=", "\n#", "\nif x:#", "\nif x:\n "]


@dataclass(frozen=True)
class Case:
    name: str
    left: str
    middle: str
    right: str
    viable: bool
    complete: bool
    completion: str | None = None
    language: str = "python"
    since: str = "3.11"
    note: str = ""

    @property
    def is_known_to_cpython(self) -> bool:
        return self.language == "python" and tuple(map(int, self.since.split("."))) <= sys.version_info

    def session(self) -> Session:
        return Language.load(self.language).open(self.left, self.right)


def read() -> list[Case]:
    paths = sorted(path for path in FOLDER.glob("*.toml") if path.name not in OTHER_TABLES)
    return [Case(**case) for path in paths for case in tomllib.loads(path.read_text(encoding="utf-8"))["cases"]]


CASES = read()
each_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def test_there_are_at_least_a_hundred_cases_with_names_of_their_own() -> None:
    names = [case.name for case in CASES]
    assert len(names) >= 100
    assert len(set(names)) == len(names)


@each_case
def test_the_expected_verdicts_are_cpythons(case: Case) -> None:
    """A wrong expectation fails: CPython decides what is complete, and a given completion proves what is viable."""
    if not case.is_known_to_cpython:
        pytest.skip(f"needs CPython {case.since}")
    assert reference(case.left + case.middle + case.right) == case.complete
    assert case.viable or not case.complete
    if case.completion is not None:
        assert case.viable
        assert reference(case.left + case.middle + case.completion + case.right)
    elif case.viable:
        assert case.complete, "a viable middle that is not complete has a completion to show for it"
    else:
        for ending in (first + second for first, second in product(ENDINGS, repeat=2)):
            assert not reference(case.left + case.middle + ending + case.right), ending


@each_case
def test_the_engines_verdicts(case: Case) -> None:
    verdict = case.session().check(case.middle)
    assert (verdict.viable, verdict.complete) == (case.viable, case.complete)
    assert (verdict.rejected_at is None) == case.viable


@each_case
def test_the_engines_verdicts_byte_by_byte_and_from_a_fork(case: Case) -> None:
    session = case.session()
    state = session.start()
    encoded = case.middle.encode()
    accepted = 0
    while accepted < len(encoded) and state.fork().advance(encoded[accepted : accepted + 1]):
        accepted += state.advance(encoded[accepted : accepted + 1])
    assert (accepted == len(encoded) and state.is_viable()) == case.viable
    assert (walk(session, case.middle) is None) == case.viable
    if case.viable:
        assert state.is_complete() == case.complete


@each_case
def test_every_cut_of_a_complete_text_admits_its_middle(case: Case) -> None:
    """The cursor may as well be anywhere else in left + middle + right, with nothing or one character between."""
    if not case.complete:
        return
    text = case.left + case.middle + case.right
    language = Language.load(case.language)
    for at in range(len(text) + 1):
        for end in (at, at + 1):
            verdict = language.open(text[:at], text[end:]).check(text[at:end])
            assert verdict.complete, (text[:at], text[at:end], text[end:])


@each_case
def test_the_shortest_completion_completes(case: Case) -> None:
    if not case.viable:
        return
    session = case.session()
    state = session.start()
    state.advance(case.middle)
    found = state.shortest_completion()
    assert found is not None
    assert state.distance() == len(found.encode())
    assert session.check(case.middle + found).complete
    if case.completion is not None:
        assert len(found.encode()) <= len(case.completion.encode())
    if case.is_known_to_cpython:
        assert reference(case.left + case.middle + found + case.right)
