"""Tokenizer of SmolLM2, made from a GGUF file's metadata, with names for the control tokens.

The file has tokens, their kinds and the merges of byte-pair encoding. It also names the splitter that cuts a text
beforehand: ``smollm`` is each digit by itself, and then GPT-2's regular expression (llama.cpp, ``llama-vocab.cpp``). A
conversion without the splitter encodes numbers, and the text around them, as the model has never seen them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fim_server.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tokenizers import Tokenizer

CONTROL_TOKENS = {
    8: ("<issue_start>", "<|fim_prefix|>"),
    9: ("<issue_comment>", "<|fim_suffix|>"),
    10: ("<issue_closed>", "<|fim_middle|>"),
}
"""Special tokens that the base does not need for code: their ids, their names there and their new names as the tokens
of fill-in-the-middle prompts (``formats.toml``).
"""

END_ID, END_TOKEN = 0, "<|endoftext|>"
"""Token that ends a middle, as it ends a text of the base's training."""

MODEL, SPLITTER = "gpt2", "smollm"
CONTROL, USER_DEFINED = 3, 4
"""Kinds of tokens (GGUF's ``tokenizer.ggml.token_type``) that are found in a text before it is split."""

TOKENIZER_CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "eos_token": END_TOKEN,
    "bos_token": END_TOKEN,
    "unk_token": END_TOKEN,
    "clean_up_tokenization_spaces": False,
}
"""Fields of the ``tokenizer_config.json``."""


def gguf_tokenizer(fields: Mapping[str, Any]) -> Tokenizer:
    """Make the tokenizer of a GGUF file's metadata. Raises ModelError for another kind of tokenizer."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    kind = fields.get("tokenizer.ggml.model"), fields.get("tokenizer.ggml.pre")
    if kind != (MODEL, SPLITTER):
        raise ModelError(f"a tokenizer of the kind {kind}, not {(MODEL, SPLITTER)}")
    try:
        tokens, kinds = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
        merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"]]
    except KeyError as error:
        raise ModelError(f"its metadata lack {error.args[0]}") from error
    check_names(dict(enumerate(tokens)))
    named = [CONTROL_TOKENS[number][1] if number in CONTROL_TOKENS else token for number, token in enumerate(tokens)]
    tokenizer = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(named)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    for number, kind in enumerate(kinds):
        if kind in (CONTROL, USER_DEFINED):
            added = AddedToken(named[number], special=kind == CONTROL, normalized=False)
            (tokenizer.add_special_tokens if kind == CONTROL else tokenizer.add_tokens)([added])
    return tokenizer


def named_tokenizer(tokenizer: Tokenizer) -> Tokenizer:
    """Return a copy of the base's tokenizer with the control tokens' names. Raises ModelError for another tokenizer."""
    from tokenizers import Tokenizer

    described = json.loads(tokenizer.to_str())
    check_names({number: str(tokenizer.id_to_token(number)) for number in CONTROL_TOKENS})
    vocabulary = described["model"]["vocab"]
    for number, (old, new) in CONTROL_TOKENS.items():
        vocabulary.pop(old, None)
        vocabulary[new] = number
    for token in described["added_tokens"]:
        if token["id"] in CONTROL_TOKENS:
            token["content"] = CONTROL_TOKENS[token["id"]][1]
    renamed: Tokenizer = Tokenizer.from_str(json.dumps(described))
    return renamed


def check_names(names: Mapping[int, str]) -> None:
    """Raise ModelError where the control tokens are not those of the adapter's training."""
    for number, (old, new) in CONTROL_TOKENS.items():
        if names.get(number) not in (old, new):
            raise ModelError(f"token {number} is {names.get(number)}, not {old}: another tokenizer")
