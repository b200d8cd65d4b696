"""Definitions that a suggestion repeats: methods, types and keys of the same block."""

from __future__ import annotations

import pytest

from fim_server.decoding.ending.trimming.defined import defined_again
from fim_server.decoding.ending.trimming.trimmed import THERE_ALREADY, trimmed
from fim_server.language import Language
from fim_server.text.document import Split

IN_CLASS = "class A:\n    def start(self):\n        self.on = True\n\n    "


@pytest.mark.parametrize(
    ("language", "left", "right", "text", "kept"),
    [
        (
            "python",
            IN_CLASS,
            "\n    async def stop(self) -> int:\n        pass\n",
            "def stop(self):\n        pass",
            None,
        ),
        (
            "python",
            IN_CLASS,
            "\n\n    @staticmethod\n    def stop():\n        pass\n",
            "def stop(self):\n        pass",
            None,
        ),
        ("python", IN_CLASS, "\n", "def start(self):\n        pass", None),
        (
            "python",
            IN_CLASS,
            "\n",
            "def stop(self):\n        pass\n\nclass A:\n    pass",
            "def stop(self):\n        pass",
        ),
        (
            "python",
            "class A:\n    def start(self):\n        ",
            "\n\n    # No more.\n    def stop(self):\n        pass\n",
            "self.on = True\n\n    def stop(self):\n        pass",
            "self.on = True",
        ),
        ("python", "class A: pass\n\n", "\n\nclass B(A):\n    pass\n", "class B:\n    pass", None),
        ("python", "", "\n", "def f(): pass\ndef g(): pass\ndef f(): pass", "def f(): pass\ndef g(): pass"),
        ("go", "package p\n\nfunc Start(x int) {}\n\n", "\n\nfunc Stop(x int) {}\n", "func Stop() {}", None),
        ("go", "package p\n\n", "\n\nfunc (s *S) Pop() int { return 0 }\n", "func (s *S) Pop(x int)", None),
        ("rust", "fn start(x: i32) {}\n\n", "\n\npub fn stop(x: i32) {}\n", "fn stop() {}", None),
        ("java", "class A {\n    ", "\n\n    private static class B {\n    }\n}\n", "class B { }", None),
        ("json", '{\n  "first": 1,\n  ', '\n  "second": 2\n}\n', '"second": 1,', None),
        ("json", '{\n  "first": 1,\n  ', '\n  "second": 2\n}\n', '"third": 3,\n  "first": 1,', '"third": 3,'),
    ],
)
def test_a_definition_of_the_same_block_is_no_suggestion(
    language: str, left: str, right: str, text: str, kept: str | None
) -> None:
    session = Language.load(language).open(left, right)
    assert session.check(text).complete
    found = trimmed(text, (), session, Split(left, right))
    assert found.text == kept
    if kept is None:
        assert found.reason == THERE_ALREADY


@pytest.mark.parametrize(
    ("language", "left", "right", "text"),
    [
        ("python", IN_CLASS, "\n\nclass B:\n    def stop(self):\n        pass\n", "def stop(self):\n        pass"),
        (
            "python",
            "class A:\n    @property\n    ",
            "\n\n    @x.setter\n    def x(self, x): pass\n",
            "def x(self): pass",
        ),
        ("python", "@overload\ndef f(x: int): ...\n", "\n", "def f(x): pass"),
        ("python", IN_CLASS, "\n", "@x.setter\n    def start(self, x): pass"),
        ("python", "if a:\n    def f(): pass\nelse:\n    ", "\n", "def f(): pass"),
        ("python", "", "\n\nclass B:\n    def f(self): pass\n", "class A:\n    def f(self): pass"),
        ("python", "class B:\n    def f(self): pass\n\n", "\n", "class A:\n    def f(self): pass"),
        ("python", "x = ", "\n\ndef f(): pass\n", "1"),
        ("go", "package p\n\nfunc init() {}\n\n", "\n", "func init() {}"),
        ("go", "package p\n\nfunc (s *S) Pop() {}\n\n", "\n", "func (q *Q) Pop() {}"),
        ("java", "class A {\n    void f(int a) { }\n    ", "\n}\n", "void f(long a) { }"),
        ("rust", "impl A { fn f() {} }\n", "\n", "fn f() {}"),
        ("rust", "#[cfg(unix)]\nfn f() {}\n\n#[cfg(windows)]\n", "\n", "fn f() {}"),
        ("json", '[\n  {\n    "a": 1\n  },\n  {\n    ', "\n  }\n]\n", '"a": 2'),
    ],
)
def test_a_definition_of_another_block_stays(language: str, left: str, right: str, text: str) -> None:
    session = Language.load(language).open(left, right)
    assert session.check(text).complete
    assert defined_again(text, Split(left, right), session.spelling.defining) is None
    assert trimmed(text, (), session, Split(left, right)).text == text


def test_many_definitions_take_little() -> None:
    """The lines of the document are read once for each depth of the text, however many lines it has."""
    defining = Language.load("python").spelling.defining
    split = Split("def f(): pass\n" * 100_000, "\n" + "def g(): pass\n" * 100_000)
    text = "\n".join(f"def h{number}(): pass" for number in range(10_000))
    assert defined_again(text, split, defining) is None
    assert defined_again(text + "\ndef h7(): pass", split, defining) == 10_000
