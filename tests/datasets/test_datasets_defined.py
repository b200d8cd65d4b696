"""Holes in files of languages that are defined by data: JSON, whose judge is always there, and Go."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from fim_server.datasets import cutters
from fim_server.datasets.build import Request
from fim_server.datasets.defined import constructions
from fim_server.datasets.defined.text import DefinedText, Lexemes
from fim_server.datasets.holes import BLOCK_LINES, LONGEST_FILE, Cut, Refused
from fim_server.datasets.judging import programs
from fim_server.errors import JudgeError, LanguageError
from fim_server.language import Language
from support.command_line import run_command
from support.evaluation.dataset_files import built, write_tree

DOCUMENTS = {
    "object": '{\n  "a": [1, 2, {"b": null}],\n  "ü😀": "}\\"[",\n  "c": [\n    true,\n    -1.5e3\n  ]\n}\n',
    "one line": '{"a": [1, {"b": []}], "c": ""}',
    "number": "12345\n",
    "deep": "[\n [\n  [\n   1, 2\n  ], 3\n ], [4,\n 5]\n]",
    "no last line end": '[\n"a", "b"\n]',
}

PROGRAM = """\
package p // {

import "fmt"

/* {
*/
func f(a, b int) (c string) {
\ts := `{
)`
\tif a > '{' && g(
\t\tb,
\t) { // }
\t\treturn "}" + s
\t}
\tfmt.Println(a, [2]int{1, b})
\treturn
}
"""

NEEDS_GO = pytest.mark.skipif(
    "go" not in Language.names() or programs.unavailable("go") is not None, reason="no definition or no parser of Go"
)


@cache
def lexemes(language: str) -> Lexemes:
    return Lexemes(language)


def holes(construction: str, text: str, seed: int = 0, count: int = 10, language: str = "json") -> list[Cut]:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return list(constructions.cuts(construction, DefinedText(text, lexemes(language)), seed, digest, count))


def json_symbols(text: str) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Start, end and block of each symbol, by json's own scanner. A block is named by where its brackets open."""
    decoder = json.JSONDecoder()
    opened: list[int] = []
    ends: dict[int, int] = {}
    found = []
    at = 0
    while at < len(text):
        end = at + 1
        if text[at] not in "[]{}:, \n":
            _, end = decoder.raw_decode(text, at)
        if text[at] in "[{":
            opened.append(at)
        elif text[at] in "]}":
            ends[opened.pop()] = at
        if not text[at].isspace():
            found.append((at, end, tuple(place for place in opened if place != at)))
        at = end
    lines = {begin for begin, last in ends.items() if "\n" in text[begin:last]}
    for start, end, inside in found:
        yield start, end, tuple(place for place in inside if place in lines)


@pytest.mark.parametrize("construction", constructions.CONSTRUCTIONS)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_holes_are_in_the_file_and_never_twice_the_same(construction: str, name: str) -> None:
    text = DOCUMENTS[name]
    found = holes(construction, text)
    assert all(0 <= hole.start < hole.end <= len(text) for hole in found)
    assert len({(hole.start, hole.end) for hole in found}) == len(found) <= 10
    assert holes(construction, text, count=3) == found[:3]
    assert construction == "block" or name == "number" or found


@pytest.mark.parametrize("name", DOCUMENTS)
def test_symbols_and_blocks_are_those_of_another_reader(name: str) -> None:
    text = DOCUMENTS[name]
    numbers: dict[tuple[int, ...], int] = {(): 0}
    expected = [(start, end, numbers.setdefault(block, len(numbers))) for start, end, block in json_symbols(text)]
    assert DefinedText(text, lexemes("json")).symbols == expected


def test_boundary_draws_every_pair_of_a_block_and_nothing_else() -> None:
    text = "[\n1, [2, 3]\n]"
    symbols = list(json_symbols(text))
    expected = set()
    for start, end, block in symbols:
        for other, _, its in symbols:
            if block == its and start < other:
                expected |= {(begin, other) for begin in range(start, end + 1) if begin < other}
    drawn = {(hole.start, hole.end) for seed in range(60) for hole in holes("stack-boundary", text, seed, count=99)}
    assert drawn == expected
    assert {text[slice(*hole)] for hole in drawn} >= {"1, [2", "[2, 3", ", 3"}  # brackets on one line are no block


