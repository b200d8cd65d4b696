"""The editor that is played: keys, edits, holes and positions."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

from benchmarks import processes
from benchmarks.server import played_editor
from benchmarks.server.played_editor import BACKSPACE, DELETE, Edit, Editor, next_key
from support.bench_corpus import TYPED_SOURCE as SOURCE


def typed(editor: Editor, keys: str) -> list[Edit]:
    return [editor.press(key) for key in keys]


def shown(editor: Editor) -> str:
    """The text with a bar where the cursor is."""
    return f"{editor.text[: editor.cursor]}|{editor.text[editor.cursor :]}"


@pytest.mark.parametrize(
    ("keys", "result"),
    [
        ("f(", "f(|)"),
        ("f(a)", "f(a)|"),
        ("f([{", "f([{|}])"),
        ("f([{}", "f([{}|])"),
        ('x = "', 'x = "|"'),
        ('x = "a"', 'x = "a"|'),
        ('x = f"', 'x = f"|"'),
        ("don't", "don't|"),
        ('"""', '"""|'),
        ("# it's 'so", "# it's 'so|"),
        ("'\\'", "'\\'|'"),
        ("f(\"a'b", 'f("a\'b|")'),
        (")", ")|"),
        ("if a:\n", "if a:\n    |"),
        ("    a\n", "    a\n    |"),
        ("f(\n", "f(\n    |)"),
        ("if a:\n\nb", "if a:\n\n    b|"),
        ("\tif a:\n", "\tif a:\n\t\t|"),
    ],
)
def test_keys_are_those_of_an_editor(keys: str, result: str) -> None:
    editor = Editor("", 0)
    typed(editor, keys)
    assert shown(editor) == result


def test_an_edit_says_what_changed() -> None:
    editor = Editor("a\nb\n", 3)
    assert editor.press("(") == Edit(3, 3, "()")
    assert editor.press(")") == Edit(4, 5, ")")
    assert editor.press(BACKSPACE) == Edit(4, 5, "")
    assert (editor.before, editor.text) == ("a\nb()\n", "a\nb(\n")


def test_nothing_is_closed_before_a_name() -> None:
    editor = Editor("name", 0)
    typed(editor, '("')
    assert shown(editor) == '("|name'


def test_backspace_takes_a_pair_a_level_or_a_character() -> None:
    editor = Editor("", 0)
    typed(editor, "f(")
    editor.press(BACKSPACE)
    assert shown(editor) == "f|"
    typed(editor, "a:\n")
    assert shown(editor) == "fa:\n    |"
    typed(editor, "  ")
    editor.press(BACKSPACE)
    assert shown(editor) == "fa:\n    |"
    editor.press(BACKSPACE)
    editor.press(BACKSPACE)
    assert shown(editor) == "fa:|"


def test_an_accepted_item_takes_the_place_of_closers() -> None:
    editor = Editor("\nx", 0)
    typed(editor, "f([")
    edit = editor.accept("1, 2])", 2)
    assert edit == Edit(3, 5, "1, 2])")
    assert (shown(editor), editor.closers) == ("f([1, 2])|\nx", "")


def test_a_text_is_restored_by_a_small_edit() -> None:
    editor = Editor("one two three", 7)
    editor.accept("-and-a-half", 0)
    assert editor.restore("one two three", 7) == Edit(7, 18, "")
    assert shown(editor) == "one two| three"
    editor = Editor("aaa", 1)
    editor.press("a")
    assert len(editor.restore("aaa", 1).text) == 0
    assert shown(editor) == "a|aa"


@pytest.mark.parametrize("seed", range(4))
def test_every_hole_is_typed_again(seed: int) -> None:
    text = Path(processes.__file__).read_text(encoding="utf-8") if seed else SOURCE
    found = played_editor.holes(text, random.Random(seed))
    assert {hole.kind for hole in found} == {"rest", "line", "block", "arguments"}
    for hole in found:
        wanted = text[hole.start : hole.end]
        editor = Editor(text, 0)
        editor.replace(hole.start, hole.end, "")
        for _ in range(4 * len(wanted) + 40):
            key = next_key(editor, hole.start, wanted)
            if key is None:
                break
            before = editor.text
            edit = editor.press(key)
            assert editor.text == before[: edit.start] + edit.text + before[edit.end :]
        assert editor.text == text, wanted


def test_holes_can_be_taken_out_and_the_rest_still_parses() -> None:
    for hole in played_editor.holes(SOURCE, random.Random(0)):
        if hole.kind in ("line", "block"):
            ast.parse(SOURCE[: hole.start] + ("pass" if hole.kind == "line" else " pass") + SOURCE[hole.end :])
        elif hole.kind == "arguments":
            ast.parse(SOURCE[: hole.start] + SOURCE[hole.end :])


def test_holes_are_found_behind_characters_of_several_bytes() -> None:
    text = 'name = "é𝒳"; other = print("é𝒳", other)\nlonger = "é𝒳" + name\n'
    found = played_editor.holes(text, random.Random(0))
    assert {text[hole.start : hole.end] for hole in found if hole.kind == "arguments"} == {'"é𝒳", other'}
    assert {text[hole.start : hole.end] for hole in found if hole.kind == "line"} == {'longer = "é𝒳" + name'}


def test_the_next_key() -> None:
    editor = Editor("", 0)
    assert next_key(editor, 0, "(a)") == "("
    editor.press("(")
    assert next_key(editor, 0, "(") == DELETE
    assert next_key(editor, 0, "[") == BACKSPACE
    editor = Editor("if a:\n    ", 10)
    assert next_key(editor, 0, "if a:\n\nb") == "\n"
    assert next_key(editor, 0, "if a:\nb") == BACKSPACE


def test_a_word_of_an_offer() -> None:
    assert played_editor.first_word("self.name)", 1) == "self"
    assert played_editor.first_word(".name", 0) == "."
    assert played_editor.first_word("\n    return x", 0) == "\n    return"
    assert played_editor.first_word(")", 1) == ""
    assert played_editor.first_word("", 0) == ""


def test_positions_are_utf_16() -> None:
    text = "a\n𝒳é\fb\n"
    assert played_editor.position(text, 5) == {"line": 1, "character": 4}
    assert played_editor.span(text, 0, 2) == {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
