"""Samples of named positions stand where their names say, in files of the size asked for."""

from __future__ import annotations

import ast
import itertools
import keyword
import random
import re
from pathlib import Path

import pytest

from benchmarks.engine import command as engine
from benchmarks.engine.corpus import Library
from benchmarks.engine.positions import Position
from benchmarks.engine.samples import HOLE_CHARACTERS, SIZE_TOLERANCE, Sample, draw_samples, files_of_size, source_file
from fim_server.errors import BenchError


def stands(sample: Sample) -> bool:
    """Return whether a sample's cursor stands where its name says, read off the text alone."""
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
    """Return whether Python's own parser has a string around the cursor."""
    cursor = (sample.left.count("\n") + 1, len(sample.left.rsplit("\n", 1)[-1].encode()))
    return any(
        (node.lineno, node.col_offset) < cursor < (node.end_lineno or 0, node.end_col_offset or 0)
        for node in ast.walk(ast.parse(sample.left + sample.middle + sample.right))
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
    )


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(Path(ast.__file__).parent)


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_samples_of_the_library_stand_where_their_names_say(library: Library) -> None:
    files = files_of_size(library, 10_000, random.Random(0))
    samples = draw_samples(files, 5, 6, random.Random(0))
    assert [sample.position for sample in samples] == [position for position in Position for _ in range(6)]
    assert not [sample for sample in samples if not stands(sample)]
    for sample in samples:
        ast.parse(sample.left + sample.middle + sample.right)
        assert len(sample.middle) <= HOLE_CHARACTERS


def test_the_seed_decides(library: Library) -> None:
    def drawn(seed: int) -> list[Sample]:
        files = files_of_size(library, 1_000, random.Random(seed))
        return draw_samples(files, 2, 1, random.Random(seed))

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_a_position_that_no_file_has_is_left_out() -> None:
    file = source_file("one", "x = 1\n")
    assert file is not None
    drawn = draw_samples(iter([file]), 3, 2, random.Random(0))
    assert {sample.position for sample in drawn} == {
        Position.AFTER_EQUALS,
        Position.LINE_END,
        Position.FILE_START,
        Position.FILE_END,
    }


# --- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", engine.OPEN_SIZES.values(), ids=engine.OPEN_SIZES.keys())
def test_files_have_their_size_and_parse(library: Library, size: int) -> None:
    for file in itertools.islice(files_of_size(library, size, random.Random(0)), 2):
        assert abs(len(file.text) - size) <= size * SIZE_TOLERANCE * 1.5  # characters may be fewer than bytes
        ast.parse(file.text)


def test_small_files_are_put_in_a_row(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"m{number}.py").write_text(f"from __future__ import annotations\ndef f{number}():\n    pass")
    (tmp_path / "broken.py").write_text("def f(:")
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "skipped.py").write_text("skipped = 1\n")
    files = list(itertools.islice(files_of_size(Library(tmp_path), 1_000, random.Random(0)), 3))
    assert len(files) == 3
    for file in files:
        assert 800 <= len(file.text) <= 1200
        assert "skipped" not in file.text
        ast.parse(file.text)


def test_no_library_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="no sources of the standard library"):
        next(files_of_size(Library(tmp_path), 1_000, random.Random(0)))
