"""The definition of Java: texts that javac's parser is known to take and to refuse, cut wherever they can be.

Where a JDK of the version is installed, javac itself is asked about each of them as well.
"""

from __future__ import annotations

import os
import random
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from fim_server import Language
from fim_server.datasets.judging import programs
from fim_server.datasets.judging.differences import Differences
from fim_server.datasets.judging.judge import Judge
from fim_server.language.definition.compile import builtin_files, builtin_versions
from fim_server.recovery.recovery import recover
from support.languages.cut_texts import write_again
from support.markdown_pages import differences

LONG = bool(os.environ.get("FIM_SERVER_LONG"))
CUTS = 60 if LONG else 6

TEXTS = tomllib.loads(Path(__file__).with_name("java_texts.toml").read_text(encoding="utf-8"))
WHOLE: list[str] = TEXTS["taken"]
REFUSED: list[str] = TEXTS["refused"]

# A text, and the first version that takes it; all older ones refuse it.
SINCE = [
    ("11", "class A { void f() { for (var x : y) { } try (z) { } } }"),
    ("11", "interface A { private void f() { } }"),
    ("11", "module a { }"),
    ("17", "record R(int x) { }"),
    ("17", "sealed interface A permits B { }"),
    ("17", 'class A { String s = """\n x"""; }'),
    ("17", 'class A { String s = "\\s"; }'),
    ("17", "class A { boolean x = y instanceof B b; }"),
    ("17", "class A { void f() { switch (x) { case 1, 2 -> g(); } } }"),
    ("17", "class A { int x = switch (y) { default: yield 1; }; }"),
    ("21", "class A { void f() { switch (x) { case B b -> g(); } } }"),
    ("21", "class A { boolean x = y instanceof R(int a, var b); }"),
    ("25", "class A { Object o = (x, _) -> 1; }"),
    ("25", "void main() { }"),
    ("25", "import module a;"),
    ("27", "class A { void f() { switch (x) { case B<C>[] b -> g(); case y, D.E<F> @G [] _ when h -> i(); } } }"),
    ("27", "class A { int x = switch (y) { case B<C<D>>.E<F>[][] g: yield 1; }; }"),
]

# A text, and the last version that takes it; all newer ones refuse it.
UNTIL = [
    ("17", "class A { char c = '😀'; }"),
    ("8", "class A { int _; }"),
    ("8", "class A { var x; }"),
    ("11", "class record { record f() { return yield(); } }"),
    ("11", "class sealed { }"),
    ("17", "import a.b;; import c.d;"),
    ("25", "class A { Object o = @B super::c; }"),
    ("25", "class A { void f() { o = @B(1) @C int::new; g(x ? @D byte::<E>h : y); } }"),
]

# Texts on which the definition and javac differ up to Java 26, and whether they are accepted here.
UNTIL_26 = [
    ("class A { void f() { switch (a) { case B(C<D>[] e) -> h(); } } }", True),
    ("class A { } \x1a }", False),
]

VERSIONS = ("8", "11", "17", "21", "25", "26", "27")


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
    write_again(java(), text, CUTS)


@pytest.mark.parametrize("text", REFUSED)
def test_what_javac_refuses_is_refused(text: str) -> None:
    assert not takes(text)
    middle = len(text) // 2
    assert not java().open(text[:middle], "").check(text[middle:]).complete


