"""Missing names of Python code around a cursor: names that are loaded and bound nowhere, and lines that bind them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fim_server.language_support.python.around import names_around
from fim_server.language_support.python.lacking import MOST_NAMES, bound_at, lacking_of
from fim_server.language_support.python.preferring import Preference
from fim_server.language_support.python.support import PythonSupport
from fim_server.suggest.constants import SOURCES
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.suggest.sources.missing_names import LineBias, with_imports
from fim_server.text.document import Split


def lacked(text: str) -> list[str]:
    """Return the missing names at the bar in a text."""
    return lacking_of(names_around(*text.split("|"))).names.sorted


def bound(text: str) -> Sequence[str]:
    """Return the names that the line ending at the bar is likely to bind."""
    left, right = text.split("|")
    return bound_at(left[left.rfind("\n") + 1 :], names_around(left, right))


def function(*lines: str, above: str = "import os\nLIMIT = 3\n") -> str:
    return above + "\ndef f(given, *, other=1):\n    before = 1\n    |\n" + "\n".join(f"    {line}" for line in lines)


@pytest.mark.parametrize(
    ("below", "expected"),
    [
        (["return result"], ["result"]),
        (["return before + given + other + LIMIT + os.sep + len(f(1))"], []),
        (["print(name, key=value, key.other)"], ["key", "name", "value"]),
        (["x = 1", "return x"], []),
        (["x = y = 1", "return x, y"], []),
        (["x, (y, z) = g()", "[u] = x", "return y, z, u"], ["g"]),
        (["given.x, *_, y = g()", "print(y)"], ["g"]),
        (["a = b = c = 0", "return a, b, c"], []),
        (["(a, b), c = given", "return a, b, c"], []),
        (["given[0], y = given", "return y"], []),
        (["given[key] = 1"], ["key"]),
        (["with given as (p, q):", "    return p, q"], []),
        (["if given: k = 1", "else: k = 2", "return k"], []),
        (["x = 1; z = 2", "return x, z"], []),
        (["done: bool", "return done"], []),
        (["sorted(given, key=lambda q, k=given.x: q + k)"], []),
        (["return lambda q, /: q"], []),
        (["def inner(x=(), y=1): return x, y"], []),
        (["""return f"{given['a']}\""""], []),
        (["for x in items:", "    print(x)"], ["items"]),
        (["for (x,", "     y) in items:", "    print(x, y)"], ["items"]),
        (["with open(path) as file:", "    file.read()"], ["path"]),
        (["return [x for x in items if x], (lambda y: y + z)"], ["items", "z"]),
        (["def inner(a: int, *b, c=d) -> None:", "    return a + b + c + e"], ["d", "e"]),
        (["import json as j", "from x.y import (", "    z)", "return j, z"], []),
        (["match given:", "    case Point(x=0, y=there):", "        return there"], []),
        (["if (found := one) > 2:", "    return found"], ["one"]),
        (['"""Texts load nothing, comments do not"""', "x = 'nor {this}'  # and that", "return x"], []),
        (["return f'{field!r:>10} {{no}} text'"], ["field"]),
        (["raise Missing(CONSTANT)"], []),
        (["global thing", "thing += 1"], []),
    ],
)
def test_names_that_are_loaded_below_and_that_nothing_binds(below: list[str], expected: list[str]) -> None:
    assert lacked(function(*below)) == expected


def test_what_is_below_alone_is_missing() -> None:
    assert lacked("def f():\n    g(above)\n    |\n    return 1\n") == []
    assert lacked("def f():\n    |\n    return 1\n\ndef g():\n    return result\n") == []


def test_a_function_around_binds_as_well() -> None:
    assert lacked("def f(a):\n    b = 1\n    def g(c):\n        |\n        return a, b, c, d\n") == ["d"]


def test_a_module_lacks_constants() -> None:
    assert lacked("import os\n|\ndef f():\n    return LIMIT + os.sep + call(NAME.upper())\n") == ["LIMIT", "NAME"]
    assert lacked("LIMIT: int = 1\n|\ndef f():\n    return LIMIT\n") == []


def test_a_class_lacks_constants_that_are_loaded_of_it() -> None:
    assert lacked("class A:\n    |\n    def f(self):\n        return LIMIT + x\n") == []
    used = "\n    def f(self):\n        return self.ONE + A.TWO + cls.x + B.THREE\n"
    assert lacked(f"class A(B):\n    |{used}") == ["ONE", "TWO"]
    assert lacked(f"class A(B):\n    TWO: int = 2\n    |{used}") == ["ONE"]


def test_of_a_module_that_takes_all_of_another_nothing_is_known() -> None:
    assert lacked(function("return result", above="from os import *\n")) == []


def test_a_file_without_a_statements_first_line_lacks_its_target() -> None:
    assert lacked("def f(b):\n    |\n        b,\n        width=c,\n    )\n    return frame\n") == ["c", "frame"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("    ", ["result"]),
        ("", []),
        ("        ", []),
        ("    x, ", ["result"]),
        ("    for ", ["result"]),
        ("    async for x, ", ["result"]),
        ("    with g() as ", ["result"]),
        ("    except E as ", ["result"]),
        ("    return ", []),
        ("    y = [x for ", []),
        ("    result, ", []),
        ("    import a as ", []),
    ],
)
def test_where_a_line_binds(line: str, expected: list[str]) -> None:
    assert bound_at(line, names_around("def f(x):\n    ", "\n    return result\n")) == expected


