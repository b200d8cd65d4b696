"""Edits that follow in a document from the edits of others."""

from __future__ import annotations

import time

import pytest

from fim_server.next_edit.edit_memory import Edit, EditMemory
from fim_server.next_edit.elsewhere import Sources, proposals_from_others

HERE, THERE = "file:///app/main.py", "file:///app/shapes.py"

SHAPES = "def area(w, h):\n    return w * h\n\n\nclass Shape:\n    def area(self):\n        return 1\n"


def followed(text: str, old: str, new: str, shapes: str = SHAPES) -> str:
    """Edit the other file, accept all that follows in this one, and return it."""
    texts = {HERE: text, THERE: shapes}
    memory = EditMemory(texts.get)
    start = shapes.index(old)
    memory.change(THERE, shapes, start, start + len(old), new)
    texts[THERE] = shapes.replace(old, new, 1)
    for _ in range(20):
        found = proposals_from_others(memory.latest(), HERE, texts[HERE], {THERE: texts[THERE]})
        if not found:
            break
        one = found[0]
        memory.change(HERE, texts[HERE], one.start, one.end, one.text)
        texts[HERE] = texts[HERE][: one.start] + one.text + texts[HERE][one.end :]
    return texts[HERE]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from shapes import area\n\nprint(area(1, 2), x.area)\n",
            "from shapes import size\n\nprint(size(1, 2), x.area)\n",
        ),
        ("import shapes\n\nprint(shapes.area(1, 2), area)\n", "import shapes\n\nprint(shapes.size(1, 2), area)\n"),
        ("from shapes import (\n    area,\n)\n\narea()\n", "from shapes import (\n    size,\n)\n\nsize()\n"),
        ("from shapes import area\n\nh(area(), area=area)\n", "from shapes import size\n\nh(size(), area=size)\n"),
        ("from shapes import area\n\n\ndef g(x, area=1):\n    return h(area=area)\n", None),
        ("from shapes import area\n\n\ndef g(\n    area,\n):\n    return area\n", None),
        ("from shapes import area\n\narea, w = area(), 1\n", None),
        ("from shapes import area\n\nsize = 1\nprint(area(), size)\n", None),
        ("for shapes in all_of_them:\n    shapes.area()\n", None),
        ("import shapes\n\nfor shapes in all_of_them:\n    shapes.area()\n", None),
        ("def area():\n    pass\n\n\narea()\n", None),
        ("area = 1\nprint(area)\n", None),
        ("from c import size\nfrom shapes import area\n\nprint(area(1, size))\n", None),
    ],
)
def test_the_uses_of_a_renamed_function_follow(before: str, after: str | None) -> None:
    assert followed(before, "def area", "def size") == (before if after is None else after)


def test_a_renamed_method_has_no_known_uses() -> None:
    text = "from shapes import area, Shape\n\nShape().area()\n"
    assert followed(text, "    def area", "    def size") == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from shapes import area\n\nprint(area(1, 2), x.area(1, 2))\n", "print(area(1), x.area(1, 2))\n"),
        ("import shapes\n\nprint(area(1, 2), shapes.area(1, 2))\n", "print(area(1, 2), shapes.area(1))\n"),
    ],
)
def test_the_calls_of_a_changed_function_follow(before: str, after: str) -> None:
    assert followed(before, "w, h)", "w)").endswith(after)


@pytest.mark.parametrize(
    "text",
    [
        "from shapes import area\n\n\ndef g(area):\n    return area(1, 2)\n",
        "for shapes in all_of_them:\n    shapes.area(1, 2)\n",
    ],
)
def test_calls_of_another_name_are_left_alone(text: str) -> None:
    assert followed(text, "w, h)", "w)") == text


def test_unrelated_edits_give_none() -> None:
    text = "from shapes import area\n\nprint(area(1, 2))\n"
    assert followed(text, "return w * h", "return h * w") == text


def renamed_then(*changes: str) -> Sources:
    """Rename the function of the other file, then change further lines of it to these texts."""
    edits = [Edit(THERE, 0, "def area(w, h):", "def size(w, h):")]
    edits += [Edit(THERE, 9 + number, f"value{number}", change) for number, change in enumerate(changes)]
    return Sources(edits, {THERE: "\n".join([SHAPES.replace("area", "size", 1), *changes])})


def test_a_walk_through_many_uses_is_one_change() -> None:
    text = "from shapes import area\n"
    walk = [f"value{number}, True" for number in range(20)]
    assert renamed_then(*walk).following(HERE, text, most=2) is not None
    assert renamed_then("1", "2, True").following(HERE, text, most=2) is None
    assert renamed_then("1", "2, True").following(HERE, text, most=3) is not None


def test_many_documents_and_edits_take_bounded_time() -> None:
    text = "from shapes import other\n" + "print(1)\n" * 10_000
    sources = renamed_then(*(f"print({number})" for number in range(99)))
    began = time.process_time()
    assert all(sources.following(f"file:///{number}.py", text, most=100) is None for number in range(8))
    assert time.process_time() - began < 1


def test_a_long_line_of_calls_takes_bounded_time() -> None:
    other, uri = "file:///a.py", "file:///b.py"
    text = "from a import load\n\n" + "load(1); " * 30_000 + "\n"
    edits = [Edit(other, 0, "def load(path):", "def load(path, q):")]
    began = time.process_time()
    assert proposals_from_others(edits, uri, text, {other: "def load(path, q):\n    return path\n"}) == []
    assert time.process_time() - began < 1
