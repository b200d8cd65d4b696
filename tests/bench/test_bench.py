"""``fim-server bench engine``: positions are what their names say, every figure is there, and none is judged."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import io
import itertools
import json
import keyword
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fim_server.bench import engine as bench
from fim_server.bench.engine import Position, Sample
from fim_server.cli import program as cli
from fim_server.errors import BenchError

SOURCE = '''\
"""Cafés, in metres."""
import os.path
from .near import thing  # a remark, é

def area(width, *, height=2):
    if width :
        return width * height

    total = thing.of(width,
                     height)[0] . real

    class Inner(object):
        pass
    return total
print (area(1) )
x = {"a": 'b'}
'''

TINY = ["--positions", "1", "--files", "1", "--vocabulary", str(bench.EMBEDDED_TOKENIZER)]


def offsets(text: str, position: Position) -> list[int]:
    return [offset for places in bench.find_positions(text)[position] for offset in places]


def around(position: Position) -> set[tuple[str, str]]:
    """The characters before and after each such position of SOURCE."""
    return {(SOURCE[max(offset - 3, 0) : offset], SOURCE[offset : offset + 3]) for offset in offsets(SOURCE, position)}


# --- positions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (Position.AFTER_DOT, {("os.", "pat"), ("ng.", "of(")}),
        (Position.AFTER_EQUALS, {("l =", " th"), ("x =", ' {"')}),
        (Position.IN_CALL, {("of(", "wid"), ("th,", "\n  "), ("ea(", "1) ")}),
        (Position.AFTER_COLON, {("2):", "\n  "), ("h :", "\n  "), ("t):", "\n  ")}),
        (Position.BLANK_LINE, {(" é\n", "\nde"), ("ht\n", "\n  "), ("al\n", "\n  ")}),
        (Position.FILE_START, {("", '"""')}),
        (Position.FILE_END, {("'}\n", "")}),
    ],
)
def test_finds_every_position_of_a_kind(position: Position, expected: set[tuple[str, str]]) -> None:
    assert around(position) == expected


def test_finds_the_fields_of_f_strings() -> None:
    text = "x = f'a{b[1:2]!r:>{w}}{{}}c' rf\"{d}\" 'n{o}'\n"
    assert [text[offset] for offset in offsets(text, Position.IN_FIELD)] == [*"b[!r:", *"w}", *"d}"]
    kinds: dict[str, str] = {}
    for kind, offset in bench.f_string_parts(text, 6, "'"):
        kinds[kind] = kinds.get(kind, "") + text[offset]
    assert kinds == {"text": "a{{}c'", "field": "b[!r:w}", "bracket": "1:2]", "spec": ">{}"}


def test_finds_positions_with_more_than_one_place() -> None:
    lines = SOURCE.split("\n")
    comment = SOURCE.index("# a remark")
    assert offsets(SOURCE, Position.IN_COMMENT) == list(range(comment + 1, comment + len("# a remark, é") + 1))
    docstring = list(range(len('"""C'), len('"""Cafés, in metres.')))
    assert offsets(SOURCE, Position.IN_STRING) == docstring  # 'a' and 'b' have no two characters to stand between
    starts = [SOURCE[offset:].split("\n")[0] for offset in offsets(SOURCE, Position.LINE_START_IN_BLOCK)]
    assert starts == [
        "if width :",
        "return width * height",
        "total = thing.of(width,",
        "class Inner(object):",
        "pass",
        "return total",
    ]
    assert len(offsets(SOURCE, Position.MID_INDENTATION)) == 3 + 7 + 3 + 3 + 7 + 3
    ends = {SOURCE[:offset].split("\n")[-1] for offset in offsets(SOURCE, Position.LINE_END)}
    assert ends == {line for line in lines if line and not line.endswith((":", "é", ","))}