def test_within_brackets_no_statement_begins() -> None:
    assert bound("def f():\n    g(1,\n    |\n    )\n    return result\n") == []
    assert bound("def f(a,\n    |\n    b):\n    return result\n") == []
    assert bound("def f():\n    x = 1 + \\\n    |\n    return result\n") == []
    assert bound("X = {\n    1: 2,\n|\n}\n\n\ndef f():\n    return LIMIT\n") == []
    assert bound("X = {\n    1: 2,\n}\n|\n\n\ndef f():\n    return LIMIT\n") == ["LIMIT"]
    assert bound("def f():\n    x = '('\n    |\n    return result\n") == ["result"]


def test_a_block_below_wants_a_header() -> None:
    block = "def f(x):\n    |\n        print(item)\n    return x\n"
    assert bound(block) == []
    assert bound(block.replace("|", "for |")) == ["item"]
    assert bound("def f(x):\n    |\n        x,\n    )\n    return item\n") == ["item"]


def test_in_a_text_no_statement_begins() -> None:
    assert bound('"""Doc\n\n|\n"""\nprint(LIMIT)\n') == []
    assert bound('"""Doc"""\n|\nprint(LIMIT)\n') == ["LIMIT"]
    assert bound("x = '''\n|\n'''\nprint(LIMIT)\n") == []


def test_not_more_names_than_a_line_binds() -> None:
    names = ", ".join(f"name{number}" for number in range(3 * MOST_NAMES))
    assert len(bound(f"def f():\n    |\n    return {names}\n")) == MOST_NAMES


# --- what comes of it ----------------------------------------------------------------------------------------------

LEFT, RIGHT = "def f(given):\n    ", "\n    return given + wanted\n"


def test_kinds_of_tokens_that_write_what_is_lacking() -> None:
    def kinds(line: str, *texts: str, right: str = RIGHT) -> list[list[str]]:
        left = f"def f(given):\n{line}"
        return Preference(left, names_around(left, right)).kinds("", "", texts)

    assert kinds("    ", "wanted", "wan", "given", "other") == [["lacking"], ["lacking"], ["local"], ["new"]]
    assert kinds("    x = ", "wanted") == [["elsewhere"]]
    assert kinds("    for ", "wanted", "given") == [["lacking_target"], []]
    assert kinds("    wanted", " =", ", x", " +", "\n") == [["ends_target"], ["ends_target"], [], []]


def test_kinds_of_tokens_within_brackets() -> None:
    left = "def f(given):\n    g(\n    "
    assert Preference(left, names_around(left, "\n    )" + RIGHT)).kinds("", "", ["wanted", "given"]) == [
        ["elsewhere"],
        ["local"],
    ]


def test_kinds_of_tokens_that_begin_a_header() -> None:
    left = "def f(x):\n    "
    scope = names_around(left, "\n        print(item)\n    return x\n")
    found = Preference(left, scope).kinds("", "", ["for ", "if ", "item"])
    assert found == [["keyword", "lacking_header"], ["keyword"], ["elsewhere"]]
    scope = names_around(left, "\n        print(x)\n    return x\n")
    assert Preference(left, scope).kinds("", "", ["for "]) == [["keyword"]]


def test_kinds_of_parameters_that_a_body_loads() -> None:
    left = "def f("
    scope = names_around(left, "):\n    return wanted\n\ndef g():\n    return other\n")
    assert Preference(left, scope).kinds("", "", ["wan", "other"]) == [["lacking_parameter"], []]
    left = "class A("
    assert Preference(left, names_around(left, "):\n    x = LIMIT\n")).kinds("", "", ["LIMIT"]) == [[]]
    left = "def f(\n    "
    scope = names_around(left, "\n) -> None:\n    return wanted\n")
    assert Preference(left, scope).kinds("", "", ["wan", "other"]) == [["lacking_parameter"], []]


def request(left: str, right: str) -> Request:
    return Request("file:///p/a.py", Split(left, right), "python", "/p/a.py", False, True, ServerSettings())


class Others:
    """Project bias that foretells the same texts everywhere."""

    def __init__(self, *texts: tuple[str, float]) -> None:
        self.texts = texts

    def __call__(self, middle: str) -> Sequence[tuple[str, float]]:
        return self.texts

    def share(self, weight: float, heaviest: float, certainty: float, probability: float) -> float:
        return weight / 2


def bias_of(others: Others | None, left: str = LEFT, right: str = RIGHT) -> LineBias:
    found = with_imports(others, "python", request(left, right), None, scope=PythonSupport().scope_at(left, right))
    assert isinstance(found, LineBias)
    return found


def test_undefined_names_are_foretold_for_a_line() -> None:
    bias = bias_of(None)
    assert bias("") == [("wanted", 1.0)]
    assert bias("wan") == [("ted", 1.0)]
    assert bias("wanted") == []
    assert bias("other") == []
    assert bias("for ") == [("wanted", 1.0)]
    assert bias("x = 1\n    ") == []


def test_undefined_names_weigh_less_the_surer_the_model() -> None:
    bias = bias_of(None)
    assert bias("")
    assert bias.share(1.0, 1.0, 0.0, 0.0) == SOURCES.lacking_share
    assert bias.share(0.5, 1.0, 0.5, 0.0) == pytest.approx(0.5 * SOURCES.lacking_share * 0.75)
    assert bias.share(1.0, 1.0, 1.0, 0.0) == 0


def test_a_sure_memory_comes_before_undefined_names() -> None:
    bias = bias_of(Others(("given.sort()", 0.9)))
    assert bias("") == (("given.sort()", 0.9),)
    assert bias.share(0.9, 0.9, 0.5, 0.0) == 0.45
    bias = bias_of(Others(("given.sort()", 0.4)))
    assert bias("") == [("wanted", 1.0)]


def test_nothing_is_told_where_no_names_are_known() -> None:
    found = with_imports(None, "python", request(LEFT, RIGHT), None)
    assert found is not None
    assert found("") == []
