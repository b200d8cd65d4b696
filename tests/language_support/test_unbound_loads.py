"""Names that a suggestion loads and nothing binds where it does."""

from __future__ import annotations

import cmd
import fractions
import ftplib
import io
import random
import sys
import textwrap
import tokenize
from pathlib import Path
from types import ModuleType

import pytest

from fim_server.language import Language
from fim_server.language_support.python.around import WORD, indentation
from fim_server.language_support.python.support import PythonSupport
from fim_server.language_support.python.unbound import MOST_CHARACTERS, unbound_load
from fim_server.suggest.ranking.reasons import Reason
from fim_server.suggest.ranking.red_flags import LOADS_UNKNOWN, NO_FLAG, RedFlag, flag_of
from fim_server.text.document import Split
from support import tree_names

LEFT = """import os

def other(there):
    elsewhere = there

def f(given):
    local = 1
    """
RIGHT = "\n    return later\n"


def found(text: str, typed: str = "", right: str = RIGHT) -> str | None:
    """The text up to the first name that nothing binds."""
    left = LEFT + typed
    end = unbound_load(left, right, text)
    return None if end is None else text[:end]


@pytest.mark.parametrize(
    ("typed", "text", "expected"),
    [
        ("", "local = given + os.sep", None),
        ("", "local = elsewhere", "local = elsewhere"),
        ("local = el", "sewhere + there", "sewhere"),
        ("", "self.x = 1", "self"),
        ("", "local = [there for there in given]", None),
        ("", "local = [there for thing in given]", "local = [there"),
        ("", "local = lambda there: there + elsewhere", "local = lambda there: there + elsewhere"),
        ("", "print(elsewhere=1, sep='elsewhere', end=os.elsewhere)", None),
        ("", "later = elsewhere = 1", None),
        (
            "",
            "for there in given:\n        print(there, elsewhere)",
            "for there in given:\n        print(there, elsewhere",
        ),
        ("", "local = f'{there}'", "local = f'{there"),
        ("", "random.random()", None),
        ("", "random", None),
        ("", "local = random", "local = random"),
        # what may yet be bound by what comes after it
        ("", "elsewhere", None),
        ("", "local, elsewhere", None),
        ("print", "(elsewhere", None),
        ("", "local = (elsewhere =", None),
    ],
)
def test_what_a_text_loads_that_nothing_binds(typed: str, text: str, expected: str | None) -> None:
    assert found(text, typed) == expected


@pytest.mark.parametrize(
    ("left", "text", "right", "expected"),
    [
        ("", "A = b", "\n", "A = b"),
        ("b = 1\n", "A = b", "\n", None),
        ("", "def f(x: A) -> B:", "\n    pass\n", "def f(x: A"),
        ("A = B = 1\n", "def f(x: A) -> B:", "\n    pass\n", None),
        ("class C:\n    A = 1\n    ", "B = A + c", "\n", "B = A + c"),
        ("x = {\n    1: ", "a,", "\n    2: b,\n}\n", "a"),
        ("a = 1\nx = {\n    1: ", "a,", "\n    2: b,\n}\n", None),
        ("x = [\n    a,\n    ", "b,", "\n]\n", "b"),
        ("from a import (\n    ", "b,", "\n)\n", None),
        # what lines do not show
        ("from os import path, \\\n    sep as s\n\ndef f():\n    ", "return s", "\n", None),
        ("x: W[\n    k,\n] = 1\n\ndef f():\n    ", "return y + x", "\n", "return y"),
        ("if (\n    1\n    and 2\n):\n    val = 1\n\ndef f():\n    ", "return val", "\n", None),
        ("try: import foo\nexcept ImportError: foo = None\n\ndef f():\n    ", "return foo", "\n", None),
        ("match 1:\n    case [first, *rest]:\n        pass\n\ndef f():\n    ", "return first, rest", "\n", None),
        ("class A:\n    def m(self):\n        ", "return __class__.x", "\n", None),
        ("class A:\n    ", "r = __qualname__", "\n", None),
        ("class A:\n    P = Q = 3\n    ", "R = Q", "\n", None),
        ('"""Doc.\n\n', "Example, usage", '\n"""\nimport os\n', None),
    ],
)
def test_outside_of_functions(left: str, text: str, right: str, expected: str | None) -> None:
    end = unbound_load(left, right, text)
    assert (None if end is None else text[:end]) == expected


def test_a_long_file_is_not_read() -> None:
    assert found("local = elsewhere") is not None
    assert found("local = elsewhere", right=RIGHT + "# more\n" * (MOST_CHARACTERS // 7)) is None


def test_what_is_no_program_is_not_judged() -> None:
    assert found("local = elsewhere", right="\n  )\n") is None


def lines_of(text: str) -> list[int]:
    """The numbers of the lines of a module's code that are not a part of a longer text."""
    found = set(range(len(text.split("\n"))))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING and token.start[0] != token.end[0]:
            found.difference_update(range(token.start[0] - 1, token.end[0]))
    return [line for line in sorted(found) if text.split("\n")[line].strip()]


@pytest.mark.parametrize("module", [cmd, ftplib, fractions, textwrap], ids=lambda module: module.__name__)
def test_reported_names_are_unbound_by_the_syntax_tree(module: ModuleType) -> None:
    """Lines as they stand load nothing unbound; with one name of the file in another's place, the tree decides."""
    text, chance = Path(str(module.__file__)).read_text(encoding="utf-8"), random.Random(module.__name__)
    lines, words = text.split("\n"), sorted(set(WORD.findall(text)))
    reported = expected = 0
    for number in chance.sample(lines_of(text), 60):
        line = lines[number]
        blank = indentation(line)
        left, right = "\n".join((*lines[:number], line[:blank])), "\n" + "\n".join(lines[number + 1 :])
        assert unbound_load(left, right, line[blank:]) is None, line
        place = chance.choice([*WORD.finditer(line)] or [None])
        if place is None:
            continue
        changed = line[blank : place.start()] + chance.choice(words) + line[place.end() :]
        loads = tree_names.unbound(left, changed, right)
        if loads is None:  # no suggestion is such a text
            continue
        exact = {one.name for one in loads}
        end = unbound_load(left, right, changed)
        if end is not None:
            assert WORD.findall(changed[:end])[-1] in exact, changed
        reported, expected = reported + (end is not None), expected + bool(exact - sys.stdlib_module_names)
    assert reported >= 0.7 * expected > 0


def test_a_suggestion_with_an_unbound_name_is_a_red_flag() -> None:
    spelling = Language.load("python").open(LEFT, RIGHT).spelling
    split, scope = Split(LEFT, RIGHT), PythonSupport().scope_at(LEFT, RIGHT)
    assert flag_of("python", spelling, split, "local = elsewhere + 1", (), scope) == RedFlag(
        17, LOADS_UNKNOWN, reason=Reason.UNDEFINED_NAME
    )
    assert flag_of("python", spelling, split, "local = given + 1", (), scope) == NO_FLAG
    assert flag_of("python", spelling, split, "local = elsewhere + 1") == NO_FLAG