@pytest.mark.parametrize(
    ("left", "right", "taken", "refused"),
    [
        ("class Point { public ", " }", ["Point() {}", "Line x() {}"], ["Line() {}", "Poin() {}"]),
        ("class ", " { Point(int x) {} }", ["Point", "A {} class Point"], ["Line", "A {} class B"]),
        ("class Poi", "t { Point(int x) {} }", ["n"], ["", "x"]),
        ("class Point { public Po", "t() {} }", ["in", "or x() {} void f"], ["", "or"]),
        (
            "class A { class B { void f() {",
            "} B() {} } A() {} }",
            ["", "} } class B { {"],
            ["} } class C { {", "} } {"],
        ),
        ("class A { void f() {", "} B() {} }", ["} } class B { {"], ["", "} void g() {"]),
        ("record A(int x) { ", " { } }", ["A", "A", "static"], ["B"]),
    ],
)
def test_a_constructor_is_called_as_its_class_wherever_the_cursor_is(
    left: str, right: str, taken: list[str], refused: list[str]
) -> None:
    session = java().open(left, right)
    assert [middle for middle in taken if not session.check(middle).complete] == []
    assert [middle for middle in refused if session.check(middle).complete] == []


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
        ("pom.xml", "<properties><maven.compiler.release>26</maven.compiler.release></properties>", "26"),
        ("build.gradle", "sourceCompatibility = JavaVersion.VERSION_27", "27"),
        ("build.gradle.kts", "java { toolchain { languageVersion.set(JavaLanguageVersion.of(28)) } }", "27"),
        ("build.gradle.kts", "java { toolchain { languageVersion = JavaLanguageVersion.of(17) } }", "17"),
        ("build.gradle.kts", "tasks.compileJava { options.release.set(11) }", "11"),
    ],
)
def test_a_build_says_the_version(tmp_path: Path, name: str, text: str, version: str) -> None:
    (tmp_path / name).write_text(text)
    assert builtin_versions("java").of_project(tmp_path / "src" / "A.java") == version


def written(text: str) -> str:
    """A text as the page has it: line breaks and invisible characters are written out there."""
    return text.replace("⏎", "\n").replace(r"\u200b", "\u200b")


def page() -> list[tuple[str, bool]]:
    """The texts of docs/java.md, and whether they are accepted here; javac says the reverse."""
    return [(written(text), here) for text, here in differences("docs/java.md")]


def test_what_differs_is_as_the_page_says() -> None:
    assert len(page()) == 20
    assert [text for text, here in page() if takes(text) != here] == []


def test_masks_of_java_files_do_not_depend_on_the_right_side() -> None:
    text = next(text for text in WHOLE if text.startswith("package a.b"))
    # No class comes before an import.
    begin = text.index("@A")
    assert all(java().open(text[:at], text[at:])._core.is_loose() for at in range(begin, len(text)))


BROKEN = """class Loans {
    int total(String name) {
        int sum = 0;
        for (Loan loan : loans) {
            if (loan.name().equals(name)) {
                sum += loan.days();
            }
        }
        return sum;
    }

    Stream<Loan> all() {
        return loans.stream();
    }
}
"""


@pytest.mark.parametrize(
    ("good", "bad", "lines"),
    [
        ("return sum;", "retrn sum", [8]),
        ("int sum = 0;", "int sum = 0", [2]),
        ("sum += loan.days();", "sum += loan.days(;", [5]),
        ("int total(String name)", "int total(String name", [1]),
        ("if (loan.name()", "if (loan.name(", [4]),
        ("class Loans {", "class {", [0]),
    ],
)
def test_only_broken_lines_are_left_out(good: str, bad: str, lines: list[int]) -> None:
    left, _, right = BROKEN.replace(good, bad).partition("return loans")
    found = recover(java().open, left, right)
    assert found is not None
    assert [group.line for group in found.ignored] == lines
    assert all(group.count == 1 for group in found.ignored)
    assert found.check("return loans").complete


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


@pytest.mark.parametrize("version", ["25", "26", "27"])
def test_javac_itself_agrees(judge: Callable[[str], Judge], version: str) -> None:
    javac = judge(version)
    assert [text for text in WHOLE if javac.verdict(text) is not True] == []
    assert [text for text in REFUSED if javac.verdict(text) is not False] == []
    differing = page() if version == "27" else [*page(), *UNTIL_26]
    assert [text for text, here in differing if javac.verdict(text) is not (not here)] == []
    assert [text for text, here in differing if takes(text, version) is not here] == []


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
        whole, javac = text[:start] + found + text[end:], judge("25")
        assert javac.verdict(whole) or known().name(whole, True, javac.message(whole)), (text[:start], found)
