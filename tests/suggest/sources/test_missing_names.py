"""Undefined names of a file, and imports and definitions that bring them."""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from fim_server.language import Language
from fim_server.language_support.python.imports import (
    begun,
    definable,
    importable,
    imports_again,
    is_needless,
    missing,
)
from fim_server.language_support.python.modules import public_names
from fim_server.language_support.registry import support_of
from fim_server.suggest.ranking.red_flags import flag_of
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.suggest.sources.missing_names import (
    IMPORT_SHARE,
    MOST_LINE,
    BegunNameBias,
    LineBias,
    is_needless_import,
    with_imports,
)
from fim_server.text.document import Split

SOURCE = """
logger = logging.getLogger(__name__)

def count(words):
    for word in words:
        logging.debug(word, asctime())
    return Counter(words), Loan(0), json
"""


def defined(names: Sequence[str]) -> list[tuple[str, str]]:
    return [(name, file) for name, file in (("Loan", "/p/lending/records.py"), ("word", "/p/a.py")) if name in names]


def brought(line: str, source: str = SOURCE) -> dict[str, float] | None:
    found = importable(line, source, defined)
    return None if found is None else dict(found[1])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("import ", (None, "")),
        ("    import lo", (None, "lo")),
        ("import os, sys as s, lo", (None, "lo")),
        ("from collections import ", ("collections", "")),
        ("from . import a", (".", "a")),
        ("from .errors import (A, B as C, D", (".errors", "D")),
        ("from collections import Counter ", None),
        ("import os ", None),
        ("from collections ", None),
        ("x = 1", None),
        ("important", None),
    ],
)
def test_begun_statements(line: str, expected: tuple[str | None, str] | None) -> None:
    found = begun(line)
    assert (None if found is None else (found.module, found.typed)) == expected


def test_missing_names() -> None:
    assert dict(missing(SOURCE)) == {"logging": 2, "asctime": 1, "Counter": 1, "Loan": 1, "json": 1}
    assert missing("def f(:") == {}
    assert missing("from os import *\nx = y\n") == {}
    assert dict(missing("def f():\n    global a\n    a = 1\nprint(a, b)\n")) == {"b": 1}
    assert dict(missing("[x for x in y]\nclass A:\n    a = 1\n    def f(self): return a\n")) == {"y": 1, "a": 1}


def test_imports_bring_names() -> None:
    assert brought("import ") == {"logging": 2 / 3, "json": 1 / 3}
    assert brought("import l") == {"logging": 1.0}
    assert brought("import json, ") == {"logging": 1.0}
    assert brought("from collections import ") == {"Counter": 1.0}
    assert brought("from time import ") == {"asctime": 1.0}  # built in
    assert brought("from lending.records import ") == {"Loan": 1.0}
    assert brought("from .records import L") == {"Loan": 1.0}
    assert brought("from lending.errors import ") is None
    assert brought("import x") is None
    assert brought("import ", "x = 1\n") is None


