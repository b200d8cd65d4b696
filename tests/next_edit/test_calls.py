"""Calls that follow a changed header."""

from __future__ import annotations

import time

import pytest

from fim_server.next_edit.edit_memory import Edit, EditMemory
from fim_server.next_edit.propose import proposals
from fim_server.suggest.next_edit import LEAST_CONFIDENCE

URI = "file:///a.py"

TEXT = """def area(w, h):
    return w * h


def run(scale):
    a = area(1, 2)
    b = area(w=1, h=max(2, 3))
    return area("(", 2), area(), area(*a), scale
"""


def walked(text: str, old: str, new: str) -> str:
    """Make an edit, accept what is sure as long as something is, and return the text."""
    texts = {URI: text}
    memory = EditMemory(texts.get)

    def change(start: int, end: int, new: str) -> None:
        memory.change(URI, texts[URI], start, end, new)
        texts[URI] = texts[URI][:start] + new + texts[URI][end:]

    start = text.index(old)
    change(start, start + len(old), new)
    for _ in range(20):
        found = [one for one in proposals(memory.latest(), URI, texts[URI]) if one.confidence >= LEAST_CONFIDENCE]
        if not found:
            break
        change(found[0].start, found[0].end, found[0].text)
    return texts[URI]


@pytest.mark.parametrize(
    ("old", "new", "calls"),
    [
        ("w, h)", "w, h, scale)", ["(1, 2, scale)", "(w=1, h=max(2, 3))", '("(", 2, scale), area(), area(*a)']),
        ("w, h)", "scale, w, h)", ["(scale, 1, 2)", "(scale, w=1, h=max(2, 3))", '(scale, "(", 2), area(), area(*a)']),
        ("w, h)", "w)", ["(1)", "(w=1)", '("("), area(), area(*a)']),
        ("w, h)", "h)", ["(2)", "(h=max(2, 3))", "(2), area(), area(*a)"]),
        ("w, h)", "w, h, other)", ["(1, 2)", "(w=1, h=max(2, 3))", '("(", 2), area(), area(*a)']),
        ("w, h)", "w, h, scale=1)", ["(1, 2)", "(w=1, h=max(2, 3))", '("(", 2), area(), area(*a)']),
    ],
)
def test_the_calls_of_a_function_follow_its_parameters(old: str, new: str, calls: list[str]) -> None:
    text = walked(TEXT, old, new)
    body = text[text.index("def run") :]
    wanted = TEXT[TEXT.index("def run") :]
    for before, after in zip(["(1, 2)", "(w=1, h=max(2, 3))", '("(", 2), area(), area(*a)'], calls, strict=True):
        wanted = wanted.replace(before, after)
    assert body == wanted


def test_the_keyword_of_a_renamed_parameter_follows() -> None:
    assert "area(w=1, height=max(2, 3))" in walked(TEXT, "w, h)", "w, height)")


@pytest.mark.parametrize(
    ("text", "old", "new", "wanted"),
    [
        (
            "class A:\n    def f(self, a):\n        pass\n\n    def g(self, b):\n        self.f(1)\n",
            "a)",
            "a, b)",
            "f(1, b)",
        ),
        ("func f(a int) {\n}\n\nfunc g(ctx C) {\n\tf(1)\n}\n", "a int)", "ctx C, a int)", "\tf(ctx, 1)"),
        ("func (s *S) f(a int) {\n}\n\nfunc (t *S) g(b int) {\n\tt.f(1)\n}\n", "a int)", "a int, b int)", "t.f(1, b)"),
        ("function f(a) {\n}\n\nfunction g(b) {\n  f(1);\n}\n", "(a)", "(a, b)", "  f(1, b);"),
        (
            "class A:\n    @classmethod\n    def f(cls, a, b):\n        pass\n\n\nA.f(1, 2)\n",
            ", b)",
            ")",
            "\nA.f(1)\n",
        ),
        (
            "impl A {\n    fn new(a: u8, b: u8) {}\n\n    fn g() {\n        Self::new(1, 2);\n    }\n}\n",
            ", b: u8)",
            ")",
            "Self::new(1)",
        ),
        ("def f(a, *rest, b=1):\n    pass\n\n\nf(1, 2, 3, b=4)\n", ", b=1)", ")", "f(1, 2, 3)\n"),
        ("def f(\n    a,\n    b,\n):\n    pass\n\n\nf(1, 2)\n", "    b,\n", "", "\nf(1)\n"),
    ],
)
def test_calls_follow_in_other_forms(text: str, old: str, new: str, wanted: str) -> None:
    assert wanted in walked(text, old, new)


def test_an_unclosed_call_is_left_alone() -> None:
    text = "def f(a):\n    pass\n\n\ndef g(b):\n    f(1\n"
    found = proposals([Edit(URI, 0, "def f(a):", "def f(a, b):")], URI, text.replace("(a)", "(a, b)"))
    assert all(one.confidence < LEAST_CONFIDENCE for one in found)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("class A:\n    def get(self, a, b):\n        pass\n\n\ndef g(d):\n    d.get(1, 2)\n", ", b)", ")"),
        ("class A:\n    def f(self, a, b):\n        pass\n\n\nA.f(1, 2, 3)\nf(1, 2)\n", ", b)", ")"),
        (
            "class A:\n    def f(self, a, b):\n        pass\n\n\nclass B:\n    def g(self):\n        self.f(1, 2)\n",
            ", b)",
            ")",
        ),
        ("impl A {\n    fn new(a: u8, b: u8) {}\n}\n\nfn g() {\n    B::new(1, 2);\n}\n", ", b: u8)", ")"),
        ("func (s *S) f(a int, b int) {\n}\n\nfunc (s *T) g() {\n\ts.f(1, 2)\n}\n", ", b int)", ")"),
        ("def f(a, b):\n    pass\n\n\nx.f(1, 2)\n", ", b)", ")"),
        ("def f(a, *rest):\n    pass\n\n\nf(1, 2, 3)\n", ", *rest)", ")"),
        ("def f(a, *rest, b=1):\n    pass\n\n\nf(1, 2, 3)\n", ", b=1)", ")"),
        ("function f(a, b, c) {}\nf(1, g<A, B>(2), 3);\n", "a, b, c", "a, c"),
        ("function f(a: M<A, B>, b, c) {}\nf(1, 2, 3, 4);\n", ", b, c", ", c"),
    ],
)
def test_calls_that_may_be_of_another_function_are_left_alone(text: str, old: str, new: str) -> None:
    assert walked(text, old, new) == text.replace(old, new, 1)


def test_many_calls_in_a_long_class_take_bounded_time() -> None:
    calls = "        self.f(1, 2)\n" * 13_000
    text = f"class A:\n    def f(self, a):\n        pass\n\n    def g(self):\n{calls}"
    edits = [Edit(URI, 1, "    def f(self, a, b):", "    def f(self, a):")]
    began = time.process_time()
    assert proposals(edits, URI, text)
    assert time.process_time() - began < 2
