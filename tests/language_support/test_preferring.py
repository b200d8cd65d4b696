"""Names at a cursor, the preference for tokens by them, and its effect while a model writes."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fim_server.decoding.bias.name_bias import text_of, with_name_bias
from fim_server.decoding.constants import DECODING
from fim_server.decoding.loop.healing import Healing
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.strategies.alternatives import complete_session
from fim_server.language import Language
from fim_server.language_support.python import preferring, support
from fim_server.language_support.python.around import MOST_CHARACTERS, Around, Words, names_around
from fim_server.language_support.python.model import Model, parameters_of
from fim_server.language_support.python.preferring import Preference, fitted_weights
from fim_server.language_support.python.tracking import Tracker, as_bytes
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.suggest.sources.project import Project
from fim_server.suggest.sources.scope_cache import ScopeCache
from fim_server.text.document import Split

FILE = '''
import os.path as place, sys
from lending.errors import (
    LendingError,  # not here
    UnknownMember as Unknown,
)

FEE = 3

class Loan:
    """A loan."""

    fields: list[str] = []

    def __init__(self, book, member, today=None):
        self.book, self.due = book, today

    def begin(self, days, *, limit=0):
        def later(number):
            return number
        for number, day in enumerate(days):
            total = day + FEE
            |
        return total

    def is_open(self):
        with open(self.book) as file:
            local = [line for line in file]

if sys.argv:
    try:
        flag = True
    except ValueError as error:
        pass

def fee(loan, rate: float = 0.5, /, **others):
    return (found := loan)
'''
LEFT, RIGHT = FILE.split("|")


def names(words: Words) -> set[str]:
    return set(words._known)


def test_the_names_around_a_cursor() -> None:
    scope = names_around(LEFT, RIGHT)
    assert names(scope.used) == {"self", "days", "number", "day", "total"}
    assert names(scope.unused) == {"limit", "later"}
    assert names(scope.outer) == {
        *("place", "sys", "LendingError", "Unknown", "FEE", "Loan", "flag", "error", "fee"),
    }
    assert names(scope.members) == {"book", "due"}
    assert names(scope.unused_members) == {"fields", "__init__", "is_open"}  # it stands in `begin`
    assert scope.function == "begin"
    assert {"local", "line", "file", "loan"} <= names(scope.words)
    assert names(scope.attributes) == {"path", "errors", "argv", "book", "due"}
    assert scope.parameters_of("begin") == ["days", "limit"]
    assert scope.parameters_of("Loan") == ["book", "member", "today"]
    assert scope.parameters_of("fee") == ["loan", "rate", "others"]
    assert scope.parameters_of("nobody") == []
    assert names(scope.attributes_of("self")) == {"book", "due"}


def test_the_cursors_own_line_binds_nothing() -> None:
    assert "value" not in names(names_around("def f(a):\n    value = ", "\n").words)


def test_in_a_class_and_in_the_module() -> None:
    scope = names_around("class A:\n    one: int\n    two = 2\n    ", "\n\nB = A\n")
    assert names(scope.used) >= {"one", "two"}
    assert not names(scope.unused)
    assert names(names_around("a = 1\n", "\nb = 2\n").outer) == {"a", "b"}
    assert names_around("a = 1\n", "\nb = 2\n").function == ""


def test_of_a_dataclass_the_fields_are_parameters() -> None:
    scope = names_around("@dataclass\nclass A:\n    one: int\n    two: str = ''\n\n    def f(self): pass\n\n", "\n")
    assert scope.parameters_of("A") == ["one", "two"]


def test_a_function_in_a_function_sees_what_is_around() -> None:
    scope = names_around("def f(a):\n    b = a\n    def g(c):\n        ", "\n    return g\n")
    assert names(scope.unused) == {"c"}
    assert {"a", "b", "g", "f"} <= names(scope.outer)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a, *b = c", "ab"),
        ("x: int = y", "x"),
        ("for (i, j), k in z: pass", "ijk"),
        ("with a as b, c as d: pass", "bd"),
        ("if (n := f(x)): pass", "n"),
        ("key = lambda p, *q, r=1: p", ["key"]),
        ("import a.b, c as d, e", "ade"),
        ("from a.b import (\n  c as d,  # f\n  e,\n)", "de"),
        ("async def f(x): pass", "f"),
        ("class A(B): pass", "A"),
        ("a == b", ""),
        ("f(a=1)", ""),
        ("a.b = c", ""),
    ],
)
def test_a_line_binds_names(line: str, expected: str | list[str]) -> None:
    assert Model(line).module.bound == set(expected)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("def f(self, a: dict[str, int] = {}, /, *b, c=(1, 2), **d) -> None:", ["a", "b", "c", "d"]),
        ("def f(\n    a,  # one, two\n    *,\n    b,\n):", ["a", "b"]),
        ("def f():", []),
        ("def f", []),
        ("    async def f(self, a):", ["a"]),
        ("    async def f[T](self, a: T):", ["a"]),
        ("class A(B, C):", []),
    ],
)
def test_parameters_of_a_header(header: str, expected: list[str]) -> None:
    assert parameters_of(header) == expected


def test_words_know_how_words_begin() -> None:
    words = Words(["loan", "loans", "limit"])
    assert words.has("loan", True)
    assert not words.has("loa", True)
    assert words.has("loa", False)
    assert words.has("", False)
    assert not words.has("lob", False)
    assert not words.has("m", False)
    assert not Words([]).has("", False)


def kinds(line: str, *texts: str, healing: str = "", middle: str = "") -> list[list[str]]:
    left = LEFT.rstrip(" ") + " " * 12 + line
    return Preference(left, names_around(left, RIGHT), {"elsewhere_defined": ["one"]}.get).kinds(middle, healing, texts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "token", "expected"),
    [
        ("x = ", "limit", ["unused"]),
        ("x = ", "lim", ["unused"]),
        ("x = ", "lim)", ["unknown"]),
        ("x = ", " days", ["local"]),
        ("x = da", "y", ["local"]),
        ("x = da", "ys", ["local"]),
        ("x = ", "FEE", ["outer"]),
        ("x = ", "len(", ["builtin"]),
        ("x = ", "not", ["keyword"]),
        ("x = ", "rate", ["elsewhere"]),
        ("x = ", "zebra", ["unknown"]),
        ("", "zebra", ["new"]),
        ("a, ", "zebra", ["new"]),
        ("x = ", "begin", ["elsewhere", "itself"]),
        ("self.", "book", ["own"]),
        ("self.", "is_", ["own_unused"]),
        ("self.", "begin", ["own_elsewhere"]),
        ("self.", "zebra", ["own_unknown"]),
        ("self.", "_begin", ["own_unknown", "own_hidden"]),
        ("self.", "_be", ["own_unknown", "own_hidden"]),
        ("self.", "_", ["own_unused"]),
        ("sys.", "begin", ["attribute_elsewhere", "attribute_named"]),
        ("sys.", "beg", ["attribute_elsewhere", "attribute_named"]),
        ("day.", "argv", ["attribute"]),
        ("sys.", "argv", ["attribute_of_receiver"]),
        ("sys.", "total", ["attribute_elsewhere"]),
        ("sys.", "zebra", ["attribute_unknown"]),
        ("x = self.begin(", "days", ["argument", "local"]),
        ("x = self.begin(1, ", "limit=", ["argument", "unused"]),
        ("x = elsewhere_defined(", "one", ["argument"]),
        ("x = elsewhere_defined(two + ", "one", ["unknown"]),
        ("x = lambda zebra: ", "zebra", ["unused"]),
        ("x = lambda zebra: ", "ze", ["unused"]),
        ("x = lambda zebra: zebra + ", "zebra", ["local"]),
        ("x = [zebra for zebra in days if ", "zebra", ["local"]),
        ("x = lambda zebra: zebra", "(", []),
        ("x = total", ".", []),
        ("x = zebra", "(", ["ends_loaded"]),
        ("zebra", " =", ["ends_new"]),
        ("x = rate", ")", ["ends_elsewhere"]),
        ("x = 1", "2", []),
        ("x = 1.", "zebra", []),
        ("x = ", "zebra'", []),
        ("x = 'a ", "zebra", []),
        ("x = f'a ", "zebra", []),
        ("x = f'{", "zebra", ["unknown"]),
        ("x = 1  # ", "zebra", []),
        ("def ", "zebra", []),
        ("import ", "zebra", []),
        ("for ", "zebra", []),
        ("def g(", "zebra", []),
        ("x = ", " + 1", []),
        ("x = ", "", []),
    ],
)
def test_the_kinds_of_a_token(line: str, token: str, expected: list[str]) -> None:
    assert kinds(line, token) == [expected]


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("member", "own_unused"),  # though what is used begins so
        ("member(", "own_unused"),
        ("members", "own"),
        ("mem", "own"),
        ("memb(", "own_unknown"),
        ("books", "own"),  # though what is not used begins so
        ("book", "own"),
        ("books_of", "own_unused"),
    ],
)
def test_an_attribute_is_itself_before_it_is_the_beginning_of_another(token: str, expected: str) -> None:
    left = """class Library:
    def __init__(self):
        self.members, self.books = {}, {}

    def member(self, number): ...

    def books_of(self, number): ...

    def lend(self, number):
        member = self."""
    assert Preference(left, names_around(left, "\n")).kinds("", "", [token]) == [[expected]]


def test_what_is_written_again_is_part_of_the_token() -> None:
    assert kinds("x = da", "day", "dab", "days", healing="da") == [["local"], ["unknown"], ["local"]]
    assert kinds("x = ", "s.", middle="day") == [["local"]]


def test_of_no_text_nothing_is_thought() -> None:
    preference = Preference(LEFT, names_around(LEFT, RIGHT))
    assert preference.kinds("", "", [None, ""]) == [[], []]
    assert preference("", "", [None, "zebra"]) == [0.0, fitted_weights()["new"]]


def test_every_kind_has_a_weight() -> None:
    source = Path(preferring.__file__).read_text(encoding="utf-8")
    assert all(f'"{kind.removesuffix("_unknown")}' in source for kind in fitted_weights())
    for line, token in (("x = ", "zebra"), ("x = ", "limit"), ("self.", "book"), ("sys.", "argv"), ("zebra", "(")):
        (mine,) = kinds(line, token)
        assert all(kind in fitted_weights() for kind in mine)
    weights = fitted_weights()
    assert weights["unknown"] < weights["elsewhere"] < weights["unused"]
    assert weights["own_unknown"] < weights["own"]


def read(code: str) -> Tracker:
    tracker = Tracker()
    tracker.feed(as_bytes(f"{code} "))
    return tracker


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("f(", "f"),
        ("a.b(c[0], d(1), ", "b"),
        ("a.b(lambda c: ", "b"),
        ("f(x)[", None),
        ("(", None),
        ("x = [f(1), ", None),
        ("def f(a, ", ""),
        ("class A(", ""),
        ("f(1)", None),
        ("f(\n    a,\n    ", "f"),
    ],
)
def test_the_innermost_bracket_calls_a_name(before: str, expected: str | None) -> None:
    assert read(before).called == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x = ", False),
        ("x = 'a", True),
        ("x = 'a'", False),
        (r"x = 'a\'", True),
        ('x = """a" ', True),
        ("x = f'{a", False),
        ("x = f'{a}", True),
        ("x = f'{{a", True),
        ("x = '{a", True),
        ("# a", True),
        ("# a\nx", False),
        ("x = 'a\ny = ", False),
        ('x = """a\n# b', True),
        ("x = ''", False),
    ],
)
def test_what_is_text(code: str, expected: bool) -> None:
    assert read(code).is_in_text == expected