def test_modules_are_read_and_not_run(tmp_path: Path) -> None:
    assert {"Path", "PurePath"} <= (public_names("pathlib") or set())
    assert "urlparse" in (public_names("urllib.parse") or set())
    assert public_names("lending") is None
    assert public_names("collections.none") == frozenset()
    code = (
        "import sys; from fim_server.language_support.python.modules import public_names as names;"
        "print('ServerProxy' in names('xmlrpc.client'), 'getpass' in names('getpass'), *sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert found[:2] == ["True", "True"]
    assert not {"xmlrpc", "xmlrpc.client", "getpass"} & set(found)


@pytest.mark.parametrize("name", ["argparse", "dataclasses", "json.decoder", "textwrap", "shlex"])
def test_names_of_missing_imports_are_missing(name: str) -> None:
    path = Path(ast.__file__).parent.joinpath(*name.split(".")).with_suffix(".py")
    source = path.read_text(encoding="utf-8")
    assert set(missing(source)) <= {"_", "WindowsError"} | set(dir(builtins))
    lines = source.split("\n")
    imports = [(at, found[1]) for at, line in enumerate(lines) if (found := re.fullmatch(r"import (\w+)", line))]
    imports = [(at, module) for at, module in imports if f"{module}." in source]
    assert imports
    for at, module in imports:
        assert module in missing("\n".join((*lines[:at], "", *lines[at + 1 :])))
        assert module in dict(
            (importable("import ", "\n".join((*lines[:at], "", *lines[at + 1 :])), defined) or ("", []))[1]
        )


class Others:
    def __call__(self, middle: str) -> Sequence[tuple[str, float]]:
        return [("other", 0.5)]

    def share(self, weight: float, heaviest: float, certainty: float, probability: float) -> float:
        return weight / 2


def test_the_bias_lasts_until_a_name_is_whole() -> None:
    bias = BegunNameBias("lo", [("logging", 0.75), ("locale", 0.25)], Others())
    assert bias("") == [("gging", 0.75 * IMPORT_SHARE), ("cale", 0.25 * IMPORT_SHARE)]
    assert bias.share(0.6, 0.6, 0.5, 0.1) == 0.6
    assert bias("ca") == [("le", 0.25 * IMPORT_SHARE)]
    assert bias("gging") == [("other", 0.5)]
    assert bias.share(0.6, 0.6, 0.5, 0.1) == 0.3
    assert bias("gging, ") == [("other", 0.5)]
    assert BegunNameBias("", [("re", 1.0)], None)("re") == []


def test_a_begun_import_has_a_bias() -> None:
    def asked(left: str, right: str, language: str = "python") -> object:
        request = Request("file:///a.py", Split(left, right), language, "/a.py", False, True, ServerSettings())
        return with_imports(None, language, request, None)

    found = asked("import ", "\n" + SOURCE)
    assert isinstance(found, LineBias)
    assert [name for name, _ in found("")] == ["logging", "json"]
    assert sum(weight for _, weight in found("")) == pytest.approx(IMPORT_SHARE)
    assert dict(found("lo")) == pytest.approx({"gging": IMPORT_SHARE})
    assert found("logging") == found("\n") == []
    begun = asked("x = ", "\n" + SOURCE)
    assert isinstance(begun, LineBias)
    assert begun("") == begun("import ") == []
    assert asked("import ", "\n" + SOURCE, "json") is None
    assert support_of("json") is None


@pytest.mark.parametrize("typed", ["", "i", "imp", "import", "import ", "import l", "import loggin"])
def test_an_import_in_the_middle_has_the_same_bias(typed: str) -> None:
    """A suggestion at the first letter of a statement is then the same as a later one."""
    request = Request("file:///a.py", Split(typed, "\n" + SOURCE), "python", "/a.py", False, True, ServerSettings())
    bias = with_imports(Others(), "python", request, None)
    assert isinstance(bias, LineBias)
    middle = "import logging"[len(typed) :]
    for end in range(len(middle)):
        written = typed + middle[:end]
        plain = importable(written, "\n" + SOURCE, lambda names: [])
        if written == "import":
            assert [name for name, _ in bias(middle[:end])] == [" logging", " json"]
            continue
        if plain is None:
            assert bias(middle[:end]) == [("other", 0.5)]
            assert bias.share(0.6, 0.6, 0.5, 0.1) == 0.3
            continue
        expected = {name[len(plain[0]) :]: IMPORT_SHARE * weight for name, weight in plain[1] if name != plain[0]}
        assert dict(bias(middle[:end])) == pytest.approx(expected)
        assert bias.share(0.6, 0.6, 0.5, 0.1) == 0.6
    assert bias(middle) == [("other", 0.5)]
    assert bias("\nimport ") == [("other", 0.5)]


def test_long_lines_have_no_bias() -> None:
    asked: list[str] = []

    def brought(line: str) -> Sequence[tuple[str, float]]:
        asked.append(line)
        return []

    bias = LineBias("import " + "a, " * MOST_LINE, brought, Others())
    assert bias("b") == [("other", 0.5)]
    assert asked == []


def test_one_lookup_serves_all_letters_of_a_name() -> None:
    asked: list[str] = []

    def brought(line: str) -> Sequence[tuple[str, float]]:
        asked.append(line)
        return [("total", 1.0)] if line == "def " else []

    bias = LineBias("", brought, None)
    found = [bias("def total"[:end]) for end in range(10)]
    assert found[4:9] == [[("total"[end:], IMPORT_SHARE)] for end in range(5)]
    assert found[:4] == [[], [], [], [(" total", IMPORT_SHARE)]]
    assert asked == ["", " ", "d ", "de ", "def ", "def total "]


CLASSES = """
class Shelf:
    def __init__(self):
        self.books = self.read()
        self.hook = print
        self.hook(self.__class__(), self.size)

    def lend(self):
        return self.find(1) or self.find(2)


class Other(Shelf):
    def lend(self):
        return self.give()


def main(shelf=Catalogue(), path=Path):
    return total(shelf), logging.info(json), Catalogue, PI
"""


@pytest.mark.parametrize(
    ("line", "above", "expected"),
    [
        ("def ", "\n\ndef main", {"total": 1.0}),
        ("async def to", "\n\ndef main", {"total": 1.0}),
        ("def x", "\n\ndef main", None),
        ("class ", "\n\ndef main", {"Catalogue": 0.5, "Path": 0.25, "PI": 0.25}),
        ("    def ", "    def lend", {"read": 1 / 3, "find": 2 / 3}),
        ("    def f", "\n\n\nclass Other", {"find": 1.0}),
        ("    def ", "        return self.give()", None),  # bases have more
        ("        def ", "    def lend", None),
        ("    class ", "    def lend", None),
        ("defer ", "\n\ndef main", None),
        ("def total(", "\n\ndef main", None),
    ],
)
def test_used_names_that_are_missing_get_defined(line: str, above: str, expected: dict[str, float] | None) -> None:
    at = CLASSES.index(above) + 1
    start = CLASSES.rfind("\n", 0, at) + 1
    source = CLASSES[:start] + "\n" + CLASSES[start:]
    found = definable(line, source, source.count("\n", 0, start))
    assert (None if found is None else dict(found[1])) == (None if expected is None else pytest.approx(expected))
    assert found is None or line.endswith(found[0])
    assert definable(line, source + "x = (", 0) is None


def test_without_a_missing_function_a_used_one_is_defined() -> None:
    source = "\nHANDLERS = {1: first, 2: second, 3: Third, 4: json}\nx = np.zeros(3) + data[0]\nfor y in items: pass\n"
    assert definable("def ", source, 0) == ("", [("first", 0.5), ("second", 0.5)])
    assert definable("def s", source, 0) == ("s", [("second", 1.0)])
    assert definable("def ", source + "called(first)\n", 0) == ("", [("called", 1.0)])


def test_definitions_have_a_bias_like_imports(tmp_path: Path) -> None:
    split = Split("def t", "\n" + CLASSES)
    request = Request("file:///a.py", split, "python", "a.py", False, True, ServerSettings())
    bias = with_imports(None, "python", request, None)
    assert bias is not None
    assert bias("") == [("otal", IMPORT_SHARE)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("import os", True),
        ("import os, sys", True),
        ("import os, json", False),
        ("import os as o", False),
        ("import os.path", False),
        ("from a.b import c", True),
        ("from a.b import c, d", True),
        ("from a.b import c as d", False),
        ("from .a.b import c", False),
        ("from . import e", True),
        ("from a.b import", False),
        ("from a.b import (", False),
        ("import", False),
        ("    import os", False),  # in a function it may be intended
        ("x = 1", False),
        ("import x; import y", False),
    ],
)
def test_repeated_imports(line: str, expected: bool) -> None:
    source = (
        "import os\nimport sys\nfrom a.b import c, d\nfrom . import e\ntry:\n    import x\nexcept OSError:\n    pass\n"
    )
    assert imports_again(line, source) is expected
    assert not imports_again(line, source + "(")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("import os", True),
        ("import logging", False),
        ("import os as logging", False),
        ("import os, json", False),
        ("    import os", True),
        ("from collections import OrderedDict", False),  # the modules are not read yet
        ("import", False),
        ("words = import", False),
    ],
)
def test_needless_imports(line: str, expected: bool) -> None:
    assert is_needless(line, SOURCE) is expected
    assert not is_needless(line, "import os\n")


