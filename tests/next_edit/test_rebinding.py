"""Names that a block within a renamed name's block binds again: their uses are left alone."""

from __future__ import annotations

import time

import pytest

from fim_server.language_support.registry import support_of
from fim_server.next_edit.edit_memory import Edit
from fim_server.next_edit.propose import proposals
from fim_server.next_edit.renames import FindUses

PYTHON = {
    "parameter": "def f(N, g):\n    def h(a):\n        return a\n    return h(O)\n",
    "parameter on its own line": "def f(N, g):\n    def h(\n        a,\n    ):\n        return a\n    return h(O)\n",
    "assignment": "def f(N):\n    def h():\n        a = 1\n        return a\n    return h() + O\n",
    "loop": "def f(N):\n    def h():\n        for a in b:\n            g(a)\n    return h() + O\n",
    "nonlocal": "def f(N):\n    def h():\n        nonlocal O\n        O = 1\n    return h() + O\n",
    "global": "def f(N):\n    def h():\n        global a\n        a = 1\n    return h() + O\n",
    "lambda": "def f(N):\n    return sorted(O, key=lambda a: a.b)\n",
    "lambda's default": "def f(N):\n    return lambda a=O: a\n",
    "comprehension": "def f(N):\n    return [a.b for a in O]\n",
    "comprehension over lines": "def f(N):\n    return [\n        a\n        for a in g(O)\n        if a\n    ]\n",
    "class": "def f(N):\n    class C:\n        a = O\n".replace("a = O", "a = 1") + "    return O\n",
    "field of a string": 'def f(N):\n    return f"{O} a {[a for a in b]}"\n',
    "keyword and member": "def f(N):\n    return g(a=O).a\n",
    "block": "def f(b):\n    if b:\n        N = 1\n    return O\n",
    "target": "def f(N):\n    O = O + 1\n    O, x = g(O)\n    for O in O:\n        pass\n    return O\n",
    "method": "class C:\n    def N(self):\n        self.O()\n\n    def g(self, a):\n        return a(self.O)\n",
    "methods of two classes": "class C:\n    def N(self):\n        self.O(x.a)\n\nclass D:\n    def a(self):\n"
    "        self.a()\n",
    "function": "def N():\n    pass\n\ndef g(a):\n    return a()\n\nO()\nself.a()\n",
    "global variable": "N = 1\n\ndef g():\n    global O\n    O += 1\n    return O\n\nh(O)\n",
    "renamed global": "N = 1\n\ndef g():\n    global n\n    O += 1\n    return O\n\nh(O)\n",
    "renamed nonlocal": "def f(N):\n    def g():\n        nonlocal n\n        O += 1\n        return O\n    h(O)\n",
    "comprehension's variable": "def f(a):\n    return [N for N in g(a)] + [a]\n",
}

JAVASCRIPT = {
    "arrow": "function f(N) {\n  g(O, (a) => a.b);\n  g(O);\n}\n",
    "arrow without brackets": "function f(N) {\n  g(O, a => a.b);\n  g(a, b => c);\n}\n".replace("g(a, b", "g(O, b"),
    "arrow with a block": "function f(N) {\n  g((a, i) => {\n    h(a);\n  });\n  h(O);\n}\n",
    "pattern of an arrow": "function f(N) {\n  g(([a, b]) => a);\n  h(O);\n}\n",
    "arrow over lines": "function f(N) {\n  g((\n    a,\n    b,\n  ) => {\n    h(a);\n  });\n  h(O);\n}\n",
    "function": "function f(N) {\n  g(function (a) {\n    h(a);\n  });\n  h(O);\n}\n",
    "method": "function f(N) {\n  return {\n    g(a) {\n      return a;\n    },\n    b: O,\n  };\n}\n",
    "method with a type": "function f(N: T) {\n  class C {\n    g(a: T): U {\n      return a;\n"
    "    }\n  }\n  h(O);\n}\n",
    "let in a block": "function f(N) {\n  if (O) {\n    let a = 1;\n    g(a);\n  }\n  h(O);\n}\n",
    "const pattern": "function f(N) {\n  if (O) {\n    const { a, b } = h();\n    g(a);\n  }\n  h(O);\n}\n",
    "loop": "function f(N) {\n  for (const a of O) {\n    g(a);\n  }\n  h(O);\n}\n",
    "counted loop": "function f(N) {\n  for (let a = 0; a < b; a++) {\n    g(a);\n  }\n  h(O);\n}\n",
    "catch": "function f(N) {\n  try {\n    g(O);\n  } catch (a) {\n    g(a);\n  }\n  h(O);\n}\n",
    "condition": "function f(N) {\n  if (O) {\n    g(O);\n  } else if (O) {\n    h(O);\n"
    "  }\n  while (O) {\n    h(O);\n  }\n}\n",
    "value": "function f(N) {\n  const b = O ? g(O) : O;\n  return h({ x: O, y: [O, 1] });\n}\n",
    "keys": "function f(N) {\n  g({ a: O });\n  return {\n    a: O,\n    a,\n    b: O,\n    c, a };\n}\n",
    "arguments over lines": "function f(N) {\n  g(\n    O,\n    b,\n  );\n}\n",
    "loop on a line": "function f(N) {\n  for (const a of b) { g(a); }\n  for (let a = O; b; ) { g(a); }\n  h(O);\n}\n",
    "loop without a block": "function f(N) {\n  h(O);\n  for (const a of b) g(a);\n}\n",
    "function beside a method": "function N() {}\n\ng(O(), this.a());\n",
    "loop's own": "function f(a) {\n  for (const N of a) {\n    g(O);\n  }\n  h(a);\n}\n",
}

