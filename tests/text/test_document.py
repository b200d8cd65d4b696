"""Positions: every editor's units, every line break, and the cursors that are nowhere."""

import io
import random
import re
import sys
from pathlib import Path

import pytest

from fim_server.errors import DocumentError
from fim_server.text import document as documents
from fim_server.text.document import Document, PositionEncoding, Split

TEXT = "a = 'é😀'\n\nbc\n"


@pytest.mark.parametrize(
    ("line", "column", "offset"),
    [(1, 1, 0), (1, 6, 5), (1, 9, 8), (2, 1, 9), (3, 1, 10), (3, 3, 12), (4, 1, 13)],
)
def test_line_and_column_are_one_based_and_count_characters(line: int, column: int, offset: int) -> None:
    document = Document.from_text(TEXT)
    assert document.offset_at_line_column(line, column) == offset
    assert document.line_column_at(offset) == (line, column)


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        (0, 1, "line 0 is outside the file, which has 4 lines"),
        (5, 1, "line 5 is outside the file, which has 4 lines"),
        (3, 0, "column 0 is outside line 3, whose columns go from 1 to 3"),
        (3, 4, "column 4 is outside line 3, whose columns go from 1 to 3"),
    ],
)
def test_a_cursor_outside_the_file_is_named(line: int, column: int, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        Document.from_text(TEXT).offset_at_line_column(line, column)


def test_the_empty_file_has_one_position() -> None:
    document = Document.from_text("")
    assert document.offset_at_line_column(1, 1) == 0
    with pytest.raises(DocumentError, match=r"which has 1 line$"):
        document.offset_at_line_column(2, 1)


@pytest.mark.parametrize(
    ("encoding", "units"),
    # Code units before each character of the first line, "é" being the sixth and "😀" the seventh.
    [
        (PositionEncoding.UTF8, [0, 1, 2, 3, 4, 5, 7, 11, 12]),
        (PositionEncoding.UTF16, [0, 1, 2, 3, 4, 5, 6, 8, 9]),
        (PositionEncoding.UTF32, [0, 1, 2, 3, 4, 5, 6, 7, 8]),
    ],
)
def test_positions_in_every_encoding(encoding: PositionEncoding, units: list[int]) -> None:
    document = Document.from_text(TEXT)
    offsets = [document.offset_at_position(0, unit, encoding) for unit in units]
    assert offsets == list(range(9))
    assert document.offset_at_position(2, 1, encoding) == 11


def test_a_position_past_the_end_means_the_end() -> None:
    document = Document.from_text(TEXT)
    for encoding in PositionEncoding:
        assert document.offset_at_position(0, 99, encoding) == 8
        assert document.offset_at_position(2, 99, encoding) == 12
        assert document.offset_at_position(99, 0, encoding) == len(TEXT)


def test_a_position_inside_a_pair_means_its_start() -> None:
    assert Document.from_text(TEXT).offset_at_position(0, 7, PositionEncoding.UTF16) == 6


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_breaks_are_normalised_and_restored(newline: str) -> None:
    document = Document.from_text(newline.join(["if a:", "    b", ""]))
    assert document.text == "if a:\n    b\n"
    split = document.split(document.offset_at_line_column(2, 6))
    assert split == Split("if a:\n    b", "\n", 0, newline)
    assert split.restore("\n    c\n") == f"{newline}    c{newline}"


def test_mixed_line_breaks_take_the_most_used() -> None:
    assert Document.from_text("a\r\nb\nc\r\nd").newline == "\r\n"
    assert Document.from_text("a\r\nb\nc\nd").newline == "\n"


def test_form_feeds_and_unicode_separators_do_not_break_lines() -> None:
    document = Document.from_text("a\x0cb\u2028c\x85d\ne")
    assert len(document.line_starts) == 2
    assert document.offset_at_position(1, 0, PositionEncoding.UTF16) == 8


def test_replace_normalises_what_it_inserts() -> None:
    document = Document.from_text("a\r\nb").replace(2, 3, "c\r\nd")
    assert (document.text, document.newline) == ("a\nc\nd", "\r\n")


def test_reading_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"\xef\xbb\xbfx = 1\r\n")
    assert Document.read(str(path)).text == "x = 1\n"