@pytest.mark.parametrize(
    ("left", "text", "right", "expected"),
    [
        ("import os\nim", "port os\n\nx = 1", "\nimport sys\n", "port os"),
        ("", "import sys", "\nimport sys\n", "import sys"),
        ("import os\n", "import json", "\nimport sys\n", ""),
        ("def f():\n    pass\n\ndef ", "f():\n    pass", "\n", "f"),
        ("x = ", "f()", "\n", ""),
        ("class A:\n    b: int = 1\n    c: int = 2\n    ", "b: str", "\n", "b"),
        ("class A:\n    b", ": str", "\n\n    b : int\n", ""),  # the user has written it, not the model
        ("class A:\n    ", "b: str", "\n\nclass C:\n    b: int\n", ""),
        ("class A:\n    b = 1\n    ", "b: str", "\n", ""),
        ("if a:\n    pass\nelse:\n    pass\n", "else: x", "\n", ""),
        ('class A:\n    """\n    b : str\n    """\n    ', "b: str", "\n", ""),  # it stands in a string
        ('class A:\n    b: str\n    """B."""\n    ', "b: str", "\n", "b"),
        ("a.b = c(d)\ne()\n", "a.b = c(d)", "\n", "a.b = c(d)"),
        ("a.b = ", "c(d)", "\ne()\na.b = c(d)\n", "c(d)"),
        ("a.b = c(", "d)", ")\ne()\na.b = c(d)\n", "d)"),
        ("a.b = c(", "d", ") + 1\ne()\na.b = c(d)\n", ""),  # there is more in the line
        ("a.b = c(d)\n" + 9 * "e()\n", "a.b = c(d)", "\n", ""),  # far away
        ("if x:\n    a.b = c\nelse:\n    ", "a.b = c", "\n", ""),  # another block
        ("a.b()\n", "a.b()", "\n", ""),
        ("a.b(c,\n    d)\n", "a.b(c,", "\n", "a.b(c,"),
        ("if a.b.c:\n    pass\n", "if a.b.c:", "\n", "if a.b.c:"),
        ("if a:\n    b()\nelif ", "c.d == e:\n    pass", "\nelif c.d == e:\n    f()\n", "c.d == e:"),
        ("a.b(c)(\n)\n", "a.b(c)(", "\n", ""),
        ('a.b(["c", "d"])\na.b([', '"c"', "])\n", '"c'),  # the beginning of a line, up to its second word
        ("a = b + 1\n", "a = b", "\n", "a = b"),
        ("a = b + 1\n", "a = b\nc", "\n", "a = b"),
        ("", "a = b", "\na = b + 1\n", "a = b"),
        ("a", " = b", "\na = b + 1\n", " = b"),
        ("a.b = c(d)\n", "a.b", "\n", ""),  # fewer than two words
        ("a = b + 1\na = ", "b", "\n", "b"),
        ("a = foo(bar, c)\na = foo(", "bar, d", ")\n", ""),
        ("a = foo(bar, c)\na = foo(", "bar", ")\n", "bar"),
        ("a = b + 1\na = b", "\nc = 1", "\n", ""),  # the user has written it
        ("a.b = c\na.b = c", "\nd = 1", "\n", ""),
        ("a = b  #\n", "a = b", "\n", ""),  # nothing follows
        ("[\n    [a, b],\n    ", "[a, b]", "\n]\n", ""),
        ("a = bc + 1\n", "a = b", "\n", ""),
        ("a = b.c + 1\n", "a = b", "\n", ""),
        ("a = b + 1\n", "a = b", "  # c\n", ""),
        ("if x:\n    a = b + 1\n", "a = b", "\n", ""),  # another block
        ("a = b + f(\n)\n", "a = b", "\n", ""),
        ("import os.path\n", "import os", "\n", ""),
    ],
)
def test_repeats_have_a_red_flag(left: str, text: str, right: str, expected: str) -> None:
    spelling = Language.load("python").open("", "").spelling
    flag = flag_of("python", spelling, Split(left, right), text)
    assert text[: flag.whole] == expected
    assert bool(flag.end) == bool(expected)


