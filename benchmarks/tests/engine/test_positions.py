"""Named positions are what their names say."""

from __future__ import annotations

import pytest

from benchmarks.engine.positions import Position, f_string_parts, find_positions

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


def offsets(text: str, position: Position) -> list[int]:
    return [offset for places in find_positions(text)[position] for offset in places]


def around(position: Position) -> set[tuple[str, str]]:
    """The characters before and after each such position of SOURCE."""
    return {(SOURCE[max(offset - 3, 0) : offset], SOURCE[offset : offset + 3]) for offset in offsets(SOURCE, position)}


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
    for kind, offset in f_string_parts(text, 6, "'"):
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
    found = find_positions(text)
    assert set(found) == set(Position)
    assert all(0 <= offset <= len(text) for places in found.values() for place in places for offset in place)
