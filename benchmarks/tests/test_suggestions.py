"""``./dev bench suggestions``: what is typed, who is right about it, what that saves, and what is printed."""

from __future__ import annotations

import asyncio
import json
import random
import time
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import pytest

from benchmarks.__main__ import run as main
from benchmarks.compare import figures_of
from benchmarks.server.lsp_client import Asked, Client
from benchmarks.server.played_editor import Edit, Editor
from benchmarks.server.scenarios import Item, Request
from benchmarks.suggestions import command, edit_sessions, judge, lines, parts, projects, report
from benchmarks.suggestions.judge import Judgement, Truth
from benchmarks.suggestions.playing import (
    ACCEPTING,
    GONE,
    HASTY,
    KEPT,
    KEY,
    LONGER,
    REPLACED,
    SHORTER,
    TYPING,
    WHOLE,
    WORD,
    Effort,
    Record,
    keys_alone,
    play,
)
from benchmarks.suggestions.projects import Project, Stretch, Task
from benchmarks.suggestions.suggesting import Answer, Copying, Served, Suggester, copied, covered_by, told
from benchmarks.suggestions.typed_language import typed
from fim_server.errors import BenchError
from support.bench_corpus import TYPED_SOURCE as SOURCE

# --- what an offer is worth ---------------------------------------------------------------------------------------


def judged(typed: str, rest: str, offer: str, closers: str = "", covered: int = 0, after: str = "\nend()") -> Judgement:
    """The judgement of an offer after ``typed``, where ``rest`` is missing and ``closers`` came by themselves."""
    editor = Editor(f"x = 1\n{typed}{closers}{after}", len("x = 1\n") + len(typed))
    editor.closers = closers
    written = f"x = 1\n{typed}{rest}"
    return judge.judge(editor, Truth(written + after, len(written)), Item(offer, covered, None))


@pytest.mark.parametrize(
    ("typed", "rest", "offer", "lexeme", "line", "agrees"),
    [
        ("total = ", "count + 1", "count + 1", True, True, True),
        ("total = ", "count + 1", "count", True, False, True),
        ("total = ", "count + 1", "count - 1", True, False, False),
        ("total = ", "count + 1", "counter", False, False, False),
        ("total = ", "count + 1", "cou", False, False, True),  # a lexeme that is not complete
        ("total = co", "unt + 1", "unt", True, False, True),  # one that is cut at the cursor
        ("total = co", "unt + 1", "unter", False, False, False),
        ("total", " = count", " = count", True, True, True),
        ("total", " = count", "= count", False, False, False),
        ("total ", "+= count", "+", False, False, True),
        ("name = ", "'a b'", "'a b'", True, True, True),
        ("name = ", "'a b'", "'a c'", False, False, False),
        ("return", " x", "", False, False, True),
        ("if ready", ":", ":\n    pass", True, True, False),  # nothing more is missing
    ],
)
def test_what_is_right_of_an_offer(typed: str, rest: str, offer: str, lexeme: bool, line: bool, agrees: bool) -> None:
    found = judged(typed, rest, offer)
    assert (found.lexeme, found.line, found.agrees) == (lexeme, line, agrees)


@pytest.mark.parametrize(
    ("rest", "offer", "covered", "lexeme", "line", "agrees"),
    [
        ("a, b)", "a, b", 0, True, True, True),  # the bracket that came by itself completes the line
        ("a, b)", "a, b)", 1, True, True, True),
        ("a, b)", "a, b)", 0, True, False, False),  # one bracket more than there should be
        ("a, b)", "a", 0, True, False, True),
        ("a) + 1", "a", 0, True, False, True),
        ("a) + 1", "a) + 1", 1, True, True, True),
    ],
)
def test_brackets_that_came_by_themselves(
    rest: str, offer: str, covered: int, lexeme: bool, line: bool, agrees: bool
) -> None:
    found = judged("f(", rest, offer, ")", covered)
    assert (found.lexeme, found.line, found.agrees) == (lexeme, line, agrees)


