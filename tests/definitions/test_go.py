"""The definition of Go: texts that go/parser is known to take and to refuse, by version, cut wherever they can be.

Where a `go` program is installed, go/parser itself is asked about each of them as well, in the versions that it reads.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from fim_server import Language
from fim_server.datasets.judging import programs
from fim_server.datasets.judging.judge import Judge
from fim_server.language.definition.compile import builtin_versions
from support.languages.cut_texts import write_again
from support.markdown_pages import differences

WHOLE = [
    "package p",
    "package p // at the end",
    "package p; import \"fmt\"; import (\n\tf \"os\"\n\t. \"io\"\n)\n",
    "package p\n/* over\n lines */ var x = 1 /* between */ + 2\n",
    "package p\n/***\n ***/\nvar x int\n",
    "package p\ntype T[K comparable, V ~int | ~string] struct {\n\tk K `tag`\n\t*E\n\tm map[K][]V\n}\n",
    "package p\ntype A = []int\ntype B [2 * n]int\ntype C[P *Q] struct{}\n",
    "package p\ntype I interface {\n\tF(a, b int) (c string, err error)\n\t~int | T[int]\n}\n",
    "package p\nconst (\n\ta = iota\n\tb\n)\nvar x, y int = 1, 2\n",
    "package p\nfunc (r *T[K]) f(a int, b ...string) (int, error) { return }\n",
    "package p\nfunc f[T any](x T) func(T) <-chan T\n",
    "package p\nfunc f() {\n\tif x := g(); x == (T{1}) {\n\t} else if y {\n\t}\n}\n",
    "package p\nfunc f() {\n\tfor i := 0; i < 3; i++ {\n\t}\n\tfor range 3 {\n\t}\n}\n",
    "package p\nfunc f() {\n\tfor k, v := range m {\n\t}\n\tfor {\n\t}\n}\n",
    "package p\nfunc f() {\n\tfor x \n; {}\n\tfor ; ; {}\n}\n",
    "package p\nfunc f() {\n\tswitch x := y.(type) {\n\tcase int, []string:\n\t\tg()\n\tdefault:\n\t}\n}\n",
    "package p\nfunc f() {\n\tselect {\n\tcase v, ok := <-c:\n\tcase c <- 1:\n\tdefault:\n\t}\n}\n",
    "package p\nfunc f() {\nL:\n\tfor {\n\t\tbreak L\n\t}\nM:\n}\n",
    "package p\nfunc f() { go func() { <-c }(); defer m.Unlock() }\n",
    "package p\nvar x = []T{{1}, 2: {a: b}, f(x...): a[1:2:3], m[k].(T), <-c}\n",
    "package p\nvar x = [...]int{1,\n2,\n}\n",
    "package p\nvar n = 0x1p-2 + 0b1_0 + 08i + 1_0.5e3 + .5 + 0o17 + 'a' + '\\'' + '\\u00e9'\n",
    "package p\nvar s = \"\\\\\\\"\\x00\\377\" + `raw\n\\`\n",
    "package p\nfunc f() { if x == [2]int{1, 2} { } }\n",
    "package p\nvar f = <-chan<- chan int(nil)\n",
    "package p\nvar x = []a.T.(int) + []T.y.z + chan a.B.c{} + func().y + []func() a.T.y\n",
    "package p\nvar x = T{a.b: 1, a.b.c: {d.e: f, 2: {}}, (g).h: *i, k[0].l: m}\n",
    "package p\ntype T struct { a, b [...]int }\nfunc f[P ~[...]T, Q int | [...]T](a, b ([...]T)) {}\n",
]  # fmt: skip

REFUSED = [
    "",
    "package",
    "package p import \"fmt\"",
    "package p\n;",
    "package p\nvar x int\nimport \"fmt\"\n",
    "package p\nvar x = f(\n1\n)\n",
    "package p\nfunc f()\n{\n}\n",
    "package p\nfunc f() { if x == T{1} { } }\n",
    "package p\nfunc f() { if { } }\n",
    "package p\nfunc f() { if x; { } }\n",
    "package p\nfunc f() { for a, b, c = range x { } }\n",
    "package p\nfunc f() { for x\n\n{ } }\n",
    "package p\nfunc f() { go f }\n",
    "package p\nfunc f() { defer (f()) }\n",
    "package p\nfunc f() { defer func()() }\n",
    "package p\nfunc f(a int, string) {}\n",
    "package p\nfunc f(a ...int, b int) {}\n",
    "package p\nfunc (T) f[]() {}\n",
    "package p\nfunc (T) [P any]f() {}\n",
    "package p\nfunc (T) f[P, Q]() {}\n",
    "package p\nfunc (T)[P any] f() {}\n",
    "package p\ntype I interface { f[P any]() }\n",
    "package p\nvar x = func[P any]() {}\n",
    "package p\nvar x = a[1::3]\n",
    "package p\nvar x = (T){1}\n",
    "package p\nfunc f() { ~x }\n",
    "package p\nfunc f() { switch { case 1: L: case 2: } }\n",
    "package p\nfunc f() { a, b }\n",
    "package p\nvar x = 08 + 1__0\n",
    "package p\nvar x = 0x1.8\n",
    "package p\nvar x = '\\\"'\n",
    "package p\nvar x = \"\\'\"\n",
    "package p\nvar x = /* open\n",
    "package p\ntype T struct { a, b }\n",
    "package p\nvar x = <-chan<- int(nil) + <-chan<- int\n",
    "package p\nvar x = []T.(int)\n",
    "package p\nvar x = chan a.B{}\n",
    "package p\nfunc f(a, b [...]T) {}\n",
    "package p\nfunc f[P, Q [...]T]() {}\n",
]  # fmt: skip


VERSIONS = ("1.26", "1.27")

# A text, and the first version that takes it; older ones refuse it.
SINCE = [
    ("1.27", "package p\nfunc (T) f[P any]() {}\n"),
    ("1.27", "package p\nfunc (t *T[K]) Map[U any, V ~int | []U](f func(K) U) (u []U, v V) {\n\treturn nil, 0\n}\n"),
    ("1.27", "package p\nfunc (T) f[P *Q, R interface{ *P },](P, ...R) (x struct{ p P })\n"),
    ("1.27", "package p\nfunc (t (*T)) f[\n\tP, Q any,\n\tR [3]P,\n]() {}\n"),
]

# A letter, and the first version that has it in names: that of Unicode 16 or 17.
LETTERS = [("1.26", "\u00e9"), ("1.27", "\ua7cb"), ("1.27", "\u088f"), ("1.27", "\U000323b0"), ("1.27", "\U00033479")]


@cache
def go(version: str = VERSIONS[-1]) -> Language:
    return Language.load("go", version)


def takes(text: str, version: str = VERSIONS[-1]) -> bool:
    return go(version).open("", "").check(text).complete


@pytest.mark.parametrize("text", WHOLE)
def test_what_go_takes_can_be_written_from_any_cut(text: str) -> None:
    assert all(takes(text, version) for version in VERSIONS)
    write_again(go(), text, 12)


@pytest.mark.parametrize("text", REFUSED)
def test_what_go_refuses_is_refused(text: str) -> None:
    assert not any(takes(text, version) for version in VERSIONS)
    middle = len(text) // 2
    assert not go().open(text[:middle], "").check(text[middle:]).complete


@pytest.mark.parametrize(("version", "text"), SINCE)
def test_new_syntax_is_taken_from_its_version_on(version: str, text: str) -> None:
    assert [each for each in VERSIONS if takes(text, each)] == [*VERSIONS[VERSIONS.index(version) :]]
    write_again(go(version), text, 12)


@pytest.mark.parametrize(("version", "letter"), LETTERS)
def test_letters_of_names_are_those_of_the_versions_unicode(version: str, letter: str) -> None:
    for text in (f"package {letter}", f"package x{letter}"):
        assert [each for each in VERSIONS if takes(text, each)] == [*VERSIONS[VERSIONS.index(version) :]]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("module a\n\ngo 1.27\n", "1.27"),
        ("module a\n\ngo 1.27.3\n\ntoolchain go1.28.1\n", "1.27"),
        ("module a\ngo 1.28rc1 // soon\n", "1.27"),
        ("// go 1.27\nmodule a\n  go\t1.26.8\n", "1.26"),
        ("module go\n\ngo 1.9\n\nrequire go 1.27\n", "1.26"),
        ("module a\n", None),
        ("module a\n\ngo latest\n", None),
    ],
)
def test_a_module_tells_its_version(tmp_path: Path, text: str, version: str | None) -> None:
    (tmp_path / "go.mod").write_text(text)
    assert builtin_versions("go").of_project(tmp_path / "a" / "a.go") == version


def examples() -> list[tuple[str, bool]]:
    """The texts of docs/go.md, and whether they are accepted here; go/parser says the reverse."""
    return [(text.replace("⏎", "\n").replace(r"\ufeff", "\ufeff"), here) for text, here in differences("docs/go.md")]


def test_what_differs_is_as_the_page_says() -> None:
    assert len(examples()) == 7
    assert all(takes(text, version) == here for text, here in examples() for version in VERSIONS)


def test_a_byte_order_mark_may_begin_a_file() -> None:
    assert go().open("\ufeff", "\nvar x int\n").check("package p").complete
    assert not go().open("package ", "\n").check("\ufeffp").viable


@pytest.mark.parametrize(
    ("left", "inside"),
    [
        ("package a\nvar x = 1 // b ", "comment"),
        ("package a\nvar x = 1 // b\n", None),
        ("package a\n/* b\n c", "comment"),
        ("package a\nvar x = 1 /* b", "comment"),
        ("package a\nvar x = 1 /* b */", None),
        ('package a\nvar x = "b', "string"),
        ("package a\nvar x = `b\n", "string"),
        ("package a\nvar x = 1 /", None),
    ],
)
def test_inside_of_comments_and_strings(left: str, inside: str | None) -> None:
    assert go().open(left, "\nvar y = 2\n").inside == inside


def test_what_is_open_is_told_by_name() -> None:
    session = go().open("package a\nfunc f() {\n\tif x {\n\t\tg(1, ", "\nvar y = 2\n")
    assert [each.name for each in session.open_constructs()] == ["arguments", "block", "if", "block", "function"]


def test_masks_of_go_files_do_not_depend_on_the_right_side() -> None:
    text = next(text for text in WHOLE if "for k, v" in text)
    loose = [go().open(text[:at], text[at:])._core.is_loose() for at in range(text.index("func"), len(text))]
    assert all(loose)


@pytest.fixture(scope="module")
def judge() -> Iterator[Callable[[str], Judge]]:
    reason = programs.unavailable("go")
    if reason is not None:
        pytest.skip(reason)
    judges: dict[str, Judge] = {}

    def of(version: str) -> Judge:
        if version not in judges:
            judges[version] = Judge(programs.command("go", version))
        if judges[version].verdict("") is None:
            pytest.skip(judges[version].message(""))
        return judges[version]

    yield of
    for each in judges.values():
        each.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_go_itself_agrees(judge: Callable[[str], Judge], version: str) -> None:
    parser = judge(version)
    assert [text for text in WHOLE if parser.verdict(text) is not True] == []
    assert [text for text in REFUSED if parser.verdict(text) is not False] == []
    assert [text for text, here in examples() if parser.verdict(text) is not (not here)] == []
    known = VERSIONS.index(version)
    assert [text for first, text in SINCE if parser.verdict(text) is not (known >= VERSIONS.index(first))] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_shortest_completions_are_taken_by_go(judge: Callable[[str], Judge], version: str) -> None:
    rng, parser = random.Random(1), judge(version)
    for text in [*WHOLE, *(text for first, text in SINCE if first == version)]:
        start, end = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        found = go(version).open(text[:start], text[end:]).start().shortest_completion()
        assert found is not None
        assert parser.verdict(text[:start] + found + text[end:]), (text[:start], found, text[end:])
