"""Comparison with the tests of other parsers of JavaScript and TypeScript; FIM_SERVER_LONG=1 fetches those tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from fim_server.datasets.judging import programs
from fim_server.datasets.judging.differences import Differences, refused_at
from fim_server.datasets.judging.judge import EARLY, Judge
from fim_server.language import Language
from fim_server.language.definition.compile import builtin_files
from support.languages.parser_fixtures import (
    LANGUAGES,
    Fixture,
    compared,
    of_biome,
    of_esbuild,
    of_test262,
    of_typescript,
)

LONG = pytest.mark.skipif(os.environ.get("FIM_SERVER_LONG") != "1", reason="fetches packages: FIM_SERVER_LONG=1")

MADE_UP_JUDGE = """
import struct, sys
while len(head := sys.stdin.buffer.read(4)) == 4:
    text = sys.stdin.buffer.read(struct.unpack(">I", head)[0]).decode()
    print({"right": "ok", "twice": "no early Twice: a name"}.get(text, "no it is wrong"), flush=True)
"""

TAKEN_TODAY = {
    *("('\\8')", "('\\9')", '"\\8";\n', '"\\9";\n', "('\u2028')", "('\u2029')", "(class {a})", "(class {a=0})"),
    *("/\\1/u", "/{*/u;", "/}?/u;", "/(?!.){0,}?/u"),
    *("func() = 4", "for(var x=1 in [1,2,3]) 0"),
}
"""Texts that those tests refuse: newer than they are; expressions that no parser here reads; and what browsers take."""

GOALS = {"module": "module", "script": "commonjs"}
"""Versions of JavaScript by the kinds of file that the tests tell."""

Judges = Callable[[Fixture], Judge]


def test_early_errors_are_left_out_by_name_and_the_judge_decides() -> None:
    def made_up(text: str, taken: bool | None) -> Fixture:
        return Fixture(f"{text}/{taken}", "javascript", "", text, taken)

    everything = [made_up(text, taken) for text in ("right", "wrong", "twice") for taken in (True, False, None)]
    with Judge([sys.executable, "-c", MADE_UP_JUDGE]) as judge:
        taken = compared(everything, lambda fixture: True, lambda fixture: judge)
        assert taken.early == {"Twice": 2}
        assert {fixture.name for fixture, _ in taken.differing} == {"wrong/False", "wrong/None"}
        assert taken.outvoted == 1  # right/False
        refused = compared(everything, lambda fixture: False, lambda fixture: judge)
        assert refused.early == {}
        assert {fixture.name for fixture, _ in refused.differing} == {
            *("right/True", "right/None"),
            *("twice/True", "twice/None"),
        }
        assert refused.outvoted == 1  # wrong/True
        assert taken.texts == {True: 3, False: 3, None: 3}


@pytest.fixture
def appeals() -> Iterator[Judges]:
    """Judges with the last word, by language and kind of file."""
    with ExitStack() as opened:
        yield _judges(opened, programs.appeal)


@pytest.fixture
def first_judges() -> Iterator[Judges]:
    with ExitStack() as opened:
        yield _judges(opened, programs.command)


def _judges(opened: ExitStack, command: Callable[[str], Sequence[str]]) -> Judges:
    @cache
    def of(language: str, variant: str) -> Judge:
        return opened.enter_context(Judge([*command(language)[:-1], variant]))

    return lambda fixture: of(fixture.language, fixture.variant)


@LONG
def test_both_judges_agree_with_the_tests_of_ecmascript(tmp_path: Path, first_judges: Judges, appeals: Judges) -> None:
    fixtures = list(of_test262(tmp_path))
    assert len(fixtures) == 5361
    for judge in (first_judges, appeals):
        refused = [one.name for one in fixtures if one.taken and judge(one).verdict(one.text) is False]
        assert refused == []
    taken = [one.text for one in fixtures if one.taken is False and appeals(one).verdict(one.text) is True]
    assert {*taken} == TAKEN_TODAY


@LONG
def test_the_first_judge_and_the_appeal_agree_on_tests_of_parsers(first_judges: Judges, appeals: Judges) -> None:
    for read, texts in ((of_biome, 643), (of_esbuild, 3830), (of_typescript, 12905)):
        fixtures = list(read())
        assert len(fixtures) == texts

        def takes(fixture: Fixture) -> bool:
            verdict, said = first_judges(fixture).answer(fixture.text)
            return verdict is True or said.startswith(EARLY)

        # The appeal knows more: oxc does not check words that modules reserve, and takes odd modifiers.
        assert len(compared(fixtures, takes, appeals).differing) < 0.05 * texts


@LONG
@pytest.mark.parametrize("language", LANGUAGES.values())
def test_a_definition_takes_what_the_tests_take(language: str, tmp_path: Path, appeals: Judges) -> None:
    known = Differences.of(builtin_files(language)[0].parent)
    everything = [*of_test262(tmp_path), *of_biome(), *of_esbuild(), *of_typescript()]
    # A script of a package is one of CommonJS.
    own = [replace(one, variant=GOALS.get(one.variant, one.variant)) for one in everything if one.language == language]
    found = compared(own, takes, appeals)
    differing = [(one, takes(one), said) for one, said in found.differing]
    unknown = [
        (one, said)
        for one, taken, said in differing
        if known.name(one.text, taken, said, None if taken else refused_at(loaded(one), one.text)) is None
    ]
    assert [(one.name, one.text, said) for one, said in unknown] == []


def takes(fixture: Fixture) -> bool:
    """Return whether the definition takes a fixture, in the language and the goal of its kind of file."""
    return loaded(fixture).open("", "").check(fixture.text).complete


def loaded(fixture: Fixture) -> Language:
    """Load the language of a fixture for its kind of file."""
    is_goal = fixture.variant in GOALS.values()
    name = fixture.variant if fixture.variant and not is_goal else fixture.language
    return Language.load(name, fixture.variant if is_goal else None)