@pytest.mark.parametrize("text", ["", "x", "x = 1", "# only", "\n", "def f():\n\treturn 'é' \\\n\t\t+ f'{1:>{2}}'\n"])
def test_takes_any_program(text: str) -> None:
    found = bench.find_positions(text)
    assert set(found) == set(Position)
    assert all(0 <= offset <= len(text) for places in found.values() for place in places for offset in place)


def stands(sample: Sample) -> bool:
    """Whether a sample's cursor stands where its name says, read off the text alone."""
    left, right = sample.left, sample.middle + sample.right
    line = left.rsplit("\n", 1)[-1]
    rest = right.split("\n", 1)[0]
    match sample.position:
        case Position.FILE_START:
            return left == ""
        case Position.FILE_END:
            return right == ""
        case Position.BLANK_LINE:
            return line == "" and not rest.strip()
        case Position.LINE_START_IN_BLOCK:
            return line != "" and line.isspace() and not rest[:1].isspace()
        case Position.MID_INDENTATION:
            return line.isspace() and rest[:1].isspace() and bool(rest.strip())
        case Position.LINE_END:
            return rest == "" and bool(line.strip()) and not line.endswith(":")
        case Position.AFTER_COLON:
            return rest == "" and line.endswith(":")
        case Position.AFTER_EQUALS:
            return line.endswith("=")
        case Position.AFTER_DOT:
            return re.search(r"\w\.$", line) is not None and rest[:1].isidentifier()
        case Position.IN_CALL:
            return line.endswith(("(", ","))
        case Position.MID_IDENTIFIER:
            first, second = re.findall(r"\w*$", line)[0], re.findall(r"^\w*", rest)[0]
            return bool(first and second) and (first + second).isidentifier() and not keyword.iskeyword(first + second)
        case Position.IN_COMMENT:
            return "#" in line
        case Position.IN_STRING:
            return is_inside_a_string(sample)
        case Position.IN_FIELD:
            return is_inside_a_string(sample) and "{" in left and "}" in right


def is_inside_a_string(sample: Sample) -> bool:
    """Whether Python's own parser has a string around the cursor."""
    cursor = (sample.left.count("\n") + 1, len(sample.left.rsplit("\n", 1)[-1].encode()))
    return any(
        (node.lineno, node.col_offset) < cursor < (node.end_lineno or 0, node.end_col_offset or 0)
        for node in ast.walk(ast.parse(sample.left + sample.middle + sample.right))
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
    )


@pytest.fixture(scope="module")
def library() -> bench.Library:
    return bench.Library(Path(ast.__file__).parent)


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_samples_of_the_library_stand_where_their_names_say(library: bench.Library) -> None:
    files = library.files_of_size(10_000, random.Random(0))
    samples = bench.draw_samples(files, 5, 6, random.Random(0))
    assert [sample.position for sample in samples] == [position for position in Position for _ in range(6)]
    assert not [sample for sample in samples if not stands(sample)]
    for sample in samples:
        ast.parse(sample.left + sample.middle + sample.right)
        assert len(sample.middle) <= bench.HOLE_CHARACTERS


def test_the_seed_decides(library: bench.Library) -> None:
    def drawn(seed: int) -> list[Sample]:
        files = library.files_of_size(1_000, random.Random(seed))
        return bench.draw_samples(files, 2, 1, random.Random(seed))

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_a_position_that_no_file_has_is_left_out() -> None:
    file = bench.source_file("one", "x = 1\n")
    assert file is not None
    drawn = bench.draw_samples(iter([file]), 3, 2, random.Random(0))
    assert {sample.position for sample in drawn} == {
        Position.AFTER_EQUALS,
        Position.LINE_END,
        Position.FILE_START,
        Position.FILE_END,
    }


# --- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", bench.OPEN_SIZES.values(), ids=bench.OPEN_SIZES.keys())
def test_files_have_their_size_and_parse(library: bench.Library, size: int) -> None:
    for file in itertools.islice(library.files_of_size(size, random.Random(0)), 2):
        assert abs(len(file.text) - size) <= size * bench.SIZE_TOLERANCE * 1.5  # characters may be fewer than bytes
        ast.parse(file.text)