@pytest.mark.parametrize(
    ("offer", "covered", "lexeme", "agrees"),
    [
        ("b c", 0, True, True),  # the quote that came by itself completes the lexeme
        ("b c'", 1, True, True),
        ("b c'", 0, True, False),  # one quote more than there should be
        ("b", 0, False, True),
        ("b d", 0, False, False),
    ],
)
def test_quotes_that_came_by_themselves(offer: str, covered: int, lexeme: bool, agrees: bool) -> None:
    found = judged("name = 'a ", "b c', 1", offer, "'", covered)
    assert (found.lexeme, found.agrees) == (lexeme, agrees)


def test_lines_of_an_offer() -> None:
    found = judged("if ready:", "\n    go()\n    stop()", "\n    go()\n    wait()\nend()")
    assert (found.lines, found.right, found.below, found.agrees) == (3, 1, 1, False)
    assert judged("if ready:", "\n    go()\n    stop()", "\n    go()").agrees
    assert judged("go(", ")", "x)\nend()", ")", 1).below == 1


def test_the_first_word() -> None:
    assert judged("total = ", "count + 1", "count - 1").word == "count"
    assert judged("total = ", "count + 1", "sum(x)").word == ""
    assert judged("f(", "a)", "a)", ")", 1).word == "a"


def test_kinds_of_place() -> None:
    def kind(typed: str, rest: str, closers: str = "") -> str:
        editor = Editor(typed + closers, len(typed))
        editor.closers = closers
        return judge.kind_of(editor, Truth(typed + rest, len(typed + rest)))

    assert kind("    ", "x = 1") == judge.LINE_START
    assert kind("x = f(", "a)", ")") == judge.BRACKETS
    assert kind("x = f(", ")", ")") == judge.EMPTY_BRACKETS
    assert kind("x = f(", "a)") == judge.ELSEWHERE
    assert kind("x = '", "a'", "'") == judge.STRING
    assert kind("self.", "x") == judge.DOT
    assert (kind("se", "lf"), kind("self", ".x")) == (judge.IN_WORD, judge.AFTER_WORD)
    assert (kind("x = 1", ""), kind("x:", "\n    y")) == (judge.LINE_END, judge.LINE_END)
    editor = Editor("if x:\n        ", 14)
    assert judge.kind_of(editor, Truth("if x:\n    y", 11)) == judge.BESIDE


# --- the copying rule ---------------------------------------------------------------------------------------------


def test_what_is_copied() -> None:
    text = "self.total = self.count + 1\nself.total = other\nif x:\n    self.total"
    assert copied(text) == " = other", "the last of the longest matches"
    assert copied("first.total = 1\nother.total = 2\nfirst.total") == " = 1", "the longest"
    assert copied("abc def\nabc") == "", "a match of three characters"
    assert copied("") == copied("x") == ""
    assert copied("some = 1\nvalue\nvalue") == "", "nothing follows the match on its line"


def test_closers_that_a_text_brings() -> None:
    assert covered_by("a", ")") == 0
    assert covered_by("a)", ")") == 1
    assert covered_by("f(a)", ")") == 0
    assert covered_by("f(a)])", "])") == 2
    assert covered_by('b"]', '"]') == 2


# --- the user at the keyboard --------------------------------------------------------------------------------------


class Scripted:
    """Offers by what is typed of the line."""

    name = "server"

    def __init__(self, offers: dict[str, str | tuple[str, int]]) -> None:
        self._offers = offers
        self.text = ""
        self.accepts = 0
        self.rests = 0

    def open(self, task: Task) -> None:
        self.text = task.before + task.after

    def edited(self, editor: Editor, edit: Edit) -> None:
        self.text = self.text[: edit.start] + edit.text + self.text[edit.end :]
        assert self.text == editor.text

    async def rest(self, editor: Editor) -> None:
        assert self.text == editor.text
        self.rests += 1

    async def ask(self, editor: Editor) -> Answer:
        assert self.rests == 1, "once, before anything is asked"
        found = self._offers.get(editor.line.strip())
        request = Request("server", "key", outcome="answered")
        if found is None:
            return Answer(request, None)
        text, covered = (found, 0) if isinstance(found, str) else found
        return Answer(request, Item(text, covered, None))

    def accepted(self, item: Item) -> None:
        self.accepts += 1

    def close(self) -> None:
        assert self.text


def task(wanted: str, before: str = "import os\n    ", after: str = "\nend()\n") -> Task:
    return Task("project", "m.py", 2, before, wanted, after)