GO = {
    "closure": "func f(N int) {\n\tg(func(a int) {\n\t\th(a)\n\t})\n\th(O)\n}\n",
    "second parameter": "func f(N int) {\n\tg(func(b, a int) {\n\t\th(a)\n\t})\n\th(O)\n}\n",
    "declaration in a block": "func f(N int) {\n\tif b {\n\t\ta := O\n\t\th(a)\n\t}\n\th(O)\n}\n",
    "declaration beside": "func f(N int) {\n\tO, b := g(O)\n\th(O)\n}\n",
    "header": "func f(N int) {\n\tif a := g(O); a != nil {\n\t\th(a)\n\t} else if b {\n\t\th(a)\n\t}\n\th(O)\n}\n",
    "range": "func f(N []int) {\n\tfor _, a := range O {\n\t\th(a)\n\t}\n\th(O)\n}\n",
    "var": "func f(N int) {\n\t{\n\t\tvar a int\n\t\th(a)\n\t}\n\th(O)\n}\n",
    "condition": "func f(N int) {\n\tif g(O) {\n\t\th(O)\n\t}\n\tswitch O {\n\tcase 1:\n\t\th(O)\n\t}\n}\n",
    "key": "func f(N int) *S {\n\treturn &S{a: O}\n}\n",
    "keys over lines": "func f(N int) *S {\n\treturn &S{\n\t\ta: O,\n\t\tb: O,\n\t}\n}\n",
    "type switch": "func f(N any) {\n\tswitch a := O.(type) {\n\tcase int:\n\t\tg(a)\n\tdefault:\n\t\th(a)\n"
    "\t}\n\th(O)\n}\n",
    "cases": "func f(N int) {\n\tswitch b {\n\tcase b, O:\n\t\th(O)\n\t}\n}\n",
    "header on a line": "func f(N int) {\n\tif a := g(O); a > 0 { h(a) }\n\th(O)\n}\n",
    "header's own": "func f(a int) {\n\tif N := g(); O != nil {\n\t\th(O)\n\t}\n\th(a)\n}\n",
}

RUST = {
    "closure": "fn f(N: u8) {\n    g(|a| a + 1);\n    h(O);\n}\n",
    "closure with a block": "fn f(N: u8) {\n    g(move |&a, b| {\n        h(a)\n    });\n    h(O);\n}\n",
    "bits": "fn f(N: u8) {\n    h(b | O | c);\n    h(O || b);\n}\n",
    "let again": "fn f(N: u8) {\n    h(O);\n    let a = O.b();\n    h(a);\n}\n",
    "let in a block": "fn f(N: u8) {\n    if b {\n        let mut a = O + 1;\n        h(a);\n    }\n    h(O);\n}\n",
    "if let": "fn f(N: T) {\n    if let Some(a) = O {\n        h(a);\n    }\n    h(O);\n}\n",
    "while let": "fn f(N: T) {\n    while let Some((a, b)) = O.next() {\n        h(a);\n    }\n    h(O);\n}\n",
    "let else": "fn f(N: T) {\n    h(O);\n    let Some(a) = O else {\n        return;\n    };\n    h(a);\n}\n",
    "match arm": "fn f(N: T) {\n    match O {\n        Some(a) => h(a),\n        a if a > b => h(a),\n"
    "        T { a, .. } => {\n            h(a)\n        }\n        _ => h(O),\n    }\n}\n",
    "loop": "fn f(N: T) {\n    for a in O.iter() {\n        h(a);\n    }\n    h(O);\n}\n",
    "loop over pairs": "fn f(N: T) {\n    for (i, a) in O {\n        h(a);\n    }\n    h(O);\n}\n",
    "keys": "fn f(N: T) -> S {\n    g(S { a: O });\n    S {\n        a,\n        b: O,\n    }\n}\n",
    "blocks on a line": "fn f(N: T) {\n    for a in O { h(a); }\n    if let Some(a) = O { h(a); }\n    h(O);\n}\n",
    "inner function": "fn f(N: T) {\n    fn g(a: T) -> T {\n        a\n    }\n    h(O);\n}\n",
    "condition": "fn f(N: u8) -> u8 {\n    if g(O) {\n        h(O)\n    } else {\n        O\n    }\n}\n",
}  # fmt: skip