@pytest.mark.parametrize(
    ("left", "text", "right", "shortest"),
    [
        ("a.b = c(d)\n", "a.b = c(d)", "\n", "a.b = c"),
        ("a.b = c(d)\na.b = ", "c(d)", "\n", "c"),
        ("a.b = c(d)\na.b = c", "(d)", "\n", "("),  # both words are there
        ("a(\n    b)\na(b.c.d)\n", "a(b.c.d)", "\n", "a(b.c.d"),
        ("a.b.c()\n", "a.b.c()", "\n", "a.b.c()"),
        ("a = b + 1\n", "a = b", "\n", "a = b"),
        ("a = b + c + 1\na = b", " + c", "\n", " "),
    ],
)
def test_a_repeated_line_is_flagged_from_its_second_word(left: str, text: str, right: str, shortest: str) -> None:
    spelling = Language.load("python").open("", "").spelling
    flag = flag_of("python", spelling, Split(left, right), text)
    assert text[: flag.end] == shortest
    assert flag.whole == len(text)


def test_needless_imports_are_not_recalled() -> None:
    split = Split("import ", "\n" + SOURCE)
    request = Request("file:///a.py", split, "python", "a.py", False, True, ServerSettings())
    for text, expected in (("os", True), ("logging\nimport os", False), ("lo", True)):
        assert is_needless_import(text, "python", request, None) is expected
        assert not is_needless_import(text, "json", request, None)