def test_no_more_than_so_much_is_read() -> None:
    far = "zebra = 1\n"
    near = "near = 1\n" * (MOST_CHARACTERS // 9 + 1)
    scope = names_around(far + near, "\n" + near + far)
    assert names(scope.outer) == {"near"}


# --- while decoding ------------------------------------------------------------------------------------------------


class Wanting:
    """Prefers one text by so much, and notes what it was asked."""

    def __init__(self, text: str, weight: float) -> None:
        self.text, self.weight = text, weight
        self.asked: list[tuple[str, str, list[str | None]]] = []

    def __call__(self, middle: str, healing: str, texts: Sequence[str | None]) -> list[float]:
        self.asked.append((middle, healing, list(texts)))
        wanted = healing + self.text[len(middle) :]
        is_led = self.text.startswith(middle) and len(self.text) > len(middle)
        return [self.weight if is_led and text and wanted.startswith(text) else 0.0 for text in texts]


@pytest.fixture(scope="module")
def model() -> FimModel:
    return load_model("embedded", "cpu")


@pytest.fixture(scope="module")
def python() -> Language:
    return Language.load("python")


OPTIONS = DecodeOptions(max_new_tokens=16, single_line=True, scored=True)


def written(model: FimModel, python: Language, split: Split, options: DecodeOptions) -> str | None:
    session, healing = python.open(split.left, split.right), Healing.of(model, split)
    return healing.undo(complete_session(model, session, healing.split, options, healing=healing.text)).text


def test_the_likeliest_are_changed_and_no_other(model: FimModel) -> None:
    arithmetic, vocabulary = model.backend.arithmetic, model.vocabulary
    logits = np.random.default_rng(3).normal(size=model.size).astype(np.float32)
    likeliest = [token for token, _ in arithmetic.top(arithmetic.shares(logits), DECODING.rated_tokens)]

    def preference(middle: str, healing: str, texts: Sequence[str | None]) -> list[float]:
        assert (middle, healing) == ("größ", "")
        assert list(texts) == [text_of(vocabulary, token) for token in likeliest]
        return [1.5] + [0.0] * (len(texts) - 1)

    found = with_name_bias(logits, preference, "größe".encode()[:-1], b"", vocabulary, arithmetic)
    assert found[likeliest[0]] == pytest.approx(logits[likeliest[0]] + 1.5)
    others = [token for token in range(model.size) if token != likeliest[0]]
    assert np.array_equal(np.asarray(found)[others], logits[others])


def test_tokens_that_nobody_would_choose_are_not_asked_about(model: FimModel) -> None:
    arithmetic, vocabulary = model.backend.arithmetic, model.vocabulary
    logits = np.full(model.size, -40.0, dtype=np.float32)
    by_likelihood = [300, 301, 302, 303]
    logits[by_likelihood] = [0.0, -1.0, -9.0, -9.5]  # the last two are 1.2 and 0.7 of 10,000 times as likely
    asked: list[Sequence[str | None]] = []

    def preference(middle: str, healing: str, texts: Sequence[str | None]) -> list[float]:
        asked.append(texts)
        return [0.0] * len(texts)

    with_name_bias(logits, preference, b"", b"", vocabulary, arithmetic)
    assert asked == [[text_of(vocabulary, token) for token in by_likelihood[:3]]]


def test_while_something_is_written_again_only_tokens_that_do_are_left(model: FimModel) -> None:
    arithmetic, vocabulary = model.backend.arithmetic, model.vocabulary
    logits = np.zeros(model.size, dtype=np.float32)
    wanting = Wanting("urn", 1.0)
    found = np.asarray(with_name_bias(logits, wanting, b"", b"ret", vocabulary, arithmetic))
    towards = set(vocabulary.tokens_towards(b"ret"))
    assert {int(token) for token in np.flatnonzero(np.isfinite(found))} <= towards
    assert all(text and ("ret".startswith(text) or text.startswith("ret")) for text in wanting.asked[0][2])


def test_a_preference_leads_as_far_as_the_grammar_lets_it(model: FimModel, python: Language) -> None:
    split = Split("def f(values):\n    return ", "\n")
    plain = written(model, python, split, OPTIONS)
    assert written(model, python, split, replace(OPTIONS, name_bias=Wanting("", 5.0))) == plain
    asked = Wanting("", 0.0)
    written(model, python, split, replace(OPTIONS, name_bias=asked))
    _, healing, texts = asked.asked[0]
    words = [text.removeprefix(healing) for text in texts if text and text.removeprefix(healing).isidentifier()]
    other = next(word for word in words if plain is not None and not plain.startswith(word))
    led = written(model, python, split, replace(OPTIONS, name_bias=Wanting(other, 30.0)))
    assert led is not None
    assert led.startswith(other)
    refused = written(model, python, split, replace(OPTIONS, name_bias=Wanting("]] + [[", 30.0)))
    assert refused is not None
    assert python.open(split.left, split.right).check(refused).complete


def test_a_name_that_nobody_knows_is_written_less(model: FimModel, python: Language) -> None:
    """With weights that rule a kind out, what is written instead is of another kind."""
    split = Split("def f(values, other):\n    return ", "\n")

    class Against:
        def __init__(self) -> None:
            self._preference = Preference(split.left, names_around(split.left, split.right))

        def __call__(self, middle: str, healing: str, texts: Sequence[str | None]) -> list[float]:
            found = self._preference.kinds(middle, healing, texts)
            return [-40.0 if {"unknown", "builtin", "ends_loaded", "keyword"} & set(one) else 0.0 for one in found]

    text = written(model, python, split, replace(OPTIONS, name_bias=Against()))
    assert text is not None
    words = {node.id for node in ast.walk(ast.parse(text.strip() or "0")) if isinstance(node, ast.Name)}
    assert words <= {"values", "other"}


# --- in the server -------------------------------------------------------------------------------------------------


def request(left: str, right: str, uri: str = "untitled:a") -> Request:
    return Request(uri, Split(left, right), "python", "a.py", False, True, ServerSettings())


def test_a_scope_is_read_once_for_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(left: str, right: str) -> Around:
        read.append(left)
        return names_around(left, right)

    monkeypatch.setattr(support, "names_around", counted)
    preferences = ScopeCache()
    for left in ("a = 1\nb", "a = 1\nbc", "a = 1\nbc = a"):
        assert preferences.at(request(left, "\nc = 2\n"), "python", None) is not None
    assert len(read) == 1
    preferences.at(request("a = 1\nbc = a\n", "\nc = 2\n"), "python", None)
    preferences.at(request("a = 1\nbc = a\n", "\nc = 3\n"), "python", None)
    assert len(read) == 3


def test_a_language_of_which_nothing_is_known_has_no_preference() -> None:
    assert ScopeCache().at(request("{", "}"), "json", None) is None


def test_parameters_of_what_the_projects_other_files_define(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(
        "class A:\n    def borrow(\n        self,\n        book,\n        today=None,\n    ):\n        return book\n"
    )
    project = Project()
    project.read([tmp_path.as_uri()], {".py": "python"})
    assert project.memory.settle()
    uri = (tmp_path / "a.py").as_uri()
    preference = ScopeCache().at(request("library.borrow(", ")\n", uri), "python", project)
    assert isinstance(preference, Preference)
    assert preference.kinds("", "", ["today", "zebra", "book"]) == [["argument"], ["unknown"], ["argument"]]
    without = ScopeCache().at(request("library.borrow(", ")\n", uri), "python", None)
    assert isinstance(without, Preference)
    assert without.kinds("", "", ["today"]) == [["unknown"]]
    project.close()


def test_the_language_is_asked_for_without_what_is_heavy() -> None:
    module = "fim_server.suggest.sources.scope_cache"
    code = f"import {module}, sys; print(*({{'torch', 'onnxruntime'}} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
