"""Names that a block within a renamed name's block binds again: their uses are left alone."""

from __future__ import annotations

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
    "inner function": "fn f(N: T) {\n    fn g(a: T) -> T {\n        a\n    }\n    h(O);\n}\n",
    "condition": "fn f(N: u8) -> u8 {\n    if g(O) {\n        h(O)\n    } else {\n        O\n    }\n}\n",
}  # fmt: skip


def check(text: str, find: FindUses | None) -> None:
    """Rename `a`, which is bound at N, to `n`: uses follow exactly where the text has O."""
    old = text.replace("N", "a").replace("O", "a")
    start = text.replace("O", "a").index("N")
    new = text.replace("O", "a").replace("N", "n", 1).replace("N", "a")
    line = new.count("\n", 0, start)
    edit = Edit("file:///a", line, old.split("\n")[line], new.split("\n")[line])
    expected = {at for at, sign in enumerate(text) if sign == "O" or (sign == "N" and at != start)}
    found = {one.start for one in proposals([edit], "file:///a", new, find) if one.is_use}
    first, last = new.rfind("\n", 0, start) + 1, new.find("\n", start)
    assert found == {at for at in expected if not first <= at <= last}


@pytest.mark.parametrize("text", PYTHON.values(), ids=PYTHON)
def test_uses_in_python(text: str) -> None:
    support = support_of("python")
    assert support is not None
    check(text, support.uses_of)


@pytest.mark.parametrize("text", JAVASCRIPT.values(), ids=JAVASCRIPT)
def test_uses_in_javascript(text: str) -> None:
    check(text, None)


@pytest.mark.parametrize("text", GO.values(), ids=GO)
def test_uses_in_go(text: str) -> None:
    check(text, None)


@pytest.mark.parametrize("text", RUST.values(), ids=RUST)
def test_uses_in_rust(text: str) -> None:
    check(text, None)
