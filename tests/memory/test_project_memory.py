"""``fim_server._core.ProjectMemory``: the binding of the memory; what it finds is tested in rust_core/memory."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from fim_server._core import ProjectMemory, Stop
from fim_server.memory.memory import AFTER, unseen

CODE = "def first(path):\n    for name in listdir(path):\n        yield join(path, name)\n"


def test_continuations_come_with_their_features() -> None:
    memory = ProjectMemory()
    assert memory.update("/a/x.py", CODE, "")
    assert not memory.update("/a/x.py", CODE, "")
    one, *_ = memory.continuations("/a/y.py", "def second(path):\n\tfor na", "", most_lines=3)
    assert one.text == "me in listdir(path):\n\t\tyield join(path, name)"
    assert (one.lines, one.prefix, one.place, one.source) == (2, 2, "folder", "/a/x.py")
    # A bracket, a word, two signs, the line break with its indentation, a word and a blank.
    assert (one.matched, one.matched_characters) == (7, len("(path):\n\tfor "))
    assert (one.agreeing, one.agreeing_longest, one.documents, one.candidates_longest) == (1, 1, 1, 1)
    assert (one.distance, one.edits_ago, one.right_agreement, one.meets_right) == (None, 0, 0, True)
    ends, shares = zip(*one.shares, strict=True)
    assert (ends[0], ends[-1]) == (2, len("me in listdir(path):"))
    assert (shares[0], shares[-1]) == pytest.approx((one.first_weight, one.share))
    with pytest.raises(AttributeError):
        one.text = ""  # type: ignore[misc]


def test_halves_of_surrogate_pairs_are_passed_over() -> None:
    memory = ProjectMemory()
    assert memory.update("/x.py", "a = \ud800b\nc = 1\n", "\udfff\n")
    assert memory.continuations("/y.py", "\ud800\nc = ", "\udc00")[0].text == "1"
    assert all("\ufffd" not in one.text for one in memory.continuations("/y.py", "a = ", ""))
    assert all("\ufffd" not in text for text, _ in memory.predict("/y.py", "a = ", 4))


def test_predictions_are_distributions() -> None:
    memory = ProjectMemory()
    memory.update("/x.py", "a.b = 1\na.c = 2\na.b = 3\n", "")
    found = memory.predict("/y.py", "a.", 2)
    assert [text for text, _ in found] == ["b", "c"]
    assert 1 >= found[0][1] > found[1][1] > 0


def test_a_folder_is_read_until_it_is_told_to_stop(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "other.txt").write_text(CODE, encoding="utf-8")
    memory = ProjectMemory()
    stop = Stop()
    stop.set()
    assert memory.index_folder(tmp_path, [".py"], stop) == (0, 0, 0, 0, True)
    assert memory.index_folder(tmp_path, [".py"], Stop()) == (3, 3, 0, 0, False)
    assert memory.index_folder(tmp_path, [".py"]) == (3, 0, 0, 0, False)
    assert memory.index_folder(tmp_path / "nothing", [".py"]) == (0, 0, 0, 0, False)
    files, opened, characters, segments, strings, size = memory.sizes()
    assert (files, opened, characters, segments) == (3, 0, 3 * len(CODE), 1)
    assert strings > 128
    assert size > characters
    assert memory.remove(str(tmp_path / "0.py"))
    assert not memory.remove(str(tmp_path / "0.py"))


def test_python_goes_on_while_it_reads() -> None:
    memory = ProjectMemory()
    text = CODE * 20_000
    done = threading.Event()

    def read() -> None:
        memory.update("/x.py", text, "")
        done.set()

    thread = threading.Thread(target=read)
    thread.start()
    asked = 0
    while not done.is_set():
        memory.continuations("/y.py", "for name in ", "")
        asked += 1
    thread.join()
    assert asked > 1
    assert memory.continuations("/y.py", "    for name in ", "")[0].text == "listdir(path):"


def test_only_the_end_of_a_long_text_matters() -> None:
    line = "    value = other.name({})\n"
    text = "class A:\n" + "".join(map(line.format, range(40_000)))
    memory = ProjectMemory()
    memory.update("/y.py", text, "")
    left = text + "    value = oth"
    start = unseen(left)
    assert start > 500_000
    above = left.count("\n", 0, start)
    whole = memory.continuations("/y.py", left, "\n" + text)
    assert whole[0].distance is not None
    near = memory.continuations("/y.py", left[start:], ("\n" + text)[:AFTER], above=above)
    assert list(map(repr, near)) == list(map(repr, whole))
    for middle in ("", "er", "er.na", f"er.name(1)\n{line * 2_000}    val"):
        found = memory.predict("/y.py", left + middle)
        assert found
        assert (
            found == memory.predict("/y.py", left, middle=middle) == memory.predict("/y.py", left[start:], 16, middle)
        )
