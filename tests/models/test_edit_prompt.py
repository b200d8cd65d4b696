"""Prompts of models that write the next edit."""

from __future__ import annotations

import pytest

from fim_server.models.edit_prompt import PastEdit, copied, prompt_of, window_of
from fim_server.models.prompt import BoundFormat, find_format
from fim_server.tokens.edit_formats import edit_format_of, known_edit_formats
from fim_server.tokens.formats import Kind
from support.models.prompt_families import FAMILIES, layout, tokenizer_with

TEXT = "".join(f"line {number}\n" for number in range(1, 41))
RENAMED = PastEdit("b.py", 3, "one = 1", "two = 1\nthree")
HERE = PastEdit("a.py", 19, "row 20", "line 20")
CURSOR = TEXT.index("line 20") + len("line")


def lines(first: int, last: int, cursor: str = "") -> str:
    text = "\n".join(f"line {number}" for number in range(first, last + 1))
    return text.replace("line 20", f"line{cursor} 20")


def bound(family: str, base: str) -> BoundFormat:
    (row,) = (one for one in known_edit_formats() if one.family == family)
    tokenizer = tokenizer_with([*FAMILIES[base].tokens, *row.tokens])
    names = FAMILIES[base].known_by.names if FAMILIES[base].known_by else ()  # type: ignore[union-attr]
    return find_format(tokenizer, "model", Kind((*names, row.names[0].upper())))


def prompt(family: str, base: str, *edits: PastEdit) -> str:
    found = bound(family, base)
    assert found.edits is not None
    window = window_of(found.edits, "a.py", TEXT, CURSOR, HERE)
    return layout(found, prompt_of(found, window, edits).encode("ignored", "ignored", 10_000))


def test_sweep() -> None:
    before = lines(10, 30).replace("line 20", "row 20")
    assert prompt("Sweep", "Qwen-Coder", RENAMED, HERE) == (
        "<|file_sep|>b.py.diff\noriginal:\none = 1\nupdated:\ntwo = 1\nthree\n"
        "<|file_sep|>a.py.diff\noriginal:\nrow 20\nupdated:\nline 20\n"
        f"<|file_sep|>original/a.py\n{before}\n<|file_sep|>current/a.py\n{lines(10, 30)}\n<|file_sep|>updated/a.py\n"
    )


def test_sweep_2_is_given_the_lines_above_the_cursor() -> None:
    found = prompt("Sweep 2", "Qwen-Coder", RENAMED)
    assert found.startswith(f"<|file_sep|>a.py\n{TEXT}\n<|file_sep|>b.py:4:4\noriginal:\none = 1\nupdated:\n")
    assert f"<|file_sep|>current/a.py:10:30\n{lines(10, 30, '<|cursor|>')}\n" in found
    assert found.endswith(f"<|file_sep|>updated/a.py:10:30\n{lines(10, 19)}\n")


def test_zeta_2_1() -> None:
    assert prompt("Zeta 2.1", "Seed-Coder", RENAMED) == (
        f"<[fim-suffix]>{lines(28, 40)}\n<[fim-prefix]>"
        "<filename>edit_history\n--- a/b.py\n+++ b/b.py\n@@ -4,1 +4,2 @@\n-one = 1\n+two = 1\n+three\n"
        f"<filename>a.py\n{lines(1, 11)}\n<|marker_1|>{lines(12, 27, '<|user_cursor|>')}\n<|marker_2|>\n"
        "<[fim-middle]><|marker_1|>"
    )


def test_zeta_2() -> None:
    assert prompt("Zeta 2", "Seed-Coder") == (
        f"<[fim-suffix]>{lines(36, 40)}\n<[fim-prefix]><filename>a.py\n{lines(1, 4)}\n"
        f"<<<<<<< CURRENT\n{lines(5, 35, '<|user_cursor|>')}\n=======\n<[fim-middle]>"
    )


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("sweep-next-edit-1.5b.q8_0.gguf", "Sweep"),
        ("Sweep-Next-Edit-v2-7B", "Sweep 2"),
        ("zed-industries/zeta-2.1", "Zeta 2.1"),
        ("zeta-2-Q4_K_M.gguf", "Zeta 2"),
        ("Qwen2.5-Coder-1.5B", None),
    ],
)
def test_a_name_tells_the_family(name: str, family: str | None) -> None:
    row = edit_format_of((name,))
    assert (None if row is None else row.family) == family


def test_names_of_tokens_in_code_are_text() -> None:
    found = bound("Sweep", "Qwen-Coder")
    assert found.edits is not None
    window = window_of(found.edits, "a.py", "x = '<|file_sep|>'\n", 3, None)
    ids = prompt_of(found, window, ()).ids
    assert ids.count(found.token("<|file_sep|>")) == 3


def test_a_window_at_the_ends_of_a_file_has_fewer_lines() -> None:
    for row in known_edit_formats():
        for text in ("", "a", "a\n", "a\nb", TEXT):
            for cursor in (0, len(text)):
                window = window_of(row, "a.py", text, cursor, None)
                assert window.start <= window.kept <= cursor <= window.end
                assert window.now.count("\n") <= row.above + row.below + 1


def test_a_prompt_is_bounded() -> None:
    found = bound("Sweep 2", "Qwen-Coder")
    assert found.edits is not None
    long = "".join("x" * 99 + "\n" for _ in range(10_000))
    window = window_of(found.edits, "a.py", f"{long}{TEXT}{long}", len(long) + CURSOR, None)
    many = [PastEdit("b.py", number, "x" * 1900, "y") for number in range(100)]
    assert len(prompt_of(found, window, many).ids) < 10_000


def test_drafts_go_on_with_the_old_lines() -> None:
    draft = copied("a = 1\nb = 2\na = 1\nc = 3")
    assert draft("") == "a = 1\nb = 2\na = 1\nc = 3"
    assert draft("a = 1\nb") == " = 2\na = 1\nc = 3"
    assert draft("a = 1\nnew = 0\na = 1\n") == "c = 3"
    assert draft("a = 1\nd") == draft("new\n") == ""


@pytest.mark.parametrize(
    ("text", "edit", "before"),
    [
        ("max = 10\nx = 1", PastEdit("a.py", 1, "y = 2", "x = 1"), "max = 10\ny = 2"),
        ("b\na\nb", PastEdit("a.py", 2, "c", "b"), "b\na\nc"),
        ("a\n\nb", PastEdit("a.py", 1, "c", ""), "a\nc\nb"),
        ("a\nb", PastEdit("a.py", 9, "c", "b"), "a\nb"),
    ],
)
def test_the_window_before_the_latest_edit(text: str, edit: PastEdit, before: str) -> None:
    row = known_edit_formats()[0]
    assert window_of(row, "a.py", text, 0, edit).before == before