def test_small_files_are_put_in_a_row(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"m{number}.py").write_text(f"from __future__ import annotations\ndef f{number}():\n    pass")
    (tmp_path / "broken.py").write_text("def f(:")
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "skipped.py").write_text("skipped = 1\n")
    files = list(itertools.islice(bench.Library(tmp_path).files_of_size(1_000, random.Random(0)), 3))
    assert len(files) == 3
    for file in files:
        assert 800 <= len(file.text) <= 1200
        assert "skipped" not in file.text
        ast.parse(file.text)


def test_no_library_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="no sources of the standard library"):
        next(bench.Library(tmp_path).files_of_size(1_000, random.Random(0)))


# --- vocabularies ------------------------------------------------------------------------------------------------


def test_a_synthetic_vocabulary_is_determined_by_its_text(library: bench.Library) -> None:
    text = library.text(50_000)
    assert len(text) == 50_000
    first, again = bench.synthetic_tokens(text, 3_000), bench.synthetic_tokens(text, 3_000)
    assert first.tokens == again.tokens
    assert first.vocabulary.size == len(first.tokens) == 3_000
    assert (first.name, first.label) == ("synthetic", "synthetic 3k")
    assert b"return" in first.ids
    assert all(bytes([byte]) in first.ids for byte in range(256))


@pytest.mark.parametrize("text", ["", "    return self.café\n", "\x00\ufffd𝒳"])
def test_tokens_of_a_text_are_the_text(text: str) -> None:
    tokens = bench.synthetic_tokens("return self", 300)
    ids = tokens.tokenise(text)
    assert b"".join(tokens.vocabulary.token_bytes(index) for index in ids) == text.encode()


# --- figures -----------------------------------------------------------------------------------------------------


def test_percentiles_are_measured_values() -> None:
    summary = bench.row("open", "ms", [float(number) for number in range(200, 0, -1)])
    assert (summary.n, summary.p50, summary.p99, summary.max) == (200, 100.0, 198.0, 200.0)
    nothing = bench.row("open", "ms", [])
    assert (nothing.n, nothing.p50, nothing.p99, nothing.max) == (0, None, None, None)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0"), (0.00123, "0.001"), (0.25, "0.250"), (9.876, "9.88"), (1234.5, "1,234"), (100.4, "100")],
)
def test_figures_have_three_digits(value: float | None, text: str) -> None:
    assert bench.shown(value) == text


# --- the command -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    """A tiny run's JSON."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert cli.main(["bench", "engine", "--json", "--cpu-time", *TINY]) == 0
    parsed: dict[str, Any] = json.loads(output.getvalue())
    return parsed


@pytest.fixture
def report(answer: dict[str, Any]) -> bench.Report:
    return bench.Report(**answer | {"rows": [bench.Row(**row) for row in answer["rows"]]})


def expected_rows() -> Iterator[tuple[str, str]]:
    """What and position of every row."""
    labels = ("embedded 16k", "given 16k")
    yield "load the language, uncached", ""
    yield "load the language, cached", ""
    yield "memory of the language", ""
    for label in labels:
        yield f"prepare the vocabulary, {label}", ""
        yield f"memory of the vocabulary, {label}", ""
    for size in ("1k", "10k", "100k"):
        for position in ("", *Position):
            yield f"open, {size} characters", position
    for size in ("1k", "10k", "100k"):
        yield f"open, per character at {size}", ""
    yield "open, growth 10k to 100k: x of size^x", ""
    for size in ("1k", "10k", "100k"):
        yield f"keystroke, {size} characters", ""
    for label in labels:
        yield f"check one token, {label}", ""
        for position in ("", *Position):
            yield f"full mask at the cursor, {label}", position
        yield f"full mask, replay, {label}", ""
    yield "memory of a session, 10k characters", ""
    yield "peak memory of this run", ""