@pytest.mark.parametrize(
    ("text", "unknown", "expected"),
    [
        ("lend(loan, today)", ["today"], "lend(loan, today"),
        ("lend(loan).today", ["today"], ""),
        ("lend(loan).today(day)", ["today", "day"], "lend(loan).today(day"),
        ("lend(loan)", ["lend"], ""),  # the confidence of its first lexeme counts it
        ("x + lend", ["lend"], "x + lend"),
        ("lend(loan)", [], ""),
    ],
)
def test_loads_of_undefined_names(text: str, unknown: list[str], expected: str) -> None:
    spelling = Language.load("python").open("", "").spelling
    ends = [text.rindex(name) + len(name) for name in unknown]
    assert text[: flag_of("python", spelling, Split("library.", "\n"), text, ends).end] == expected


@pytest.mark.parametrize(
    ("line", "text", "expected"),
    [
        ("x = self.", "loan", "loan"),
        ("x = ", "self.loan", "self.loan"),
        ("x = ", "cls.loan + 1", "cls.loan"),
        ("", "self.loan", ""),  # it may be assigned to
        ("", "self.loan(1)", "self.loan"),
        ("x = ", "book.self.loan", ""),
        ("x = ", "myself.loan", ""),
        ("", "with open(a) as self.loan:", ""),
        ("", "self.loan, self.a = xs", ""),
        ("", "self.a, self.loan", ""),
        ("", "for self.loan in xs:", ""),
        ("", "self.loan: int", ""),
        ("", "(self.loan, a) = xs", ""),
        ("", "self.a = 1\n    self.loan", ""),
        ("x = 1; ", "self.loan", ""),
        ("", "self.loan += 1", "self.loan"),
        ("", "self.loan[0] = 1", "self.loan"),
        ("", "self.a = 1\n    x = self.loan", "self.a = 1\n    x = self.loan"),
        ("", "return self.loan", "return self.loan"),
        ("x = ", "self.book.loan", ""),
    ],
)
def test_loads_of_unknown_attributes_of_the_instance(line: str, text: str, expected: str) -> None:
    spelling = Language.load("python").open("", "").spelling
    ends = [text.rindex("loan") + len("loan")]
    assert text[: flag_of("python", spelling, Split(line, "\n"), text, ends).end] == expected
