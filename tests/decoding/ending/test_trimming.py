"""Cuts that turn a text into a suggestion: indentation, lines and phrases that are there already."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fim_server.decoding.ending.trimming.below import without_line_below, without_repetition
from fim_server.decoding.ending.trimming.completions import completed, first_trimmed
from fim_server.decoding.ending.trimming.indentation import deepest_column, starts_line
from fim_server.decoding.ending.trimming.loops import start_of_loop
from fim_server.decoding.ending.trimming.trimmed import (
    THERE_ALREADY,
    roughly_trimmed,
    trimmed,
    without_foreign_indentation,
)
from fim_server.decoding.results import Completion, StopReason, Written
from fim_server.language import Language
from fim_server.text.document import Split

SPELLING = Language.load("python").spelling

# --- texts that repeat what follows ------------------------------------------------------------------------------


def always(text: str) -> bool:
    return True


def never(text: str) -> bool:
    return False


@pytest.mark.parametrize(
    ("text", "right", "expected"),
    [
        ("a = 1\nb = 2\nreturn a", "\nreturn a\n", "a = 1\nb = 2"),
        ("a = 1\n    b\n    c", "\n    b\n    c\n    d\n", "a = 1"),
        ("a = 1\n    b  \n\n    c", "\n    b\n    c\n", "a = 1"),  # blank lines and blanks at ends do not count
        ("a = 1\n    b\n    x", "\n    b\n    c\n", "a = 1\n    b\n    x"),
        ("a = 1\n    b", "\n        b\n", "a = 1\n    b"),  # indented otherwise
        ("a = 1", "\nb = 2\n", "a = 1"),
        ("a = 1", "", "a = 1"),
        ("a = 1\n", "\n\n", "a = 1\n"),
        ("a\nb", "c\nb\n", "a"),  # the rest of the cursor's own line is no line that follows
    ],
)
def test_lines_right_of_the_cursor_are_cut(text: str, right: str, expected: str) -> None:
    assert without_repetition(text, right, always) == expected
    assert without_repetition(text, right, never) == text


def test_the_line_below_is_cut_if_the_cursors_line_is_indented_alike() -> None:
    for left, expected in (("\n    ", ""), ("", "return a"), ("\n  ", "return a"), ("\n    x = ", "return a")):
        assert without_repetition("return a", "\n    return a\n", lambda text: True, left) == expected


def test_a_line_below_that_comes_twice_is_cut_twice() -> None:
    assert without_repetition("b = 1\nreturn a\n\nreturn a", "\nreturn a\n", lambda text: True) == "b = 1"
    assert without_repetition("return a\nreturn a", "\nreturn a\n", lambda text: True) == ""


@pytest.mark.parametrize(
    ("text", "left", "expected"),
    [
        ("a = 1\n    # spaces\n\tb", "if x:\n\t", "a = 1"),
        ("a = 1\n\t# tabs", "if x:\n\t", "a = 1\n\t# tabs"),
        ("a = 1\n\t# tabs", "if x:\n    ", "a = 1"),
        ("a = 1\n  \n\tb\nc", "if x:\n\t", "a = 1\n  \n\tb\nc"),  # blank
        ("a = 1\n\tb", "x", "a = 1\n\tb"),  # no line says anything
        ("a:\n    b", "if x:\n\tb\nif ", "a:"),  # the nearest line does
    ],
)
def test_lines_are_indented_with_the_blanks_of_the_cursors_line(text: str, left: str, expected: str) -> None:
    assert without_foreign_indentation(text, left, lambda shorter: True) == expected
    assert without_foreign_indentation(text, left, lambda shorter: False) in ("", text)


# --- indentation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "left", "right", "text", "expected"),
    [
        ("go", "package p\nfunc f() {\n\tfor _, x := range xs {\n\t\t", "\n\t}\n}\n", "\ttotal += x", "total += x"),
        ("python", "for x in xs:\n\t", "\n", "\ttotal += x\n\t\ty = 1\nz = 2", "total += x\n\ty = 1\nz = 2"),
        ("python", "for x in xs:\n\t", "\n", "\tif x:\n\t\t\ty = 1", "if x:\n\t\ty = 1"),
        ("python", "for x in xs:\n    ", "\n", "    total += x", "total += x"),
        ("python", "def f():\n  for x in xs:\n    ", "\n", "  total += x", "total += x"),
        ("python", "for x in xs:\n   ", "\n", "   total += x", "total += x"),
        ("python", "for x in xs:\n        ", "\n", "        total += x", "total += x"),
        (
            "python",
            "for x in xs:\n    pass\nwhile 1:\n  ",
            "\n",
            "    total += x",
            "  total += x",
        ),  # in the middle of it
        ("python", "for x in xs:\n\ta = 1\n\n\t", "\n\tb = 2\n", "\n\tc = 3", "c = 3"),
        ("python", "x = f(\n    ", "\n)\n", "    a,", "a,"),
        ("go", 'package p\nvar a = []string{\n\t"a" +\n\t', '\n"b"}\n', "\t// c", "// c"),
        ("python", "x = f(a,\n    ", "\n)\n", "  b,", "  b,"),  # aligned with what is behind the bracket
        ("java", "class A {\n\tint f() {\n\t\tint a = 1;\n\t\t", "\n\t}\n}\n", "\treturn a;", "return a;"),
        ("rust", "fn f() {\n\tlet v = x\n\t", ";\n}\n", "\t.iter()", "\t.iter()"),  # goes on with the line above
        ("rust", "fn f() {\n    let v = 1;\n    ", "\n}\n", "    g();", "g();"),
        ("json", '{\n\t"a": 1,\n\t', "\n}\n", '\t"b": 2', '"b": 2'),
        ("json", '{\n        "a": 1,\n        ', "\n}\n", '        \n      "b": 2', '\n      "b": 2'),
        ("go", "// A\n\n       ", "\n\nimport (\n)\n", "\t\t\n\n \t    package p", "\n\n \t   package p"),
        ("python", 'x = """A.\n    ', '"""\n', " B", "B"),
        ("python", 'x = """A\n    B:\n    ', '"""\n', "    C", "    C"),
        ("python", 'x = """A\n    B:\n    ', '"""\n', " C", "C"),
        ("rust", 'fn f() { g(r"\n  h({\n    i(j {\n      ', '\n    })\n"); }\n', "  k", "k"),  # no code is aligned here
        ("java", "/**\n\t* A sentence.\n\t", "\n\t*/\n", "\t* B", "* B"),
        ("python", "def f():\n\tif x:\n\t\tg()\n\t", "\n", "\treturn 1", "\treturn 1"),  # complete at no less
    ],
)
def test_the_indentation_at_the_cursor_is_not_written_again(
    language: str, left: str, right: str, text: str, expected: str
) -> None:
    session = Language.load(language).open(left, right)
    if expected.lstrip() == "return 1":
        assert not session.check("return 1)").viable
        expected = "return 1"
    assert session.check(text).complete
    written = (Written(len(text) - len(text.lstrip()), 0.5), Written(len(text), 0.25))
    found = trimmed(text, written, session, Split(left, right))
    assert found.text == expected
    assert session.check(expected).complete
    assert found.written[-1].end == len(expected)
    assert [one.probability for one in found.written] == [0.5, 0.25]


@pytest.mark.parametrize(
    ("left", "right", "column"),
    [
        ("def f():\n    ", "\n", 4),
        ("def f():\n  ", "\n", 2),
        ("def f():  # why\n", "\n", 4),
        ("def g():\n    pass\ndef f():  # why\n  ", "\n", 4),
        ("def f():\n  if x:\n    ", "\n", 4),
        ("def f():\n    x = 1\n    ", "\n", 4),
        ("def f():\n    if x:\n        y()\n    ", "\n", 4),
        ("def f():\n    if x:\n        y()\n    ", "\n        z()\n", 8),  # the block goes on below
        ("def f():\n    if x:\n        y()\n      ", "\n", 8),  # between two blocks
        ("def f():\n\tx = 1\n\t", "\n", 4),
        ("x = f(\n", "\n)\n", 4),
        ("x = a +\n    ", "\n", 4),
        ("    ", "\n", 4),
    ],
)
def test_the_deepest_column_of_the_cursors_line(left: str, right: str, column: int) -> None:
    assert deepest_column(Split(left, right), SPELLING) == column


def test_lines_that_are_aligned_with_a_bracket_set_no_indentation() -> None:
    spelling = Language.load("rust").open("", "").spelling
    left = "fn show(name: &str,\n           error: Option<u8>) {\n    if let Some(error) = error {\n        "
    assert deepest_column(Split(left, "\n    }\n}\n"), spelling) == 8


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("def f():\n    ", "\n", True),
        ("def f():\n\t", "\n", True),
        ("def f():\n", "\n", False),
        ("def f():\n  x = 1\n  y = ", "\n", False),
        ("if x:\n    pass\nif y:\n  ", "\n", False),
        ("x = f(a,\n    ", ")\n", False),  # it may be aligned
        ('x = """a\n    ', '"""\n', False),
        ("class A:\n    def f(self):  # why\n    ", "\n", False),  # only a block may come
    ],
)
def test_where_no_blank_may_begin_the_middle(left: str, right: str, expected: bool) -> None:
    assert starts_line(Language.load("python").open(left, right), Split(left, right)) is expected


# --- loops -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Return the name of the name of the name", "Return the name of "),
        ("a + a + a", "a + "),
        ("f(a, a, a, a, a, a)", "f(a, "),
        ("f(x=1, x=1, x=1, x=1)", "f(x=1, "),
        ("os.path.join(os.path.join(os.path.join(os.path.join(a", "os.path.join("),
        ("self.parent.parent.parent.parent", "self.parent"),
        ("a = first()\nb = second()\nb = second()\nb = second()", "a = first()\nb = second()\n"),
        ("one()\ntwo()\nonce()\ntwice()\nonce()\ntwice()\nmore()", "one()\ntwo()\nonce()\ntwice()\n"),
        ("if a:\n    return b\n\nif a:\n    return b\n\nif c:", "if a:\n    return b\n\n"),
        ("log(a, b, c)\nx = 1\nlog(a, b, c)\ny = 2\nlog(a, b, c)", "log(a, b, c)\nx = 1\n"),
        ("".join(f"self.a{n} = a{n}\n" for n in range(9)), "self.a0 = a0\n"),
        ("String[] { name, name, name, name, name, name, name }", "String[] { name, "),
        ("wip_std))].wip_std))].wip_std))].w", "wip_std))]."),
        ("private int size_in_bytes_in_bytes_in_bytes;", "private int size_in_bytes"),
        ("x - " + " - ".join(f"sum(xs[{n}:])" for n in range(9)), "x - sum(xs[0:]) "),
        ("List<String, List<String, List<String, List<String, ", "List<String, "),
        ("@a.L[S]\n@a.L[L[S]]\n@a.L[L[L[S]]]\n@a.L[]", "@a.L[S]\n"),
        ("x[int], x[x[int]], x[x[x[int]]], x[x[x[x[int]]]]", "x[int], "),
        ("importimportimportimporti lazy", "import"),
        ("b,\n    c,\n    d,\n    e,\n    f,\n    g,", "b,\n    "),
        ("1, row 2, row 3, row 4, row 5, row 6, row 7, row 8", "1, row "),
        ('"b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7', '"b": 2, '),
        ("_over._over._over._over._over", "_over."),
        ("l__all__all__all__all__[x", "l__al"),
        ("kend()', but don'tkend()', but don'tkend()', but don'tken", "kend()', but don'"),
        ("mod tests { mod tests { mod tests { mod t", "mod tests { "),
        ("#[doc(hi, #[doc(hi, #[doc(hi, #[])])])]", "#[doc(hi, "),
        ("public final class A { " * 3 + "}}}", "public final class A { "),
        ("//go:build(//go:build(//go:build(", "//go:build("),
    ],
)
def test_loops_are_found_at_their_second_time(text: str, kept: str) -> None:
    start = start_of_loop(text, "", SPELLING)
    assert start is not None
    assert text[:start] == kept


@pytest.mark.parametrize(
    "text",
    [
        "0, 0, 0, 0, 0, 0, 0, 0, 0",
        "[0, 0, 1],\n[0, 1, 0],\n[1, 0, 0],\n[0, 0, 1],",
        "first()\n\n\nsecond()",
        "Tuple[float, float, float]",
        "Path(a).parent.parent.parent",
        "np.zeros(n), np.zeros(n)",
        "os.path.dirname(os.path.dirname(os.path.dirname(a)))",
        "b'\\x00\\x00\\x00\\x00\\x00'",
        "'%s, %s, %s, %s'",
        "f(\n    a),\n    )\n    )\n",
        "x\nlast_line()\nlast_line(1)",
        "return a == b and a == c",
        "self.a = a\nself.b = b\nself.c = c\nself.d = d\nself.e = e",
        "=" * 40,
        "Point(1, 2), Point(3, 4), Point(5, 6), Point(7, 8), Point(9, 1), Point(1, 1)",
        "a_b_c_d, x_x_y",
        "[[]], [[[]]], [[1]], [[[1]]]",
        "f(x), f(g(x)), f(g(h(x)))",
        "hihihi, lalala, couscous",
        "___, __x__, xxxxxxxxxxxx, banana",
        "_, _, _, _, _ = f(*_)",
        "a, b, c, d = f(x, y, z)",
        "[1, 2, 3, 4, 5, 6, 7, 8, 9]",
        "a1, a2, a3, a4",
    ],
)
def test_legitimate_repetition_stays(text: str) -> None:
    assert start_of_loop(text, "", SPELLING) is None


def test_the_rest_of_a_line_repeats_no_line() -> None:
    assert start_of_loop("begun()\nbegun()", "x = ", SPELLING) is None
    assert start_of_loop("begun()\nbegun()", "    ", SPELLING) is None  # the first is indented further
    assert start_of_loop("begun()\n    begun()", "    ", SPELLING) == len("begun()\n")


@pytest.mark.parametrize(
    ("language", "left", "right", "text", "expected"),
    [
        ("python", "x = ", "\n", "a + a + a + a", "a"),
        (
            "python",
            'def f():\n    """',
            "\n",
            'The name of the name of the name of the name"""',
            'The name of the"""',
        ),
        ("python", 'def f():\n    """', '"""\n', "The name of the name of the name of the name", "The name of the"),
        ("python", "x = ", "\n", "[0, 0, 0, 0, 0, 0, 0, 0]", "[0, 0, 0, 0, 0, 0, 0, 0]"),
        ("python", "x = f(", ")\n", "a, a, a, a, a, a, a", "a,"),
        ("python", "x = f(a if ", ")\n", "a is b else a if a is b else a if a is b else a", "a is b else a"),
        ("python", "import ", "\nimport math\n", "_winapi_winapi_winapi_winapi", "_winapi"),
        ("java", "class A { B b = new ", ";\n}\n", "B[] { name, name, name, name, name, name, name }", "B[] { name}"),
    ],
)
def test_a_loop_is_cut_where_the_program_is_complete(
    language: str, left: str, right: str, text: str, expected: str
) -> None:
    session = Language.load(language).open(left, right)
    assert session.check(text).complete
    found = trimmed(text, (), session, Split(left, right))
    assert found.text == expected
    assert session.check(expected).complete
    assert found.loop == 0


