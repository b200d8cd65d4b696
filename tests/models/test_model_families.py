"""Families of models: their documented prompts, and which of several with the same tokens a model is of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fim_server.models.gguf import library
from fim_server.models.gguf.load import read_gguf_tokens
from fim_server.models.kind import kind_of_folder, names_in
from fim_server.models.prompt import PLAIN, bind_format
from fim_server.tokens.formats import Kind, known_formats, other_order
from support.models.prompt_families import FAMILIES, bound_to, layout, tokenizer_with
from support.models.tiny_base import UNUSED, write_renamed_base

PROMPTS = {
    "Qwen-Coder": "<|fim_prefix|>L<|fim_suffix|>R<|fim_middle|>",
    "Granite 4": "<|fim_prefix|>L<|fim_suffix|>R<|fim_middle|>",
    "CodeGemma": "<bos><|fim_prefix|>L<|fim_suffix|>R<|fim_middle|>",
    "SmolLM2": "<|fim_suffix|>R<|fim_prefix|>L",
    "fim-server": "<|fim_suffix|>R<|fim_prefix|>L<|fim_middle|>",
    "SantaCoder": "<fim-prefix>L<fim-suffix>R<fim-middle>",
    "Mellum": "<fim_suffix>R<fim_prefix>L<fim_middle>",
    "StarCoder2": "<fim_prefix>L<fim_suffix>R<fim_middle>",
    "StarCoder": "<fim_prefix>L<fim_suffix>R<fim_middle>",
    "Granite 3": "<fim_prefix>L<fim_suffix>R<fim_middle>",
    "Code Llama": "<s>▁<PRE>▁<SUF>R▁<MID>L",
    "DeepSeek-Coder": "<｜begin▁of▁sentence｜><｜fim▁begin｜>L<｜fim▁hole｜>R<｜fim▁end｜>",
    "Codestral": "<s>[SUFFIX]R[PREFIX]L",
    "Seed-Coder": "<[fim-suffix]>R<[fim-prefix]>L<[fim-middle]>",
    "CodeGeeX4": (
        "[gMASK]<sop><|user|>\n###LANGUAGE:\n###MODE:BLOCK\n"
        "<|code_suffix|>R<|code_prefix|>L<|code_middle|><|assistant|>\n"
    ),
    "GLM-4": "[gMASK]<sop><|code_prefix|>L<|code_suffix|>R<|code_middle|>",
}

STARCODER = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<|endoftext|>", "<filename>", "<reponame>")
"""Tokens that StarCoder, Granite code and Mellum share."""


def family(tokens: tuple[str, ...] | list[str], kind: Kind) -> str | None:
    bound = bind_format(tokenizer_with([*tokens]), kind)
    return None if bound is None else bound.family


def test_each_family_has_its_documented_prompt() -> None:
    found = {row.family: layout(bound := bound_to(row), bound.encode("L", "R", 100)) for row in known_formats()}
    assert found == PROMPTS


@pytest.mark.parametrize(
    ("kind", "roles", "expected"),
    [
        (Kind(("bigcode", "starcoderbase-3b"), "gpt_bigcode"), False, "StarCoder"),
        (Kind(("granite-3b-code-base",), "llama"), False, "StarCoder"),
        (Kind(("Mellum-4b-base",), "llama"), False, "Mellum"),
        (Kind(("mellum-4b-sft-python.Q8_0.gguf",), "llama"), False, "Mellum"),
        (Kind(("my-model",), "mellum"), False, "Mellum"),
        (Kind(("my-model",), "llama"), True, "Mellum"),
        (Kind(), False, "StarCoder"),
    ],
)
def test_mellum_is_told_from_others_with_its_tokens(kind: Kind, roles: bool, expected: str) -> None:
    more = ("<user>", "</user>", "<assistant>", "</assistant>") if roles else ()
    assert family((*STARCODER, *more), kind) == expected


def test_granite_is_told_by_its_end() -> None:
    code = FAMILIES["Granite 4"].pieces[::2]
    assert family([*map(str, code), "<|end_of_text|>", "<|fim_pad|>"], Kind()) == "Granite 4"
    assert family([*map(str, code), "<|endoftext|>", "<|fim_pad|>"], Kind(("granite",))) == "fim-server"
    assert family([*STARCODER[:3], "<|end_of_text|>"], Kind(architecture="granite")) == "Granite 3"


def test_codestral_is_told_from_other_models_of_mistral() -> None:
    tokens = FAMILIES["Codestral"].tokens
    assert family(tokens, Kind(("Devstral-Small",), "llama")) is None
    assert family(tokens, Kind(("Codestral-22B-v0.1",), "llama")) == "Codestral"
    assert family([*tokens, "<0x0A>"], Kind(("my-model",), "llama")) == "Codestral"


def test_codegeex_is_told_from_glm_by_its_name() -> None:
    tokens = FAMILIES["CodeGeeX4"].tokens
    assert family(tokens, Kind(("glm-4-9b",), "chatglm")) == "GLM-4"
    assert family(tokens, Kind(("codegeex4-all-9b",), "chatglm")) == "CodeGeeX4"


def test_models_for_next_edits_fill_in_as_their_bases_do() -> None:
    qwen, seed = FAMILIES["Qwen-Coder"].tokens, FAMILIES["Seed-Coder"].tokens
    assert family(qwen, Kind(("sweep-next-edit-1.5B",), "qwen2")) == "Qwen-Coder"
    assert family(qwen, Kind(("instinct",), "qwen2")) == "Qwen-Coder"
    assert family([*seed, "<|marker_1|>", "<|user_cursor|>"], Kind(("zeta-2.1",), "llama")) == "Seed-Coder"


def test_the_other_order_has_the_same_pieces() -> None:
    for one in known_formats():
        turned = other_order(one)
        assert turned.pieces != one.pieces
        assert sorted(map(str, turned.pieces)) == sorted(map(str, one.pieces))
        assert other_order(turned).pieces == one.pieces


def test_names_are_those_of_the_model() -> None:
    assert names_in("JetBrains/Mellum-4b-base") == ("Mellum-4b-base",)
    assert names_in("/home/mellum/models/starcoder") == ("starcoder",)
    assert names_in("/c/models--JetBrains--Mellum-4b-base/snapshots/0a1b") == (
        "models--JetBrains--Mellum-4b-base",
        "0a1b",
    )


def test_a_folder_tells_its_kind(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    assert kind_of_folder(folder, "mine") == Kind(("mine", "mine"), "")
    for config in ("[]", "{", json.dumps({"model_type": 3, "_name_or_path": None})):
        (folder / "config.json").write_text(config)
        assert kind_of_folder(folder, "mine") == Kind(("mine", "mine"), "")
    (folder / "config.json").write_text(
        json.dumps({"model_type": "llama", "_name_or_path": "JetBrains/Mellum-4b-base"})
    )
    assert kind_of_folder(folder, "mine") == Kind(("mine", "mine", "Mellum-4b-base"), "llama")


# --- GGUF files ---------------------------------------------------------------------------------------------------

needs_llama_cpp = pytest.mark.skipif(not library.is_installed(), reason="xllamacpp is not installed")


SHARED = dict(zip(UNUSED[1:], STARCODER[:3], strict=True))


@needs_llama_cpp
def test_a_file_tells_its_kind(tmp_path: Path) -> None:
    plain, _ = read_gguf_tokens(write_renamed_base(tmp_path / "some.gguf", {}))
    assert plain.family == PLAIN
    found, _ = read_gguf_tokens(write_renamed_base(tmp_path / "other.gguf", SHARED))
    assert found.family == "StarCoder2"
    assert layout_of(found.encode("L", "R", 50), found) == "<fim_prefix>L<fim_suffix>R<fim_middle>"
    for path, changes in (
        (tmp_path / "any.gguf", {"add_name": "Mellum 4b Base"}),
        (tmp_path / "mellum-4b-base.Q8_0.gguf", {}),
    ):
        found, _ = read_gguf_tokens(write_renamed_base(path, SHARED, **changes))
        assert found.family == "Mellum"
        assert layout_of(found.encode("L", "R", 50), found) == "<fim_suffix>R<fim_prefix>L<fim_middle>"


@needs_llama_cpp
def test_a_file_that_asks_for_a_begin_gets_it_once(tmp_path: Path) -> None:
    begin = {"add_bos_token_id": 1, "add_add_bos_token": True}
    found, _ = read_gguf_tokens(write_renamed_base(tmp_path / "some.gguf", SHARED, **begin))
    prompt = found.encode("L", "R", 50)
    assert prompt[0] == 1
    assert prompt.count(1) == 1
    assert layout_of(prompt[1:], found) == "<fim_prefix>L<fim_suffix>R<fim_middle>"


def layout_of(prompt: list[int], bound: object) -> str:
    return bound.tokenizer.decode(prompt)  # type: ignore[attr-defined,no-any-return]