def test_randspan_keeps_its_bounds() -> None:
    for text in DOCUMENTS.values():
        for hole in holes("stack-randspan", text, count=50):
            assert hole.start <= 0.9 * len(text)
            assert 1 <= hole.end - hole.start <= min(100, 0.2 * len(text), len(text) - hole.start)


def test_lines_have_a_symbol_and_are_whole() -> None:
    text = DOCUMENTS["object"]
    assert {text[hole.start : hole.end] for hole in holes("line", text, count=99)} == {
        *(line.strip() for line in text.splitlines()),
    }
    for hole in holes("line-rest", text, count=99):
        assert text[hole.end] == "\n"
        assert text[: hole.start].rpartition("\n")[2].strip()


def test_blocks_lie_between_brackets_on_their_own_lines() -> None:
    text = DOCUMENTS["object"]
    assert {(hole.kind, text[hole.start : hole.end]) for hole in holes("block", text, count=99)} == {
        ("{}", text.strip()[4:-2]),
        ("[]", "true,\n    -1.5e3"),
    }
    long = "[\n" + ",\n".join(map(str, range(BLOCK_LINES + 1))) + "\n]"
    assert holes("block", long) == []
    assert len(holes("block", long.replace("0,\n", "", 1))) == 1


def test_holes_of_a_seed_are_these() -> None:
    """Whoever changes them counts `VERSION` up: samples' ids promise the same holes."""
    text = DOCUMENTS["object"]
    found = {
        name: [(hole.start, hole.end) for hole in holes(name, text, seed=3, count=2)]
        for name in constructions.CONSTRUCTIONS
    }
    assert found == {
        "stack-boundary": [(5, 11), (20, 26)],
        "stack-randspan": [(61, 65), (69, 70)],
        "line": [(48, 54), (32, 45)],
        "line-rest": [(20, 29), (52, 54)],
        "block": [(59, 75), (4, 79)],
    }


def test_a_character_that_no_lexeme_has_is_a_symbol() -> None:
    spans = [(symbol.start, symbol.end) for symbol in DefinedText("[é😀 1", lexemes("json")).symbols]
    assert spans == [(0, 1), (1, 2), (2, 3), (4, 5)]


def test_a_long_lexeme_is_one() -> None:
    text = f'["{"é" * 5000}", "{"x" * 70000}"]'
    assert len(DefinedText(text, lexemes("json")).symbols) == 5


def test_too_long_is_refused() -> None:
    with pytest.raises(Refused, match="too long"):
        DefinedText(" " * (LONGEST_FILE + 1), lexemes("json"))


def test_only_what_the_judge_takes_is_cut(tmp_path: Path) -> None:
    folder = write_tree(
        tmp_path / "source",
        {
            "a.json": DOCUMENTS["object"],
            "b/copy.json": DOCUMENTS["object"].replace("\n", "\r\n").encode("utf-8-sig"),
            "b/broken.json": "{a: 1}",
            "b/latin.json": '"é"'.encode("latin-1"),
            "c.py": "x = 1\n",
        },
    )
    request = Request("stack-boundary", str(folder), language="json", per_file=3)
    manifest, samples = built(request, tmp_path / "out.jsonl")
    assert manifest["counts"] == {
        "files": 4,
        "kept": 1,
        "duplicates": 1,
        "left_out": {"not decodable": 1, "refused by the judge": 1},
        "samples": 3,
    }
    assert manifest["judge"].startswith("CPython's json, Python 3.")
    assert {(sample.language, sample.origin.path) for sample in samples} == {("json", "a.json")}
    assert {sample.text for sample in samples} == {DOCUMENTS["object"]}
    again, _ = built(request, tmp_path / "again.jsonl")
    assert again["sha256"] == manifest["sha256"]


