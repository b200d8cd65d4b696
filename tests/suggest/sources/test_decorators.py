"""Decorators that fit the definition below them."""

from __future__ import annotations

import pytest

from fim_server.language_support.python.marks import likely
from fim_server.suggest.sources.missing_names import IMPORT_SHARE, with_decorators
from fim_server.text.document import Split

CLASS = "class A:\n    x = 1\n\n"
PROPERTY = "class A:\n    @property\n    def size(self):\n        return 1\n\n"


@pytest.mark.parametrize(
    ("above", "line", "below", "expected"),
    [
        (CLASS, "    @", "    def size(self) -> int:\n", "property"),
        (CLASS, "    @pro", "    async def size(\n        self,\n    ):\n", "property"),
        (CLASS, "    @", "    def made(cls, text):\n", "classmethod"),
        (CLASS, "    @", "    def made(\n        cls, text\n    ):\n", "classmethod"),
        (CLASS, "    @", "    @cache\n    def made(text):\n", "staticmethod"),
        (CLASS, "    @", "    def made():\n", "staticmethod"),
        (PROPERTY, "    @", "    def size(self, value):\n", "size.setter"),
        (PROPERTY, "    @size.", "    def size(self, value):\n", "size.setter"),
        ("", "@", "class A:\n", "dataclass"),
        (CLASS, "    @", "    def write(self, value):\n", None),
        (CLASS, "    @", "    def made(*values):\n", None),
        (CLASS, "    @", "    @property\n    def size(self):\n", None),  # it has a decorator already
        (CLASS, "    @", "    @size.setter\n    def size(self, value):\n", None),
        ("def f():\n    x = 1\n", "    @", "    def made(text):\n", None),  # in no class
        ("", "@", "def made(text):\n", None),
        (CLASS, "    @", "def made(cls):\n", None),  # of another block
        (CLASS, "    x = a @ ", "    def size(self):\n", None),
        (CLASS, "    @", "", None),
    ],
)
def test_the_first_parameter_decides_the_decorator(above: str, line: str, below: str, expected: str | None) -> None:
    found = likely(above, line, below)
    if expected is None:
        assert found is None
        return
    assert found is not None
    typed, names = found
    assert line.endswith(typed)
    assert names[0][0] == expected
    assert 0.5 < sum(weight for _, weight in names) <= 1


def test_a_begun_decorator_has_a_bias() -> None:
    bias = with_decorators(None, "python", Split(PROPERTY + "    @si", "\n    def size(self, value):\n        pass\n"))
    assert bias is not None
    (text, weight), *others = bias("")
    assert (text, others) == ("ze.setter", [])
    assert 0.5 * IMPORT_SHARE < weight < IMPORT_SHARE
    assert bias("ze.") == [("setter", weight)]
    assert bias.share(weight, weight, 0.5, 0.5) == weight
    assert list(bias("ze.setter")) == list(bias("zebra")) == []
    assert with_decorators(None, "python", Split(PROPERTY + "    @", " x\n    def size(self, value):\n")) is None
    assert with_decorators(None, "json", Split("@", "\ndef f(): pass\n")) is None