def test_every_row_is_there(report: bench.Report) -> None:
    assert [(row.what, row.position) for row in report.rows] == list(expected_rows())
    assert len(Position) == 14
    for row in report.rows:
        if row.unit != "MB":  # not every system tells
            assert row.n > 0
            assert row.p50 is not None
        if row.p50 is not None and row.p99 is not None and row.max is not None:
            assert row.p50 <= row.p99 <= row.max


def test_goals_and_budgets_stand_beside_the_figures(report: bench.Report) -> None:
    limits = {row.what: (row.goal, row.budget) for row in reversed(report.rows)}
    assert limits["open, 10k characters"] == ("50 ms", "10 ms")
    assert limits["check one token, embedded 16k"] == ("50 µs", "5 µs")
    assert limits["full mask, replay, given 16k"][1].startswith("p50 5 µs")
    assert limits["memory of a session, 10k characters"] == ("", "2 MB")


def test_the_engine_is_right_meanwhile(answer: dict[str, Any]) -> None:
    assert answer["exact_sessions"] == answer["sessions"] > 0
    assert answer["refused_tokens"] == 0
    assert answer["replayed_tokens"] > 0


def test_the_setting_is_told(answer: dict[str, Any]) -> None:
    assert set(answer["setting"]) == {
        "machine",
        "files",
        "contexts with f-strings",
        "holes",
        "time",
        "large vocabulary",
    }
    assert "seed 0" in answer["setting"]["files"]
    assert "processor time" in answer["setting"]["time"]


def test_the_table_is_aligned(
    report: bench.Report, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "measure", lambda arguments, progress: report)
    assert cli.main(["bench", "engine"]) == 0
    settings, table, counts = capsys.readouterr().out.split("\n\n")
    assert settings.startswith("machine: ")
    header, *lines = table.splitlines()
    assert header.split() == ["what", "position", "n", "p50", "p99", "max", "goal", "budget"]
    assert len(lines) == len(report.rows)
    column = header.index("position")
    for line, row in zip(lines, report.rows, strict=True):
        assert line[:column].rstrip() == row.what
        assert line[column:].startswith(row.position)
    assert counts == (
        f"sessions with guarantee exact: {report.sessions} of {report.sessions}\n"
        f"tokens of the true text refused: 0 of {report.replayed_tokens}\n"
    )


def test_refusals_end_a_replay_and_are_counted(answer: dict[str, Any]) -> None:
    class Stubborn:
        def allows(self, token: int) -> bool:
            return token != 3

        def commit(self, token: int) -> None:
            assert token != 3

    matcher: Any = Stubborn()
    assert len(list(bench.check_along(matcher, [1, 2, 3, 4], time.perf_counter))) == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--vocabulary", "/nowhere/tokenizer.json"], "No such file"),
        (["--vocabulary", __file__], "test_bench.py"),
        (["--positions", "0"], "not a number above 0"),
        (["--files", "-3"], "not a number above 0"),
        (["--seed", "x"], "invalid int value"),
        (["more"], "unrecognized arguments"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], complaint: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "fim_server", "bench", "engine", "--json", *arguments],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1
    assert complaint in ended.stderr


def test_progress_names_the_stages(capsys: pytest.CaptureFixture[str]) -> None:
    sample = Sample(Position.FILE_START, "f", "", "", "")
    with bench.Progress(enabled=True) as progress:
        assert list(progress.count("opening", [sample])) == [sample]
    assert capsys.readouterr().err == "opening ...\n"
    with bench.Progress(enabled=False) as progress:
        progress.say("opening")
    assert capsys.readouterr().err == ""


def test_rows_are_plain_data(report: bench.Report) -> None:
    assert json.loads(json.dumps(report.as_json()))["rows"] == [dataclasses.asdict(row) for row in report.rows]