# --- the line below ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "left", "right", "text", "expected"),
    [
        ("python", "def f():\n    for x in y:\n        ", "\n    return result\n", "return result", None),
        ("python", "def f():\n    for x in y:\n        ", "\n    return result\n", "g(x)\n    return result", "g(x)"),
        ("python", "x = {\n    ", '\n    "name": 2\n}\n', '"name": 2,', None),
        ("python", "", "\nimport os\n", "import os", None),
        ("python", "", "\nimport os\n", "import os\nimport re", "import re"),
        ("python", "f(\n    ", "\n    b=2,\n)\n", "a=1,\n    b=2,\n    c=3,", "a=1,"),
        ("python", "f(\n    ", "\n    name=2,\n)\n", "a=1,\n    name=2,\n    c=3,", "a=1,"),
        ("python", "@property\n", "\n@property\ndef g(): pass\n", "def f(): pass", "def f(): pass"),
        ("python", "@a.b\n", "\n@property\ndef g(): pass\n", "@property\ndef f(): pass", "@property\ndef f(): pass"),
        (
            "python",
            "match a:\n    ",
            "\n    case 2:\n        g()\n",
            "case 2:\n        g()\n    case 3:\n        h()",
            "case 3:\n        h()",
        ),
        ("python", "match a:\n    ", "\n    case 2:\n        g()\n", "case 2:\n        h()", None),
        (
            "go",
            "package p\nfunc f() int {\n\tfor {\n\t\t",
            "\n\t}\n\treturn a.total\n}\n",
            "g()\n\t}\n\treturn a.total\n}\nfunc g() {\n\tfor {",
            "g()",
        ),
        ("python", "if a:\n    ", "\nelse:\n    pass\n", "pass", "pass"),
        ("go", "package p\nfunc f() int {\n\tfor {\n\t\t", "\n\t}\n\treturn total\n}\n", "return total", None),
        ("go", "package p\ntype T struct {\n\t", "\n\tname string\n}\n", "name string", None),
        ("go", "package p\nimport (\n\t", '\n\t"bytes"\n)\n', '"bytes"', None),
        ("java", "class A {\n    ", "\n    int size;\n}\n", "int size;", None),
        ("java", "", ".c.D;\nimport a.tools.E;\n", "import a.tools.E;\nimport a.b", "import a.b"),
        ("java", "class A { int f(int a) { switch (a) {\n    ", "\n    case 10: g();\n}}}\n", "case 10: g();", None),
        ("rust", "fn f() { match a {\n    ", '\n    2 => "two",\n} }\n', '2 => "two",', None),
        ("rust", "struct A {\n    ", "\n    name: u8,\n}\n", "name: u8,", None),
        ("json", "{\n    ", '\n    "name": 1\n}\n', '"name": 1,', None),
        ("json", "[\n  ", '\n  {"a": "c"}\n]\n', '{"a": "b"},\n  {"a": "c"},', '{"a": "b"},'),  # but for the comma
        ("java", "enum A {\n    B,\n    ", "\n    WEDNESDAY\n}\n", "TUESDAY,\n    WEDNESDAY,", "TUESDAY,"),
        ("python", "a = 1\nb = ", "\nc = 3\nd = 4\n", "2\nc = 3\nd = 4", "2"),
        ("python", "height = ", "\ndepth = 3\ncolor = 4\n", "1\ncolor = 4", "1"),  # the line after next
        ("go", "package p\nfunc f() {\n\tsecond := ", "\n\tthird := 3\n}\n", "2\n\tthird = 3", "2"),
        ("go", "package p\nfunc f() {\n\tsecond := ", "\n\tthird := 3\n}\n", "2\n\tthird", "2"),
        ("python", "if a:\n    x = ", "\nelse:\n    color = 4\n", "1\n    color = 4", "1\n    color = 4"),
        ("go", "// A.\n", "\n\n//go:build unix\n\npackage p\n", "//go:build unix\n// B.", "// B."),
        ("python", "", "\n# A sentence.\nf()\n", "  \n\n# A sentence.\n# Another.", "# Another."),
        ("rust", "", "\n#[macro_export]\nstruct A {}\n", 'a::b!("c\n#[macro_export]\n#");', 'a::b!("c");'),
        ("rust", "", "\nuse {\n    a::b,\n};\n", "use {\n    c::d,\n};", None),
        ("python", "", "\ntry:\n    f()\nfinally:\n    g()\n", "try:\n    h()\nfinally:\n    g()", None),
    ],
)
def test_the_line_below_is_no_suggestion(language: str, left: str, right: str, text: str, expected: str | None) -> None:
    session = Language.load(language).open(left, right)
    assert session.check(text).complete
    found = trimmed(text, (), session, Split(left, right))
    if expected is None:
        assert not (found.text or "").strip()
    else:
        assert found.text == expected
        assert session.check(expected).complete


