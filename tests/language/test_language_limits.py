"""Whatever is wrong with a language's two files, `Language.from_files` says it in one line, as a LanguageError.

What is too large is refused before it is worked on: each text here took seconds to hours, or all memory, or ended in
another exception. Every limit is a number of things that are counted, so that none of this depends on a clock.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fim_server import Language, LanguageError
from fim_server.language.definition import compile as definitions
from fim_server.language.definition import expansion, limits
from support.unix import make_pipe

SPEC = 'name = "toy"\nsuffixes = []\nstart = "start"\n'
BLANK = "BLANK: / +/\n%ignore BLANK\n"


def read(folder: Path, grammar: str, spec: str = SPEC) -> Language:
    (folder / "toy.lark").write_text(grammar)
    (folder / "toy.toml").write_text(spec)
    return Language.from_files(folder / "toy.lark", folder / "toy.toml")


def each(count: int, line: str) -> str:
    return "".join(line.format(i=i, next=i + 1) + "\n" for i in range(count))


TOO_LARGE = {
    "parentheses": ("start: " + "(" * 500 + '"a"' + ")" * 500, "nesting of brackets in start"),
    "many parentheses": ("start: " + "(" * 50_000 + '"a"' + ")" * 50_000, "nesting of brackets in start"),
    "optional items": ("start: " + " ".join(f'["a{i}"]' for i in range(18)), "alternatives of rule start: 262144 "),
    "groups": ("start: " + '("a" | "b" | "c") ' * 30, "alternatives of rule start"),
    "repeated groups": ('start: ("a" | "b")~0..49', "alternatives of rule start"),
    "groups repeated often": ("start: (" + " | ".join(f'"a{i}"' for i in range(60)) + ")~99", "symbols of all rules"),
    "repetitions beyond all numbers": ('start: ("a" | "b" "c")~1' + "0" * 4000, "nests too deeply"),
    "many rules of many items": (
        "start: r0\n" + each(60, "r{i}: " + '["a"] ' * 10 + "r{next}") + 'r60: "a"',
        "symbols of all rules",
    ),
    "a template in itself": ('start: _t{{A}}\n_t{{x}}: _t{{_t{{x}}}} | x\nA: "a"', "use of template _t"),
    "templates that double": (
        'start: _t{{A}}\n_t{{x}}: _t{{_p{{x, x}}}} | x\n_p{{x, y}}: x y\nA: "a"',
        "use of template _p",
    ),
    "many uses of a template": (
        "start: _n{{A, A, A, A}}\n_n{{a, b, c, d}}: _n{{b, c, d, _p{{a}}}} | a b c d\n_p{{x}}: x\n" + 'A: "a"',
        "use of template _n",
    ),
    "terminals that double": ("start: T0\n" + each(40, "T{i}: T{next} T{next}") + 'T40: "a"', "tokens of terminal T"),
    "terminals one after the other": ("start: T0\n" + each(900, "T{i}: T{next}") + 'T900: "a"', "steps from terminal"),
    "many rules": ("start: r0\n" + each(3_000, "r{i}: r{next}") + 'r3000: "a"', "rules and terminals"),
    "many tokens": ("start: " + '"a" ' * 60_000, "tokens of the grammar"),
    "a large file": ('start: "a"\n//' + "x" * 300_000, "larger than 262144 bytes"),
    "counted repetitions": ("start: X\nX: /a{{1,100000}}/", "states of an automaton"),
    "repetitions of repetitions": ("start: X\nX: /((a{{1,100}}){{1,100}}){{1,100}}/", "bytes of an automaton"),
    "lexemes that stay apart": ("start: X\nX: /[ab]*a[ab]{{40}}/", "states of an automaton"),
    "a long literal": ('start: "' + "ab" * 60_000 + '"', "states of an automaton"),
    "letters of all scripts": (
        "start: " + " | ".join(f"X{i}" for i in range(60)) + "\n" + each(60, r"X{i}: /\w+{i}\w+/"),
        "automaton",
    ),
}


@pytest.mark.parametrize(("grammar", "what"), TOO_LARGE.values(), ids=TOO_LARGE.keys())
def test_the_error_names_what_is_too_large(tmp_path: Path, grammar: str, what: str) -> None:
    text = grammar.replace("{{", "{").replace("}}", "}")
    with pytest.raises(LanguageError, match=rf"^language [^\n]*{what}[^\n]*$"):
        read(tmp_path, f"{text}\n{BLANK if len(text) < 10_000 else ''}")


@pytest.mark.parametrize(
    "line",
    [
        '[limits]\nbrackets = "many"',
        "[limits]\nbrackets = -1",
        "[limits]\nbrackets = 4294967296",
        "[limits]\nbrackets = 1" + "0" * 5000,
        "[limits]\nbrackets = 1e3",
        "[limits]\nblocks = nan",
        "[limits]\nblocks = inf",
        "[limits]\nblocks = 1979-05-27",
        "[limits]\nblocks = [[1]]",
        "[limits]\ndepth = 1",
        "limits = 3",
        "limits = []",
        "limits = [1, 2]",
        "x = " + "[" * 5000 + "]" * 5000,
        ".".join("a" * 5000) + " = 1",
        "#" + "x" * 300_000,
        'brackets = [["(", ")", "]"]]',
        "constructs = 1",
        "".join(f'[[modes]]\nname = "m{i}"\nlexemes = ["A"]\n' for i in range(100)),
        "[versions]\nknown = 5",
        '[versions]\nknown = ["1"]\nproject = 3',
    ],
)
def test_wrong_toml_files_are_refused_in_one_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(LanguageError, match=r"^[^\n]+$"):
        read(tmp_path, f'start: "a"\n{BLANK}', f"{SPEC}{line}\n")


@pytest.mark.parametrize(
    "grammar",
    [
        "%import .nothere.A\nstart: A",
        "%import nothere.A\nstart: A",
        "%import .toy.A\nstart: A\nA: /a/",
        "%import .folder.A\nstart: A",
        "%import common.NOTHERE\nstart: NOTHERE",
        "%declare x\nstart: x",
        "%declare X\nstart: X",
        'start: "a" -> b -> c',
        'start: X\nX: "a" X',
        'start: X\nX: "a".."aa"',
        "start: X\nX: /a{99999999999999999999}/",
        "start: X\nX: /" + "(" * 5000 + "a" + ")" * 5000 + "/",
        'start: "\\ud800"',
    ],
)
def test_wrong_grammars_are_refused_in_one_line(tmp_path: Path, grammar: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder.lark").mkdir()
    monkeypatch.chdir("/")
    with pytest.raises(LanguageError, match=r"^[^\n]+$"):
        read(tmp_path, f"{grammar}\n{BLANK}")


def test_imports_that_double_are_refused(tmp_path: Path) -> None:
    """Each of two files imports each of the next two: 2³⁰ readings."""
    for level in range(30):
        for side in "ab":
            lines = [f"%import .{other}{level + 1}.X -> {other.upper()}" for other in "ab"]
            (tmp_path / f"{side}{level}.lark").write_text("\n".join([*lines, "X: A B", ""]))
    for side in "ab":
        (tmp_path / f"{side}30.lark").write_text('X: "x"\n')
    with pytest.raises(LanguageError, match=r"^[^\n]*imported grammar files: 33 is over the limit of 32$"):
        read(tmp_path, f"%import .a0.X\nstart: X\n{BLANK}")


def test_imported_terminals_count_with_those_they_are_made_of(tmp_path: Path) -> None:
    """Each file doubles its terminal ten times: a million copies with the second, no more than a thousand in each."""
    for name, base in (("one", "%import .two.T0 -> T10"), ("two", '%import .three.T10\nT11: "x"')):
        (tmp_path / f"{name}.lark").write_text(f"{base}\n{each(10, 'T{i}: T{next} T{next}')}")
    (tmp_path / "three.lark").write_text('T10: "x"\n')
    with pytest.raises(LanguageError, match=r"^[^\n]*tokens of terminal T\d+: \d+ is over the limit[^\n]*$"):
        read(tmp_path, f"%import .one.T0\nstart: T0\n{BLANK}")


def test_pipes_and_devices_are_no_definition(tmp_path: Path) -> None:
    """A pipe without a writer keeps its reader waiting, and a device never ends."""
    pipe = tmp_path / "pipe"
    make_pipe(pipe)
    read(tmp_path, f'start: "a"\n{BLANK}')
    for wrong in (pipe, Path("/dev/zero")):
        for pair in ((wrong, tmp_path / "toy.toml"), (tmp_path / "toy.lark", wrong)):
            with pytest.raises(LanguageError, match=r"^[^\n]*no regular file$"):
                Language.from_files(*pair)


def test_imports_work_from_the_grammars_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "more.lark").write_text("%import .letters (B, C)\npair{x}: B x C\nboth: pair{B}\n")
    (tmp_path / "parts" / "letters.lark").write_text('B: "b"\nC: "c"\n')
    grammar = "%import .parts.more.both\n%import common.INT\nstart: both | INT // %import .no.NO\n"
    language = read(tmp_path, grammar + BLANK)
    for text, expected in (("bbc", True), ("b b c", True), ("12", True), ("bc", False)):
        assert language.open("", "").check(text).complete == expected, text


def test_the_limits_leave_room_for_the_languages_that_come_with_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grammar three times the largest is none too large."""
    for name in ("TOKENS", "DEFINITIONS", "NESTING", "TERMINAL_WORK", "TEMPLATE_USES", "ALTERNATIVES", "SYMBOLS"):
        monkeypatch.setattr(limits, name, getattr(limits, name) // 3)
    for name in Language.names():
        definitions.lower(definitions.read_builtin(name))


@pytest.mark.parametrize(
    "rule",
    [
        '["a"] ["b"] ["c"]',
        '("a" | "b" "c")? ("d" | ["e"])',
        '("a" ["b"])~2..3',
        '("a" | "b")+ ("c" ["d"])*',
        '(("a" | "b") ("c" | "d")) | "e"',
        '"a"~1..60',
        '("a" | "b")~1..999999999999',
        '("a" | "b" ["c"])~99',
    ],
)
def test_counted_alternatives_match_lark(rule: str) -> None:
    """The count of alternatives is at least the true one, and equal to it where none are alike."""
    builder = expansion.Counted("toy", [])
    builder.load_grammar(f"start: {rule}\n", "toy.lark")
    grammar = builder.build()
    (tree,) = (tree for name, _, tree, _ in grammar.rule_defs if name == "start")
    alternatives, symbols = expansion._written_out(tree)
    _, rules, _ = grammar.compile(["start"], set())
    made = [found for found in rules if found.origin.name == "start"]
    assert len(made) == alternatives
    assert sum(len(found.expansion) for found in rules) <= symbols