def check(text: str, find: FindUses | None, is_use: bool = True) -> None:
    """Rename `a`, which is bound at N, to `n`: uses follow exactly where the text has O; edits do, without `is_use`."""
    old = text.replace("N", "a").replace("O", "a")
    start = text.replace("O", "a").index("N")
    new = text.replace("O", "a").replace("N", "n", 1).replace("N", "a")
    line = new.count("\n", 0, start)
    edit = Edit("file:///a", line, old.split("\n")[line], new.split("\n")[line])
    expected = {at for at, sign in enumerate(text) if sign == "O" or (sign == "N" and at != start)}
    found = {one.start for one in proposals([edit], "file:///a", new, find) if one.is_use or not is_use}
    first, last = new.rfind("\n", 0, start) + 1, new.find("\n", start)
    assert found == {at for at in expected if not first <= at <= last}


@pytest.mark.parametrize("text", PYTHON.values(), ids=PYTHON)
def test_uses_in_python(text: str) -> None:
    support = support_of("python")
    assert support is not None
    check(text, support.uses_of)


@pytest.mark.parametrize(
    "text",
    [
        "def f(N):\n    b = B(a=O)\n    b.a = O\n    return b.a\n",
        "class A:\n    N = 3\n    b = O\n\nclass B:\n    a = 3\n    def f(self):\n        return self.a\n",
        "def N(x):\n    return x\n\nclass B:\n    def a(self):\n        return O(self.a())\n",
        "def f(N):\n    def g(a=1):\n        return a\n    return g(O)\n",
        "b = [1 for N in c]\nd = a\n",
    ],
    ids=["keyword and attribute", "another class", "method", "default", "comprehension"],
)
def test_the_same_text_elsewhere_is_no_use(text: str) -> None:
    support = support_of("python")
    assert support is not None
    check(text, support.uses_of, is_use=False)


def test_keywords_of_arguments_change_as_any_text() -> None:
    support = support_of("python")
    assert support is not None
    text = "f(\n    n=1,\n)\nf(\n    a=1,\n)\n"
    found = proposals([Edit("file:///a", 1, "    a=1,", "    n=1,")], "file:///a", text, support.uses_of)
    assert [(one.start, one.is_use) for one in found] == [(text.index("a"), False)]


@pytest.mark.parametrize("text", JAVASCRIPT.values(), ids=JAVASCRIPT)
def test_uses_in_javascript(text: str) -> None:
    check(text, None)


@pytest.mark.parametrize("text", GO.values(), ids=GO)
def test_uses_in_go(text: str) -> None:
    check(text, None)


@pytest.mark.parametrize("text", RUST.values(), ids=RUST)
def test_uses_in_rust(text: str) -> None:
    check(text, None)


@pytest.mark.parametrize(
    "body",
    [
        ("\tf({" + "a," * 400 + "}),\n") * 350,
        "\t\ta,\n" * 59_000,
        "\t\tg(a, {a, b, a}),\n" * 15_000,
        "\tif (x) {\n\tcase a:\n" * 12_000,
    ],
    ids=["long lines", "shorthand", "calls", "blocks"],
)
def test_the_time_is_bounded(body: str) -> None:
    text = f"function f(n) {{\n\tg(\n{body}\t)\n}}\n"
    began = time.process_time()
    proposals([Edit("file:///a", 0, "function f(a) {", "function f(n) {")], "file:///a", text)
    assert time.process_time() - began < 4