def test_no_text_is_left_if_it_cannot_end_before_the_line_below() -> None:
    split = Split("f(\n    ", "\n    name=2,\n)\n")
    assert without_line_below("a=1,\n    name=2,\n    c=3,", split, never) is None
    assert without_line_below("name=2", split, never) is None


# --- the rest of the line ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "text", "expected"),
    [
        ("x = (]\n", "\nsecond(1)\n", "first(1)\nsecond(1)\nthird(1)", "first(1)"),
        ("x = (]\n", "\nsecond(1)\n", "second(1)", ""),
        ("x = (]\nfor y in z:\n    ", "\n", "    f(y)", "f(y)"),
        ("x = (]\nprint(os.", "sep)\n", "path.sep", "path."),
        ("x = (]\n", "\n", "f(a)\nf(a)\nf(a)\nf(a)", "f(a)"),
    ],
)
def test_where_nothing_is_known_texts_are_trimmed_as_well(left: str, right: str, text: str, expected: str) -> None:
    session = Language.load("python").open(left, right)
    assert session.guarantee == "none"
    assert roughly_trimmed(text, Split(left, right), session) == expected


@pytest.mark.parametrize(
    ("language", "left", "right", "text", "expected"),
    [
        ("java", "class A { void f() {\n    a.out.", "println(1);\n} }\n", "println(1);", None),
        ("java", "class A { void f() {\n    a.out.", "println(1);\n} }\n", "println", None),
        ("python", "print(os.", "sep)\n", "path.sep", "path."),
        ("python", "print(os.", "sep)\n", "dossep", "dossep"),
        ("python", "x = a", " + name\n", ".b + name", ".b"),
        ("python", "x = a", " + b\n", ".b + b", ".b + b"),  # one letter says little
        ("python", "x = f(a, ", "a)\n", "b, a, ", "b, a, "),
        ("go", "package p\nfunc f() { go func() {", "}() }\n", " \t\treturn", " return"),
        ("python", "x =", "\n", "  1", " 1"),
        ("python", "x = '", "'\n", "  1", "  1"),
        ("python", "", "\n", "        # A", "# A"),
        ("json", "", "\n", "    1", "1"),
        ("python", "def f():\n    pass\n", "\n", "    return 1", "    return 1"),
        ("python", "def f():\n", "\n", "    return 1", "    return 1"),
    ],
)
def test_text_beside_the_cursor_is_cut(language: str, left: str, right: str, text: str, expected: str | None) -> None:
    session = Language.load(language).open(left, right)
    assert session.check(text).complete
    assert trimmed(text, (), session, Split(left, right)).text == expected