def accepted(one: Task, suggester: Suggester, sweep: str = ACCEPTING) -> tuple[Effort, list[Record]]:
    (effort,), records = asyncio.run(play(one, suggester, sweep))
    return effort, records


def typed_out(one: Task, suggester: Suggester) -> list[Record]:
    return asyncio.run(play(one, suggester, TYPING))[1]


def accept(
    wanted: str, offers: dict[str, str | tuple[str, int]], sweep: str = ACCEPTING
) -> tuple[Effort, list[Record]]:
    return accepted(task(wanted), Scripted(offers), sweep)


def test_keys_of_typing_alone() -> None:
    assert keys_alone(task("x = f(a)")) == 8, "the closing bracket is typed over"
    assert keys_alone(task("x = f(")) == 7, "a closer that was not typed over is taken out"
    assert keys_alone(task("if x:\n        y")) == 7, "an editor indents"
    assert keys_alone(task("x\n    y")) == 3


def test_keys_and_acceptances() -> None:
    effort, records = accept("total = count + 1", {"t": "otal = count - 1", "total =": " count + 1"})
    actions = [record.action for record in records]
    # t, then the word, then " ", "=", and the rest of the line
    assert actions == [KEY, WORD, KEY, KEY, WHOLE, ""]
    assert (effort.alone, effort.keys, effort.accepted) == (17, 3, 2)
    assert report.saved([effort]).value == pytest.approx(1 - 5 / 17)
    effort, records = accept("total = count + 1", {})
    assert (effort.alone, effort.keys, effort.accepted, report.saved([effort]).value) == (17, 17, 0, 0)
    assert [record.action for record in records] == [KEY] * 17 + [""]


def test_an_acceptance_leaves_closers_where_they_are() -> None:
    assert accept("f(a, b)", {"f(": "a, b"})[0].keys == 3, "f, the bracket, and over the other one"
    effort, _ = accept("f(a, b)", {"f(": ("a, b)", 1)})
    assert (effort.keys, effort.accepted) == (2, 1)
    assert accept("f(a, b)", {"f(": "a, b)"})[0].accepted == 1, "its first word alone"


def test_lines_in_a_row_are_accepted_at_once() -> None:
    effort, _ = accept("if x:\n        y()\n        z()", {"if x:": "\n        y()\n        z()"})
    assert (effort.keys, effort.accepted) == (5, 1)
    _, records = accept("if x:\n        y()", {"if x:": "\n        y()\nend()"})
    assert WHOLE not in [record.action for record in records], "the last line stands below already"


def test_what_becomes_of_an_offer_while_it_is_typed() -> None:
    def changes(*offers: str | None) -> list[str | None]:
        given: dict[str, str | tuple[str, int]] = {
            "return x"[:at]: offer for at, offer in enumerate(offers) if offer is not None
        }
        records = typed_out(task("return x"), Scripted(given))
        return [record.change for record in records[1 : len(offers)]]

    assert changes("return x", "eturn x", "turn x") == [KEPT, KEPT]
    assert changes("return x", "eturn xy", "turn") == [LONGER, SHORTER]
    assert changes("return x", "eturn y", "turn z") == [REPLACED, REPLACED]
    assert changes("return x", None, "turn x") == [GONE, None]
    assert changes("raise", "eturn x") == [REPLACED]
    assert changes("pass", "eturn x") == [None], "another key than the offer's"
    assert changes("r", "eturn x") == [None], "nothing was left of it"


def test_heights() -> None:
    records = typed_out(task("x = 1"), Scripted({"": "x\ny\nz", "x": "\ny", "x =": " 1"}))
    assert [record.height for record in records] == [2, 1, 0, 1, 0, 0]


def test_the_rule_is_played_like_a_server() -> None:
    one = Task("project", "m.py", 3, "value = compute(a, b)\nother = 1\n", "value = compute(a, c)", "\n")
    records = typed_out(one, Copying())
    assert len(records) == keys_alone(one) + 1
    offers = {record.typed: record for record in records if record.text is not None}
    found = offers["value = compute("]
    assert (found.text, found.covered, found.closers) == ("a, b)", 1, ")")
    assert found.judged is not None
    assert (found.judged.lexeme, found.judged.agrees, found.judged.word) == (True, False, "a")
    effort, _ = accepted(one, Copying())
    assert effort.by == "copying rule"
    assert 0 < effort.keys + effort.accepted < effort.alone


