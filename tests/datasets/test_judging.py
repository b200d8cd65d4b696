"""The comparison of a language with its own parser: judges that die and hang, cuts, and differences that are found."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fim_server.cli.program import main
from fim_server.datasets.judging import judge as judging
from fim_server.datasets.judging.cutting import KINDS, Case, Files, Looks, cases, cut, window
from fim_server.datasets.judging.differences import Differences
from fim_server.datasets.judging.examining import Examiner
from fim_server.datasets.judging.judge import Judge
from fim_server.datasets.judging.programs import FOLDER
from fim_server.datasets.judging.running import Plan, Worker
from fim_server.datasets.judging.sentences import Sentences
from fim_server.datasets.judging.shrinking import shrunk
from fim_server.datasets.judging.sizes import ambiguous
from fim_server.errors import JudgeError, LanguageError
from fim_server.language import Language, Session, Verdict
from fim_server.language.definition.compile import lower, read, read_builtin

PYTHON = (sys.executable, str(FOLDER / "python" / "judge.py"))
SOURCES = Path(json.__file__).parent

ODD_JUDGE = """
import os, struct, sys, time
while len(head := sys.stdin.buffer.read(4)) == 4:
    text = sys.stdin.buffer.read(struct.unpack(">I", head)[0]).decode()
    if text == "die":
        os._exit(1)
    if text == "hang":
        time.sleep(600)
    print({"wrong": "no since it is wrong", "odd": "? who knows"}.get(text, "ok"), flush=True)
