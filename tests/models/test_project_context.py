"""Excerpts of other files in a prompt: each family's form, their share, and their stability while the user types."""

from __future__ import annotations

import gc
import weakref
from itertools import pairwise

import pytest

from fim_server.models.project_context import ProjectContext
from fim_server.tokens.formats import Format, known_formats
from support.models.prompt_families import FAMILIES, bound_to, layout

CONTEXT = ProjectContext("shop", "a/here.py", (("a/one.py", "def one(): ..."), ("two.py", "x = 1\ny = 2")), "# ")
LINES = "".join(f"value_{n} = compute({n})\n" for n in range(40))


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        (
            "Qwen-Coder",
            (
                "<|repo_name|>shop\n<|file_sep|>two.py\nx = 1\ny = 2\n<|file_sep|>a/one.py\ndef one(): ...\n"
                "<|file_sep|>a/here.py\n<|fim_prefix|>L<|fim_suffix|>R<|fim_middle|>"
            ),
        ),
        (
            "StarCoder2",
            (
                "<repo_name>shop<file_sep>two.py\nx = 1\ny = 2\n<file_sep>a/one.py\ndef one(): ...\n<file_sep>"
                "<fim_prefix>a/here.py\nL<fim_suffix>R<fim_middle>"
            ),
        ),
        (
            "Mellum",
            (
                "<filename>two.py\nx = 1\ny = 2\n<filename>a/one.py\ndef one(): ...\n<filename>a/here.py\n"
                "<fim_suffix>R<fim_prefix>L<fim_middle>"
            ),
        ),
        (
            "SmolLM2",
            "<|fim_suffix|>R<|fim_prefix|># two.py\nx = 1\ny = 2\n\n# a/one.py\ndef one(): ...\n\n# a/here.py\nL",
        ),
    ],
)
def test_each_family_has_its_own_form(family: str, expected: str) -> None:
    bound = bound_to(FAMILIES[family])
    assert bound.family == family
    assert layout(bound, bound.encode("L", "R", 1000, 1, CONTEXT, 500)) == expected


@pytest.mark.parametrize("row", known_formats(), ids=lambda row: row.family)
@pytest.mark.parametrize("most", [0, 20, 90, 120, 150, 400])
def test_excerpts_keep_to_their_share(row: Format, most: int) -> None:
    bound = bound_to(row)
    plain = bound.encode(LINES, LINES, 300)
    shown = bound.encode(LINES, LINES, 300, 1, CONTEXT, most)
    front, head = CONTEXT.ids(bound, min(most, 150))
    assert len(front) + len(head) <= most
    assert len(shown) <= 300
    if not front and not head:
        assert shown == plain
    else:
        assert shown[: len(front)] == list(front)
        assert "def one" in layout(bound, shown)
    assert (len(front) + len(head) > 0) == (most >= 90)


def test_an_excerpt_that_does_not_fit_loses_its_last_lines() -> None:
    bound = bound_to(FAMILIES["SmolLM2"])
    context = ProjectContext("", "h.py", (("o.py", "\n".join(f"line_{n}" for n in range(9))),), "# ")
    assert layout(bound, bound.encode("L", "", 200, 1, context, 45)).endswith("\nline_2\nline_3\n\n# h.py\nL")


def test_a_language_without_comments_shows_nothing_to_models_that_know_no_form() -> None:
    context = ProjectContext("shop", "here.json", (("a.json", '{"a": 1}'),))
    plain = bound_to(FAMILIES["SmolLM2"])
    assert plain.encode("L", "R", 200, 1, context, 100) == plain.encode("L", "R", 200)
    qwen = bound_to(FAMILIES["Qwen-Coder"])
    assert '{"a": 1}' in layout(qwen, qwen.encode("L", "R", 200, 1, context, 100))


def test_control_tokens_in_excerpts_are_text() -> None:
    bound = bound_to(FAMILIES["Qwen-Coder"])
    nasty = "'<|file_sep|>' {path} {text} {repository}"
    context = ProjectContext("{text}", "h.py", (("{text}.py", nasty),), "# ")
    prompt = bound.encode("L", "R", 400, 1, context, 200)
    assert layout(bound, prompt).startswith("<|repo_name|>{text}\n<|file_sep|>{text}.py\n" + nasty)
    assert prompt.count(bound.token("<|file_sep|>")) == 2


@pytest.mark.parametrize("family", ["SmolLM2", "Qwen-Coder"])
def test_the_prompt_keeps_its_beginning_while_the_user_types(family: str) -> None:
    bound = bound_to(FAMILIES[family])
    left = LINES * 4
    typed = "total = compute(value_1, value_2)\n    other = compute(total)"
    prompts = [bound.encode(left + typed[:at], LINES, 600, 32, CONTEXT, 150) for at in range(len(typed))]
    suffix = 0 if family == "SmolLM2" else len(prompts[0]) - prompts[0].index(bound.token("<|fim_suffix|>"))
    moved = 0
    for before, after in pairwise(prompts):
        kept = len(before) - suffix
        moved += before[:kept] != after[:kept]
    assert moved <= len(typed) // 32 + 1


def test_cached_ids_belong_to_their_tokenizer() -> None:
    """Once it is gone, another may stand where it stood in memory."""
    context = ProjectContext("shop", "a/here.py", (("two.py", "x = 1\ny = 2"),), "# ")
    bound = bound_to(FAMILIES["SmolLM2"])
    context.ids(bound, 400)
    gone = weakref.ref(bound.tokenizer)
    del bound
    gc.collect()
    assert gone() is not None  # its place is not given to another one
