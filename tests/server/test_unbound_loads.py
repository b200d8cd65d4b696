"""Names that a suggestion loads and nothing binds where it does."""

from __future__ import annotations

import pytest

from fim_server.language import Language
from fim_server.languages.python import unbound
from fim_server.languages.python.scopes import scope_at
from fim_server.languages.python.unbound import unbound_load
from fim_server.server.doubts import LOADS_UNKNOWN, NO_DOUBT, Doubt
from fim_server.server.imports import doubt_of
from fim_server.text.document import Split

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
    end = unbound_load(left, right, text, scope_at(left, right))
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
        ("", "local = f'{there}'", None),  # the tree does not say where it stands, before Python 3.12
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
    if "f'" in text:
        assert found(text, typed) in (None, "local = f'{there")
    else:
        assert found(text, typed) == expected


def test_what_is_no_program_is_not_judged() -> None:
    assert found("local = elsewhere", right="\n  )\n") is None


def test_no_tree_is_read_of_a_text_whose_names_are_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*texts: str) -> None:
        raise AssertionError("read")

    monkeypatch.setattr(unbound, "unbound", read)
    assert found("local = given + len(os.sep)") is None
    with pytest.raises(AssertionError, match="read"):
        found("local = elsewhere")


def test_such_a_suggestion_is_doubted() -> None:
    spelling = Language.load("python").open(LEFT, RIGHT).spelling
    split, scope = Split(LEFT, RIGHT), scope_at(LEFT, RIGHT)
    assert doubt_of("python", spelling, split, "local = elsewhere + 1", (), scope) == Doubt(17, LOADS_UNKNOWN)
    assert doubt_of("python", spelling, split, "local = given + 1", (), scope) == NO_DOUBT
    assert doubt_of("python", spelling, split, "local = elsewhere + 1") == NO_DOUBT