def test_what_a_server_tells_of_an_offer() -> None:
    message = {"result": {"items": [{"insertText": "x", "command": {"arguments": [{"confidence": 0.5}]}}]}}
    assert told(message, {"source": "memory", "origin": "model"}) == {"confidence": 0.5, "source": "memory"}
    assert told({"result": [{"insertText": "x"}]}, None) == {}


# --- lines --------------------------------------------------------------------------------------------------------


def project(**files: str) -> Project:
    return Project("project", {f"{name}.py": text.encode() for name, text in files.items()}, typed("python"))


def test_lines_of_code() -> None:
    head = '"""One\nx = 1\n"""\n\n# a remark\nvalue = 1  # two\n"just a string"\n'
    text = head + 'name = """a\nb"""\nlast = [\n    1000,\n]\n'
    one = project(a=text)
    lines.draw_lines(one, 20, 0)
    assert sorted(each.wanted for each in one.tasks) == ["last = [", "value = 1"]
    value = next(each for each in one.tasks if each.wanted == "value = 1")
    assert (value.line, value.before + value.wanted + value.after) == (6, text.replace("  # two", ""))


def test_lines_are_drawn_by_the_seed_from_a_quarter_of_the_files() -> None:
    def drawn(seed: int) -> Project:
        found = project(**{f"m{number}": SOURCE for number in range(8)}, broken="def f(:")
        lines.draw_lines(found, 6, seed)
        return found

    one = drawn(1)
    assert one.tasks == drawn(1).tasks != drawn(2).tasks
    taken = {each.file for each in one.tasks}
    assert (len(one.tasks), len(taken)) == (6, 2)
    assert {path for path, _ in one.workspace} == one.files.keys() - taken
    assert all(each.before + each.wanted + each.after == SOURCE for each in one.tasks if "#" not in each.wanted)
    with pytest.raises(BenchError, match="no lines of code to type"):
        lines.draw_lines(project(a="# nothing\n"), 6, 1)


def test_stretches_of_two_releases() -> None:
    old = "import os\n\ndef f():\n    return os.name\n\nlast = 1\n"
    new = "import os\n\ndef f(name):\n    print(name)\n    return name\n\nlast = 2\n"
    found = list(edit_sessions.stretches(old, new))
    assert [(old[one.start : one.end], one.text) for one in found] == [
        ("):\n    return os.name", "name):\n    print(name)\n    return name"),
        ("1", "2"),
    ]
    assert list(edit_sessions.stretches(old, old[:20])) == [], "only taken out"
    (begun,) = edit_sessions.stretches(old, old.replace("    return", "    x = 1\n    return"))
    assert begun == Stretch(old.index("\n    return"), old.index("\n    return"), "\n    x = 1")


def test_a_line_goes_on_right_of_an_edit() -> None:
    task = Task("project", "a.py", 1, "a = [", "one, ", "two]\nb = 1\n", "python")
    truth = Truth(task.before + task.wanted + task.after, len(task.before) + len(task.wanted))
    editor = Editor(task.before + task.after, len(task.before), truth.language.keyboard)
    assert judge.judge(editor, truth, Item("one, ", 0, None)).line
    assert not judge.judge(editor, truth, Item("one", 0, None)).line


def test_closers_of_a_later_line_are_not_of_this_one() -> None:
    truth = Truth("f(a,\n  b)\n", 9)
    editor = Editor("\n", 0, truth.language.keyboard)
    for key in "f(":
        editor.press(key)
    assert editor.closers == ")"
    assert judge.judge(editor, truth, Item("a,", 0, None)).line
    assert not judge.judge(editor, truth, Item("a", 0, None)).line