def test_the_language_is_that_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_tree(tmp_path / "source", {"a.json": DOCUMENTS["object"], "a.geojson": DOCUMENTS["deep"]})
    for number, (source, more) in enumerate([("a.geojson", ()), ("a.json", ("--language", "json"))]):
        out = tmp_path / f"{number}.jsonl"
        command = ["dataset", "build", "line", "--source", str(folder / source), *more, "--out", str(out)]
        assert run_command(capsys, *command)[0] == 0
        status, output, _ = run_command(capsys, "dataset", "show", str(out))
        assert status == 0
        assert "\njson      line" in output
        assert "\njson, line, line: " in output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("expression", "--source", ".", "--language", "json"), "expression is not for json, which has stack-boundary"),
        (("line", "--source", ".", "--language", "latin"), "unknown language 'latin'"),
        (("line", "--source", ".", "--language", "json", "--judge", "none"), "json has a grammar: --judge none is for"),
        (("block", "--source", ".", "--language", "latin", "--judge", "none"), "block is not for latin, which has"),
        (("line", "--source", "stdlib", "--language", "json"), "stdlib is a source of python, not of json"),
        (("line", "--source", "go:example.com/m@v1.0.0", "--language", "python"), "is a source of go, not of python"),
        (("human-eval-infilling", "--source", ".", "--language", "json"), "human-eval-infilling is of python"),
    ],
)
def test_files_without_holes_are_reported_in_one_line(
    arguments: tuple[str, ...], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, errors = run_command(capsys, "dataset", "build", *arguments, "--out", str(tmp_path / "out.jsonl"))
    assert (status, errors.count("\n")) == (2, 1)
    assert complaint in errors
    assert list(tmp_path.iterdir()) == []


def test_another_judge_may_be_named(tmp_path: Path) -> None:
    folder = write_tree(tmp_path / "source", {"a.json": "[1, 2]", "b.json": "[1"})
    own = f"{sys.executable} {programs.FOLDER / 'json' / 'judge.py'}"
    manifest, samples = built(Request("line", str(folder), language="json", judge=own), tmp_path / "out.jsonl")
    assert (manifest["judge"], manifest["counts"]["left_out"], len(samples)) == (own, {"refused by the judge": 1}, 1)


def test_the_definition_may_judge_files(tmp_path: Path) -> None:
    folder = write_tree(tmp_path / "source", {"a.c": "int f(int a) {\n  return a;\n}\n", "b.c": "int f(\n"})
    request = Request("block", str(folder), language="c", judge=programs.ASK_ENGINE)
    manifest, samples = built(request, tmp_path / "out.jsonl")
    assert (manifest["judge"], manifest["counts"]["left_out"]) == (programs.ENGINE, {"refused by the judge": 1})
    assert [(sample.language, sample.middle) for sample in samples] == [("c", "return a;")]


def test_files_without_a_grammar_are_cut_by_words(tmp_path: Path) -> None:
    texts = {"a.yaml": 'on:\n  - push: "x\n\n  # why\n', "b": "a (\n"}
    folder = write_tree(tmp_path / "source", texts)
    (folder / "latin").write_bytes(b"\xff")
    request = Request("line", str(folder), language="makefile", judge=programs.ASK_NONE)
    manifest, samples = built(request, tmp_path / "out.jsonl")
    assert (manifest["judge"], manifest["counts"]["left_out"]) == (programs.NOTHING, {"not decodable": 1})
    assert {(sample.origin.path, sample.middle) for sample in samples} == {
        ("a.yaml", "on:"),
        ("a.yaml", '- push: "x'),
        ("a.yaml", "# why"),
        ("b", "a ("),
    }
    corpus = write_tree(tmp_path, {"corpus.jsonl": json.dumps({"content": texts["b"], "path": "b"}) + "\n"})
    request = Request("line", str(corpus / "corpus.jsonl"), language="makefile", judge=programs.ASK_NONE)
    assert [sample.middle for sample in built(request, tmp_path / "rows.jsonl")[1]] == ["a ("]


TOLD_SYMBOLS = r"""
import json, re, struct, sys
while len(head := sys.stdin.buffer.read(4)) == 4:
    text = sys.stdin.buffer.read(struct.unpack(">I", head)[0]).decode()
    found = re.finditer(r'"(\\.|[^"])*"|[][{}:,]|[^][{}:,"\s]+', text)
    print("ok", json.dumps([number for one in found for number in (*one.span(), 1)]), flush=True)
"""


@pytest.mark.parametrize("construction", constructions.CONSTRUCTIONS)
def test_symbols_may_be_told_by_a_program(construction: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Holes are the same as those between lexemes, and the program's messages may be long."""
    long = json.dumps([{"a": [number, "😀"]} for number in range(200)], indent=1, ensure_ascii=False)
    texts = {"a.json": DOCUMENTS["object"], "b.json": long}
    folder = write_tree(tmp_path / "source", texts)
    request = Request(construction, str(folder), language="json")
    by_lexemes = built(request, tmp_path / "by-lexemes.jsonl")[1]
    program = write_tree(tmp_path, {"symbols.py": TOLD_SYMBOLS}) / "symbols.py"
    monkeypatch.setitem(programs.table()["json"], "symbols", [sys.executable, str(program)])
    by_program = built(request, tmp_path / "by-program.jsonl")[1]
    assert by_program == by_lexemes
    assert {sample.origin.path for sample in by_program} == {*texts}


def test_a_language_without_its_parser_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(programs.table()["json"], "needs", ["no-such-program"])
    with pytest.raises(JudgeError, match="the judge of json needs no-such-program"):
        cutters.cutter("json", "line")


# --- Go ------------------------------------------------------------------------------------------------------------


@NEEDS_GO
def test_comments_and_line_ends_are_no_symbols_and_strings_hold_no_brackets() -> None:
    file = DefinedText(PROGRAM, lexemes("go"))
    texts = [PROGRAM[symbol.start : symbol.end] for symbol in file.symbols]
    assert not [text for text in texts if not text.strip() or text.startswith(("//", "/*"))]
    assert {"`{\n)`", "'{'", '"}"'} <= set(texts)
    assert [PROGRAM[begin - 1] + PROGRAM[end] for _, begin, end in file.blocks] == ["{}", "()", "{}"]
    inside = {PROGRAM[symbol.start : symbol.end]: symbol.block for symbol in file.symbols}
    assert (inside["package"], inside["a"], inside["`{\n)`"], inside['"}"']) == (0, 1, 1, 3)
    lines = {PROGRAM[hole.start : hole.end] for hole in holes("line", PROGRAM, count=99, language="go")}
    assert "package p // {" in lines
    assert not [line for line in lines if "`" in line or "*/" in line]


PROGRAMS = {
    "go": (PROGRAM, "package p\nfunc f() { if { } }\n"),
    "java": (
        "class A {\n\tint f(int a) { // {\n\t\tString s = \"{\" + '}';\n\t\treturn g(\n\t\t\ta, 1\n\t\t);\n\t}\n}\n",
        "class A { int f( { } }\n",
    ),
    "rust": (
        "fn f<'a>(a: &'a str) -> u8 { // {\n    let c = '{';\n    g(\n        a,\n        r#\"}\"#,\n    )\n}\n",
        "fn f( { }\n",
    ),
    "javascript": (
        (
            "import { a } from './a.js' // {\nconst r = /[{(]/g\n"
            "export function f(b) {\n\tconst t = `{${ g(b / 2) }(`\n\treturn t\n}\n"
        ),
        "function f( { }\n",
    ),
    "typescript": (
        (
            "enum E { A = '}' }\n"
            "const f = <T extends E>(a: T[], b?: { c: () => void }): string => {\n  return g<T>(a) + `${b}`;\n};\n"
        ),
        "let a: = 1\n",
    ),
    "jsx": ("const a = (b) => (\n  <p title='{'>\n    (don't {b}\n  </p>\n)\n", "const a = <p></q>\n"),
    "tsx": ("const a = <T,>(b: T) => (\n  <p title='{'>\n    (don't {f<T>(b)}\n  </p>\n)\n", "const a = <p>\n"),
}
"""By language, a file that it takes, with what tends to be counted wrong, and one that it refuses."""


@pytest.mark.parametrize("language", PROGRAMS)
def test_middles_can_be_written_back(language: str, tmp_path: Path) -> None:
    if language not in Language.names() or programs.unavailable(language) is not None:
        pytest.skip(f"no definition or no parser of {language}")
    program, wrong = PROGRAMS[language]
    suffix = Language.suffixes_of(language)[0]
    folder = write_tree(tmp_path / "source", {f"a{suffix}": program, f"b{suffix}": wrong})
    cut = Language.load(language)
    for name in constructions.CONSTRUCTIONS:
        manifest, samples = built(Request(name, str(folder), language=language), tmp_path / f"{name}.jsonl")
        assert manifest["counts"]["left_out"] == {"refused by the judge": 1}
        assert samples
        for sample in samples:
            assert (sample.language, sample.text) == (language, program)
            assert cut.open(sample.left, sample.right).check(sample.middle).complete


def test_no_other_language_is_indented(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are cut between brackets."""
    monkeypatch.setattr(cutters, "PYTHON", "another")
    with pytest.raises(LanguageError, match="its blocks are indented"):
        cutters.cutter("python", "line")


# --- versions ------------------------------------------------------------------------------------------------------

OLD_JUDGE = """\
import struct, sys
known = tuple(map(int, sys.argv[1].split("."))) <= (3, 12)
while len(head := sys.stdin.buffer.read(4)) == 4:
    sys.stdin.buffer.read(struct.unpack(">I", head)[0])
    print("ok" if known else "? too new", flush=True)
"""


@pytest.fixture
def old_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge of Python that knows no version after 3.12."""
    row = {"needs": [], "run": [sys.executable, "-c", OLD_JUDGE, "{version}"], "is": "an old parser"}
    monkeypatch.setitem(programs.table(), "python", row)
    programs.title.cache_clear()
    monkeypatch.setattr(programs, "title", programs.title.__wrapped__)


@pytest.mark.usefixtures("old_judge")
def test_the_newest_version_that_the_judge_knows_counts() -> None:
    started = programs.start("python")
    started.judge.close()
    assert (started.version, started.title) == ("3.12", "an old parser, python 3.12")
    named = programs.start("python", "3.10")
    named.judge.close()
    assert named.version == "3.10"
    with pytest.raises(JudgeError, match=r"the judge of python 3\.15 cannot tell: too new"):
        programs.start("python", "3.15")


@pytest.mark.usefixtures("old_judge")
def test_a_check_is_of_the_newest_version_that_the_judge_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tree(tmp_path, {"a.py": "x = 1\n"})
    check = ["language", "check", "python", "--source", str(tmp_path), "--cuts", "0"]
    newest = Language.versions("python")[-1]
    status, _, said = run_command(capsys, *check)
    assert status == 0
    assert f"the judge here does not know python {newest}; python 3.12 is checked" in said
    status, _, said = run_command(capsys, *check, "--language-version", "3.10")
    assert status == 0
    assert "is checked" not in said
    told = f"fim-server: the judge of python {newest} cannot tell: too new\n"
    assert run_command(capsys, *check, "--language-version", newest) == (2, "", told)


def test_versions_are_those_of_the_language(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tree(tmp_path, {"a.json": "[1, 2]", "a.py": "x = 1\n"})
    for source, language, said in (
        ("a.json", "json", "json has no versions"),
        ("a.py", "python", "python is cut by the interpreter that runs this"),
    ):
        command = ["dataset", "build", "line", "--source", str(tmp_path / source), "--language", language]
        status, _, errors = run_command(
            capsys, *command, "--language-version", "9", "--out", str(tmp_path / "out.jsonl")
        )
        assert (status, errors.count("\n")) == (2, 1)
        assert said in errors