# --- completions -------------------------------------------------------------------------------------------------


def written(text: str | None, begun: str = "") -> Completion:
    reason = StopReason.END_TOKEN if text is not None else StopReason.REPETITION
    return Completion(text, "exact", reason, None, begun=begun)


def test_the_first_completion_that_survives_trimming_is_taken() -> None:
    split = Split("def f():\n    for x in y:\n        ", "\n    return result\n")
    session = Language.load("python").open(split.left, split.right)
    told: list[str] = []

    def texts() -> Iterator[Completion]:
        for text in ("return result", "a + a + a", "g(x)"):
            told.append(text)
            yield written(text)

    assert first_trimmed(texts(), session, split).text == "a"
    assert told == ["return result", "a + a + a"]  # no more are written
    found = first_trimmed([written("return result")], session, split)
    assert (found.text, found.reason) == (None, THERE_ALREADY)
    whole = written("g(x)")
    assert completed(whole, session, split) is whole


def test_a_beginning_before_a_loop_is_ended() -> None:
    split = Split('def f():\n    """', "\n")
    session = Language.load("python").open(split.left, split.right)
    found = completed(written(None, "Return the name of the"), session, split)
    assert found.text == 'Return the name of the"""'
    assert session.check(found.text).complete
    split = Split("x = f(", "\n")
    session = Language.load("python").open(split.left, split.right)
    assert completed(written(None, "lambda"), session, split).text is None