@pytest.mark.parametrize("sweep", edit_sessions.SWEEPS)
def test_a_session_ends_in_the_newer_text(sweep: str) -> None:
    old = "one = 1\nother = [1]\nuse(one)\n"
    new = "one = 10\nsecond = 2\nother = [\n    1,\n]\nuse(one, second)\n"
    for seed in range(8):
        before, after = project(a=old, b="same = 1\n"), project(a=new, b="same = 1\n")
        (session,) = edit_sessions.draw_sessions(before, after, 20, seed)
        assert sorted(session.stretches, key=lambda one: one.start) == list(edit_sessions.stretches(old, new))
        screen = Watching()
        efforts, records = asyncio.run(edit_sessions.play_session(session, screen, sweep))
        assert screen.text == new
        assert bool(efforts) == (sweep != TYPING)
        assert {record.sweep for record in records} == {sweep}
    with pytest.raises(BenchError, match="changed or added"):
        edit_sessions.draw_sessions(before, before, 20, 0)


class Watching(Copying):
    """The copying rule, and the document that a server would have."""

    def open(self, task: Task) -> None:
        self.text = task.before + task.after

    def edited(self, editor: Editor, edit: Edit) -> None:
        self.text = self.text[: edit.start] + edit.text + self.text[edit.end :]


def test_a_hasty_user_takes_back_what_is_wrong() -> None:
    effort, records = accept("value = total", {"value =": " topic"}, HASTY)
    assert effort.accepted == 0, "its first lexeme is wrong"
    effort, records = accept("value = f(total)", {"value =": " f(topic)"}, HASTY)
    assert (effort.accepted, effort.inserted, effort.kept) == (1, 9, 5)
    assert [record.action for record in records if record.kind == judge.BESIDE] == [KEY] * 4
    effort, _ = accept("value = f(total)", {"value =": " f(topic, topic)"}, HASTY)
    assert (effort.inserted, effort.kept) == (2, 2), "only the first word, because most of it is wrong"


GO = """package a

// says it
func f(x int) string {
	if x > 1 { // more
		return g(x, "a b")
	}
	raw := `two
lines`
	return raw
}
"""


def test_lines_of_another_language() -> None:
    found = Project("project", {"a.go": GO.encode(), "b.go": b"package b\n"}, typed("go"))
    lines.draw_lines(found, 20, 1)
    wanted = ["func f(x int) string {", "if x > 1 {", "package a", 'return g(x, "a b")', "return raw"]
    assert sorted(each.wanted for each in found.tasks) == wanted
    assert {each.language for each in found.tasks} == {"go"}


@pytest.mark.parametrize(
    ("language", "line", "ends"),
    [
        ("go", 'if err := f(x, "a b"); err != nil {', [2, 6, 9, 11, 12, 13, 14, 20, 21, 22, 26, 29, 33, 35]),
        ("rust", "let x: &'a str = y?;", [3, 5, 6, 8, 10, 14, 16, 18, 19, 20]),
        ("c", "x->y = 'a';", [1, 2, 3, 4, 6, 10, 11]),
        ("php", '$a = "b $c d";', [2, 4, 13, 14]),
        ("go", 'x = "a b', [1, 3, 8]),
    ],
)
def test_lexemes_of_a_line(language: str, line: str, ends: list[int]) -> None:
    found = {typed(language).lexeme_end(line, column) for column in range(len(line))}
    assert sorted(end for end in found if end is not None) == ends
    assert typed(language).lexeme_end(line, len(line)) is None


def test_quotes_that_an_editor_closes() -> None:
    def typing(language: str, *keys: str) -> str:
        editor = Editor("", 0, typed(language).keyboard)
        for key in keys:
            editor.press(key)
        return editor.text

    assert typing("go", "`") == "``"
    assert typing("rust", "'") == "'"
    assert typing("go", "{", "\n", "x") == "{\n    x}"
    assert typing("go", *"// '") == "// '"
    assert typing("python", "#", "'") == "#'"
    assert typing("java", "#", "'") == "#''"


def test_a_set_of_projects(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sets = tmp_path / "sets"
    sets.mkdir()
    (sets / "go.toml").write_text('registry = "go"\nfit = ["example.org/a@v1.0.0"]\ndevelop = ["example.org/b@v1.0.0"]')
    monkeypatch.setattr(projects, "SETS", sets)
    monkeypatch.setattr(projects, "DOWNLOADS", tmp_path)
    (tmp_path / "go" / "example.org+a@v1.0.0").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "go" / "example.org+a@v1.0.0" / "a.zip", "w") as archive:
        archive.writestr("example.org/a@v1.0.0/a.go", GO * 3)
        archive.writestr("example.org/a@v1.0.0/a_test.go", GO * 3)
        archive.writestr("example.org/a@v1.0.0/readme.md", "a")
    (found,) = projects.open_set("go", "fit", lambda said: None)
    assert (found.name, list(found.files), found.language.name) == ("example-org-a", ["a.go"], "go")
    with pytest.raises(BenchError, match="go: no set report in sets"):
        list(projects.open_set("go", "report", lambda said: None))
    monkeypatch.setattr(projects, "download", lambda packages, *_: {packages[0]: "refused"})
    with pytest.raises(BenchError, match=r"go:example\.org/b: refused"):
        list(projects.open_set("go", "develop", lambda said: None))