"""


@pytest.fixture
def odd_judge(tmp_path: Path) -> list[str]:
    path = tmp_path / "judge.py"
    path.write_text(ODD_JUDGE)
    return [sys.executable, str(path)]


def test_a_judge_is_asked_about_many_texts_at_once(odd_judge: list[str]) -> None:
    with Judge(odd_judge) as judge:
        asked = judge.asked
        assert judge.verdicts(["fine", "wrong", "odd", "wrong"]) == [True, False, None, False]
        assert judge.message("wrong") == "since it is wrong"
        assert judge.message("fine") == ""
        assert judge.asked == asked + 3
        # More than a pipe holds, both ways.
        texts = [f"{number} " + "é" * 2000 for number in range(500)]
        assert judge.verdicts(texts) == [True] * 500


def test_a_judge_that_dies_or_hangs_is_started_again(odd_judge: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "PATIENCE_S", 5.0)
    with Judge(odd_judge) as judge:
        assert judge.verdicts(["a", "die", "wrong", "die", "hang", "b"]) == [True, None, False, None, None, True]
        assert judge.restarts == 2


def test_a_program_that_is_no_judge_is_reported(tmp_path: Path) -> None:
    with pytest.raises(JudgeError, match="cannot be started"):
        Judge([str(tmp_path / "nothing")])
    with pytest.raises(JudgeError, match="does not answer as a judge does"):
        Judge([sys.executable, "-c", "print('hello')"])


def test_a_window_is_a_smaller_text_that_the_judge_takes() -> None:
    looks = Looks.of(read_builtin("python"))
    text = (SOURCES / "decoder.py").read_text()
    with Judge(PYTHON) as judge:
        small = [window(random.Random(seed), looks, judge, text, 900) for seed in range(8)]
        assert all(found and judge.verdict(found) for found in small)
        assert sorted(len(found or "") for found in small)[4] <= 1500
        assert len({*small}) > 4
        assert window(random.Random(1), looks, judge, "def f(:", 900) is None


def test_cuts_are_of_their_kind() -> None:
    looks = Looks.of(read_builtin("python"))
    text = 'def f(a, b):  # of both\n    return [a, "b c"]\n\n\nx = f(1, (2, 3))\n'

    def drawn(kind: str) -> set[str]:
        places = [cut(random.Random(seed), looks, text, kind) for seed in range(200)]
        return {text[place[0] : place[1]] for place in places if place}

    assert drawn("empty") == {""}
    assert drawn("brackets") == {"a, b", 'a, "b c"', "1, (2, 3)", "2, 3"}
    assert '"b c"' in drawn("string")
    assert "# of both" in drawn("comment")
    assert all(part.strip() == part and part for part in drawn("token"))
    assert all(text.endswith(part) for part in drawn("end"))
    with Judge(PYTHON) as judge:
        found = cases(random.Random(1), looks, judge, Files([SOURCES], [".py"]), 0, KINDS)
        assert [case.kind for case in found] == [*KINDS[: len(found)]]
        assert all(judge.verdict(case.left + case.middle + case.right) for case in found)


def test_parts_are_shrunk_while_they_fail() -> None:
    parts = ("one\ntwo\n", "three x four\n", "five\n")
    assert shrunk(parts, lambda parts: "x" in parts[1] and "two" in parts[0]) == ("two", "x", "")


def test_ambiguous_lexemes_are_reported(tmp_path: Path) -> None:
    (tmp_path / "a.lark").write_text(
        'start: (WORD | HEX | "if")+\nWORD: /[a-z]+/\nHEX: /[0-9a-f]+/\nGAP: / +/\n%ignore GAP\n'
    )
    (tmp_path / "a.toml").write_text('name = "a"\nsuffixes = [".a"]\nstart = "start"\n[layout]\nrule = "none"\n')
    found = ambiguous(lower(read(tmp_path / "a.lark", tmp_path / "a.toml")))
    assert [(one, other) for one, other, _ in found] == [("WORD", "HEX")]
    assert set(found[0][2]) <= set("abcdef")
    assert ambiguous(lower(read_builtin("json"))) == []


def test_sentences_are_of_their_language_and_use_every_rule() -> None:
    definition = read_builtin("json")
    drawn = Sentences(lower(definition), Language.load("json"), random.Random(1))
    texts = list(drawn.drawn(200))
    assert all(Language.load("json").open("", "").check(text).complete for text in texts)
    assert {rule["lhs"] for rule in lower(definition)["rules"]} == {name for name, _ in drawn.used}
    assert len(set(texts)) > 100
    with pytest.raises(LanguageError, match="layout or modes"):
        Sentences(lower(read_builtin("python")), Language.load("python"), random.Random(1))


def test_languages_without_sentences_are_refused_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    out = tmp_path / "cuts.jsonl"
    arguments = ["--source", str(tmp_path), "--cuts", "5", "--sentences", "5", "--out", str(out)]
    assert main(["language", "check", "python", *arguments]) == 2
    assert "no sentences are drawn" in capsys.readouterr().err
    assert not out.exists()


def test_documented_differences_have_names(tmp_path: Path) -> None:
    assert Differences.of(tmp_path).name("x", True, "anything") is None
    (tmp_path / "differences.toml").write_text(
        '[[difference]]\nname = "names"\nsaid = "code.a"\n[[difference]]\nname = "deep"\ntext = "#{9}"\n'
    )
    known = Differences.of(tmp_path)
    assert known.name("x", True, "code.a") == "names"
    assert known.name("x", True, "code.a and code.b") is None
    assert known.name("a #########", False, "") == "deep"
    assert known.name("a #", False, "") is None
    (tmp_path / "differences.toml").write_text('[[difference]]\nsaid = "("\n')
    with pytest.raises(LanguageError, match=r"differences\.toml"):
        Differences.of(tmp_path)


# ---------------------------------------------------------------- the command


def test_a_new_language_is_created_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["language", "new", "lists", "--folder", str(tmp_path), "--suffix", ".ls"]) == 0
    written = [Path(line) for line in capsys.readouterr().out.split()]
    assert [path.name for path in written] == ["lists.lark", "lists.toml", "cases.toml", "test_cases.py"]
    rows = tomllib.loads(written[2].read_text())["case"]
    assert {row["complete"] for row in rows} == {True, False}
    files = tmp_path / "files"
    files.mkdir()
    (files / "one.ls").write_text('a = [1, "two", b]; # of three\nc = [];\n')
    assert main(["language", "check", str(tmp_path / "lists"), "--source", str(files)]) == 0
    shown = capsys.readouterr().out
    assert "1 of 1 files taken" in shown
    assert "200 cuts, 0 true middles refused" in shown
    (files / "two.ls").write_text("a = [1, ];\n")
    assert main(["language", "check", str(tmp_path / "lists"), "--source", str(files), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["files"]["refused"] == 1
    assert [example["byte"] for example in answer["files"]["shown"]] == [8]
    assert answer["middles"] == {"cuts": 200, "refused": 0, "shown": []}


def test_a_new_language_of_token_trees_is_created_and_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["language", "new", "c", "--own", "--token-trees", "--folder", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split()[0] == str(tmp_path / "c" / "c.toml")
    assert main(["language", "new", "lists", "--token-trees", "--folder", str(tmp_path)]) == 0
    written = [Path(line) for line in capsys.readouterr().out.split()]
    assert [path.name for path in written] == ["lists.toml", "cases.toml", "test_cases.py"]
    language = Language.from_files(None, written[0])
    rows = tomllib.loads(written[1].read_text())["case"]
    assert {row["complete"] for row in rows} == {True, False}
    for row in rows:
        assert language.open(row["left"], row["right"]).check(row["middle"]).complete == row["complete"]
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-n0", written[2]], cwd=tmp_path, check=False)
    assert done.returncode == 0
    files = tmp_path / "files"
    files.mkdir()
    (files / "one.lists").write_text("a = [1, 'it''s', `${b(\"c\")}`] // (\n")
    assert main(["language", "check", str(tmp_path / "lists"), "--source", str(files)]) == 0
    assert "1 of 1 files taken" in capsys.readouterr().out
    (tmp_path / "lists" / "lists.lark").write_text('start: "a"\n')
    assert main(["language", "check", str(tmp_path / "lists"), "--source", str(files)]) == 2
    assert "would not be read" in capsys.readouterr().err


def test_a_refused_true_middle_is_found_without_a_judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for an engine that refuses each middle that begins in the text's second half."""
    check = Session.check

    def refuses(self: Session, middle: str) -> Verdict:
        left = self._texts[0]
        return check(self, middle) if len(left) < 20 else Verdict(False, False, 0)

    monkeypatch.setattr(Session, "check", refuses)
    (tmp_path / "a.json").write_text(json.dumps(list(range(20))))
    assert main(["language", "check", "json", "--source", str(tmp_path), "--judge", "", "--json"]) == 1
    middles = json.loads(capsys.readouterr().out)["middles"]
    assert 0 < middles["refused"] < middles["cuts"] == 200
    assert all(cut["start"] >= 20 for cut in middles["shown"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["new", "My Language"], "is no name for a language"),
        (["new", "a", "--suffix", "a"], "is no suffix"),
        (["new", "c", "--token-trees"], "the package has the language c already; --own writes another"),
        (["check", "nowhere", "--source", "."], "no folder with one NAME.lark"),
        (["check", "json", "--source", "nowhere"], "there is no such folder"),
        (["check", "json", "--source", "{here}"], "no file named"),
        (["check", "json", "--source", "{here}", "--kind", "x"], "no kind of cut x"),
        (["check", "json", "--source", "{here}", "--judge", "/nowhere"], "cannot be started"),
    ],
)
def test_uncheckable_languages_are_one_line(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["language", *(argument.format(here=tmp_path) for argument in arguments)]) == 2
    *_, line = capsys.readouterr().err.strip().splitlines()
    assert said in line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('brackets = [\n[token_trees]\nline_comments = ["#"]\n', "at line 2"),
        ('[token_trees\nline_comments = ["#"]\n', "at line 1"),
        ("[token_trees]\nlines = 1\n[token_trees]\n", "at line 3"),
        ('name = "mine"\nguarantee = "balanced"\n[token_trees]\nlines = 1\n', "token_trees.lines: expected a table"),
    ],
)
def test_an_error_of_a_definition_is_one_line(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text(text)
    assert main(["language", "check", str(tmp_path), "--source", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert said in line


def test_a_folder_with_files_stays_untouched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "mine.lark").write_text("mine")
    assert main(["language", "new", "mine", "--folder", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert (tmp_path / "mine" / "mine.lark").read_text() == "mine"


def test_a_wrong_grammar_is_found_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Python without `while`, in which a number may be a target: refused middles, and texts that are taken wrongly."""
    own = read_builtin("json")
    assert own.folder is not None
    grammar, spec = (own.folder / f"json.{kind}" for kind in ("lark", "toml"))
    (tmp_path / "json").mkdir()
    changed = grammar.read_text().replace('"true"', '"yes"')
    assert changed != grammar.read_text()
    (tmp_path / "json" / "json.lark").write_text(changed)
    (tmp_path / "json" / "json.toml").write_text(spec.read_text())
    files = tmp_path / "files"
    files.mkdir()
    rows = [{"name": "a b", "tags": [1, 2.5, None], "deep": {"x": [[], {}]}, "on": number > 5} for number in range(8)]
    for number, row in enumerate(rows):
        (files / f"{number}.json").write_text(json.dumps(row, indent=1))
    report, out = tmp_path / "report.md", tmp_path / "cuts.jsonl"
    arguments = ["--source", str(files), "--cuts", "40", "--out", str(out), "--report", str(report), "--json"]
    arguments += ["--sentences", "60"]
    assert main(["language", "check", str(tmp_path / "json"), *arguments]) == 1
    wrong = json.loads(capsys.readouterr().out)
    assert wrong["files"]["refused"] == 2
    assert wrong["cuts"]["failures"]["refused middle"] > 0
    assert wrong["sentences"]["failures"] > 0
    assert any(failure["middle"] == "yes" for failure in wrong["sentences"]["shown"])
    assert "failures" in report.read_text()
    assert len(out.read_text().splitlines()) == wrong["cuts"]["cases"] == 40
    # The package's own definition has none.
    assert (
        main(["language", "check", "json", "--source", str(files), "--cuts", "40", "--sentences", "200", "--json"]) == 0
    )
    right = json.loads(capsys.readouterr().out)
    assert right["cuts"]["failures"] == {}
    assert right["cuts"]["judged"] > 500
    assert (right["sentences"]["sentences"], right["sentences"]["failures"]) == (200, 0)


def test_an_appeal_decides_where_the_judge_contradicts(odd_judge: list[str], tmp_path: Path) -> None:
    path = tmp_path / "appeal.py"
    path.write_text(ODD_JUDGE.replace('"wrong": "no since it is wrong"', '"fine": "no since it is not"'))
    with Judge(odd_judge, [sys.executable, str(path)]) as judge:
        # They agree with the claim, so the appeal is not asked.
        assert judge.decided("fine", True) == (True, "")
        assert judge.decided("wrong", False) == (False, "since it is wrong")
        assert judge.appeals == 0
        assert judge.decided("fine", False) == (False, "since it is not")
        assert judge.decided("wrong", True) == (True, "")
        # The appeal cannot tell either, or gives no verdict.
        assert judge.decided("odd", True) == (None, "who knows")
        assert judge.appeals == 3
    with Judge(odd_judge) as judge:
        assert judge.decided("wrong", True) == (False, "since it is wrong")


def test_refusing_an_early_error_is_wrong(odd_judge: list[str], tmp_path: Path) -> None:
    path = tmp_path / "early.py"
    path.write_text(ODD_JUDGE.replace("no since it is wrong", "no early Twice: a name"))
    early = [sys.executable, str(path)]
    with Judge(early) as judge:
        assert judge.verdict("wrong") is False
        assert judge.decided("wrong", True) == (False, "early Twice: a name")
        assert judge.decided("wrong", False) == (True, "early Twice: a name")
    with Judge(early, odd_judge) as judge:
        assert judge.decided("wrong", False) == (False, "since it is wrong")
        assert judge.decided("wrong", True) == (False, "since it is wrong")
        assert judge.appeals == 2
    with Judge(odd_judge, early) as judge:
        assert judge.decided("wrong", True) == (False, "early Twice: a name")
        assert judge.decided("wrong", False) == (False, "since it is wrong")


def words(tmp_path: Path, alternatives: str) -> Path:
    """A folder with a language of a few words."""
    folder = tmp_path / "words"
    folder.mkdir()
    (folder / "words.lark").write_text(f"start: {alternatives}\nBLANK: / +/\n%ignore BLANK\n")
    (folder / "words.toml").write_text(
        'name = "words"\nsuffixes = [".words"]\nstart = "start"\n[layout]\nrule = "none"\n'
    )
    return folder


def test_a_check_asks_the_appeal(tmp_path: Path, odd_judge: list[str]) -> None:
    folder = words(tmp_path, '"fine" | "wrong"')
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.words").write_text("wrong")
    appeal = tmp_path / "appeal.py"
    appeal.write_text(ODD_JUDGE.replace('"wrong": "no since it is wrong", ', ""))
    for last, verdict in (((), False), ((sys.executable, str(appeal)), True)):
        plan = Plan(folder / "words.lark", tuple(odd_judge), (files,), None, 1, appeal=last)
        worker = Worker(plan)
        assert worker.whole(files / "a.words") == (True, verdict, 5, "" if verdict else "since it is wrong")
        worker.close()


def test_a_true_middle_of_a_documented_difference_is_counted_apart(tmp_path: Path, odd_judge: list[str]) -> None:
    folder = words(tmp_path, '"fine"')
    plan = Plan(folder / "words.lark", tuple(odd_judge), (), None, 1)
    case = Case(0, "span", "a.words", "good", 1, 3, ((0, 4),))
    for differences, failures in (("", 1), ('[[difference]]\nname = "good"\ntext = "‸good"\n', 0)):
        (folder / "differences.toml").write_text(differences)
        worker = Worker(plan)
        assert worker.judge is not None
        examiner = Examiner(worker.language, worker.looks, worker.judge, worker.differences)
        result = examiner.examine(case, random.Random(1))
        assert len(result.failures) == failures
        assert result.counts["documented: good"] == 1 - failures
        worker.close()
