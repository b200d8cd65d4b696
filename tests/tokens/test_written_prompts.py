"""Prompts of clients, taken apart: as Zed, Continue and the models' own documentation write them."""

from __future__ import annotations

import pytest

from fim_server.tokens.formats import FixedText, Slot, known_layouts
from fim_server.tokens.written_prompts import AmbiguousPromptError, WrittenPrompt, take_apart

P, S = "def f(x):\n    return ", "\n\nprint(f(1))\n"

ZED = {
    "code_llama": f"<PRE> {P} <SUF>{S} <MID>",
    "star_coder": f"<fim_prefix>{P}<fim_suffix>{S}<fim_middle>",
    "deepseek_coder": f"<｜fim▁begin｜>{P}<｜fim▁hole｜>{S}<｜fim▁end｜>",
    "qwen": f"<|fim_prefix|>{P}<|fim_suffix|>{S}<|fim_middle|>",
    "codestral": f"[SUFFIX]{S}[PREFIX]{P}",
    "glm": f"<|code_prefix|>{P}<|code_suffix|>{S}<|code_middle|>",
}


@pytest.mark.parametrize("name", ZED)
def test_prompts_of_zed(name: str) -> None:
    assert take_apart(ZED[name]) == WrittenPrompt(P, S)


@pytest.mark.parametrize("pieces", known_layouts())
def test_every_known_format_in_each_of_its_orders(pieces: tuple[str | FixedText, ...]) -> None:
    texts = {Slot.PREFIX.value: P, Slot.SUFFIX.value: S}
    written = "".join(
        piece.text if isinstance(piece, FixedText) else texts.get(piece, piece.replace("▁<", " <")) for piece in pieces
    )
    found = take_apart(written)
    assert found is not None
    assert (found.prefix, found.suffix) == (P, S)


QWEN = "<|repo_name|>demo\n<|file_sep|>lib/a.py\nx = 1\n<|file_sep|>lib/c.py\n"
STARCODER2 = f"<repo_name>demo<file_sep>lib/a.py\nx = 1\n<file_sep><fim_prefix>lib/c.py\n{P}<fim_suffix>{S}<fim_middle>"
CODESTRAL = f"[SUFFIX]{S}[PREFIX]+++++ lib/a.py\nx = 1\n\n\n+++++ lib/c.py\n{P}"


@pytest.mark.parametrize(
    "prompt",
    [
        QWEN + ZED["qwen"],
        STARCODER2,
        f"<filename>lib/a.py\nx = 1\n<filename>lib/c.py\n<fim_suffix>{S}<fim_prefix>{P}<fim_middle>",
        CODESTRAL,
    ],
)
def test_other_files_and_the_path(prompt: str) -> None:
    assert take_apart(prompt) == WrittenPrompt(P, S, "lib/c.py", files=(("lib/a.py", "x = 1\n"),))


def test_path_and_language_of_codegeex() -> None:
    head = "<|user|>\n###PATH:lib/c.py\n###LANGUAGE:Python\n###MODE:BLOCK\n"
    prompt = f"{head}<|code_suffix|>{S}<|code_prefix|>{P}<|code_middle|><|assistant|>\n"
    assert take_apart(prompt) == WrittenPrompt(P, S, "lib/c.py", "python")


@pytest.mark.parametrize(
    "text",
    [
        "",
        P,
        'stop = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]',
        "# [SUFFIX] and [PREFIX]\n",
        'x = "<|fim_prefix|>"\ny = "<|fim_suffix|>"\n',
        '"<|fim_prefix|><|fim_suffix|>\\n<|fim_middle|>" in x\n',
        "[SUFFIX]\nname = 1\n",
        "<PRE>\nsome text\n</PRE>\n",
        "<filename>a.txt</filename>\n",
    ],
)
def test_plain_text_stays_text(text: str) -> None:
    assert take_apart(text) is None


@pytest.mark.parametrize(
    "prompt",
    [
        f"<|fim_prefix|><|fim_suffix|>{S}<|fim_middle|>{P}",
        f"<PRE> <SUF>{S} <MID> {P}",
        f"<fim_prefix><fim_suffix>{S}<fim_middle>{P}",
        f"<｜fim▁begin｜><｜fim▁hole｜>{S}<｜fim▁end｜>{P}",
    ],
)
def test_suffix_first_with_an_empty_prefix(prompt: str) -> None:
    assert take_apart(prompt) == WrittenPrompt(P, S)


@pytest.mark.parametrize(
    "prompt",
    [
        f"<|fim_prefix|>{P}<|fim_suffix|>{S}",
        f"<|fim_prefix|>{P}",
        f"<s>\n<|fim_middle|>{P}",
        f"<|fim_prefix|>{P}<|fim_middle|>{S}",
        f"<|fim_prefix|>{P}<fim_suffix>{S}<fim_middle>",
        "<fim_prefix>",
        f"<｜fim▁begin｜>{P}<｜fim▁hole｜>{S}",
        f"<PRE> {P} <SUF>{S}",
        f"<|repo_name|>demo\n<|file_sep|>a.py\n<|fim_prefix|>{P}<|fim_suffix|>{S}",
        f"<filename>a.py\n<fim_suffix>{S}<fim_prefix>{P}",
    ],
)
def test_half_of_a_prompt_is_refused(prompt: str) -> None:
    with pytest.raises(AmbiguousPromptError, match=r"the prompt begins with .*, but is in no known format"):
        take_apart(prompt)


@pytest.mark.parametrize("token", ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"])
def test_a_prompt_with_a_token_in_its_text_is_refused(token: str) -> None:
    with pytest.raises(AmbiguousPromptError, match="more than once"):
        take_apart(f"<|fim_prefix|>name = '{token}'\n<|fim_suffix|>\n<|fim_middle|>")