def test_reading_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("é".encode())))
    assert Document.read("-").text == "é"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    latin = tmp_path / "latin.py"
    latin.write_bytes(b"x = 1\ny = '\xe9'\n")
    with pytest.raises(DocumentError, match=r"latin\.py: not UTF-8 \(byte 0xe9 at offset 11, line 2\)"):
        Document.read(str(latin))
    with pytest.raises(DocumentError, match=r"missing\.py: no such file or directory"):
        Document.read(str(tmp_path / "missing.py"))
    with pytest.raises(DocumentError, match="is a directory"):
        Document.read(str(tmp_path))
    with pytest.raises(DocumentError, match="null"):
        Document.read("a\0b")


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(DocumentError, match="half a surrogate pair at character 1"):
        Document.from_text("a\ud83d").split(0)


@pytest.mark.parametrize("stretch", [1, 3, 16, documents.STRETCH])
@pytest.mark.parametrize("seed", range(3))
def test_lines_are_found_where_counting_them_all_finds_them(
    seed: int, stretch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was edited before, and wherever."""
    monkeypatch.setattr(documents, "STRETCH", stretch)
    draw = random.Random(seed)
    document = Document.from_text("")
    for _ in range(60):
        start, end = sorted(draw.choices(range(len(document.text) + 1), k=2))
        end = min(end, start + draw.choice((0, 0, 1, 40)))
        document = document.replace(start, end, "".join(draw.choices("ab\n", k=draw.choice((0, 1, 30)))))
        starts = Document(document.text).line_starts
        assert [document.start_of_line(line) for line in range(len(starts) + 2)] == [*starts, None, None]


def test_soundness_is_known_after_every_edit() -> None:
    document = Document.from_text("é = 1\n")
    for start, end, text, sound in [(0, 0, "a", True), (1, 1, "\ud83d", False), (0, 1, "b", False), (1, 2, "", True)]:
        document = document.replace(start, end, text)
        if sound:
            assert document.split(0).right == document.text
        else:
            with pytest.raises(DocumentError, match="half a surrogate pair at character 1"):
                document.split(0)


@pytest.mark.parametrize("text", ["a\rb", "a\r\nb\rc\n", "\r\r\n\r", "a\nb"])
def test_lone_carriage_returns_stay_if_they_are_no_line_breaks(text: str) -> None:
    document = Document.from_text(text)
    for offset in range(len(document.text) + 1):
        split, kept = document.split(offset), document.split(offset, keeps_returns=True)
        assert "\r" not in split.left + split.right
        assert kept.left + kept.right == text.replace("\r\n", "\n")
        assert (len(kept.left), kept.newline == "\r") == (offset, False)


def test_carriage_returns_are_kept_through_edits() -> None:
    random.seed(14)
    for _ in range(3_000):
        # As the editor has it, in whose positions `\r\n` is one line break.
        newline = random.choice(["\n", "\r\n"])
        whole = newline * 9 + "".join(random.choices(["a", "\r", newline, "b"], k=random.randrange(8)))
        document = Document.from_text(whole)
        for _ in range(3 if newline == "\r\n" or "\r\n" not in whole else 0):
            parts = re.findall("\r\n|.", whole, re.DOTALL)
            start = random.randrange(len(parts) + 1)
            end = random.randrange(start, len(parts) + 1)
            text = "".join(random.choices(["a", "\r", newline], k=random.randrange(3)))
            whole = "".join(parts[:start]) + text + "".join(parts[end:])
            document = document.replace(start, end, text)
            kept = document.split(0, keeps_returns=True).right
            assert kept.replace("\r", "\n") == document.text
            assert kept == whole.replace("\r\n", "\n"), (whole, kept)
            if newline == "\n" and "\r\n" in whole:
                break  # of mixed line breaks it is not known which ones are two characters
