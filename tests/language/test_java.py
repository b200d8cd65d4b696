"""The definition of Java: texts that javac's parser is known to take and to refuse, cut wherever they can be.

Where a JDK of the version is installed, javac itself is asked about each of them as well.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from fim_server import Language
from fim_server.datasets.judging import programs
from fim_server.datasets.judging.differences import Differences
from fim_server.datasets.judging.judge import Judge
from fim_server.language.compile import builtin_files, builtin_versions

LONG = bool(os.environ.get("FIM_SERVER_LONG"))
CUTS = 60 if LONG else 6

WHOLE = [
    "",
    "@Deprecated",
    "package a.b;\nimport java.util.*;\nimport static x.Y.z;\n@A public final class C<T extends B & D, U> extends E<T> implements F, G<U> { }",
    "@A(x = 1, y = {1, 2,}) package p;",
    "import module a.b;\nvoid main() { int x = 1; }\nint y = 2, z[];\nclass Q {}\n;",
    "; int x; <T> T f() { return null; } Q<?>[] g(int x) { return null; }",
    "@Deprecated open module a.b { requires transitive static x; exports a to b, c; opens d; provides e with f; uses g; requires transitive; }",
    "sealed abstract class S permits A, B { } non-sealed class A extends S {} public sealed interface I permits J {}",
    "record R<T>(int a, @N T... b) implements I { static int k = 1; R { } R(int a) { } static { } int f() { return 1; } }",
    "enum E implements I { A, B(1) { void f() {} }, @X C { }, ; E() {} E(int x) {} private int y; } enum F { , } enum G { ; }",
    "@interface N { int value() default 1; String[] a() default {\"x\"}; Class<?> c() default int[].class; int K = 1; }",
    "interface I<T> extends J, K<T> { default void f() {} static int g() { return 1; } private void h() {} int X = 1, Y[] = {1}; class In {} }",
    "class A { int a, b[] = {1, 2}, c = 3; static { x = 1; } { y(); } A(int x, String... y) throws E, F { this(); } <T> A(T t) { super(1); } }",
    "class A { abstract <T extends X> T f(A<T> this, final int x) throws @Q E; int g()[] { return null; } void h(@A final List<? extends T>[] x, int @B ... y); }",
    "class A { void f() { for (int i = 0, j = 1; i < n; i++, --j) { } for (;;) break; for (String s : x) continue a; for (final var v : y) ; } }",
    "class A { void f() { l: while (true) do { } while (false); if (a) b(); else if (c) d(); else e(); assert x : y; assert z; return; } }",
    "class A { void f() { try (var x = a; y; this.z) { } catch (final A | B e) { } finally { } try { } catch (E e) { } synchronized (x) { } throw new X(); } }",
    "class A { int f() { return switch (x) { case 1, 2 -> 3; case A a when a.b() > 1 -> { yield 4; } case R(int y, var z, _) -> throw x; case null, default -> 5; }; } }",
    "class A { void f() { switch (x) { case FOO: case \"a\": g(); break; case 'c', 1 + 2: default: h(); } switch (o) { case B b -> x(); case C<D> c -> { } default -> throw y; } } }",
    "class A { Object o = (int x, String y) -> x + y; Object p = x -> { return x; }; Object q = (a, b) -> a; Object r = () -> { }; Object s = (final A<B> t, @C D[]... u) -> 1; }",
    "class A { Object v = (var w, var z) -> w; Object u = (_, _) -> 1; Object t = (a[], b) -> a; Object s = (A<B> x[], int y) -> y; }",
    "class A { Object a = (int) -x + (long[]) y; Object b = (A & B<C>) z; Object c = (A) (b) + (c) - d; Object d = (A<B>[]) !x; Object e = (A.B) () -> 1; Object f = (x) + (y); }",
    "class A { Object a = B::c; Object d = int[]::new; Object e = A<B>.C::<D>f; Object g = this::h; Object i = super::j; Object k = foo()::new; Object l = A.super::m; Object p = List<String>[]::new; }",
    "class A { Object a = new B<>(1) { int x; void f() { } }; Object b = new int[3][]; Object c = new int[][]{{1}, {}}; Object d = x.new Y<Z>(); Object f = new @Q int @P [2]; }",
    "class A { void f() { a.<T>b(c).d = e[f].g[h]++; this.x = --y; super.<T>f(); A.this.b(); A.super.c(); int.class.foo(); x = y = z += 1; x <<= 1; x >>>= y >>> 2 >> 3; } }",
    "class A { boolean b = a instanceof B && !(c instanceof final D d) || e instanceof F(var g, H h) == i instanceof List<J>> k; }",
    "class A { void f() { List<Map<String, List<Integer>>> x = null; Map<A, B>.C[] y; int z[] = {}, w; final @A int q; var v = 1; int _ = 1; } }",
    "class A { void f() { class L { } interface M { } enum N { A } record O(int x) { } abstract class P { } @A final class Q { } } }",
    "class A { void f() { yield x; } int yield; void g() { yield = 1; yield.x(); yield[0] = 1; yield++; yield (1); this.yield(); } void record() { record = 1; var sealed = permits; } }",
    "class A { char a = 'x', b = '\\'', c = '\\u0041', d = '\\377'; String e = \"a\\tb\\\"\\u0041\\\\\"; String f = \"\"\"\n  a\"b\"\"c \\\n \\\"\"\" d\n  \"\"\"; }",
    "class A { double g = 1.5e-3 + .5f + 1d + 0x1p3 + 0x.8P-2f; int h = 0x7fff_ffff + 0b1010 + 017 + 1_000 + -2147483648; long i = 0xFFFFFFFFFFFFFFFFL + -9223372036854775808L; }",
    "class A { /** doc */ int x; // c \\u0041 \\\\u\n /* b ** / \\u002a */ int y; /**/ int z; /***/ }",
    "class A<@X T extends @Y B<@Z ?> & @W C> { @U A<@V ? super D @Q [] @P []> f(@R int @S [] x) throws @T E { return (@J List<@K String>) b; } }",
    "class A { int f = a<b>.5f>c ? 1 : 2; boolean g = a < b > c; int non, sealed; int h = non-sealed; default { } int é, $x, _y, 变; }",
]  # fmt: skip

REFUSED = [
    "class A {",
    "package a; import b.*; int x;",
    "import a;",
    "import a.b;; import c.d;",
    "; A f() { }",
    "class A { int x, _ = 1; }",
    "class A { void f() { int _; } }",
    "class A { void f() { a < b = c; } }",
    "class A { void f() { x -> y = 1; } }",
    "class A { void f() { a + b; } }",
    "class A { void f() { yield(); } }",
    "class A { void f() { var x = 1, y = 2; } }",
    "class A { void f() { var x[] = 1; } }",
    "class A { void f() { static class B { } } }",
    "class A { void f() { if (x) int y; } }",
    "class A { void f() { try { } } }",
    "class A { void f() { try (foo()) { } } }",
    "class A { void f(int... x, int y) { } }",
    "class A { void f(int a.b) { } }",
    "class A { void f()[] { } }",
    "class A { Object o = (A) -x y; }",
    "class A { Object o = (A<B> x[]) -> y; }",
    "class A { Object o = (var x, int y) -> y; }",
    "class A { Object o = new int[]; }",
    "class A { Object o = new int[1] { 2 }; }",
    "class A { Object o = new A() { A() { } }; }",
    "class A { int x = 2147483648; }",
    "class A { int x = 08 + 0b2 + 1__; }",
    "class A { int x = 0x1.8; }",
    "class A { char c = ''; }",
    "class A { String s = \"\\q\"; }",
    "class A { String s = \"\\u00g\"; }",
    "class A { String s = \"\"\"x\"\"\"; }",
    "class A { int goto; }",
    "class A { int x; } /* open",
    "class A { int x; // \\u12\n }",
    "class record { }",
    "class A permits B { }",
    "sealed int x;",
    "enum E<T> { }",
    "enum E { A B }",
    "enum E { E() { } int x }",
    "interface I { int x; }",
    "interface I { { } }",
    "interface I { I() { } }",
    "record R() { int x; }",
    "record R(int x[]) { }",
    "@interface A { A() { } }",
    "module a { requires transitive transitive b; }",
    "module a { } class B { }",
    "class A { int f() { return switch (x) { case 1 -> 2; case default -> 3; }; } }",
    "class A { void f() { switch (x) { case 1 when y -> z(); } } }",
]  # fmt: skip

# A text, and the first version that takes it; all older ones refuse it.
SINCE = [
    ("11", "class A { void f() { for (var x : y) { } try (z) { } } }"),
    ("11", "interface A { private void f() { } }"),
    ("11", "module a { }"),
    ("17", "record R(int x) { }"),
    ("17", "sealed interface A permits B { }"),
    ("17", "class A { String s = \"\"\"\n x\"\"\"; }"),
    ("17", "class A { String s = \"\\s\"; }"),
    ("17", "class A { boolean x = y instanceof B b; }"),
    ("17", "class A { void f() { switch (x) { case 1, 2 -> g(); } } }"),
    ("17", "class A { int x = switch (y) { default: yield 1; }; }"),
    ("21", "class A { void f() { switch (x) { case B b -> g(); } } }"),
    ("21", "class A { boolean x = y instanceof R(int a, var b); }"),
    ("25", "class A { Object o = (x, _) -> 1; }"),
    ("25", "void main() { }"),
    ("25", "import module a;"),
]

# A text, and the last version that takes it; all newer ones refuse it.
UNTIL = [
    ("17", "class A { char c = '😀'; }"),
    ("8", "class A { int _; }"),
    ("8", "class A { var x; }"),
    ("11", "class record { record f() { return yield(); } }"),
    ("11", "class sealed { }"),
    ("17", "import a.b;; import c.d;"),
]

VERSIONS = ("8", "11", "17", "21", "25")


@cache
def java(version: str = VERSIONS[-1]) -> Language:
    return Language.load("java", version=version)


@cache
def known() -> Differences:
    return Differences.of(builtin_files("java")[0].parent)


def takes(text: str, version: str = VERSIONS[-1]) -> bool:
    return java(version).open("", "").check(text).complete


@pytest.mark.parametrize("text", WHOLE)
def test_what_javac_takes_can_be_written_from_any_cut(text: str) -> None:
    assert takes(text)
    rng = random.Random(text)
    for _ in range(CUTS):
        start, end = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        session = java().open(text[:start], text[end:])
        assert session.guarantee == "exact", (text[:start], text[end:])
        state = session.start()
        for character in text[start:end]:
            assert state.advance(character) == len(character.encode()), (text, start, end)
        assert state.is_complete()


@pytest.mark.parametrize("text", REFUSED)
def test_what_javac_refuses_is_refused(text: str) -> None:
    assert not takes(text)
    middle = len(text) // 2
    assert not java().open(text[:middle], "").check(text[middle:]).complete


@pytest.mark.parametrize(("version", "text"), SINCE)
def test_what_is_new_is_refused_before(version: str, text: str) -> None:
    assert [takes(text, each) for each in VERSIONS] == [int(each) >= int(version) for each in VERSIONS]


@pytest.mark.parametrize(("version", "text"), UNTIL)
def test_what_is_old_is_refused_later(version: str, text: str) -> None:
    assert [takes(text, each) for each in VERSIONS] == [int(each) <= int(version) for each in VERSIONS]


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("pom.xml", "<properties><maven.compiler.source>1.8</maven.compiler.source></properties>", "8"),
        ("pom.xml", "<plugin><configuration><release>22</release></configuration></plugin>", "21"),
        ("build.gradle", "sourceCompatibility = JavaVersion.VERSION_1_8", "8"),
        ("build.gradle", "sourceCompatibility = '11'", "11"),
        ("build.gradle.kts", "java { toolchain { languageVersion = JavaLanguageVersion.of(17) } }", "17"),
        ("build.gradle.kts", "tasks.compileJava { options.release.set(11) }", "11"),
    ],
)
def test_a_build_says_the_version(tmp_path: Path, name: str, text: str, version: str) -> None:
    (tmp_path / name).write_text(text)
    assert builtin_versions("java").of_project(tmp_path / "src" / "A.java") == version


def written(text: str) -> str:
    """A text as the page has it: line breaks and invisible characters are written out there."""
    return re.sub(r"\\u(200b|001a)", lambda found: chr(int(found[1], 16)), text.replace("⏎", "\n"))


def page() -> list[tuple[str, bool, bool]]:
    """The texts of docs/java.md, whether they are taken here, and whether javac is said to take them."""
    whole = (Path(__file__).parents[2] / "docs" / "java.md").read_text(encoding="utf-8")
    refused = whole.partition("## What javac's parser refuses")[2].partition("## What differs")[0]
    rows = [(text, "taken", "refused") for text in re.findall(r"^\| `([^`]+)` \|", refused, re.MULTILINE)]
    rows += re.findall(r"^\| `([^`]+)` \| (taken|refused) \| (taken|refused)", whole, re.MULTILINE)
    return [(written(text), here == "taken", there == "taken") for text, here, there in rows]


def test_what_differs_is_as_the_page_says() -> None:
    assert len(page()) == 20
    assert [text for text, here, _ in page() if takes(text) != here] == []


def test_masks_of_java_files_do_not_depend_on_the_right_side() -> None:
    text = next(text for text in WHOLE if text.startswith("package a.b"))
    # No class comes before an import.
    begin = text.index("@A")
    assert all(java().open(text[:at], text[at:])._core.is_loose() for at in range(begin, len(text)))


@pytest.fixture(scope="module")
def judge() -> Iterator[Callable[[str], Judge]]:
    reason = programs.unavailable("java")
    if reason is not None:
        pytest.skip(reason)
    judges: dict[str, Judge] = {}

    def of(version: str) -> Judge:
        if version not in judges:
            judges[version] = Judge(programs.command("java", version))
        if judges[version].verdict("") is None:
            pytest.skip(judges[version].message(""))
        return judges[version]

    yield of
    for each in judges.values():
        each.close()


def test_javac_itself_agrees(judge: Callable[[str], Judge]) -> None:
    javac = judge("25")
    assert [text for text in WHOLE if javac.verdict(text) is not True] == []
    assert [text for text in REFUSED if javac.verdict(text) is not False] == []
    assert [text for text, _, there in page() if javac.verdict(text) is not there] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_javac_agrees_about_versions(judge: Callable[[str], Judge], version: str) -> None:
    javac, number = judge(version), int(version)
    assert [text for first, text in SINCE if javac.verdict(text) is not (number >= int(first))] == []
    assert [text for last, text in UNTIL if javac.verdict(text) is not (number <= int(last))] == []
    # A made-up file of a newer version is one more text that an older one has to be right about.
    for text in (*WHOLE, *REFUSED):
        here, there = takes(text, version), javac.verdict(text)
        assert here == there or known().name(text, here, javac.message(text)) is not None, (version, text)


def test_shortest_completions_are_taken_by_javac(judge: Callable[[str], Judge]) -> None:
    rng = random.Random(1)
    for text in WHOLE:
        start, end = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        found = java().open(text[:start], text[end:]).start().shortest_completion()
        assert found is not None
        whole = text[:start] + found + text[end:]
        javac = judge("25")
        assert javac.verdict(whole) or known().name(whole, True, javac.message(whole)), (text[:start], found, text[end:])
