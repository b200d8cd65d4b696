"""``python -m benchmarks.acceptance``: what grammars take is counted, and what is missing is a line."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from benchmarks import acceptance
from benchmarks.acceptance import Texts, at_most, count, lark_grammar
from support.bench_corpus import write_corpus

WORDS = """
start: line*
line: WORD _END
WORD: /[a-z]+/
_END: /\\n/
%ignore " "
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


def cells(output: str) -> list[list[str]]:
    lines = [line for line in output.splitlines() if line.startswith("| json")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_grammar_has_a_row(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    everything, strings = tmp_path / "everything.lark", tmp_path / "strings.lark"
    everything.write_text("start: /[\\s\\S]/*\n")
    strings.write_text('start: "\\"" "\\""\n')
    given = ["--source", f"json={corpus}", "--grammar", f"all=json={everything}", "--grammar", f"none=json={strings}"]
    assert acceptance.main([*given, "--files", "3", "--mutants", "5"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("judges: json: CPython's json\n")
    mine, all_, none = cells(output)
    assert mine[:3] == ["json", "fim-server", "3 of 3"]
    assert mine[4:] == ["0 of 5", "0"]
    assert all_[1].startswith("all, Lark ")
    assert all_[2:5] == ["3 of 3", mine[3], "5 of 5"]
    assert none[2] == "0 of 3"
    assert none[4] == "0 of 0"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--source", "cobol=."], "cobol=.: expected LANGUAGE=FOLDER"),
        (["--source", "json=/nowhere"], "there is no such folder"),
        (["--source", "json={corpus}", "--grammar", "a=json"], "expected NAME=LANGUAGE=FILE.lark"),
        (["--source", "json={corpus}", "--grammar", "a=json=/nowhere.lark"], "nowhere.lark: [Errno 2]"),
    ],
)
def test_what_is_missing_is_a_line(
    arguments: list[str], complaint: str, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [argument.format(corpus=corpus) for argument in arguments]
    with pytest.raises(SystemExit):
        acceptance.main([*given, "--files", "1", "--mutants", "1"])
    assert complaint in capsys.readouterr().err


def test_a_terminal_may_be_optional(tmp_path: Path) -> None:
    path = tmp_path / "words.lark"
    path.write_text(WORDS)
    kind, takes = lark_grammar(path, "basic", ())
    assert (kind, takes("a\nb\n"), takes("\n\na\n")) == ("lalr", True, False)
    _, takes = lark_grammar(path, "basic", ("_END",))
    assert (takes("\n\na\n"), takes("a")) == (True, False)


def test_wrong_texts_count_where_their_right_one_is_taken() -> None:
    texts = Texts(["a", "b"], ["a", "b"], [("aa", "a"), ("bb", "b"), ("ab", "a")])
    counts = count(lambda text: text.startswith("a"), texts, 10)
    assert (counts.files, counts.small, counts.wrong, counts.wrong_of, counts.given_up) == (1, 1, 2, 2, 0)


def test_a_slow_grammar_is_given_up() -> None:
    def slow(text: str) -> bool:
        time.sleep(60)
        return True

    assert count(slow, Texts(["a"], [], []), 0.05) == acceptance.Counts(given_up=1)
    with at_most(60):
        pass
