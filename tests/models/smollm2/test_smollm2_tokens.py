"""SmolLM2's tokenizer, made from a GGUF file's metadata: the ids that llama.cpp gives, with control tokens named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, pre_tokenizers

from fim_server.errors import ModelError
from fim_server.models.prompt import find_format
from fim_server.models.smollm2.tokens import CONTROL_TOKENS, gguf_tokenizer, named_tokenizer
from fim_server.models.tokenizer import FileTokenizer

RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("smollm2_tokens.json").read_text(encoding="utf-8"))
"""Texts with their ids from llama.cpp, and as much of the vocabulary as they take; the rest is filled up."""


@pytest.fixture
def fields() -> dict[str, Any]:
    """The metadata of a GGUF file, of that part of the vocabulary."""
    known = {number: token for token, number in (RECORD["tokens"] | RECORD["special"]).items()}
    special = set(RECORD["special"].values())
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": [known.get(number, f"[{number}]") for number in range(RECORD["size"])],
        "tokenizer.ggml.token_type": [3 if number in special else 1 for number in range(RECORD["size"])],
        "tokenizer.ggml.merges": RECORD["merges"],
    }


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """The ids of a text in which the names of special tokens are text."""
    return FileTokenizer(tokenizer.to_str().encode()).encode(text, add_special_tokens=False, split_special_tokens=True)


@pytest.mark.parametrize("case", RECORD["cases"], ids=lambda case: ascii(case["text"]))
def test_texts_have_the_ids_of_llama_cpp(case: dict[str, Any], fields: dict[str, Any]) -> None:
    tokenizer = gguf_tokenizer(fields)
    assert ids(tokenizer, case["text"]) == case["ids"]
    assert tokenizer.decode(case["ids"], skip_special_tokens=False) == case["text"]


def test_without_its_splitter_they_would_not_have_them(fields: dict[str, Any]) -> None:
    tokenizer = gguf_tokenizer(fields)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    assert any(ids(tokenizer, case["text"]) != case["ids"] for case in RECORD["cases"])


def test_control_tokens_have_the_names_of_a_format(fields: dict[str, Any]) -> None:
    tokenizer = gguf_tokenizer(fields)
    names = {number: tokenizer.id_to_token(number) for number in CONTROL_TOKENS}
    assert names == {8: "<|fim_prefix|>", 9: "<|fim_suffix|>", 10: "<|fim_middle|>"}
    bound = find_format(FileTokenizer(tokenizer.to_str().encode()), "SmolLM2")
    prompt = bound.encode("a", "b", 50)
    assert [token for token in prompt if token in bound.control_ids] == [9, 8]
    assert bound.stop_ids == (0, 5)
    assert bound.family == "SmolLM2"
    assert named_tokenizer(tokenizer).to_str() == tokenizer.to_str(), "naming them again changes nothing"


def test_other_tokenizers_are_refused(fields: dict[str, Any]) -> None:
    for changed, words in (
        ({"tokenizer.ggml.pre": "default"}, "a tokenizer of the kind"),
        ({"tokenizer.ggml.tokens": ["x"] * 100}, "token 8 is x, not <issue_start>: another tokenizer"),
    ):
        with pytest.raises(ModelError, match=words):
            gguf_tokenizer({**fields, **changed})
    del fields["tokenizer.ggml.merges"]
    with pytest.raises(ModelError, match=r"metadata lack tokenizer\.ggml\.merges"):
        gguf_tokenizer(fields)