# --- options ------------------------------------------------------------------------------------------------------


def complaint(capsys: pytest.CaptureFixture[str], *given: str) -> str:
    try:
        status = main(["suggestions", "--json", *given])
    except SystemExit as ended:
        status = int(str(ended.code))
    out, err = capsys.readouterr()
    assert (status, out, err.count("\n")) == (2, "", 1)
    return err


def test_bad_input_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ["--path", str(tmp_path)]
    assert "--set, --path, --package or --edits expected" in complaint(capsys)
    assert "no files of python to type in" in complaint(capsys, *path)
    assert "no such file or folder" in complaint(capsys, "--path", str(tmp_path / "none"))
    assert "invalid choice: 'luck'" in complaint(capsys, *path, "--without", "luck")
    monkeypatch.setattr(parts, "PARTS", {**parts.PARTS, "model": {}, "memory": {"noSuchSetting": False}})
    assert "--without model: this server has no setting" in complaint(capsys, *path, "--without", "model")
    assert "--without memory: this server has no setting" in complaint(capsys, *path, "--without", "memory")
    assert "unknown setting 'luck'" in complaint(capsys, *path, "--setting", "luck=1")
    assert "NAME=VALUE expected" in complaint(capsys, *path, "--setting", "prefetch")
    assert "true or false expected" in complaint(capsys, *path, "--setting", "prefetch=2")
    assert "not installed" in complaint(capsys, "--package", "no-such-package")
    assert "is installed" in complaint(capsys, "--package", "packaging==0.0.1")


def test_parts_are_left_out_by_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parts.settings_without(["model"]) == {"askModel": False}
    monkeypatch.setattr(parts, "PARTS", {"memory": {"prefetch": False}, "names": {"multiline": "never"}, "cursor": {}})
    assert parts.settings_without(["memory", "names"]) == {"prefetch": False, "multiline": "never"}
    assert parts.settings_without([]) == parts.settings_without([parts.CURSOR]) == {}
    assert parts.setting_named("deadlineMs=0") == {"deadlineMs": 0}
    assert parts.setting_named("multiline=never") == {"multiline": "never"}


# --- the report ---------------------------------------------------------------------------------------------------


def test_intervals_are_by_file() -> None:
    def of(*files: tuple[float, float]) -> report.Share:
        return report.share("s", ((("p", str(at)), *one) for at, one in enumerate(files)))

    assert of() == report.Share("s", 0, None)
    assert of((1, 2)) == report.Share("s", 2, 0.5)
    alike = of((1, 2), (2, 4), (5, 10))
    assert (alike.value, alike.low, alike.high) == (0.5, 0.5, 0.5)
    apart = of((0, 10), (10, 10), (0, 10), (10, 10))
    assert apart.value == 0.5
    assert apart.low is not None
    assert apart.high is not None
    assert apart.low <= 0.25
    assert apart.high >= 0.75
    assert apart.cell().startswith("50.0 % (")


def records_of(wanted: str, offers: dict[str, str | tuple[str, int]]) -> list[Record]:
    return typed_out(task(wanted), Scripted(offers))


def test_shares_of_requests() -> None:
    records = records_of("f(ab)", {"": "f(ab)", "f": "(xy)", "f(a": "b", "f(ab)": "\nmore()"})
    shares = {each.name: each for each in report.shares_of(records)}
    found = {name: (each.of, each.value) for name, each in shares.items()}
    assert found[report.OFFERED] == (5, 3 / 5)
    assert found[report.LEXEME] == (3, 1.0)
    assert found[report.LINE] == (3, 2 / 3)
    assert found[report.IN_BRACKETS] == (1, 0)
    assert found[report.AT_END] == (1, 1)
    assert found[report.SEVERAL] == (4, 1 / 4)
    assert found[report.FLICKER] == (2, 1), "replaced, and gone"


