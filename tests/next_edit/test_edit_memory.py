"""Edits put together from the changes of an editor."""

from __future__ import annotations

import random

import pytest

from fim_server.next_edit.edit_memory import MOST_CHARACTERS, MOST_EDITS, MOST_LINES, Edit, EditMemory

URI = "file:///a.py"


class Buffer:
    """A document that is edited."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.memory = EditMemory(lambda uri: self.text if uri == URI else None)

    def change(self, start: int, end: int, text: str) -> None:
        self.memory.change(URI, self.text, start, end, text)
        self.text = self.text[:start] + text + self.text[end:]

    def type(self, before: str, text: str, removed: int = 0) -> None:
        """Remove characters after a text, then type others there."""
        at = self.text.index(before) + len(before)
        for _ in range(removed):
            self.change(at, at + 1, "")
        for character in text:
            self.change(at, at, character)
            at += 1

    def edits(self) -> list[tuple[str, str]]:
        return [(edit.old, edit.new) for edit in self.memory.latest()]


def test_keystrokes_of_a_line_are_one_edit() -> None:
    buffer = Buffer("a = 1\nb = 2\n")
    buffer.type("a = ", "20", removed=1)
    buffer.type("a", "b")
    assert buffer.memory.latest() == [Edit(URI, 0, "a = 1", "ab = 20")]


def test_an_edit_elsewhere_is_another_one() -> None:
    buffer = Buffer("a = 1\nb = 2\nc = 3\n")
    buffer.type("a = ", "4")
    buffer.type("c = ", "5")
    assert buffer.edits() == [("a = 1", "a = 41"), ("c = 3", "c = 53")]


def test_new_lines_belong_to_the_line_above() -> None:
    buffer = Buffer("a\nb\n")
    buffer.type("a", "\nc\nd")
    assert buffer.edits() == [("a", "a\nc\nd")]


def test_an_edit_that_is_taken_back_is_none() -> None:
    buffer = Buffer("a = 1\n")
    buffer.type("a = 1", "0")
    buffer.change(5, 6, "")
    assert buffer.edits() == []


@pytest.mark.parametrize("text", ["x\n" * MOST_LINES, "x" * (MOST_CHARACTERS + 1)])
def test_large_edits_are_not_remembered(text: str) -> None:
    buffer = Buffer("a\n\nb\n")
    buffer.change(0, 1, text)
    buffer.type("\nb", "c")
    assert buffer.edits() == [("b", "bc")]


def test_the_latest_edits_are_kept() -> None:
    buffer = Buffer("".join(f"line{number}_\n" for number in range(150)))
    for number in range(150):
        buffer.type(f"line{number}_", "x")
    assert buffer.edits() == [(f"line{number}_", f"line{number}_x") for number in range(150 - MOST_EDITS, 150)]
    buffer.memory.forget(URI)
    assert buffer.edits() == []


def test_any_changes_give_an_edit_that_repeats_them() -> None:
    """Whatever is changed on the lines of an edit, its old lines with its new ones give the text."""
    draw = random.Random(0)
    for _ in range(300):
        before = "".join(draw.choice("ab \n") for _ in range(40))
        buffer = Buffer(before)
        for _ in range(draw.randrange(1, 6)):
            start = draw.randrange(len(buffer.text) + 1)
            end = min(len(buffer.text), start + draw.randrange(4))
            buffer.change(start, end, "".join(draw.choice("ab\n") for _ in range(draw.randrange(4))))
        text = before
        for edit in buffer.memory.latest():
            lines = text.split("\n")
            count = edit.old.count("\n") + 1
            assert "\n".join(lines[edit.line : edit.line + count]) == edit.old
            text = "\n".join([*lines[: edit.line], edit.new, *lines[edit.line + count :]])
        assert text == buffer.text


def test_edits_of_several_documents_are_in_the_order_of_their_changes() -> None:
    texts = {"a": "a = 1\n", "b": "b = 1\n\n\nc = 1\n"}
    memory = EditMemory(texts.get)
    for uri, start, new in (("a", 4, "2"), ("b", 4, "3"), ("b", 12, "4")):
        before = texts[uri]
        memory.change(uri, before, start, start + 1, new)
        texts[uri] = before[:start] + new + before[start + 1 :]
    assert [edit.new for edit in memory.latest()] == ["a = 2", "b = 3", "c = 4"]