def test_what_was_said_stands_beside_what_was_right() -> None:
    records = records_of("f(ab)", {"": "f(ab)", "f": "(xy)", "f(a": "b", "f(ab)": "\nmore()"})
    said = {"": 0.92, "f": 0.98, "f(a": 0.41, "f(ab)": 0.3}  # at the line's end nothing can be right
    for one in records:
        one.told.update({"confidence": said[one.typed]} if one.typed in said else {})
    found = report.Report({}, records)
    assert list(found.reliability()) == [
        ("0.4 to 0.5", "1", "41 %", "100 %", "100 %", "100 %"),
        ("0.9 to 1.0", "2", "95 %", "100 %", "50 %", "50 %"),
    ]


def test_a_short_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "things"
    folder.mkdir()
    for number in range(4):
        (folder / f"module_{number}.py").write_text(SOURCE, encoding="utf-8")
    written, page = tmp_path / "records.jsonl", tmp_path / "page.md"
    given = ["--path", str(folder), "--lines", "1", "--model", "embedded", "--setting", "deadlineMs=100"]
    short = ["--setting", "promptTokens=64", "--setting", "maxTokens=4", "--setting", "maxLineTokens=4"]
    status = main(["suggestions", *given, *short, "--json", "--records", str(written), "--output", str(page)])
    found = json.loads(capsys.readouterr().out)
    assert status == 0
    records = [json.loads(line) for line in written.read_text(encoding="utf-8").splitlines()]
    assert {(one["by"], one["sweep"]) for one in records} == {
        (by, sweep) for by in ("server", "copying rule") for sweep in ("typing", "accepting")
    }
    typing = [one for one in records if one["by"] == "server" and one["sweep"] == "typing"]
    assert found["counts"]["server"]["requests"] == len(typing) > 6
    assert {one["outcome"] for one in typing} == {"answered"}
    assert [one["typed"] for one in typing if one["kind"] != judge.BESIDE] == prefixes(typing[0]["rest"])
    efforts = {one["by"]: one for one in found["efforts"]}
    assert efforts["server"]["alone"] == efforts["copying rule"]["alone"] == len(typing) - 1
    figures = {one["name"]: one for one in found["shares"]["server"]}
    assert figures[report.SAVED]["of"] == efforts["server"]["alone"]
    assert found["setting"]["model"].startswith("name embedded")
    assert found["failures"] == []
    assert f"{report.SAVED}, server" in figures_of(found, "p50"), "two runs can be compared"
    assert page.read_text(encoding="utf-8").count("\n## ") == 5
    for text in (json.dumps(found), page.read_text(encoding="utf-8")):
        assert str(tmp_path) not in text


def prefixes(text: str) -> Iterable[str]:
    return [text[:at] for at in range(len(text) + 1)]


class Silent:
    """A server that answers nothing."""

    def __init__(self) -> None:
        self.cancelled: list[Asked] = []

    def notify(self, method: str, params: object) -> None:
        """Nothing is kept."""

    def ask(self, method: str, params: object) -> Asked:
        return Asked(1, 0.0, asyncio.get_running_loop().create_future())

    def cancel(self, asked: Asked) -> None:
        self.cancelled.append(asked)


def test_the_next_key_overtakes_at_a_human_pace(tmp_path: Path) -> None:
    client = Silent()
    served = Served(cast(Client, client), tmp_path, random.Random(1))
    started = time.perf_counter()
    records = typed_out(task("a"), served)
    assert [record.outcome for record in records] == ["overtaken", "overtaken"]
    assert len(client.cancelled) == 2
    assert time.perf_counter() - started >= 0.3, "no key before the least time between two"


def test_no_server_is_started_where_the_time_is_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "module.py").write_text("import os\nvalue = os.environ\n", encoding="utf-8")
    assert main(["suggestions", "--path", str(tmp_path), "--model", "/nowhere", "--minutes", "0"]) == 2
    assert "nothing was typed in that time" in capsys.readouterr().err


def test_the_options_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["suggestions", "--help"])
    assert "as many in each project" in capsys.readouterr().out
    assert command.LINES == 60
